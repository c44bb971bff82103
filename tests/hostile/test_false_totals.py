"""Totals of training that a run did not do: of another policy, or made up. ``publish`` refuses them."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from autoresearch.errors import Refused
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install
from autoresearch.project.model import load_project
from autoresearch.project.runs.kept import DATA, LocalRun, Totals, keep_run, new_run_folder
from autoresearch.project.runs.records import prepare_run
from tests.project.making import bench, learner, train


def with_totals(folder: Path, run: LocalRun, totals: Totals, *, policy: str) -> LocalRun:
    """The same run as another that states these totals, its hash in order."""
    project = load_project(folder)
    with new_run_folder(project) as place:
        shutil.copytree(run.folder / DATA, place / DATA, dirs_exist_ok=True)
        data = msgspec.structs.replace(run.data, totals=totals, policy=policy)
        return keep_run(project, place, data, (run.folder / "parameters.yaml").read_text())


@pytest.mark.slow
def test_what_one_policy_trained_is_nothing_that_another_learned(tmp_path: Path) -> None:
    first = train(learner(tmp_path), 3)
    install(load_project(tmp_path), find_offer("policy", "random", tmp_path), default=True)
    run = bench(tmp_path, 2)
    assert run.data.policy == "policy.random"
    assert run.data.totals == Totals(benchmark_episodes=2, benchmark_steps=int(run.data.metrics["steps"]))
    assert prepare_run(load_project(tmp_path), run).budget == 0
    install(load_project(tmp_path), find_offer("policy", "q_table", tmp_path), default=True)
    assert train(tmp_path, 4).data.totals.training_episodes == 7
    assert first.data.totals.training_episodes == 3


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["policy.random", ""], ids=["this version", "an earlier version"])
def test_a_policy_that_never_trained_is_not_published_as_trained(tmp_path: Path, policy: str) -> None:
    trained = train(learner(tmp_path), 3)
    install(load_project(tmp_path), find_offer("policy", "random", tmp_path), default=True)
    false = with_totals(tmp_path, bench(tmp_path, 2), trained.data.totals.plus("bench", {}), policy=policy)
    with pytest.raises(Refused, match=r"states 3 training episodes .* the runs of random before it add up to 0"):
        prepare_run(load_project(tmp_path), false)
    assert prepare_run(load_project(tmp_path), bench(tmp_path, 2)).budget == 0


@pytest.mark.slow
@pytest.mark.parametrize("more", [Totals(training_episodes=60), Totals(training_steps=1)])
def test_totals_that_are_made_up_are_not_published(tmp_path: Path, more: Totals) -> None:
    run = train(learner(tmp_path), 3)
    stated = msgspec.to_builtins(run.data.totals)
    totals = Totals(**{name: stated[name] + each for name, each in msgspec.to_builtins(more).items()})
    with pytest.raises(Refused, match="add up to 3"):
        prepare_run(load_project(tmp_path), with_totals(tmp_path, run, totals, policy="policy.q_table"))
