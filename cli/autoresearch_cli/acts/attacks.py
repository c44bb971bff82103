"""Attacks on a task from the command line: carried out here, and the quick half before a task is handed to others."""

from __future__ import annotations

import difflib
import hashlib
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import typer

from autoresearch.ask import questions
from autoresearch.ask.acts.attack_reports import compared_with, published_report
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import CheatRequest, OfTask
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound
from autoresearch.paths import typed_path
from autoresearch.record.encoding import parse_id
from autoresearch.run.attack.report import (
    AttackReport,
    AttackRow,
    ComparedReport,
    MendView,
    read_report,
    write_report,
)
from autoresearch.run.attack.target import ATTACKS_VERSION
from autoresearch.task.folder_state import STATE_FOLDER, write_files
from autoresearch.task.folders import copy_task, pin_baseline
from autoresearch.task.loading import MANIFEST, load_task, program_in, read_file, shipped_as
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest, split_program
from autoresearch.text import counted, latin
from autoresearch_cli import home
from autoresearch_cli.ideas import program_text
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.rendering.output import say

PROGRAMS = "attacks"
SECONDS, QUICK_SECONDS = 300.0, 60.0
# Before the name of a cheat that a person or an agent wrote.
_OWN = "own-"
# So many characters say what came of one cheat.
_RESULT = 1000
# So many published reports are held against an own one.
_COMPARED = 5
# A mend that does not hold is asked for again, so often in all; where the last one lies.
_MENDS, MENDED, MEND_DIFF = 3, "mended", "mend.diff"


def is_shipped(task: Task) -> bool:
    """Whether a task's folder is that which comes with the program: nobody's own, and perhaps not to be written."""
    return task.folder == shipped_as(task).folder


def programs_place(task: Task) -> Path:
    """Where programs that got through are kept: beside the task, or if that is nobody's own, in this node's state."""
    return (home.paths().state / "shipped" / task.name if is_shipped(task) else task.folder / STATE_FOLDER) / PROGRAMS


def written_cheats(task: Task, programs: Sequence[str]) -> dict[str, str]:
    """The cheats in these files and folders, by a name that two programs never share.

    Raises UsageError where one is no program of the task.
    """
    cheats = {}
    for each in programs:
        place = typed_path(each).absolute()
        is_folder = place.is_dir()
        text = program_in(place, task.recipe, task.harness).decode() if is_folder else program_text(place, task)
        cheats[_named(place.name if is_folder else place.stem, source_digest(text).hex())] = text
    return cheats


class Thinker:
    """Cheats on a task by the model or the agent of this node, one a round, as the daemon has them.

    Raises AutoresearchError where there is not even one.
    """

    def __init__(self, task: Task, rounds: int) -> None:
        self._task, self._left = task, rounds
        self._digests: list[str] = []
        self._first = self._next([])  # before anything runs: there may be no model

    def cheat(self, rows: Sequence[AttackRow]) -> tuple[str, str, str] | None:
        """The name, the program and the title of the next cheat, by what came of those before; None after the last."""
        self._left -= 1
        try:
            return self._first if not rows else self._next(rows) if self._left >= 0 else None
        except AutoresearchError as error:
            say(f"no further round: {error.with_hint}")
            return None

    def _next(self, rows: Sequence[AttackRow]) -> tuple[str, str, str]:
        results = (f"{row.does}: {row.result}, {row.why}"[:_RESULT] for row in rows)
        tried = dict(zip(self._digests, results, strict=True))
        answer = home.client().ask(Node.cheat, CheatRequest(task=str(self._task.folder), tried=tried))
        self._digests.append(answer.source_digest)
        say(f"{answer.proposer}: {answer.title}")
        return _named(answer.title, answer.source_digest), answer.program, answer.title


def _named(words: str, digest: str) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", latin(words).lower()).strip("-")[:40]
    return f"{_OWN}{stem or 'cheat'}-{digest[:6]}"


def kept_cheats(task: Task) -> dict[str, str]:
    """The cheats that got through before, by name. One that is no program of the task any more is left out, as said."""
    cheats: dict[str, str] = {}
    for place in sorted(programs_place(task).glob(f"{_OWN}*")):
        try:
            cheats[place.name] = program_in(place, task.recipe, task.harness).decode()
        except AutoresearchError as error:
            say(f"{place.name} is left out: {error}")
    return cheats


def attack_here(
    task: Task,
    *,
    quick: bool,
    only: str,
    seconds: float,
    place: Path,
    cheats: Mapping[str, str] | None = None,
    more: Callable[[Sequence[AttackRow]], tuple[str, str, str] | None] | None = None,
) -> AttackReport:
    """Attack a task on this machine, with progress on standard error: by ``cheats`` and ``more`` alone, if any.

    Raises:
        AutoresearchError: it can't be attacked here; the exit status is never 1.
    """
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
    next_line, rows = [0], list[AttackRow]()

    def say_progress(fraction: float, line: str) -> None:
        percent = round(100 * fraction)
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[K{percent:3d} %  {line}", nl=False, err=True)
        elif percent >= next_line[0]:
            next_line[0] = percent + 10
            say(f"{percent} %  {line}")

    def clear_line() -> None:
        if sys.stderr.isatty():
            typer.echo("\r\x1b[K", nl=False, err=True)

    try:
        with scratch_folder(paths.spool) as scratch:
            bench = make_bench_with_data(task, conditions, site, scratch.folder)
            is_alone = bool(cheats or more)
            programs = cheats or {} if is_alone else kept_cheats(task)
            think = more or (lambda _: None)
            orders = Orders(seconds, quick, only, place, programs, is_alone, think, say_progress, rows.append)
            return attack_task(task, bench, orders)
    except KeyboardInterrupt:
        clear_line()
        say(_interrupted(rows, place))
        raise
    except AutoresearchError as error:
        if error.exit_status != 1:
            raise
        raise CannotRunHere(str(error), hint=error.hint) from error  # 1 says that an attack got through
    finally:
        clear_line()


def _interrupted(rows: Sequence[AttackRow], place: Path) -> str:
    """What a person who ends it with Ctrl-C has of it."""
    tried = [row for row in rows if row.result != "not tried"]
    through = [row.name for row in tried if row.result == "through"]
    rest = f"their programs are kept in {place}, no report is written" if through else "nothing is kept"
    names = f": {', '.join(through)}" if through else ""
    return f"{counted(len(tried), 'attack')} tried, {len(through)} got through{names}; {rest}"


def mended(task: Task, report: AttackReport, seconds: float) -> MendView | None:
    """Fixed files by the model or the agent with which no cheat of a report gets through; None where none was written.

    The task's own files stay as they are.
    """
    through = {row.name: Path(row.folder) for row in report.rows if row.result == "through" and row.folder}
    holes = [f"{hole.sentence}. {hole.mend}\n{hole.diff}" for hole in report.holes]
    place, tried = programs_place(task).with_name(MENDED), dict[str, str]()
    try:
        for _ in range(_MENDS if through else 0):
            answer = home.client().ask(Node.cheat, CheatRequest(task=str(task.folder), tried=tried, holes=holes))
            say(f"{answer.proposer}: {answer.title}")
            shutil.rmtree(place, ignore_errors=True)
            try:
                copy_task(task, place)
                diff = _replace_fixed_files(task, place, split_program(answer.program))
                changed = load_task(place) if task.is_pinned else pin_baseline(place)
                cheats = {
                    name: program_in(folder, task.recipe, task.harness).decode() for name, folder in through.items()
                }
                again = attack_here(
                    changed, quick=False, only="", seconds=seconds, place=place / STATE_FOLDER / PROGRAMS, cheats=cheats
                )
            except AutoresearchError as error:
                why = str(error)
            else:
                passing = [row.name for row in again.rows if row.result != "held"]
                why = f"{', '.join(passing)} got through again" if passing else ""
            if not why:
                (place / MEND_DIFF).write_text(diff)
                return MendView(
                    title=answer.title,
                    why=answer.why,
                    proposer=answer.proposer,
                    folder=str(place),
                    diff=diff,
                    held=again.held,
                    baseline=again.baseline,
                )
            say(f"it does not hold: {why}")
            tried[answer.source_digest] = f"{answer.title}: {why}"[:_RESULT]
    except AutoresearchError as error:
        say(f"no mend: {error.with_hint}")
    shutil.rmtree(place, ignore_errors=True)
    return None


def _replace_fixed_files(task: Task, place: Path, files: Mapping[str, str]) -> str:
    """Put other fixed files into a copy of a task, which pins them. Returns what that changes, as a diff."""
    before = {MANIFEST: read_file(place, MANIFEST), **{name: task.harness[name] for name in files}}
    manifest = before[MANIFEST]
    for name, text in files.items():
        old, new = (hashlib.sha256(content).hexdigest() for content in (before[name], text.encode()))
        manifest = manifest.replace(old.encode(), new.encode())
    after = {MANIFEST: manifest, **{name: text.encode() for name, text in files.items()}}
    write_files(place, after)
    lines = {
        name: (before[name].decode().splitlines(keepends=True), after[name].decode().splitlines(keepends=True))
        for name in after
    }
    changes = (difflib.unified_diff(*lines[name], f"a/{name}", f"b/{name}") for name in after)
    return "".join(line for change in changes for line in change)


def attacked_before(task: Task, *, try_it: bool) -> str:
    """Have a report beside a task that others are to work on: that which is there, or the quick half is run now.

    Returns why there is none; empty where there is one.
    """
    if not try_it:
        return "left out by --no-attack"
    report = read_report(task.folder, task.digest.hex())
    if report is None or report.attacks != ATTACKS_VERSION:
        say(f"attacking {task.name}: at most {QUICK_SECONDS:.0f} s; --no-attack leaves it out")
        try:
            report = attack_here(task, quick=True, only="", seconds=QUICK_SECONDS, place=programs_place(task))
            write_report(task.folder, report)
        except AutoresearchError as error:
            return f"{error}"
    say("; ".join([report.sentence, *(hole.sentence for hole in report.holes)]))
    return ""


def compared(report: AttackReport) -> list[ComparedReport]:
    """The newest published reports on the same task beside an own one; those of attested participants first."""
    rows = []
    with open_desk() as desk:
        try:
            views = questions.attacks(desk, OfTask(task=report.digest)).reports
        except NotFound:  # nobody published it
            return []
        for view in views[:_COMPARED]:
            record = desk.log.records.get(parse_id(view.id))
            try:
                other = with_blobs(partial(published_report, desk.log, desk.blobs, record))
            except AutoresearchError as error:
                rows.append(ComparedReport(id=view.id, participant=view.participant, why=str(error)))
            else:
                rows.append(compared_with(report, view, other))
    return rows
