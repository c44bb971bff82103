"""How many planted holes ``autoresearch task attack`` finds, and how often it accuses a sound task.

python -m benchmarks.attacks                    the table of all 144 tasks
python -m benchmarks.attacks --half again       of one half
python -m benchmarks.attacks ties-planted       of one task
python -m benchmarks.attacks --check            is each hole open, and each sound twin closed, by its cheat?
python -m benchmarks.attacks --write DIR        write the folders
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from autoresearch.run.bench import Bench
from autoresearch.run.sandbox.job import Level
from benchmarks.attacks.tasks import HALVES, AttackedTask, attacked_tasks
from benchmarks.attacks.trial import fault_of
from benchmarks.corpus_folders import scratch_folder

# A busy machine is slow: the time that counts is that of one processor.
ATTACK = f"{shlex.quote(sys.executable)} -m autoresearch_cli task attack --budget 600"
SECONDS = 900
_HELD, _THROUGH = 0, 1
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What the command said of one task; ``got_through`` is None where it failed.

    ``seconds`` are those of the clock, ``cpu_seconds`` what one processor worked.
    """

    task: AttackedTask
    got_through: bool | None
    detail: str
    seconds: float
    cpu_seconds: float

    @property
    def cell(self) -> str:
        """The detail on one line."""
        return " ".join(self.detail.split()).replace("|", "/")

    @property
    def verdict(self) -> str:
        """A word for the table."""
        if self.got_through is None:
            return "error"
        if self.task.is_planted:
            return "found" if self.got_through else "missed"
        return "false alarm" if self.got_through else "held"


def attack(task: AttackedTask, scratch: Path, command: Sequence[str]) -> Row:
    """Write a task as a folder and have the command attack it. The exit status says whether something got through.

    A hole that the quick half of the attacks finds is found: the whole list is tried on what holds against that.
    """
    folder = scratch / task.name
    task.write(folder)
    began, before = time.monotonic(), _cpu_seconds()

    def row(detail: str, *, got_through: bool | None = None) -> Row:
        return Row(task, got_through, detail, time.monotonic() - began, _cpu_seconds() - before)

    for more in (["--quick"], []) if task.is_planted else ([],):
        try:
            ended = subprocess.run(
                [*command, str(folder), "--json", *more],
                env={**os.environ, "AUTORESEARCH_HOME": str(scratch / "home")},
                capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (subprocess.TimeoutExpired, OSError) as error:
            return row(str(error)[:200])
        if ended.returncode not in (_HELD, _THROUGH):
            return row(ended.stderr.strip()[-200:])
        try:
            names = attacks_through(json.loads(ended.stdout))
        except ValueError:  # an error may have status 1, too
            return row(f"its answer is no JSON: {(ended.stderr or ended.stdout).strip()[-200:]}")
        if ended.returncode == _THROUGH:
            more_names = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
            return row(", ".join(names[:_NAMED]) + more_names, got_through=True)
    return row("", got_through=False)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def attacks_through(answer: Any) -> list[str]:  # noqa: ANN401 - what the command answers
    """The names of the attacks that got through, as far as an answer has them: the exit status is what counts.

    Raises ValueError where the answer is that of a command that failed.
    """
    if isinstance(answer, Mapping) and "error" in answer:
        raise ValueError(answer["error"])
    rows = answer.get("rows") if isinstance(answer, Mapping) else None
    return [
        str(row.get("name"))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping) and row.get("result") == "through"
    ]


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each task, then the sums of each half."""
    lines = ["| half | task | verdict | got through | seconds | of one core |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = (row.task.half, row.task.name, row.verdict, row.cell, f"{row.seconds:.0f}", f"{row.cpu_seconds:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(line for half in HALVES for line in _sums(half, rows))])


def _sums(half: str, rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row.task.half == half]
    if not mine:
        return []
    planted = [row.verdict for row in mine if row.task.is_planted]
    sound = [row.verdict for row in mine if not row.task.is_planted]
    took = [row.cpu_seconds for row in mine]
    return [
        f"{half}: found {planted.count('found')} of {len(planted)} holes; "
        f"false alarms {sound.count('false alarm')} of {len(sound)}; "
        f"errors {(planted + sound).count('error')}; "
        f"seconds of one core a task: median {median(took):.0f}, longest {max(took):.0f}"
    ]


def main() -> int:
    """The command line; the exit status is 1 where the command failed, or a task is not what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks", description=__doc__.partition("\n")[0])
    parser.add_argument("task", nargs="*", help="names of tasks, such as ties-planted; without one, all")
    parser.add_argument("--half", choices=HALVES, help="the tasks of one half")
    parser.add_argument("--command", default=ATTACK, help="what attacks; DIR and --json are put behind it")
    parser.add_argument("--check", action="store_true", help="run each baseline and each cheat instead")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write the task folders there instead")
    options = parser.parse_args()
    tasks = [task for half in HALVES if options.half in (None, half) for task in attacked_tasks(half)]
    if unknown := set(options.task) - {task.name for task in tasks}:
        parser.error(f"there is no task {', '.join(sorted(unknown))}")
    tasks = [task for task in tasks if not options.task or task.name in options.task]
    if options.write:
        for task in tasks:
            print(task.write(options.write / task.name).folder)
        return 0
    with scratch_folder() as scratch:
        if options.check:
            return _check(tasks, scratch)
        rows = []
        for task in tasks:
            rows.append(attack(task, scratch, shlex.split(options.command)))
            print(
                f"{task.name}: {rows[-1].verdict}, {rows[-1].cell}, {rows[-1].cpu_seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    print(table(rows))
    return 1 if any(row.got_through is None for row in rows) else 0


def _check(tasks: Sequence[AttackedTask], scratch: Path) -> int:
    faults = 0
    for task in tasks:
        bench = Bench(Level.BUBBLEWRAP, 1, "cpu", scratch / "data", scratch / "scratch")
        fault = fault_of(task, scratch / task.name, bench)
        print(f"{task.name}: {fault or 'as it should be'}", flush=True)
        faults += bool(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
