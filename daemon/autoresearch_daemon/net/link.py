"""What daemon and network process say to each other over their link (autoresearch.link): one tagged struct a message.

Nothing here waits in an unbounded queue: records and frames are sent against credit that the other side gives back
with ``Took``, and calls are counted. A message that is no member of the two unions is refused by the decoder.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from autoresearch_daemon.net.model import Figures, PeerInfo, Topic

# Credits: how many of each may be under way before the other side has taken some.
RECORDS_UNDER_WAY = 1024
FRAMES_UNDER_WAY = 4
CALLS_UNDER_WAY = 256
# How often the network process says that its loop turns.
BEAT_SECONDS = 2.0
Kind = Literal["usage", "not found", "refused", "busy", "timeout", "failed"]
# The number of the credit account for records; streams count from 1.
RECORDS = 0


class LinkMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all messages."""


class Call(LinkMessage, frozen=True, kw_only=True):
    """Base of the daemon's questions. ``call`` comes back in the answer."""

    call: int


class Publish(Call, frozen=True, kw_only=True):
    """Gossip a record."""

    signature: bytes
    raw: bytes


class Dial(Call, frozen=True, kw_only=True):
    """Connect to a multiaddr that ends in ``/p2p/PEER`` and keep it in the book."""

    address: str


class BlockPeer(Call, frozen=True, kw_only=True):
    """Close a peer's connections and refuse new ones, or with ``blocked=False`` allow them again."""

    peer: str
    blocked: bool


class ShutOut(Call, frozen=True, kw_only=True):
    """Close a peer's connections and refuse it for a while: it did what no honest peer does."""

    peer: str
    reason: str


class OpenSync(Call, frozen=True, kw_only=True):
    """Open a sync stream; the answer has its number."""

    peer: str


class FetchBlob(Call, frozen=True, kw_only=True):
    """Ask a peer for a part of a blob; the answer's ``data`` holds it.

    ``name``: the blob's SHA-256, and behind it that of its manifest if it has one.
    """

    peer: str
    name: bytes
    offset: int
    length: int


class AskPeer(Call, frozen=True, kw_only=True):
    """Ask a peer about something; the answer's ``data`` is its reply."""

    peer: str
    topic: Topic
    data: bytes


class CancelCall(LinkMessage, frozen=True, kw_only=True):
    """Daemon: nobody waits for this call any more."""

    call: int


class Frame(LinkMessage, frozen=True, kw_only=True):
    """Either side: one frame of a stream, as it travels."""

    stream: int
    data: bytes


class Took(LinkMessage, frozen=True, kw_only=True):
    """Either side: so many frames of a stream (or records) were taken, as many more may come."""

    stream: int
    count: int


class Close(LinkMessage, frozen=True, kw_only=True):
    """Either side: the stream is over. ``reason`` is empty at its regular end."""

    stream: int
    reason: str = ""


class BlobPart(LinkMessage, frozen=True, kw_only=True):
    """Daemon: what was asked for by ``BlobAsked``; ``None`` when it is not here."""

    request: int
    data: bytes | None


class Reply(LinkMessage, frozen=True, kw_only=True):
    """Daemon: the reply to ``Asked``; ``None``: none."""

    request: int
    data: bytes | None


class Introduce(LinkMessage, frozen=True, kw_only=True):
    """Daemon: what this node's device signed about the host's peer id (see the greeting)."""

    proof: bytes


class MoveBlobs(LinkMessage, frozen=True, kw_only=True):
    """Daemon: from now on blobs are fetched and served; or not, and why."""

    why_not: str = ""


class Offer(LinkMessage, frozen=True, kw_only=True):
    """Daemon: the manifest that peers get who ask for the network, from now on."""

    manifest: bytes


class CloseHost(LinkMessage, frozen=True, kw_only=True):
    """Daemon: close everything and end."""


class HostReady(LinkMessage, frozen=True, kw_only=True):
    """Network process: the host listens."""

    peer: str
    addresses: tuple[str, ...]
    note: str = ""


class Beat(LinkMessage, frozen=True, kw_only=True):
    """Network process: the loop turns, and this is how things stand."""

    peers: tuple[PeerInfo, ...]
    figures: Figures


class Done(LinkMessage, frozen=True, kw_only=True):
    """Network process: a call worked."""

    call: int
    data: bytes = b""
    stream: int = 0
    peer: str = ""


class CallFailed(LinkMessage, frozen=True, kw_only=True):
    """Network process: a call did not work; ``kind`` picks the error, the sentence is for people."""

    call: int
    kind: Kind
    sentence: str


class Heard(LinkMessage, frozen=True, kw_only=True):
    """Network process: a peer sent this record, and it was admitted."""

    raw: bytes
    signature: bytes
    peer: str


class Opened(LinkMessage, frozen=True, kw_only=True):
    """Network process: a peer opened a sync stream."""

    stream: int
    peer: str


class BlobAsked(LinkMessage, frozen=True, kw_only=True):
    """Network process: a peer asks for a part of a blob."""

    request: int
    peer: str
    name: bytes
    offset: int
    length: int


class Asked(LinkMessage, frozen=True, kw_only=True):
    """Network process: a peer asks this node about something."""

    request: int
    peer: str
    topic: Topic
    data: bytes


FromDaemon = (
    Publish | Dial | BlockPeer | ShutOut | OpenSync | FetchBlob | AskPeer | CancelCall
    | Frame | Took | Close | BlobPart | Reply | Introduce | Offer | MoveBlobs | CloseHost
)  # fmt: skip
FromChild = HostReady | Beat | Done | CallFailed | Heard | Opened | Frame | Took | Close | BlobAsked | Asked
