"""Which chunk of a blob is asked of which peer, and what an answer means. Pure: peers are names, the clock an argument.

Every chunk is asked of one peer at a time; only when a peer is silent for long and another has nothing to do, of that
one too. A peer that is busy or fails is left alone for a while, and gets less at a time; one that has not got the
blob is asked no more; one that lied is asked no more and its other answers are not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto

# A peer serves four requests of ours at a time: one place is left for another download from it.
ASKED_OF_ONE = 3
ASKED_IN_ALL = 12
# After so many seconds without the answer an idle peer is asked for the same chunk.
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.25
PAUSE_SECONDS_MAX = 8.0
# A peer that fails so often in a row is asked no more.
FAILURES_MAX = 4


class Outcome(StrEnum):
    """How a question ended."""

    RIGHT = auto()
    WRONG = auto()
    NOT_HERE = auto()
    BUSY = auto()
    BROKEN = auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that is under way: this chunk, of this peer."""

    peer: str
    chunk: int


@dataclass(slots=True)
class _Peer:
    connected: bool = True
    window: int = 1
    asked: dict[int, float] = field(default_factory=dict)
    free_at: float = 0.0
    pauses: int = 0
    failures: int = 0
    out: Outcome | None = None

    def may_be_asked(self, now: float) -> bool:
        """Whether one more question may be put to it."""
        return self.connected and self.out is None and len(self.asked) < self.window and now >= self.free_at

    def pause(self, now: float) -> None:
        """Leave it alone for a while, each time longer, and ask less of it at a time."""
        self.free_at = now + min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**self.pauses)
        self.pauses = min(self.pauses + 1, 10)
        self.window = max(1, self.window // 2)


class Download:
    """The state of one download of ``chunks`` chunks, of which ``missing`` are to be fetched."""

    def __init__(self, chunks: int, missing: Iterable[int] | None = None) -> None:
        self.missing = set(range(chunks) if missing is None else missing)
        self.chunks = chunks
        self._peers: dict[str, _Peer] = {}

    @property
    def done(self) -> bool:
        """Whether every chunk is here."""
        return not self.missing

    @property
    def hopeless(self) -> bool:
        """Whether no connected peer is left that could be asked, now or after a pause."""
        return not self.done and not any(peer.connected and peer.out is None for peer in self._peers.values())

    def out(self, outcome: Outcome) -> int:
        """How many connected peers are asked no more for this reason."""
        return sum(peer.connected and peer.out is outcome for peer in self._peers.values())

    def meet(self, peers: Sequence[str]) -> None:
        """These peers are connected now, in the order in which they are to be preferred.

        One that was gone is asked anew, unless it lied.
        """
        for name in peers:
            self._peers.setdefault(name, _Peer())
        for name, peer in list(self._peers.items()):
            peer.connected = name in peers
            if not peer.connected and not peer.asked and peer.out is not Outcome.WRONG:
                del self._peers[name]

    def next(self, now: float) -> list[Ask]:
        """What to ask now; each is under way until `answer` is called for it, or returns it."""
        asks: list[Ask] = []
        under_way = self._under_way()
        waiting = sorted(self.missing - under_way.keys(), reverse=True)
        late = [chunk for chunk, since in sorted(under_way.items(), key=_oldest) if self._is_late(chunk, since, now)]
        while len(asks) + sum(map(len, under_way.values())) < ASKED_IN_ALL:
            free = [name for name, peer in self._peers.items() if peer.may_be_asked(now)]
            if waiting and free:
                asks.append(self._ask(min(free, key=lambda name: len(self._peers[name].asked)), waiting.pop(), now))
                continue
            idle = [name for name in free if not self._peers[name].asked]
            if waiting or not late or not idle:
                break
            asks.append(self._ask(idle[0], late.pop(0), now))
        return asks

    def answer(self, ask: Ask, outcome: Outcome, now: float) -> list[Ask]:
        """A question ended. Returns those that nobody needs the answer of any more; they are not under way any more."""
        peer = self._peers.get(ask.peer)
        if peer is None or peer.asked.pop(ask.chunk, None) is None:
            return []
        match outcome:
            case Outcome.RIGHT:
                self.missing.discard(ask.chunk)
                peer.window = min(ASKED_OF_ONE, peer.window + 1)
                peer.pauses = peer.failures = 0
                return self._drop([Ask(name, ask.chunk) for name in self._peers])
            case Outcome.BUSY:
                peer.pause(now)
            case Outcome.BROKEN:
                peer.pause(now)
                peer.failures += 1
                if peer.failures >= FAILURES_MAX:
                    peer.out = outcome
            case Outcome.NOT_HERE:
                peer.out = outcome
            case Outcome.WRONG:
                peer.out = outcome
                return self._drop([Ask(ask.peer, chunk) for chunk in peer.asked])
        return []

    def look_at(self, now: float) -> float | None:
        """When `next` may have something though nothing happened; None when only an answer or a peer can help."""
        times = [peer.free_at for peer in self._peers.values() if peer.connected and peer.out is None]
        times += [since + PATIENCE_SECONDS for peer in self._peers.values() for since in peer.asked.values()]
        return min((time for time in times if time > now), default=None)

    def _ask(self, name: str, chunk: int, now: float) -> Ask:
        self._peers[name].asked[chunk] = now
        return Ask(name, chunk)

    def _drop(self, asks: list[Ask]) -> list[Ask]:
        return [ask for ask in asks if self._peers[ask.peer].asked.pop(ask.chunk, None) is not None]

    def _under_way(self) -> dict[int, list[float]]:
        """The chunks that are asked for, and since when."""
        found: dict[int, list[float]] = {}
        for peer in self._peers.values():
            for chunk, since in peer.asked.items():
                found.setdefault(chunk, []).append(since)
        return found

    def _is_late(self, chunk: int, since: list[float], now: float) -> bool:
        return chunk in self.missing and now - max(since) >= PATIENCE_SECONDS


def _oldest(pair: tuple[int, list[float]]) -> float:
    return min(pair[1])
