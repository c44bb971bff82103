"""Which runs of a task changed which setting or part against their parent. Kept, and extended as runs come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from autoresearch.log import Log
from autoresearch.views.cache import grown

_genome = msgspec.json.Decoder(dict[str, int | float | str | bool])


@dataclass(slots=True)
class _Changed:
    """The runs by what they changed, and the runs whose parent is not here yet, by that."""

    by_name: defaultdict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def runs_changing(log: Log, task: bytes, name: str) -> Collection[bytes]:
    """The runs that differ from their parent in a constant or a part; a part with or without its plus sign."""
    found = grown(log, ("changed", task), lambda known, row: _grown(log, task, known or _Changed(), row))
    return {run for each in {name, f"+{name}"} for run in found.by_name.get(each, ())}


def _grown(log: Log, task: bytes, known: _Changed, row: int) -> _Changed:
    came = {run.id: run for run in (log.runs.history_after(task, row) if row else log.runs.history(task))}
    late = [child for run in came for child in known.waiting.pop(run, ())]
    children = [*came.values(), *log.runs.history_of(late)]
    above = {run.id: run for run in log.runs.history_of({one.parent for one in children if one.parent} - came.keys())}
    for child in children:
        if child.parent is None:
            continue
        parent = came.get(child.parent) or above.get(child.parent)
        if parent is None:
            known.waiting[child.parent].append(child.id)
        elif parent.genome != child.genome:
            old, new = _genome.decode(parent.genome), _genome.decode(child.genome)
            for name in {**old, **new}:
                if old.get(name) != new.get(name):
                    known.by_name[name].append(child.id)
    return known
