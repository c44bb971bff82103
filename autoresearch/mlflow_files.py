"""Runs as files that MLflow reads as its own: the layout of its file store, ``mlruns``. Needs no MLflow. Pure.

A task is an experiment. A child run is shown below its parent run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from autoresearch.api import RunView
from autoresearch.records import parse_id
from autoresearch.words import STOPPED, RunStatus

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


def run_files(run: RunView, metric: str, place: str, artifacts: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a run by their path. ``metric`` is the task's, ``artifacts`` are files of the run by name."""
    number, record = experiment_id(bytes.fromhex(run.task)), parse_id(run.id)
    folder = f"{number}/{run_name(record)}"
    status = _FINISHED if run.status == RunStatus.OK else _KILLED if run.status in STOPPED else _FAILED
    ended = run.time_ms
    about = {
        "artifact_uri": f"{place}/{folder}/artifacts",
        "end_time": ended,
        "entry_point_name": "",
        "experiment_id": number,
        "lifecycle_stage": "active",
        "run_id": run_name(record),
        "run_name": run.title or run.id,
        "run_uuid": run_name(record),
        "source_name": "",
        "source_type": _LOCAL,
        "source_version": "",
        "start_time": max(0, ended - run.duration_ms),
        "status": status,
        "tags": [],
        "user_id": run.participant.short,
    }
    found = {f"{folder}/meta.yaml": _yaml(about)}
    numbers = {**run.metrics, **({metric: run.value} if run.value is not None and metric else {})}
    found |= {f"{folder}/metrics/{name}": _points([value], ended) for name, value in _plain(numbers).items()}
    if run.curve:
        found[f"{folder}/metrics/curve"] = _points(run.curve, ended)
    settings = {**run.genome, "budget": run.budget, "mode": run.mode, "replicate": run.replicate, "seed": run.seed}
    found |= {f"{folder}/params/{name}": _text(value) for name, value in _plain(settings).items()}
    found |= {f"{folder}/tags/{name}": _text(value) for name, value in _tags(run) if value}
    return found | {f"{folder}/artifacts/{name}": content for name, content in artifacts.items()}


def _tags(run: RunView) -> Iterator[tuple[str, str]]:
    yield "mlflow.runName", run.title or run.id
    yield "mlflow.user", run.participant.name or run.participant.short
    yield "mlflow.note.content", run.hypothesis
    yield "mlflow.parentRunId", run_name(parse_id(run.parent)) if run.parent else ""
    yield "autoresearch.record", run.id
    yield "autoresearch.state", run.state
    yield "autoresearch.reason", run.reason
    yield "autoresearch.device", run.device


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """The same under names that MLflow takes and that are plain names of files. Others wrote them."""
    found: dict[str, object] = {}
    for name, value in values.items():
        key = re.sub(r"[^\w.\- ]", "_", name).strip(" .")[:_KEY_CHARACTERS] or "_"
        found.setdefault(key, value)
    return found


def _points(values: Sequence[object], time_ms: int) -> bytes:
    return "".join(f"{time_ms} {value!r} {step}\n" for step, value in enumerate(values)).encode()


def _text(value: object) -> bytes:
    return str(value).replace("\r", " ")[:_TEXT_CHARACTERS].encode("utf-8", "replace")


def _yaml(about: Mapping[str, object]) -> bytes:
    return str(yaml.safe_dump(dict(about), allow_unicode=True)).encode("utf-8", "replace")
