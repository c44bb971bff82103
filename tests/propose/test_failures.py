"""Runs that failed for one cause say what cannot work, and the search keeps to that."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.failures import causes
from autoresearch.propose.search.moves import Sample
from autoresearch.propose.search.proposal import SearchProblem, SearchProposal
from autoresearch.propose.search.search import propose
from autoresearch.task.printed import read_metric
from autoresearch.task.program import join_files, split_program

PROGRAM = """\
CELLS = 24  # 8 .. 64
LANES = 4  # 1 .. 12
RATE = 0.1  # 0.01 .. 1.0
DECAY = 0.5  # 0.1 .. 0.9


def lane(cells, lanes):
    if cells % lanes:
        raise ValueError(f"cannot split {cells} cells")
    return cells // lanes


print("lane:", lane(CELLS, LANES))
print("loss:", abs(CELLS - 40) / 40 + abs(RATE - 0.03) + LANES * 0.01 + 0 * DECAY)
"""
SPACE = space_of(
    PROGRAM + "BATCH = 16  # 1 .. 4096\nDEPTH = 4  # 1 .. 8\nKIND = 'a'  # one of a b c\nHEAD = 6  # fixed\n"
)


def sample(number: int, fault: str, **settings: Any) -> Sample:
    name = number.to_bytes(32, "big")
    run = PastRun(name, name, settings, None if fault else 1.0, 0, None, None, fault=fault)
    return Sample({**SPACE.default(), **settings}, run, 1.0)


def explained(fault: str, worked: list[dict[str, Any]], failed: list[dict[str, Any]]) -> list[str]:
    good = [sample(number, "", **settings) for number, settings in enumerate(worked)]
    bad = [sample(100 + number, fault.format(number), **settings) for number, settings in enumerate(failed)]
    return [str(rule) for cause in causes(SPACE, good, bad) for rule in cause.rules]


@pytest.mark.parametrize(
    ("worked", "failed", "rule"),
    [
        # A bound is as wide as the failures allow.
        ([{"BATCH": 512}], [{"BATCH": 1024}, {"BATCH": 2048}, {"BATCH": 1500}], "BATCH < 1024"),
        ([{"RATE": 0.05}], [{"RATE": 0.02}, {"RATE": 0.03}, {"RATE": 0.01}], "RATE > 0.03"),
        ([{"KIND": "c"}], [{"KIND": "b"}, {"KIND": "b", "RATE": 0.2}, {"KIND": "b", "RATE": 0.05}], "KIND != b"),
        (
            [{"CELLS": 30, "LANES": 5}, {"LANES": 12}, {"LANES": 3}, {"CELLS": 50, "LANES": 1}, {"CELLS": 20}],
            [{"LANES": 5}, {"CELLS": 30}, {"LANES": 7, "CELLS": 22}],
            "CELLS % LANES == 0",
        ),
        # No single setting: a width that is depth times another one, by heads of a fixed size.
        (
            [{"CELLS": 9, "DEPTH": 2}, {"CELLS": 10, "DEPTH": 3}, {"CELLS": 11, "DEPTH": 6}, {"CELLS": 42, "DEPTH": 5}],
            [{"CELLS": 10}, {"CELLS": 25, "DEPTH": 3}, {"CELLS": 11, "DEPTH": 5}],
            "CELLS * DEPTH % HEAD == 0",
        ),
        # Too large together, such as for memory.
        (
            [
                {"LANES": 1, "RATE": 1.0, "DECAY": 0.9, "BATCH": 4096, "DEPTH": 1},
                {"BATCH": 512, "DEPTH": 8},
                {"CELLS": 64, "BATCH": 700, "DEPTH": 6},
            ],
            [{"BATCH": 2048}, {"BATCH": 1024, "DEPTH": 8}, {"BATCH": 3000, "DEPTH": 2}],
            "BATCH * DEPTH < 6000",
        ),
    ],
)
def test_one_rule_is_left(worked: list[dict[str, Any]], failed: list[dict[str, Any]], rule: str) -> None:
    assert explained("error {}", [{}, *worked], failed) == [rule]


def test_failures_of_several_causes_or_of_two_programs_say_nothing() -> None:
    failed = [{"BATCH": 1024}, {"BATCH": 2048}, {"BATCH": 1500}]

    assert explained("error {}", [{}], failed[:2]) == []
    assert explained("error {}", [], failed) == []
    bad = [sample(number, error, BATCH=1024 + number) for number, error in enumerate(("memory", "shape", "type"))]
    assert causes(SPACE, [sample(9, "")], bad) == []


def test_what_the_runs_leave_open_is_still_tried_and_what_the_error_names_comes_first() -> None:
    failed = [{"BATCH": 1024, "DEPTH": 8}, {"BATCH": 2048, "DEPTH": 7}, {"BATCH": 1500, "DEPTH": 6}]
    open_ = explained("error {}", [{}], failed)
    assert {"BATCH < 1024", "DEPTH < 6"} <= set(open_)

    good, bad = [sample(0, "")], [sample(9 + n, "out of memory", **settings) for n, settings in enumerate(failed)]
    (cause,) = causes(SPACE, good, bad)
    assert str(cause) == ""
    assert cause.refuses({**SPACE.constants, **SPACE.default(), "BATCH": 4096, "DEPTH": 8})
    assert not cause.refuses({**SPACE.constants, **SPACE.default(), "BATCH": 4096})
    assert "DEPTH < 6" not in explained("batch of {} does not fit", [{}], failed)


def measured(made: SearchProposal, number: int) -> PastRun:
    """A run of a real program: its value, or the last line of its error."""
    program = split_program(made.source)["cells.py"]
    ended = subprocess.run([sys.executable, "-ISc", program], capture_output=True, text=True, check=False)
    value, fault = read_metric(ended.stdout, "loss").value, ended.stderr.strip().rpartition("\n")[2]
    name = number.to_bytes(32, "big")
    return PastRun(name, made.source_digest, made.genome, value, made.replicate, made.parent, made.base, fault=fault)


@pytest.mark.slow
def test_a_search_of_real_runs_keeps_to_a_rule_that_three_crashes_taught() -> None:
    problem = SearchProblem(b"task", join_files({"cells.py": PROGRAM}), "minimize", 0.01, None, lambda _: None)
    runs: list[PastRun] = []
    rule = ""
    for counter in range(20):
        made = propose(problem, runs, [], worker="c", counter=counter)
        rule = made.hypothesis if "Kept" in made.hypothesis else rule
        runs.append(measured(made, counter))

    assert sum(run.value is None for run in runs) == 3
    assert "Kept: CELLS % LANES == 0. 3 programs that broke it ended with “ValueError: cannot split" in rule
