"""A person names a peer as a terminal shows it; what can't be blocked or dialled is refused in words."""

from __future__ import annotations

import pytest
from autoresearch_daemon.peers.sync_sessions import check_dialled, named_peer

from autoresearch.ask.node import PeerView
from autoresearch.errors import AmbiguousId, AutoresearchError, Refused, UsageError

OWN = "12D3KooWFsJnPpEiCQGwxEbRFaZzjXJ3TYommAXWaH5CiZuNB6Yi"
FIRST = "12D3KooWCg5y8QhiE4NmZKhjFM3cFT4EBt6EPmAP5V8sT6co7cuh"
SECOND = "12D3KooWCC2py4yaUz9UrvsCaBXRfW4vBiubdMzMPXz5BtJqtcNZ"
TWIN = "12D3KooWGHjaEjeuY2ewZ6bWqfPyMxMDtGghWeoTv6jhBtJqtcNZ"


def peer(name: str, *, blocked: bool = False, shut_out: str = "") -> PeerView:
    return PeerView(peer=name, blocked=blocked, shut_out=shut_out)


KNOWN = [peer(FIRST), peer(SECOND), peer(TWIN)]


@pytest.mark.parametrize("typed", [FIRST, FIRST[-12:], FIRST[-4:]])
def test_a_known_peer_is_named_by_its_id_or_the_end_of_it(typed: str) -> None:
    assert named_peer(typed, KNOWN, own=OWN) == FIRST


def test_a_peer_that_nobody_met_is_named_by_its_whole_id() -> None:
    assert named_peer(FIRST, [], own=OWN) == FIRST


@pytest.mark.parametrize(
    "typed", ["", " ", "cuh", "nobody", "é", FIRST[:-1], FIRST[:12], FIRST + "a", "12D3" * 900, OWN, OWN[-12:]]
)
def test_what_names_no_other_peer_is_refused_with_a_hint(typed: str) -> None:
    with pytest.raises(Refused) as refused:
        named_peer(typed, KNOWN, own=OWN)
    assert "autoresearch network peers" in refused.value.hint
    assert len(str(refused.value)) < 200


def test_an_end_that_two_ids_have_names_neither() -> None:
    with pytest.raises(AmbiguousId) as several:
        named_peer("BtJqtcNZ", KNOWN, own=OWN)
    assert several.value.candidates == [SECOND, TWIN]


@pytest.mark.parametrize(("who", "error"), [("abc", UsageError), (OWN, Refused), (FIRST, Refused), (SECOND, Refused)])
def test_what_will_never_be_dialled_is_not_said_to_be_connecting(who: str, error: type[AutoresearchError]) -> None:
    peers = [peer(FIRST, blocked=True), peer(SECOND, shut_out="sent too much that is no record"), peer(TWIN)]
    with pytest.raises(error) as refused:
        check_dialled(f"/ip4/127.0.0.1/tcp/4001/p2p/{who}", peers, own=OWN)
    assert refused.value.hint
    check_dialled(f"/ip4/127.0.0.1/tcp/4001/p2p/{who}/p2p-circuit/p2p/{TWIN}", peers, own=OWN)
