"""The built-in search beside its rivals, on functions and models whose values are exact.

The 24 functions of BBOB in 5 and 20 dimensions with coordinates of four kinds, six of them with a part where every
trial fails; six models of scikit-learn; a table of recorded trainings. All methods see the same parameters and begin
with the same first point.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Space
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.proposal import LiveClaim, SearchProblem
from autoresearch.propose.search.search import propose
from autoresearch.task.program import source_digest
from benchmarks.proposer_methods import Measured, distributions, past_runs
from benchmarks.recorded import trainings
from benchmarks.search_spaces import Question, bbob, models

COMPARED = (
    "random search, Optuna's TPE and CMA-ES, Nevergrad's NGOpt: the same spaces, first points and numbers of trials"
)
BUDGETS = (25, 50, 100)


@dataclass(slots=True)
class Trials:
    """The trials of one search."""

    done: list[Measured] = field(default_factory=list)

    def best(self, count: int) -> float:
        """The smallest value of the first trials; infinite where all failed."""
        return min((run.value for run in self.done[:count] if run.value is not None), default=math.inf)

    @property
    def failed(self) -> float:
        """The share of trials that failed."""
        return sum(run.value is None for run in self.done) / len(self.done)


class Method(Protocol):
    """A search: gives genomes, several before it hears of the first, and hears what they are worth."""

    def ask(self) -> Genome:
        """The next genome."""

    def tell(self, genome: Genome, value: float | None) -> None:
        """What a genome is worth; None: it failed."""


class Ours:
    """The built-in search."""

    def __init__(self, space: Space, seed: int, *, noise: float | None = 0.0) -> None:
        digest = hashlib.sha256(b"search" + str(seed).encode()).digest()
        self._problem = SearchProblem(digest, space.source, "minimize", noise, None, lambda _: None)
        self._trials, self._waiting, self._asked = list[Measured](), list[Measured](), 0

    def ask(self) -> Genome:
        """The next genome; those that wait are claims of others."""
        claims = [LiveClaim(source_digest(one.source), one.replicate, one.genome) for one in self._waiting]
        made = propose(self._problem, past_runs(self._trials), claims, worker="benchmark", counter=self._asked)
        self._asked += 1
        parent = None if made.parent is None else made.parent.hex()
        self._waiting.append(Measured(made.source, made.genome, made.replicate, None, parent))
        return made.genome

    def tell(self, genome: Genome, value: float | None) -> None:
        """What the trial with this genome is worth."""
        one = next(one for one in self._waiting if one.genome == genome)
        self._waiting.remove(one)
        self._trials.append(Measured(one.source, one.genome, one.replicate, value, one.parent))


class Anywhere:
    """Random search."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._draws, self._asked = space, Draws(b"random", str(seed).encode()), 0

    def ask(self) -> Genome:
        """The first point, then any."""
        self._asked += 1
        first = self._asked == 1
        return self._space.default() if first else anywhere(list(self._space.parameters.values()), self._draws)

    def tell(self, genome: Genome, value: float | None) -> None:
        """Nothing is learnt."""


class Optuna:
    """A sampler of Optuna."""

    def __init__(self, space: Space, seed: int, make: Callable[[Any, int], Any]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        warnings.filterwarnings("ignore", module="optuna")
        self._space, self._distributions = space, distributions(space)
        self._study = optuna.create_study(sampler=make(optuna.samplers, seed))
        self._study.enqueue_trial(space.default())
        self._trials: list[tuple[Genome, Any]] = []

    def ask(self) -> Genome:
        """The next trial of the study."""
        trial = self._study.ask(self._distributions)
        genome = {name: trial.params[name] for name in self._space.parameters}
        self._trials.append((genome, trial))
        return genome

    def tell(self, genome: Genome, value: float | None) -> None:
        """End its trial."""
        place = next(number for number, (other, _) in enumerate(self._trials) if other == genome)
        self._study.tell(self._trials.pop(place)[1], WORST if value is None else value)


class Nevergrad:
    """Nevergrad's portfolio, which chooses by the space, the budget and how many trials run at a time.

    Some of its members wait for a value before they give the next point: without ``batch`` they would wait for ever.
    """

    def __init__(self, space: Space, seed: int, budget: int, batch: int) -> None:
        import nevergrad

        warnings.filterwarnings("ignore", module="nevergrad")
        made: dict[str, Any] = {}
        for name, parameter in space.parameters.items():
            low, high, default = parameter.range.low, parameter.range.high, parameter.default
            if parameter.range.kind == "one of":
                made[name] = nevergrad.p.Choice(list(parameter.range.choices))
            elif parameter.range.kind == "log":
                made[name] = nevergrad.p.Log(init=float(default), lower=low, upper=high)
            else:
                made[name] = nevergrad.p.Scalar(init=float(default), lower=low, upper=high)
                if parameter.range.kind == "int":
                    made[name].set_integer_casting()
        asked = nevergrad.p.Dict(**made)
        asked.random_state.seed(seed)
        self._search = nevergrad.optimizers.NGOpt(parametrization=asked, budget=budget, num_workers=batch)
        self._search.suggest(space.default())
        self._asked: list[tuple[Genome, Any]] = []

    def ask(self) -> Genome:
        """The next candidate; a random one where Nevergrad fails."""
        try:
            candidate = self._search.ask()
        except TypeError:  # its metamodel makes a number of an array of one, which NumPy 2.4 refuses
            candidate = self._search.parametrization.sample()
        self._asked.append((dict(candidate.value), candidate))
        return dict(candidate.value)

    def tell(self, genome: Genome, value: float | None) -> None:
        """The loss of its candidate."""
        place = next(number for number, (other, _) in enumerate(self._asked) if other == genome)
        self._search.tell(self._asked.pop(place)[1], WORST if value is None else value)


# What rivals are told of a trial that failed.
WORST = 1e6
METHODS: dict[str, Callable[[Space, int, int, int], Method]] = {
    "ours": lambda space, seed, *_: Ours(space, seed),
    "tpe": lambda space, seed, *_: Optuna(space, seed, lambda of, at: of.TPESampler(seed=at, multivariate=True)),
    "cma": lambda space, seed, *_: Optuna(space, seed, lambda of, at: of.CmaEsSampler(seed=at)),
    "ngopt": Nevergrad,
    "random": lambda space, seed, *_: Anywhere(space, seed),
}
"""A method by its name, from the space, a seed, how many trials there will be and how many run at a time."""


def run(question: Question, method: str, seed: int, budget: int, batch: int) -> Trials:
    """One search of so many trials, ``batch`` at a time."""
    search, trials = METHODS[method](question.space, seed, budget, batch), Trials()
    while len(trials.done) < budget:
        asked = [search.ask() for _ in range(min(batch, budget - len(trials.done)))]
        for genome in asked:
            try:
                value: float | None = question.evaluate(genome)
            except ValueError:
                value = None
            search.tell(genome, value)
            trials.done.append(Measured("", genome, 0, value))
    return trials


def questions(*, quick: bool) -> list[Question]:
    """All spaces; ``quick``: one of each kind."""
    made = [bbob(number, 5, holes=False) for number in ((21,) if quick else range(1, 25))]
    made += [bbob(number, 5, holes=True) for number in ((15,) if quick else (1, 4, 8, 12, 15, 21))]
    return (
        made
        + ([] if quick else [bbob(number, 20, holes=False) for number in range(1, 25)])
        + models()[: 1 if quick else 6]
        + [trainings()]
    )


def measure(*, quick: bool) -> dict[str, float]:
    """Mean ranks (1 is best) and normalised regrets (0: the best known value, 1: that of the first point).

    For each group of spaces, at 25, 50 and 100 trials, one and eight at a time; with the share of trials that failed.
    """
    seeds, budgets, batches = (1, (12,), (1, 8)) if quick else (10, BUDGETS, (1, 8))
    return table(questions(quick=quick), range(seeds), budgets, batches)


def table(
    asked: Sequence[Question], seeds: Sequence[int], budgets: Sequence[int], batches: Sequence[int]
) -> dict[str, float]:
    """The figures of some spaces."""
    ranks, regrets, failed = (defaultdict[str, list[float]](list) for _ in range(3))
    for question in asked:
        first = question.evaluate(question.space.default())
        for batch in batches:
            found = {
                (method, seed): run(question, method, seed, max(budgets), batch) for method in METHODS for seed in seeds
            }
            known = min(trials.best(len(trials.done)) for trials in found.values())
            lowest = known if question.optimum is None else question.optimum
            for budget in budgets:
                for seed in seeds:
                    reached = {method: found[method, seed].best(budget) for method in METHODS}
                    for method, value in reached.items():
                        key = f"{question.group}_b{batch}_{budget}_{method}"
                        ranks[key].append(rank(value, list(reached.values())))
                        regrets[key].append(min(1.0, (value - lowest) / (first - lowest)) if first > lowest else 0.0)
            for (method, _), trials in found.items():
                failed[f"{question.group}_{method}"].append(trials.failed)
    figures = {f"rank_{key}": float(np.mean(values)) for key, values in ranks.items()}
    for key, values in regrets.items():
        low, high = bootstrap(values)
        figures |= {f"regret_{key}": float(np.mean(values)), f"regret_low_{key}": low, f"regret_high_{key}": high}
    return figures | {f"failed_{key}": float(np.mean(values)) for key, values in failed.items()}


def rank(value: float, values: Sequence[float]) -> float:
    """The place among values, 1 for the smallest; those that are equal share theirs."""
    return 1 + sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2


def bootstrap(values: Sequence[float], times: int = 1000) -> tuple[float, float]:
    """The 95 % interval of a mean by drawing the values again."""
    drawn = np.random.Generator(np.random.PCG64(0)).choice(np.asarray(values), (times, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
