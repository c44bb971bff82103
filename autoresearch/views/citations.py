"""What became of the runs that cite a note: how many were better than their parent run, and how many were not."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from autoresearch.bounds import NOTE_EVIDENCE
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import HistoryRow, Log
from autoresearch.records import SHORT, Run
from autoresearch.views.base_selection import DOUBTED
from autoresearch.views.cache import in_snapshot
from autoresearch.views.trust_context import TrustContext, whose
from autoresearch.views.verification_state import UPHELD, judge_soon, judging
from autoresearch.words import STOPPED, RunStatus

# Of one note so many runs are looked at: ids are hashes, so that these are as good as drawn at random.
CITING_MOST = 100
_ID = re.compile(rf"\b[a-z2-7]{{{SHORT},59}}\b")


class Citations(NamedTuple):
    """How many of the runs that cite a note were better than their parent run, and how many failed or were not."""

    better: int = 0
    worse: int = 0


@in_snapshot
def citations(
    log: Log, task: bytes, notes: Collection[bytes], here: TrustContext, *, me: bytes | None = None
) -> dict[bytes, Citations]:
    """What became of the runs that cite these notes; a note that no run cites is left out.

    Runs of unattested participants do not count where trust names anybody, nor those with another than the task's
    full budget. Of a run that repeats its parent's program only the failure counts.
    """
    rules = log.tasks.rules(task)
    if rules is None:
        return {}
    citing = {note: list(islice(log.mentions.runs_that_link(note), CITING_MOST)) for note in notes}
    found = {row.id: row for row in log.runs.history_of({run for runs in citing.values() for run in runs})}
    heard = {
        run: row
        for run, row in found.items()
        if row.budget == rules.budget and row.status not in STOPPED and is_heard(row.author, row.time, here, me)
    }
    parents = {row.id: row for row in log.runs.history_of({row.parent for row in heard.values() if row.parent})}
    judge_soon(log, [*heard, *parents])
    told = {run: _is_better(log, row, parents.get(row.parent or b""), rules.sign) for run, row in heard.items()}
    counted = {note: [told[run] for run in runs if told.get(run) is not None] for note, runs in citing.items()}
    cited = {note for note, runs in citing.items() if any(run in heard for run in runs)}
    return {note: Citations(told.count(True), told.count(False)) for note, told in counted.items() if note in cited}


def is_heard(author: bytes, time_ms: int, here: TrustContext, me: bytes | None) -> bool:
    """Whether what an author wrote comes before that of strangers: an attested participant's, or one's own."""
    return author == me or any(whose(author, time_ms, here))


def _is_better(log: Log, row: HistoryRow, parent: HistoryRow | None, sign: float) -> bool | None:
    """Whether a run was better than its parent; None where that cannot be said."""
    if row.status != RunStatus.OK:
        return False
    if parent is None or parent.source_digest == row.source_digest:
        return None
    after, before = _value(log, row), _value(log, parent)
    if after is None or before is None:
        return None
    return sign * (after - before) < 0


def _value(log: Log, row: HistoryRow) -> float | None:
    """What others measured where the run is upheld, else what it reports; None where it is in doubt."""
    found = judging(log)(row.id, row.author, row.time, row.seq)
    if found.state in UPHELD and found.value is not None:
        return found.value
    return None if found.state in DOUBTED or row.forked else row.value


def runs_named_in(log: Log, task: bytes, text: str) -> tuple[bytes, ...]:
    """The runs on a task that a text names by their ids, or by beginnings of ids of eight characters and more."""
    found: dict[bytes, None] = {}
    for word in dict.fromkeys(_ID.findall(text)):
        try:
            record = log.records.get(log.records.resolve(word))
        except (NotFound, AmbiguousId, UsageError):
            continue
        if isinstance(record.body, Run) and record.body.task == task:
            found[record.id] = None
    return tuple(found)[:NOTE_EVIDENCE]
