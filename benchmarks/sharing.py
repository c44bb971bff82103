"""Does sharing help? The same number of runs by peers that share one log, and by peers that are alone.

    AUTORESEARCH_BENCHMARK_CACHE=DIR python -m benchmarks sharing     hours; stop it and start it again at will
    python -m benchmarks.sharing --cache DIR --seeds 12 4x10 1x20     minutes: four peers with ten runs each, and one
                                                                      with 20; values by recorded trainings, 12 draws
    python -m benchmarks.sharing --cache DIR --seeds 2 --work 5e10 --fresh 2 4x10 4x10_alone 1x20 1x20_random
                                                                      the same by trainings of so much work, beside
                                                                      peers that don't share and random search

Peers work in rounds: each proposes from all runs of earlier rounds, and sees what the peers before it in this round try
(claims). Alone, a peer sees its own runs. In one group the first peer has a scripted model instead of the search: it
changes one thing of the best program at a time, in the order of the program. Every value is a real training of the
shipped task at a tenth of its budget. What each group, or peer, calls its best is measured again on seeds that nobody
saw.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autoresearch.propose.program.space import Space
from autoresearch.propose.search.proposal import LiveClaim
from autoresearch.propose.search.search import propose
from autoresearch.task.model import seed_for
from autoresearch.task.program import source_digest
from benchmarks.proposer import FRESH_FROM
from benchmarks.proposer_methods import FAILED, Measured, best_run, past_runs, problem_of, random_next, shipped_space
from benchmarks.proposer_runs import Trainer
from benchmarks.recorded import Drawn

# By what the scripted model multiplies a number, one after the other.
FACTORS = (2.0, 0.5, 1.4, 0.7)
# So many documents of the text measure a short training, where all of it would take longer than the training.
DOCUMENTS = 64
COMPARED = "peers that share a log, and as many peers, with as many runs each, that are alone; lower is better"


@dataclass(frozen=True, slots=True)
class Group:
    """So many peers with so many runs each. ``alone``: each of the peers without the others.

    ``models``: so many of them, the first ones, have a scripted model and no search. ``random``: all search at random.
    """

    peers: int
    runs: int
    alone: bool = False
    models: int = 0
    random: bool = False

    @property
    def name(self) -> str:
        """How figures and files name it."""
        ends = {"_with_model": self.models, "_random": self.random, "_alone": self.alone}
        return f"{self.peers}x{self.runs}{''.join(end for end, holds in ends.items() if holds)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the experiment; ``budget`` in work units, 0: values come from recorded trainings."""

    budget: float
    seeds: int
    fresh: int
    groups: tuple[Group, ...]


FULL = Plan(
    2.1e11,
    5,
    6,
    (
        Group(4, 20),
        Group(4, 20, alone=True),
        Group(4, 20, models=1),
        Group(1, 20, alone=True, models=1),
        Group(4, 10),
        Group(16, 5),
        Group(16, 20),
    ),
)
# What is compared besides: many peers for a short time with few for a longer one, and with few for the same.
PAIRS = (("16x5", "4x10"), ("16x20", "4x20"))
QUICK = Plan(
    0.0,
    1,
    1,
    (Group(2, 1), Group(2, 1, alone=True), Group(2, 1, models=1), Group(1, 1, alone=True, models=1)),
)


@dataclass(frozen=True, slots=True)
class Job:
    """One group, or one peer of those that are alone, with one seed of the searches."""

    group: Group
    peer: int
    seed: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.group.name}-{self.seed}" + (f"-{self.peer}" if self.group.alone else "")


def jobs_of(plan: Plan) -> list[Job]:
    """All that is measured."""
    return [
        Job(group, peer, seed)
        for seed in range(plan.seeds)
        for group in plan.groups
        for peer in range(group.peers if group.alone else 1)
    ]


def run_job(job: Job, plan: Plan, folder: Path, trainer: Trainer | Drawn) -> list[Measured]:
    """The runs of a job and, after them, the fresh measurements of its best; goes on where it was stopped."""
    file = folder / f"{job.name}.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    done = [Measured(**json.loads(line)) for line in lines if line.endswith("\n")]
    space = shipped_space()
    peers = [job.peer] if job.group.alone else list(range(job.group.peers))
    count = len(peers) * job.group.runs
    with file.open("a") as kept:
        for number in range(len(done), count + plan.fresh):
            made = _next(space, job, peers, done) if number < count else _again(space, job, done[:count], number)
            if isinstance(trainer, Drawn):
                value: float | None = trainer.value(made)
            else:
                value = trainer.value(made.source, seed=_seed(job, made))
            done.append(replace(made, value=value))
            kept.write(json.dumps(asdict(done[-1])) + "\n")
            kept.flush()
    return done


def _next(space: Space, job: Job, peers: Sequence[int], done: Sequence[Measured]) -> Measured:
    """What the peer whose turn it is proposes: from the rounds before, and the claims of this round."""
    turn = len(done) % len(peers)
    known, claimed = done[: len(done) - turn], done[len(done) - turn :]
    claims = [LiveClaim(source_digest(run.source), run.replicate, run.genome) for run in claimed]
    counter = len(done) // len(peers)
    if job.group.random:
        return random_next(space, job.seed, done)
    if peers[turn] < job.group.models:
        return _by_model(space, job, known, claimed)
    made = propose(problem_of(space, job.seed), past_runs(known), claims, worker=f"peer {peers[turn]}", counter=counter)
    return Measured(made.source, made.genome, made.replicate, None, made.parent.hex() if made.parent else None)


def _by_model(space: Space, job: Job, known: Sequence[Measured], claimed: Sequence[Measured]) -> Measured:
    """The best program with the first change that nobody tried; a repetition of it where all were tried."""
    leader = best_run(problem_of(space, job.seed), past_runs(known))
    base = next((run for run in known if leader and source_digest(run.source) == leader.source_digest), None)
    genome = space.default() if base is None else space.read(base.genome)
    parent = None if leader is None else leader.id.hex()
    tried = {source_digest(run.source) for run in (*known, *claimed)}
    if source_digest(space.source) not in tried:
        return Measured(space.source, genome, 0, None)
    for factor in FACTORS:
        for name, parameter in space.parameters.items():
            value = genome[name]
            if parameter.ordered:
                assert isinstance(value, int | float)
                wanted = parameter.at(parameter.place(type(value)(value * factor)))
            else:
                choices = parameter.range.choices
                wanted = choices[(choices.index(value) + 1) % len(choices)] if value in choices else choices[0]
            changed = {**genome, name: wanted}
            source = space.build(changed) if space.allows(changed) else None
            if source is not None and source_digest(source) not in tried:
                return Measured(source, changed, 0, None, parent)
    source = space.source if base is None else base.source
    return Measured(source, genome, sum(run.source == source for run in (*known, *claimed)), None, parent)


def _again(space: Space, job: Job, done: Sequence[Measured], number: int) -> Measured:
    leader = best_run(problem_of(space, job.seed), past_runs(done))
    digest = source_digest(space.source) if leader is None else leader.source_digest
    best = next(run for run in done if source_digest(run.source) == digest)
    return replace(best, replicate=FRESH_FROM + number - len(done), value=None, parent=None)


def _seed(job: Job, run: Measured) -> int:
    """Alike for a program and a replicate, whoever runs it; other ones for each seed of the searches."""
    return seed_for(hashlib.sha256(f"sharing {job.seed}".encode()).digest(), source_digest(run.source), run.replicate)


_TRAINERS: dict[float, Trainer] = {}


def _in_process(job: Job, plan: Plan, folder: Path) -> list[Measured]:
    if plan.budget and plan.budget not in _TRAINERS:
        _TRAINERS[plan.budget] = Trainer(budget=plan.budget, data=folder / f"data-{os.getpid()}")
    return run_job(job, plan, folder, _TRAINERS.get(plan.budget) or Drawn(job.seed))


def measure(*, quick: bool) -> dict[str, float]:
    """Mean fresh values and their differences; the full version takes hours and goes on from its cache."""
    if not quick:
        folder = Path(os.environ.get("AUTORESEARCH_BENCHMARK_CACHE", "benchmark-cache"), "sharing")
        folder.mkdir(parents=True, exist_ok=True)
        return _figures(FULL, folder, processes=2)
    with tempfile.TemporaryDirectory() as made:
        return _figures(QUICK, Path(made), processes=1)


def _figures(plan: Plan, folder: Path, *, processes: int) -> dict[str, float]:
    jobs = jobs_of(plan)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = dict(zip(jobs, pool.map(_in_process, jobs, [plan] * len(jobs), [folder] * len(jobs)), strict=True))
    fresh = {job: statistics.fmean(_value(run) for run in runs[-plan.fresh :]) for job, runs in found.items()}
    figures: dict[str, float] = {}
    shared, alone, with_model, model_alone, *others = plan.groups
    by_group = {
        group: [[fresh[job] for job in jobs if job.group == group and job.seed == seed] for seed in range(plan.seeds)]
        for group in plan.groups
    }
    figures["shared"] = statistics.fmean(values[0] for values in by_group[shared])
    figures["best_of_alone"] = statistics.fmean(min(values) for values in by_group[alone])
    figures["mean_of_alone"] = statistics.fmean(statistics.fmean(values) for values in by_group[alone])
    pairs = list(zip(by_group[shared], by_group[alone], strict=True))
    _difference(figures, "shared_minus_best_of_alone", [one[0] - min(four) for one, four in pairs])
    _difference(figures, "shared_minus_mean_of_alone", [one[0] - statistics.fmean(four) for one, four in pairs])
    figures["shared_with_model"] = statistics.fmean(values[0] for values in by_group[with_model])
    figures["model_alone"] = statistics.fmean(values[0] for values in by_group[model_alone])
    mixed = list(zip(by_group[with_model], by_group[shared], by_group[alone], by_group[model_alone], strict=True))
    _difference(figures, "shared_with_model_minus_shared", [one[0] - other[0] for one, other, _, _ in mixed])
    # Without each other they are three searches and the model.
    apart = [one[0] - min(*four[: shared.peers - 1], model[0]) for one, _, four, model in mixed]
    _difference(figures, "shared_with_model_minus_best_of_alone", apart)
    for group in others:
        figures[group.name] = statistics.fmean(values[0] for values in by_group[group])
    named = {group.name: [values[0] for values in by_group[group]] for group in plan.groups if not group.alone}
    for many, few in PAIRS:
        if many in named and few in named:
            apart = [one - other for one, other in zip(named[many], named[few], strict=True)]
            _difference(figures, f"{many}_minus_{few}", apart)
    together = [(job, found[job][: -plan.fresh]) for job in jobs if job.group == shared]
    figures["shared_without_one_peer"] = statistics.fmean(
        loss for job, runs in together for loss in losses_without(runs, job.group.peers)
    )
    figures["duplicates_percent"] = 100 * _duplicates([found[job] for job in jobs if not job.group.alone], plan)
    return figures


def losses_without(runs: Sequence[Measured], peers: int) -> list[float]:
    """By how much the lowest value is worse without each peer: without its runs, and all that was built on them."""
    lowest, losses = min(_value(run) for run in runs), []
    for peer in range(peers):
        gone: set[str] = set()
        left = []
        for number, (run, name) in enumerate(zip(runs, past_runs(runs), strict=True)):
            if number % peers == peer or run.parent in gone:
                gone.add(name.id.hex())
            else:
                left.append(_value(run))
        losses.append(min(left, default=FAILED) - lowest)
    return losses


def _difference(figures: dict[str, float], name: str, values: Sequence[float]) -> None:
    figures[name] = statistics.fmean(values)
    if len(values) > 1:
        figures[f"{name}_error"] = statistics.stdev(values) / math.sqrt(len(values))


def _duplicates(groups: Sequence[Sequence[Measured]], plan: Plan) -> float:
    """The share of runs with a program and a seed that another run of the group had already."""
    runs = [[(source_digest(run.source), run.replicate) for run in group[: -plan.fresh]] for group in groups]
    return 1 - sum(len(set(group)) for group in runs) / sum(len(group) for group in runs)


def _value(run: Measured) -> float:
    return FAILED if run.value is None else run.value


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--seeds", type=int, required=True, help="so many searches, or draws of what was not recorded")
    parser.add_argument("--work", type=float, help="budget of a training; without it values come from recorded ones")
    parser.add_argument("--fresh", type=int, default=FULL.fresh, help="so many fresh seeds measure what is called best")
    parser.add_argument("groups", nargs="+", help="peers and runs of each, as 4x10, 4x10_alone or 1x20_random")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    groups = []
    for size, _, kind in (name.partition("_") for name in options.groups):
        peers, _, each = size.partition("x")
        groups.append(Group(int(peers), int(each), alone=kind == "alone", random=kind == "random"))
    plan = Plan(options.work or 0.0, options.seeds, options.fresh, tuple(groups))
    trainer = options.work and Trainer(budget=options.work, data=options.cache / "data", documents=DOCUMENTS)
    fresh: dict[str, list[float]] = {}
    for job in jobs_of(plan):
        runs = run_job(job, plan, options.cache, trainer or Drawn(job.seed))[-plan.fresh :]
        fresh.setdefault(job.group.name, []).append(statistics.fmean(map(_value, runs)))
    for name, values in fresh.items():
        print(name, f"{statistics.fmean(values):.3f}", *(f"{value:.3f}" for value in values))


if __name__ == "__main__":
    main()
