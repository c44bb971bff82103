"""A kept run of a project as a record with its files.

Its learned state is measured by the task of its environment, in sandboxes. A training run is a trained agent, a
benchmark run one that is frozen; both are measured alike.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node_acts import PUBLISH_SECONDS
from autoresearch.ask.operation import operation
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.requests import PublishRunRequest
from autoresearch.ask.show import show_answer
from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import typed_path
from autoresearch.project.components.requirements import LOCK, LOOSE, isolated_packages, required_by
from autoresearch.project.exchange.flat_files import published_ancestors, record_of
from autoresearch.project.exchange.publishing import (
    environment_files,
    environment_task_files,
    flat_program,
    packages_asked,
    project_of_run,
)
from autoresearch.project.learned import LEARNED, pack_learned
from autoresearch.project.model import Project
from autoresearch.project.runs.kept import DATA, Run, ancestors
from autoresearch.propose.mind.recall import known_genome
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run as RunBody
from autoresearch.record.kinds import RunOutcome
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.run.bench import Bench, device_name, fault_of_program
from autoresearch.run.evaluating import evaluate, fault_of_artifact
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.package_locks import lock_meets
from autoresearch.run.sandbox.job import Outcome
from autoresearch.task.loading import load_task
from autoresearch.task.lock import parse_lock, parse_wanted
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest, split_program
from autoresearch.text import counted, one_line
from autoresearch.words import RunStatus


@operation("POST /v1/runs", seconds=PUBLISH_SECONDS)
def publish_run(notebook: Notebook, request: PublishRunRequest) -> ShowAnswer:
    """Publish a kept run of a project as it was measured by the task of its environment.

    Its files are kept, and its task is published where the log has none.

    Raises:
        UsageError: the folder is no task, the program no program, or the state can't be read.
        Refused: they don't belong together, or the state is too large.
        DamagedState: the file is no learned state.
    """
    task, checkpoint = load_task(typed_path(request.task)), typed_path(request.checkpoint)
    if task.evaluator is None or not task.evaluator.answers:
        raise Refused(f"the task {task.name} has no environment", hint="autoresearch run DIR runs a program of it")
    if request.outcome.status != RunStatus.OK or request.outcome.value is None:
        raise UsageError("the run has no value", hint="publish a run that was measured")
    if not checkpoint.is_file():
        raise UsageError(f"{checkpoint} is no file", hint="give the learned state")
    fault = fault_of_program(task, request.program) or fault_of_artifact(task, checkpoint)
    if fault is not None:
        raise Refused(f"the run can't be published: {fault}", hint="autoresearch uninstall what it does not need")
    # DamagedState where a file is no learned state: no other file of this machine is published as one.
    from autoresearch.project.learned import unpack_learned  # the daemon starts without it

    with tempfile.TemporaryDirectory() as scratch:
        unpack_learned(checkpoint, Path(scratch, "data"))
    log, digest = notebook.log, source_digest(request.program)
    above = ((record, run_body_of(log, record)) for record in request.parents)
    parent = next((parse_id(name) for name, body in above if body is not None and body.task == task.digest), None)
    replicate = _replicate(notebook, task, digest, checkpoint)
    genome, base = known_genome(log, notebook.blobs, task, request.program, parent)
    plan = plan_as_it_stands(
        task, request.program, replicate=replicate, parent=parent, base=base, genome=genome, title=request.title,
        hypothesis=request.hypothesis, mode=request.mode, budget=request.budget,
    )  # fmt: skip
    now_ms = notebook.now_ms()
    notebook.publish_identity(now_ms)
    notebook.publish_task(task, now_ms)
    published = notebook.publish_run(plan, request.outcome, now_ms, checkpoint=checkpoint, keep_all=True)
    return show_answer(log, published.record.id)


def run_body_of(log: Log, record: str) -> RunBody | None:
    """The body of a run's record, where it is in this log."""
    row = log.records.find(parse_id(record))
    return row.body if row is not None and isinstance(row.body, RunBody) else None


def _replicate(notebook: Notebook, task: Task, program: bytes, checkpoint: Path) -> int:
    """The number of an own run with this learned state, which is no new evidence; else the first that is free.

    The same program with another learned state is a repetition, not a discovery.
    """
    state = hashlib.sha256(checkpoint.read_bytes()).digest()
    runs = notebook.log.runs.of_programs(task.digest, [program])
    for _, replicate, _, run, author in runs:
        body = notebook.log.records.get(run).body
        kept = body.checkpoint if isinstance(body, RunBody) else None
        if author == notebook.author and kept is not None and kept.sha256 == state:
            return replicate
    used = {replicate for _, replicate, *_ in runs}
    return next(number for number in itertools.count() if number not in used)


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
        pinned = run.data.components.get(component.key, {}).get("sha256")
        file = Path(component.file)
        if pinned and (not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != pinned):
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
                published = KnownTask(row.digest, row.name)
                found.setdefault(row.digest, (row.digest != nearest, row.author != author, row.time, published))
    return [published for *_, published in sorted(found.values())]


def _fits(task: TaskBody, wanted: Mapping[str, bytes], requirements: list[str], blobs: BlobStore) -> bool:
    """Whether a task has these fixed files, and packages that meet the lines."""
    files = {name: blob.sha256 for name, blob in task.harness.items()}
    loose, lock = files.pop(LOOSE, None), files.pop(LOCK, None)
    if files != wanted or (lock is None) != (not requirements) or (loose is None) != (lock is None):
        return False
    if lock is None:
        return True
    try:
        packages = parse_lock(blobs.get(lock).decode(), LOCK)
    except (AutoresearchError, UnicodeDecodeError):  # its files are not here, or are no list
        return False
    return lock_meets(parse_wanted("\n".join(requirements), LOOSE), packages)


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
        budget=float(prepared.budget),
        parents=published_ancestors(prepared.project, prepared.run),
        title=title_of(prepared),
        outcome=msgspec.structs.replace(
            msgspec.convert(outcome, RunOutcome, from_attributes=True),
            value=round(outcome.value, _VALUE_DIGITS),
            metrics={**outcome.metrics, **numbers},
            curve=[float(f"{point:.6g}") for point in _training_curve(prepared)],
            duration_ms=round(data.seconds * 1000) + outcome.duration_ms,
            sandbox=data.sandbox,
            device=device_name(bench.device),
            environment=data.environment,
        ),
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
    return msgspec.structs.replace(outcome, checkpoint=learned)


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
