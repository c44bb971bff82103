"""The peers in words: offline is normal, not a fault."""

from __future__ import annotations

from autoresearch.api import PeersAnswer, PeerView
from autoresearch.figures import counted, duration, lately, moment, size
from autoresearch_cli.rendering.names import mark_words, person
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_rows, print_table

# Enough of a peer id to tell two apart, and to block by.
PEER_CHARACTERS = 12
# Clocks that differ by less than this hurt nobody.
SKEW_MS = 60_000


def print_peers(answer: PeersAnswer, *, now_ms: int) -> None:
    """This node's addresses, then its peers: how they stand, what they say of themselves, what moved today."""
    print_labelled(("this node", address) for address in answer.addresses)
    if not is_rich():
        print_rows(
            (
                standing(peer),
                peer.peer,
                peer.address,
                peer.agent,
                peer.bytes_in,
                peer.bytes_out,
                peer.records_in,
                peer.records_out,
                peer.exchanged_ms,
                peer.seen_ms,
                peer.participant.key,
                peer.participant.name,
                mark_words(peer.marks),
                banned(peer, now_ms),
            )
            for peer in answer.peers
        )
        return
    rows = [
        (
            standing(peer),
            peer.peer[-PEER_CHARACTERS:],
            "now" if peer.connected else lately(peer.seen_ms, now_ms) if peer.seen_ms else "never",
            records(peer, now_ms),
            f"{size(peer.bytes_in)} in, {size(peer.bytes_out)} out",
            person(peer.participant),
            peer.address,
            remarks(peer, now_ms),
        )
        for peer in answer.peers
    ]
    print_table(("", "peer …", "seen", "records", "today", "participant", "address", ""), rows)


def standing(peer: PeerView) -> str:
    """How it stands: blocked, shut out, relayed or connected (and who dialled), or offline."""
    if peer.blocked:
        return "blocked"
    if peer.shut_out:
        return "shut out"
    if not peer.connected:
        return "offline"
    return "relayed" if "/p2p-circuit" in peer.address else "called us" if peer.inbound else "direct"


def records(peer: PeerView, now_ms: int) -> str:
    """How its log and ours compare: what the last exchange moved, after which both had the same."""
    if not peer.exchanged_ms:
        return ""
    moved = [f"{sign}{count}" for sign, count in (("+", peer.records_in), ("−", peer.records_out)) if count]
    return " ".join(["equal", lately(peer.exchanged_ms, now_ms), *([f"({' '.join(moved)})"] if moved else [])])


def banned(peer: PeerView, now_ms: int) -> str:
    """Until when its participant does not count; empty when it does."""
    until_ms = peer.banned_until_ms
    return f"banned until {moment(until_ms)}" if until_ms is not None and until_ms > now_ms else ""


def remarks(peer: PeerView, now_ms: int) -> str:
    """What a person should know of it, what is wrong first."""
    parts = [peer.shut_out] if peer.shut_out else []
    wrong = ", ".join(filter(None, (mark_words(peer.marks), banned(peer, now_ms))))
    if wrong:
        parts.append(f"{wrong} → autoresearch credit {peer.participant.short}")
    if peer.other_network:
        parts.append("is in another network")
    if abs(peer.clock_ahead_ms) > SKEW_MS:
        parts.append(
            f"its clock is {duration(abs(peer.clock_ahead_ms))} {'ahead' if peer.clock_ahead_ms > 0 else 'behind'}"
        )
    if peer.agent:
        parts.append(peer.agent)
    if peer.devices:
        parts.append(f"{counted(len(peer.devices), 'device')}: {', '.join(peer.devices)}")
    return "; ".join(parts)
