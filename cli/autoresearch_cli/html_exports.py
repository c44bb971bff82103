"""A task's pages as files that a browser opens without a server: progress, board, lineage, runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from autoresearch.answers import (
    FoundTask,
    best_answer,
    credit_answer,
    diff_answer,
    effects_answer,
    show_answer,
    top_answer,
    voters_answer,
)
from autoresearch.api import MAXIMUM_ROWS, BestAnswer, PathAnswer, RunsAnswer, RunsOf, TopAnswer
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.figures import counted
from autoresearch.pages import (
    Links,
    ProgressContent,
    Query,
    View,
    asset,
    asset_names,
    best_program,
    board_content,
    lineage_content,
    render,
    run_content,
)
from autoresearch.paths import typed_path
from autoresearch.records import parse_id, short_id
from autoresearch.run_tables import path_answer, progress_answer, run_context_answer, runners_answer, runs_answer
from autoresearch_cli import here
from autoresearch_cli.models import HtmlExportAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.output import print_json, say

FIRST, ASSETS, RUN = "index.html", "assets", "run-*.html"
# So many runs have a page of their own; the daemon has all.
RUNS_MOST = 50
# An export needs no server, and so nothing that talks to one.
SERVED = frozenset({"htmx.min.js", "hx-sse.min.js"})


def export(name: str, task: str, *, json: bool) -> None:
    """Write the pages and say what is there.

    Raises:
        NotFound: there is no such task.
        Refused: the folder has other files.
    """
    folder = typed_path(name).absolute()
    _check(folder)
    with open_notebook() as notebook:
        gathered = _gather(notebook, notebook.task(task))
        pages = dict(_pages(notebook, gathered))
    _write(folder, pages)
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


def _gather(notebook: NotebookReader, task: FoundTask) -> _Gathered:
    log, blobs = notebook.log, notebook.blobs
    best, top = best_answer(log, task), top_answer(log, task, limit=MAXIMUM_ROWS)
    runs = runs_answer(log, blobs, task, Query().runs())
    program = best_program(best)
    path = path_answer(log, blobs, parse_id(program.id)) if program else None
    named = [
        *(step.row.id for step in reversed(path.steps if path else ())),
        *(one.id for one in top.programs[:20]),
        *(row.id for row in runs.runs),
    ]
    return _Gathered(task, best, runs, top, path, list(dict.fromkeys(named))[:RUNS_MOST])


def _pages(notebook: NotebookReader, gathered: _Gathered) -> Iterator[tuple[str, str]]:
    """Names of files with their content. What says “you” is left out: others read it."""
    links = Links(exported=True, runs=frozenset(gathered.named))

    def page(template: str, which: str, values: dict[str, object]) -> str:
        status = gathered.runs.task
        view = View(page=which, links=links, now_ms=here.now_ms(), task=status, tasks=[status], read_only=True)
        return render(template, view, **values)

    yield FIRST, page("progress.html", "progress", _progress(notebook, gathered).values())
    yield "board.html", page("board.html", "board", _board(notebook, gathered))
    lineage: dict[str, object] = lineage_content(gathered.path) if gathered.path else {"of": ""}
    yield "lineage.html", page("lineage.html", "lineage", lineage)
    for run in gathered.named:
        yield f"run-{short_id(parse_id(run))}.html", page("run.html", "run", _run(notebook, gathered, run))


def _progress(notebook: NotebookReader, gathered: _Gathered) -> ProgressContent:
    log, blobs, task, query = notebook.log, notebook.blobs, gathered.task, Query()
    steps = gathered.path.steps if gathered.path else []
    return ProgressContent(
        query=query,
        runs=gathered.runs,
        progress=progress_answer(log, blobs, task, query.all_progress()),
        newest=runs_answer(log, blobs, task, query.newest()).runs,
        best=gathered.best,
        best_row=steps[-1].row if steps else None,
        runners=runners_answer(log, blobs, task).runners,
    )


def _board(notebook: NotebookReader, gathered: _Gathered) -> dict[str, object]:
    log, blobs, task, top = notebook.log, notebook.blobs, gathered.task, gathered.top
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    rows = runs_answer(log, blobs, task, RunsOf(sort=sort, size=MAXIMUM_ROWS)).runs
    voters = voters_answer(log, None, here.now_ms())
    return board_content(top, {row.id: row for row in rows}, credit_answer(log, task=task), voters)


def _run(notebook: NotebookReader, gathered: _Gathered, run: str) -> dict[str, object]:
    log, blobs, record = notebook.log, notebook.blobs, parse_id(run)
    shown, context, diff = show_answer(log, record), None, None
    above = parse_id(shown.run.parent) if shown.run and shown.run.parent else None
    with suppress(NotFound):
        context = run_context_answer(log, blobs, record)
    with suppress(AutoresearchError):
        # Sources that are not here are not fetched: the page names the command that does.
        diff = diff_answer(log, blobs, above, record) if above else None
    return run_content(
        shown,
        context=context,
        effects=effects_answer(log, gathered.task),
        parent=show_answer(log, above) if above else None,
        task=gathered.runs.task,
        diff=diff,
    )


def _check(folder: Path) -> None:
    """An export goes into a new folder, an empty one, or over an earlier export."""
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is a file", hint="name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not _is_export(folder):
        raise Refused(f"{folder} has other files", hint="name a new folder, or that of an earlier export")


def _is_export(folder: Path) -> bool:
    return (folder / FIRST).is_file() and (folder / ASSETS / "chart.js").is_file()


def _write(folder: Path, pages: dict[str, str]) -> None:
    """Pages of runs that an earlier export had and this one has not are removed."""
    (folder / ASSETS).mkdir(parents=True, exist_ok=True)
    for name in _shown_assets():
        found = asset(name)
        assert found is not None  # it was listed
        (folder / ASSETS / name).write_bytes(found.content)
    for stale in folder.glob(RUN):
        if stale.name not in pages:
            stale.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def _shown_assets() -> Iterable[str]:
    return (name for name in asset_names() if name not in SERVED)
