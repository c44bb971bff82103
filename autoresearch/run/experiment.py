"""One experiment, from what is to be run to the body of its record."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from autoresearch.record.kinds import MOST_METRICS, TITLE_CHARACTERS, BlobRef, Proposer, Run, RunOutcome, RunPlan
from autoresearch.run import bench as run_bench
from autoresearch.run.data import copied, without
from autoresearch.run.evaluating import ChallengeDraw, Model, evaluate, examine, examine_on_new_text, fault_of_artifact
from autoresearch.run.packages import program_python
from autoresearch.run.proving import fault_of_card, left_card
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.cards import PROCESSOR, card_of, conditions, read_card, wait_for_memory
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits, JobOutcome
from autoresearch.run.sandbox.supervise import KILLED
from autoresearch.run.texts import World
from autoresearch.task.inputs import sources
from autoresearch.task.model import PLACE, Task, evaluation_seed, seed_for
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import reseeded, stated_seedless
from autoresearch.text import NOTE_CHARACTERS
from autoresearch.version import __version__
from autoresearch.words import COMPUTED, RUN_STATUS_SENTENCES, STOPPED, RunStatus

# More of a reason than this does not fit the record's field and tells nobody more.
REASON_CHARACTERS = 1000
# How often the referee asks a model of one's own: a false share of 1 % shows with 99 %.
OWN_CHALLENGES = 512
# What stands in a log between what the program printed and what the task's evaluator did.
EVALUATOR_MARK = b"--- the task's evaluator ---\n"
# More digits than these differ between machines.
VALUE_DIGITS = 6
# The metric in which a record says what its evaluator drew from, where that is new in each run: it can be repeated.
EVALUATION_SEED = "evaluation_seed"
# Programs that read JSON keep whole numbers of so many bits.
_SEED_BITS = 53
# So long a card may take to free the memory of a run that has ended.
_FREEING_SECONDS = 20.0


class Plan(RunPlan, frozen=True, kw_only=True):
    """The plan of a run with its program as one text. ``kind`` says how the program was made.

    ``evaluation_seed`` is that of a run which is repeated; without one an evaluator with ``fresh`` has a new one.
    """

    source: str
    kind: str = "given"
    # What its proposer says that earlier runs show; published as a note beside the run.
    insight: str = ""
    evaluation_seed: int | None = None


def plan_as_it_stands(
    task: Task,
    source: str,
    *,
    replicate: int = 0,
    title: str = "",
    hypothesis: str = "",
    proposer: str = "by hand",
    **fields: object,
) -> Plan:
    """The plan for a source with the task's own seed and full budget; ``fields`` are further fields of the plan.

    Raises:
        UsageError: the source is not valid Python.
    """
    digest = source_digest(source)
    plan = Plan(
        task=task.digest,
        source=source,
        source_digest=digest,
        seedless=stated_seedless(source),
        replicate=replicate,
        seed=seed_for(task.digest, digest, replicate),
        budget=float(task.budget.amount),
        title=title[:TITLE_CHARACTERS],
        hypothesis=hypothesis[:NOTE_CHARACTERS],
        proposer=Proposer(name=proposer, version=__version__),
    )
    return msgspec.structs.replace(plan, **fields)


def again(plan: Plan, more: int) -> Plan:
    """The same plan so many replicates on: with that seed, and other seeds in the program where it fixes its own."""
    source, replicate = reseeded(plan.source, more), plan.replicate + more
    digest = source_digest(source)
    seed = seed_for(plan.task, digest, replicate)
    return msgspec.structs.replace(plan, source=source, source_digest=digest, replicate=replicate, seed=seed)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A plan of a task on a bench; ``on_progress`` gets how far its run is.

    With a ``world`` the program is trained on its data and the model measured on its text, for which no program can
    have been made.
    """

    task: Task
    plan: Plan
    bench: run_bench.Bench
    world: World | None = None
    on_progress: Callable[[RunProgress], None] | None = None

    def measure(self, *, model: Path | None = None, own: bool = False) -> JobOutcome:
        """Run the plan in the sandbox and wait for its end. Whatever the program does, this returns how it ended.

        What a run may cost, with all questions to its model, follows from what the baseline costs here
        (:mod:`autoresearch.run.bench`). Where that is not known the baseline is run first. An ``own`` run that the
        system kills is not held against its program, nor is any failure on a card that no longer computes. With a
        ``model`` nothing is trained: the task's evaluator measures that.

        Raises:
            CannotRunHere: the program brings packages that nobody allowed here, or that can't be installed.
        """
        task, source, bench = self.task, self.plan.source, self.bench
        python, card = bench.python, card_of(bench.device)
        before = None if card is None else read_card(card)
        if (fault := run_bench.fault_of_program(task, source)) is not None:
            outcome = JobOutcome(status=RunStatus.INVALID, reason=fault, sandbox=int(bench.level))
        else:
            python = program_python(source, bench)
            if model is None:
                outcome = self._within_budget()
            elif (fault := fault_of_artifact(task, model)) is not None:
                outcome = JobOutcome(status=RunStatus.INVALID, reason=fault, sandbox=int(bench.level))
            else:
                outcome = msgspec.structs.replace(self._evaluate(model), checkpoint=model)
        if own and outcome.status is RunStatus.CRASHED and outcome.reason == KILLED:
            reason = f"{KILLED}: most likely the machine's memory was used up"
            outcome = msgspec.structs.replace(outcome, status=RunStatus.COULD_NOT_RUN, reason=reason)
        device, speed = bench.device, {}
        if card is not None:  # the next run begins on a free card, and a failure is judged on one
            speed = conditions(before, wait_for_memory(card, before, _FREEING_SECONDS))
        if outcome.status is RunStatus.OK or outcome.status in STOPPED:
            device = device if outcome.has_used_card else PROCESSOR
        elif fault := fault_of_card(device, bench.level, outcome.status):
            reason = f"{fault}; the run ended so: {outcome.reason}"
            outcome = msgspec.structs.replace(outcome, status=RunStatus.COULD_NOT_RUN, reason=reason)
        return msgspec.structs.replace(
            outcome,
            reason=outcome.reason[:REASON_CHARACTERS],
            metrics={name: number for name, number in outcome.metrics.items() if math.isfinite(number)},
            device=run_bench.device_name(device)[:TITLE_CHARACTERS],
            environment=run_bench.environment(python, device) | ({} if device == PROCESSOR else speed),
        )

    def _within_budget(self) -> JobOutcome:
        """The outcome of training and questions, with status over budget where they cost more than they may."""
        task, bench, budget = self.task, self.bench, self.plan.budget
        is_baseline = self.plan.source_digest == source_digest(task.baseline.decode())
        baseline = None
        if not is_baseline and run_bench.is_metered(task):
            baseline = run_bench.known_cost(task, bench, budget) or _baseline_cost(task, bench, budget)
        purse = run_bench.purse_of(task, bench, baseline)
        outcome = self.train(purse.training_limits(run_bench.job_limits(task, bench.ceiling)))
        purse.pay_training(outcome)
        if outcome.status is RunStatus.OK:
            outcome = self.with_number(outcome, purse)
        if is_baseline and outcome.status is RunStatus.OK:
            run_bench.remember_cost(task, bench, budget, purse.cost)
        if (judged := judge_cost(task, bench, budget, purse, outcome.status)) is None:
            return outcome
        status, reason = judged
        return msgspec.structs.replace(outcome, status=status, reason=reason, value=None)

    def train(self, limits: JobLimits) -> JobOutcome:
        """Train the program in the sandbox, without judging what it cost or what it left.

        Where it asks for a card, was given one and has computed on the processor, that is no run of it.
        """
        task, bench = self.task, self.bench
        files = {**run_bench.program_files(self.plan.source), **task.harness}
        files = {name: text for name, text in files.items() if name not in task.hidden}
        if task.evaluator is not None:
            limits = replace(limits, checkpoint_bytes=task.evaluator.artifact_mib * run_bench.MIB)
        command = run_bench.command_words(task.recipe.command)
        with self._visible_data() as data:
            job = Job(
                files=files,
                build=run_bench.command_words(task.recipe.build),
                command=command,
                library=run_bench.runs_library(command),
                copied=tuple(files),
                data=data,
                foreign=bench.foreign,
                mounts=tuple(
                    Path(mount).expanduser() for name, mount in task.mounts.items() if not name.startswith(PLACE)
                ),
                inputs={place: path for place, path in sources(task).items() if place not in task.hidden},
                limits=limits,
                seed=self.plan.seed,
                budget=self.plan.budget,
                threads=bench.threads,
                device=bench.device,
                metric_source="stdout" if task.metric.source == "evaluator" else task.metric.source,
                metric_name="" if task.evaluator else task.metric.name,  # of what it prints nothing is a measurement
                checkpoint_to=bench.scratch,
                python=program_python(self.plan.source, bench),
                artifact=task.evaluator.artifact if task.evaluator else "",
            )
            outcome = execute(job, level=bench.level, on_progress=self.on_progress, cancelled=bench.cancelled)
        if outcome.status in COMPUTED and (reason := left_card(bench.device, files.values(), outcome)):
            return msgspec.structs.replace(outcome, status=RunStatus.COULD_NOT_RUN, reason=reason, value=None)
        return outcome

    @contextmanager
    def _visible_data(self) -> Iterator[Path | None]:
        """What a program sees of the data; where the task has other worlds, only the content tells which it is."""
        task, world = self.task, self.world
        data = run_bench.task_data(task, self.bench) if world is None or world.data is None else world.data
        if data is not None and task.evaluation is not None and task.evaluation.world:
            with copied(data, task.hidden, self.bench.data_cache) as folder:
                yield folder
        else:
            yield without(data, task.hidden) if data is not None and task.hidden else data

    def with_number(self, outcome: JobOutcome, purse: run_bench.Purse) -> JobOutcome:
        """The outcome of a training with the number of the referee or evaluator, where the task has one."""
        if self.task.evaluation is not None:
            return self._refereed(outcome, purse)
        return outcome if self.task.evaluator is None else self._evaluated(outcome, purse)

    def _refereed(self, outcome: JobOutcome, purse: run_bench.Purse) -> JobOutcome:
        """The outcome with the referee's number, or with why there is none."""
        if outcome.checkpoint is None:
            reason = "it left no checkpoint for the referee"
            return msgspec.structs.replace(outcome, status=RunStatus.INVALID, reason=reason)
        task, bench, model = self.task, self.bench, Model(self.plan.source, outcome.checkpoint)
        challenge = ChallengeDraw(os.urandom(32), OWN_CHALLENGES)
        if self.world is not None and self.world.text is not None:
            text = self.world.text
            examined = examine_on_new_text(task, model, bench, challenge, new=text, purse=purse)
        else:
            examined = examine(task, model, bench, challenge, purse=purse)
        return msgspec.structs.replace(
            outcome,
            status=examined.status,
            reason=examined.reason,
            value=None if examined.value is None else round(examined.value, VALUE_DIGITS),
            duration_ms=outcome.duration_ms + examined.duration_ms,
            cpu_ms=outcome.cpu_ms + examined.cpu_ms,
        )

    def _evaluate(self, artifact: Path, purse: run_bench.Purse | None = None) -> JobOutcome:
        """What the task's evaluator measures. With ``fresh`` its seed is made here, after the program has ended."""
        assert self.task.evaluator is not None
        is_fresh = self.task.evaluator.fresh and self.world is None
        seed = self.world.seed if self.world is not None else self.plan.evaluation_seed
        if seed is None:
            seed = secrets.randbits(_SEED_BITS) if is_fresh else evaluation_seed(self.plan.seed)
        outcome = evaluate(self.task, self.plan.source, artifact, self.bench, seed, purse=purse)
        if not is_fresh or len(outcome.metrics) >= MOST_METRICS:
            return outcome
        return msgspec.structs.replace(outcome, metrics={**outcome.metrics, EVALUATION_SEED: seed})

    def _evaluated(self, outcome: JobOutcome, purse: run_bench.Purse) -> JobOutcome:
        """The outcome with the number of the task's evaluator, or with why there is none."""
        assert self.task.evaluator is not None
        if outcome.checkpoint is None:
            reason = f"it left no plain file {self.task.evaluator.artifact} in its working folder"
            return msgspec.structs.replace(outcome, status=RunStatus.INVALID, reason=reason)
        evaluated = self._evaluate(outcome.checkpoint, purse)
        return msgspec.structs.replace(
            outcome,
            status=evaluated.status,
            reason=evaluated.reason,
            value=evaluated.value,
            metrics=evaluated.metrics,
            log=outcome.log + EVALUATOR_MARK + evaluated.log,
            duration_ms=outcome.duration_ms + evaluated.duration_ms,
            cpu_ms=outcome.cpu_ms + evaluated.cpu_ms,
        )


def judge_cost(
    task: Task, bench: run_bench.Bench, budget: float, purse: run_bench.Purse, status: RunStatus
) -> tuple[RunStatus, str] | None:
    """What follows from what a run with this budget cost that ended so; None where it is within what it may.

    The baseline is measured once more before a run is over budget.
    """
    if (baseline := purse.baseline) is None:
        return None
    is_stopped = status is RunStatus.OVER_BUDGET or (
        status is RunStatus.TIMED_OUT and purse.by_clock and purse.is_over(baseline)
    )
    if not is_stopped and not (status is RunStatus.OK and purse.is_over(baseline)):
        return None
    baseline = _baseline_cost(task, bench, budget) or baseline
    if purse.is_over(baseline):
        return RunStatus.OVER_BUDGET, purse.sentence(baseline)
    if is_stopped:
        reason = "it was stopped, because this machine is much slower than when the baseline was measured"
        return RunStatus.CANCELLED, reason
    return None


def question_purse(task: Task, bench: run_bench.Bench) -> run_bench.Purse:
    """The purse of a model that is asked alone, trained elsewhere with the task's budget."""
    budget, baseline = float(task.budget.amount), None
    if run_bench.is_metered(task):
        baseline = run_bench.known_cost(task, bench, budget) or _baseline_cost(task, bench, budget)
    return run_bench.purse_of(task, bench, baseline, asked_alone=True)


def _baseline_cost(task: Task, bench: run_bench.Bench, budget: float) -> run_bench.Cost | None:
    """Run the baseline for its cost; None where it does not end well.

    Where its answers come to no number, runs are bounded by its training alone.
    """
    plan = msgspec.structs.replace(plan_as_it_stands(task, task.baseline.decode()), budget=budget)
    # Its checkpoint must not take another's place.
    experiment, purse = Experiment(task, plan, bench.beside("baseline")), run_bench.purse_of(task, bench)
    outcome = experiment.train(run_bench.job_limits(task, bench.ceiling))
    if outcome.status is not RunStatus.OK:
        return None
    purse.pay_training(outcome)
    evaluation = experiment.with_number(outcome, purse)
    if evaluation.status is RunStatus.CANCELLED:
        return None
    cost = purse.cost if evaluation.status is RunStatus.OK else run_bench.Cost(purse.cost.training_ms)
    run_bench.remember_cost(task, bench, budget, cost)
    return cost


def abandoned(reason: str) -> RunOutcome:
    """The outcome of a run of which nobody saw the end."""
    return RunOutcome(status=RunStatus.ABANDONED, reason=reason)


def run_body(
    plan: RunPlan,
    outcome: RunOutcome,
    *,
    source: BlobRef,
    log: BlobRef | None = None,
    checkpoint: BlobRef | None = None,
) -> Run:
    """The body of the run's record."""
    halves = ((RunPlan, plan), (RunOutcome, outcome))
    fields = {name: getattr(half, name) for kind, half in halves for name in kind.__struct_fields__}
    fields["reason"] = outcome.reason or RUN_STATUS_SENTENCES[RunStatus(outcome.status)]
    return Run(**fields, source=source, log=log, checkpoint=checkpoint)
