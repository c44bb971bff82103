"""Projects on the command line: the example session of the component registry, errors, interruption, JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.agent.models import ProjectAnswer, ProjectFigures, ProjectRunAnswer, SweepAnswer

from tests.cli.conftest import Cli
from tests.terminals import on_terminal


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The commands run in an empty folder."""
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def ok(cli: Cli, words: str) -> str:
    result = cli(*words.split())
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(cli: Cli, words: str) -> ProjectRunAnswer:
    return msgspec.json.decode(ok(cli, f"{words} --json").splitlines()[-1], type=ProjectRunAnswer)


def listed(cli: Cli, words: str = "") -> ProjectAnswer:
    return msgspec.json.decode(ok(cli, f"list --json {words}"), type=ProjectAnswer)


def defaults(cli: Cli) -> dict[str, str]:
    return {each.type: each.name for each in listed(cli).components if each.is_default}


@pytest.mark.slow
def test_the_example_session_of_the_component_registry(cli: Cli) -> None:
    ok(cli, "init")
    random = answer(cli, "run agent.ini").run
    ok(cli, "install environment corridor")
    ok(cli, "install policy q_table")
    ok(cli, "install trainer sarsa")
    trained = answer(cli, "train agent.ini 300").run
    measured = answer(cli, "run agent.ini").run
    assert measured.metrics["mean_reward"] == -9 > random.metrics["mean_reward"]
    assert (trained.parent, measured.parent) == (random.id, trained.id)
    result = cli("install", "policy", "dqn")
    assert "the default policy stays q_table" in result.stderr
    assert "→ autoresearch use policy dqn" in result.stderr
    ok(cli, "use policy dqn")
    ok(cli, "install trainer dqn_sgd --default")
    again = answer(cli, "train -f agent.ini -n 2").run
    assert {"policy.dqn", "trainer.dqn_sgd"} <= set(again.components)
    assert "policy.q_table" not in again.components
    assert again.totals["training_episodes"] == 2, "what another policy did is nothing that this one learned"
    runs = listed(cli, "--runs")
    assert [run.mode for run in runs.runs] == ["bench", "train", "bench", "train"]
    assert runs.head == again.id
    ok(cli, "use policy q_table")
    assert answer(cli, "run").run.metrics["mean_reward"] == -9


@pytest.mark.slow
def test_actors_train_together_and_ctrl_c_keeps_what_was_learned(cli: Cli) -> None:
    ok(cli, "init")
    ok(cli, "install policy q_table")
    for words in ("policy q_table", "trainer q_learning", "dataset replay"):
        ok(cli, f"install {words} --default")
    assert answer(cli, "train 200 --actors 2").run.metrics["actors"] == 2
    both = cli("train", "--actors", "2", "--sweep", "trainer.epsilon=0.1,0.2")
    assert (both.exit_code, "can't be combined" in both.stderr) == (2, True)
    process = subprocess.Popen(
        [sys.executable, "-m", "autoresearch_cli", "train", "100000000", "--actors", "2", "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    msgspec.json.decode(process.stdout.readline(), type=ProjectFigures)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=250)
    assert process.returncode == 130
    assert "stopped: what was learned so far is kept as run" in err
    last = json.loads(out.splitlines()[-1])
    assert (last["run"]["status"], listed(cli).head) == ("stopped", last["run"]["id"])
    assert answer(cli, "run -n 3").run.metrics["mean_reward"] == -9


@pytest.mark.slow
def test_2048_runs_without_an_edit_after_it_was_installed(cli: Cli) -> None:
    ok(cli, "init")
    ok(cli, "install environment 2048")
    assert answer(cli, "run -n 2").run.metrics["min_reward"] > 0
    ok(cli, "install policy q_table")
    ok(cli, "install trainer sarsa")
    assert answer(cli, "train 3").run.metrics["episodes"] == 3


def test_defaults_are_chosen_kept_and_given_back(cli: Cli) -> None:
    ok(cli, "init walker")
    os.chdir("walker")
    assert defaults(cli) == {"agent": "agent", "environment": "corridor", "policy": "random"}
    ok(cli, "install policy q_table --no-default")
    assert defaults(cli)["policy"] == "random"
    ok(cli, "install policy q_table --default")
    assert defaults(cli)["policy"] == "q_table"
    before = Path("agent.ini").read_text()
    ok(cli, "install trainer sarsa")
    ok(cli, "uninstall trainer sarsa")
    assert Path("agent.ini").read_text() == before
    assert not Path(".autoresearch/components/trainer/sarsa").exists()
    ok(cli, "uninstall policy q_table")
    assert defaults(cli)["policy"] == "random"


@pytest.mark.parametrize(("typed", "chosen"), [("n\n", "q_table"), ("\n", "dqn")])
def test_a_terminal_asks_which_component_is_the_default(cli: Cli, typed: str, chosen: str) -> None:
    ok(cli, "init")
    ok(cli, "install policy q_table")
    words = [sys.executable, "-m", "autoresearch_cli", "install", "policy", "dqn"]
    assert "Make dqn the default policy instead of q_table?" in on_terminal(words, typed=typed)
    assert defaults(cli)["policy"] == chosen


def test_a_terminal_shows_the_figures_of_a_run_in_its_width(cli: Cli) -> None:
    ok(cli, "init")
    for words in ("run", "list", "list --runs"):
        screen = on_terminal(
            [sys.executable, "-m", "autoresearch_cli", *words.split()], COLUMNS="60", NO_COLOR="1", PYTHONUTF8="1"
        )
        lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen))
        assert "Traceback" not in screen
        assert max(len(line) for line in lines if " " in line) <= 60, screen


@pytest.mark.slow
def test_components_whose_files_are_missing_are_copied_anew(cli: Cli) -> None:
    ok(cli, "init")
    ok(cli, "install environment gym:CartPole-v1 --name pole")
    ini = Path("agent.ini").read_text()
    shutil.rmtree(".autoresearch")
    assert cli("run").exit_code == 4
    assert "installed environment.corridor, environment.pole, policy.random" in cli("install").stderr
    assert Path("agent.ini").read_text() == ini
    ok(cli, "run")
    assert "nothing is missing" in cli("install").stderr


def test_options_of_a_task_folder_are_refused_for_a_project_and_the_other_way_round(cli: Cli, tmp_path: Path) -> None:
    ok(cli, "init")
    assert cli("run", "--hypothesis", "more").exit_code == 2
    (tmp_path / "task").mkdir()
    assert cli("run", str(tmp_path / "task"), "--set", "policy.x=1").exit_code == 2


@pytest.mark.slow
def test_a_component_of_ones_own_stays_where_it_is(cli: Cli) -> None:
    ok(cli, "init")
    Path("mine.py").write_text(
        "from autoresearch import Policy\nclass Helper:\n    pass\n"
        "class Right(Policy):\n    def __init__(self, action: int = 1):\n        self.action = action\n"
        "    def decide(self, observation):\n        return self.action\n"
    )
    ok(cli, "install policy ./mine.py")
    assert answer(cli, "run -n 1").run.metrics["mean_reward"] == -9
    assert answer(cli, "run -n 1 --set policy.action=0").run.metrics["mean_reward"] == -200
    warned = cli("install", "policy", "./mine.py", "--class", "Right", "--name", "q_table", "--no-default")
    assert "takes the place of the one that ships" in warned.stderr
    assert "is a component of your own" in cli("install", "policy", "q_table").stderr
    ok(cli, "uninstall policy right")
    assert Path("mine.py").exists()
    Path("own/sub").mkdir(parents=True)
    Path("mine.py").rename("own/sub/right.py")
    ok(cli, "install policy ./own --class sub.right:Right --default")
    made = answer(cli, "run -n 1").run
    assert made.metrics["mean_reward"] == -9
    ok(cli, "uninstall policy right")
    unpublished = cli("show", made.id[:6])
    assert (unpublished.exit_code, f"autoresearch publish {made.id}" in unpublished.stderr) == (4, True)
    unclear = cli("install", "policy", "./own", "--class", "sub.right:Absent", "--name", "absent")
    assert (unclear.exit_code, "has no class Absent" in unclear.stderr) == (4, True)
    ok(cli, "install policy ./own --class sub.right:Right --name gone")
    Path("own/sub/right.py").write_text("class Left: ...\n")
    broken = cli("list", "--check")
    assert broken.exit_code == 1
    assert "policy gone can't be loaded" in broken.stderr
    assert "has no class Right" in broken.stderr


@pytest.mark.slow
def test_a_sweep_keeps_the_best(cli: Cli) -> None:
    ok(cli, "init")
    ok(cli, "install policy q_table")
    ok(cli, "install trainer sarsa")
    first = answer(cli, "train 1").run
    whole = cli("train", "--sweep", "trainer.epsilon=[0.1,0.2]")
    assert (whole.exit_code, "not “[0.1,0.2]”" in whole.stderr) == (2, True)
    trained = cli("train", "1", "--set", "trainer.epsilon=0.2")
    assert "→ autoresearch run --set trainer.epsilon=0.2" in trained.stderr
    ok(cli, f"agent reset --to {first.id}")
    output = ok(cli, "train 150 --sweep trainer.learning_rate=0.0,0.3 --json").splitlines()
    rows = msgspec.json.decode(output[-1], type=SweepAnswer).rows
    assert [row.parameters["trainer.learning_rate"] for row in rows] == ["0.3", "0.0"]
    assert rows[0].mean_reward == -9
    by_name = {run.id: run for run in listed(cli, "--runs").runs}
    assert listed(cli).head == rows[0].bench
    assert {by_name[row.train].parent for row in rows} == {first.id}
    ok(cli, "agent reset")
    assert listed(cli).head == ""
    ok(cli, f"agent reset --to {first.id[:5]}")
    assert listed(cli).head == first.id


@pytest.mark.slow
def test_a_sweep_tries_components(cli: Cli) -> None:
    ok(cli, "init")
    ok(cli, "install policy q_table --no-default")
    ok(cli, "install trainer sarsa")
    swept = cli("train", "150", "--sweep", "policy=random,q_table", "--sweep", "trainer.epsilon=0.1", "--json")
    assert swept.exit_code == 0, swept.output
    (row,) = msgspec.json.decode(swept.stdout.splitlines()[-1], type=SweepAnswer).rows
    assert (row.parameters["policy"], row.mean_reward) == ("q_table", -9)
    assert "'RandomPolicy' object has no attribute" in swept.stderr, "it can't be trained, and is passed over"
    made = json.loads(ok(cli, "publish --json"))["run"]["run"]
    assert made["title"] == "q_table + sarsa, 150 training episodes"
    assert [each.is_default for each in listed(cli).components if each.name == "random"] == [True]
    assert answer(cli, "run -n 1 --set policy=q_table").run.metrics["mean_reward"] == -9
    for wrong, status in (("policy=absent", 4), ("robot=x", 2), ("=x", 2), ("policy=", 2)):
        assert cli("run", "--set", wrong).exit_code == status, wrong


@pytest.mark.parametrize(
    "names",
    [
        ("train.py", "prepare.py"),
        ("main.py",),
        ("study.ipynb",),
        ("src/model.py", "README.md"),
        ("bench.cpp",),
        ("run.sh",),
        ("pyproject.toml",),
    ],
)
def test_a_project_is_not_made_over_a_program(cli: Cli, tmp_path: Path, names: tuple[str, ...]) -> None:
    place = tmp_path / "mine"
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x = 1\n")
    before = sorted(place.rglob("*"))
    result = cli("init", str(place))
    assert (result.exit_code, names[0] in result.stderr, f"task new {place}" in result.stderr) == (6, True, True), (
        result.stderr
    )
    assert sorted(place.rglob("*")) == before
    assert cli("init", str(place), "--yes").exit_code == 0
    assert (place / "agent.ini").exists()


def test_notes_and_data_are_no_program(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    (place / "data").mkdir(parents=True)
    for name in ("README.md", "data/a.csv", ".gitignore", "other.txt"):
        (place / name).write_text("x")
    assert cli("init", str(place)).exit_code == 0


@pytest.mark.slow
def test_wrong_words_are_answered_with_a_sentence_and_a_remedy(cli: Cli) -> None:
    for words, status, message in (
        ("train", 4, "autoresearch init"),
        ("run agent.ini", 4, "there is no"),
        ("init", 0, "the project is in"),
        ("init", 6, "is there already"),
        ("train", 4, "this project has no trainer"),
        ("install policy q_tabel", 4, "did you mean q_table?"),
        ("use policy randon", 4, "did you mean random?"),
        ("use polcy random", 4, "did you mean policy?"),
        ("install policy sarsa", 4, "autoresearch install trainer sarsa"),
        ("install policy q_table==9.9", 4, "there is no policy"),
        ("install policy gym:CartPole-v1", 2, "Gymnasium has environments"),
        ("install policy ./absent.py", 4, "there is no file"),
        ("install Pol!cy x", 2, "is no type of component"),
        ("use policy dqn", 4, "autoresearch install policy dqn"),
        ("uninstall policy dqn", 4, "has no policy dqn"),
        ("run --from abc", 4, "has no run abc"),
        ("run --set policy=3", 4, "this project has no policy 3"),
        ("train --sweep trainer.x", 2, "names no values"),
        ("train 0", 2, "0 episodes train nothing"),
        ("install environment gym:NoSuchGame-v1", 4, "Gymnasium has no environment"),
    ):
        result = cli(*words.split())
        assert result.exit_code == status, (words, result.output)
        assert message in result.stderr, (words, result.stderr)
        assert "Traceback" not in result.output


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_learned_and_figures_are_lines_of_json(cli: Cli, place: Path) -> None:
    ok(cli, "init")
    ok(cli, "install policy q_table")
    ok(cli, "install trainer sarsa")
    process = subprocess.Popen(
        [sys.executable, "-m", "autoresearch_cli", "train", "agent.ini", "100000000", "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    first = msgspec.json.decode(process.stdout.readline(), type=ProjectFigures)
    assert 0 < first.episodes < first.asked_episodes
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=250)
    assert process.returncode == 130
    assert "stopped: what was learned so far is kept as run" in err
    last = json.loads(out.splitlines()[-1])
    assert last["run"]["status"] == "stopped"
    assert listed(cli).head == last["run"]["id"]
