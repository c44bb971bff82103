"""``task attack``: a red team for the way in which a task is measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import AutoresearchError, CannotRunHere, UsageError
from autoresearch.paths import typed_path
from autoresearch.run.attack.report import AttackReport, HoleView, write_report
from autoresearch.task.folder_state import STATE_FOLDER
from autoresearch.task.folders import is_taken
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import brief, counted
from autoresearch_cli import home
from autoresearch_cli.catalogue import CommandApp, Folder, Json
from autoresearch_cli.rendering.output import print_json, print_labelled, print_rows, say

app = CommandApp()
# Beside the task's other state: the programs that got through.
PROGRAMS = "attacks"
# So many attacks are named in a line; the report names all.
_NAMES = 5
_SECONDS, _QUICK_SECONDS = 300.0, 60.0


@app.command(
    "task attack",
    ("autoresearch task attack .", "try at least 40 cheats on the task here"),
    ("autoresearch task attack ~/my-task --quick", "the first half, within a minute"),
    ("autoresearch task attack . --only says-a-number --keep cheat", "one of them, and its program"),
    see="task new, task pin, publish task, node doctor task",
)
def attack(
    folder: Folder = "",
    *,
    quick: Annotated[bool, typer.Option("--quick", help="The first half of the attacks, within a minute.")] = False,
    only: Annotated[str, typer.Option("--only", metavar="NAME", help="This attack alone.")] = "",
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", min=5, max=86_400, help="How long. Left out: 300, or 60."),
    ] = None,
    keep: Annotated[
        str,
        typer.Option("--keep", metavar="FOLDER", help="A new folder for programs. Left out: .autoresearch/attacks."),
    ] = "",
    json: Json = False,
) -> None:
    """Try programs that do no honest work on a task: does one get a better number than its baseline?

    Each runs in the sandbox and is measured as a run is. The report is attack.json in the task's folder. The exit
    status is 1 where an attack got through, and 0 where all held.
    """
    task = load_task(home.task_folder(folder))
    place = _place_for_programs(task, keep)
    report = _attacked(task, quick=quick, only=only, seconds=budget, place=place)
    if not only:
        write_report(task.folder, report)
    if json:
        print_json(report)
    else:
        _tell(report)
    raise typer.Exit(1 if report.through else 0)


def _place_for_programs(task: Task, keep: str) -> Path:
    if not keep:
        return task.folder / STATE_FOLDER / PROGRAMS
    place = typed_path(keep).absolute()
    if is_taken(place):
        raise UsageError(f"{place} holds something already", hint="give a new folder")
    return place


def _attacked(task: Task, *, quick: bool, only: str, seconds: float | None, place: Path) -> AttackReport:
    from autoresearch.run.attack.campaign import Orders, attack_task
    from autoresearch.run.bench import Ceiling
    from autoresearch.run.consent import check_reaches, reaches_of
    from autoresearch.run.folder import Conditions
    from autoresearch.run.runner import RunSite, make_bench_with_data
    from autoresearch.run.sandbox.job import Level
    from autoresearch.run.sandbox.probes import detect_level
    from autoresearch.run.sandbox.scratch import scratch_folder

    paths, work = home.paths(), home.settings().work
    check_reaches(task.folder, reaches_of(task), paths.allowed)
    level, _ = detect_level()
    conditions = Conditions(
        ceiling=Ceiling.of(work), threads=work.threads, device=home.first_device(), least_level=Level.LANDLOCK
    )
    paths.spool.mkdir(parents=True, exist_ok=True)
    site = RunSite(level, paths.task_data, paths.environments, paths.allowed)
    next_line = [0]

    def say_progress(fraction: float, line: str) -> None:
        percent = round(100 * fraction)
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[K{percent:3d} %  {line}", nl=False, err=True)
        elif percent >= next_line[0]:
            next_line[0] = percent + 10
            say(f"{percent} %  {line}")

    try:
        with scratch_folder(paths.spool) as scratch:
            bench = make_bench_with_data(task, conditions, site, scratch.folder)
            orders = Orders(seconds or (_QUICK_SECONDS if quick else _SECONDS), quick, only, place, say_progress)
            return attack_task(task, bench, orders)
    except AutoresearchError as error:
        if error.exit_status != 1:
            raise
        raise CannotRunHere(str(error), hint=error.hint) from error  # 1 says that an attack got through
    finally:
        if sys.stderr.isatty():
            typer.echo("\r\x1b[K", nl=False, err=True)


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
    if report.holes:
        say(f"→ mend {counted(len(report.holes), 'hole')}, then: autoresearch task attack")
    else:
        say("it says nothing of attacks that were not tried; a person may know more")


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
