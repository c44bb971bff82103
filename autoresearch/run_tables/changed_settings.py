"""Which runs of a task changed which setting: their genome differs from their parent's there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from autoresearch.log import HistoryRow, Log
from autoresearch.proposers import Value
from autoresearch.views import grown

_genome = msgspec.json.Decoder(dict[str, Value])


@dataclass(slots=True)
class _Changes:
    """The runs by what they changed, and the runs whose parent is not here yet, by that."""

    runs: defaultdict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def runs_that_change(
    log: Log, task: bytes, setting: str, *, baseline: bytes | None, default: Mapping[str, Value]
) -> frozenset[bytes]:
    """The runs of a task that differ from their parent in a setting, or in a part with or without its plus sign.

    A run without a genome changes nothing, unless its program is the ``baseline``: that has the ``default`` one.
    """
    runs = _changes(log, task, baseline, default).runs
    return frozenset(runs.get(setting, set()) | runs.get(f"+{setting}", set()))


def changed_settings(log: Log, task: bytes, *, baseline: bytes | None, default: Mapping[str, Value]) -> list[str]:
    """The settings and parts that runs of a task changed, by name."""
    return sorted(name for name, runs in _changes(log, task, baseline, default).runs.items() if runs)


def _changes(log: Log, task: bytes, baseline: bytes | None, default: Mapping[str, Value]) -> _Changes:
    def genome(run: HistoryRow) -> Mapping[str, Value]:
        return _genome.decode(run.genome) or (default if run.source_digest == baseline else {})

    name = "changed settings", task, bool(default)
    return grown(log, name, lambda known, row: _grown(log, task, known or _Changes(), row, genome))


def _grown(
    log: Log, task: bytes, known: _Changes, row: int, genome: Callable[[HistoryRow], Mapping[str, Value]]
) -> _Changes:
    came = log.runs.history_after(task, row) if row else log.runs.history(task)
    here = {run.id: run for run in came}
    children = [*came, *log.runs.history_of([child for run in here for child in known.waiting.pop(run, ())])]
    missing = {run.parent for run in children if run.parent} - here.keys()
    parents = here | {run.id: run for run in log.runs.history_of(missing)}
    genomes: dict[bytes, Mapping[str, Value]] = {}
    for run in children:
        if run.parent is None:
            continue
        if (above := parents.get(run.parent)) is None:
            known.waiting[run.parent].append(run.id)
            continue
        for one in (above, run):
            if one.id not in genomes:
                genomes[one.id] = genome(one)
        old, new = genomes[above.id], genomes[run.id]
        if not old or not new or above.base != run.base:
            continue
        for setting in old.keys() | new.keys():
            if old.get(setting) != new.get(setting):
                known.runs[setting].add(run.id)
    return known
