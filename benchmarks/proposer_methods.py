"""The methods that the proposer's benchmark compares, each as (what was measured so far) -> what to measure next.

All see the same space: the constants with their declared ranges, the patches, and the program's own conditions.
Each is a function of its search seed and of its measurements alone, so that a stopped search can go on.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Space, space_of
from autoresearch.propose.search.evidence import PastRun, gather
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.proposal import SearchProblem
from autoresearch.propose.search.search import propose
from autoresearch.task.loading import shipped_task
from autoresearch.task.program import source_digest

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

# What Optuna is told of a run that failed: worse than any program that trains at all.
FAILED = 8.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a search."""

    source: str
    genome: Genome
    replicate: int
    value: float | None
    parent: str | None = None
    """The run that it starts from, as the hexadecimal id that the search knows it by."""


Next = Callable[[Space, int, Sequence[Measured]], Measured]
Best = Callable[[Space, int, Sequence[Measured]], str]


def ours_next(space: Space, seed: int, done: Sequence[Measured]) -> Measured:
    """The built-in proposer, alone with its own runs."""
    made = propose(problem_of(space, seed), past_runs(done), [], worker="benchmark", counter=len(done))
    parent = None if made.parent is None else made.parent.hex()
    return Measured(made.source, made.genome, made.replicate, None, parent)


def best_run(problem: SearchProblem, runs: Collection[PastRun]) -> PastRun | None:
    """The first run of the source that leads: its mean over seeds, shrunk, plus a standard error."""
    evidence = gather(runs, direction=problem.direction, noise=problem.noise, floor=problem.floor)
    leader = evidence.leader()
    return None if leader is None else leader.first


def ours_best(space: Space, seed: int, done: Sequence[Measured]) -> str:
    """The source that the built-in proposer would call the best."""
    leader = best_run(problem_of(space, seed), past_runs(done))
    digest = source_digest(space.source) if leader is None else leader.source_digest
    return next(run.source for run in done if source_digest(run.source) == digest)


def random_next(space: Space, seed: int, done: Sequence[Measured]) -> Measured:
    """The baseline first, then anything."""
    if not done:
        return Measured(space.source, space.default(), 0, None)
    draws = Draws(b"random search", str(seed).encode(), str(len(done)).encode())
    while True:
        genome = anywhere(list(space.parameters.values()), draws)
        source = space.build(genome) if space.allows(genome) else None
        if source is not None:
            return Measured(source, genome, 0, None)


def optuna_next(space: Space, seed: int, done: Sequence[Measured]) -> Measured:
    """Optuna's default sampler (multivariate TPE), the baseline enqueued first."""
    import optuna

    if not done:
        return Measured(space.source, space.default(), 0, None)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known = distributions(space)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1000 * seed + len(done)))
    for run in done:
        value = FAILED if run.value is None else run.value
        study.add_trial(optuna.trial.create_trial(params=run.genome, distributions=known, value=value))
    while True:
        trial = study.ask(known)
        genome = {name: trial.params[name] for name in space.parameters}
        source = space.build(genome) if space.allows(genome) else None
        if source is not None:
            return Measured(source, genome, 0, None)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)


def lowest(space: Space, _: int, done: Sequence[Measured]) -> str:
    """The source with the lowest single measurement: what random search and Optuna call their best."""
    working = [(run.value, run.source) for run in done if run.value is not None]
    return min(working)[1] if working else space.source


METHODS: dict[str, tuple[Next, Best]] = {
    "ours": (ours_next, ours_best),
    "optuna": (optuna_next, lowest),
    "random": (random_next, lowest),
}


def problem_of(space: Space, seed: int) -> SearchProblem:
    """The shipped task, as a search with this seed sees it."""
    task = hashlib.sha256(b"benchmark" + str(seed).encode()).digest()
    return SearchProblem(task, space.source, "minimize", 0.02, 0.762866, lambda _: None, space.patches)


def shipped_space() -> Space:
    """The search space of the task that ships."""
    task = shipped_task()
    return space_of(task.baseline.decode(), patches_of(task))


def past_runs(done: Sequence[Measured]) -> list[PastRun]:
    """Measured runs as the built-in proposer takes them."""
    return [
        PastRun(
            id=hashlib.sha256(str(i).encode()).digest(),
            source_digest=source_digest(run.source),
            genome=run.genome,
            value=run.value,
            replicate=run.replicate,
            parent=None if run.parent is None else bytes.fromhex(run.parent),
            base=None,
        )
        for i, run in enumerate(done)
    ]


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """A space as Optuna is told of it."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    made: dict[str, BaseDistribution] = {}
    for name, parameter in space.parameters.items():
        kind, low, high = parameter.range.kind, parameter.range.low, parameter.range.high
        if kind == "one of":
            made[name] = CategoricalDistribution(parameter.range.choices)
        elif kind == "int":
            made[name] = IntDistribution(int(low), int(high))
        else:
            made[name] = FloatDistribution(low, high, log=kind == "log")
    return made
