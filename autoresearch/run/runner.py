"""Carries out a run that is a folder: makes the machine ready, trains or checks in the sandbox, writes the outcome.

One code path for all: a worker calls it in its own process, ``python -m autoresearch.run FOLDER`` on any machine.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, CannotRunHere, Refused, UsageError
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.bench import Bench, task_data
from autoresearch.run.checking import VerificationPlan, Verified, carry_out_check
from autoresearch.run.consent import check_reaches, reaches_of
from autoresearch.run.evaluating import Model
from autoresearch.run.experiment import REASON_CHARACTERS, Experiment, Plan
from autoresearch.run.folder import (
    CHECKPOINT,
    LOG,
    MODEL,
    PARENT_MODEL,
    Conditions,
    EventFile,
    Fault,
    RunReply,
    RunRequest,
    fault_of,
    run_folder,
    write_outcome,
    write_request,
)
from autoresearch.run.packages import compile_libraries, is_installed, task_python, uncompiled_folders
from autoresearch.run.preflight import check_card, forget_runs, preflight, remember_run
from autoresearch.run.proving import asks_for_card, fault_of_card, prove
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.cards import NO_CARD, PROCESSOR, card_of, make_nodes
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.run.sandbox.obstacle import get_bubblewrap
from autoresearch.run.sandbox.scratch import scratch_folder, sweep
from autoresearch.task.model import Task
from autoresearch.words import RunStatus, Why

_WORK = "work"
_STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True)
class RunSite:
    """The machine that carries out a run: how well it walls programs in, and its caches of data and environments.

    ``allowed`` has the marks of what a person allowed folders to reach; None: nothing.
    """

    level: Level
    task_data: Path
    environments: Path
    allowed: Path | None = None


def make_bench(
    task: Task,
    conditions: Conditions,
    place: RunSite,
    scratch: Path,
    *,
    on_stage: Callable[[Why], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Bench:
    """The bench for a task's runs here, with its packages. Neither its data nor its programs were tried.

    Raises:
        NotAllowed: the task's folder reaches out of itself, and nobody allowed that.
        CannotRunHere: the machine lacks something; no program's fault.
        Refused: a rule forbids it, such as a sandbox that is too weak.
        AutoresearchError: it was cancelled, or the task is broken.
    """
    if not conditions.is_allowed:
        check_reaches(task.folder, reaches_of(task), place.allowed)
    if place.level < conditions.least_level:
        least = Level(conditions.least_level)
        raise CannotRunHere(f"the sandbox here has level {place.level.label}, and {least.label} is the least allowed")
    permit(place.level, foreign=conditions.foreign)
    if (card := card_of(conditions.device)) is not None and place.level is Level.LANDLOCK:
        if asks_for_card((task.baseline, *task.harness.values())):
            raise CannotRunHere(NO_CARD, hint=get_bubblewrap())
        card = None
    if card is not None:
        on_stage(Why.TESTING_CARD)
        make_nodes()
        prove(card.uuid, place.level)
    for folder in uncompiled_folders():
        on_stage(Why.COMPILING_LIBRARIES)
        compile_libraries(folder, cancelled=cancelled)
    if task.packages and not is_installed(task, place.environments):
        on_stage(Why.INSTALLING_PACKAGES)
    python = task_python(task, place.environments, may_install=lambda: conditions.may_install, cancelled=cancelled)
    return Bench(
        place.level,
        conditions.threads,
        PROCESSOR if card is None else card.uuid,
        place.task_data,
        scratch,
        conditions.ceiling,
        foreign=conditions.foreign,
        python=python,
        environments=place.environments,
        may_install=conditions.programs_may_install,
        cancelled=cancelled,
    )


def make_bench_with_data(
    task: Task,
    conditions: Conditions,
    place: RunSite,
    scratch: Path,
    *,
    on_stage: Callable[[Why], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Bench:
    """The same with the task's data.

    Raises what :func:`make_bench` raises, and Refused where the task's limits are above the ceiling.
    """
    bench = make_bench(task, conditions, place, scratch, on_stage=on_stage, cancelled=cancelled)
    check_card(task, [bench.device])
    on_stage(Why.PREPARING_DATA)
    if conditions.recheck:
        forget_runs(task, bench)
    try:
        task_data(task, bench)
    except (Refused, UsageError):
        raise
    except AutoresearchError as error:
        raise CannotRunHere(f"the task's data could not be made here: {error}", hint=error.hint) from error
    return bench


def make_ready(
    task: Task,
    conditions: Conditions,
    place: RunSite,
    scratch: Path,
    *,
    on_stage: Callable[[Why], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Bench:
    """The same, and once a day the task's baseline takes its first step. Raises what that raises."""
    bench = make_bench_with_data(task, conditions, place, scratch, on_stage=on_stage, cancelled=cancelled)
    preflight(task, bench)
    return bench


@contextmanager
def run_here(
    request: RunRequest,
    place: RunSite,
    spool: Path,
    *,
    model: Callable[[Path], object] | None = None,
    ready: Callable[[Task, Conditions, RunSite, Path], Bench] = make_ready,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
) -> Iterator[tuple[Path, RunReply]]:
    """Carry out a request in this process: its folder, which is gone afterwards, and how it ended.

    ``model`` writes what the program has learned into a file: then that is measured, and nothing is trained.

    Raises what ``ready`` raises, which makes the bench.
    """
    spool.mkdir(parents=True, exist_ok=True)
    for swept in (None, spool, place.task_data):
        sweep(swept)
    with scratch_folder(spool) as scratch:
        bench = ready(request.task, request.conditions, place, scratch.folder)
        folder = run_folder(scratch.folder, request.run)
        write_request(folder, request)
        if model is not None:
            model(folder / MODEL)
        yield (
            folder,
            carry_out(
                folder,
                request,
                place.level,
                lambda work, _: replace(bench, scratch=work),
                on_progress=on_progress,
                cancelled=bench.cancelled,
            ),
        )


def carry_out(
    folder: Path,
    request: RunRequest,
    level: Level,
    ready: Callable[[Path, EventFile], Bench],
    *,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> RunReply:
    """Carry out the request of a folder and write its outcome there: whatever happens, how it ended.

    ``ready`` makes the bench, with its scratch folder; it may raise what :func:`make_ready` raises.

    Raises:
        Refused: another process has begun it. Then nothing is written.
    """
    events = EventFile(folder)
    work = folder / _WORK

    def tell(progress: RunProgress) -> None:
        events.progress(progress)
        on_progress(progress)

    try:
        work.mkdir()
        bench = replace(ready(work, events), cancelled=cancelled)
        if request.plan is not None:
            ended = _experiment(folder, request, request.plan, bench, tell)
        else:
            assert request.check is not None, "a request has a plan or a check"
            ended = _check(folder, request, request.check, bench, tell)
    except AutoresearchError as error:
        ended = RunReply(run=request.run, level=int(level), fault=fault_of(error), cancelled=cancelled())
    except Exception:  # noqa: BLE001 - the edge of a run: it has an outcome, with the traceback
        fault = Fault(sentence=traceback.format_exc(limit=-3))
        ended = RunReply(run=request.run, level=int(level), fault=fault, cancelled=cancelled())
    finally:
        events.close()
        shutil.rmtree(work, ignore_errors=True)
    write_outcome(folder, ended)
    return ended


def _experiment(
    folder: Path,
    request: RunRequest,
    plan: Plan,
    bench: Bench,
    on_progress: Callable[[RunProgress], None],
) -> RunReply:
    model = folder / MODEL if request.has_model else None
    outcome = Experiment(request.task, plan, bench, on_progress=on_progress).measure(model=model, own=True)
    if bench.cancelled() and outcome.status is RunStatus.CRASHED:  # an engine ends all processes of a job
        outcome = msgspec.structs.replace(outcome, status=RunStatus.CANCELLED, reason=_STOPPED)
    if outcome.status is RunStatus.OK:
        remember_run(request.task, bench)
    (folder / LOG).write_bytes(outcome.log)
    if outcome.checkpoint is not None:
        outcome.checkpoint.rename(folder / CHECKPOINT)
    return RunReply(run=request.run, level=int(bench.level), outcome=as_record(outcome), cancelled=bench.cancelled())


def as_record(outcome: JobOutcome) -> RunOutcome:
    """The part of an outcome that goes into a run's record."""
    return msgspec.convert(outcome, RunOutcome, from_attributes=True)


def _check(
    folder: Path,
    request: RunRequest,
    check: VerificationPlan,
    bench: Bench,
    on_progress: Callable[[RunProgress], None],
) -> RunReply:
    verified: Verified = carry_out_check(
        check,
        request.task,
        bench,
        model=_model(check.source, check.checkpoint, folder / MODEL),
        parent=_model(check.parent_source, check.parent_checkpoint, folder / PARENT_MODEL),
        on_progress=lambda fraction, step: on_progress(msgspec.structs.replace(step, fraction=fraction)),
    )
    if bench.cancelled() and verified.verdict == "fail":
        verified = msgspec.structs.replace(verified, verdict="error", reason=_STOPPED)
    elif verified.verdict == "fail" and (fault := fault_of_card(bench.device, bench.level)):
        verified = msgspec.structs.replace(verified, verdict="error", reason=f"{fault}; {verified.reason}")
    stopped = verified.verdict == "error" and bench.cancelled()
    return RunReply(run=request.run, level=int(bench.level), verified=verified, cancelled=stopped)


def _model(source: str | None, checkpoint: bytes | None, file: Path) -> Model | None:
    return None if source is None or checkpoint is None else Model(source, file)


def outcome_of(ended: RunReply) -> RunOutcome:
    """What is recorded of a run of a plan: a fault that came after the claim is the machine's, not the program's."""
    if ended.outcome is not None:
        return ended.outcome
    reason = ended.fault.sentence[:REASON_CHARACTERS] if ended.fault else ""
    status = RunStatus.CANCELLED if ended.cancelled else RunStatus.COULD_NOT_RUN
    return RunOutcome(status=status, reason=reason)
