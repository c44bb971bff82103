"""Runs in the layout of MLflow's file store. It needs no MLflow.

In ``mlruns`` a task is an experiment, and a child run is shown below its parent run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

import yaml

from autoresearch.ask.desk import Desk
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.records import UsedComponent
from autoresearch.ask.show import show_answer
from autoresearch.errors import AutoresearchError
from autoresearch.face.exports.result import ExportResult
from autoresearch.log.standing.answers import RunNumbers, RunView
from autoresearch.project.exchange.fetching import components_of_run
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run
from autoresearch.run.folder import CHECKPOINT
from autoresearch.task.program import split_program
from autoresearch.words import RUN_MODES, STOPPED, RunStatus

PROGRAM = "program"
# MLflow's own numbers for how a run ended, and for a run that a person started.
_FINISHED, _FAILED, _KILLED = 3, 4, 5
_LOCAL = 4
_KEY_CHARACTERS = 100
_TEXT_CHARACTERS = 5000


def experiment_id(task: bytes) -> str:
    """The number by which MLflow knows a task, from its digest."""
    return str(int.from_bytes(task[:7], "big"))


def run_name(record: bytes) -> str:
    """The id by which MLflow knows a run: the beginning of its record's, in hex."""
    return record[:16].hex()


def experiment_files(task: bytes, name: str, place: str, times: tuple[int, int]) -> dict[str, bytes]:
    """The files of a task by their path. ``place`` is the folder of all, ``times`` of the first run and the last."""
    number = experiment_id(task)
    about = {
        "artifact_location": f"{place}/{number}",
        "creation_time": times[0],
        "experiment_id": number,
        "last_update_time": times[1],
        "lifecycle_stage": "active",
        "name": f"{name} ({task.hex()[:12]})",
    }
    return {f"{number}/meta.yaml": _yaml(about)}


def run_files(
    view: RunView,
    metric: str,
    place: str,
    artifacts: Mapping[str, bytes],
    components: Iterable[UsedComponent] = (),
) -> dict[str, bytes]:
    """The files of a run by their path.

    ``metric`` is the task's, ``artifacts`` are files of the run by name, ``components`` what an agent is made of.
    """
    run = view.run
    number, record = experiment_id(bytes.fromhex(run.task)), parse_id(view.id)
    folder = f"{number}/{run_name(record)}"
    status = _FINISHED if run.status == RunStatus.OK else _KILLED if run.status in STOPPED else _FAILED
    ended = view.time_ms
    about = {
        "artifact_uri": f"{place}/{folder}/artifacts",
        "end_time": ended,
        "entry_point_name": "",
        "experiment_id": number,
        "lifecycle_stage": "active",
        "run_id": run_name(record),
        "run_name": run.title or view.id,
        "run_uuid": run_name(record),
        "source_name": "",
        "source_type": _LOCAL,
        "source_version": "",
        "start_time": max(0, ended - run.duration_ms),
        "status": status,
        "tags": [],
        "user_id": view.participant.short,
    }
    files = {f"{folder}/meta.yaml": _yaml(about)}
    reported = {metric: run.value} if run.value is not None and metric else {}
    numbers = {**run.metrics, **reported, **_named_numbers(view.standing)}
    files |= {f"{folder}/metrics/{name}": _points([value], ended) for name, value in _plain(numbers).items()}
    if run.curve:
        files[f"{folder}/metrics/curve"] = _points(run.curve, ended)
    settings = {**run.genome, "budget": run.budget, "mode": run.mode, "replicate": run.replicate, "seed": run.seed}
    for each in components:
        about_it = {"version": each.version, "release": each.release, "source": each.source}
        settings |= {f"{each.type}.{each.name}.{key}": value for key, value in about_it.items() if value}
    files |= {f"{folder}/params/{name}": _text(value) for name, value in _plain(settings).items()}
    files |= {f"{folder}/tags/{name}": _text(value) for name, value in _tags(view) if value}
    return files | {f"{folder}/artifacts/{name}": content for name, content in artifacts.items()}


def _named_numbers(numbers: RunNumbers) -> dict[str, float]:
    """The numbers that there are, by their words."""
    named = {name: getattr(numbers, name) for name in ("reported", "verified", "gain", "gain_reported")}
    return {f"autoresearch.{name}": number for name, number in named.items() if number is not None}


def _tags(view: RunView) -> Iterator[tuple[str, str]]:
    run = view.run
    yield "mlflow.runName", run.title or view.id
    yield "mlflow.user", view.participant.name or view.participant.short
    yield "mlflow.note.content", run.hypothesis
    yield "mlflow.parentRunId", run_name(parse_id(run.parent)) if run.parent else ""
    yield "autoresearch.record", view.id
    yield "autoresearch.state", view.standing.state
    yield "autoresearch.reason", run.reason
    yield "autoresearch.device", run.device


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """The same under names that MLflow takes and that are plain names of files. Others wrote them."""
    plain: dict[str, object] = {}
    for name, value in values.items():
        key = re.sub(r"[^\w.\- ]", "_", name).strip(" .")[:_KEY_CHARACTERS] or "_"
        plain.setdefault(key, value)
    return plain


def _points(values: Sequence[object], time_ms: int) -> bytes:
    return "".join(f"{time_ms} {value!r} {step}\n" for step, value in enumerate(values)).encode()


def _text(value: object) -> bytes:
    return str(value).replace("\r", " ")[:_TEXT_CHARACTERS].encode("utf-8", "replace")


def _yaml(about: Mapping[str, object]) -> bytes:
    return str(yaml.safe_dump(dict(about), allow_unicode=True)).encode("utf-8", "replace")


def export_mlflow(desk: Desk, tasks: Sequence[FoundTask], folder: Path, final: Path) -> ExportResult:
    """Write the runs of tasks into the new ``folder``, which is ``final`` afterwards."""
    folder.mkdir()
    count = sum(_write_task(desk, task, folder, final.as_uri()) for task in tasks)
    database = quote(f"sqlite:///{final / 'mlflow.db'}")
    return ExportResult(
        count,
        (
            f"mlflow migrate-filestore --source {quote(str(final))} --target {database}",
            f"mlflow ui --backend-store-uri {database}",
        ),
    )


def _write_task(desk: Desk, task: FoundTask, folder: Path, place: str) -> int:
    """Write a task with its runs; returns how many."""
    history = desk.log.runs.history(task.digest)
    left_out = desk.log.hidden.of([row.id for row in history])
    rows = [row for row in history if row.id not in left_out]
    times = [row.time for row in rows] or [0]
    _write_runs(folder, experiment_files(task.digest, task.name, place, (min(times), max(times))))
    for row in rows:
        view = show_answer(desk.log, row.id, marks=False).run
        body = desk.log.records.get(row.id).body
        assert view is not None, "these are runs"
        assert isinstance(body, Run), "these are runs"
        components = components_of_run(desk, row.id) if view.run.mode in RUN_MODES else ()
        _write_runs(folder, run_files(view, task.metric, place, _program(desk, body), components))
        if body.checkpoint is None:
            continue
        artifacts = folder / experiment_id(task.digest) / run_name(row.id) / "artifacts"
        # One that is not here, or damaged, is left out as a program is.
        with suppress(AutoresearchError), desk.blobs.open(body.checkpoint.sha256) as checkpoint:
            artifacts.mkdir(exist_ok=True)
            with (artifacts / CHECKPOINT).open("wb") as out:
                shutil.copyfileobj(checkpoint, out)
    return len(rows)


def _program(desk: Desk, body: Run) -> dict[str, bytes]:
    """The files of a run's program, where it is on this machine."""
    if not desk.blobs.has(body.source.sha256):
        return {}
    try:
        files = split_program(desk.blobs.get(body.source.sha256).decode())
    except (AutoresearchError, UnicodeDecodeError):
        return {}
    return {f"{PROGRAM}/{name}": text.encode() for name, text in files.items()}


def _write_runs(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
