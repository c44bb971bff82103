"""One run's texts, what it changed and the way that led to it; what each setting of a task did.

Sources are compared in bounded time, whatever strangers wrote into them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import BinaryIO

import msgspec

from autoresearch.ask.lookup import FoundTask, task_of
from autoresearch.ask.runs.answers import DeadEndView, DiffAnswer, EffectsAnswer, EffectView, LineageAnswer
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.headlines import described, teller_of
from autoresearch.ask.runs.telling import changes
from autoresearch.errors import BEGIN, NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import LineageStep, RunNumbers
from autoresearch.log.standing.bases import next_base
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.queries import lineage, run_body, run_numbers
from autoresearch.log.standing.verification import judgement
from autoresearch.propose.mind.recall import text_of
from autoresearch.propose.mind.register import dead_ends_of
from autoresearch.propose.program.edits import repetitions
from autoresearch.propose.search.dead_ends import DeadEnd
from autoresearch.propose.search.effects import Comparisons
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import BlobRef, Run
from autoresearch.task.model import Metric
from autoresearch.task.program import split_program
from autoresearch.text import MAXIMIZE, one_line
from autoresearch.words import HIDDEN, RUN_MODES

# difflib is cubic in the worst case: text made for it takes 7 s at 4,000 lines and under a second at 2,000.
MATCHED_LINES = 2_000


def unified_diff(old: str, new: str, *, old_name: str, new_name: str) -> str:
    """The unified diff of two texts, empty when they are equal; sources too long to match are replaced as a whole."""
    # Not splitlines(): a form feed or a Unicode line separator inside a line is no end of line to Python or to patch.
    a, b = (text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else [] for text in (old, new))
    if a == b:
        return ""
    if max(len(a), len(b)) > MATCHED_LINES:
        head = [f"--- {old_name}", f"+++ {new_name}", f"@@ -{_span(a)} +{_span(b)} @@"]
        return "\n".join([*head, *("-" + line for line in a), *("+" + line for line in b)]) + "\n"
    return "\n".join(difflib.unified_diff(a, b, old_name, new_name, lineterm="")) + "\n"


def genome_changes(
    old: Mapping[str, object], new: Mapping[str, object], *, same_base: bool = True
) -> dict[str, list[object]]:
    """The settings that differ, each as ``[old, new]``; one that is missing on a side is None there.

    A part that is missing in one of two bases is left out: that may have it in its text.
    """
    names = [*old, *(name for name in new if name not in old)]
    pairs = {
        name: [old.get(name), new.get(name)]
        for name in names
        if same_base or not name.startswith("+") or (name in old and name in new)
    }
    # True equals 1 in Python, and is another constant in a source.
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] or type(pair[0]) is not type(pair[1])}


def _span(lines: list[str]) -> str:
    return f"{1 if lines else 0},{len(lines)}"


# Sources have at most 1 MiB and logs little more; what a stranger's record names may be anything.
MAXIMUM_TEXT_BYTES = 8 << 20
_PROGRAM = "program"


def diff_answer(log: Log, blobs: BlobStore, old: bytes, new: bytes) -> DiffAnswer:
    """The change from one run's source to another's.

    Raises:
        NotFound: a record or a source is not here.
        UsageError: a record is not a run.
    """
    before, after = run_body(log, old), run_body(log, new)
    return DiffAnswer(
        old=format_id(old),
        new=format_id(new),
        old_numbers=_numbers(log, old),
        new_numbers=_numbers(log, new),
        is_parent=after.parent == old,
        episodes=[before.budget, after.budget] if after.mode in RUN_MODES else [],
        change=_ordered(log, blobs, before, after),
        diff=_program_diff(
            run_source(log, blobs, old), run_source(log, blobs, new), old_name=short_id(old), new_name=short_id(new)
        ),
    )


def _numbers(log: Log, run: bytes) -> RunNumbers:
    return run_numbers(log, log.records.get(run), judgement(log, run))


def _ordered(log: Log, blobs: BlobStore, before: Run, after: Run) -> dict[str, list[object]]:
    """The constants that differ, those first that are told first."""
    teller = teller_of(log, blobs, after.task, comparing=False)
    old, new = (teller.settings(described(run)) for run in (before, after))
    changed = genome_changes(old.genome, new.genome, same_base=old.base == new.base)
    order = {change.name: number for number, change in enumerate(changes(old.genome, new.genome, teller.ranges, {}))}
    return dict(sorted(changed.items(), key=lambda pair: order.get(pair[0], len(order))))


def _program_diff(old: str, new: str, *, old_name: str, new_name: str) -> str:
    """The changes of all files of a program, one file after the other; of a long program, of its text."""
    before, after = _files(old), _files(new)
    if max(old.count("\n"), new.count("\n")) > MATCHED_LINES:
        before, after = {_PROGRAM: old}, {_PROGRAM: new}
    return "".join(
        unified_diff(
            before.get(name, ""), after.get(name, ""), old_name=f"{old_name}/{name}", new_name=f"{new_name}/{name}"
        )
        for name in dict.fromkeys([*before, *after])
    )


def _files(source: str) -> dict[str, str]:
    """The files of a program; of what a stranger published in another form, its text."""
    try:
        return split_program(source)
    except UsageError:
        return {_PROGRAM: source}


def parent_of(log: Log, run_id: bytes) -> bytes:
    """The run that a run was changed from. Raises NotFound where it has none, UsageError when it is not a run."""
    parent = run_body(log, run_id).parent
    if parent is None:
        raise NotFound(f"{short_id(run_id)} has no parent that is known here", hint=BEGIN)
    return parent


@in_snapshot
def lineage_answer(log: Log, run_id: bytes) -> LineageAnswer:
    """The path from the oldest known ancestor to a run. Raises NotFound, or UsageError when it is not a run."""
    steps = lineage(log, run_id)
    hidden = log.hidden.of([parse_id(step.run.id) for step in steps[:-1]])
    steps = [_nameless(step) if parse_id(step.run.id) in hidden else step for step in steps]
    task = task_of(log, bytes.fromhex(steps[-1].run.run.task))
    return LineageAnswer(task=task_status(log, task) if task else None, steps=steps)


def _nameless(step: LineageStep) -> LineageStep:
    """A step without its words."""
    replace, view = msgspec.structs.replace, step.run
    run = replace(view.run, title=HIDDEN, hypothesis="", reason="", proposer=None)
    return replace(step, hidden=True, run=replace(view, run=run, standing=replace(view.standing, headline=HIDDEN)))


def run_source(log: Log, blobs: BlobStore, run_id: bytes) -> str:
    """The program of a run as one text. Raises NotFound, UsageError, Refused."""
    return blob_text(log, blobs, run_id, run_body(log, run_id).source, f"The source of {short_id(run_id)}")


def run_log(log: Log, blobs: BlobStore, run_id: bytes) -> str:
    """What a run printed. Raises NotFound, UsageError, Refused."""
    blob = run_body(log, run_id).log
    if blob is None:
        raise NotFound(f"The run {short_id(run_id)} printed nothing.", hint=f"autoresearch show {short_id(run_id)}")
    return blob_text(log, blobs, run_id, blob, f"What {short_id(run_id)} printed")


def run_checkpoint(log: Log, run_id: bytes) -> BlobRef:
    """A run's checkpoint. Raises NotFound when it kept none, UsageError when it is no run."""
    blob = run_body(log, run_id).checkpoint
    if blob is None:
        raise NotFound(f"The run {short_id(run_id)} kept no checkpoint.", hint="runs among the ten best keep theirs")
    return blob


def open_checkpoint(log: Log, blobs: BlobStore, run_id: bytes) -> BinaryIO:
    """A run's checkpoint, checked. Raises NotFound (MissingBlob), UsageError, Refused when it is damaged."""
    checkpoint = run_checkpoint(log, run_id)
    if not blobs.has(checkpoint.sha256):
        raise MissingBlob(f"The checkpoint of {short_id(run_id)}", checkpoint, log.records.get(run_id).author)
    return blobs.open(checkpoint.sha256)


def blob_text(log: Log, blobs: BlobStore, record: bytes, reference: BlobRef, what: str) -> str:
    """A text that a record names. Raises NotFound (MissingBlob), Refused where it is damaged or too large."""
    blob = blobs.find(reference.sha256)
    if (blob or reference).size > MAXIMUM_TEXT_BYTES:
        raise Refused(f"{what} is larger than {MAXIMUM_TEXT_BYTES >> 20} MiB.", hint="autoresearch show ID")
    if blob is None:
        raise MissingBlob(what, reference, log.records.get(record).author)
    return blobs.get(reference.sha256).decode("utf-8", "replace")


# A name of a setting has no more characters.
_NAME_CHARACTERS = 64
# Of what failing programs share so much is told.
_LINES, _LINE_CHARACTERS = 5, 120
# Strangers may name any setting; a program has fewer.
_MOST = 200


def effects_answer(
    log: Log, task: FoundTask, *, me: bytes | None = None, blobs: BlobStore | None = None
) -> EffectsAnswer:
    """What each setting did in pairs of a run and its parent; with ``blobs`` also the dead ends.

    Own runs of the device ``me`` count, attested or not.
    """
    fields = [name for name in EffectView.__struct_fields__ if name != "name"]
    effects = [
        EffectView(
            name=one_line(effect.parameter, _NAME_CHARACTERS), **{name: getattr(effect, name) for name in fields}
        )
        for effect in Comparisons(log, task.digest, me).effects[:_MOST]
    ]
    answer = EffectsAnswer(task=task.name, metric=task.metric, effects=effects)
    if blobs is None:
        return answer
    best = next_base(log, task.digest, trust_context(log, me))
    repeated = repetitions((best and text_of(log, blobs, best.row.first)) or "")
    budget = None if task.unit == "episodes" else task.budget
    ends = dead_ends_of(log, blobs, task.digest, _metric(log, task), budget, me=me)[:_MOST]
    return msgspec.structs.replace(
        answer,
        dead_ends=list(map(_dead_end_view, ends)),
        notes=[repeated[effect.name] for effect in effects if effect.name in repeated],
    )


def _metric(log: Log, task: FoundTask) -> Metric:
    """The metric of a task as it is published."""
    try:
        return msgspec.convert((log.tasks.definition(task.digest) or {}).get("metric"), Metric)
    except msgspec.ValidationError:
        return Metric(name=task.metric, direction="maximize" if task.direction == MAXIMIZE else "minimize")


def _dead_end_view(end: DeadEnd) -> DeadEndView:
    region = end.region
    return DeadEndView(
        sentence=one_line(end.sentence),
        runs=list(map(short_id, end.runs)),
        participants=end.participants,
        setting=one_line(region.setting, _NAME_CHARACTERS) if region else "",
        relation=region.relation if region else "",
        bound=region.bound if region else None,
        lines=[one_line(line, _LINE_CHARACTERS) for line in end.lines[:_LINES]],
        gain=end.gain,
        margin=end.margin,
    )
