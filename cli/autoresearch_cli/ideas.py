"""What ``run`` and ``propose`` share: an edited program, the run that it started from, and what came of it."""

from __future__ import annotations

import itertools
import time
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.ask.acts.edited_program import Idea, plan_of_idea, run_on, seed_number
from autoresearch.ask.acts.varying import VaryAnswer, outcome_of, variants
from autoresearch.ask.client import Client
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import ProposeRequest
from autoresearch.beneath import read_beneath
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.face.columns.column import person
from autoresearch.face.columns.experiments import setting_text
from autoresearch.log.standing.context import participant_of, trust_context, whose
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.queries import run_body
from autoresearch.paths import typed_path
from autoresearch.propose.mind.recall import run_before
from autoresearch.propose.mind.register import repeated_end
from autoresearch.propose.search.dead_ends import DeadEnd
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Run
from autoresearch.task.folder_state import BASELINE, started_from
from autoresearch.task.loading import check_source, load_task
from autoresearch.task.model import Task
from autoresearch.task.program import is_lone, join_files, source_digest
from autoresearch.task.seeds import reseeded
from autoresearch.text import one_line, value
from autoresearch.words import RUN_STATUS_SENTENCES, RunStatus
from autoresearch_cli import home
from autoresearch_cli.acts.edits import refreshed
from autoresearch_cli.catalogue import PARENT_HELP
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.outcomes import free_seed, program_files
from autoresearch_cli.rendering.output import say

Parent = Annotated[str, typer.Option("--parent", metavar="ID", help=PARENT_HELP)]
Hypothesis = Annotated[
    str, typer.Option("--hypothesis", metavar="TEXT", help="Why it should help. Its beginning is the run's title.")
]

Anyway = Annotated[bool, typer.Option("--anyway", help="Run it also where it goes into a dead end again.")]
Again = Annotated[bool, typer.Option("--again", help="Run it also where the same program was run with the same seed.")]


def request(idea: Idea, *, seeds: int = 1, once: bool = False) -> ProposeRequest:
    """An idea as the daemon takes it; with ``once`` no seed a second time."""
    return ProposeRequest(
        task=str(idea.task.folder),
        program=idea.program,
        parent=idea.parent,
        hypothesis=idea.hypothesis,
        replicate=idea.replicate,
        seeds=seeds,
        once=once,
    )


def idea_in(folder: Path, *, parent: str = "", hypothesis: str = "", replicate: int = 0) -> Idea:
    """The program of a task folder, as the child of the run that it was edited from."""
    task = load_task(folder)
    if not task.is_pinned:
        say("task.toml pins no baseline, so an edited program is another task: autoresearch task pin fixes this one")
    if parent:
        _check_parent(task, parent)
    else:
        parent = started_from(folder)
        try:
            _check_parent(task, parent)
        except (NotFound, UsageError):
            parent = ""  # the folder comes from another machine or network, or its task is another one by now
    return Idea(task, task.program.decode(), parent, hypothesis, replicate)


def _check_parent(task: Task, parent: str) -> None:
    """Raise NotFound, AmbiguousId or UsageError where a parent names no run on the task in the log of this machine."""
    if parent not in ("", BASELINE):
        with open_desk() as desk:
            run_on(desk.log, task, parent, desk.me)


def repetition(idea: Idea) -> tuple[bytes, Run, int] | None:
    """The run of the same program with the same seed, which another one would repeat; and a seed that is free."""
    with open_desk() as desk:
        program = reseeded(idea.program, idea.replicate)
        number = seed_number(desk.log, idea.task, idea.program)
        digest, replicate = source_digest(program), number + idea.replicate
        run = run_before(desk.log, idea.task, digest, replicate=replicate, me=desk.me)
        seed = free_seed(desk, idea.task, source_digest(idea.program)) - number
        return None if run is None else (run, run_body(desk.log, run), max(1, seed))


def with_seeds(idea: Idea, seeds: int, *, again: bool) -> list[Idea]:
    """An idea with so many seeds: several are those that were not run yet, unless that is meant ``again``.

    Raises Refused where the one seed was run, or the program is a discovery of another participant.
    """
    numbered: Iterator[Idea] = (replace(idea, replicate=number) for number in itertools.count(idea.replicate))
    if seeds == 1 and not again:
        refuse_repetition(idea)
    elif not again:
        numbered = (each for each in numbered if repetition(each) is None)
    if not again:
        _refuse_copy(idea)
    return list(itertools.islice(numbered, seeds))


def refuse_repetition(idea: Idea) -> None:
    """Raise Refused where the same program was run with the same seed: it would give the same value."""
    previous = repetition(idea)
    if previous is None:
        return
    run, body, _ = previous
    came = RUN_STATUS_SENTENCES[RunStatus(body.status)] if body.value is None else value(body.value)
    raise Refused(
        f"this program was run with this seed before: {short_id(run)} “{one_line(body.title, 60)}”: {came}",
        hint=f"edit {program_files(idea.task)}; or take other seeds: --seeds 2; or run it all the same: --again",
    )


def _refuse_copy(idea: Idea) -> None:
    """Raise Refused where another participant published the program: a run that presents it anew marks its author."""
    digest = source_digest(idea.program)
    if idea.replicate or digest == source_digest(idea.task.baseline.decode()):
        return
    with open_desk() as desk:
        context, runs = trust_context(desk.log, desk.me), desk.log.runs.of_programs(idea.task.digest, [digest])
        others = [(at_ms, run, author) for _, _, at_ms, run, author in runs if author != desk.me]
        words = [whose(author, at_ms, context) for at_ms, _, author in others]
        is_own = len(others) < len(runs) or any(word.own for word in words)
        if is_own or not context.naming or not any(word.attested for word in words):
            return
        at_ms, run, author = min(others)
        who = person(participant_of(desk.log, author, at_ms))
    raise Refused(
        f"{who} published this program before: {short_id(run)}; a run that presents it anew is a copy",
        hint="--replicate 1 measures it again, which is none; or run it all the same: --again",
    )


def dead_end(idea: Idea) -> DeadEnd | None:
    """The dead end that an idea goes into again; None where there is none, or its hypothesis names a run of it."""
    with open_desk() as desk:
        plan = plan_of_idea(desk.log, desk.blobs, idea, author=desk.me or b"")
        return repeated_end(desk.log, desk.blobs, idea.task, plan, me=desk.me)


def refuse_dead_end(idea: Idea) -> None:
    """Raise Refused where an idea goes into a dead end again and does not say why it differs."""
    if end := dead_end(idea):
        raise Refused(
            f"this goes into a dead end again: {end.sentence}",
            hint=f"say why yours differs: --hypothesis 'unlike {short_id(end.runs[0])} …'; or run it: --anyway",
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
    # What differs stands first, since a title has room for its beginning only.
    differing = [name for name, values in grid.items() if len(values) > 1] or list(grid)
    for variant, number in sorted(missing, key=lambda pair: pair[1]) if client else ():
        values = ", ".join(f"{name} {setting_text(variant.settings[name])}" for name in differing)
        why = f"{values}: {idea.hypothesis}" if idea.hypothesis else values
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
    combinations, _ = variants(idea.task, idea.program, grid, seeds)
    programs = {variant.digest_of(number).hex() for variant in combinations for number in range(seeds)}
    queue = [each.name for each in client.ask(Node.proposals).queue if each.source_digest in programs]
    begun = [worker.proposal for worker in client.ask(Node.status).workers if worker.proposal]
    for name in (*begun, *queue):
        left = None if end is None else max(0.0, end - time.monotonic())
        if client.ended(name, seconds=left) is None:
            break
    with open_desk() as desk:
        for line in refreshed(desk, idea.task):
            say(line)
    return vary(idea, grid, seeds, None)


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
    _check_parent(loaded_task, parent)
    return Idea(loaded_task, program_text(place, loaded_task), parent, hypothesis)


def program_text(place: Path, task: Task) -> str:
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
