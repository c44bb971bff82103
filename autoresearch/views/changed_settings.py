"""Which runs of a task changed which setting: their genome differs from their parent's there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import msgspec

from autoresearch.log import HistoryRow, Log
from autoresearch.proposers import Value
from autoresearch.views.cache import grown

_genome = msgspec.json.Decoder(dict[str, Value])


@dataclass(slots=True)
class _Changes:
    """The runs by what they changed, and the runs whose parent is not here yet, by that."""

    runs: defaultdict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def runs_that_change(log: Log, task: bytes, setting: str) -> frozenset[bytes]:
    """The runs of a task that differ from their parent in a setting, or in a part with or without its plus sign."""
    found = grown(log, ("changed settings", task), lambda known, row: _grown(log, task, known or _Changes(), row))
    return frozenset(found.runs.get(setting, set()) | found.runs.get(f"+{setting}", set()))


def _grown(log: Log, task: bytes, known: _Changes, row: int) -> _Changes:
    came = log.runs.history_after(task, row) if row else log.runs.history(task)
    here = {run.id: run for run in came}
    children = [*came, *log.runs.history_of([child for run in here for child in known.waiting.pop(run, ())])]
    missing = {run.parent for run in children if run.parent} - here.keys()
    parents = here | {run.id: run for run in log.runs.history_of(missing)}
    decoded: dict[bytes, dict[str, Value]] = {}

    def genome(run: HistoryRow) -> dict[str, Value]:
        if run.id not in decoded:
            decoded[run.id] = _genome.decode(run.genome)
        return decoded[run.id]

    for run in children:
        if run.parent is None:
            continue
        if run.parent not in parents:
            known.waiting[run.parent].append(run.id)
            continue
        old, new = genome(parents[run.parent]), genome(run)
        for name in old.keys() | new.keys():
            if old.get(name) != new.get(name):
                known.runs[name].add(run.id)
    return known
