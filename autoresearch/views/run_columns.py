"""What the records of a task's runs say, as columns in order of time, then id. They are extended, never changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from autoresearch.log import RunColumns
from autoresearch.words import RunStatus

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NOBODY = -1
K = TypeVar("K")


def _no_ints() -> Ints:
    return np.zeros(0, np.int64)


def _no_floats() -> Floats:
    return np.zeros(0, float)


def _order(run: RunColumns) -> tuple[int, bytes]:
    return run.time, run.id


class Codes(dict[K, int], Generic[K]):
    """Numbers for few different things, in the order in which they came."""

    def __missing__(self, key: K) -> int:
        self[key] = len(self)
        return self[key]


@dataclass(frozen=True, slots=True)
class Columns:
    """The runs of a task. ``parent`` is a place in these columns, NOBODY where it is not here; ``named``: it has one.

    ``author``, ``person`` and ``device`` are numbers of signing keys, root keys and kinds of hardware in ``authors``,
    ``people`` and ``devices``. ``reported`` is NaN where a run has no value.
    """

    runs: list[RunColumns] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    index: dict[bytes, int] = field(default_factory=dict)
    authors: Codes[bytes] = field(default_factory=Codes[bytes])
    people: Codes[bytes] = field(default_factory=Codes[bytes])
    devices: Codes[str] = field(default_factory=Codes[str])
    n: Ints = field(default_factory=_no_ints)
    seq: Ints = field(default_factory=_no_ints)
    time: Ints = field(default_factory=_no_ints)
    cpu: Ints = field(default_factory=_no_ints)
    author: Ints = field(default_factory=_no_ints)
    person: Ints = field(default_factory=_no_ints)
    device: Ints = field(default_factory=_no_ints)
    parent: Ints = field(default_factory=_no_ints)
    named: Ints = field(default_factory=_no_ints)
    failed: Ints = field(default_factory=_no_ints)
    budget: Floats = field(default_factory=_no_floats)
    reported: Floats = field(default_factory=_no_floats)

    def extended(self, came: Iterable[RunColumns], root: Callable[[bytes, int], bytes]) -> Columns:
        """These and others. ``root`` gives the root key of a device at a time.

        What is older than the oldest that came stays as it is, so that new runs cost little.
        """
        new = sorted(came, key=_order)
        if not new:
            return self
        first = bisect_left(self.runs, _order(new[0]), key=_order)
        tail = sorted([*self.runs[first:], *new], key=_order)
        ids = [*self.ids[:first], *(run.id for run in tail)]
        index = dict(self.index)
        index.update(zip(ids[first:], range(first, len(ids)), strict=True))
        named = np.concatenate([self.named[:first], _ints(run.parent is not None for run in tail)])
        runs = [*self.runs[:first], *tail]
        parent = np.concatenate([self.parent[:first], _ints(_place(index, run) for run in tail)])
        above = parent[:first]
        for at in np.flatnonzero((above >= first) | ((above == NOBODY) & (named[:first] == 1))).tolist():
            parent[at] = _place(index, runs[at])
        authors, people, devices = self.authors, self.people, self.devices
        return Columns(
            runs=runs,
            ids=ids,
            index=index,
            authors=authors,
            people=people,
            devices=devices,
            n=np.concatenate([self.n[:first], _ints(run.n for run in tail)]),
            seq=np.concatenate([self.seq[:first], _ints(run.seq for run in tail)]),
            time=np.concatenate([self.time[:first], _ints(run.time for run in tail)]),
            cpu=np.concatenate([self.cpu[:first], _ints(run.cpu_ms for run in tail)]),
            author=np.concatenate([self.author[:first], _ints(authors[run.author] for run in tail)]),
            person=np.concatenate([self.person[:first], _ints(people[root(run.author, run.time)] for run in tail)]),
            device=np.concatenate([self.device[:first], _ints(devices[run.device] for run in tail)]),
            parent=parent,
            named=named,
            failed=np.concatenate([self.failed[:first], _ints(run.status != RunStatus.OK for run in tail)]),
            budget=np.concatenate([self.budget[:first], np.array([run.budget for run in tail], float)]),
            reported=np.concatenate([self.reported[:first], np.array([_value(run) for run in tail], float)]),
        )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _place(index: dict[bytes, int], run: RunColumns) -> int:
    return index.get(run.parent, NOBODY) if run.parent else NOBODY


def _value(run: RunColumns) -> float:
    return run.value if run.value is not None and run.status == RunStatus.OK else np.nan
