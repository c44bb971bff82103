"""How good is what the search proposes from a part of a long history, beside what it proposes from all of it?

The history is a search by small changes on a synthetic landscape, whose true values are known. The part is chosen as
the daemon does it: the best, the newest, and a sample by id.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from autoresearch.log.standing.trials import BEST, NEWEST, SAMPLE
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.moves import anywhere, few_changes
from autoresearch.propose.search.proposal import SearchProblem
from autoresearch.propose.search.search import propose
from autoresearch.task.loading import shipped_task
from autoresearch.task.program import source_digest
from benchmarks.proposer_methods import shipped_space

COMPARED = "the same search with the whole history: mean and best true value of what it proposes, less is better"
NOISE = 0.02
# So many of the newest runs are looked at for a parent, and so many of the best of them may be one.
_RECENT, _PARENTS = 400, 100


@dataclass(frozen=True, slots=True)
class Size:
    """So many searches, runs in the history of each, and proposals from it."""

    searches: int
    runs: int
    proposals: int


FULL, QUICK = Size(6, 2_500, 20), Size(1, 650, 1)


def landscape(search: int, dice: random.Random) -> Callable[[Genome], float]:
    """A quadratic bowl in some of the genes, with pairs that matter together."""
    parameters = list(shipped_space().parameters.values())
    best = anywhere(parameters, Draws(b"best", str(search).encode()))
    weights = {parameter.name: dice.expovariate(1) for parameter in parameters}
    pairs = [(dice.choice(parameters).name, dice.choice(parameters).name, dice.gauss(0, 0.5)) for _ in range(20)]

    def value(genome: Genome) -> float:
        away = {
            one.name: one.place(genome[one.name]) - one.place(best[one.name])
            if one.ordered
            else 0.5 * (genome[one.name] != best[one.name])
            for one in parameters
        }
        alone = sum(weights[name] * far * far for name, far in away.items())
        return 1 + 0.1 * max(alone + sum(weight * abs(away[a] * away[b]) for a, b, weight in pairs), 0.0)

    return value


def history(search: int, runs: int, value: Callable[[Genome], float], dice: random.Random) -> list[PastRun]:
    """Runs that each change a recent good one a little; every fifth is anywhere, and some fail."""
    space, draws = shipped_space(), Draws(b"history", str(search).encode())
    parameters = list(space.parameters.values())
    found: list[PastRun] = []
    while len(found) < runs:
        genome, parent, digest = space.default(), None, source_digest(space.source)
        if found:
            good = sorted((run for run in found[-_RECENT:] if run.value is not None), key=lambda run: run.value or 0.0)
            above = dice.choice(good[:_PARENTS])
            changed = few_changes(parameters, dict(above.genome), 1 + draws.geometric(0.6), 0.2, draws)
            genome = changed if dice.random() < 0.8 else anywhere(parameters, draws)
            parent, digest = above.id, dice.randbytes(32)
        measured = None if found and dice.random() < 0.08 else value(genome) + dice.gauss(0, NOISE)
        found.append(PastRun(dice.randbytes(32), digest, genome, measured, 0, parent, None))
    return found


def _part(runs: Sequence[PastRun]) -> list[PastRun]:
    best = sorted((run for run in runs if run.value is not None), key=lambda run: run.value or 0.0)[:BEST]
    sample = sorted(runs, key=lambda run: run.id)[:SAMPLE]
    kept = {run.id for run in (runs[0], *best, *runs[-NEWEST:], *sample)}
    return [run for run in runs if run.id in kept]


def measure(*, quick: bool) -> dict[str, float]:
    """Mean and best true value of new programs that are proposed, over searches, without those drawn at random."""
    size, task = QUICK if quick else FULL, shipped_task()
    problem = SearchProblem(
        task.digest, task.baseline.decode(), "minimize", NOISE, None, lambda _: None, patches_of(task)
    )
    values: dict[str, list[list[float]]] = {"all": [], "part": []}
    for search in range(size.searches):
        dice = random.Random(search)
        value = landscape(search, dice)
        runs = history(search, size.runs, value, dice)
        for name, known in (("all", runs), ("part", _part(runs))):
            made = [propose(problem, known, [], worker=f"{n}", counter=n) for n in range(size.proposals)]
            values[name].append([value(one.genome) for one in made if quick or one.kind in ("local", "model")])
    means = {f"{name}_mean": fmean(map(fmean, found)) for name, found in values.items()}
    return means | {f"{name}_best": fmean(map(min, found)) for name, found in values.items()}
