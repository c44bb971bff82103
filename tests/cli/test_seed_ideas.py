"""What is said of an edit that only changes a seed, and of one that the noise could make, by the real commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.face.columns.column import short
from autoresearch.task.folder_state import started_from
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.test_ideas import ran
from tests.cli.test_json import strictly

FIXED = {
    "constant": ("import random\nSEED = 1337\nrandom.seed(SEED)\n", "1337", "1340"),
    "argparse": (
        "import argparse, random\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--seed", type=int, default=1)\nrandom.seed(parser.parse_args([]).seed)\n',
        "default=1",
        "default=4",
    ),
    "call": ("import random\nrandom.seed(0)\n", "seed(0)", "seed(9)"),
}
PRINTS = 'LR = 0.1\nprint("val_loss:", 0.45 + (LR - 0.3) ** 2 + random.gauss(0, 0.02))\n'


def new_task(process: Process, folder: Path, source: str, *words: str) -> str:
    folder.mkdir()
    (folder / "train.py").write_text(source)
    made = process("task", "new", str(folder), *words)
    assert made.returncode == 0, made.stderr
    return made.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", FIXED)
def test_another_seed_is_a_repetition_and_never_an_improvement(process: Process, tmp_path: Path, form: str) -> None:
    seed, before, after = FIXED[form]
    folder = tmp_path / "mine"
    result = new_task(process, folder, seed + PRINTS)
    metric = load_task(folder).metric
    assert "a rough guess" in result
    assert metric.noise
    assert metric.noise_runs == 2
    first, stored = ran(process, folder), started_from(folder)
    (folder / "train.py").write_text((seed + PRINTS).replace(before, after))
    again = ran(process, folder)
    assert again.outcome
    assert again.outcome.verdict == "repetition"
    assert f"only its seed differs from {short(first.record.id)}: a repetition" in again.outcome.sentence
    assert (again.outcome.seeds, started_from(folder)) == (2, stored)
    listed = process("top").stdout
    assert [line[:1] for line in listed.splitlines() if line[:1].isdigit()] == ["1"], "one program with two seeds"
    refused = process("run", str(folder))
    assert "this program was run with this seed before" in refused.stderr
    # What is more than a seed is an idea, whatever its seed.
    (folder / "train.py").write_text((seed + PRINTS).replace("LR = 0.1", "LR = 0.2"))
    edit = ran(process, folder)
    assert edit.outcome
    assert edit.outcome.verdict != "repetition"


@pytest.mark.slow
def test_a_replicate_of_a_program_that_fixes_its_seed_has_another_one(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    new_task(process, folder, FIXED["constant"][0] + PRINTS)
    first, second = ran(process, folder), ran(process, folder, "--replicate", "1", "--seeds", "2")
    assert first.run
    assert second.run
    assert second.run.run.replicate == 2
    assert second.run.run.value != first.run.run.value
    assert second.run.run.seedless == first.run.run.seedless
    assert second.outcome
    assert (second.outcome.verdict, second.outcome.seeds) == ("baseline", 3)


@pytest.mark.slow
def test_all_seeds_of_an_experiment_are_waited_for_where_the_program_fixes_its_own(
    process: Process, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    new_task(process, folder, FIXED["constant"][0] + PRINTS)
    assert process("up").returncode == 0
    try:
        result = process("run", "vary", str(folder), "--set", "LR=0.2", "--seeds", "3", "--wait", "--json")
        assert result.returncode == 0, result.stderr
        answer = strictly(result.stdout, VaryAnswer)
        assert (answer.to_go, [variant.runs for variant in answer.variants]) == (0, [3])
    finally:
        assert process("down").returncode == 0


@pytest.mark.slow
def test_several_seeds_are_those_that_were_not_run_yet(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    new_task(process, folder, FIXED["constant"][0] + PRINTS)
    ran(process, folder)
    ran(process, folder, "--replicate", "2")
    result = process("run", str(folder), "--seeds", "3")
    assert result.returncode == 0, result.stderr
    assert "3 seeds: mean 0.4" in result.stderr
    runs = [strictly(line, ShowAnswer).run for line in process("run", "export", "--json").stdout.splitlines()]
    assert sorted(view.run.replicate for view in runs if view) == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_from_two_runs_nothing_is_sure_that_lies_within_their_interval(process: Process, tmp_path: Path) -> None:
    """A program with a noise of 0.2, and an edit that does nothing."""
    source = (
        "import os, random\nrandom.seed(int(os.environ['AUTORESEARCH_SEED']))\n"
        'UNUSED = 1\nprint("val_loss:", 1 + random.gauss(0, 0.2))\n'
    )
    folder = tmp_path / "mine"
    new_task(process, folder, source)
    ran(process, folder)
    (folder / "train.py").write_text(source.replace("UNUSED = 1", "UNUSED = 2"))
    result = process("run", str(folder))
    assert "not sure: run it with 3 more seeds" in result.stderr
    assert "within the noise" not in result.stderr
    command = f"autoresearch run {shlex.quote(str(folder))} --replicate 1 --seeds 3"
    assert f"→ {command}" in result.stderr
    assert process(*shlex.split(command)[1:]).returncode == 0
    answer = strictly(process("show", "@mine", "--json").stdout, ShowAnswer)
    assert answer.run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "fixed", "noise", "message"),
    [
        ("import random\nrandom.seed(len('abc'))\n", "", None, "train.py fixes the seed: the noise is unknown"),
        ("import random\nimport data\nLR = 0.1\n", "import random\nrandom.seed(3)\n", None, "data.py fixes the seed"),
        ("import random\nrandom.gauss = lambda mean, noise: mean\n", "", 0.0, "metric.noise = 0"),
        ("import random\nSEED = 3\nrandom.gauss = lambda mean, noise: mean\n", "", 0.0, "metric.noise = 0"),
    ],
)
def test_equal_values_mean_no_noise_only_where_no_seed_is_fixed(
    process: Process, tmp_path: Path, source: str, fixed: str, noise: float | None, message: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if fixed:
        (folder / "data.py").write_text(fixed)
    (folder / "train.py").write_text(source + PRINTS)
    edit = ["--edit", "train.py"] if fixed else []
    made = process("task", "new", str(folder), *edit)
    assert message in made.stderr
    assert load_task(folder).metric.noise == noise


@pytest.mark.slow
def test_an_assumed_noise_is_said_to_be_assumed(process: Process, tmp_path: Path) -> None:
    """A program that gives the same value each time, in a task that states no noise."""
    folder = tmp_path / "mine"
    source = 'LR = 0.1\nprint("val_loss:", 0.45 + (LR - 0.3) ** 2)\n'
    new_task(process, folder, source, "--once")
    ran(process, folder)
    (folder / "train.py").write_text(source.replace("0.1", "0.2"))
    result = process("run", str(folder))
    assert "keep: better than its parent" in result.stderr
    assert "how far a seed moves it is unknown" in result.stderr
    history = (folder / "history.md").read_text()
    assert "Noise: unknown (the search assumes about 0.00" in history
    assert "standard deviation" not in history
    assert "d=-0.03  reported" in history
    assert "(unknown so far)" in (folder / "AGENTS.md").read_text()
