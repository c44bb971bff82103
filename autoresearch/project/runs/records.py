"""A kept run of a project as a record with its files.

Its learned state is measured by the task of its environment, in sandboxes. A training run is a trained agent, a
benchmark run one that is frozen; both are measured alike.
"""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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
from autoresearch.project.components.finding import OF_SERVERS
from autoresearch.project.components.installing import isolated_packages, required_by
from autoresearch.project.exchange import publishing
from autoresearch.project.exchange.flat_files import published_ancestors, record_of
from autoresearch.project.model import Project
from autoresearch.project.modules import code_digest
from autoresearch.project.runs.kept import (
    DATA,
    LocalRun,
    Totals,
    added_totals,
    ancestors,
    check_state,
    digest_of,
    policy_of,
    state_of,
)
from autoresearch.propose.mind.recall import known_genome
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run as RunBody
from autoresearch.record.kinds import RunOutcome
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.run.bench import fault_of_program
from autoresearch.run.evaluating import fault_of_artifact
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.package_locks import lock_meets
from autoresearch.task.folder_state import write_files
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.needs import LOCK, LOOSE, parse_lock, parse_wanted
from autoresearch.task.program import source_digest
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
    log, digest = notebook.log, source_digest(request.program)
    _state_in(checkpoint, "")
    above = [(record, run_body_of(log, record)) for record in request.parents]
    fault = (
        fault_of_program(task, request.program)
        or fault_of_artifact(task, checkpoint)
        or _fault_of_totals(notebook, request, [body for _, body in above if body is not None])
    )
    if fault is not None:
        raise Refused(f"the run can't be published: {fault}", hint="autoresearch uninstall what it does not need")
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


def _fault_of_totals(notebook: Notebook, request: PublishRunRequest, above: Sequence[RunBody]) -> str | None:
    """Why the totals of a run can't be signed; None where they add up with those of its published ancestors.

    The nearest of these with the same default policy counts: what another policy did is nothing that this one learned.
    """
    stated = {"training_episodes": request.budget, **request.outcome.metrics}
    totals = {name: int(stated.get(name, 0)) for name in Totals.__struct_fields__}
    trained = totals["training_episodes"]
    if trained != request.budget:
        return f"its budget is {request.budget:g} training episodes, and its totals say {trained}"
    policy = publishing.default_policy(request.program)
    before = next((body for body in above if _policy_of_body(notebook, body) == policy), None)
    less = [name.replace("_", " ") for name in totals if before and totals[name] < int(before.metrics.get(name, 0))]
    if less:
        return f"its totals are less than those of the run it went on from: {', '.join(less)}"
    if trained > (int(before.metrics.get("training_episodes", 0)) if before else 0):
        return None
    # Nothing was trained since: then what it learned is what that run had learned, or nothing.
    name = policy.removeprefix("policy.") or "its agent"
    since = "" if before is None else " since the run that it went on from"
    fault = f"what {name} had learned changed, and its totals say that nothing was trained{since}"
    with tempfile.TemporaryDirectory() as scratch:
        state, state_before = _state_in(typed_path(request.checkpoint), policy), dict[str, str]()
        if before is not None and before.checkpoint is not None:
            if not notebook.blobs.has(before.checkpoint.sha256):
                return None
            blob = Path(scratch, "before")
            blob.write_bytes(notebook.blobs.get(before.checkpoint.sha256))
            state_before = _state_in(blob, policy)
    return fault if state != state_before else None


def _state_in(checkpoint: Path, policy: str) -> dict[str, str]:
    """What a policy and the agent had learned, as digests of files. Raises DamagedState where a file is no such state.

    So no other file of this machine is published as one.
    """
    from autoresearch.project.learned import unpack_learned  # the daemon starts without it

    with tempfile.TemporaryDirectory() as scratch:
        unpack_learned(checkpoint, Path(scratch, DATA))
        return state_of({f"{DATA}/{path.name}": digest_of(path) for path in Path(scratch, DATA).iterdir()}, policy)


def _policy_of_body(notebook: Notebook, body: RunBody) -> str | None:
    """The default policy of a published run; None where its program is not here."""
    if not notebook.blobs.has(body.source.sha256):
        return None
    return publishing.default_policy(notebook.blobs.get(body.source.sha256).decode("utf-8", "replace"))


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
        blob = body.checkpoint if isinstance(body, RunBody) else None
        if author == notebook.author and blob is not None and blob.sha256 == state:
            return replicate
    used = {replicate for _, replicate, *_ in runs}
    return next(number for number in itertools.count() if number not in used)


VALUE_DIGITS = 6


class PublishableRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that can be published: its project as it was, the files of its environment.

    ``requirements`` are the packages that it needs and not every node has, as lines of ``requirements.in`` with the
    keys of the components that ask for them.
    """

    project: Project
    run: LocalRun
    harness: dict[str, bytes]
    requirements: dict[str, str] = {}

    @property
    def budget(self) -> int:
        """The training episodes of the run and of its ancestors with its policy."""
        return self.run.data.totals.training_episodes

    @property
    def asked_by_environment(self) -> dict[str, str]:
        """The lines that the environment asks for; the agent brings all others."""
        environment = self.project.component("environment").key
        return {line: key for line, key in self.requirements.items() if key == environment}

    @property
    def brings_packages(self) -> bool:
        """Whether its agent needs packages that the environment does not ask for."""
        return len(self.requirements) > len(self.asked_by_environment)


def prepare_run(project: Project, run: LocalRun) -> PublishableRun:
    """What would be published of a kept run. Nothing is measured or sent.

    Raises:
        Refused: the environment is a server's, the code of a component was changed after the run, a component has
            packages of its own, or the run's totals are not those of its policy.
        NotFound, UsageError: what :func:`publishing.environment_files` raises.
    """
    environment = project.component(publishing.ENVIRONMENT)
    if f"{Path(environment.file).stem}:{environment.class_name}" in OF_SERVERS:
        raise Refused(
            f"{environment.key} acts on a server, and an agent is measured in a sandbox without a network",
            hint="publish the environment's own code: autoresearch install environment ./FILE.py, then another run",
        )
    if isolated := isolated_packages(project):
        raise Refused(
            f"{one_line(', '.join(isolated), 100)}: what has Python packages of its own can't be published in an agent",
            hint="install it without --isolated, and do another run",
        )
    check_state(run)
    totals, stated = added_totals(project, run), run.data.totals
    if totals != stated:
        policy = policy_of(run.data).removeprefix("policy.") or "its policy"
        raise Refused(
            f"run {run.id} states {counted(stated.training_episodes, 'training episode')} and {stated.training_steps} "
            f"steps; the runs of {policy} before it add up to {totals.training_episodes} and {totals.training_steps}",
            hint="do another run, which adds them up anew: autoresearch run, then publish that",
        )
    was = publishing.project_of_run(project, run)
    for component in was.all():
        pinned = run.data.components.get(component.key, {}).get("sha256")
        try:
            is_as_it_was = not pinned or code_digest(component, project) == pinned
        except OSError:
            is_as_it_was = False
        if not is_as_it_was:
            raise Refused(
                f"the code of {component.key} was changed after run {run.id}",
                hint="do another run with the code as it is: autoresearch run, then publish that",
            )
    return PublishableRun(
        project=was,
        run=run,
        harness=publishing.environment_files(was),
        requirements=publishing.packages_asked(was, required_by(project)),
    )


def tasks_of_run(log: Log, blobs: BlobStore, prepared: PublishableRun, *, author: bytes | None) -> list[bytes]:
    """The published tasks of this environment: that of the run that this one went on from, this device's, the oldest.

    The files and parameters of the environment have to be the same, and the task has the packages that it needs. Those
    of an earlier version, which could not have agents with packages of their own, come last.
    """
    digests = {name: hashlib.sha256(content).digest() for name, content in prepared.harness.items()}
    places: dict[bytes, tuple[bool, bool, bool, int]] = {}
    above = (run_body_of(log, record) for record in published_ancestors(prepared.project, prepared.run))
    nearest = next((body.task for body in above if body is not None), None)
    for row in log.tasks.all():
        body = log.records.get(row.id).body
        if isinstance(body, TaskBody) and _fits(body, digests, list(prepared.asked_by_environment), blobs):
            place = (not is_current(body.definition), row.digest != nearest, row.author != author, row.time)
            places.setdefault(row.digest, place)
    return sorted(places, key=lambda digest: (places[digest], digest))


def is_current(definition: Mapping[str, object]) -> bool:
    """Whether a task leaves packages and training budget to its agents, and takes files in folders."""
    budget, program = definition.get("budget"), definition.get("program")
    edit = program.get("edit") if isinstance(program, Mapping) else None
    takes_folders = isinstance(edit, list | tuple) and "*/*.py" in edit
    return takes_folders and isinstance(budget, Mapping) and budget.get("unit") == "episodes"


def _fits(task: TaskBody, digests: Mapping[str, bytes], requirements: list[str], blobs: BlobStore) -> bool:
    """Whether a task asks agents in an environment of these files, and has packages that meet the lines."""
    evaluation = task.definition.get("evaluation")
    if not isinstance(evaluation, Mapping) or not evaluation.get("answers"):
        return False
    files = {name: blob.sha256 for name, blob in task.harness.items()}
    loose, lock = files.pop(publishing.ENVIRONMENT_LOOSE, None), files.pop(publishing.ENVIRONMENT_LOCK, None)
    if files != digests or (lock is None) != (not requirements) or (loose is None) != (lock is None):
        return False
    if lock is None:
        return True
    try:
        packages = parse_lock(blobs.get(lock).decode(), LOCK)
    except (AutoresearchError, UnicodeDecodeError):  # its files are not here, or are no list
        return False
    return lock_meets(parse_wanted("\n".join(requirements), LOOSE), packages)


def title_of(prepared: PublishableRun) -> str:
    """A run's title: its policy and trainer, and how long it was trained."""
    used = prepared.run.data.components
    names = [key.partition(".")[2] for key in used if key.startswith(("policy.", "trainer."))]
    defaults = [prepared.project.defaults.get(kind, "") for kind in ("policy", "trainer")]
    chosen = [name for name in defaults if name] if prepared.budget else defaults[:1]
    trained = f"{counted(prepared.budget, 'training episode')}" if prepared.budget else "not trained"
    return f"{' + '.join(chosen or names) or 'agent'}, {trained}"[:120]


def new_task(prepared: PublishableRun, packages: Mapping[str, bytes], folder: Path) -> Task:
    """The task of a run's environment as a new folder; ``packages`` are the files with what the environment needs."""
    folder.mkdir(parents=True)
    write_files(folder, publishing.environment_task_files(prepared.project, packages))
    return load_task(folder)


def request_of(
    prepared: PublishableRun, task: Task, program: str, checkpoint: Path, outcome: RunOutcome
) -> PublishRunRequest:
    """What there is to publish of a run whose learned state, in ``checkpoint``, was measured as ``outcome``.

    Raises AutoresearchError where it could not be measured.
    """
    if outcome.status != RunStatus.OK or outcome.value is None:
        raise AutoresearchError(
            f"run {prepared.run.id} can't be measured: {outcome.reason}",
            hint="autoresearch run shows whether it runs here",
        )
    data = prepared.run.data
    is_training = data.mode == "train"
    numbers = {**msgspec.to_builtins(data.totals), **({"training_seed": data.seed} if is_training else {})}
    return PublishRunRequest(
        task=str(task.folder),
        program=program,
        checkpoint=str(checkpoint),
        mode=data.mode,
        budget=float(prepared.budget),
        parents=published_ancestors(prepared.project, prepared.run),
        title=title_of(prepared),
        outcome=msgspec.structs.replace(
            outcome,
            value=round(outcome.value, VALUE_DIGITS),
            metrics={**outcome.metrics, **numbers},
            curve=[float(f"{point:.6g}") for point in _training_curve(prepared)],
            duration_ms=round(data.seconds * 1000) + outcome.duration_ms,
            sandbox=data.sandbox,
            environment=data.environment,
        ),
    )


def _training_curve(prepared: PublishableRun) -> list[float]:
    """The mean rewards of the training that made what was measured; none where that has a record of its own."""
    runs = [prepared.run, *ancestors(prepared.project, prepared.run)]
    training = next((run for run in runs if run.data.mode == "train"), None)
    return training.data.curve if training and not record_of(prepared.project, training) else []
