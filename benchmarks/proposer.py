"""How good is what each search calls its best, when it is measured again on seeds that it never saw?

    python -m benchmarks.proposer --cache DIR      the real experiment: hours; stop it and start it again at will
    python -m benchmarks.proposer --cache DIR --table    what is measured so far, as a Markdown table

Every value is a real training of the shipped task at a smaller budget. The cache is one line of JSON per run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autoresearch.task.model import seed_for
from autoresearch.task.program import source_digest
from benchmarks.proposer_methods import FAILED, METHODS, Measured, shipped_space
from benchmarks.proposer_runs import Trainer

COMPARED = (
    "The built-in proposer, random search and Optuna's TPE over the same space (constants and patches of the "
    "shipped task), one search at a time without sharing; the value is the validation bits per byte of the "
    "program that each calls its best, mean over fresh seeds and over searches. Lower is better. The quick "
    "version is one search of two runs at a tiny budget: it shows that the parts work, not which is better."
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the experiment; ``budget`` in work units."""

    budget: float
    searches: int
    runs: int
    fresh: int
    documents: int | None = None
    """So many of the validation text measure a run; None: all."""


# A tenth of the task's own budget.
FULL = Plan(budget=1.5e11, searches=5, runs=80, fresh=6)
# Replicates from here on are kept for the last measurement; no search reaches them.
FRESH_FROM = 1000
QUICK = Plan(budget=2e9, searches=1, runs=2, fresh=1, documents=64)


@dataclass(frozen=True, slots=True)
class Job:
    """One search: a method and its seed."""

    method: str
    search: int


class Cache:
    """The runs of each search, and after them the fresh measurements of its best, as lines of JSON."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def read(self, job: Job) -> list[dict[str, Any]]:
        """The lines of one search, in order; a line cut off by a stop is left out."""
        path = self._path(job)
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def append(self, job: Job, line: dict[str, Any]) -> None:
        """Add a line."""
        with self._path(job).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _path(self, job: Job) -> Path:
        return self._folder / f"{job.method}-{job.search}.jsonl"


def search(job: Job, plan: Plan, cache: Cache, trainer: Trainer) -> list[float | None]:
    """Run one search to its end, from where it was stopped; return the fresh values of what it calls its best."""
    space = shipped_space()
    next_one, best_of = METHODS[job.method]
    lines = cache.read(job)
    done = [Measured(**line) for line in lines]
    while len(done) < plan.runs:
        run = next_one(space, job.search, done)
        value = trainer.value(run.source, seed=_seed(job, run.source, run.replicate))
        done.append(replace(run, value=value))
        cache.append(job, asdict(done[-1]))
    best = best_of(space, job.search, done[: plan.runs])
    for number in range(len(done) - plan.runs, plan.fresh):
        replicate = FRESH_FROM + number
        value = trainer.value(best, seed=_seed(job, best, replicate))
        done.append(Measured(best, {}, replicate, value))
        cache.append(job, asdict(done[-1]))
    return [run.value for run in done[plan.runs :]]


def measure(*, quick: bool) -> dict[str, float]:
    """Mean fresh value of each method's best; the full version takes hours and goes on from its cache."""
    if not quick:
        folder = os.environ.get("AUTORESEARCH_BENCHMARK_CACHE", "benchmark-cache")
        return run_all(FULL, Path(folder), processes=2)
    with tempfile.TemporaryDirectory() as folder:
        return run_all(QUICK, Path(folder), processes=1)  # each makes the data and loads torch


def run_all(plan: Plan, folder: Path, *, processes: int, methods: Sequence[str] = tuple(METHODS)) -> dict[str, float]:
    """These methods' searches, some at a time, each in a process of its own."""
    jobs = [Job(method, number) for number in range(plan.searches) for method in methods]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        values = list(pool.map(_in_process, jobs, [plan] * len(jobs), [folder] * len(jobs)))
    return {
        method: _mean(_mean_or_failed(v) for job, v in zip(jobs, values, strict=True) if job.method == method)
        for method in methods
    }


_TRAINERS: dict[float, Trainer] = {}


def _in_process(job: Job, plan: Plan, folder: Path) -> list[float | None]:
    """One job in a worker process, which imports torch once for all its jobs."""
    if plan.budget not in _TRAINERS:
        data = folder / f"data-{os.getpid()}"
        _TRAINERS[plan.budget] = Trainer(budget=plan.budget, data=data, documents=plan.documents)
    return search(job, plan, Cache(folder), _TRAINERS[plan.budget])


def table(plan: Plan, folder: Path) -> str:
    """What is measured so far, as Markdown: complete searches only."""
    cache, rows = Cache(folder), []
    means: dict[str, list[float]] = {method: [] for method in METHODS}
    for number in range(plan.searches):
        cells = []
        for method in METHODS:
            lines = cache.read(Job(method, number))
            fresh = [line["value"] for line in lines[plan.runs :]]
            if len(fresh) == plan.fresh:
                means[method].append(_mean_or_failed(fresh))
                cells.append(f"{means[method][-1]:.3f}")
            else:
                cells.append(f"({len(lines)} of {plan.runs + plan.fresh} runs)")
        rows.append(f"| {number + 1} | " + " | ".join(cells) + " |")
    total = [f"**{_mean(v):.3f}** ({len(v)})" if v else "" for v in means.values()]
    head = ["| search | " + " | ".join(METHODS) + " |", "| --- |" + " --- |" * len(METHODS)]
    return "\n".join([*head, *rows, "| mean (searches) | " + " | ".join(total) + " |"])


def _seed(job: Job, source: str, replicate: int) -> int:
    """Seeds differ between searches, and are the same for the same source in each method of one search."""
    task = hashlib.sha256(f"benchmark search {job.search}".encode()).digest()
    return seed_for(task, source_digest(source), replicate)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _mean_or_failed(values: Iterable[float | None]) -> float:
    return _mean(FAILED if value is None else value for value in values)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--searches", type=int, default=FULL.searches)
    parser.add_argument("--runs", type=int, default=FULL.runs)
    parser.add_argument("--budget", type=float, default=FULL.budget)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    plan = replace(FULL, searches=options.searches, runs=options.runs, budget=options.budget)
    if not options.table:
        run_all(plan, options.cache, processes=options.processes, methods=options.methods)
    print(table(plan, options.cache))


if __name__ == "__main__":
    main()
