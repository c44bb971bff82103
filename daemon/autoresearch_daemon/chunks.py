"""Which chunk of a blob to ask of which peer next, and what to make of the answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from autoresearch.log import Manifest

# Asked of one peer at a time: it answers four of one peer, and other blobs are on their way too.
ASKS_PER_PEER = 2
# A peer that failed so often in a row is asked for nothing more of this blob.
STRIKES = 3


class Ask(NamedTuple):
    """A chunk, by its number, to ask of a peer."""

    peer: str
    chunk: int


@dataclass(slots=True)
class Source:
    """A peer that may have the blob."""

    asks: set[int] = field(default_factory=set)
    strikes: int = 0
    gone: bool = False


class Download:
    """One blob on its way. ``manifest`` names its chunks, ``here`` are those that need not be asked for."""

    def __init__(self, manifest: Manifest, here: Iterable[int] = ()) -> None:
        self._manifest = manifest
        self._missing = set(range(len(manifest.hashes))) - set(here)
        self._sources: dict[str, Source] = {}

    @property
    def done(self) -> bool:
        """Whether every chunk is here."""
        return not self._missing

    @property
    def stuck(self) -> bool:
        """Whether something is missing and nobody is left to ask."""
        return bool(self._missing) and all(source.gone for source in self._sources.values())

    def meet(self, peers: Iterable[str]) -> None:
        """These peers are connected now; one that is not among them any more is asked for nothing."""
        connected = set(peers)
        for peer in connected - self._sources.keys():
            self._sources[peer] = Source()
        for peer in self._sources.keys() - connected:
            self._sources[peer].gone = True

    def asks(self) -> list[Ask]:
        """What to ask now: the first missing chunks, each of one peer, of those that have least to do."""
        out: list[Ask] = []
        under_way = {index for source in self._sources.values() for index in source.asks}
        for index in sorted(self._missing - under_way):
            free = [(len(s.asks), s.strikes, peer) for peer, s in self._sources.items() if not s.gone]
            if not free or (least := min(free))[0] >= ASKS_PER_PEER:
                break
            self._sources[least[2]].asks.add(index)
            out.append(Ask(least[2], index))
        return out

    def arrived(self, ask: Ask, data: bytes) -> bool:
        """A peer's answer: whether it is the chunk. A peer that sends other bytes is asked for nothing more."""
        source = self._sources[ask.peer]
        source.asks.discard(ask.chunk)
        if not self._manifest.fits(ask.chunk, data):
            source.gone = True
            return False
        source.strikes = 0
        self._missing.discard(ask.chunk)
        return True

    def failed(self, ask: Ask, *, lacks: bool) -> None:
        """A peer gave no answer, or (``lacks``) said that it doesn't have the chunk."""
        source = self._sources[ask.peer]
        source.asks.discard(ask.chunk)
        source.strikes += 1
        source.gone = source.gone or lacks or source.strikes >= STRIKES
