"""A task's runs as a git repository of this machine, once or as records come."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from shlex import quote
from typing import NoReturn

import typer

from autoresearch.errors import DaemonNotRunning
from autoresearch.figures import counted
from autoresearch.git_export import Exported, export_task, exported_task, open_repository
from autoresearch.paths import typed_path
from autoresearch.records import format_id, short_id
from autoresearch_cli import here
from autoresearch_cli.models import GitExportAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook, with_blobs
from autoresearch_cli.rendering.output import print_json, say


def export(name: str, task: str, *, bare: bool, follow: bool, json: bool) -> None:
    """Write or update the repository and say what is new.

    Raises:
        Refused: the folder is not the task's repository; or main has to stay where it is, while all else is written.
        DaemonNotRunning: none runs that could be followed.
    """
    folder = typed_path(name).absolute()
    with open_notebook() as notebook:
        # The repository says which task it has.
        known = exported_task(folder)
        digest = notebook.task(task or (known.hex() if known else "")).digest
        if follow:
            _follow(notebook, folder, digest, bare=bare, json=json)
        found = _update(notebook, folder, digest, bare=bare)
    _tell(folder, digest, found, json=json)
    if found.kept and not json:
        raise found.kept
    if found.kept:  # the document has it already
        say(f"{found.kept}\n→ {found.kept.hint}")
        raise typer.Exit(found.kept.exit_status)
    if not json:
        say(f"→ git -C {quote(name)} runs, or how the best run came about: git -C {quote(name)} log -p main")


def _update(notebook: NotebookReader, folder: Path, digest: bytes, *, bare: bool) -> Exported:
    def once() -> Exported:
        with open_repository(folder, digest, notebook.log.network.id, bare=bare) as repository:
            return export_task(notebook.log, notebook.blobs, repository, digest, me=notebook.me, now_ms=here.now_ms())

    return with_blobs(once)


def _follow(notebook: NotebookReader, folder: Path, digest: bytes, *, bare: bool, json: bool) -> NoReturn:
    """Update at first, and again after each event that is later than the begin of the last update."""
    with here.client().events() as stream:
        begin_ms, kept = -1, ""
        for event in chain([None], stream):
            if event is not None and (event.kind == "progress" or event.time_ms < begin_ms):
                continue
            is_first, begin_ms = begin_ms < 0, here.now_ms()
            found = _update(notebook, folder, digest, bare=bare)
            if is_first or found.changed:
                _tell(folder, digest, found, json=json)
            if found.kept and str(found.kept) != kept:
                say(f"{found.kept}; {found.kept.hint}")
            kept = str(found.kept or "")
    raise DaemonNotRunning("the daemon has ended", hint="autoresearch up, then export again")


def _tell(folder: Path, digest: bytes, found: Exported, *, json: bool) -> None:
    if json:
        print_json(
            GitExportAnswer(
                folder=str(folder),
                task=digest.hex(),
                runs=found.runs,
                commits=found.commits,
                missing=found.missing,
                waiting=found.waiting,
                main=format_id(found.main) if found.main else None,
                kept=str(found.kept or ""),
            )
        )
        return
    main = f"main is {short_id(found.main)}" if found.main else "no run has a value yet"
    say(f"{counted(found.commits, 'new commit')}, {counted(found.runs, 'run')} in {folder}; {main}")
    if found.missing:
        after = f", nor {counted(found.waiting, 'run')} after them" if found.waiting else ""
        say(f"{counted(found.missing, 'run')} left out, whose source is not on this machine{after}")
    elif found.waiting:
        say(f"{counted(found.waiting, 'run')} left out, whose parent run is not in the log")
    if found.best != found.main and found.best:
        say(f"the best run, {short_id(found.best)}, is among those")
