"""A task's runs for other programs: a file, folder or repository of an extension's format, once or as records come.

Also pages that a browser opens without a server.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import NamedTuple, NoReturn

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
from autoresearch.extensions import ANEW, EXPORTS, guard_extension, load_extension
from autoresearch.face.exports.result import ExportResult, UpdatedExport, UpdateResult
from autoresearch.face.pages.boards import ProgressContent
from autoresearch.face.pages.chart import Query
from autoresearch.face.pages.rendering import Links, View, asset, asset_names, render
from autoresearch.face.pages.run import board_content, lineage_content, run_content
from autoresearch.paths import output_path, put_folder, typed_path
from autoresearch.project.exchange.fetching import components_of_run
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.task.folders import is_taken
from autoresearch.text import MAXIMIZE, counted, json_text
from autoresearch_cli import home
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.models import ExportAnswer, HtmlExportAnswer
from autoresearch_cli.rendering.output import print_json, say


def export_with(form: str, name: str, task: str, *, hidden: bool, follow: bool, json: bool) -> None:
    """Have the extension ``form`` write the runs of one task, or of all, to a place.

    ``hidden``: those too that are hidden here. ``follow``: go on as records come; only some formats can.

    Raises:
        NotFound: there is no such format or task.
        Refused: there are other files; a part of the place has to stay as it is; or the extension fails.
        UsageError: it can't be written, or the format can't be followed.
        DaemonNotRunning: none runs that could be followed.
    """
    extension = load_extension(EXPORTS, form)
    place = typed_path(name).absolute()
    with open_desk() as desk, desk.log.hidden.included() if hidden else nullcontext():
        if isinstance(extension, UpdatedExport):
            _update(_Updating(desk, form, extension, place), task, follow=follow, json=json)
            return
        if follow:
            raise UsageError(f"--format {form} can't be followed", hint="leave out --follow")
        digests = dict.fromkeys(row.digest for row in desk.log.tasks.all(visible=True))
        all_tasks = (task_of(desk.log, digest) for digest in digests)
        tasks = [desk.task(task)] if task else [each for each in all_tasks if each]
        written = _write(desk, form, extension, tasks, output_path(name, or_folder=True))
    if json:
        print_json(ExportAnswer(file=name, format=form, runs=written.runs))
        return
    say(f"{counted(written.runs, 'run')} of {counted(len(tasks), 'task')} written to {place}")
    for step in written.next_steps:
        say(f"→ {step}")


def _write(desk: Desk, form: str, extension: object, tasks: list[FoundTask], place: Path) -> ExportResult:
    """Write a file or a new folder. It appears when it is whole; an earlier file is replaced then."""
    if place.is_dir() and is_taken(place):
        raise Refused(f"{place} exists already", hint="give a new folder")
    with _errors_of(form, place):
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        try:
            written = extension(desk, tasks, beside / "new", place) if callable(extension) else None
            if not isinstance(written, ExportResult):
                raise Refused(f"the extension {form} says nothing of what it wrote", hint=ANEW)
            if place.is_file() and (beside / "new").is_dir():
                raise Refused(f"{place} is a file", hint="give a new folder")
            put_folder(beside / "new", place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return written


@contextmanager
def _errors_of(form: str, place: Path) -> Iterator[None]:
    """Name the extension in what it raises, and a place that can't be written."""
    with guard_extension(form):
        try:
            yield
        except OSError as error:
            raise UsageError(f"{place} can't be written: {error.strerror}", hint="check the folder") from error


class _Updating(NamedTuple):
    """An export that is brought up to date, and where."""

    desk: Desk
    form: str
    extension: UpdatedExport
    place: Path

    def once(self, task: bytes) -> UpdateResult:
        """Update the place; blobs that are not here are fetched."""
        with _errors_of(self.form, self.place):
            updated = with_blobs(lambda: self.extension.update(self.desk, task, self.place))
            if not isinstance(updated, UpdateResult):
                raise Refused(f"the extension {self.form} says nothing of what it wrote", hint=ANEW)
            json_text(updated.answer)
            "".join((*updated.lines, *updated.next_steps))
        return updated


def _update(updating: _Updating, task: str, *, follow: bool, json: bool) -> None:
    with _errors_of(updating.form, updating.place):
        # The place says which task it has.
        earlier = updating.extension.task(updating.place)
        reference = task or (earlier.hex() if earlier else home.task_meant(""))
    digest = updating.desk.task(reference).digest
    if follow:
        _follow(updating, digest, json=json)
    updated = updating.once(digest)
    _tell(updated, json=json)
    if updated.refusal and not json:
        raise updated.refusal
    if updated.refusal:  # the document has it already
        say(f"{updated.refusal}\n→ {updated.refusal.hint}")
        raise typer.Exit(updated.refusal.exit_status)
    if not json:
        for step in updated.next_steps:
            say(f"→ {step}")


def _follow(updating: _Updating, task: bytes, *, json: bool) -> NoReturn:
    """Update at first, and again after each event that is later than the begin of the last update."""
    with home.client().events() as stream:
        begin_ms, last_refusal = -1, ""
        for event in chain([None], stream):
            if event is not None and (event.kind == "progress" or event.time_ms < begin_ms):
                continue
            is_first, begin_ms = begin_ms < 0, home.now_ms()
            updated = updating.once(task)
            if is_first or updated.changed:
                _tell(updated, json=json)
            if updated.refusal and str(updated.refusal) != last_refusal:
                say(f"{updated.refusal}; {updated.refusal.hint}")
            last_refusal = str(updated.refusal or "")
    raise DaemonNotRunning("the daemon has ended", hint="autoresearch up, then export again")


def _tell(updated: UpdateResult, *, json: bool) -> None:
    if json:
        print_json(updated.answer)
        return
    for line in updated.lines:
        say(line)


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
    answer = write_pages(folder, task)
    if json:
        print_json(answer)
        return
    say(f"{counted(answer.pages, 'page')} written to {name}, of them {counted(answer.runs, 'run')}")
    say(f"→ open {quote(str(folder / FIRST))} in a browser")


def write_pages(folder: Path, task: str) -> HtmlExportAnswer:
    """Write the pages of a task. Raises as :func:`export_pages` does."""
    _check(folder)
    with open_desk() as desk:
        gathered = _gather(desk, desk.task(task))
        pages = dict(_pages(desk, gathered))
    _write_pages(folder, pages)
    digest, runs = gathered.task.digest.hex(), len(gathered.named)
    return HtmlExportAnswer(folder=str(folder), task=digest, pages=len(pages), runs=runs)


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
    is_export = (folder / FIRST).is_file() and (folder / ASSETS / "chart.js").is_file()
    if folder.is_dir() and any(folder.iterdir()) and not is_export:
        raise Refused(f"{folder} has other files", hint="name a new folder, or that of an earlier export")


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
