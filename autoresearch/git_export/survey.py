"""What one snapshot of a log says of a task's runs, as far as an export needs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from autoresearch.api import ParticipantView
from autoresearch.git_export.notes import note
from autoresearch.log import Log, SignedRun
from autoresearch.records import Run
from autoresearch.verification import margin
from autoresearch.views import buildable, judge_soon, judging, participant_of, trust_context

# So many of the best programs may have a branch.
BEST = 10


class Survey(NamedTuple):
    """All runs of a task by id, the oldest first, each with the text of its note.

    ``parents`` has those without a commit, each with its parent run, or None where the task itself comes before it.
    ``best`` are the best runs, the best first. ``people`` are the participants behind devices.
    """

    notes: Mapping[bytes, str]
    parents: Mapping[bytes, bytes | None]
    best: Sequence[bytes]
    people: Mapping[bytes, ParticipantView]


def survey(log: Log, task: bytes, done: Collection[bytes], me: bytes | None) -> Survey:
    """Read a task's runs; ``done`` have a commit already, ``me`` is the device that asks."""
    with log.reader.snapshot():
        runs = {run.id: run for run in log.runs.signed(task)}
        people = {(run.author, run.time): participant_of(log, run.author, run.time) for run in runs.values()}
        best = islice(buildable(log, task, trust_context(log, me)), BEST)
        return Survey(
            notes=_notes(log, task, runs, people),
            parents={run: _parent(log, run, runs) for run in runs if run not in done},
            best=[placed.row.first for placed in best],
            people={device: who for (device, _), who in people.items()},
        )


def ancestors(log: Log, run: bytes | None) -> list[bytes]:
    """A run and the runs before it that are in the log, the newest first."""
    found: list[bytes] = []
    while run is not None and (record := log.records.find(run)) and isinstance(record.body, Run):
        found.append(run)
        run = record.body.parent
    return found


def _parent(log: Log, run: bytes, runs: Mapping[bytes, SignedRun]) -> bytes | None:
    """The parent run; None also for a parent that is known and no run on this task: it will never be one."""
    body = log.records.get(run).body
    assert isinstance(body, Run)
    is_other = body.parent not in runs and body.parent is not None and bool(log.records.has([body.parent]))
    return None if is_other else body.parent


def _notes(
    log: Log,
    task: bytes,
    runs: Mapping[bytes, SignedRun],
    people: Mapping[tuple[bytes, int], ParticipantView],
) -> dict[bytes, str]:
    judge_soon(log, runs)
    judged, rules = judging(log), log.tasks.rules(task)
    noise = rules.noise if rules else 0.0
    texts = {}
    for run in runs.values():
        found = judged(run.id, run.author, run.time, run.seq)
        error = margin(found.error, found.runs, noise=noise)
        texts[run.id] = note(found, error, people[run.author, run.time], withdrawn=run.withdrawn)
    return texts
