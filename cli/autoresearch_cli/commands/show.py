"""``show``: one record. ``diff``: what a run changed. ``run lineage``: its ancestors. ``node records``: the newest."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.requests import Difference, OneRecord, RecordsOf
from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.runs import LINEAGE_COLUMNS, RECORD_COLUMNS
from autoresearch.paths import typed_path
from autoresearch.record.kinds import KINDS
from autoresearch.text import did_you_mean, json_text, parse_duration, size
from autoresearch.words import CONTESTED, RUN_MODES
from autoresearch_cli import catalogue, home
from autoresearch_cli.models import FieldAnswer, TextAnswer
from autoresearch_cli.rendering.credit import how_to_check
from autoresearch_cli.rendering.output import paged, print_diff, print_exactly, print_json, print_list, say, say_hidden
from autoresearch_cli.rendering.records import print_record

if TYPE_CHECKING:
    from autoresearch.ask.desk import Desk

# What came of a checkpoint in this time is kept, and the next call goes on from there.
CHECKPOINT_SECONDS = 600.0

# Of the runs of agents that use a release.
USED_BY = 10

app = catalogue.CommandApp()


@app.command(
    "show",
    ("autoresearch show @", "the best run"),
    ("autoresearch show g3xk --code > train.py", "its source; any unique beginning of an id will do"),
    ("autoresearch show @mine --field metrics.steps", "one number, nothing else"),
    see="diff, run lineage, node records, top",
)
def show(
    reference: catalogue.Reference,
    *,
    code: Annotated[bool, typer.Option("--code", help="Print the run's program, and nothing else.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print what the run printed, and nothing else.")] = False,
    checkpoint: Annotated[
        str,
        typer.Option("--checkpoint", metavar="FILE", help="Write the run's checkpoint (safetensors) to a new file."),
    ] = "",
    field: Annotated[
        str, typer.Option("--field", metavar="NAME", help="Print one field, like value, title or metrics.steps.")
    ] = "",
    task: catalogue.Task = "",
    json: catalogue.Json = False,
) -> None:
    """One record, whole: for a run its numbers, where it ran, its source and what it printed."""
    if code + log + bool(field) + bool(checkpoint) > 1:
        raise UsageError("--code, --log, --checkpoint and --field can't be combined", hint="ask for one at a time")
    request = OneRecord(id=reference, task=home.task_meant(task, reference))
    if checkpoint:
        _save_checkpoint(request, typed_path(checkpoint), json=json)
        return
    if code or log:
        _show_text(request, "code" if code else "log", json=json)
        return
    try:
        answer = home.ask(questions.record, request)
    except (NotFound, UsageError) as error:
        raise (_unpublished(reference) or error) from None
    if answer.release or answer.budget_unit == "episodes":
        answer = _with_components(answer)
    if field:
        _show_field(answer, field, json=json)
    elif json:
        print_json(answer)
    else:
        with paged():
            print_record(answer, now_ms=home.now_ms())
        say(f"→ {_next_step(answer)}")


def _unpublished(reference: str) -> NotFound | None:
    """What to say where a run of the project in this folder is meant."""
    from autoresearch.project.model import INI, load_project
    from autoresearch.project.runs.kept import find_run

    if not Path(INI).is_file():
        return None
    try:
        run = find_run(load_project(Path()), reference)
    except AutoresearchError:
        return None
    reason = f"{run.id} is a run of this project alone, not of the log; its files are in {run.folder}"
    return NotFound(reason, hint=f"autoresearch publish {run.id}")


def _with_components(answer: ShowAnswer) -> ShowAnswer:
    """A release with the best runs of the agents that use it; a run of an agent with the components that it uses."""
    from autoresearch.project.exchange.fetching import boards_with, components_of_run  # most records are neither
    from autoresearch.record.encoding import parse_id
    from autoresearch_cli.local_log import open_desk

    name = answer.record.id
    with open_desk() as desk:
        if answer.run:
            return msgspec.structs.replace(answer, components=components_of_run(desk, parse_id(name)))
        boards, _ = boards_with(desk, lambda used: any(pins.get("release") == name for pins in used.values()))
    used_by = [row for board in boards for row in board.programs][:USED_BY]
    return msgspec.structs.replace(answer, used_by=used_by)


def _next_step(answer: ShowAnswer) -> str:
    """What to type next: how to check what is held against a run or its author, else what else there is to see."""
    state, record = answer.verification.state if answer.verification else "", short(answer.record.id)
    own = home.own_device() if answer.forked else None
    if own is not None and own.public.hex() == answer.record.author:
        return "autoresearch node id merge ends the fork of this device"
    if state in CONTESTED:
        return f"autoresearch run evidence {record} checks why it is {state}"
    if answer.record.kind == "verification":
        return f"autoresearch run evidence {record} measures the run again here"
    if answer.forked:
        return f"autoresearch run evidence --kind fork --participant {answer.record.participant.short}"
    if answer.verification and (check := how_to_check(answer.verification.marks)):
        return check
    if answer.release:
        return f"autoresearch search --type {answer.release.type} lists others"
    if answer.run and answer.run.run.mode in RUN_MODES:
        return f"autoresearch get {record} DIR"
    if answer.run:
        return "autoresearch diff ID, autoresearch run lineage ID, autoresearch show ID --code"
    return "autoresearch node records"


def _show_text(request: OneRecord, what: str, *, json: bool) -> None:
    content = home.ask(questions.source if what == "code" else questions.training_log, request)
    if json:
        print_json(TextAnswer(id=home.ask(questions.record, request).record.id, what=what, text=str(content)))
    else:
        with paged():
            print_exactly(content)


def _save_checkpoint(request: OneRecord, file: Path, *, json: bool) -> None:
    if file.exists():
        raise Refused(f"{file} exists already", hint="give a new file")
    # The other uses of this command load nothing that reads a log, where a daemon runs.
    from autoresearch.ask.runs.diffs import run_checkpoint
    from autoresearch.record.encoding import format_id
    from autoresearch_cli.local_log import open_desk

    with open_desk() as desk:
        run = desk.record(request.id, request.task)
        blob = run_checkpoint(desk.log, run)
        if not desk.blobs.has(blob.sha256):
            say(f"fetching {size(blob.size)} from other nodes …")
        _write_checkpoint(desk, run, file)
    if json:
        print_json(FieldAnswer(id=format_id(run), name="checkpoint", value=str(file)))
    else:
        say(f"{size(blob.size)} written to {file}")


def _write_checkpoint(desk: Desk, run: bytes, file: Path) -> None:
    from autoresearch.ask.runs.diffs import open_checkpoint
    from autoresearch_cli.local_log import with_blobs

    opened = with_blobs(lambda: open_checkpoint(desk.log, desk.blobs, run), seconds=CHECKPOINT_SECONDS)
    with opened as content:
        try:
            with file.open("xb") as target:
                shutil.copyfileobj(content, target)
        except FileExistsError as error:
            raise Refused(f"{file} exists already", hint="give a new file") from error
        except OSError as error:
            raise UsageError(f"{file} can't be written: {error.strerror}", hint="check the folder") from error


def _show_field(answer: ShowAnswer, name: str, *, json: bool) -> None:
    by_name = fields(answer)
    value: object = by_name
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            hint = did_you_mean(name, by_name) or f"fields: {', '.join(sorted(by_name))}"
            raise UsageError(f"this {answer.record.kind} has no field {name}", hint=hint)
        value = value[part]
    if json:
        print_json(FieldAnswer(id=answer.record.id, name=name, value=value))
        return
    text = value if isinstance(value, str) else json_text(value)
    print_exactly(text if text.endswith("\n") else text + "\n")


def fields(answer: ShowAnswer) -> dict[str, object]:
    """All fields by name; where several have one name, the run's wins over the record's over the body's."""
    by_name = dict(answer.body)
    by_name |= msgspec.to_builtins(answer.record)
    if answer.run:
        by_name |= msgspec.to_builtins(answer.run.standing) | msgspec.to_builtins(answer.run.run)
    return by_name


@app.command(
    "diff",
    ("autoresearch diff @", "what the best run changed against its parent"),
    ("autoresearch diff @~3 @", "the last three steps together"),
    ("autoresearch diff @ > change.patch", "as a patch"),
    see="show, run lineage, best",
)
def diff(
    reference: catalogue.Reference,
    other: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The newer run. Left out: the first one against its parent.",
            autocompletion=catalogue.complete_reference,
        ),
    ] = "",
    *,
    task: catalogue.Task = "",
) -> catalogue.Answered:
    """The change of the program between two runs, with their values and the constants that differ."""
    old, new = (reference, other) if other else (None, reference)
    answer = home.ask(questions.diff, Difference(old=old, new=new, task=home.task_meant(task, reference, other)))
    yield answer
    with paged():
        print_diff(answer)
    if not answer.diff:
        say("the sources are the same")
    if answer.episodes:
        say(f"training episodes: {' → '.join(f'{amount:.10g}' for amount in answer.episodes)}")


@app.command(
    "run lineage",
    ("autoresearch run lineage @", "how the best run came about"),
    ("autoresearch run lineage @mine", "how your best came about"),
    ("autoresearch run lineage @ --json", "the same for a program"),
    see="diff, show, top",
)
def lineage(reference: catalogue.Reference, *, task: catalogue.Task = "") -> catalogue.Answered:
    """The steps from the baseline to a run, each with what it gained."""
    answer = home.ask(questions.lineage, OneRecord(id=reference, task=home.task_meant(task, reference)))
    yield answer
    print_list(LINEAGE_COLUMNS, answer.steps)
    say("→ autoresearch diff ID shows one step")


def complete_kind(incomplete: str) -> list[str]:
    """Kinds that begin so."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


@app.command(
    "node records",
    ("autoresearch node records", "the twenty newest records"),
    ("autoresearch node records --kind run --mine -n 50", "what this machine ran"),
    ("autoresearch node records --where 'value<1.1' --since 2d", "good runs of the last two days"),
    see="show, top, node events, run export",
)
def log(  # noqa: PLR0913 - one for each way to choose
    *,
    kind: Annotated[
        str, typer.Option("--kind", help="Only this kind: run, claim, note, task …", autocompletion=complete_kind)
    ] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100_000, help="How many.")] = 20,
    mine: Annotated[bool, typer.Option("--mine", help="Only those of this machine.")] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="Also the claims: intentions to try a change, one before each run.")
    ] = False,
    task: Annotated[
        str, typer.Option("--task", metavar="NAME", help="Only of this task.", autocompletion=catalogue.complete_task)
    ] = "",
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="Only of the last 90s, 30m, 2h, 3d.")] = "",
    starred: Annotated[bool, typer.Option("--starred", help="Only those that you starred here.")] = False,
    hidden: catalogue.Hidden = False,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="CONDITION", help="Only runs with value<1.1, status=crashed, title~warm-up."),
    ] = None,
) -> catalogue.Answered:
    """The newest records of the log, from all nodes."""
    if kind and kind not in KINDS:
        raise UsageError(f"there is no kind of record {kind!r}", hint=f"kinds: {', '.join(KINDS)}")
    if mine and home.own_device() is None:
        raise NotFound("this machine has no key yet, so nothing is its own", hint="autoresearch node id new")
    request = RecordsOf(
        kind=kind or None,
        author="me" if mine else None,
        task=task or None,
        limit=limit,
        claims=claims or kind == "claim",
        since_ms=home.now_ms() - parse_duration(since) if since else 0,
        where=where or [],
        starred=starred,
        hidden=hidden,
    )
    answer = home.ask(questions.records, request)
    yield answer
    with paged():
        print_list(RECORD_COLUMNS, answer.records, now_ms=home.now_ms())
    say_hidden(answer.hidden, "record")
    if answer.records:
        say("→ autoresearch show ID")
    elif starred:
        say("→ nothing is starred: autoresearch run star ID")
    elif kind or mine or task or since or where:
        say("nothing in the log is like that")
    else:
        say(f"the log is empty → {home.next_run()}")
