"""What the log says to a question: values tried of the parameters that it names, and texts with its words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

import msgspec

from autoresearch.answers.notes import found_notes, heard_authors, note_view
from autoresearch.answers.task_lookup import FoundTask
from autoresearch.api import AskAnswer, RunFound, TriedParameter, TriedValue
from autoresearch.bounds import QUESTION_CHARACTERS
from autoresearch.direction import sign_of
from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.log import BlobStore, Log, TextKind
from autoresearch.proposers import Value, constants, named_in
from autoresearch.records import Run, format_id
from autoresearch.views import Trial, TrustContext, citations, in_snapshot, is_heard, trials, trust_context
from autoresearch.words import STOPPED, RunStatus

# So many of each are in an answer.
PARAMETERS, VALUES, NOTES, RUNS = 5, 20, 8, 8
# Of so many runs without a list of constants, the newest, the program is read.
PROGRAMS_READ = 100
# Words that many texts have and that say nothing of what is asked for.
_COMMON = """
a about all an and any are as at be been best better by can could did do does each ever failed fails for from gave give
had has have help helped helps how if in is it its kind many most much not of on or our result results run runs should
so some tell than that the their them there these they this to tried try trying us use used value values was we were
what when where which who why will with work worked works worse worst would you
"""
COMMON = frozenset(_COMMON.split())


@in_snapshot
def ask_answer(log: Log, blobs: BlobStore, task: FoundTask, question: str, *, me: bytes | None = None) -> AskAnswer:
    """What is known to a question. Strangers are left out where trust names anybody.

    Raises:
        UsageError: there is no word in the question, or it is too long.
    """
    asked = question.strip()
    if not re.search(r"\w", asked):
        raise UsageError("the question has no word", hint='autoresearch ask "which batch sizes were tried?"')
    if len(asked) > QUESTION_CHARACTERS:
        raise UsageError(
            f"the question has {len(asked)} characters, of {QUESTION_CHARACTERS} at most", hint="ask less at a time"
        )
    here = trust_context(log, me)
    words = " ".join(word for word in re.findall(r"[\w.+-]+", asked) if word.strip(".").casefold() not in COMMON)
    notes = found_notes(log, task, words, here, me=me, limit=NOTES, every=False, strangers=False)
    cited = citations(log, task.digest, [one.id for one in notes], here, me=me)
    return AskAnswer(
        task=task.name,
        question=asked,
        parameters=_parameters(log, blobs, task, asked, here, me),
        notes=[note_view(log, log.records.get(one.id), cited.get(one.id)) for one in notes],
        runs=_runs(log, task, "worked", words, here, me),
        failures=_runs(log, task, "failed", words, here, me),
    )


def _runs(
    log: Log, task: FoundTask, kind: TextKind, words: str, here: TrustContext, me: bytes | None
) -> list[RunFound]:
    """The runs that worked or that failed, by the words of their titles, hypotheses and reasons."""
    found = log.texts.search(task.digest, kind, words, limit=RUNS, authors=heard_authors(here, me), every=False)
    bodies = [(one.id, log.records.get(one.id).body) for one in found if is_heard(one.author, one.time, here, me)]
    return [
        RunFound(
            id=format_id(run),
            title=body.title,
            status=body.status,
            value=body.value,
            hypothesis=body.hypothesis,
            reason=body.reason,
        )
        for run, body in bodies
        if isinstance(body, Run)
    ]


def _parameters(
    log: Log, blobs: BlobStore, task: FoundTask, question: str, here: TrustContext, me: bytes | None
) -> list[TriedParameter]:
    """The values tried of each parameter that a question names, over the runs with the full budget."""
    ended = [
        trial
        for trial in trials(log, task.digest, here, device=me or b"", always=[task.baseline] if task.baseline else [])
        if trial.row.budget == task.budget
        and trial.row.status not in STOPPED
        and is_heard(trial.row.author, trial.row.time, here, me)
    ]
    settings = _settings(log, blobs, ended)
    named = named_in(question, {name for values in settings.values() for name in values})
    sign = sign_of(task.direction)
    return [_tried(name, ended, settings, sign) for name in named[:PARAMETERS]]


def _settings(log: Log, blobs: BlobStore, ended: Sequence[Trial]) -> dict[bytes, dict[str, Value]]:
    """The constants of each run: those of its record, else of the program where that is on this machine."""
    found: dict[bytes, dict[str, Value]] = {}
    left = PROGRAMS_READ
    for trial in sorted(ended, key=lambda trial: (-trial.row.time, trial.row.id)):
        values = msgspec.json.decode(trial.row.genome, type=dict[str, Value])
        if not values and left:
            left -= 1
            values = _constants(log, blobs, trial.row.id)
        found[trial.row.id] = values
    return found


def _constants(log: Log, blobs: BlobStore, run: bytes) -> dict[str, Value]:
    body = log.records.get(run).body
    assert isinstance(body, Run)
    if not blobs.has(body.source.sha256):
        return {}
    try:
        source = blobs.get(body.source.sha256).decode()
    except (AutoresearchError, UnicodeDecodeError):
        return {}
    return {name: constant.value for name, constant in constants(source).items()}


def _tried(name: str, ended: Sequence[Trial], settings: dict[bytes, dict[str, Value]], sign: float) -> TriedParameter:
    by_value: defaultdict[tuple[bool, Value], list[Trial]] = defaultdict(list)
    for trial in ended:
        values = settings[trial.row.id]
        if name in values:  # True is 1 for Python, but not for people
            by_value[isinstance(values[name], bool), values[name]].append(trial)
    tried = [_value(value, runs, sign) for (_, value), runs in by_value.items()]
    ordered = sorted(tried, key=lambda one: (one.best is None, sign * (one.best or 0.0), str(one.value)))
    return TriedParameter(name=name, tried=len(ordered), values=ordered[:VALUES])


def _value(value: Value, runs: Sequence[Trial], sign: float) -> TriedValue:
    """What became of the runs with one value."""
    good = [(trial.value, trial.row.id) for trial in runs if trial.value is not None and trial.believed]
    best, run = min(good, key=lambda one: (sign * one[0], one[1]), default=(None, min(one.row.id for one in runs)))
    return TriedValue(
        value=value,
        runs=len(runs),
        failed=sum(trial.row.status != RunStatus.OK for trial in runs),
        mean=fmean(number for number, _ in good) if good else None,
        best=best,
        id=format_id(run),
    )
