"""What a run may cost: the sandbox's measured processor time, beside what the baseline costs on the same machine.

What a program reports of its own work is never the bound: it can train where nobody counts. On the CPU the cost is the
processor time of all processes and threads of the run. Where the budget is wall-clock time, and on a graphics card,
whose time no supervisor sees, it is the time from start to end.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import replace
from pathlib import Path

from autoresearch.research.bench import Bench, device_name
from autoresearch.running import Limits, Outcome
from autoresearch.tasks import Task
from autoresearch.words import RunStatus

# A run may cost so many times what the baseline costs for the same budget on the same machine: honest programs differ
# in speed by less (benchmarks allowance).
ALLOWANCE = 1.6
# And so much more, for what start and imports cost: short runs differ by that.
SPARE_MS = 2000
# At so many times the allowance a run is stopped. Below, the baseline is measured once more before a run is judged:
# a busy machine makes all programs slower.
STOPPED_AT = 2.0


def cost_ms(task: Task, bench: Bench, outcome: Outcome) -> int:
    """What a run cost, in milliseconds of processor time or of wall-clock time."""
    return outcome.duration_ms if _is_by_clock(task, bench) else outcome.cpu_ms


def known_cost_ms(task: Task, bench: Bench, budget: float) -> int | None:
    """What the baseline cost here when it was last measured with this budget, or None."""
    try:
        return max(int(_file(task, bench, budget).read_text()), 1)
    except (OSError, ValueError):
        return None


def remember_cost(task: Task, bench: Bench, budget: float, outcome: Outcome) -> int:
    """Note what the baseline cost here, and return it."""
    file, cost = _file(task, bench, budget), max(cost_ms(task, bench, outcome), 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(str(cost))
    temporary.replace(file)
    return cost


def bounded(limits: Limits, task: Task, bench: Bench, baseline_ms: int) -> Limits:
    """The limits of a run, with the cost at which it is stopped."""
    seconds = STOPPED_AT * _most_ms(baseline_ms) / 1000
    if _is_by_clock(task, bench):
        return replace(limits, seconds=min(limits.seconds, seconds))
    return replace(limits, processor_seconds=seconds)


def is_over(task: Task, bench: Bench, outcome: Outcome, baseline_ms: int) -> bool:
    """Whether a run cost more than it may."""
    return cost_ms(task, bench, outcome) > _most_ms(baseline_ms)


def over_budget(task: Task, bench: Bench, outcome: Outcome, baseline_ms: int) -> Outcome:
    """The outcome of a run that cost too much."""
    cost = cost_ms(task, bench, outcome)
    kind = "wall-clock" if _is_by_clock(task, bench) else "processor"
    reason = (
        f"it took {cost / 1000:.1f} s of {kind} time; the baseline takes {baseline_ms / 1000:.1f} s here for the same "
        f"budget, and {_most_ms(baseline_ms) / 1000:.1f} s are allowed"
    )
    return replace(outcome, status=RunStatus.OVER_BUDGET, reason=reason, value=None)


def _most_ms(baseline_ms: int) -> float:
    return ALLOWANCE * baseline_ms + SPARE_MS


def _is_by_clock(task: Task, bench: Bench) -> bool:
    return task.budget.unit == "seconds" or bench.device != "cpu"


def _file(task: Task, bench: Bench, budget: float) -> Path:
    where = (device_name(bench.device), bench.device, bench.threads, int(bench.level), math.frexp(budget))
    return bench.data_cache / "costs" / f"{task.digest.hex()}-{hashlib.sha256(repr(where).encode()).hexdigest()[:16]}"
