"""What came of a run of one's own: keep or discard, by how much beside the noise, and the next step."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.desk import Desk
from autoresearch.ask.node import Event
from autoresearch.ask.records import EditOutcome, ShowAnswer
from autoresearch.ask.requests import OneRecord
from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.face.columns.column import short
from autoresearch.log.standing.answers import RunFields
from autoresearch.log.standing.metrics import disbelief_sentence
from autoresearch.log.standing.queries import run_body
from autoresearch.log.standing.verdicts import Spread, noise_doubt, spread_of
from autoresearch.propose.mind.recall import text_of
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.task.folder_state import remember_start
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import reseeded, seedless_digest
from autoresearch.text import change_interval, counted, sign_of, value
from autoresearch.words import RUN_STATUS_SENTENCES, Disbelief, RunState, RunStatus, Verdict
from autoresearch_cli import home
from autoresearch_cli.acts.packages import refreshed
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.records import print_record

# A noise by so many degrees of freedom is known well: two standard deviations are its interval, not twelve.
ENOUGH_FREEDOM = 4
MORE_SEEDS = 3


def program_files(task: Task, folder: Path | None = None) -> str:
    """The files of a task's program, as a sentence names them."""
    return " and ".join(str(folder / name) if folder else name for name in task.recipe.edit)


def record_of(ended: Event) -> str:
    """The record of a run that has ended. Raises AutoresearchError where it did not take place."""
    record = ended.data.get("id")
    if not isinstance(record, str) or not record:
        raise AutoresearchError(str(ended.data.get("reason") or ended.text), hint="autoresearch status")
    return record


def tell_run(record: str, *, json: bool, folder: Task | None = None) -> None:
    """Print a run and what came of it; exit with 1 where it failed.

    ``folder`` is the task's folder that a person works in, whose history.md is written anew: left out, the working
    folder where it is of that task.
    """
    with open_desk() as desk:
        answer = questions.record(desk, OneRecord(id=record))
        assert answer.run is not None, "it is a run's"
        folder = folder or _working_folder(answer.run.run.task)
        task = folder or load_task(cached_folder(desk, bytes.fromhex(answer.run.run.task)))
        lines = refreshed(desk, folder) if folder else []
        result, more = outcome(desk, answer, task)
    if json:
        print_json(msgspec.structs.replace(answer, outcome=result))
    else:
        try:
            print_record(answer, now_ms=home.now_ms())
        finally:  # also where the reader of the record has gone: autoresearch run | head -1
            for line in (*lines, result.sentence, *more, f"→ {result.next}"):
                say(line)
    if answer.run.run.status != RunStatus.OK:
        raise typer.Exit(1)


def _working_folder(task: str) -> Task | None:
    """The task of the working folder, where it is the one with this digest."""
    try:
        folder = load_task(Path.cwd()) if Path("task.toml").is_file() else None
    except (AutoresearchError, OSError):
        return None
    return folder if folder is not None and folder.digest.hex() == task else None


def outcome(desk: Desk, answer: ShowAnswer, task: Task) -> tuple[EditOutcome, list[str]]:
    """What came of a run: keep or discard, by how much beside its noise, and the next step; and what else to say.

    What is kept is where the folder's next edit starts.
    """
    assert answer.run is not None
    run, folder = answer.run.run, shlex.quote(str(task.folder))
    back = f"autoresearch run checkout {folder}"

    def make_outcome(verdict: Verdict, sentence: str, following: str, **numbers: Any) -> EditOutcome:  # noqa: ANN401
        return EditOutcome(verdict=verdict, sentence=sentence, next=following, run=short(answer.record.id), **numbers)

    if run.value is None:
        status = RunStatus(run.status)
        why = f"diverged: {run.reason}" if status is RunStatus.DIVERGED else RUN_STATUS_SENTENCES[status]
        return make_outcome(Verdict.FAILED, f"discard: {why}", back), []
    after, seeds = _mean(desk, run)
    mean = {"value": after, "seeds": seeds}
    if answer.run.standing.state == RunState.NOT_BELIEVED:
        sentence = f"{Verdict.NOT_BELIEVED}: {disbelief_sentence(desk.log, parse_id(answer.record.id))}"
        sentence += f": {value(run.value)}. It is no best and no parent."
        return make_outcome(Verdict.NOT_BELIEVED, sentence, back, **mean), believing(desk, answer.record.id)
    spread = spread_of(desk.log, task.digest, task.metric)
    if sentence := _repetition_sentence(desk, task, run, spread):
        edit = f"change more than a seed in {program_files(task, task.folder)}, then autoresearch run {folder}"
        return make_outcome(Verdict.REPETITION, sentence, edit, **mean), []
    if bytes.fromhex(run.seedless or run.source_digest) == seedless_digest(task.baseline.decode()):
        edit = f"edit {program_files(task, task.folder)}, then autoresearch run {folder}"
        sentence = "the baseline: other runs are compared with it"
        return make_outcome(Verdict.BASELINE, sentence, edit, **mean), _remember(task, answer.record.id, run)
    above = run.parent or ""
    parent = questions.record(desk, OneRecord(id=above)).run if above else None
    if parent is None or parent.run.value is None or parent.standing.state == RunState.NOT_BELIEVED:
        lacking = "has no value" if parent is None or parent.run.value is None else f"is {RunState.NOT_BELIEVED}"
        sentence = f"its parent {short(above)} {lacking}" if above else "the task's baseline was not run here"
        first = f"autoresearch work {folder} --runs 1"
        return make_outcome(Verdict.UNKNOWN, f"{sentence}, so there is nothing to compare with", first, **mean), []
    before, others = _mean(desk, parent.run)
    gain = (before - after) * sign_of(task.metric.direction)
    doubt = noise_doubt(desk.log, task.digest)
    margin = spread.margin(seeds, others) if spread else 0.0
    is_unsure = abs(gain) < margin
    compared = f"{value(after)}{_of(seeds)}, its parent {short(above)} {value(before)}{_of(others)}"
    change = f"gain {change_interval(gain, margin)}"
    numbers = mean | {
        "parent": short(above), "parent_value": before, "parent_seeds": others,
        "gain": gain, "margin": margin, "within_noise": is_unsure,
    }  # fmt: skip
    seed = free_seed(desk, task, bytes.fromhex(run.source_digest))
    again = f"autoresearch run {folder}"
    freedom = spread.freedom if spread else None
    if is_unsure and freedom is not None and freedom < ENOUGH_FREEDOM:
        runs = f"{again} --replicate {seed} --seeds {MORE_SEEDS}"
        sentence = f"not sure: run it with {MORE_SEEDS} more seeds: {compared}: {change}"
        by = f"the noise is known from {counted(freedom + 1, 'run')}, so the interval is wide"
        return make_outcome(Verdict.UNSURE, sentence, runs, **numbers), [by]
    verdict, word = (Verdict.KEEP, "better") if gain > 0 else (Verdict.DISCARD, "not better")
    sentence = f"{verdict}: {word} than its parent{', within the noise' if is_unsure else ''}: {compared}: {change}"
    if spread is None:
        sentence += "; how far a seed moves it is unknown"
    more = [f"{doubt}: the interval goes by these runs"] if doubt else []
    if verdict == Verdict.DISCARD:
        return make_outcome(verdict, sentence, back, **numbers), more
    following = f"{again} --replicate {seed}" if is_unsure else f"edit {program_files(task)}, then {again}"
    program = desk.log.programs.find(task.digest, bytes.fromhex(run.source_digest), run.budget)
    start = format_id(program.first) if program and run.replicate else answer.record.id  # whose text is in the folder
    return make_outcome(verdict, sentence, following, **numbers), [*more, *_remember(task, start, run)]


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


def _remember(task: Task, record: str, run: RunFields) -> list[str]:
    """Have the folder remember the run whose program it has, whatever its seed; what to say where it can't."""
    if seedless_digest(task.program.decode()).hex() != (run.seedless or run.source_digest):
        return []
    try:
        remember_start(task.folder, record)
    except UsageError as error:
        return [f"the folder does not remember it: {error}"]
    return []
