"""What the changes of each proposer brought this device: its newest runs on a task, against their parents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from autoresearch.direction import sign_of
from autoresearch.log import Log
from autoresearch.proposers import Brought
from autoresearch.records import Run
from autoresearch.tasks import Task
from autoresearch_daemon.minds.ledger import Ledger

# Older runs say little about what a proposer brings now.
RUNS_READ = 500


def family(proposer: str) -> str:
    """The proposer of a run's record without the model or the program behind it: “llm” of “llm/some-model”."""
    return proposer.partition("/")[0]


def brought_by(log: Log, ledger: Ledger, task: Task, me: bytes, proposers: Iterable[str]) -> dict[str, Brought]:
    """What each of some proposers brought this device on a task, and what that cost in computing and in money."""
    runs = [stored.record for stored in log.runs.newest(task.digest, limit=RUNS_READ, author=me)]
    bodies = [record.body for record in runs if isinstance(record.body, Run)]
    parents = {row.id: row.value for row in log.runs.history_of({body.parent for body in bodies if body.parent})}
    found = _sums(bodies, parents, task)
    since_ms = min((record.time for record in runs), default=0)
    return {
        name: _with_money(found.get(name, Brought()), ledger.spent(name, since_ms=since_ms).cost) for name in proposers
    }


def _sums(bodies: Iterable[Run], parents: Mapping[bytes, float | None], task: Task) -> dict[str, Brought]:
    sums: dict[str, Brought] = defaultdict(Brought)
    for body in bodies:
        before = sums[name := family(body.proposer.name if body.proposer else "")]
        gain = _gain(body, parents, task)
        sums[name] = Brought(
            runs=before.runs + 1,
            better=before.better + (gain > 0),
            gain=before.gain + gain,
            seconds=before.seconds + body.duration_ms / 1000,
        )
    return sums


def _gain(body: Run, parents: Mapping[bytes, float | None], task: Task) -> float:
    """How much better than its parent a run is, beyond the noise of one seed; 0 where it is not."""
    before = parents.get(body.parent) if body.parent else None
    if body.value is None or before is None:
        return 0.0
    return max(0.0, sign_of(task.metric.direction) * (before - body.value) - (task.metric.noise or 0.0))


def _with_money(brought: Brought, money: float) -> Brought:
    return Brought(brought.runs, brought.better, brought.gain, brought.seconds, money)
