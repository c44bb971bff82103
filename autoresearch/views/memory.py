"""What was computed of a log, kept until a record comes that changes it: the answers are those of a new look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from autoresearch.identity import Roster, Trust
from autoresearch.log import Alike, Extent, FraudRow, LikeRow, Log
from autoresearch.records import Record
from autoresearch.verification import Judgement, Report

# Records of these kinds may change whose word any record carries, or what any run is judged by.
ABOUT_ALL = frozenset({"identity", "attestation", "withdrawal", "merge", "task"})
ABOUT_PEOPLE = ("identity", "attestation", "withdrawal")
_ALL = 1_000_000
# So many runs are remembered; then everything is forgotten, which costs time and nothing else.
REMEMBERED_MAX = 200_000
Found = TypeVar("Found")


@dataclass(slots=True)
class Endings:
    """How the runs on a task ended, up to the record ``row``: how many in which way, and by which devices."""

    row: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    authors: set[bytes] = field(default_factory=set)


@dataclass(slots=True)
class Chain:
    """The times of a device's records up to the number ``seq``: the latest, and which records name an earlier one.

    ``dated_back`` has the numbers of these, each with the latest time before it.
    """

    seq: int = 0
    latest_ms: int = 0
    dated_back: dict[int, int] = field(default_factory=dict)

    def extend(self, places: Iterable[tuple[int, int]]) -> None:
        """Go on with numbers and times in their order."""
        for seq, time_ms in places:
            if time_ms < self.latest_ms:
                self.dated_back[seq] = self.latest_ms
            self.seq, self.latest_ms = seq, max(self.latest_ms, time_ms)


@dataclass(slots=True)
class Memory:
    """What is known of a log at ``extent``, as ``trust`` has it; ``known``: what depends on any record, by name.

    ``discoveries`` are those up to the record ``discovered``; ``endings`` are by task, ``chains`` by device.
    ``version`` grows whenever something is forgotten: what was begun before is not to be kept.
    """

    roster: Roster
    trust: Trust
    extent: Extent
    version: int = 0
    reports: dict[bytes, list[tuple[Record, Report]]] = field(default_factory=dict)
    judgements: dict[bytes, Judgement] = field(default_factory=dict)
    voices: dict[bytes, int] = field(default_factory=dict)
    frauds: list[FraudRow] = field(default_factory=list)
    checkpoints: Alike = field(default_factory=dict)
    discoveries: Alike = field(default_factory=dict)
    discovered: int = 0
    endings: dict[bytes, Endings] = field(default_factory=dict)
    chains: dict[bytes, Chain] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)

    def forget(self, runs: set[bytes] | None = None) -> None:
        """Forget what depends on these runs' verifications, or everything that is no list of records."""
        self.version += 1
        self.known.clear()
        for kept in (self.reports, self.judgements):
            if runs is None or len(kept) > REMEMBERED_MAX:
                kept.clear()
            for run in runs or ():
                kept.pop(run, None)
        if runs is None:
            self.voices.clear()


_memories: WeakKeyDictionary[Log, Memory] = WeakKeyDictionary()
_lock = RLock()


def memory_of(log: Log) -> Memory:
    """What is remembered of a log, with everything forgotten that came records, or other trust, have changed."""
    trust, extent = log.trust, log.extent()
    memory = _memories.get(log)
    if memory is not None and memory.extent == extent and memory.trust == trust:
        return memory
    with _lock:
        if memory is None or memory.trust != trust or _is_another(memory.extent, extent):
            memory = _memories[log] = Memory(_roster(log, trust), trust, extent)
            _gather(log, memory, 0)
        elif memory.extent != extent:
            _refresh(log, memory, extent)
        return memory


def remembered(log: Log, name: str, compute: Callable[[], Found]) -> Found:
    """What depends on any record, by a name: computed unless it is known.

    What was begun before a record came that others read meanwhile is not kept: threads share what is remembered.
    """
    memory = memory_of(log)
    version, missing = memory.version, object()
    known = memory.known.get(name, missing)
    if known is not missing:
        return cast("Found", known)
    found = compute()
    if memory.version == version:
        memory.known[name] = found
    return found


def roster_of(log: Log) -> Roster:
    """Who is who in a log, as the network trusts."""
    return memory_of(log).roster


def checkpoints_of(log: Log) -> list[list[LikeRow]]:
    """Runs that have one checkpoint together, the first first."""
    return list(memory_of(log).checkpoints.values())


def discoveries_of(log: Log) -> list[list[LikeRow]]:
    """Runs that have one program together; looked for when somebody asks, because that takes the longest."""
    memory = memory_of(log)
    with _lock:
        if memory.discovered < memory.extent.row:
            memory.discoveries |= log.same_discoveries(after=memory.discovered)
            memory.discovered = memory.extent.row
        return list(memory.discoveries.values())


def _is_another(before: Extent, now: Extent) -> bool:
    """Whether records went since then, and not only came."""
    return before.drops != now.drops or before.row > now.row


def endings_of(log: Log, task: bytes) -> tuple[dict[str, int], int]:
    """How many runs on a task ended in which way, and how many devices published runs on it."""
    memory = memory_of(log)
    with _lock:
        known = memory.endings.setdefault(task, Endings())
        row = memory.extent.row
        if known.row < row:
            for status, author, count in log.endings(task, known.row, row):
                known.statuses[status] += count
                known.authors.add(author)
            known.row = row
        return dict(known.statuses), len(known.authors)


def signed_ms(log: Log, device: bytes, seq: int, time_ms: int) -> int:
    """Before when a device did not sign the record with this number and time: that of one before it may be later."""
    memory = memory_of(log)
    with _lock:
        chain = memory.chains.setdefault(device, Chain())
        if chain.seq < seq:
            chain.extend(log.times_of(device, chain.seq))
        return max(time_ms, chain.dated_back.get(seq, 0))


def _refresh(log: Log, memory: Memory, extent: Extent) -> None:
    before = memory.extent.row
    kinds = log.kinds_after(before)
    frauds = len(memory.frauds)
    if "withdrawal" in kinds:
        memory.frauds, memory.checkpoints, memory.discoveries, memory.discovered = [], {}, {}, 0
        memory.endings = {}
        _gather(log, memory, 0)
    else:  # whatever came: it may be what a run names as its parent
        _gather(log, memory, before)
    if kinds.intersection(ABOUT_PEOPLE):
        memory.roster = _roster(log, memory.trust)
    everything = bool(kinds & ABOUT_ALL) or len(memory.frauds) != frauds
    memory.forget(None if everything else log.verified_after(before))
    for device, seq in log.places_after(before):
        if device in memory.chains and seq <= memory.chains[device].seq:
            del memory.chains[device]
    memory.extent = extent


def _gather(log: Log, memory: Memory, after: int) -> None:
    """What records prove against their authors, among those stored after a number."""
    known = {fraud.id for fraud in memory.frauds}  # one record may prove it twice
    memory.frauds += [fraud for fraud in log.frauds(after=after) if fraud.id not in known]
    memory.checkpoints |= log.same_checkpoints(after=after)


def _roster(log: Log, trust: Trust) -> Roster:
    records = [record for kind in ABOUT_PEOPLE for record in log.records(kind=kind, limit=_ALL)]
    return Roster(records, trust, domain_voices=log.network.domain_voices)
