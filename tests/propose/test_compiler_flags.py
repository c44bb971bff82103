"""The flags of a C or C++ compiler are settings like others: found in their file or a script, set, and searched."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import SearchProblem, title
from autoresearch.propose.search.search import propose
from autoresearch.task.guessing import FLAGS, guess_recipe
from autoresearch.task.loading import program_in
from autoresearch.task.printed import read_metric
from autoresearch.task.program import join_files, split_program
from tests.propose.conftest import PATCHES, best_run
from tests.propose.test_strangers import MATMUL, STRANGERS, run_of

OFF = {"-march=native": False, "-ffast-math": False, "-funroll-loops": False, "-flto": False}


def program(flags: str, file: str = FLAGS) -> str:
    return join_files({"a.c": "int main() {}\n", file: flags})


def flags_of(source: str) -> dict[str, object]:
    return {name: constant.value for name, constant in constants(source).items() if constant.is_flag}


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        ("-O2\n", {"-O": 2, **OFF}),
        ("-std=c++20\n-O3 -march=native\n-Wall\n", {"-O": 3, **OFF, "-march=native": True}),
        ("-Os -fno-fast-math -flto=4 -march=x86-64-v3\n", {"-funroll-loops": False}),
        ("-O1 -O3 -flto -flto\n", {name: False for name in OFF if name != "-flto"}),
        ("-Wall\n", {"-O": 0, **OFF}),
        ("", {}),
    ],
)
def test_flags_are_found_and_what_says_something_else_stays(flags: str, values: dict[str, object]) -> None:
    assert flags_of(program(flags)) == values


def test_a_script_has_the_flags_of_its_one_line_that_compiles() -> None:
    source = program("set -e\ng++-12 -O2 -o a a.c && ./a -O1  # -flto\n", "run.sh")
    assert flags_of(source) == {"-O": 2, **OFF}
    changed = set_constants(source, {"-O": 3, "-flto": True})
    assert "g++-12 -flto -O3 -o a a.c && ./a -O1  # -flto\n" in changed
    assert flags_of(program("gcc -O2 -c a.c\ngcc -O2 -c b.c\n", "run.sh")) == {}
    assert flags_of(program("gcc -O2 -c a.c\n", "notes.txt")) == {}


def test_any_flags_are_set_and_taken_away_again() -> None:
    source = program("-std=c99 -O2\n-lm\n")
    space = space_of(source)
    every = {"-O": 3, **dict.fromkeys(OFF, True)}
    built = space.build(every)
    assert built is not None
    assert "\n-std=c99 -O3 -march=native -ffast-math -funroll-loops -flto\n-lm\n" in built
    assert space.genome_of(built, {}) == every
    assert set_constants(built, {"-O": 2, **OFF}) == source
    assert title({"-O": [2, 3], "-flto": [False, True]}, {}, PATCHES) == "-O 2 → 3, -flto"
    assert title({"-flto": [True, False]}, {}, PATCHES) == "no -flto"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_search_of_real_runs_finds_flags_that_make_a_program_faster(tmp_path: Path) -> None:
    text = (STRANGERS / MATMUL.name).read_text(encoding="utf-8")
    (tmp_path / MATMUL.name).write_text(re.sub(r"  // (?:1 \.\.|one of).*", "  // fixed", text))
    (tmp_path / FLAGS).write_text("-O1\n")
    recipe = guess_recipe(tmp_path)
    source = program_in(tmp_path, recipe).decode()
    problem, runs = SearchProblem(b"task", source, "minimize", None, None, lambda _: None), list[PastRun]()
    for counter in range(8):
        made = propose(problem, runs, [], worker="w", counter=counter)
        for name, content in split_program(made.source).items():
            (tmp_path / name).write_text(content)
        subprocess.run(shlex.split(recipe.build), cwd=tmp_path, check=True)
        ended = subprocess.run([recipe.command], cwd=tmp_path, capture_output=True, text=True, check=True)
        runs.append(run_of(made, counter, read_metric(ended.stdout, "seconds").value))

    best = best_run(problem, runs)
    assert best is not None
    assert best.genome["-O"] != 1 or True in best.genome.values()
