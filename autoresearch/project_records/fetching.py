"""A published run of a project as a folder of this machine: the agent, its parameters, what it had learned."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from autoresearch.errors import Refused, UsageError
from autoresearch.projects import (
    Run,
    RunData,
    Totals,
    head_run,
    keep_fetched,
    load_project,
    mark_fetched,
    write_project,
)
from autoresearch.records import Record, format_id
from autoresearch.records import Run as RunBody
from autoresearch.tasks import is_taken

_SEED = "training_seed"


def write_run(
    record: Record, program: str, harness: Mapping[str, bytes], learned: Path | None, folder: Path, *, own: bool
) -> Run:
    """Write a run's project as a new folder, which appears whole or not; its newest run is the published one.

    ``learned`` is the file with what it had learned, None where none was kept. What is not ``own`` is marked as another
    participant's: it runs in the sandbox.

    Raises:
        Refused: the folder exists and is not empty.
        UsageError: the program is no project.
        DamagedState: the file holds no learned state.
    """
    body = record.body
    assert isinstance(body, RunBody)
    if is_taken(folder):
        raise Refused(f"{folder} exists already", hint="give a new folder: autoresearch get RUN DIR")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        project = write_project(program, harness, temporary)
        keep_fetched(project, _run_data(record, body, has_learned=learned is not None), learned)
        if not own:
            mark_fetched(project, format_id(record.id))
        temporary.replace(folder)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    run = head_run(load_project(folder))
    assert run is not None, "it was just kept"
    return run


def _run_data(record: Record, body: RunBody, *, has_learned: bool) -> RunData:
    """What a record says of its run, as a project keeps it. The run of a program is one that trained for its budget."""
    names = set(Totals.__struct_fields__)
    totals = {name: int(number) for name, number in body.metrics.items() if name in names and number >= 0}
    metrics = {
        name: int(number) if name in ("episodes", "steps") else number
        for name, number in body.metrics.items()
        if name not in {*names, _SEED}
    }
    is_program = body.mode == "experiment"
    return RunData(
        mode="train" if body.mode == "experiment" else body.mode,
        status="ok",
        started=record.time,
        seconds=body.duration_ms / 1000,
        seed=int(body.metrics.get(_SEED, body.seed if is_program else 0)),
        asked_episodes=int(metrics.get("episodes", 0)),
        metrics=metrics,
        totals=msgspec.convert({"training_episodes": int(body.budget), **totals}, Totals) if has_learned else Totals(),
        curve=body.curve,
        components={},
        files={},
        environment=body.environment,
        sandbox=body.sandbox,
        record=format_id(record.id),
    )
