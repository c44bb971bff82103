"""The built-in search on problems that nobody chose: drawn from a seed, half of them never seen before a release.

The development half has seeds from a list, and the search may be tuned to it. The seeds of the other half follow from
the name of the release, so that each release is measured on problems of its own. Every method has the same space, first
point and number of trials, and is told of failures in its own way.

``python -m benchmarks.unseen --development --cache FILE`` measures what FILE has not yet and prints the table.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.propose.program.space import Genome, Space
from benchmarks.search import METHODS as COMMON
from benchmarks.search import Method, Optuna, Ours, bootstrap, rank
from benchmarks.unseen_problems import Problem, function, training
from benchmarks.unseen_rivals import Botorch, Smac

COMPARED = (
    "random search, Optuna's TPE, Gaussian process and CMA-ES, NGOpt, SMAC3, BoTorch: same spaces and first points"
)
BUDGETS = (15, 25, 50, 100)
BATCHES = (1, 4)
FUNCTIONS, TRAININGS = 30, 12


class Gauss(Optuna):
    """Optuna's Gaussian process, which an enormous value for a failure would spoil: it is told the worst so far."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed, lambda of, at: of.GPSampler(seed=at))
        self._worst = float("-inf")

    def tell(self, genome: Genome, value: float | None) -> None:
        """End its trial."""
        self._worst = max(self._worst, self._worst if value is None else value)
        super().tell(genome, self._worst if value is None else value)


Make = Callable[[Space, int, int, int, float], Method]


def _common(name: str) -> Make:
    """A method of the benchmark ``search``."""
    return lambda space, seed, budget, batch, _: COMMON[name](space, seed, budget, batch)


METHODS: dict[str, Make] = {
    # nobody knows the noise of a noisy problem; where values are exact, a task says so
    "ours": lambda space, seed, _, __, noise: Ours(space, seed, noise=None if noise else 0.0),
    **{name: _common(name) for name in ("tpe", "cma", "ngopt", "random")},
    "gp": lambda space, seed, *_: Gauss(space, seed),
    "smac": lambda space, seed, budget, *_: Smac(space, seed, budget),
    "botorch": lambda space, seed, *_: Botorch(space, seed),
}
"""A method by its name, from the space, a seed, the number of trials, how many run at a time, and the noise."""
NEEDS = {"smac": "smac", "botorch": "botorch"}
# What takes half a second a trial has fewer; SMAC gives no second point before it hears of the first.
MOST = {"gp": 50, "smac": 50, "botorch": 25}
ONE_AT_A_TIME = {"gp", "smac", "botorch"}


def seeds(release: str | None) -> list[int]:
    """The seeds of a release's half; of the development half for None."""
    if release is None:
        return list(range(FUNCTIONS + TRAININGS))
    digest = hashlib.sha256(b"unseen problems of release " + release.encode()).digest()
    return [int(each) for each in np.random.default_rng(list(digest)).integers(1000, 2**31, FUNCTIONS + TRAININGS)]


def problem(release: str | None, number: int) -> Problem:
    """A problem of a half, by its number."""
    seed = seeds(release)[number]
    return function(seed) if number < FUNCTIONS else training(seed)


def run(release: str | None, number: int, method: str, budget: int, batch: int) -> dict[str, Any]:
    """One search: the exact value of its best program by what it measured at each budget, its failures and its time.

    The best program is the one with the lowest mean of its trials.
    """
    asked_of = problem(release, number)
    # each method meets the same noise
    dice = np.random.default_rng([number, batch])
    measured: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    spent, failed, trials, reached = 0.0, 0, 0, {}
    began = time.process_time()
    search = METHODS[method](asked_of.space, number, budget, batch, asked_of.noise)
    spent += time.process_time() - began
    while trials < budget:
        began = time.process_time()
        genomes = [search.ask() for _ in range(min(batch, budget - trials))]
        spent += time.process_time() - began
        for genome in genomes:
            off = asked_of.noise * float(dice.normal())
            try:
                value: float | None = asked_of.value(genome) + off
            except ValueError:
                value = None
            trials += 1
            if value is None:
                failed += 1
            else:
                measured[tuple(genome.items())].append(value)
            began = time.process_time()
            search.tell(genome, value)
            spent += time.process_time() - began
            if trials in BUDGETS:
                best = min(measured, key=lambda each: float(np.mean(measured[each])))
                reached[str(trials)] = asked_of.value(dict(best))
    return {
        "problem": asked_of.name, "method": method, "batch": batch, "reached": reached, "failed": failed / trials,
        "seconds": spent / trials, "first": asked_of.value(asked_of.space.default()),
    }  # fmt: skip


def searches(
    release: str | None, methods: Iterable[str], numbers: Sequence[int], budget: int, batches: Sequence[int],
    *, cache: Path | None = None, jobs: int = 1,
) -> list[dict[str, Any]]:  # fmt: skip
    """The results of all searches; those in the cache are not run again, the others are added to it."""
    lines = cache.read_text().splitlines() if cache is not None and cache.exists() else []
    known = {(each["problem"], each["method"], each["batch"]): each for each in map(json.loads, lines)}
    names = {number: problem(release, number).name for number in numbers}
    wanted = [
        (number, method, batch)
        for batch in batches
        for method in methods
        if batch == 1 or method not in ONE_AT_A_TIME
        for number in numbers
    ]
    missing = [one for one in wanted if (names[one[0]], *one[1:]) not in known]
    with ProcessPoolExecutor(jobs) as pool:
        pending = [
            pool.submit(run, release, number, method, min(budget, MOST.get(method, budget)), batch)
            for number, method, batch in missing
        ]
        for future in pending:
            made = future.result()
            known[made["problem"], made["method"], made["batch"]] = made
            if cache is not None:
                with cache.open("a") as file:
                    file.write(json.dumps(made) + "\n")
    return [known[names[number], method, batch] for number, method, batch in wanted]


def figures(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean ranks (1 is best) and regrets (0: the best known value, 1: the first point), with 95 % intervals.

    A difference below a thousandth of the way from the first point to the best known value is none.
    """
    made: dict[str, float] = {}
    lowest: dict[str, float] = {}
    for each in results:
        lowest[each["problem"]] = min(lowest.get(each["problem"], each["first"]), *each["reached"].values())
    groups: dict[tuple[int, str, str], dict[str, float]] = defaultdict(dict)
    for each in results:
        low, first = lowest[each["problem"]], each["first"]
        for budget, value in each["reached"].items():
            regret = min(1.0, (value - low) / (first - low)) if first > low else 0.0
            groups[each["batch"], budget, each["problem"]][each["method"]] = round(regret, 3)
    rows: dict[str, list[float]] = defaultdict(list)
    for (batch, budget, _), regrets in groups.items():
        for method, regret in regrets.items():
            rows[f"rank_b{batch}_{budget}_{method}"].append(rank(regret, list(regrets.values())))
            rows[f"regret_b{batch}_{budget}_{method}"].append(regret)
    for key, values in rows.items():
        made[key] = float(np.mean(values))
        made[f"low_{key}"], made[f"high_{key}"] = bootstrap(values)
    for method in {each["method"]: None for each in results}:
        of = [each for each in results if each["method"] == method]
        made[f"failed_{method}"] = float(np.mean([each["failed"] for each in of]))
        made[f"seconds_{method}"] = float(np.mean([each["seconds"] for each in of]))
    return made


def installed() -> list[str]:
    """The methods that can run here."""
    return [name for name in METHODS if name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None]


def measure(*, quick: bool) -> dict[str, float]:
    """The half of this release; ``quick``: a function and a training of the development half."""
    if quick:
        return figures(searches(None, ("ours", "tpe", "random"), (8, FUNCTIONS + 1), 15, (1,)))
    release = version("autoresearch-p2p")
    return figures(searches(release, installed(), range(FUNCTIONS + TRAININGS), max(BUDGETS), BATCHES, jobs=2))


def table(made: Mapping[str, float], methods: Sequence[str], batches: Sequence[int]) -> Iterable[str]:
    """The figures as a table in Markdown."""
    yield "| | " + " | ".join(methods) + " |"
    yield "| --- |" + " --- |" * len(methods)
    for batch in batches:
        for budget in BUDGETS:
            cells = []
            for method in methods:
                key = f"b{batch}_{budget}_{method}"
                if f"rank_{key}" in made:
                    low, high = (made[f"{end}_rank_{key}"] for end in ("low", "high"))
                    cells.append(f"{made[f'rank_{key}']:.2f} [{low:.2f}, {high:.2f}] ({made[f'regret_{key}']:.3f})")
                else:
                    cells.append("")
            yield f"| {budget} trials, {batch} at a time | " + " | ".join(cells) + " |"
    for what in ("failed", "seconds"):
        yield f"| {what} | " + " | ".join(f"{made[f'{what}_{method}']:.3f}" for method in methods) + " |"


def main() -> None:
    """Entry of ``python -m benchmarks.unseen``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen")
    parser.add_argument("--development", action="store_true", help="the half that may be looked at")
    parser.add_argument(
        "--draw", type=int, default=1, help="another one, where the search changed after a look at this"
    )
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(installed()))
    parser.add_argument("--batches", default="1,4")
    parser.add_argument("--trials", type=int, default=max(BUDGETS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--silent", action="store_true", help="measure, and print nothing")
    options = parser.parse_args()
    release = None if options.development else version("autoresearch-p2p")
    if release is not None and options.draw > 1:
        release += f", draw {options.draw}"
    methods, batches = options.methods.split(","), [int(each) for each in options.batches.split(",")]
    numbers = range(FUNCTIONS + TRAININGS)
    results = searches(
        release, methods, numbers, options.trials, batches, cache=options.cache, jobs=options.jobs
    )  # fmt: skip
    if not options.silent:
        print("\n".join(table(figures(results), methods, batches)))


if __name__ == "__main__":
    main()
