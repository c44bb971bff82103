"""A training run of one learner and several actors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, NotFound, ServiceRefused, UsageError
from autoresearch.project.child.actors import MOST_WAITING, Transitions
from autoresearch.project.child.messages import RunFigures
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.model import load_project
from autoresearch.project.runs.fleet import train_with_actors
from autoresearch.project.runs.running import Choices, check_project
from tests.project.making import bench, now_ms, train


def team(folder: Path) -> Path:
    """A project whose trainer learns from a dataset."""
    project = make_project(folder)
    for kind, name in (("policy", "q_table"), ("trainer", "q_learning"), ("dataset", "replay")):
        project = install(project, find_offer(kind, name, folder), default=True)
    return folder


@pytest.mark.slow
def test_actors_play_and_the_learner_learns(tmp_path: Path) -> None:
    figures: list[RunFigures] = []
    team(tmp_path)
    run = train_with_actors(Choices(tmp_path), 200, 2, now_ms=now_ms, on_figures=figures.append)
    assert run.data.status == "ok"
    assert run.data.metrics["episodes"] == 200
    assert run.data.metrics["actors"] == 2
    assert run.data.metrics["updates"] > 1
    assert run.data.totals.training_episodes == 200
    assert run.data.curve[0] < run.data.curve[-1]  # rewards rise
    assert {"environment.corridor", "policy.q_table", "trainer.q_learning", "dataset.replay"} <= set(
        run.data.components
    )
    assert bench(tmp_path).data.metrics["mean_reward"] == -9
    further = train_with_actors(Choices(tmp_path, ["trainer.epsilon=0.05"]), 20, 1, now_ms=now_ms)
    assert further.data.totals.training_episodes == 220
    assert further.data.metrics["mean_reward"] > -14  # it went on from what was learned
    assert figures == sorted(figures, key=lambda each: each.episodes)


@pytest.mark.slow
def test_the_shipped_trainer_also_learns_without_actors(tmp_path: Path) -> None:
    team(tmp_path)
    assert train(tmp_path, 150).data.curve[-1] > -15
    assert bench(tmp_path).data.metrics["mean_reward"] == -9


def test_a_project_without_a_dataset_is_told(tmp_path: Path) -> None:
    make_project(tmp_path)
    with pytest.raises(NotFound, match="no trainer"):
        train_with_actors(Choices(tmp_path), 10, 1, now_ms=now_ms)
    install(load_project(tmp_path), find_offer("trainer", "q_learning", tmp_path), default=True)
    with pytest.raises(NotFound, match="no dataset"):
        train_with_actors(Choices(tmp_path), 10, 1, now_ms=now_ms)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("environment", "def step(self, action):\n        raise ValueError('hot')", "line 6: ValueError: hot"),
        ("trainer", "def learn(self, policy):\n        import os; os._exit(3)", "the project's process ended"),
        ("dataset", "def add(self, *row, done):\n        return 1 // 0", "ZeroDivisionError"),
    ],
)
def test_a_process_that_fails_ends_all_of_them(tmp_path: Path, file: str, text: str, message: str) -> None:
    team(tmp_path)
    names = {"environment": "corridor", "trainer": "q_learning", "dataset": "replay"}
    classes = {"environment": "Corridor", "trainer": "QLearning", "dataset": "Replay"}
    folder = tmp_path / ".autoresearch/components"
    (shipped,) = folder.rglob(f"{names[file]}.py")
    cls = classes[file]
    shutil.copy(shipped, tmp_path)
    (tmp_path / "broken.py").write_text(
        f"import {names[file]} as shipped\n\n\nclass Broken(shipped.{cls}):\n    {text}\n"
    )
    offer = find_offer(file, str(tmp_path / "broken.py"), tmp_path)
    install(load_project(tmp_path), offer, default=True)
    assert all(not each.error for each in check_project(tmp_path))
    with pytest.raises(AutoresearchError, match=message):
        train_with_actors(Choices(tmp_path), 50, 2, now_ms=now_ms)
    assert not list((tmp_path / ".autoresearch/runs").glob("*"))


def test_transitions_wait_for_the_learner_up_to_a_limit() -> None:
    row = dict.fromkeys(("observations", "actions", "rewards", "next_observations", "masks"), 1.0)
    store = Transitions()
    store.batch_insert([row] * (MOST_WAITING + 5))  # one update may be larger than the limit
    with pytest.raises(ServiceRefused, match="the learner is behind"):
        store.insert(row)
    with pytest.raises(UsageError, match="lacks masks"):
        store.insert({name: each for name, each in row.items() if name != "masks"})
    assert store.latest_data_id() == MOST_WAITING + 4
    assert len(store.get_latest_data(MOST_WAITING)) == 4
    assert len(store.take()) == MOST_WAITING + 5
    store.insert(row)
    assert (len(store), store.latest_data_id()) == (1, MOST_WAITING + 5)
