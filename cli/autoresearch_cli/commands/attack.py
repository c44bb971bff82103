"""``task attack``: a red team for the way in which a task is measured; ``task reports``: what others' came to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.ask import publishing, questions
from autoresearch.ask.acts.attack_reports import published_report
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import OfTask, PublishTaskRequest
from autoresearch.errors import AutoresearchError, NotFound, UsageError
from autoresearch.face.columns.column import person, short
from autoresearch.face.columns.people import REPORT_COLUMNS
from autoresearch.paths import typed_path
from autoresearch.run.attack.report import AttackReport, ComparedReport, HoleView, write_report
from autoresearch.task.folders import is_taken
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import brief, counted
from autoresearch_cli import home
from autoresearch_cli.acts.attacks import (
    MEND_DIFF,
    QUICK_SECONDS,
    SECONDS,
    Thinker,
    attack_here,
    compared,
    is_shipped,
    mended,
    programs_place,
    written_cheats,
)
from autoresearch_cli.acts.task_folders import named_folder
from autoresearch_cli.catalogue import Answered, CommandApp, Json, NamedTask, complete_reference, complete_task
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.rendering.output import paged, print_json, print_labelled, print_list, print_rows, say

app = CommandApp()
# So many attacks are named in a line; the report names all.
_NAMES = 5


@app.command(
    "task attack",
    ("autoresearch task attack .", "try all cheats on the task here"),
    ("autoresearch task attack ~/my-task --quick --publish", "the first half, within a minute, for all to read"),
    ("autoresearch task attack . --rounds 3 --mend", "three cheats by your model or agent, then a mend"),
    see="task reports, task new, task pin, publish task, node doctor task",
)
def attack(  # noqa: PLR0913 - each is an option of the command
    folder: NamedTask = "",
    *,
    quick: Annotated[bool, typer.Option("--quick", help="The first half of the attacks, within a minute.")] = False,
    only: Annotated[str, typer.Option("--only", metavar="NAME", help="This attack alone.")] = "",
    programs: Annotated[
        list[str] | None,
        typer.Option("--program", metavar="FILE", help="A cheat of yours alone, as a file or folder; repeatable."),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="N", min=0, max=100, help="N cheats by your model or agent alone."),
    ] = 0,
    mend: Annotated[
        bool, typer.Option("--mend", help="Then have your model or agent mend the fixed files, in a copy.")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", min=5, max=86_400, help="How long. Left out: 300, or 60."),
    ] = None,
    keep: Annotated[
        str,
        typer.Option("--keep", metavar="FOLDER", help="A new folder for programs. Left out: .autoresearch/attacks."),
    ] = "",
    publish: Annotated[bool, typer.Option("--publish", help="Publish the report beside the task.")] = False,
    json: Json = False,
) -> None:
    """Try programs that do no honest work on a task: does one get a better number than its baseline?

    Each runs in the sandbox and is measured as a run is. The report is attack.json in the task's folder. The exit
    status is 1 where an attack got through, and 0 where all held. Published reports of the task are compared with it.
    A cheat of yours that got through is tried each time after.

    With --rounds the daemon asks your model or agent (llm.model, agent.command) for one cheat after the other. Each is
    told what came of those before. With --mend it writes fixed files with which none of what got through does so, and
    the baseline still has a value. They lie in .autoresearch/mended, and your files stay as they are.
    """
    task = load_task(named_folder(folder) if folder else home.task_folder(""))
    is_part = bool(only or programs or rounds)
    _check_options(task, rounds=bool(rounds), others=bool(only or programs or quick), publish=publish, part=is_part)
    if mend:
        home.client().ask(Node.status)  # it writes the mend: said before minutes of attacks
    place = _place_for_programs(task, keep)
    seconds, cheats = budget or (QUICK_SECONDS if quick else SECONDS), written_cheats(task, programs or [])
    more = Thinker(task, rounds).cheat if rounds else None
    report = attack_here(task, quick=quick, only=only, seconds=seconds, place=place, cheats=cheats, more=more)
    if not is_part and not is_shipped(task):
        write_report(task.folder, report)
    fix = mended(task, report, seconds) if mend and report.through else None
    try:
        others = compared(report)
    except AutoresearchError as error:  # what was found is told all the same
        say(f"published reports can't be read: {error.with_hint}")
        others = []
    report = msgspec.structs.replace(report, others=others, mended=fix)
    if publish:
        home.ask(publishing.publish_task, PublishTaskRequest(task=str(task.folder), attacked=True))
    if json:
        print_json(report)
    else:
        _tell(report)
        for other in report.others:
            say(f"beside {short(other.id)} by {person(other.participant)}: {_compared(other)}")
        if fix:
            say(f"no cheat gets through {fix.folder}, where the baseline's {report.metric} is {brief(fix.baseline)}")
            diff = shlex.quote(f"{fix.folder}/{MEND_DIFF}")
            say(f"read {diff}, then: patch -p1 -d {shlex.quote(str(task.folder))} < {diff}")
        elif report.holes:
            again = shlex.join(filter(None, ["autoresearch", "task", "attack", folder]))
            say(f"→ mend {counted(len(report.holes), 'hole')}, then: {again}")
        else:
            say("it says nothing of attacks that were not tried; a person may know more")
        if publish:
            say(f"the report is published → autoresearch task reports {report.digest[:12]}")
    raise typer.Exit(1 if report.through else 0)


@app.command(
    "task reports",
    ("autoresearch task reports moons", "who attacked this task, and what held"),
    ("autoresearch task reports moons --read g3xk", "one report, attack by attack"),
    ("autoresearch task reports moons --json | jq -r .sentence", "what they come to, in a line"),
    see="task attack, task show, publish task, challenge show",
)
def reports(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="A task's name, digest or folder. Left out: the one here, or worked on last.",
            autocompletion=complete_task,
        ),
    ] = "",
    *,
    read: Annotated[
        str,
        typer.Option("--read", metavar="ID", help="Read this report whole.", autocompletion=complete_reference),
    ] = "",
) -> Answered:
    """What participants found when they attacked a task. Reports of unattested participants count nowhere."""
    if read:
        with open_desk() as desk:
            record = desk.log.records.get(desk.record(read))
            report = with_blobs(lambda: published_report(desk.log, desk.blobs, record))
        yield report
        _tell(report)
        say(f"→ does it end so here, too? autoresearch task attack {report.digest[:12]}")
        return
    is_folder = "/" in task or (task and typed_path(task).exists())
    digest = load_task(home.existing_folder(task)).digest.hex() if is_folder else home.task_meant(task)
    try:
        answer = home.ask(questions.attacks, OfTask(task=digest))
    except NotFound:
        if not is_folder:
            raise
        hint = f"autoresearch task attack {shlex.quote(task)} --publish"
        raise NotFound(f"nobody published the task of {task} or a report on it", hint=hint) from None
    yield answer
    with paged():
        print_list(REPORT_COLUMNS, answer.reports, now_ms=home.now_ms())
    if answer.self_reported:
        say(f"the number of {answer.task} is self-reported: the program prints it, so an edit could print any")
    say(answer.sentence or f"no attested participant published a report of attacks on {answer.task}")
    typed = shlex.quote(task) if is_folder else answer.digest[:12]  # what was tried in a folder is tried there again
    say(f"→ autoresearch task attack {typed}{'' if answer.reports else ' --publish'}")


def _check_options(task: Task, *, rounds: bool, others: bool, publish: bool, part: bool) -> None:
    """Raises UsageError where options contradict each other, or a ``part`` of a report is to be published."""
    if rounds and others:
        raise UsageError(
            "--rounds tries cheats of your model or agent alone", hint="leave out --only, --program, --quick"
        )
    if publish and (part or is_shipped(task)):
        what = "one attack is no report" if part else f"{task.folder} comes with the program"
        hint = (
            "leave out --only, --program and --rounds"
            if part
            else f"autoresearch task get {task.name}, then: task attack {task.name}/"
        )
        raise UsageError(f"{what}, so it can't be published", hint=hint)


def _place_for_programs(task: Task, keep: str) -> Path:
    if not keep:
        return programs_place(task)
    place = typed_path(keep).absolute()
    if is_taken(place):
        raise UsageError(f"{place} holds something already", hint="give a new folder")
    return place


def _tell(report: AttackReport) -> None:
    for hole in report.holes:
        print_labelled(_lines(report, hole))
    rows = [(row.result, row.name, row.by or row.why) for row in report.rows if row.result == "through"]
    untried = [row for row in report.rows if row.result == "not tried"]
    refused: dict[str, int] = {}
    for row in report.rows:
        if row.result == "held":
            refused[row.by or "its value was no better"] = refused.get(row.by or "its value was no better", 0) + 1
    print_rows([*rows, *(("held", str(number), by) for by, number in sorted(refused.items()))])
    reasons: dict[str, list[str]] = {}
    for row in untried:
        reasons.setdefault(row.why, []).append(row.name)
    print_rows([("not tried", str(len(names)), f"{why}: {_some(names)}") for why, names in reasons.items()])
    say(f"{report.sentence}; the baseline's {report.metric} is {brief(report.baseline)}, in {report.seconds:.0f} s")


def _compared(other: ComparedReport) -> str:
    if other.why:
        return other.why
    if not other.differing:
        return f"{counted(other.both, 'attack')} tried by both ended alike"
    return f"of {counted(other.both, 'attack')} tried by both {len(other.differing)} differ: {_some(other.differing)}"


def _some(names: list[str]) -> str:
    return ", ".join([*names[:_NAMES], *(["…"] if len(names) > _NAMES else [])])


def _lines(report: AttackReport, hole: HoleView) -> list[tuple[str, str]]:
    gain = "" if hole.gain is None or hole.value is None else f"{brief(hole.value)} instead of {brief(report.baseline)}"
    lines = [
        ("hole", hole.sentence),
        ("by", f"{counted(len(hole.attacks), 'attack')}: {_some(hole.attacks)}"),
        ("value", gain),
        ("program", hole.folder),
        ("mend", hole.mend),
    ]
    return [(label, text) for label, text in lines if text]
