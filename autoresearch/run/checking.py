"""Measuring somebody else's run in a worker: its checkpoint, itself once more, or beside its parent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from autoresearch.errors import TimedOut, UsageError
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import challenge_draw, text_seeds
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.judging.statistics import RANDOM, RANDOM_ERROR, SOLVED, STANDARD_ERROR
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.bench import Bench, Purse, device_name, fault_of_program
from autoresearch.run.evaluating import ChallengeDraw, Model, evaluate, examine, fault_of_artifact
from autoresearch.run.experiment import Experiment, abandoned, judge_cost, plan_as_it_stands, question_purse
from autoresearch.run.proving import asks_for_card
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.cards import PROCESSOR
from autoresearch.run.texts import World, drawn_world
from autoresearch.task.model import Task, evaluation_seed, seed_for
from autoresearch.task.program import source_digest
from autoresearch.words import NOT_EVALUATED, PROGRAM_AT_FAULT, RunStatus

# A share of false losses of half a percent shows with more than 99 %.
CHALLENGES = 2048
# What is run, as a reason names it.
_BASELINE, _PARENT, _RUN, _WORLD = "the task's baseline", "its parent", "the run", "a world for it"


class VerificationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run of somebody else to be measured.

    To ``evaluate`` it, the referee asks its checkpoint (a blob), on new text from ``seeds`` as well, beside its
    parent's where there is one; without a checkpoint the run is repeated. To ``replicate`` it, it is run beside its
    parent and the task's baseline with each of ``seeds``. ``state_only``: it claims what its learned state is worth,
    and no budget.
    """

    run: bytes
    task: bytes
    stage: str
    round: int
    proof: bytes
    seeds: list[int]
    source: str
    source_digest: bytes
    parent_source: str | None
    checkpoint: bytes | None
    parent_checkpoint: bytes | None
    replicate: int
    claim: float | None
    state_only: bool = False


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What a check came to. ``verdict`` is "pass" when it could be measured, whatever the number says."""

    verdict: Literal["pass", "fail", "error"]
    value: float | None = None
    values: list[float] = []
    parent_values: list[float] = []
    baseline_values: list[float] = []
    metrics: dict[str, float] = {}
    reason: str = ""
    device: str = ""
    sandbox: int = 0
    duration_ms: int = 0


def carry_out_check(
    check: VerificationPlan,
    task: Task,
    bench: Bench,
    *,
    model: Model | None,
    parent: Model | None,
    on_progress: Callable[[float, RunProgress], None],
) -> Verified:
    """Measure; ``on_progress`` gets how far the whole is, 0 to 1, and how far the run in hand.

    With a ``model``, the author's own, that is what is evaluated, beside its ``parent`` when that is here as well.
    """
    if check.stage == EVALUATE and not _is_named(check.source, check.source_digest):
        return Verified(
            verdict="fail",
            device=_device(check, task, bench),
            sandbox=int(bench.level),
            duration_ms=0,
            reason="its source is not the program that its record names",
        )
    if model is not None and check.stage == EVALUATE and task.evaluator is not None:
        return _evaluated(check, task, bench, model)
    if model is not None and check.stage == EVALUATE:
        return _examined(check, task, bench, model, parent)
    began = time.monotonic()
    done: list[tuple[str, RunOutcome]] = []
    programs = {_RUN: check.source}
    drawn: Sequence[tuple[int | None, int | None]] = [(None, None)]
    if check.stage == REPLICATE and check.parent_source is not None:
        programs = _compared_programs(task, check.source, check.parent_source)
        drawn = list(zip(check.seeds, text_seeds(ecvrf.output(check.proof), len(check.seeds)), strict=True))
    total = len(drawn) * len(programs)

    def tell(progress: RunProgress) -> None:
        on_progress((len(done) + progress.fraction) / total, progress)

    def run(name: str, seed: int | None, world: World | None) -> bool:
        plan = plan_as_it_stands(task, programs[name], replicate=check.replicate)
        if seed is not None:
            plan = msgspec.structs.replace(plan, seed=seed)
        outcome = Experiment(task, plan, bench, world, tell).measure()
        done.append((name, outcome))
        return outcome.status is RunStatus.OK and outcome.value is not None

    try:
        for seed, world_seed in drawn:  # what a program knew of the task's own world is no help in a pair
            world = None if world_seed is None else drawn_world(task, world_seed, bench)
            if not all(run(name, seed, world) for name in programs):
                break
    except TimedOut as error:  # making the world took too long here
        done.append((_WORLD, abandoned(str(error))))
    return _verified(check, task, done, total, int(1000 * (time.monotonic() - began)))


def _compared_programs(task: Task, source: str, parent: str) -> dict[str, str]:
    """What is run in each world of a pair, in order.

    A parent that is good in the task's own world alone makes any child look better. So the task's baseline runs there
    too, unless it is one of the two.
    """
    baseline = task.baseline.decode()
    is_compared = any(_is_named(program, source_digest(baseline)) for program in (parent, source))
    return {**({} if is_compared else {_BASELINE: baseline}), _PARENT: parent, _RUN: source}


def _device(check: VerificationPlan, task: Task, bench: Bench) -> str:
    """The hardware that answers: a card only where program or harness asks for one, as in the record of a run."""
    return device_name(bench.device if asks_for_card((check.source.encode(), *task.harness.values())) else PROCESSOR)


def _is_named(source: str, digest: bytes) -> bool:
    """Whether a program is the one with this digest: the seed follows from it, and runs are counted together by it."""
    try:
        return source_digest(source) == digest
    except UsageError:
        return False


def _evaluated(check: VerificationPlan, task: Task, bench: Bench, model: Model) -> Verified:
    """Have the task's evaluator measure the author's artifact.

    Its seed is that of the author's run; with ``fresh`` one that follows from this verifier's proof.
    """
    verified = Verified(verdict="pass", device=_device(check, task, bench), sandbox=int(bench.level))
    seed = evaluation_seed(seed_for(task.digest, check.source_digest, check.replicate))
    if task.evaluator is not None and task.evaluator.fresh:
        seed = check.seeds[0]
    fault = fault_of_program(task, model.source) or fault_of_artifact(task, model.checkpoint)
    if fault is not None:
        return msgspec.structs.replace(verified, verdict="fail", reason=fault)
    purse = _purse(check, task, bench)
    evaluation = evaluate(task, model.source, model.checkpoint, bench, seed, purse=purse)
    verified = msgspec.structs.replace(verified, duration_ms=evaluation.duration_ms)
    if (over := _over_budget(task, bench, purse, evaluation.status)) is not None:
        return msgspec.structs.replace(verified, verdict=over[0], reason=over[1])
    verified = msgspec.structs.replace(verified, value=evaluation.value)
    if evaluation.status is RunStatus.OK:
        names = (STANDARD_ERROR, RANDOM, RANDOM_ERROR, SOLVED)
        stated = {name: number for name in names if math.isfinite(number := evaluation.metrics.get(name, math.nan))}
        return msgspec.structs.replace(verified, metrics={"evaluated": 1.0, **stated})
    verdict = "error" if evaluation.status in NOT_EVALUATED else "fail"
    return msgspec.structs.replace(verified, verdict=verdict, reason=f"{evaluation.status}: {evaluation.reason}")


def _examined(
    check: VerificationPlan,
    task: Task,
    bench: Bench,
    model: Model,
    parent: Model | None,
) -> Verified:
    draw, purse = challenge_draw(ecvrf.output(check.proof)), _purse(check, task, bench)
    fresh_seed = check.seeds[0] if check.seeds else None
    verified = Verified(
        verdict="pass",
        device=_device(check, task, bench),
        sandbox=int(bench.level),
        duration_ms=0,
    )
    try:
        examined = examine(
            task,
            model,
            bench,
            challenge=ChallengeDraw(draw, CHALLENGES),
            fresh_seed=fresh_seed,
            parent=parent,
            purse=purse,
        )
    except TimedOut as error:  # writing the text for it took too long here
        return msgspec.structs.replace(verified, verdict="error", reason=str(error))
    verified = msgspec.structs.replace(verified, duration_ms=examined.duration_ms)
    if (over := _over_budget(task, bench, purse, examined.status)) is not None:
        return msgspec.structs.replace(verified, verdict=over[0], reason=over[1])
    if examined.status is not RunStatus.OK:
        verdict = "error" if examined.status in NOT_EVALUATED else "fail"
        reason = f"{examined.status}: {examined.reason}"
        return msgspec.structs.replace(verified, verdict=verdict, reason=reason)
    metrics = {
        "challenges": examined.challenges,
        "mismatches": examined.mismatches,
        "mean_difference": examined.mean_difference,
    }
    optional = {"gap": examined.gap, "shuffled": examined.shuffled, "unigram": examined.unigram}
    metrics |= {name: number for name, number in optional.items() if number is not None}
    values = [] if examined.fresh is None else [examined.fresh]
    parents = [] if examined.parent_fresh is None else [examined.parent_fresh]
    return msgspec.structs.replace(
        verified, value=examined.value, values=values, parent_values=parents, metrics=metrics
    )


def _purse(check: VerificationPlan, task: Task, bench: Bench) -> Purse:
    """What the answers may cost. A learned state claims no budget: the task's limits alone bound those."""
    return Purse() if check.state_only else question_purse(task, bench)


def _over_budget(
    task: Task, bench: Bench, purse: Purse, status: RunStatus
) -> tuple[Literal["fail", "error"], str] | None:
    """Verdict and reason where a model that was asked alone cost more than it may, or was stopped before that."""
    judged = judge_cost(task, bench, float(task.budget.amount), purse, status)
    if judged is None:
        return None
    ended, reason = judged
    return "error" if ended in NOT_EVALUATED else "fail", f"{ended}: {reason}"


def _verified(
    check: VerificationPlan,
    task: Task,
    done: list[tuple[str, RunOutcome]],
    total: int,
    duration_ms: int,
) -> Verified:
    name, last = done[-1]
    values: dict[str, list[float]] = {_BASELINE: [], _PARENT: [], _RUN: []}
    for which, outcome in done:
        if outcome.value is not None:
            values[which].append(outcome.value)
    verified = Verified(verdict="pass", device=last.device, sandbox=last.sandbox, duration_ms=duration_ms)
    if sum(map(len, values.values())) < total:
        # What a person or this machine's sandbox stopped says nothing of the run, nor does the others' failure.
        at_fault = name == _RUN and last.status in PROGRAM_AT_FAULT
        reason = f"{'' if name == _RUN else f'{name}: '}{last.status}: {last.reason}"
        return msgspec.structs.replace(verified, verdict="fail" if at_fault else "error", reason=reason)
    if check.stage != REPLICATE:
        return msgspec.structs.replace(verified, value=values[_RUN][0])
    is_baseline = _is_named(check.source, source_digest(task.baseline.decode()))
    beside = values[_RUN if is_baseline else _BASELINE]
    return msgspec.structs.replace(verified, values=values[_RUN], parent_values=values[_PARENT], baseline_values=beside)
