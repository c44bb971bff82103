"""Who is behind a peer, and what the log shows of them."""

from autoresearch.ask.lookup import with_participants
from autoresearch.ask.node import NetworkStatus, PeersAnswer, PeerView
from tests.log.standing.village import ANN, BEN, ROOTS, STRANGER


def peer_rows(village, *devices):
    """The peers of a node, each with a device that it has proven."""
    peers = [PeerView(peer=f"12D3{number}", device_key=who.public.hex()) for number, who in enumerate(devices)]
    answer = PeersAnswer(network=NetworkStatus(state="running"), peers=[*peers, PeerView(peer="12D3silent")])
    return with_participants(village.log, answer).peers


def test_a_peer_is_its_participant_with_its_marks_and_bans(village):
    village.refute(village.run(0.9, "false", by=BEN), 1.9)
    fraud = village.run(1.2, "chosen seed", by=ANN, seed=7)
    ann, ben, stranger, silent = peer_rows(village, ANN, BEN, STRANGER)
    assert (ann.participant.key, ann.attested) == (ROOTS[1].public.hex(), True)
    assert [mark.mark for mark in ann.marks] == ["fraud"]
    assert ann.banned_until_ms == fraud.time + village.log.network.verify_ban_ms
    assert ([mark.mark for mark in ben.marks], ben.banned_until_ms) == (["fabricator"], None)
    assert (stranger.participant.key, stranger.attested, stranger.marks) == (STRANGER.public.hex(), False, [])
    assert (silent.participant.key, silent.marks) == ("", [])
