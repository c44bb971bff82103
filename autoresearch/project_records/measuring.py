"""A kept run of a project as a record: its learned state is measured by the task of its environment, in sandboxes.

A training run is a trained agent, a benchmark run one that is frozen. Both are measured in the same way.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.api import PublishRunRequest
from autoresearch.errors import AutoresearchError, Refused
from autoresearch.figures import counted
from autoresearch.log import BlobStore, Log
from autoresearch.packages import lock_meets
from autoresearch.project_records.records import run_body_of
from autoresearch.projects import (
    DATA,
    LEARNED,
    LOCK,
    LOOSE,
    Project,
    Run,
    ancestors,
    environment_files,
    environment_task_files,
    flat_program,
    isolated_packages,
    pack_learned,
    packages_asked,
    project_of_run,
    published_ancestors,
    record_of,
    required_by,
)
from autoresearch.records import Task as TaskBody
from autoresearch.research import Bench, device_name, evaluate, fault_of_artifact
from autoresearch.running import Outcome
from autoresearch.sanitise import one_line
from autoresearch.tasks import Task, load_task, parse_lock, parse_wanted, split_program
from autoresearch.words import RunStatus

_UNTRAINED_BUDGET = 100
_VALUE_DIGITS = 6


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A run that can be published: its project as it was, its program as one text, the files of its environment.

    ``asked`` are the packages that it needs and not every node has, as lines of ``requirements.in``; ``packages`` the
    files with those lines and with what fits them, for its task.
    """

    project: Project
    run: Run
    program: str
    harness: dict[str, bytes]
    asked: list[str] = []
    packages: dict[str, bytes] = {}

    @property
    def budget(self) -> int:
        """The training episodes of the run and all its ancestors."""
        return self.run.data.totals.training_episodes


class KnownTask(NamedTuple):
    """A published task of an environment."""

    digest: bytes
    name: str


def prepare_run(project: Project, run: Run) -> Prepared:
    """What would be published of a kept run. Nothing is measured or sent.

    Raises:
        Refused: the code of a component was changed after the run, or a component has packages of its own.
        NotFound, UsageError: what :func:`autoresearch.projects.flat_program` raises.
    """
    if isolated := isolated_packages(project):
        raise Refused(
            f"{one_line(', '.join(isolated), 100)}: what has Python packages of its own can't be published in an agent",
            hint="install it without --isolated, and do another run",
        )
    was = project_of_run(project, run)
    for component in was.all():
        known = run.data.components.get(component.key, {}).get("sha256")
        file = Path(component.file)
        if known and (not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != known):
            raise Refused(
                f"the code of {component.key} was changed after run {run.id}",
                hint="do another run with the code as it is: autoresearch run, then publish that",
            )
    files = environment_files(was)
    return Prepared(
        project=was, run=run, program=flat_program(was), harness=files, asked=packages_asked(was, required_by(project))
    )


def tasks_of_run(log: Log, blobs: BlobStore, prepared: Prepared, *, author: bytes | None) -> list[KnownTask]:
    """The published tasks with this environment: that of the run that this one went on from, this device's, the oldest.

    The files and parameters of the environment have to be the same, and the task has the packages that the run needs.
    """
    wanted = {name: hashlib.sha256(content).digest() for name, content in prepared.harness.items()}
    found: dict[bytes, tuple[bool, bool, int, KnownTask]] = {}
    above = (run_body_of(log, record) for record in published_ancestors(prepared.project, prepared.run))
    nearest = next((body.task for body in above if body is not None), None)
    for row in log.tasks.all():
        body = log.records.get(row.id).body
        if isinstance(body, TaskBody) and _fits(body, wanted, prepared.asked, blobs):
            evaluation = body.definition.get("evaluation")
            if isinstance(evaluation, Mapping) and evaluation.get("answers"):
                known = KnownTask(row.digest, row.name)
                found.setdefault(row.digest, (row.digest != nearest, row.author != author, row.time, known))
    return [known for *_, known in sorted(found.values())]


def _fits(task: TaskBody, wanted: Mapping[str, bytes], asked: list[str], blobs: BlobStore) -> bool:
    """Whether a task has these fixed files, and packages that meet the lines."""
    files = {name: blob.sha256 for name, blob in task.harness.items()}
    loose, lock = files.pop(LOOSE, None), files.pop(LOCK, None)
    if files != wanted or (lock is None) != (not asked) or (loose is None) != (lock is None):
        return False
    if lock is None:
        return True
    try:
        packages = parse_lock(blobs.get(lock).decode(), LOCK)
    except (AutoresearchError, UnicodeDecodeError):  # its files are not here, or are no list
        return False
    return lock_meets(parse_wanted("\n".join(asked), LOOSE), packages)


def title_of(prepared: Prepared) -> str:
    """A run's title: its policy and trainer, and how long it was trained."""
    used = prepared.run.data.components
    names = [key.partition(".")[2] for key in used if key.startswith(("policy.", "trainer."))]
    defaults = [prepared.project.defaults.get(kind, "") for kind in ("policy", "trainer")]
    shown = [name for name in defaults if name] if prepared.budget else defaults[:1]
    trained = f"{counted(prepared.budget, 'training episode')}" if prepared.budget else "not trained"
    return f"{' + '.join(shown or names) or 'agent'}, {trained}"[:120]


def measure_run(prepared: Prepared, bench: Bench, folder: Path, cancelled: Callable[[], bool] | None = None) -> Outcome:
    """Have the evaluator of the environment's task measure what a run had learned. Nothing is sent.

    The task is made in ``folder``. The learned state is left in the bench's scratch folder.

    Raises:
        AutoresearchError: it can't be measured, or was stopped.
        Refused: it is too large, or the task asks for more than this machine allows.
    """
    return _measured(_written(prepared, folder / "draft"), prepared, bench, cancelled)


def new_task(prepared: Prepared, folder: Path) -> Task:
    """The task of a run's environment as a new folder."""
    return _written(prepared, folder / "task")


def request_of(prepared: Prepared, task: Task, outcome: Outcome, bench: Bench) -> PublishRunRequest:
    """What there is to publish of a run that was measured as ``outcome``."""
    assert outcome.value is not None
    data = prepared.run.data
    is_training = data.mode == "train"
    numbers = {**msgspec.to_builtins(data.totals), **({"training_seed": data.seed} if is_training else {})}
    return PublishRunRequest(
        task=str(task.folder),
        program=prepared.program,
        checkpoint=str(outcome.checkpoint),
        mode=data.mode,
        value=round(outcome.value, _VALUE_DIGITS),
        reason=outcome.reason,
        metrics={**outcome.metrics, **numbers},
        curve=[float(f"{point:.6g}") for point in _training_curve(prepared)],
        budget=float(prepared.budget),
        parents=published_ancestors(prepared.project, prepared.run),
        title=title_of(prepared),
        duration_ms=round(data.seconds * 1000) + outcome.duration_ms,
        cpu_ms=outcome.cpu_ms,
        peak_memory_bytes=outcome.peak_memory_bytes,
        sandbox=data.sandbox,
        device=device_name(bench.device),
        environment=data.environment,
    )


def _training_curve(prepared: Prepared) -> list[float]:
    """The mean rewards of the training that made what was measured; none where that has a record of its own."""
    runs = [prepared.run, *ancestors(prepared.project, prepared.run)]
    training = next((run for run in runs if run.data.mode == "train"), None)
    return training.data.curve if training and not record_of(prepared.project, training) else []


def _measured(task: Task, prepared: Prepared, bench: Bench, cancelled: Callable[[], bool] | None) -> Outcome:
    bench.scratch.mkdir(parents=True, exist_ok=True)
    learned, name = bench.scratch / LEARNED, prepared.run.id
    pack_learned(prepared.run.folder / DATA, learned)
    if (fault := fault_of_artifact(task, learned)) is not None:
        raise Refused(f"run {name} can't be published: {fault}")
    outcome = evaluate(task, prepared.program, learned, bench, secrets.randbits(63), cancelled)
    if outcome.status is RunStatus.CANCELLED:
        raise AutoresearchError("stopped: nothing is published", hint="autoresearch publish")
    if outcome.status is not RunStatus.OK or outcome.value is None:
        raise AutoresearchError(
            f"run {name} can't be measured: {outcome.reason}", hint="autoresearch run shows whether it runs here"
        )
    return replace(outcome, checkpoint=learned)


def _written(prepared: Prepared, folder: Path) -> Task:
    """The task of a project's environment as a new folder."""
    files = environment_task_files(
        prepared.project,
        program=prepared.program,
        episodes=prepared.budget or _UNTRAINED_BUDGET,
        packages=prepared.packages,
    )
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    for name, text in split_program(prepared.program).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return load_task(folder)
