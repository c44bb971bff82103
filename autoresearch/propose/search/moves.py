"""Which genome to try next, given what was tried on this base: the one with the largest expected improvement.

It is chosen among some made anywhere, around a good one, between two, or a few steps from one. Where many scores are
equal or there are many settings, the model knows no way to spread trials that run together: then some go where the good
ones lie close, and the first of them anywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Parameter, Space
from autoresearch.propose.search.evidence import PastRun, by_tier
from autoresearch.propose.search.gaussian import Prior, Process, expected_improvement, fit, likeliest
from autoresearch.propose.search.parzen import Density
from autoresearch.propose.search.proposal import ProposalKind


def anywhere(parameters: Sequence[Parameter], draws: Draws) -> Genome:
    """A genome drawn from the whole space."""
    return {parameter.name: parameter.anywhere(draws) for parameter in parameters}


def amid(parameters: Sequence[Parameter], draws: Draws) -> Genome:
    """A genome from the whole space, oftener from the middle of a range than from its ends: between two draws."""
    genome, other = anywhere(parameters, draws), anywhere(parameters, draws)
    for each in parameters:
        if each.ordered:
            genome[each.name] = each.at((each.place(genome[each.name]) + each.place(other[each.name])) / 2)
    return genome


def around(
    parameters: Sequence[Parameter], centre: Genome, spread: float, change: Callable[[Parameter], float], draws: Draws
) -> Genome:
    """A genome with every ordered gene moved by a normal step, every other drawn anew with the chance of ``change``."""
    genome = dict(centre)
    for parameter in parameters:
        if parameter.ordered:
            genome[parameter.name] = parameter.at(parameter.place(centre[parameter.name]) + spread * draws.normal())
        elif draws.chance(change(parameter)):
            genome[parameter.name] = draws.choice(parameter.range.choices)
    return genome


def crossing(parent: Genome, other: Genome, share: float, draws: Draws) -> Genome:
    """A genome that has each gene from the parent with this chance, else from the other."""
    return {name: value if draws.chance(share) else other[name] for name, value in parent.items()}


def few_changes(parameters: Sequence[Parameter], parent: Genome, count: int, spread: float, draws: Draws) -> Genome:
    """The parent with ``count`` genes moved a little: a change that a person can read."""
    genome = dict(parent)
    for parameter in draws.sample(parameters, count):
        genome[parameter.name] = parameter.near(parent[parameter.name], spread, draws)
    return genome


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The dials of the search; the defaults were chosen by trying others on the shipped task."""

    start: int = 2
    """Working runs before anything is learnt from them."""
    few: int = 3
    """So many changes to the best genome at first: what is at hand is better than luck."""
    few_until: int = 3
    """Runs that work or are claimed before there may be more changes; with each further one there may be twice as many.

    What others try now will be known when this run ends: a round of many peers is not spent on steps from the baseline.
    """
    cover: int = 6
    """In a small space every second of so many programs comes from anywhere, with the words that were tried least.

    There are up to twice as many until each word was tried: a model can't decide about what it never saw. In a large
    space such a program is too far from what works to say which word is good (benchmarks unseen, development half).
    """
    blind_share: float = 0.9
    """Share of such programs while others run and no value is known yet: a step from an unknown program teaches less.

    While others run these come oftener from the middle of a range: at its end all of it is on one side. One at a time
    that was no better (benchmarks unseen, development half).
    """
    word_from: int = 15
    word_share: float = 0.2
    """From so many programs on, this share of proposals improves the best one with another word.

    Beside the settings of the word that leads, other words look worse than they are.
    """
    random_share: float = 0.03
    """Share of proposals from the whole space once all may change, for ever: the model may be wrong."""
    good_share: float = 0.15
    least_good: int = 3
    most_good: int = 25
    """The good, from which moves start: this share of what worked, within these bounds."""
    drawn: int = 24
    """Genomes drawn for one proposal."""
    rounds: int = 6
    beam: int = 6
    mutants: int = 8
    """So often the most promising few of them have this many changed copies each, which compete with them."""
    spread: float = 0.15
    """How far a genome around a good one lies from it, in widths of a range."""
    step: float = 0.2
    """How far a single change goes."""
    first_step: float = 0.4
    """How far it goes before anything is learnt."""
    least_weight: float = 0.3
    """Weight of the worst runs in the model; the best weigh 1."""
    small: int = 8
    """Up to so many parameters a space is small; a larger one is as soon as ``per_gene`` runs come to each of them.

    In a small one genomes are drawn from the whole space too, and runs say how rough and how noisy scores are.
    """
    per_gene: int = 2
    wide: int = 2
    """So many times more of them than near good ones; these were chosen by functions and models (benchmarks search)."""
    equal: float = 0.1
    """From this share of scores that another has too, as accuracies have on few examples, they come in steps."""
    dense_share: float = 0.5
    """Share of proposals that go where the good lie close, while other trials run: nobody has heard of these yet.

    In a small space it is so while scores come in steps. In a large one the same share of the first ``dense_from``
    comes from the whole space: a round of steps from a poor program teaches little. From ``dense_until`` on it is as
    in a small one: more programs were not measured (benchmarks unseen), and densities take longer with each.
    """
    dense_from: int = 10
    dense_until: int = 100
    dense_good: float = 0.1
    """The good are then this share of all that was tried, ``most_good`` of them at most."""
    belief: Prior = field(default_factory=Prior)
    """What the model believes before it has seen anything; in small spaces runs say how rough and noisy scores are."""
    margin: float = 0.3
    small_margin: float = 1.0
    """How far below the best score the model's scale begins, in distances from the best to the middle score."""

    def is_small(self, parameters: int, runs: int) -> bool:
        """Whether so many runs that work know a space with so many parameters well."""
        return parameters <= max(self.small, runs // self.per_gene)


@dataclass(frozen=True, slots=True)
class Sample:
    """One source that was tried, as a genome of this space; ``weight`` is less on a foreign base."""

    genome: Genome
    run: PastRun
    score: float
    """Smaller is better; infinite when it failed."""
    weight: float = 1.0
    tier: int | None = 0
    """Among what may be built upon the smallest comes first; None: never."""


@dataclass(frozen=True, slots=True)
class Move:
    """A genome to try, the sample it starts from, and what the model expects of it (smaller is better)."""

    genome: Genome
    kind: ProposalKind
    parent: Sample | None
    expected: float | None


Fresh = Callable[[Genome], bool]

# A move with at most so many changes to one parent is told as such: a person can read what did it.
MOST_LOCAL = 5
# Before so many runs an expectation is not worth telling.
_TOLD_FROM = 4
# Two-sided 95 % of the normal distribution.
_WIDE = 1.96
# Rows of the model, at most: the best half of them and a sample of the rest. The time grows with the cube.
MOST_ROWS = 200
# Claims that the model is told of, at most: the last by digest are left out alike by everybody.
MOST_CLAIMS = 50


class SearchHistory(NamedTuple):
    """What was tried: the samples that are ``working``, best first, those that ``failed``, and what is ``claimed``."""

    working: Sequence[Sample]
    failed: Sequence[Sample]
    claimed: Sequence[Genome]


def next_move(
    space: Space, history: SearchHistory, draws: Draws, fresh: Fresh, settings: SearchSettings
) -> Move | None:
    """The next genome that is allowed and fresh; None when none was found in many tries.

    The model learns from all that worked; moves start from the good of the first tier that there is, and improvement is
    measured against these. A claim is taken to score what is expected of it: look elsewhere meanwhile.
    """
    working, failed, claimed = history
    parameters = list(space.parameters.values())
    # What may be built upon: those of the first tier that there is.
    first = min((trial.tier for trial in working), key=by_tier, default=None)
    standing = [trial for trial in working if trial.tier is not None and trial.tier == first]
    most = settings.few << min(10, max(0, len(working) + len(claimed) - settings.few_until))
    has_evidence = most >= len(parameters)
    parents = _parents(standing, settings) if has_evidence else standing[:1]

    def usable(genome: Genome) -> bool:
        return space.allows(genome) and fresh(genome)

    def reachable(genome: Genome) -> bool:
        return (has_evidence or _changes(parents[0].genome, genome) <= most) and usable(genome)

    tried = [*(sample.genome for sample in (*working, *failed)), *claimed]
    words = [parameter for parameter in parameters if not parameter.ordered and not parameter.name.startswith("+")]
    if _wants_cover(parameters, words, history, tried, draws, settings):
        leading = parents[0].genome if parents else space.default()
        return _covering(parameters, words, leading, tried, amid if claimed else anywhere, draws, usable)
    if len(working) < settings.start or not parents:
        return _near(space, parents, draws, usable, min(most, len(parameters)), settings)
    if has_evidence and draws.chance(settings.random_share):
        return _random(parameters, draws, usable)
    scale = _scale([sample.score for sample in working], parameters, settings)
    model = _model(parameters, history, scale, draws, settings)
    small = settings.is_small(len(parameters), len(working))
    # What is claimed may be better than all that is known: in small spaces a batch must not crowd around it.
    incumbents = [sample.genome for sample in parents] + list(claimed[:MOST_CLAIMS] if small else ())
    best = min(mean for mean, _ in model.at(incumbents))

    def promises(genomes: Sequence[Genome]) -> list[float]:
        return [float(f"{expected_improvement(*expected, best):.9g}") for expected in model.at(genomes)]

    drawn = _draw(parameters, parents, working, draws, reachable, settings)
    if small:
        anywhere_else = (anywhere(parameters, draws) for _ in range(settings.wide * settings.drawn))
        drawn += [genome for genome in anywhere_else if reachable(genome)]
    allowed: Fresh = reachable
    if words and len(tried) >= settings.word_from and draws.chance(settings.word_share):
        word, leading = draws.choice(words), parents[0].genome
        choice = draws.choice([each for each in word.range.choices if each != leading[word.name]])
        of_choice = [sample.genome for sample in working if sample.genome[word.name] == choice]
        best = min(mean for mean, _ in model.at(of_choice or [{**leading, word.name: choice}]))
        drawn = [genome for each in drawn if reachable(genome := {**each, word.name: choice})]

        def allowed(genome: Genome) -> bool:
            return genome[word.name] == choice and reachable(genome)

    if not drawn:
        return _random(parameters, draws, usable)
    steps = len({sample.score for sample in working}) < (1.0 - settings.equal) * len(working)
    dense = None
    is_wide = len(parameters) > settings.small and settings.dense_from <= len(tried) < settings.dense_until
    if claimed and (is_wide or (steps and small)) and draws.chance(settings.dense_share):
        others = [sample for sample in working if sample.tier is None or sample.tier != first] + list(failed)
        dense = _densest(parameters, standing, others, draws, allowed, settings)
    genome = dense or _climb(parameters, drawn, promises, draws, allowed, settings)
    parent = min(parents, key=lambda sample: (_changes(sample.genome, genome), sample.score))
    if dense is None:
        genome = _without_ballast(parent.genome, genome, promises, allowed)
    local = _changes(parent.genome, genome) <= MOST_LOCAL
    return Move(genome, "local" if local else "model", parent, scale.score(model.at([genome])[0][0]))


def believed(
    space: Space, working: Sequence[Sample], failed: Sequence[Sample], genome: Genome, settings: SearchSettings
) -> tuple[float, ...]:
    """The score that the model expects of a genome, between the bounds of its 95 % interval; empty with few runs."""
    if len(working) < max(settings.start, _TOLD_FROM):
        return ()
    parameters = list(space.parameters.values())
    scale = _scale([sample.score for sample in working], parameters, settings)
    model = _model(parameters, SearchHistory(working, failed, ()), scale, Draws(b"", b"", b""), settings)
    ((mean, deviation),) = model.at([genome])
    return tuple(scale.score(mean + width * deviation) for width in (-_WIDE, 0.0, _WIDE))


def _parents(standing: Sequence[Sample], settings: SearchSettings) -> Sequence[Sample]:
    """The good, on this base where there are some."""
    share = round(settings.good_share * len(standing))
    good = standing[: min(settings.most_good, max(settings.least_good, share))]
    return [sample for sample in good if sample.weight == 1] or good


def _draw(
    parameters: Sequence[Parameter],
    parents: Sequence[Sample],
    working: Sequence[Sample],
    draws: Draws,
    usable: Fresh,
    settings: SearchSettings,
) -> list[Genome]:
    """Genomes to choose from: around the good, from crossings of two, and from a few changes to one."""
    drawn: list[Genome] = []
    partners = working[: max(len(parents), len(working) // 3)]
    for _ in range(3 * settings.drawn):
        genome = parents[min(len(parents) - 1, draws.geometric(0.5))].genome
        way = draws.below(3)
        if way == 0:
            centre = draws.choice(parents).genome
            genome = around(parameters, centre, settings.spread, lambda _: 1 / (len(parents) + 2), draws)
        if way == 1:
            genome = crossing(genome, draws.choice(partners).genome, 0.7, draws)
        if way == 2 or (way == 1 and draws.chance(0.5)):
            genome = few_changes(parameters, genome, 1 + draws.geometric(0.5), settings.step, draws)
        if usable(genome):
            drawn.append(genome)
        if len(drawn) == settings.drawn:
            break
    return drawn


def _densest(
    parameters: Sequence[Parameter],
    standing: Sequence[Sample],
    others: Sequence[Sample],
    draws: Draws,
    usable: Fresh,
    settings: SearchSettings,
) -> Genome | None:
    """Of some genomes drawn near the good ones the one where these lie closest for what all others do.

    None where nothing usable was drawn in many tries.
    """
    count = min(settings.most_good, math.ceil(settings.dense_good * (len(standing) + len(others))))
    centres = [sample.genome for sample in standing[:count]]
    good = Density(parameters, centres)
    rest = Density(parameters, [sample.genome for sample in (*standing[count:], *others)])
    drawn: list[Genome] = []
    for _ in range(8 * settings.drawn):
        place = draws.below(len(centres) + 1)
        if place == len(centres):
            genome = anywhere(parameters, draws)
        else:
            genome = around(parameters, centres[place], good.width, good.change, draws)
        if usable(genome):
            drawn.append(genome)
        if len(drawn) == settings.drawn:
            break
    return max(drawn, key=lambda genome: float(f"{good.logarithm(genome) - rest.logarithm(genome):.9g}"), default=None)


def _climb(
    parameters: Sequence[Parameter],
    drawn: Sequence[Genome],
    promises: Callable[[Sequence[Genome]], list[float]],
    draws: Draws,
    usable: Fresh,
    settings: SearchSettings,
) -> Genome:
    """The most promising genome after some rounds in which the best few are varied."""
    ranked = _ranked(drawn, promises)
    for _ in range(settings.rounds):
        best = ranked[: settings.beam]
        several = [genome for _, genome in best for _ in range(settings.mutants)]
        mutants = (few_changes(parameters, each, 1 + draws.geometric(0.7), settings.step, draws) for each in several)
        ranked = _ranked(list(filter(usable, mutants)), promises, best)
    return ranked[0][1]


def _ranked(
    genomes: Sequence[Genome],
    promises: Callable[[Sequence[Genome]], list[float]],
    before: Sequence[tuple[float, Genome]] = (),
) -> list[tuple[float, Genome]]:
    """Genomes by what they promise, the most first, among those of ``before``."""
    return sorted([*before, *zip(promises(genomes), genomes, strict=True)], key=lambda item: -item[0])


def _without_ballast(
    parent: Genome, genome: Genome, promises: Callable[[Sequence[Genome]], list[float]], usable: Fresh
) -> Genome:
    """The genome without the changes that promise nothing: what is left can be read."""
    (most,) = promises([genome])
    for name, old in parent.items():
        if genome[name] != old:
            shorter = {**genome, name: old}
            if usable(shorter) and (promised := promises([shorter])[0]) >= most:
                genome, most = shorter, promised
    return genome


def _changes(before: Genome, after: Genome) -> int:
    return sum(after[name] != value for name, value in before.items())


@dataclass(frozen=True, slots=True)
class _ScoreScale:
    """Between scores and what the model sees: the logarithm of the distance to a little below the best.

    A step near the best counts there as much as a large one among bad runs; the worst fifth is all the same.
    """

    floor: float
    cap: float
    centre: float
    deviation: float

    def standard(self, score: float) -> float:
        return (math.log(min(score, self.cap) - self.floor) - self.centre) / self.deviation

    def score(self, standard: float) -> float:
        return self.floor + math.exp(self.centre + self.deviation * min(standard, self.standard(self.cap)))


def _scale(scores: Sequence[float], parameters: Sequence[Parameter], settings: SearchSettings) -> _ScoreScale:
    """The scale of sorted scores."""
    share = settings.small_margin if settings.is_small(len(parameters), len(scores)) else settings.margin
    best, middle, cap = scores[0], scores[len(scores) // 2], scores[(len(scores) - 1) * 4 // 5]
    margin = share * (middle - best)
    floor = best - (margin if margin > 1e-9 * abs(best) else abs(best) or 1.0)
    logs = [math.log(min(score, cap) - floor) for score in scores]
    centre = math.fsum(logs) / len(logs)
    deviation = math.sqrt(math.fsum((log - centre) ** 2 for log in logs) / len(logs)) or 1.0
    return _ScoreScale(floor, cap, centre, deviation)


def _model(
    parameters: Sequence[Parameter], history: SearchHistory, scale: _ScoreScale, draws: Draws, settings: SearchSettings
) -> Process:
    """The model of what was tried; a failure counts as the worst fifth, and bad runs weigh less than good ones."""
    working, failed, claimed = history
    rows = [
        (
            sample.genome,
            scale.standard(sample.score),
            sample.weight * max(settings.least_weight, 1.0 - i / len(working)),
        )
        for i, sample in enumerate(working)
    ]
    rows += [(sample.genome, scale.standard(scale.cap), sample.weight * settings.least_weight) for sample in failed]
    if len(rows) > MOST_ROWS:
        rows = rows[: MOST_ROWS // 2] + draws.sample(rows[MOST_ROWS // 2 :], MOST_ROWS // 2)
    belief = settings.belief
    if settings.is_small(len(parameters), len(working)):
        belief = likeliest(parameters, rows, belief)
    return fit(parameters, rows, claimed[:MOST_CLAIMS], belief)


def _near(
    space: Space, parents: Sequence[Sample], draws: Draws, usable: Fresh, most: int, settings: SearchSettings
) -> Move | None:
    """Up to ``most`` changes to the best program that is known, or to the base; anything where nothing else is left."""
    parent = next(iter(parents), None)
    centre = space.default() if parent is None else parent.genome
    parameters = list(space.parameters.values())
    for _ in range(200):
        genome = few_changes(parameters, centre, 1 + draws.below(most), settings.first_step, draws)
        if usable(genome):
            return Move(genome, "local", parent, None)
    return _random(parameters, draws, usable)


def _wants_cover(
    parameters: Sequence[Parameter],
    words: Sequence[Parameter],
    history: SearchHistory,
    tried: Sequence[Genome],
    draws: Draws,
    settings: SearchSettings,
) -> bool:
    """Whether the next genome comes from the whole space.

    So it is in a large one for some of the first while others run, in a small one for every second until each word was
    tried.
    """
    if history.claimed and len(tried) == len(history.claimed):
        return draws.chance(settings.blind_share)
    if len(parameters) > settings.small:
        return bool(history.claimed) and len(tried) < settings.dense_from and draws.chance(settings.dense_share)
    if len(tried) % 2 or len(tried) >= 2 * settings.cover:
        return False
    return len(tried) < settings.cover or any(
        {genome[word.name] for genome in tried} < {*word.range.choices} for word in words
    )


def _covering(
    parameters: Sequence[Parameter],
    words: Sequence[Parameter],
    leading: Genome,
    tried: Sequence[Genome],
    draw: Callable[[Sequence[Parameter], Draws], Genome],
    draws: Draws,
    usable: Fresh,
) -> Move | None:
    """A drawn genome with the words that were tried least, and the patches of the leading one."""
    counts = {word.name: Counter(genome[word.name] for genome in tried) for word in words}
    patches = {name: value for name, value in leading.items() if name.startswith("+")}
    for _ in range(200):
        genome = {**draw(parameters, draws), **patches}
        for word in words:
            choices = draws.sample(word.range.choices, len(word.range.choices))
            genome[word.name] = min(choices, key=counts[word.name].__getitem__)
        if usable(genome):
            return Move(genome, "random", None, None)
    return _random(parameters, draws, usable)


def _random(parameters: Sequence[Parameter], draws: Draws, usable: Fresh) -> Move | None:
    for _ in range(200):
        genome = anywhere(parameters, draws)
        if usable(genome):
            return Move(genome, "random", None, None)
    return None
