"""Which peer a person means (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autoresearch.api import PeerView
from autoresearch.errors import AmbiguousId, Refused, UsageError
from autoresearch.sanitise import one_line

# Base58 of an Ed25519 key as it is, or of the SHA-256 of another key.
BASE58 = "[1-9A-HJ-NP-Za-km-z]"
PEER_ID = re.compile(f"12D3KooW{BASE58}{{44}}|Qm{BASE58}{{44}}")
# A terminal shows the last twelve characters; fewer than these are typed by mistake.
TAIL_CHARACTERS_MIN = 4
CANDIDATES_MAX = 5
# So much of what was typed is said again.
TYPED_CHARACTERS = 80


def named_peer(text: str, peers: Sequence[PeerView], *, own: str) -> str:
    """The peer id that a person typed, or the one of a known peer that ends so.

    Raises:
        AmbiguousId: several known peers' ids end so.
        Refused: it names no peer, or this node.
    """
    ends_so = [peer.peer for peer in peers if len(text) >= TAIL_CHARACTERS_MIN and peer.peer.endswith(text)]
    if text == own or (not ends_so and len(text) >= TAIL_CHARACTERS_MIN and own.endswith(text)):
        raise Refused(f"{text} is this node", hint="autoresearch peers shows the ids of the others")
    if len(ends_so) > 1:
        raise AmbiguousId(f"{text} is the end of several peer ids", ends_so[:CANDIDATES_MAX])
    if ends_so:
        return ends_so[0]
    if not PEER_ID.fullmatch(text):
        raise Refused(
            f"“{one_line(text, TYPED_CHARACTERS)}” is no peer id, and no known peer's id ends so",
            hint="autoresearch peers shows them",
        )
    return text


def check_dialled(address: str, peers: Sequence[PeerView], *, own: str) -> None:
    """Refuse an address that will never be dialled; ``address`` has the form of one.

    Raises:
        Refused: it is this node's, or of a peer that is blocked or shut out here.
        UsageError: what it ends in is no peer id.
    """
    peer = address.rpartition("/p2p/")[2]
    if not PEER_ID.fullmatch(peer):
        raise UsageError(
            f"“{one_line(peer, TYPED_CHARACTERS)}” is no peer id",
            hint="peer ids look like 12D3KooW…: autoresearch peers, on that machine",
        )
    if peer == own:
        raise Refused("that is the address of this node", hint="give it to others: autoresearch peers add, there")
    for known in peers:
        if known.peer == peer and (known.blocked or known.shut_out):
            why = "blocked" if known.blocked else f"shut out: it {known.shut_out}"
            raise Refused(f"{peer} is {why}", hint=f"autoresearch peers unblock {peer}")
