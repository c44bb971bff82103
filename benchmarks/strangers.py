"""How are programs understood as one finds them, what does the search find in them, and how far does it get?

The corpus of tests/programs says what is right of printed texts, names of metrics and small folders: the figures are
shares of what was taken rightly, refused or asked about, and wrong without a word of doubt.

    python -m benchmarks.strangers --runs 40            the programs of benchmarks/programs/, as a Markdown table
    python -m benchmarks.strangers --runs 40 DIR …      folders of your own

Each folder goes the way of a user: `autoresearch task new` describes it, then the search proposes and the sandbox runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from autoresearch.propose.program.edits import constants
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import NothingToTry, SearchProblem
from autoresearch.propose.search.search import propose
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.task.loading import load_task
from benchmarks.corpus import PARTS, judge_texts, shares
from benchmarks.corpus_folders import judge_folders, stranger_folders

COMPARED = "what is right by the corpus; the program as it stands: its own number, here and in the same search"
PROGRAMS = Path(__file__).parent / "programs"
# What a program needs that the node itself does not.
NEEDS = {"digits": "sklearn"}
RUNS = {True: 2, False: 40}
# The first folder of each half of the corpus, or all: a folder takes about five seconds.
FOLDERS = {True: 1, False: None}
# What the quick version searches: it needs neither torch nor scikit-learn.
CHEAPEST = "matmul"


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found in a program, and what its runs gave."""

    name: str
    metric: str
    direction: str
    ranges: dict[str, str]
    noise: float | None
    values: Sequence[float | None]
    """Of each run in order; None where it failed."""
    repeated: int
    titles: Sequence[str]

    def best(self, runs: int) -> float:
        """The best value of the first runs."""
        found = [value for value in self.values[:runs] if value is not None]
        return min(found) if self.direction == "minimize" else max(found)

    @property
    def failed(self) -> int:
        """How many runs gave no number."""
        return sum(value is None for value in self.values)


def measure(*, quick: bool) -> dict[str, float]:
    """The figures of the corpus and of each program; without scikit-learn its program is left out."""
    figures: dict[str, float] = {}
    for kind, judgements in judge_texts().items():
        figures |= shares(kind, judgements)
    some = [folder for part in PARTS for folder in stranger_folders(part)[: FOLDERS[quick]]]
    figures |= shares("folders", judge_folders(some))
    for folder in [PROGRAMS / CHEAPEST] if quick else programs():
        found = search(folder, RUNS[quick])
        figures |= {
            f"{found.name}: constants": len(found.ranges),
            f"{found.name}: baseline": found.best(1),
            f"{found.name}: best": found.best(len(found.values)),
            f"{found.name}: failed": found.failed,
            f"{found.name}: repeated": found.repeated,
        }
    return figures


def programs() -> list[Path]:
    """The folders of the programs that can run here."""
    folders = sorted(path for path in PROGRAMS.iterdir() if path.is_dir())
    return [folder for folder in folders if find_spec(NEEDS.get(folder.name, "sys")) is not None]


def search(program: Path, runs: int) -> Searched:
    """Describe a copy of a program's folder as a task, and search it for so many runs."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        folder = shutil.copytree(program, place / program.name)
        environment = {**os.environ, "AUTORESEARCH_HOME": f"{scratch}/home"}
        new = [sys.executable, "-m", "autoresearch_cli", "task", "new", str(folder)]
        subprocess.run(new, env=environment, check=True, capture_output=True)
        task = load_task(folder)
        baseline = task.baseline.decode()
        problem = SearchProblem(
            task.digest, baseline, task.metric.direction, task.metric.noise, task.metric.floor, lambda _: None
        )
        bench = Bench(Level(detect_level()[0]), 1, "cpu", place / "data", place / "scratch", foreign=False)
        past: list[PastRun] = []
        titles: list[str] = []
        for counter in range(runs):
            try:
                made = propose(problem, past, [], worker="benchmark", counter=counter)
            except NothingToTry:
                break
            plan = plan_as_it_stands(task, made.source, replicate=made.replicate)
            found = Experiment(task, plan, bench).measure(own=True)
            run = counter.to_bytes(32, "big")
            past.append(
                PastRun(
                    run, made.source_digest, made.genome, found.value, made.replicate, made.parent, made.base,
                    fault=found.reason,
                )
            )  # fmt: skip
            titles.append(made.title if found.value is not None else f"{made.title}: {found.reason}")
    ranges = {name: str(one.range) for name, one in constants(baseline).items() if one.range}
    tried = {(run.source_digest, run.replicate) for run in past}
    return Searched(
        program.name, task.metric.name, task.metric.direction, ranges, task.metric.noise,
        [run.value for run in past], len(past) - len({digest for digest, _ in tried}), titles,
    )  # fmt: skip


def table(found: Sequence[Searched]) -> str:
    """The searches as Markdown: one row a program."""
    rows = [
        "| program | number | constants | baseline | noise | best of 20 | best of all | runs | failed | repeated |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        noise = "none" if one.noise is None else f"{one.noise:.2g}"
        cells = [
            one.name, f"{one.metric}, {one.direction}", len(one.ranges), f"{one.best(1):.4g}", noise,
            f"{one.best(20):.4g}", f"{one.best(len(one.values)):.4g}", len(one.values), one.failed, one.repeated,
        ]  # fmt: skip
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=RUNS[False])
    parser.add_argument("--titles", action="store_true", help="each run's value and title as well")
    options = parser.parse_args()
    found = []
    for folder in options.folders or programs():
        one = search(folder, options.runs)
        found.append(one)
        print(f"{one.name}: " + ", ".join(f"{name} {span}" for name, span in one.ranges.items()), flush=True)
        for value, title in zip(one.values, one.titles, strict=True):
            if options.titles:
                print(f"  {'failed' if value is None else f'{value:.4g}':>10}  {title}")
    print(table(found))


if __name__ == "__main__":
    main()
