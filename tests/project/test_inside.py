"""``inside train``: a project of flat files is trained for its budget and leaves what it learned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.project.learned import unpack_learned
from tests.project.making import SHIPPED, learner, train

AGENT = """\
[Agent]
class_name = agent:SimpleAgent
path = .
[Environment.mine]
class_name = gone:Gone
path = elsewhere
[Policy.q_table]
class_name = q_table:QTable
path = .
[Trainer.sarsa]
class_name = sarsa:Sarsa
path = .
epsilon = 0.1
"""
ENVIRONMENT = (
    "[environment.corridor]\nclass_name = corridor:Corridor\npath = .\nlength = 6\n[benchmark]\nepisodes = 50\n"
)


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """A task's files beside a program's."""
    learner(tmp_path / "project")
    folder = tmp_path / "flat"
    folder.mkdir()
    shutil.copy(tmp_path / "project/agent.py", folder)
    for name in ("q_table.py", "sarsa.py", "corridor.py"):
        shutil.copy(SHIPPED / name, folder)
    (folder / "agent.ini").write_text(AGENT)
    (folder / "environment.ini").write_text(ENVIRONMENT)
    return folder


def inside(
    folder: Path, *words: str, budget: str = "20", seed: int = 3, **variables: str
) -> tuple[int, str, list[dict[str, object]]]:
    """Status, what it printed, the events of the result channel."""
    read, write = os.pipe()
    environment = {
        "PYTHONPATH": str(SHIPPED.parents[2]),
        "PATH": os.environ["PATH"],
        "AUTORESEARCH_RESULT_FD": str(write),
        "AUTORESEARCH_BUDGET": budget,
        "AUTORESEARCH_SEED": str(seed),
        **variables,
    }
    command = [sys.executable, "-P", "-m", "autoresearch.project.inside", *(words or ("train",))]
    done = subprocess.run(
        command, cwd=folder, env=environment, pass_fds=(write,), capture_output=True, text=True, check=False
    )
    os.close(write)
    with os.fdopen(read) as channel:
        return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in channel]


@pytest.mark.slow
def test_it_trains_in_the_environment_of_the_task_and_leaves_what_it_learned(flat: Path) -> None:
    status, output, events = inside(flat, budget="200")
    assert (status, output) == (0, "")
    result = events[-1]
    assert result["event"] == "result"
    assert result["metrics"]["episodes"] == 200  # type: ignore[index]
    assert len(result["curve"]) == 64  # type: ignore[arg-type]
    assert max(result["curve"]) >= -8  # type: ignore[type-var]  # the shortest way has five steps
    unpack_learned(flat / "learned.zip", flat / "out")
    assert sorted(path.name for path in (flat / "out").iterdir()) == [
        "policy.q_table.json",
        "policy.q_table.safetensors",
    ]


@pytest.mark.slow
def test_the_same_seed_leaves_the_same_bytes_and_begin_zip_goes_on(flat: Path) -> None:
    left = []
    for seed in (3, 3, 4):
        assert inside(flat, seed=seed)[0] == 0
        left.append((flat / "learned.zip").read_bytes())
    assert left[0] == left[1] != left[2]
    (flat / "begin.zip").write_bytes(left[0])
    status, _, events = inside(flat)
    assert status == 0
    assert (flat / "learned.zip").read_bytes() != left[0]
    inside(flat, budget="1000", seed=1)
    (flat / "learned.zip").replace(flat / "begin.zip")
    status, _, [*_, after] = inside(flat, budget="5")
    assert after["metrics"]["mean_reward"] > events[-1]["metrics"]["mean_reward"]  # type: ignore[index]


@pytest.mark.slow
def test_it_gives_what_the_project_itself_learns(flat: Path, tmp_path: Path) -> None:
    (flat / "environment.ini").write_text(ENVIRONMENT.replace("length = 6\n", ""))
    assert inside(flat, seed=0)[0] == 0
    run = train(tmp_path / "project", 20)
    unpack_learned(flat / "learned.zip", tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (run.folder / "data" / path.name).read_bytes()


@pytest.mark.slow
def test_a_part_of_the_budget_is_a_part_of_the_episodes(flat: Path) -> None:
    _, _, events = inside(flat, AUTORESEARCH_STOP_AT="0.1")
    assert events[-1]["metrics"]["episodes"] == 2  # type: ignore[index]


@pytest.mark.slow
def test_a_component_named_like_a_module_takes_the_place_of_none(flat: Path) -> None:
    (flat / "statistics.py").write_text("raise SystemExit('not me')")
    (flat / "torch.py").write_text("raise SystemExit('nor me')")
    assert inside(flat)[0] == 0


BROKEN = "class Sarsa:\n    def __init__(self, epsilon):\n        pass\n    def train(self, policy):\n        1 / 0\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "message", "status"),
    [
        ("agent.ini", "", "this project has no policy", 4),
        ("agent.ini", AGENT.replace("epsilon", "epsylon"), "agent.ini, line 13: trainer.sarsa has no parameter", 2),
        ("environment.ini", "[benchmark]\nepisodes = 3\n", "this project has no environment", 4),
        ("sarsa.py", BROKEN, "sarsa.py, line 5: ZeroDivisionError", 1),
        ("begin.zip", "PK", "begin.zip holds no learned state", 1),
    ],
)
def test_what_is_wrong_is_the_last_line_and_nothing_is_left(
    flat: Path, name: str, content: str, message: str, status: int
) -> None:
    (flat / name).write_text(content)
    code, text, events = inside(flat)
    assert message in text.splitlines()[-1]
    assert (code, events) == (status, [])
    assert not (flat / "learned.zip").exists()


@pytest.mark.slow
def test_words_and_variables_are_checked(flat: Path) -> None:
    for words, budget, message in (
        (("dance",), "20", "give one of the words"),
        (("train",), "many", "AUTORESEARCH_BUDGET must be a number"),
        (("train",), "-1", "AUTORESEARCH_BUDGET must be a number"),
    ):
        status, text, _ = inside(flat, *words, budget=budget)
        assert (status, message in text, "Traceback" in text) == (2, True, False)
