"""Which genome to try next, given what was tried on this base: far moves first, readable small ones later."""

from __future__ import annotations

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
    """The dials of the search; the defaults were chosen on real runs of the shipped task."""

    start: int = 8
    """Working runs before anything is learnt from them."""
    random_share: float = 0.03
    good_share: float = 0.1
    most_good: int = 25
    candidates: int = 48
    local_from: int = 10
    local_over: int = 20
    local_share: float = 0.9
    spread: float = 0.15
    model: str = "additive"
    model_noise: float = 0.3
    model_prior: float = 0.3
    thompson: float = 1.0
    decay: float = 0.3


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

    ``working`` is ordered, best first.
    """
    genes = list(space.genes.values())

    def usable(genome: Genome) -> bool:
        return space.allows(genome) and fresh(genome)

    if len(working) < settings.start or draws.chance(settings.random_share):
        return _random(genes, draws, usable)
    good_count = min(settings.most_good, max(2, round(settings.good_share * len(working))))
    good = list(working[:good_count])
    parents = [trial for trial in good if trial.weight == 1] or [t for t in working if t.weight == 1][:1] or good
    rest = [*working[good_count:], *failed]
    local = draws.chance(
        settings.local_share * min(1.0, max(0.0, (len(working) - settings.local_from) / settings.local_over))
    )
    drawn: list[tuple[Genome, Trial]] = []
    for _ in range(settings.candidates * 4):
        if local:
            parent = parents[min(len(parents) - 1, draws.geometric(0.5))]
            count = 1 + min(4, draws.geometric(0.5))
            genome = tpe.few_changes(genes, parent.genome, count, settings.spread, draws)
        else:
            parent = draws.choice(parents)
            genome = tpe.around(genes, parent.genome, settings.spread, good_count, draws)
        if usable(genome):
            drawn.append((genome, parent))
        if len(drawn) == settings.candidates:
            break
    if not drawn:
        return _random(genes, draws, usable)
    model = _model(genes, working, failed, settings)
    if settings.model == "additive":
        coefficients = model.sample(draws) if draws.chance(settings.thompson) else model.mean
        scores = [-model.predict(genome, coefficients) for genome, _ in drawn]
    else:
        bad = draws.sample([trial.genome for trial in rest], tpe.MOST_BAD) + list(claimed)
        ratio = tpe.ratio(tpe.density(genes, [t.genome for t in good]), tpe.density(genes, bad))
        scores = [ratio(genome) for genome, _ in drawn]
    best = max(range(len(drawn)), key=lambda i: (round(scores[i], 9), -i))
    genome, parent = drawn[best]
    step = model.predict(genome) - model.predict(parent.genome)
    return Move(genome, "local" if local else "tpe", parent, parent.score + step)


def _model(genes: Sequence[Gene], working: Sequence[Trial], failed: Sequence[Trial], settings: Settings) -> Additive:
    """The additive model; a failure counts as the worst fifth, and bad runs weigh less than good ones."""
    count = len(working)
    cap = working[(count - 1) * 4 // 5].score
    rows = [
        (
            trial.genome,
            min(trial.score, cap),
            trial.weight * max(settings.decay, 1.0 - i / max(1, count)),
        )
        for i, trial in enumerate(working)
    ]
    rows += [(trial.genome, cap, trial.weight * settings.decay) for trial in failed]
    return fit(genes, rows[:600], noise=settings.model_noise, prior=settings.model_prior)


def _random(genes: Sequence[Gene], draws: Draws, usable: Fresh) -> Move | None:
    for _ in range(200):
        genome = tpe.anywhere(genes, draws)
        if usable(genome):
            return Move(genome, "random", None, None)
    return None
