"""Caches results of a log until a record changes them. Cached results equal recomputed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from autoresearch.judging.states import Judgement, Report
from autoresearch.log.rows import Alike, FraudRow, Revision, Said
from autoresearch.log.settling import ABOUT_PEOPLE
from autoresearch.record.record import Record
from autoresearch.trust.roster import Roster, Trust

if TYPE_CHECKING:
    from autoresearch.log.log import Log

# Records of these kinds may change the participant behind any record, or the judgement of any run.
ABOUT_ALL = frozenset({*ABOUT_PEOPLE, "merge", "task"})
# So many runs are cached; then the cache is cleared, which costs time alone.
CACHED_MAX = 200_000
# The sources of results that are about all groups of runs with one checkpoint, or one program.
CHECKPOINTS, DISCOVERIES = "checkpoints", "discoveries"
ANSWERS_MAX = 100
Found = TypeVar("Found")
P = ParamSpec("P")


class Known(NamedTuple):
    """Something that was computed, and the kinds of records that may change it; None: any may."""

    value: object
    by: frozenset[str] | None

    def outlasts(self, kinds: set[str]) -> bool:
        """Whether it is the same after records of these kinds came."""
        return self.by is not None and not self.by & kinds


@dataclass(slots=True)
class Endings:
    """How the runs on a task ended, up to the record ``row``: the count of each status, and the devices."""

    row: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    authors: set[bytes] = field(default_factory=set)


@dataclass(slots=True)
class Chain:
    """The times of a device's records up to the number ``seq``.

    ``latest_ms`` is the latest. ``dated_back`` has the numbers of records that name an earlier time than a record
    before them, each with the latest time before it.
    """

    seq: int = 0
    latest_ms: int = 0
    dated_back: dict[int, int] = field(default_factory=dict)

    def extend(self, places: Iterable[tuple[int, int]]) -> None:
        """Add further numbers and times, in order."""
        for seq, time_ms in places:
            if time_ms < self.latest_ms:
                self.dated_back[seq] = self.latest_ms
            self.seq, self.latest_ms = seq, max(self.latest_ms, time_ms)


@dataclass(slots=True)
class Cache:
    """Results for a log at ``revision``, under ``trust``; ``known`` by name, ``answers`` by question.

    ``kept`` are those that only some records change, by name; ``users`` has the names by what they were computed from.
    ``discoveries`` are those up to the record ``discovered``; ``endings`` are by task, ``chains`` by device. ``newest``
    has the newest runs by task, up to a record. ``unsettled`` are those whose rows were
    looked for in vain. ``grown`` are results that records only add to, up to a record.
    """

    roster: Roster
    trust: Trust
    revision: Revision
    reports: dict[bytes, list[tuple[Record, Report]]] = field(default_factory=dict)
    judgements: dict[bytes, Judgement] = field(default_factory=dict)
    unsettled: set[bytes] = field(default_factory=set)
    frauds: list[FraudRow] = field(default_factory=list)
    checkpoints: Alike = field(default_factory=dict)
    discoveries: Alike = field(default_factory=dict)
    discovered: int = 0
    endings: dict[bytes, Endings] = field(default_factory=dict)
    chains: dict[bytes, Chain] = field(default_factory=dict)
    heard: set[bytes] | None = None
    devices: set[bytes] | None = None
    newest: dict[bytes, tuple[int, list[tuple[int, bytes, bytes]]]] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    kept: dict[Hashable, object] = field(default_factory=dict)
    users: dict[Hashable, set[Hashable]] = field(default_factory=dict)
    answers: dict[Hashable, object] = field(default_factory=dict)
    grown: dict[Hashable, tuple[int, object]] = field(default_factory=dict)

    def forget(self, kinds: set[str], said: Said | None = None) -> None:
        """Forget what depends on records of these kinds and on what is said of runs.

        Without that everything that is no list of records.
        """
        self.known = {} if said is None else {name: one for name, one in self.known.items() if one.outlasts(kinds)}
        runs = said.runs | said.parents | said.children if said else set()
        if said is None:
            self.heard = None
            self.newest.clear()
            self.drop_all()
        elif self.heard is not None:
            self.heard |= said.runs | said.parents
        self.unsettled.clear()
        for kept in (self.reports, self.judgements):
            if said is None or len(kept) > CACHED_MAX:
                kept.clear()
            for run in runs:
                kept.pop(run, None)

    def drop(self, changed: Iterable[Hashable]) -> None:
        """Forget the results that were computed from any of these, and those that were computed from such results."""
        waiting = list(changed)
        while waiting:
            for name in self.users.pop(waiting.pop(), ()):
                if name in self.kept:
                    del self.kept[name]
                    waiting.append(name)

    def drop_all(self) -> None:
        """Forget all results by what they were computed from."""
        self.kept.clear()
        self.users.clear()
        self.grown.clear()


_caches: WeakKeyDictionary[Log, Cache] = WeakKeyDictionary()


def cache_of(log: Log) -> Cache:
    """The cache of a log, without the results that new records or another trust list have changed."""
    trust, revision, cache = log.trust, log.reader.revision(), _caches.get(log)
    if cache is not None and cache.revision == revision and (cache.trust is trust or cache.trust == trust):
        return cache
    with log.reader.snapshot() as revision:
        cache = _caches.get(log)
        if cache is None or cache.trust != trust or _is_another(cache.revision, revision):
            cache = _caches[log] = Cache(_roster(log, trust), trust, revision)
            _gather(log, cache, 0)
        elif cache.revision != revision:
            _refresh(log, cache, revision)
        return cache


def cached(log: Log, name: str, compute: Callable[[], Found], *, by: Collection[str] | None = None) -> Found:
    """A result by name: from the cache, else computed in a snapshot, so that new records are no part of it.

    ``by`` names the kinds of records that may change it, besides ``ABOUT_ALL``, which change everything; None: all do.
    """
    with log.reader.snapshot():
        cache = cache_of(log)
        if name not in cache.known:
            found = compute()
            cache.known[name] = Known(found, None if by is None else frozenset(by))
        return cast("Found", cache.known[name].value)


def kept(log: Log, name: Hashable, compute: Callable[[], tuple[Found, Iterable[Hashable]]]) -> Found:
    """A result by name, until a record changes what it was computed from.

    ``compute`` gives the result and its sources. These are the ids of runs (others verified or named them), source
    digests (somebody ran the program), digests of tasks (others verified a run on it), and the names of other results.
    """
    with log.reader.snapshot():
        cache = cache_of(log)
        if name not in cache.kept:
            found, sources = compute()
            if len(cache.kept) >= CACHED_MAX:
                cache.drop_all()
            cache.kept[name] = found
            for source in sources:
                cache.users.setdefault(source, set()).add(name)
        return cast("Found", cache.kept[name])


def grown(log: Log, name: Hashable, grow: Callable[[Found | None, int], Found]) -> Found:
    """A result by name that new records only add to.

    ``grow`` gets the result so far and the number of the last record that it knows: None and 0 at first, and after
    records that change everything.
    """
    with log.reader.snapshot():
        cache = cache_of(log)
        row, found = cache.grown.get(name, (0, None))
        if found is None or row < cache.revision.row:
            found = grow(cast("Found | None", found), row)
            cache.grown[name] = cache.revision.row, found
        return cast("Found", found)


def in_snapshot(question: Callable[Concatenate[Log, P], Found]) -> Callable[Concatenate[Log, P], Found]:
    """A question about a log, its first argument: all that it reads is of one revision."""

    @wraps(question)
    def ask(log: Log, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        with log.reader.snapshot():
            return question(log, *args, **kwargs)

    return ask


def kept_answer(question: Callable[Concatenate[Log, P], Found]) -> Callable[Concatenate[Log, P], Found]:
    """A question whose answer is kept until any record comes."""

    @wraps(question)
    def ask(log: Log, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        with log.reader.snapshot():
            answers, asked = cache_of(log).answers, (question.__qualname__, args, tuple(sorted(kwargs.items())))
            if asked not in answers:
                found = question(log, *args, **kwargs)
                if len(answers) >= ANSWERS_MAX:
                    answers.clear()
                answers[asked] = found
            return cast("Found", answers[asked])

    return ask


def roster_of(log: Log) -> Roster:
    """The roster of a log: the participant behind each device, under the network's trust."""
    return cache_of(log).roster


def checkpoints_of(log: Log) -> Alike:
    """Groups of runs with one checkpoint, the oldest run first. What has ``CHECKPOINTS`` as a source is of them."""
    return cache_of(log).checkpoints


def discoveries_of(log: Log) -> Alike:
    """Groups of runs with one program. Computed on demand, since it takes the longest.

    What has ``DISCOVERIES`` as a source is of them: ask for the groups before it.
    """
    with log.reader.snapshot():
        cache = cache_of(log)
        if cache.discovered < cache.revision.row:
            came = log.evidence.same_discoveries(after=cache.discovered)
            cache.discovered = cache.revision.row
            cache.discoveries |= came
            cache.drop([DISCOVERIES] if came else [])
        return cache.discoveries


def devices_of(log: Log) -> Collection[bytes]:
    """The keys that signed records."""
    with log.reader.snapshot():
        cache = cache_of(log)
        if cache.devices is None:
            cache.devices = set(log.devices.all())
        return cache.devices


def verified(log: Log) -> Collection[bytes]:
    """All runs of which others' verifications may say something: those that somebody verified, and their kin."""
    with log.reader.snapshot():
        cache = cache_of(log)
        if cache.heard is None:
            cache.heard = set(log.verifications.verified_and_parents())
        return cache.heard


def _is_another(before: Revision, now: Revision) -> bool:
    """Whether records were removed since then, or undone, and not only added."""
    return before[1:] != now[1:] or before.row > now.row


def endings_of(log: Log, task: bytes) -> tuple[dict[str, int], int]:
    """The count of runs on a task by status, and the number of devices that published them."""
    with log.reader.snapshot():
        cache = cache_of(log)
        known = cache.endings.setdefault(task, Endings())
        row = cache.revision.row
        if known.row < row:
            for status, author, count in log.runs.endings(task, known.row, row):
                known.statuses[status] += count
                known.authors.add(author)
            known.row = row
        return dict(known.statuses), len(known.authors)


def signed_ms(log: Log, device: bytes, seq: int, time_ms: int) -> int:
    """The earliest time at which a device can have signed a record: a record before it may name a later time."""
    with log.reader.snapshot():
        cache = cache_of(log)
        chain = cache.chains.setdefault(device, Chain())
        if chain.seq < seq:
            chain.extend(log.devices.times(device, chain.seq))
        return max(time_ms, chain.dated_back.get(seq, 0))


def _refresh(log: Log, cache: Cache, revision: Revision) -> None:
    before = cache.revision.row
    kinds = log.changes.kinds_after(before)
    frauds = len(cache.frauds)
    if "withdrawal" in kinds:
        cache.frauds, cache.checkpoints, cache.discoveries, cache.discovered = [], {}, {}, 0
        cache.endings = {}
        _gather(log, cache, 0)
    else:  # any new record may be the parent that a run names
        _gather(log, cache, before)
    if kinds.intersection(ABOUT_PEOPLE):
        cache.roster = _roster(log, cache.trust)
    places = log.changes.places_after(before)
    if kinds & ABOUT_ALL or len(cache.frauds) != frauds:
        cache.forget(kinds)
    else:
        said = log.changes.said_after(before)
        cache.forget(kinds, said)
        ran, claimed = log.changes.programs_after(before)
        named = set[Hashable]().union(*said, log.changes.named_after(before), ran)
        cache.drop(named | {("claim", digest) for digest in claimed})
    late = [device for device, seq in places if device in cache.chains and seq <= cache.chains[device].seq]
    for device in late:
        del cache.chains[device]
    if late or log.devices.has_forked([device for device, _ in places]):
        cache.known.clear()  # what a device's order says may change
        cache.drop_all()
    if cache.devices is not None and not cache.devices.issuperset(device for device, _ in places):
        cache.devices.update(device for device, _ in places)
        cache.known.pop("keys", None)
    cache.answers.clear()
    cache.revision = revision


def _gather(log: Log, cache: Cache, after: int) -> None:
    """Collect frauds and equal checkpoints among the records stored after a number."""
    known = {fraud.id for fraud in cache.frauds}  # one record may prove it twice
    cache.frauds += [fraud for fraud in log.evidence.frauds(after=after) if fraud.id not in known]
    came = log.evidence.same_checkpoints(after=after)
    cache.checkpoints |= came
    cache.drop([CHECKPOINTS] if came else [])


def _roster(log: Log, trust: Trust) -> Roster:
    return Roster(log.records.of_kinds(ABOUT_PEOPLE), trust, domain_voices=log.network.domain_voices)
