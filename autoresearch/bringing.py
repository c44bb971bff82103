"""A participant's own finished runs of one network, published anew in another: signed there, each naming its origin.

Values are taken as they were reported: the other network verifies them like any others. A run that is there already is
left alone, so that this may be done again, also after it was killed in the middle. A program that another participant
ran there with the same seed is left out too: published a second time it would look like a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from graphlib import TopologicalSorter

import msgspec

from autoresearch.errors import UsageError
from autoresearch.home_networks import HomeNetwork
from autoresearch.log import BlobStore, HistoryRow, Log
from autoresearch.notebook import Notebook
from autoresearch.records import BlobRef, Record, Run, Task
from autoresearch.views import own_keys
from autoresearch.words import RunStatus

_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Brought:
    """How many runs were published now, and how many are still to come.

    ``skipped`` were left out because their program is not on this machine, ``repeated`` because another participant has
    run it in the other network.
    """

    brought: int
    skipped: int
    repeated: int
    left: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The runs that another network lacks, parents first, and how many more are there as ``repeated`` by others."""

    runs: list[Record]
    repeated: int


def runs_to_bring(source: Log, there: Log, device: bytes, now_ms: int) -> Waiting:
    """The finished runs of a device's participant that are not in another network yet. Reads only."""
    own = _own(source, there, device, now_ms)
    known = {origin for author in own for origin in _published(there, author)}
    found = [
        stored.record
        for task in dict.fromkeys(row.digest for row in source.tasks.all())
        for author in own
        for stored in source.runs.newest(task, author=author, limit=_ALL)
        if _is_finished(stored.record) and _origin(stored.record) not in known
    ]
    runs = [run for run in found if all(row.author in own for row in _alike(there, run))]
    ordered = _parents_first(sorted(runs, key=lambda run: (run.time, run.seq, run.id)))
    return Waiting(ordered, len(found) - len(runs))


def bring(origin: HomeNetwork, notebook: Notebook, now_ms: Callable[[], int], *, most: int) -> Brought:
    """Publish up to so many own runs of another network of this home. ``now_ms`` is the clock, Unix milliseconds.

    Raises:
        Refused: no root key speaks for this device there; or the day's quota is used up, or nothing can be written.
            What was published until then stays.
    """
    network = origin.manifest.network
    with ExitStack() as opened:
        log = opened.enter_context(Log.open(origin.paths.log, network, read_only=True))
        blobs = opened.enter_context(BlobStore(origin.paths.blobs, read_only=True))
        waiting = runs_to_bring(log, notebook.log, notebook.author, now_ms())
        moving = _Moving(log, blobs, notebook, _own(log, notebook.log, notebook.author, now_ms()))
        brought = skipped = 0
        if waiting.runs:
            notebook.speak_for_root(now_ms())
        for record in waiting.runs:
            if brought == most:
                break
            if moving.take(record, now_ms()):
                brought += 1
            else:
                skipped += 1
    return Brought(brought, skipped, waiting.repeated, len(waiting.runs) - brought - skipped)


class _Moving:
    """From one network's log and blobs to the notebook of another."""

    def __init__(self, log: Log, blobs: BlobStore, notebook: Notebook, own: frozenset[bytes]) -> None:
        self._log = log
        self._blobs = blobs
        self._notebook = notebook
        self._own = own
        self._there: dict[bytes, dict[bytes, bytes]] = {}

    def take(self, record: Record, now_ms: int) -> bool:
        """Publish one run with what it needs; whether its program is here and it fits into a record."""
        run = record.body
        assert isinstance(run, Run)
        if not self._copy(run.source) or not self._take_task(run.task, now_ms):
            return False
        again = msgspec.structs.replace(
            run,
            parent=self._parent(run.parent),
            log=run.log if run.log and self._copy(run.log) else None,
            checkpoint=run.checkpoint if run.checkpoint and self._copy(run.checkpoint) else None,
            origin=_origin(record),
        )
        try:
            published = self._notebook.publish_run_body(again, now_ms)
        except UsageError:  # with the id of its origin it is larger than a record of that network
            return False
        self._of(published.author)[_origin(record)] = published.id
        return True

    def _take_task(self, digest: bytes, now_ms: int) -> bool:
        """Have the task published there; whether it is."""
        if self._notebook.log.tasks.find(digest) is not None:
            return True
        row = self._log.tasks.find(digest)
        task = self._log.records.get(row.id).body if row else None
        files = (task.baseline, *task.harness.values()) if isinstance(task, Task) else ()
        if not isinstance(task, Task) or not all(self._copy(blob) for blob in files):
            return False
        self._notebook.publish_task_body(task, now_ms)
        return True

    def _parent(self, parent: bytes | None) -> bytes | None:
        """The run there that the parent's author published of it; else one of the same program and seed, or none."""
        record = self._log.records.find(parent) if parent else None
        if record is None:
            return None
        origin, authors = _origin(record), self._own if record.author in self._own else {record.author}
        moved = next((self._of(author)[origin] for author in authors if origin in self._of(author)), None)
        return moved or min(((row.time, row.id) for row in _alike(self._notebook.log, record)), default=(0, None))[1]

    def _of(self, author: bytes) -> dict[bytes, bytes]:
        if author not in self._there:
            self._there[author] = _published(self._notebook.log, author)
        return self._there[author]

    def _copy(self, blob: BlobRef) -> bool:
        """Have a blob there; whether it is here at all."""
        if self._notebook.blobs.has(blob.sha256):
            return True
        if not self._blobs.has(blob.sha256):
            return False
        with self._blobs.open(blob.sha256) as file:
            self._notebook.blobs.put_stream(iter(lambda: file.read(1 << 20), b""))
        return True


def _own(source: Log, there: Log, device: bytes, now_ms: int) -> frozenset[bytes]:
    return own_keys(source, device, now_ms) | own_keys(there, device, now_ms)


def _alike(there: Log, record: Record) -> list[HistoryRow]:
    """The finished runs there of the same program with the same seed."""
    run = record.body
    if not isinstance(run, Run):
        return []
    found = there.runs.of_programs(run.task, [run.source_digest])
    rows = there.runs.history_of([one for _, replicate, _, one, _ in found if replicate == run.replicate])
    return [row for row in rows if row.status == RunStatus.OK]


def _published(log: Log, author: bytes) -> dict[bytes, bytes]:
    """The runs that a device published in this network, withdrawn ones too, by the ids of their origins."""
    return {_origin(run): run.id for run in log.records.newest(kind="run", author=author, limit=_ALL)}


def _origin(run: Record) -> bytes:
    """The first record of a run: what comes from a network to which it was brought is still the same run."""
    return (isinstance(run.body, Run) and run.body.origin) or run.id


def _is_finished(record: Record) -> bool:
    return isinstance(record.body, Run) and record.body.status == RunStatus.OK


def _parents_first(runs: Iterable[Record]) -> list[Record]:
    """The same runs, each after its parent: the times of several devices need not be in that order."""
    by_id = {run.id: run for run in runs}
    order: TopologicalSorter[bytes] = TopologicalSorter()
    for run in by_id.values():
        parent = run.body.parent if isinstance(run.body, Run) else None
        order.add(run.id, *([parent] if parent in by_id and parent else []))
    return [by_id[one] for one in order.static_order()]
