"""The built-in proposer: what to try next, from everything that was tried and is being tried.

Pure and deterministic: the same runs and claims, in any order, give the same proposal on every machine, so a proposal
can be recomputed by whoever holds the same log.

It stands on a base: the task's baseline, or a hand-written source that leads. Now and then that is another good one
whose settings nobody has turned yet: what a new structure is worth shows when it is tuned. What was tried on another
base is weak knowledge: its genomes are read as far as they make sense, its scores are shifted so that the best of that
base is as good as the best of this one, and it weighs half. Where the best setting lies at the end of a range that was
guessed by its name, the range goes on from there. While the search makes large steps, its leaders soon fall
to better ones and their luck does not matter. So a leader earns seeds by what is built on it: the first after a few
children, the next after as many again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from autoresearch.errors import UsageError
from autoresearch.propose.program.ranges import Draws, Value
from autoresearch.propose.program.space import Genome, Space, space_of
from autoresearch.propose.search import proposal
from autoresearch.propose.search.evidence import Candidate, PastRun, SearchEvidence, by_tier, gather
from autoresearch.propose.search.failures import Cause, causes
from autoresearch.propose.search.moves import Move, Sample, SearchHistory, SearchSettings, believed, next_move
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import reseeded
from autoresearch.text import sign_of, value

# How many leading sources are asked for their base before the search stays on the baseline.
LEADERS = 5
FOREIGN_WEIGHT = 0.5
# Of the proposals this share tunes hand-written sources in the better half, each until so many runs stand on it.
TUNING_SHARE, TUNING_RUNS = 0.2, 4


@dataclass(frozen=True, slots=True)
class Base:
    """A base source, opened as a search space; ``base`` is None for the task's baseline."""

    space: Space
    base: bytes | None


def choose_ground(problem: proposal.SearchProblem, evidence: SearchEvidence, baseline: bytes) -> Base:
    """The base of the leading source whose base is at hand and can be changed; the baseline when there is none."""
    first_runs = {candidate.source_digest: candidate.first.id for candidate in evidence.candidates}
    for leader in evidence.leaders[:LEADERS]:
        base = base_of(leader, baseline)
        if base is None:
            break
        if base in first_runs and (opened := _opened(problem, first_runs[base], base)) is not None:
            return opened
    return Base(space_of(problem.baseline, problem.patches), None)


def _opened(problem: proposal.SearchProblem, run: bytes, digest: bytes) -> Base | None:
    """The source of a run as a base; None where it is not at hand, is another one, or has nothing to change."""
    source = problem.source_of(run)
    if source is None or not is_source(source, digest):
        return None
    space = space_of(source, problem.patches)
    return Base(space, digest) if space.parameters else None


def base_of(candidate: Candidate, baseline: bytes) -> bytes | None:
    """The base of a source: the one its genome changes, or itself when it was written by hand."""
    if candidate.source_digest == baseline:
        return None
    base = candidate.first.base if candidate.first.genome else candidate.source_digest
    return None if base == baseline else base


def samples(ground: Base, evidence: SearchEvidence, baseline: bytes) -> tuple[list[Sample], list[Sample]]:
    """What was tried, as genomes of this space: what worked, best first, and what failed."""
    best: dict[bytes | None, float] = {}
    for candidate in evidence.working:
        best.setdefault(base_of(candidate, baseline), candidate.estimate)
    working: list[Sample] = []
    failed: list[Sample] = []
    for candidate in evidence.candidates:
        base = base_of(candidate, baseline)
        own = base == ground.base
        itself = candidate.source_digest == (ground.base or baseline)
        if not own and (not candidate.first.genome or base == candidate.source_digest):
            continue  # it changes no setting of another base that a score could be credited to
        genome = ground.space.default() if itself else ground.space.read(candidate.first.genome)
        shift = 0.0 if own or ground.base not in best else best[ground.base] - best.get(base, 0.0)
        weight = 1.0 if own else FOREIGN_WEIGHT
        sample = Sample(genome, candidate.first, candidate.estimate + shift, weight, candidate.tier)
        (failed if candidate.runs == 0 else working).append(sample)
    return sorted(working, key=lambda t: (t.score, t.weight < 1, t.run.source_digest)), failed


def is_source(source: str, digest: bytes) -> bool:
    """Whether the text is the source of this canonical digest."""
    try:
        return source_digest(source) == digest
    except UsageError:
        return False


@dataclass(frozen=True, slots=True)
class Replication:
    """The policy; the defaults were chosen by trying others on the shipped task."""

    children: int = 6
    """So many sources must start from the apparent best for each further seed of it."""
    most: int = 4
    """Seeds that the apparent best gets."""
    share: float = 0.2
    """Of all runs, at most this share are replicates."""


SEEDLESS = Replication(most=1)
"""Of a task whose author says that the seed changes nothing."""


def wants_replicate(evidence: SearchEvidence, in_flight: Mapping[bytes, int], policy: Replication) -> Candidate | None:
    """The source whose next seed should be run now, or None. ``in_flight`` counts live claims by source."""
    working = evidence.working
    first = next((candidate for candidate in working if candidate.tier is not None), None)
    if first is None:
        return None
    seeds = first.runs + in_flight.get(first.source_digest, 0)
    spent = sum(candidate.runs - 1 for candidate in working) + sum(in_flight.values())
    if spent >= policy.share * sum(candidate.runs for candidate in working):
        return None
    return first if seeds < min(policy.most, 1 + first.children // policy.children) else None


@dataclass(frozen=True, slots=True)
class _State:
    """What one proposal is made from."""

    problem: proposal.SearchProblem
    runs: Collection[PastRun]
    evidence: SearchEvidence
    ground: Base
    claims: tuple[proposal.LiveClaim, ...]
    taken: frozenset[tuple[bytes, int]]
    baseline: bytes

    @property
    def sign(self) -> float:
        return sign_of(self.problem.direction)


def propose(
    problem: proposal.SearchProblem,
    runs: Collection[PastRun],
    claims: Collection[proposal.LiveClaim],
    *,
    worker: str,
    counter: int,
    settings: SearchSettings | None = None,
    replication: Replication | None = None,
) -> proposal.SearchProposal:
    """The next experiment of this worker, whose proposals ``counter`` counts.

    Never a (source, replicate) that is run or claimed already. ``problem.source_of`` is asked for a few leading
    runs only.

    Raises:
        NothingToTry: the program has nothing that the search can change, or nothing is left of it.
    """
    state = _state(problem, runs, claims)
    if not state.ground.space.parameters:
        raise proposal.nothing_to_change(problem.baseline)
    if (state.baseline, 0) not in state.taken:
        return _baseline(problem, state.baseline)
    policy = replication or _usual(problem)
    if (again := _due(state, policy)) is not None:
        return again
    draws = Draws(problem.task, worker.encode(), str(counter).encode(), *_memory(runs, state.claims))
    if (untuned := _untuned(state)) and draws.chance(TUNING_SHARE):
        opened = (_opened(problem, candidate.first.id, candidate.source_digest) for candidate in untuned[:LEADERS])
        state = replace(state, ground=next(filter(None, opened), state.ground))
    made = _new_source(state, draws, settings or SearchSettings()) or _any_replicate(state, policy)
    if made is None:
        raise proposal.nothing_left(problem.baseline)
    return made


def _untuned(state: _State) -> list[Candidate]:
    """The hand-written sources in the better half that may be built upon and on which few runs stand, best first."""
    standing = Counter(base_of(candidate, state.baseline) for candidate in state.evidence.candidates)
    working = state.evidence.working
    return [
        candidate
        for candidate in working[: (len(working) + 1) // 2]
        if candidate.tier is not None
        and base_of(candidate, state.baseline) == candidate.source_digest != state.ground.base
        and standing[candidate.source_digest] < TUNING_RUNS
    ]


def replicate_due(
    problem: proposal.SearchProblem, runs: Collection[PastRun], claims: Collection[proposal.LiveClaim]
) -> proposal.SearchProposal | None:
    """The next seed of the program that leads, where it is time for one, whoever proposed the program; else None."""
    return _due(_state(problem, runs, claims), _usual(problem))


def _state(
    problem: proposal.SearchProblem, runs: Collection[PastRun], claims: Collection[proposal.LiveClaim]
) -> _State:
    baseline = source_digest(problem.baseline)
    taken = {(run.source_digest, run.replicate) for run in runs}
    taken |= {(claim.source_digest, claim.replicate) for claim in claims}
    evidence = gather(runs, direction=problem.direction, noise=problem.noise, floor=problem.floor)
    live = tuple(sorted(claims, key=lambda claim: (claim.source_digest, claim.replicate)))
    ground = choose_ground(problem, evidence, baseline)
    of_base = (candidate for candidate in evidence.working if base_of(candidate, baseline) == ground.base)
    best = next((candidate for candidate in of_base if candidate.first.genome), None)
    if best is not None:
        ground = replace(ground, space=ground.space.widened(ground.space.read(best.first.genome)))
    return _State(problem, runs, evidence, ground, live, frozenset(taken), baseline)


def _usual(problem: proposal.SearchProblem) -> Replication:
    return SEEDLESS if problem.noise == 0 else Replication()


def _due(state: _State, policy: Replication) -> proposal.SearchProposal | None:
    doubtful = wants_replicate(state.evidence, _in_flight(state), policy)
    return None if doubtful is None else _replicate(state, doubtful)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the search believes of a genome of ``space``: its value, with the 95 % interval; None while it knows little.

    ``parent`` is the run of the best genome, which is ``before``.
    """

    space: Space
    before: Genome
    parent: bytes | None
    expected: float | None = None
    low: float | None = None
    high: float | None = None


def expectation(
    problem: proposal.SearchProblem,
    runs: Collection[PastRun],
    claims: Collection[proposal.LiveClaim],
    changed: Mapping[str, Value],
    *,
    base: bytes | None = None,
) -> Expectation:
    """What the search expects of the best program with some settings changed; of the best on ``base``, where given.

    Raises KeyError for a setting that the base has not.
    """
    state = _state(problem, runs, claims)
    if base is not None and base != state.ground.base:
        firsts = (candidate.first.id for candidate in state.evidence.candidates if candidate.source_digest == base)
        opened = (_opened(problem, run, base) for run in firsts)
        state = replace(state, ground=next(filter(None, opened), state.ground))
    space = state.ground.space
    working, failed = samples(state.ground, state.evidence, state.baseline)
    standing = [sample for sample in working if sample.tier is not None]
    parent = min(standing, key=lambda sample: (by_tier(sample.tier), sample.score), default=None)
    before = space.default() if parent is None else parent.genome
    genome = dict(before)
    for name, after in changed.items():
        genome[space.parameters[name].name] = after
    bounds = believed(space, working, failed, genome, SearchSettings())
    values = sorted(state.sign * score for score in bounds)
    run = None if parent is None else parent.run.id
    if not values:
        return Expectation(space, before, run)
    return Expectation(space, before, run, expected=values[1], low=values[0], high=values[2])


def _memory(runs: Collection[PastRun], claims: Collection[proposal.LiveClaim]) -> tuple[bytes, bytes]:
    """What the draws depend on: the set of runs and claims, in no order."""
    held = {claim.source_digest + str(claim.replicate).encode() for claim in claims}
    return b"".join(sorted({run.id for run in runs})), b"".join(sorted(held))


def _in_flight(state: _State) -> dict[bytes, int]:
    """How many seeds of each source that has run already are being run now."""
    sources = {run.source_digest: run.idea for run in state.runs}
    counts: Counter[bytes] = Counter()
    for candidate in state.evidence.candidates:
        first = candidate.first
        for claim in state.claims:
            # A repetition of a program that fixes its seeds has a source of its own, and the settings of the first.
            again = claim.source_digest not in sources and first.seedless is not None and claim.replicate > 0
            is_of = sources.get(claim.source_digest) == first.idea
            counts[candidate.source_digest] += is_of or (again and claim.genome == first.genome)
    return counts


def _new_source(state: _State, draws: Draws, settings: SearchSettings) -> proposal.SearchProposal | None:
    """A source that nobody has tried: None when the space has no more to give."""
    space = state.ground.space
    working, failed = samples(state.ground, state.evidence, state.baseline)
    claimed = [space.read(claim.genome) for claim in state.claims if claim.genome]
    seen = {_key(genome) for genome in claimed}
    seen |= {_key(sample.genome) for sample in (*working, *failed)}
    held = {digest for digest, _ in state.taken}
    learnt = causes(space, working, failed)

    def is_fresh(genome: Genome) -> bool:
        values = {**space.constants, **genome}
        return _key(genome) not in seen and not any(cause.refuses(values) for cause in learnt)

    for _ in range(20):
        move = next_move(space, SearchHistory(working, failed, claimed), draws, is_fresh, settings)
        if move is None:
            return None
        source = space.build(move.genome)
        digest = None if source is None else source_digest(source)
        if source is not None and digest is not None and digest not in held:
            return _proposal(state, move, source, digest, (working, failed), learnt)
        seen.add(_key(move.genome))
    return None


def _proposal(
    state: _State,
    move: Move,
    source: str,
    digest: bytes,
    samples: tuple[list[Sample], list[Sample]],
    learnt: Sequence[Cause],
) -> proposal.SearchProposal:
    space, (working, failed) = state.ground.space, samples
    before = space.default() if move.parent is None else move.parent.genome
    change = {name: [before[name], after] for name, after in move.genome.items() if after != before[name]}
    expected = None if move.expected is None else state.sign * move.expected
    if move.kind == "random":
        closing = "A random point of the whole space: what the search believes may be wrong."
    elif expected is None:
        closing = "A few changes to the best program so far: the search knows little yet."
    else:
        noise = state.problem.noise or 0
        best = min(state.evidence.working, key=lambda candidate: candidate.mean + noise / math.sqrt(candidate.runs))
        leading = f"the best before it was {value(state.sign * best.mean)}"
        closing = f"Expected {value(expected)}; {leading}{_moves(state.evidence)}."
    for cause in learnt:
        if set(change) & {name for rule in cause.rules for name in rule.names}:
            closing += f" {cause}".rstrip()
    count = max(1, len(working) // 10)
    good = [sample.genome for sample in working[:count]]
    rest = [sample.genome for sample in (*working[count:], *failed)]
    gains = _gains(state, change)
    return proposal.SearchProposal(
        source=source,
        source_digest=digest,
        replicate=0,
        genome=move.genome,
        base=state.ground.base,
        parent=_ground_run(state) if move.parent is None else move.parent.run.id,
        change=change,
        kind=move.kind,
        title=proposal.title(change, gains, state.problem.patches),
        hypothesis=closing
        if expected is None
        else proposal.hypothesis(change, gains, good, rest, closing, state.problem.patches),
        expected=expected,
    )


def _moves(evidence: SearchEvidence) -> str:
    """How far one seed moves a value, as the end of a sentence."""
    if evidence.spread is None:
        return f"; how far a seed moves it is unknown (the search assumes about {evidence.noise:.2g})"
    return f", one seed moves it by about {evidence.spread:.2g}" if evidence.spread else ""


def _gains(state: _State, change: Mapping[str, Sequence[Value]]) -> dict[str, float]:
    """What each of these changes gained in pairs of a run and its parent; empty for a single change."""
    if len(change) < 2:
        return {}
    gains = {}
    for name, (old, new) in change.items():
        if isinstance(old, int | float) and isinstance(new, int | float):
            median = state.problem.median_of(name)
            if median is not None:
                gains[name] = -state.sign * median * (1.0 if new > old else -1.0)
    return gains


def _ground_run(state: _State) -> bytes | None:
    """The run of the source that a point from the whole space changes; None while nobody has run it."""
    ground = state.ground.base or state.baseline
    return next((c.first.id for c in state.evidence.candidates if c.source_digest == ground), None)


def _baseline(problem: proposal.SearchProblem, digest: bytes) -> proposal.SearchProposal:
    return proposal.SearchProposal(
        source=problem.baseline,
        source_digest=digest,
        replicate=0,
        genome=space_of(problem.baseline, problem.patches).default(),
        base=None,
        parent=None,
        change={},
        kind="baseline",
        title="the baseline, unchanged",
        hypothesis="Everything else is measured against the baseline, so it comes first.",
        expected=None,
    )


def _replicate(state: _State, candidate: Candidate) -> proposal.SearchProposal | None:
    """The next free seed of a source; None when its source is not at hand."""
    run, space, run_idea = candidate.first, state.ground.space, candidate.first.idea
    source, genome, base = None, {}, None
    if base_of(candidate, state.baseline) == state.ground.base:
        itself = candidate.source_digest == (state.ground.base or state.baseline)
        genome = space.default() if itself else space.read(run.genome)
        source, base = space.build(genome), state.ground.base
    if source is None or not is_source(source, candidate.source_digest):
        source, genome, base = state.problem.source_of(run.id), dict(run.genome), run.base
    if source is None or not is_source(source, candidate.source_digest):
        return None
    alike = {run.source_digest for run in state.runs if run.idea == run_idea} | {candidate.source_digest}
    held = {number for digest, number in state.taken if digest in alike}
    # A program that fixes its seeds is repeated with others in their place.
    again = ((number, reseeded(source, number)) for number in range(len(state.taken) + 1) if number not in held)
    number, source = next((k, text) for k, text in again if (source_digest(text), k) not in state.taken)
    seeds = "seed" if candidate.runs == 1 else "seeds"
    return proposal.SearchProposal(
        source=source,
        source_digest=source_digest(source),
        replicate=number,
        genome=genome,
        base=base,
        parent=run.id,
        change={},
        kind="replicate",
        title=f"seed {number} of the leading source",
        hypothesis=(
            f"It leads with {value(state.sign * candidate.mean)} over {candidate.runs} {seeds}"
            f"{_moves(state.evidence)}: another seed says whether that was luck."
        ),
        expected=state.sign * candidate.estimate,
    )


def _any_replicate(state: _State, policy: Replication) -> proposal.SearchProposal | None:
    """When there is no new source: one more seed of a leader that is at hand, until each has as many as it may get."""
    for candidate in state.evidence.leaders[:5]:
        alike = {run.source_digest for run in state.runs if run.idea == candidate.first.idea}
        held = sum(digest in alike or digest == candidate.source_digest for digest, _ in state.taken)
        if held < policy.most and (again := _replicate(state, candidate)) is not None:
            return again
    return None


def _key(genome: Genome) -> tuple[object, ...]:
    return tuple(genome.values())
