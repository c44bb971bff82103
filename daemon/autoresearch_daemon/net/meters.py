"""How much moves: bytes by peer and day, and the token buckets that slow a peer down (trio)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import trio
from libp2p.abc import INetConn
from libp2p.network.swarm import Swarm

from autoresearch.records import DAY_MS
from autoresearch_daemon.net.buckets import TokenBucket
from autoresearch_daemon.net.guards import GuardedYamux
from autoresearch_daemon.net.model import Figures

# Rates a second and bursts, for one peer. Gossip saturates far below; catching up goes over streams.
MESSAGES = (100.0, 400.0)
STREAMS = (20.0, 100.0)
# An exchange of records hashes the whole log once; an honest peer begins one a minute and one when it connects.
SESSIONS = (0.2, 30.0)
# An attestor is asked who it is, for a mail and with a code: a few times, once in half a year.
ATTESTS = (0.1, 30.0)
BYTES = (16.0 * 1024 * 1024, 64.0 * 1024 * 1024)
PEERS_REMEMBERED = 1024


@dataclass(slots=True)
class _Buckets:
    messages: TokenBucket
    streams: TokenBucket
    sessions: TokenBucket
    attests: TokenBucket
    bytes: TokenBucket


class Meters:
    """Counts and delays. ``day_bytes`` 0 is no limit."""

    def __init__(self, swarm: Swarm, now_ms: Callable[[], int], day_bytes: int) -> None:
        self._swarm = swarm
        self._now_ms = now_ms
        self._day_bytes = day_bytes
        self._closed_in = 0
        self._closed_out = 0
        self._day = now_ms() // DAY_MS
        self._day_start = (0, 0)
        # By peer: what connections moved today that ended; by connection: what it had moved when the day began.
        self._closed_today: dict[str, tuple[int, int]] = {}
        self._begun: dict[INetConn, tuple[int, int]] = {}
        # Kept when a peer leaves, so that coming back fills no bucket; the oldest are forgotten.
        self._buckets: OrderedDict[str, _Buckets] = OrderedDict()

    def message_delay(self, peer: str, count: int) -> float:
        """Seconds to wait before reading more gossip of a peer."""
        return self._of(peer).messages.take(count, trio.current_time())

    def stream_delay(self, peer: str) -> float:
        """Seconds to wait before serving a new stream of a peer."""
        return self._of(peer).streams.take(1, trio.current_time())

    def session_delay(self, peer: str) -> float:
        """Seconds to wait before an exchange of records that a peer asks for."""
        return self._of(peer).sessions.take(1, trio.current_time())

    def attest_delay(self, peer: str) -> float:
        """Seconds to wait before answering a peer as an attestor."""
        return self._of(peer).attests.take(1, trio.current_time())

    def byte_delay(self, peer: str, count: int) -> float:
        """Seconds to wait before reading more of a peer's frames."""
        return self._of(peer).bytes.take(count, trio.current_time())

    def closed(self, connection: INetConn) -> None:
        """Keep the counts of a connection that ended."""
        moved_in, moved_out = moved(connection)
        self._closed_in += moved_in
        self._closed_out += moved_out
        peer = str(connection.muxed_conn.peer_id)
        before, start = self._closed_today.get(peer, (0, 0)), self._begun.pop(connection, (0, 0))
        self._closed_today[peer] = (before[0] + moved_in - start[0], before[1] + moved_out - start[1])

    def totals(self) -> tuple[int, int]:
        """Bytes in and out since the start."""
        now = [moved(connection) for connection in self._swarm.get_connections()]
        return self._closed_in + sum(m[0] for m in now), self._closed_out + sum(m[1] for m in now)

    def today(self) -> tuple[int, int]:
        """Bytes in and out since midnight UTC, or since the start if that is later."""
        total_in, total_out = self.totals()
        if (day := self._now_ms() // DAY_MS) != self._day:
            self._day, self._day_start = day, (total_in, total_out)
            self._closed_today = {}
            self._begun = {connection: moved(connection) for connection in self._swarm.get_connections()}
        return total_in - self._day_start[0], total_out - self._day_start[1]

    def today_with(self, peer: str, connections: Iterable[INetConn]) -> tuple[int, int]:
        """Bytes in and out since midnight UTC to and from one peer; ``connections`` are those it has now."""
        total_in, total_out = self._closed_today.get(peer, (0, 0))
        for connection in connections:
            now, start = moved(connection), self._begun.get(connection, (0, 0))
            total_in, total_out = total_in + now[0] - start[0], total_out + now[1] - start[1]
        return total_in, total_out

    def day_is_over(self) -> bool:
        """Whether today's bytes are used up."""
        return bool(self._day_bytes) and sum(self.today()) >= self._day_bytes

    def figures(self, **others: int) -> Figures:
        """The byte counts beside other counters."""
        total_in, total_out = self.totals()
        day_in, day_out = self.today()
        return Figures(bytes_in=total_in, bytes_out=total_out, day_bytes_in=day_in, day_bytes_out=day_out, **others)

    def _of(self, peer: str) -> _Buckets:
        if peer not in self._buckets:
            now = trio.current_time()
            self._buckets[peer] = _Buckets(
                *(TokenBucket(*rate, now) for rate in (MESSAGES, STREAMS, SESSIONS, ATTESTS, BYTES)),
            )
            if len(self._buckets) > PEERS_REMEMBERED:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(peer)
        return self._buckets[peer]


def moved(connection: INetConn) -> tuple[int, int]:
    """Bytes in and out of one connection."""
    muxed = connection.muxed_conn
    return (muxed.bytes_in, muxed.bytes_out) if isinstance(muxed, GuardedYamux) else (0, 0)
