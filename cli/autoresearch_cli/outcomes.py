"""What came of a run of one's own: keep or discard, by how much beside the noise, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.desk import Desk
from autoresearch.ask.node import Event
from autoresearch.ask.records import EditOutcome, ShowAnswer, ToolCall
from autoresearch.ask.requests import OneRecord
from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.face.columns.column import short
from autoresearch.log.standing.answers import RunFields
from autoresearch.log.standing.metrics import disbelief_sentence
from autoresearch.log.standing.queries import run_body
from autoresearch.log.standing.verdicts import Spread, noise_doubt, spread_of
from autoresearch.propose.mind.recall import text_of
from autoresearch.propose.program.edits import constants, repetitions
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.task.folder_state import BASELINE, remember_start
from autoresearch.task.loading import MANIFEST, load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import reseeded, seedless_digest
from autoresearch.text import change_interval, counted, one_line, sign_of, value
from autoresearch.words import RUN_STATUS_SENTENCES, Disbelief, RunState, RunStatus, Verdict
from autoresearch_cli import home
from autoresearch_cli.acts.edits import refreshed
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.records import print_record

# A noise by so many degrees of freedom is known well: two standard deviations are its interval, not twelve.
ENOUGH_FREEDOM = 4
MORE_SEEDS = 3
# So much of how a program failed stands behind the sentence.
_CAUSE = 200

Facts = dict[str, Any]


def program_files(task: Task, folder: Path | None = None) -> str:
    """The files of a task's program, as a sentence names them."""
    return " and ".join(str(folder / name) if folder else name for name in task.recipe.edit)


def record_of(ended: Event) -> str:
    """The record of a run that has ended. Raises AutoresearchError where it did not take place."""
    record = ended.data.get("id")
    if not isinstance(record, str) or not record:
        raise AutoresearchError(str(ended.data.get("reason") or ended.text), hint="autoresearch status")
    return record


def tell_run(record: str, folder: Task | str, *, json: bool) -> None:
    """Print a run and what came of it; exit with 1 where it failed. ``folder`` as for :func:`ended_run`."""
    answer, lines = ended_run(record, folder)
    if json:
        print_json(answer)
    else:
        print_run(answer, lines)
    assert answer.run is not None, "it is a run's"
    if answer.run.run.status != RunStatus.OK:
        raise typer.Exit(1)


def print_run(answer: ShowAnswer, lines: Sequence[str]) -> None:
    """Print a run, what came of it and the next step; ``lines`` before that."""
    result = answer.outcome
    assert result is not None, "the run ended"
    try:
        print_record(answer, now_ms=home.now_ms())
    finally:  # also where the reader of the record has gone: autoresearch run | head -1
        cause = f": {one_line(result.cause, _CAUSE)}" if result.cause else ""
        for line in (*lines, result.sentence + cause, *result.notes, f"→ {result.next}"):
            say(line)


def ended_run(record: str, folder: Task | str) -> tuple[ShowAnswer, list[str]]:
    """A run that ended with its outcome, and what to say of the folder that it was edited in, which goes on from there.

    Its history.md is written anew. ``folder`` is the one that the run was started or proposed from. Where nobody works
    in it, or it is another task's now, it is the working folder; else none, and the next step says how to make one.
    """
    with open_desk() as desk:
        answer = questions.record(desk, OneRecord(id=record))
        assert answer.run is not None, "it is a run's"
        digest = answer.run.run.task
        if isinstance(folder, Task) and is_own(folder.folder):
            own: Task | None = folder
        else:
            own = own_task(folder, digest) or own_task(".", digest)
        lines = refreshed(desk, own) if own else []
        task = own or load_task(cached_folder(desk, bytes.fromhex(digest)))
        result = _outcome(desk, answer, task, _Step(short(answer.record.id), task, is_own=own is not None))
    return msgspec.structs.replace(answer, outcome=result), lines


def is_own(folder: Path) -> bool:
    """Whether a person may work in a task folder: it is neither the cache's nor does it come with the program."""
    return not any(folder.is_relative_to(other) for other in (home.paths().published_tasks, shipped_task().folder))


def own_task(folder: object, digest: str) -> Task | None:
    """The task with this digest in a folder that somebody works in; None for another one."""
    if not isinstance(folder, str):
        return None
    try:
        place = Path(folder).absolute()
        task = load_task(place) if is_own(place) and (place / MANIFEST).is_file() else None
    except (AutoresearchError, OSError):
        return None
    return task if task is not None and task.digest.hex() == digest else None


@dataclass(frozen=True, slots=True)
class _Step:
    """How to go on from a run: as a command in a person's folder, else in one to make; and as calls of MCP's tools."""

    run: str
    task: Task
    is_own: bool

    def back(self) -> Facts:
        """To the best program, and another change of it."""
        command = f"autoresearch run checkout {self._folder}" if self.is_own else self._get("@")
        return {"next": command, "calls": self._edit_calls("@")}

    def mend(self, *, printed: bool) -> Facts:
        """What this failed run printed, if it did; then its program mended and run again, or the best program."""
        begin, back = f"autoresearch show {self.run} --log has what it printed; then ", self.back()
        again = f"mend {program_files(self.task)} and autoresearch run {self._folder}; or begin anew: "
        look = [ToolCall(tool="show_run", arguments={"run": self.run, "part": "log"})]
        command = f"{begin if printed else ''}{again if self.is_own else ''}{back['next']}"
        return {"next": command, "calls": [*(look if printed else ()), *back["calls"]]}

    def edit(self, what: str = "edit", *, place: bool = False) -> Facts:
        """Another change of this run's program."""
        files = program_files(self.task, self.task.folder if place else None)
        command = f"{what} {files}, then autoresearch run {self._folder}" if self.is_own else self._get(self.run)
        return {"next": command, "calls": self._edit_calls(self.run)}

    def again(self, replicate: int, seeds: int = 1) -> Facts:
        """The same program with other seeds."""
        options = f" --replicate {replicate}" + (f" --seeds {seeds}" if seeds > 1 else "")
        first = "" if self.is_own else f"{self._get(self.run)} && "
        arguments: dict[str, str | int] = {"parent": self.run, "replicate": replicate}
        calls = [ToolCall(tool="run", arguments=arguments | ({"seeds": seeds} if seeds > 1 else {}))]
        return {"next": f"{first}autoresearch run {self._folder}{options}", "calls": calls}

    def baseline(self) -> Facts:
        """The task's baseline, with which others are compared."""
        calls = [ToolCall(tool="run", arguments={"parent": BASELINE})]
        return {"next": f"autoresearch work {self._folder} --runs 1", "calls": calls}

    @property
    def _folder(self) -> str:
        return shlex.quote(str(self.task.folder) if self.is_own else self.task.name)

    def _get(self, run: str) -> str:
        return f"autoresearch task get {self._folder} --run {run}"

    def _edit_calls(self, parent: str) -> list[ToolCall]:
        return [
            ToolCall(tool="show_run", arguments={"run": parent, "part": "source"}),
            ToolCall(tool="run", arguments={"parent": parent}, add=["edits", "hypothesis"]),
        ]


def _outcome(desk: Desk, answer: ShowAnswer, task: Task, step: _Step) -> EditOutcome:
    """What came of a run: keep or discard, by how much beside its noise, and the next step.

    What is kept is where the folder's next edit starts.
    """
    assert answer.run is not None
    run, lost = answer.run.run, _lost_settings(desk, answer)
    facts: Facts = {"run": step.run, "parent": short(run.parent or "")}

    def make_outcome(verdict: Verdict, sentence: str, following: Facts, *notes: str) -> EditOutcome:
        return EditOutcome(verdict=verdict, sentence=sentence, notes=[*notes, *lost], **facts, **following)

    if run.value is None:
        facts["cause"] = run.reason
        why = RUN_STATUS_SENTENCES[RunStatus(run.status)]
        return make_outcome(Verdict.FAILED, f"discard: {why}", step.mend(printed=run.log is not None))
    after, seeds = _mean(desk, run)
    facts |= {"value": after, "seeds": seeds}
    if answer.run.standing.state == RunState.NOT_BELIEVED:
        sentence = f"{Verdict.NOT_BELIEVED}: {disbelief_sentence(desk.log, parse_id(answer.record.id))}"
        sentence += f": {value(run.value)}. It is no best and no parent."
        return make_outcome(Verdict.NOT_BELIEVED, sentence, step.back(), *believing(desk, answer.record.id))
    spread = spread_of(desk.log, task.digest, task.metric)
    if sentence := _repetition_sentence(desk, task, run, spread):
        return make_outcome(Verdict.REPETITION, sentence, step.edit("change more than a seed in", place=True))
    if bytes.fromhex(run.seedless or run.source_digest) == seedless_digest(task.baseline.decode()):
        sentence = "the baseline: other runs are compared with it"
        return make_outcome(Verdict.BASELINE, sentence, step.edit(place=True), *_remember(step, answer.record.id, run))
    above = run.parent or ""
    parent = questions.record(desk, OneRecord(id=above)).run if above else None
    if parent is None or parent.run.value is None or parent.standing.state == RunState.NOT_BELIEVED:
        lacking = "has no value" if parent is None or parent.run.value is None else f"is {RunState.NOT_BELIEVED}"
        sentence = f"its parent {short(above)} {lacking}" if above else "the task's baseline was not run here"
        return make_outcome(Verdict.UNKNOWN, f"{sentence}, so there is nothing to compare with", step.baseline())
    before, others = _mean(desk, parent.run)
    gain = (before - after) * sign_of(task.metric.direction)
    doubt = noise_doubt(desk.log, task.digest)
    margin = spread.margin(seeds, others) if spread else 0.0
    is_unsure = abs(gain) < margin
    compared = f"{value(after)}{_of(seeds)}, its parent {short(above)} {value(before)}{_of(others)}"
    change = f"gain {change_interval(gain, margin)}"
    facts |= {
        "parent_value": before, "parent_seeds": others, "gain": gain, "margin": margin, "within_noise": is_unsure,
    }  # fmt: skip
    seed = free_seed(desk, task, bytes.fromhex(run.source_digest))
    freedom = spread.freedom if spread else None
    if is_unsure and freedom is not None and freedom < ENOUGH_FREEDOM:
        sentence = f"not sure: run it with {MORE_SEEDS} more seeds: {compared}: {change}"
        by = f"the noise is known from {counted(freedom + 1, 'run')}, so the interval is wide"
        return make_outcome(Verdict.UNSURE, sentence, step.again(seed, MORE_SEEDS), by)
    verdict, word = (Verdict.KEEP, "better") if gain > 0 else (Verdict.DISCARD, "not better")
    sentence = f"{verdict}: {word} than its parent{', within the noise' if is_unsure else ''}: {compared}: {change}"
    if spread is None:
        sentence += "; how far a seed moves it is unknown"
    more = [f"{doubt}: the interval goes by these runs"] if doubt else []
    if verdict == Verdict.DISCARD:
        return make_outcome(verdict, sentence, step.back(), *more)
    program = desk.log.programs.find(task.digest, bytes.fromhex(run.source_digest), run.budget)
    start = format_id(program.first) if program and run.replicate else answer.record.id  # whose text is in the folder
    following = step.again(seed) if is_unsure and seeds < MORE_SEEDS else step.edit()
    return make_outcome(verdict, sentence, following, *more, *_remember(step, start, run))


def _lost_settings(desk: Desk, answer: ShowAnswer) -> list[str]:
    """Why settings of the parent's program are none of a run's, where that assigns them twice."""
    assert answer.run is not None
    parent = answer.run.run.parent
    if not parent or not (sentences := repetitions(text_of(desk.log, desk.blobs, parse_id(answer.record.id)) or "")):
        return []
    before = constants(text_of(desk.log, desk.blobs, parse_id(parent)) or "")
    return [sentence for name, sentence in sentences.items() if name in before and before[name].range is not None]


def believing(desk: Desk, run: str) -> list[str]:
    """What a person does who believes a run that is not believed; nothing where no command helps."""
    if desk.log.beliefs.of([parse_id(run)]).get(parse_id(run)) is Disbelief.FLOOR:
        return ["if the bound is wrong, correct metric.floor in task.toml"]
    return [f"if the number is true: autoresearch run believe {short(run)}"]


def _mean(desk: Desk, run: RunFields) -> tuple[float, int]:
    """The mean value of a run's program, and over how many runs."""
    row = desk.log.programs.find(bytes.fromhex(run.task), bytes.fromhex(run.source_digest), run.budget)
    assert run.value is not None
    return (run.value, 1) if row is None else (row.mean, row.runs)


def _of(seeds: int) -> str:
    return f" (mean of {seeds})" if seeds > 1 else ""


def free_seed(desk: Desk, task: Task, program: bytes) -> int:
    """The first replicate of a program that was not run, whatever seeds it fixes."""
    runs = desk.log.runs.of_programs(task.digest, [program], any_seeds=True)
    tried = {number for _, number, *_ in runs}
    return next(number for number in range(1, len(tried) + 2) if number not in tried)


def _repetition_sentence(desk: Desk, task: Task, run: RunFields, spread: Spread | None) -> str:
    """The sentence on a run that repeats another with a seed that somebody wrote into it; empty where it is none."""
    row = desk.log.programs.find(bytes.fromhex(run.task), bytes.fromhex(run.source_digest), run.budget)
    if row is None or run.source_digest == row.source_digest.hex():
        return ""
    first, source = run_body(desk.log, row.first), text_of(desk.log, desk.blobs, row.first)
    moved = None if source is None else source_digest(reseeded(source, run.replicate - first.replicate))
    if moved == bytes.fromhex(run.source_digest):
        return ""  # a replicate that was asked for
    assert run.value is not None
    assert first.value is not None, "it counts"
    other, moves = short(format_id(row.first)), ""
    if spread:
        moves = f"; seeds move {task.metric.name} by about {spread.deviation:.2g}"
    return (
        f"only its seed differs from {other}: a repetition, no improvement: {value(run.value)}, "
        f"{other} {value(first.value)}; the mean of {row.runs} is {value(row.mean)}{moves}"
    )


def _remember(step: _Step, record: str, run: RunFields) -> list[str]:
    """Have the folder remember the run whose program it has, whatever its seed; what to say where it can't."""
    task = step.task
    if not step.is_own or seedless_digest(task.program.decode()).hex() != (run.seedless or run.source_digest):
        return []
    try:
        remember_start(task.folder, record)
    except UsageError as error:
        return [f"the folder does not remember it: {error}"]
    return []
