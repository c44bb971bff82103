"""Which genome to try next, given what was tried on this base: far moves first, readable small ones later."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoresearch.proposers import tpe
from autoresearch.proposers.additive import Additive, fit
from autoresearch.proposers.draws import Draws
from autoresearch.proposers.evidence import PastRun
from autoresearch.proposers.genes import Gene
from autoresearch.proposers.proposal import ProposalKind
from autoresearch.proposers.space import Genome, Space


@dataclass(frozen=True, slots=True)
class Settings:
    """The dials of the search; the defaults were chosen by trying others on the shipped task."""

    start: int = 8
    """Working runs before anything is learnt from them."""
    random_share: float = 0.03
    """Share of proposals from the whole space, for ever: the models may be wrong."""
    good_share: float = 0.15
    least_good: int = 3
    most_good: int = 25
    """The good, from which moves start: this share of what worked, within these bounds."""
    drawn: int = 96
    """Genomes drawn for one proposal."""
    kept: int = 24
    """Of those, how many the additive model passes on to the density ratio, which costs more."""
    spread: float = 0.15
    """How far a move goes where it follows the density of the good, in widths of a range."""
    step: float = 0.2
    """How far a single change goes."""
    ratio_weight: float = 0.5
    """Weight of the density ratio against the additive model, each in its own standard deviations."""
    model_noise: float = 0.3
    """What the additive model leaves unexplained, in standard deviations of the scores."""
    model_prior: float = 0.3
    """How large one gene's coefficient is believed to be before anything is seen."""
    patch_gain: float = 0.2
    """What a patch of the catalogue is believed to gain before anything is seen, in standard deviations."""
    boldness: float = 1.0
    """How far the additive model's draws go from its mean, in posterior standard deviations."""
    least_weight: float = 0.3
    """Weight of the worst runs in the additive model; the best weigh 1."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One source that was tried, as a genome of this space; ``weight`` is less on a foreign base."""

    genome: Genome
    run: PastRun
    score: float
    """Smaller is better; infinite when it failed."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Move:
    """A genome to try, the trial it starts from, and what the model expects of it (smaller is better)."""

    genome: Genome
    kind: ProposalKind
    parent: Trial | None
    expected: float | None


Fresh = Callable[[Genome], bool]

# A move with at most so many changes to one parent is told as such: a person can read what did it.
MOST_LOCAL = 5
# Rows of the additive model, at most: the best half of them and a sample of the rest.
MOST_ROWS = 600


def next_move(
    space: Space,
    working: Sequence[Trial],
    failed: Sequence[Trial],
    claimed: Sequence[Genome],
    draws: Draws,
    fresh: Fresh,
    settings: Settings,
) -> Move | None:
    """The next genome that is allowed and fresh; None when none was found in many tries.

    ``working`` is ordered, best first. A claim counts as a bad run: look elsewhere meanwhile.
    """
    genes = list(space.genes.values())

    def usable(genome: Genome) -> bool:
        return space.allows(genome) and fresh(genome)

    if len(working) < settings.start or draws.chance(settings.random_share):
        return _random(genes, draws, usable)
    share = round(settings.good_share * len(working))
    good = list(working[: min(settings.most_good, max(settings.least_good, share))])
    parents = [trial for trial in good if trial.weight == 1] or good
    drawn = _draw(genes, parents, working, draws, usable, settings)
    if not drawn:
        return _random(genes, draws, usable)
    model = _model(genes, working, failed, draws, settings)
    coefficients = model.sample(draws, settings.boldness)
    promise = [-model.predict(genome, coefficients) for genome in drawn]
    ranked = sorted(range(len(drawn)), key=lambda i: (-round(promise[i], 9), i))[: settings.kept]
    bad = [trial.genome for trial in (*working[len(good) :], *failed)]
    bad = draws.sample(bad, tpe.MOST_BAD) + list(claimed)
    ratio = tpe.ratio(tpe.density(genes, [trial.genome for trial in good]), tpe.density(genes, bad))
    first = _standard([promise[i] for i in ranked])
    second = _standard([ratio(drawn[i]) for i in ranked])
    total = [round(a + settings.ratio_weight * b, 9) for a, b in zip(first, second, strict=True)]
    genome = drawn[ranked[max(range(len(ranked)), key=lambda i: (total[i], -i))]]
    parent = min(parents, key=lambda trial: (_changes(trial.genome, genome), trial.score))
    genome = _without_ballast(parent.genome, genome, lambda g: model.predict(g, coefficients), usable)
    expected = parent.score + model.predict(genome) - model.predict(parent.genome)
    local = _changes(parent.genome, genome) <= MOST_LOCAL
    return Move(genome, "local" if local else "tpe", parent, expected)


def _draw(
    genes: Sequence[Gene],
    parents: Sequence[Trial],
    working: Sequence[Trial],
    draws: Draws,
    usable: Fresh,
    settings: Settings,
) -> list[Genome]:
    """Genomes to choose from: from the density of the good, from crossings of two, and from a few changes to one."""
    drawn: list[Genome] = []
    partners = working[: max(len(parents), len(working) // 3)]
    for _ in range(3 * settings.drawn):
        parent = parents[min(len(parents) - 1, draws.geometric(0.5))].genome
        way = draws.below(3)
        if way == 0:
            centre = draws.choice(parents).genome
            genome = tpe.around(genes, centre, settings.spread, len(parents), draws)
        else:
            genome = parent
            if way == 1:
                other = draws.choice(partners).genome
                genome = {name: value if draws.chance(0.7) else other[name] for name, value in parent.items()}
            if way == 2 or draws.chance(0.5):
                genome = tpe.few_changes(genes, genome, 1 + draws.geometric(0.5), settings.step, draws)
        if usable(genome):
            drawn.append(genome)
        if len(drawn) == settings.drawn:
            break
    return drawn


def _without_ballast(parent: Genome, genome: Genome, score: Callable[[Genome], float], usable: Fresh) -> Genome:
    """The genome without the changes that the drawn model expects nothing from: what is left can be read."""
    for name, old in parent.items():
        if genome[name] != old:
            shorter = {**genome, name: old}
            if score(shorter) <= score(genome) and usable(shorter):
                genome = shorter
    return genome


def _standard(values: Sequence[float]) -> list[float]:
    """The values with mean 0 and standard deviation 1 (or all 0)."""
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values)) or 1.0
    return [(value - mean) / deviation for value in values]


def _changes(before: Genome, after: Genome) -> int:
    return sum(after[name] != value for name, value in before.items())


def _model(
    genes: Sequence[Gene],
    working: Sequence[Trial],
    failed: Sequence[Trial],
    draws: Draws,
    settings: Settings,
) -> Additive:
    """The additive model; a failure counts as the worst fifth, and bad runs weigh less than good ones."""
    count = len(working)
    cap = working[(count - 1) * 4 // 5].score
    rows = [
        (
            trial.genome,
            min(trial.score, cap),
            trial.weight * max(settings.least_weight, 1.0 - i / max(1, count)),
        )
        for i, trial in enumerate(working)
    ]
    rows += [(trial.genome, cap, trial.weight * settings.least_weight) for trial in failed]
    if len(rows) > MOST_ROWS:
        rows = rows[: MOST_ROWS // 2] + draws.sample(rows[MOST_ROWS // 2 :], MOST_ROWS // 2)
    return fit(
        genes,
        rows,
        noise=settings.model_noise,
        prior=settings.model_prior,
        patch_gain=settings.patch_gain,
    )


def _random(genes: Sequence[Gene], draws: Draws, usable: Fresh) -> Move | None:
    for _ in range(200):
        genome = tpe.anywhere(genes, draws)
        if usable(genome):
            return Move(genome, "random", None, None)
    return None
