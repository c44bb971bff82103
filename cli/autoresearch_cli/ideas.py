"""What ``run`` and ``propose`` share: an edited program, the run that it started from, and what came of it."""

from __future__ import annotations

import shlex
import time
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.acts.edited_program import Idea, seed_number
from autoresearch.ask.acts.varying import VaryAnswer, outcome_of, variants
from autoresearch.ask.client import Client
from autoresearch.ask.desk import Desk
from autoresearch.ask.node import Event
from autoresearch.ask.node_acts import Node
from autoresearch.ask.records import EditOutcome, ShowAnswer
from autoresearch.ask.requests import OneRecord, ProposeRequest
from autoresearch.beneath import read_beneath
from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.experiments import setting_text
from autoresearch.log.standing.answers import RunFields
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.metrics import disbelief_sentence
from autoresearch.log.standing.queries import run_body
from autoresearch.log.standing.verdicts import Spread, noise_doubt, spread_of
from autoresearch.paths import typed_path
from autoresearch.propose.mind.recall import run_before, text_of
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.task.folder_state import BASELINE, remember_start, started_from
from autoresearch.task.loading import check_source, load_task
from autoresearch.task.model import Task
from autoresearch.task.program import is_lone, join_files, source_digest
from autoresearch.task.seeds import reseeded, seedless_digest
from autoresearch.text import change_interval, counted, one_line, sign_of, value
from autoresearch.words import RUN_STATUS_SENTENCES, Disbelief, RunState, RunStatus, Verdict
from autoresearch_cli import home
from autoresearch_cli.acts.packages import refreshed
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.catalogue import PARENT_HELP
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.records import print_record

# A noise by so many degrees of freedom is known well: two standard deviations are its interval, not twelve.
ENOUGH_FREEDOM = 4
MORE_SEEDS = 3

Parent = Annotated[str, typer.Option("--parent", metavar="ID", help=PARENT_HELP)]
Hypothesis = Annotated[
    str, typer.Option("--hypothesis", metavar="TEXT", help="Why it should help. Its beginning is the run's title.")
]


def request(idea: Idea, *, seeds: int = 1) -> ProposeRequest:
    """An idea as the daemon takes it."""
    return ProposeRequest(
        task=str(idea.task.folder),
        program=idea.program,
        parent=idea.parent,
        hypothesis=idea.hypothesis,
        replicate=idea.replicate,
        seeds=seeds,
    )


def idea_in(folder: Path, *, parent: str = "", hypothesis: str = "", replicate: int = 0) -> Idea:
    """The program of a task folder, as the child of the run that it was edited from."""
    task = load_task(folder)
    if not task.is_pinned:
        say("task.toml pins no baseline, so an edited program is another task: autoresearch task pin fixes this one")
    if not parent:
        parent = started_from(folder)
        with open_desk() as desk:
            if parent not in ("", BASELINE) and not is_here(desk, parent):
                parent = ""  # the folder comes from another machine or network
    return Idea(task, task.program.decode(), parent, hypothesis, replicate)


def is_here(desk: Desk, run: str) -> bool:
    """Whether a run is in the log of this machine."""
    try:
        desk.record(run)
    except NotFound:
        return False
    return True


def _files(task: Task, folder: Path | None = None) -> str:
    """The files of a task's program, as a sentence names them."""
    return " and ".join(str(folder / name) if folder else name for name in task.recipe.edit)


def repetition(idea: Idea) -> tuple[bytes, Run, int] | None:
    """The run of the same program with the same seed, which another one would repeat; and a seed that is free."""
    with open_desk() as desk:
        program = reseeded(idea.program, idea.replicate)
        number = seed_number(desk.log, idea.task, idea.program)
        digest, replicate = source_digest(program), number + idea.replicate
        run = run_before(desk.log, idea.task, digest, replicate=replicate, me=desk.me)
        seed = _free_seed(desk, idea.task, source_digest(idea.program)) - number
        return None if run is None else (run, run_body(desk.log, run), max(1, seed))


def refuse_repetition(idea: Idea) -> None:
    """Raise Refused where the same program was run with the same seed: it would give the same value."""
    previous = repetition(idea)
    if previous is None:
        return
    run, body, seed = previous
    came = RUN_STATUS_SENTENCES[RunStatus(body.status)] if body.value is None else value(body.value)
    raise Refused(
        f"this program was run with this seed before: {short_id(run)} “{one_line(body.title, 60)}”: {came}",
        hint=f"edit {_files(idea.task)}; or measure it with another seed: --replicate {seed}; "
        "or run it all the same: --again",
    )


def vary(idea: Idea, grid: Mapping[str, Sequence[object]], seeds: int, client: Client | None) -> VaryAnswer:
    """What came of an experiment; with a ``client`` its daemon is given the runs that nobody has done or waits for.

    Each program has its first seed before any has its second. Nodes that are asked for the same divide it: what
    another one runs when its turn comes is left to that. What another one has run without a value is run here.

    Raises:
        UsageError: there is no such setting or value, or these are too many runs.
    """
    task = idea.task
    programs, left_out = variants(task, idea.program, grid, seeds)
    waiting = client.ask(Node.proposals).queue if client else []
    pending = {(bytes.fromhex(each.source_digest), each.replicate) for each in waiting}
    with open_desk() as desk:
        now, claims = home.now_ms(), desk.log.claims
        context = trust_context(desk.log, desk.me)
        elsewhere = set()
        for claim in claims.open(task.digest, now_ms=now):
            if claim.author == desk.me:
                pending.add((claim.source_digest, claim.replicate))
            elif is_heard(claim.author, now, context, desk.me):
                elsewhere.add((claim.source_digest, claim.replicate))
        answer, missing = outcome_of(desk.log, task, programs, seeds, pending=pending, elsewhere=elsewhere, me=desk.me)
        tried = {
            (variant.digest_of(number), number)
            for variant, number in missing
            if claims.tried_by(task.digest, variant.digest_of(number), number, now_ms=now) - {desk.me}
        }
    proposed: list[str] = []
    for variant, number in sorted(missing, key=lambda pair: pair[1]) if client else ():
        values = ", ".join(f"{name} {setting_text(value)}" for name, value in variant.settings.items())
        why = f"{idea.hypothesis}: {values}" if idea.hypothesis else values
        asks = request(Idea(task, variant.program, idea.parent, why, number))
        shared = task.budget.unit != "seconds" and (variant.digest_of(number), number) not in tried
        asks = msgspec.structs.replace(asks, shared=shared)
        proposed += client.ask(Node.propose, asks).proposed if client else []
    return msgspec.structs.replace(answer, proposed=proposed, left_out=left_out)


def wait_for_runs(
    idea: Idea, grid: Mapping[str, Sequence[object]], seeds: int, client: Client, seconds: float | None = None
) -> VaryAnswer:
    """What came of an experiment once the runs that this node has in hand have ended, or after so many seconds.

    The task folder's history.md is written anew. Raises as :func:`vary` does.
    """
    end = None if seconds is None else time.monotonic() + seconds
    programs = {variant.digest.hex() for variant in variants(idea.task, idea.program, grid, seeds)[0]}
    queue = [each.name for each in client.ask(Node.proposals).queue if each.source_digest in programs]
    begun = [worker.proposal for worker in client.ask(Node.status).workers if worker.proposal]
    for name in (*begun, *queue):
        left = None if end is None else max(0.0, end - time.monotonic())
        if client.ended(name, left) is None:
            break
    with open_desk() as desk:
        for line in refreshed(desk, idea.task):
            say(line)
    return vary(idea, grid, seeds, None)


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
        edit = f"change more than a seed in {_files(task, task.folder)}, then autoresearch run {folder}"
        return make_outcome(Verdict.REPETITION, sentence, edit, **mean), []
    if bytes.fromhex(run.seedless or run.source_digest) == seedless_digest(task.baseline.decode()):
        edit = f"edit {_files(task, task.folder)}, then autoresearch run {folder}"
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
    seed = _free_seed(desk, task, bytes.fromhex(run.source_digest))
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
    following = f"{again} --replicate {seed}" if is_unsure else f"edit {_files(task)}, then {again}"
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


def _free_seed(desk: Desk, task: Task, program: bytes) -> int:
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


# More than all files of a program may have.
_MOST_BYTES = 32 << 20


def idea_of(program: str, task: str, parent: str, hypothesis: str) -> Idea:
    """The idea that a person names by a task folder, or by a file for the task in ``task``. Raises UsageError."""
    place = typed_path(program).absolute()
    if place.is_dir():
        if task:
            raise UsageError("--task goes with a file; a folder is a task itself", hint="leave --task out")
        return idea_in(home.existing_folder(program), parent=parent, hypothesis=hypothesis)
    loaded_task = load_task(home.task_folder(task))
    return Idea(loaded_task, _text(place, loaded_task), parent, hypothesis)


def _text(place: Path, task: Task) -> str:
    """The program in a file: the one that may change, or all of them as ``show --code`` prints them."""
    try:
        content = read_beneath(place.parent, place.name, _MOST_BYTES, links=False).removeprefix(BOM_UTF8)
    except OSError as error:
        raise UsageError(f"{place} can't be read: {error.strerror}", hint="give a task folder or a program") from error
    first, *others = task.recipe.edit
    if is_lone(content.decode("utf-8", "replace")):
        if others:
            raise UsageError(f"the program of {task.name} has several files", hint=f"propose a folder: {task.folder}")
        content = join_files({first: ""}).encode() + content
    check_source(place, content)
    return content.decode()
