"""The record of a run of a project: what was measured of it, appended with its files. Reads no project."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from pathlib import Path

from autoresearch.api import PublishRunRequest
from autoresearch.errors import Refused, UsageError
from autoresearch.log import Log
from autoresearch.notebook import Notebook
from autoresearch.paths import typed_path
from autoresearch.recalling import known_genome
from autoresearch.records import Record, parse_id
from autoresearch.records import Run as RunBody
from autoresearch.research import Measurement, Plan, fault_of_artifact, fault_of_program
from autoresearch.tasks import Task, load_task, seed_for, source_digest
from autoresearch.words import RunStatus


def publish_run(notebook: Notebook, request: PublishRunRequest, now_ms: int) -> Record:
    """Append the record of a run that was measured, and its task where the log has none; keep its files.

    Raises:
        UsageError: the folder is no task, the program no program, or the state can't be read.
        Refused: they don't belong together, or the state is too large.
        DamagedState: the file is no learned state.
    """
    task, checkpoint = load_task(typed_path(request.task)), typed_path(request.checkpoint)
    if task.evaluator is None or not task.evaluator.answers:
        raise Refused(f"the task {task.name} has no environment", hint="autoresearch run DIR runs a program of it")
    if not checkpoint.is_file():
        raise UsageError(f"{checkpoint} is no file", hint="give the learned state")
    fault = fault_of_program(task, request.program) or fault_of_artifact(task, checkpoint)
    if fault is not None:
        raise Refused(f"the run can't be published: {fault}", hint="autoresearch uninstall what it does not need")
    _check_state(checkpoint)
    log, digest = notebook.log, source_digest(request.program)
    above = ((record, run_body_of(log, record)) for record in request.parents)
    parent = next((parse_id(name) for name, body in above if body is not None and body.task == task.digest), None)
    replicate = _replicate(notebook, task, digest, checkpoint)
    genome, base = known_genome(log, notebook.blobs, task, request.program, parent)
    plan = Plan(
        task=task.digest,
        source=request.program,
        source_digest=digest,
        replicate=replicate,
        seed=seed_for(task.digest, digest, replicate),
        budget=request.budget,
        parent=parent,
        base=base,
        genome=genome,
        title=request.title,
        hypothesis=request.hypothesis,
        mode=request.mode,
    )
    measurement = Measurement(
        status=RunStatus.OK,
        reason=request.reason,
        value=request.value,
        metrics=request.metrics,
        curve=request.curve,
        duration_ms=request.duration_ms,
        cpu_ms=request.cpu_ms,
        peak_memory_bytes=request.peak_memory_bytes,
        sandbox=request.sandbox,
        device=request.device,
        environment=request.environment,
    )
    notebook.publish_identity(now_ms)
    notebook.publish_task(task, now_ms)
    return notebook.publish_run(plan, measurement, now_ms, checkpoint=checkpoint, keep_all=True).record


def _check_state(checkpoint: Path) -> None:
    """Raises DamagedState where a file is no learned state: no other file of this machine is published as one."""
    from autoresearch.projects import unpack_learned  # the daemon starts without it

    with tempfile.TemporaryDirectory() as scratch:
        unpack_learned(checkpoint, Path(scratch, "data"))


def run_body_of(log: Log, record: str) -> RunBody | None:
    """The body of a run's record, where it is in this log."""
    found = log.records.find(parse_id(record))
    return found.body if found is not None and isinstance(found.body, RunBody) else None


def _replicate(notebook: Notebook, task: Task, program: bytes, checkpoint: Path) -> int:
    """The number of an own run with this learned state, which is no new evidence; else the first that is free.

    The same program with another learned state is a repetition, not a discovery.
    """
    state = hashlib.sha256(checkpoint.read_bytes()).digest()
    known = notebook.log.runs.of_programs(task.digest, [program])
    for _, replicate, _, run, author in known:
        body = notebook.log.records.get(run).body
        kept = body.checkpoint if isinstance(body, RunBody) else None
        if author == notebook.author and kept is not None and kept.sha256 == state:
            return replicate
    used = {replicate for _, replicate, *_ in known}
    return next(number for number in itertools.count() if number not in used)
