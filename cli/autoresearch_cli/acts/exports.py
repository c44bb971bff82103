"""A task's runs for other programs: a git repository, once or as records come.

Also a file or folder of an extension's format; pages that a browser opens without a server.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import NoReturn

import typer

from autoresearch.ask.desk import Desk
from autoresearch.ask.lookup import FoundTask, task_of
from autoresearch.ask.people.evidence import credit_answer
from autoresearch.ask.people.voters import voters_answer
from autoresearch.ask.requests import MAXIMUM_ROWS, RunsOf
from autoresearch.ask.runs.answers import BestAnswer, PathAnswer, RunsAnswer, TopAnswer
from autoresearch.ask.runs.boards import best_answer, top_answer
from autoresearch.ask.runs.diffs import diff_answer, effects_answer
from autoresearch.ask.runs.progress import progress_answer
from autoresearch.ask.runs.rows import path_answer, run_context_answer, runners_answer, runs_answer
from autoresearch.ask.show import show_answer
from autoresearch.beneath import write_beneath
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.extensions import ANEW, EXPORTS, load_extension
from autoresearch.face.exports.git import Exported, export_task
from autoresearch.face.exports.git_repository import exported_task, open_repository
from autoresearch.face.exports.result import ExportResult
from autoresearch.face.pages.boards import ProgressContent
from autoresearch.face.pages.chart import Query
from autoresearch.face.pages.rendering import Links, View, asset, asset_names, render
from autoresearch.face.pages.run import board_content, lineage_content, run_content
from autoresearch.paths import typed_path
from autoresearch.project.exchange.fetching import components_of_run
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.task.folders import is_taken
from autoresearch.text import MAXIMIZE, counted, one_line
from autoresearch_cli import home
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.models import ExportAnswer, GitExportAnswer, HtmlExportAnswer
from autoresearch_cli.rendering.output import print_json, say


def export_git(name: str, task: str, *, bare: bool, follow: bool, json: bool) -> None:
    """Write or update the repository and say what is new.

    Raises:
        Refused: the folder is not the task's repository; or main has to stay where it is, while all else is written.
        DaemonNotRunning: none runs that could be followed.
    """
    folder = typed_path(name).absolute()
    with open_desk() as desk:
        # The repository says which task it has.
        repository_task = exported_task(folder)
        digest = desk.task(task or (repository_task.hex() if repository_task else "")).digest
        if follow:
            _follow(desk, folder, digest, bare=bare, json=json)
        export = _update(desk, folder, digest, bare=bare)
    _tell(folder, digest, export, json=json)
    if export.refusal and not json:
        raise export.refusal
    if export.refusal:  # the document has it already
        say(f"{export.refusal}\n→ {export.refusal.hint}")
        raise typer.Exit(export.refusal.exit_status)
    if not json:
        say(f"→ git -C {quote(name)} runs, or how the best run came about: git -C {quote(name)} log -p main")


def _update(desk: Desk, folder: Path, digest: bytes, *, bare: bool) -> Exported:
    def once() -> Exported:
        with open_repository(folder, digest, desk.log.network.id, bare=bare) as repository:
            return export_task(desk.log, desk.blobs, repository, digest, me=desk.me, now_ms=home.now_ms())

    return with_blobs(once)


def _follow(desk: Desk, folder: Path, digest: bytes, *, bare: bool, json: bool) -> NoReturn:
    """Update at first, and again after each event that is later than the begin of the last update."""
    with home.client().events() as stream:
        begin_ms, last_refusal = -1, ""
        for event in chain([None], stream):
            if event is not None and (event.kind == "progress" or event.time_ms < begin_ms):
                continue
            is_first, begin_ms = begin_ms < 0, home.now_ms()
            export = _update(desk, folder, digest, bare=bare)
            if is_first or export.changed:
                _tell(folder, digest, export, json=json)
            if export.refusal and str(export.refusal) != last_refusal:
                say(f"{export.refusal}; {export.refusal.hint}")
            last_refusal = str(export.refusal or "")
    raise DaemonNotRunning("the daemon has ended", hint="autoresearch up, then export again")


def _tell(folder: Path, digest: bytes, export: Exported, *, json: bool) -> None:
    if json:
        print_json(
            GitExportAnswer(
                folder=str(folder),
                task=digest.hex(),
                runs=export.runs,
                commits=export.commits,
                missing=export.missing,
                waiting=export.waiting,
                main=format_id(export.main) if export.main else None,
                refusal=str(export.refusal or ""),
            )
        )
        return
    main = f"main is {short_id(export.main)}" if export.main else "no run has a value yet"
    say(f"{counted(export.commits, 'new commit')}, {counted(export.runs, 'run')} in {folder}; {main}")
    if export.missing:
        after = f", nor {counted(export.waiting, 'run')} after them" if export.waiting else ""
        say(f"{counted(export.missing, 'run')} left out, whose source is not on this machine{after}")
    elif export.waiting:
        say(f"{counted(export.waiting, 'run')} left out, whose parent run is not in the log")
    if export.best != export.main and export.best:
        say(f"the best run, {short_id(export.best)}, is among those")


def export_with(form: str, name: str, task: str, *, hidden: bool, json: bool) -> None:
    """Have the extension ``form`` write the runs of one task, or of all, into a file or a new folder.

    ``hidden``: those too that are hidden here. It appears when it is whole; an earlier file is replaced then.

    Raises:
        NotFound: there is no such format or task.
        Refused: there is a folder with other files; or the extension fails.
        UsageError: it can't be written.
    """
    write = load_extension(EXPORTS, form)
    place = typed_path(name).absolute()
    if place.is_dir() and is_taken(place):
        raise Refused(f"{place} exists already", hint="give a new folder")
    if not place.parent.is_dir():
        raise UsageError(f"{place.parent} is no folder", hint="make it, or name another")
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    except OSError as error:
        raise UsageError(f"{place} can't be written: {error.strerror}", hint="check the folder") from error
    try:
        with open_desk() as desk, desk.log.hidden.included() if hidden else nullcontext():
            digests = dict.fromkeys(row.digest for row in desk.log.tasks.all(visible=True))
            all_tasks = (task_of(desk.log, digest) for digest in digests)
            tasks = [desk.task(task)] if task else [each for each in all_tasks if each]
            written = write(desk, tasks, beside / "new", place) if callable(write) else None
        if not isinstance(written, ExportResult):
            raise Refused(f"the extension {form} says nothing of what it wrote", hint=ANEW)
        if place.is_file() and (beside / "new").is_dir():
            raise Refused(f"{place} is a file", hint="give a new folder")
        (beside / "new").replace(place)
    except AutoresearchError:
        raise
    except OSError as error:
        raise UsageError(f"{place} can't be written: {error.strerror}", hint="check the folder") from error
    except Exception as error:  # code of others may raise anything
        sentence = one_line(f"the extension {form} failed: {type(error).__name__}: {error}", 300)
        raise Refused(sentence, hint=f"{ANEW}, or choose another format") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if json:
        print_json(ExportAnswer(file=name, format=form, runs=written.runs))
        return
    say(f"{counted(written.runs, 'run')} of {counted(len(tasks), 'task')} written to {place}")
    for step in written.next_steps:
        say(f"→ {step}")


FIRST, ASSETS, RUN = "index.html", "assets", "run-*.html"
# So many runs have a page of their own; the daemon has all.
RUNS_MOST = 50
# An export needs no server, and so nothing that talks to one.
SERVED = frozenset({"htmx.min.js"})


def export_pages(name: str, task: str, *, json: bool) -> None:
    """Write the pages and say what is there.

    Raises:
        NotFound: there is no such task.
        Refused: the folder has other files.
    """
    folder = typed_path(name).absolute()
    _check(folder)
    with open_desk() as desk:
        gathered = _gather(desk, desk.task(task))
        pages = dict(_pages(desk, gathered))
    _write_pages(folder, pages)
    runs = len(gathered.named)
    if json:
        print_json(HtmlExportAnswer(folder=str(folder), task=gathered.task.digest.hex(), pages=len(pages), runs=runs))
        return
    say(f"{counted(len(pages), 'page')} written to {name}, of them {counted(runs, 'run')}")
    say(f"→ open {quote(str(folder / FIRST))} in a browser")


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What several pages show. ``named`` are the runs with a page of their own."""

    task: FoundTask
    best: BestAnswer
    runs: RunsAnswer
    top: TopAnswer
    path: PathAnswer | None
    named: list[str]


def _gather(desk: Desk, task: FoundTask) -> _Gathered:
    log, blobs = desk.log, desk.blobs
    best, top = best_answer(log, task), top_answer(log, task, limit=MAXIMUM_ROWS)
    runs = runs_answer(log, blobs, task, Query().runs())
    program = best.task.best
    path = path_answer(log, blobs, parse_id(program.id)) if program else None
    named = [
        *(step.row.id for step in reversed(path.steps if path else ()) if not step.row.hidden),
        *(leader.id for leader in top.programs[:20]),
        *(row.id for row in runs.runs),
    ]
    return _Gathered(task, best, runs, top, path, list(dict.fromkeys(named))[:RUNS_MOST])


def _pages(desk: Desk, gathered: _Gathered) -> Iterator[tuple[str, str]]:
    """Names of files with their content. What says “you” is left out: others read it."""
    links = Links(exported=True, runs=frozenset(gathered.named))

    def page(template: str, which: str, values: dict[str, object]) -> str:
        status = gathered.runs.task
        view = View(page=which, links=links, now_ms=home.now_ms(), task=status, tasks=[status], read_only=True)
        return render(template, view, **values)

    yield FIRST, page("progress.html", "progress", _progress(desk, gathered).values())
    yield "board.html", page("board.html", "board", _board(desk, gathered))
    lineage: dict[str, object] = lineage_content(gathered.path) if gathered.path else {"of": ""}
    yield "lineage.html", page("lineage.html", "lineage", lineage)
    for run in gathered.named:
        yield f"run-{short_id(parse_id(run))}.html", page("run.html", "run", _run(desk, gathered, run))


def _progress(desk: Desk, gathered: _Gathered) -> ProgressContent:
    log, blobs, task, query = desk.log, desk.blobs, gathered.task, Query()
    steps = gathered.path.steps if gathered.path else []
    return ProgressContent(
        query=query,
        runs=gathered.runs,
        progress=progress_answer(log, blobs, task, query.all_progress()),
        newest=runs_answer(log, blobs, task, query.newest()).runs,
        best=gathered.best,
        best_row=steps[-1].row if steps else None,
        runners=runners_answer(log, task).runners,
    )


def _board(desk: Desk, gathered: _Gathered) -> dict[str, object]:
    log, blobs, task, top = desk.log, desk.blobs, gathered.task, gathered.top
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    rows = runs_answer(log, blobs, task, RunsOf(sort=sort, size=MAXIMUM_ROWS)).runs
    voters = voters_answer(log, None, home.now_ms())
    return board_content(top, {row.id: row for row in rows}, credit_answer(log, task=task), voters)


def _run(desk: Desk, gathered: _Gathered, run: str) -> dict[str, object]:
    log, blobs, record = desk.log, desk.blobs, parse_id(run)
    answer, context, diff = show_answer(log, record), None, None
    above = parse_id(answer.run.run.parent) if answer.run and answer.run.run.parent else None
    with suppress(NotFound):
        context = run_context_answer(log, blobs, record)
    with suppress(AutoresearchError):
        # Sources that are not here are not fetched: the page names the command that does.
        diff = diff_answer(log, blobs, above, record) if above else None
    components = components_of_run(desk, record) if answer.budget_unit == "episodes" else []
    content = run_content(
        answer,
        context=context,
        effects=effects_answer(log, gathered.task),
        parent=show_answer(log, above) if above else None,
        task=gathered.runs.task,
        diff=diff,
    )
    return {**content, "components": components}


def _check(folder: Path) -> None:
    """An export goes into a new folder, an empty one, or over an earlier export."""
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is a file", hint="name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not _is_export(folder):
        raise Refused(f"{folder} has other files", hint="name a new folder, or that of an earlier export")


def _is_export(folder: Path) -> bool:
    return (folder / FIRST).is_file() and (folder / ASSETS / "chart.js").is_file()


def _write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Pages of runs that an earlier export had and this one has not are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in set(asset_names()) - set(SERVED):
        file = asset(name)
        assert file is not None  # it was listed
        write_beneath(folder, f"{ASSETS}/{name}", file.content)
    for stale in folder.glob(RUN):
        if stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        write_beneath(folder, name, text.encode())
