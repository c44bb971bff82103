"""``get``: a published run as a folder to go on from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.answers import open_checkpoint, run_checkpoint
from autoresearch.errors import NotFound, Refused
from autoresearch.figures import size, value
from autoresearch.paths import typed_path
from autoresearch.project_records.fetching import write_run
from autoresearch.projects import BENCHMARK_EPISODES, is_environment_task
from autoresearch.records import Run, format_id
from autoresearch.research import fault_of_program
from autoresearch.running import scratch_folder
from autoresearch.tasks import Task as TaskFolder
from autoresearch.tasks import is_taken, load_task
from autoresearch.views import own_keys
from autoresearch.words import with_article
from autoresearch_cli import here
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
from autoresearch_cli.project_models import GotAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook, with_blobs
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.task_folders import cached_folder, get_task

# What came of a learned state in this time is kept, and the next call goes on from there.
LEARNED_SECONDS = 600.0
app = command_app()
apps = {"get": app}


@app.command(
    epilog=examples(
        ("autoresearch get g3xk walker", "the agent of a run with what it had learned, in a new folder"),
        ("autoresearch get @ --task corridor", "the best one of an environment"),
        ("autoresearch get g3xk --json | jq -r .folder", "the same for a program"),
        see="publish, top, run, train, task get",
    )
)
def get(
    reference: Reference,
    folder: Annotated[
        str, typer.Argument(metavar="[DIR]", help="A new folder. Left out: the task's name with the run's id, here.")
    ] = "",
    *,
    task: Task = "",
    json: Json = False,
) -> None:
    """Write a published run as a folder: the project with what it had learned, or a task with the run's program."""
    with open_notebook(task) as notebook:
        record = notebook.log.records.get(notebook.resolve(reference))
        if not isinstance(record.body, Run):
            raise Refused(f"{reference} is {with_article(record.kind)}, no run", hint="autoresearch top lists runs")
        asked = load_task(cached_folder(notebook, record.body.task))
        name = short(format_id(record.id))
        place = typed_path(folder or f"{asked.name}-{name}").absolute()
        is_project = is_environment_task(asked.harness)
        local = _project(notebook, record.id, asked, place) if is_project else _program(asked, record.id, place)
        answer = GotAnswer(
            folder=str(place), id=format_id(record.id), task=asked.name, value=record.body.value, run=local
        )
    if json:
        print_json(answer)
        return
    quoted = shlex.quote(folder or place.name)
    if not is_project:
        say(f"{place} is the task {asked.name}, with the program of {name}")
        say(f"→ edit it, then: autoresearch run {quoted} --hypothesis '…'")
        return
    reward = "" if answer.value is None else f": mean reward {value(answer.value)} over {BENCHMARK_EPISODES} episodes"
    say(f"{place} is the agent of {name}{reward}")
    say(f"→ cd {quoted} && autoresearch run -n {BENCHMARK_EPISODES} measures it; autoresearch train goes on from it")


def _project(notebook: NotebookReader, run: bytes, task: TaskFolder, place: Path) -> str:
    """Write a run's project; returns the id of the run in it."""
    if is_taken(place):
        raise Refused(f"{place} exists already", hint="give a new folder: autoresearch get RUN DIR")
    log, record = notebook.log, notebook.log.records.get(run)
    program = notebook.source(format_id(run))
    if (fault := fault_of_program(task, program)) is not None:
        raise Refused(f"{short(format_id(run))} is no project: {fault}", hint="autoresearch top lists other runs")
    own = notebook.me is not None and record.author in own_keys(log, notebook.me, here.now_ms())
    paths = here.paths()
    paths.spool.mkdir(parents=True, exist_ok=True)
    with scratch_folder(paths.spool) as scratch:
        learned = _learned(notebook, run, scratch.folder / "learned.zip")
        return write_run(record, program, task.harness, learned, place, own=own).id


def _learned(notebook: NotebookReader, run: bytes, file: Path) -> Path | None:
    """The packed state of a run, from other nodes where it is not here; None where its author kept none."""
    try:
        blob = run_checkpoint(notebook.log, run)
    except NotFound:
        say(f"{short(format_id(run))} kept nothing of what it learned: the project begins anew")
        return None
    if not notebook.blobs.has(blob.sha256):
        say(f"fetching {size(blob.size)} from other nodes …")
    with with_blobs(lambda: open_checkpoint(notebook.log, notebook.blobs, run), seconds=LEARNED_SECONDS) as content:
        file.write_bytes(content.read())
    return file


def _program(task: TaskFolder, run: bytes, place: Path) -> str:
    """Write a task's folder with the program of a run, as ``task get --run`` does."""
    get_task(task.digest.hex(), str(place), format_id(run))
    return ""
