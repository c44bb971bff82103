"""Runs a program on a task of the measurement as a node does: in the sandbox, with the task's own metric."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autoresearch.judging.belief import least_believed
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.task.bounds import bound_of
from autoresearch.task.measuring import measuring_digest
from autoresearch.task.model import Task, possible_value
from autoresearch.task.program import join_files, split_program
from autoresearch.text import sign_of
from benchmarks.attacks.tasks import AttackedTask


def run_program(task: Task, bench: Bench, files: Mapping[str, str] | None = None) -> JobOutcome:
    """Run the task's baseline, or with ``files`` that with these in place of its own."""
    source = task.baseline.decode()
    if files:
        source = join_files({**split_program(source), **files})
    return Experiment(task, plan_as_it_stands(task, source), bench).measure(own=True)


def fault_of(attacked: AttackedTask, place: Path, bench: Bench) -> str:
    """Why a task is not what it says; empty where its baseline is honest and its cheat counts only with a hole."""
    task = attacked.write(place)
    honest = run_program(task, bench)
    if honest.value is None:
        return f"its baseline has no value: {honest.reason}"
    if attacked.is_past(honest.value):
        return f"its baseline is past what is honest: {honest.value}"
    cheat = run_program(task, bench, attacked.cheat)
    counts = cheat.value is not None and attacked.is_past(cheat.value) and _is_believed(task, attacked, honest, cheat)
    if counts == attacked.is_planted:
        return ""
    return f"its cheat {'counts' if counts else 'does not count'}: {cheat.value} after {honest.value}, {cheat.reason}"


def _is_believed(task: Task, attacked: AttackedTask, honest: JobOutcome, cheat: JobOutcome) -> bool:
    """Whether a node would take the cheat's value for the best one, by the rules for floors and printed numbers."""
    metric = task.metric
    sign, value, first = sign_of(metric.direction), cheat.value, honest.value
    assert value is not None
    assert first is not None
    if possible_value(value, sign=sign, floor=metric.floor) is None:
        return False
    if metric.source != "stdout":
        return True
    baseline = task.baseline.decode()
    usual = measuring_digest(baseline, metric.name)
    if usual and measuring_digest(join_files({**split_program(baseline), **attacked.cheat}), metric.name) != usual:
        return False
    bound = bound_of(metric.name, metric.direction, [first])
    return sign * value >= least_believed(sign * first, sign * first, bound, sign=sign)
