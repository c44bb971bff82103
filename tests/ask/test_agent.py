"""The researcher as a Python object, with a real daemon and a task whose runs take milliseconds."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import git
import pytest

import autoresearch
from autoresearch.ask.agent import AsyncResearchAgent, BestProgram, ResearchAgent
from autoresearch.errors import DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.record.record import Network
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import default_task, load_task
from autoresearch.trust.manifest import NetworkManifest, Trust
from autoresearch.trust.manifest_file import save_manifest
from tests.daemon.daemons import Daemon
from tests.daemon.toy import TRAIN, write_toy_task

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "research-from-python.md"
RATED = TRAIN.replace("X = 0.9", "LR = 0.9").replace("(X - 0.3)", "(LR - 1.1)")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = write_toy_task(tmp_path / "toy", train=RATED)
    pin_baseline(folder)
    return folder


@pytest.fixture
def daemon(tmp_path: Path, toy: Path) -> Iterator[Daemon]:
    running = Daemon(tmp_path / "home", {"AUTORESEARCH_NETWORK__ENABLED": "false"}).start()
    yield running
    running.stop()


def test_without_a_daemon_the_agent_says_what_to_do(tmp_path: Path, toy: Path) -> None:
    agent = ResearchAgent(toy, home=tmp_path / "nobody")
    with pytest.raises(DaemonNotRunning) as refused:
        agent.connect()
    assert refused.value.hint == "autoresearch up"


@pytest.mark.slow
def test_each_step_builds_on_the_one_before(daemon: Daemon, toy: Path) -> None:
    agent = ResearchAgent(toy, home=daemon.home)
    assert agent.connect().pid
    best = agent.read_best_result()
    assert (best.run, best.state, best.reported) == ("", "baseline", None)
    assert best.parameters == {"LR": 0.9, "Y": 0.1}
    assert (best["learning_rate"], best["lr"], best["Y"]) == (0.9, 0.9, 0.1)
    with pytest.raises(UsageError, match="no setting 'depth'"):
        best["depth"]
    with pytest.raises(UsageError, match="no changed program"):
        agent.run_experiment()

    assert agent.clone_repository() == agent.folder == toy
    assert agent.connect_to_ensue().network == agent.connect().network
    agent.modify_train_script(agent.propose_hypothesis(changes={"LR": 0.9}), best.source)
    baseline = agent.run_experiment()
    assert (baseline.status, baseline.parent, baseline.gain_reported) == ("ok", None, None)

    best = agent.read_best_result()
    assert best.run == baseline.run
    hypothesis = agent.propose_hypothesis(best)
    assert hypothesis.changes == {"LR": 0.99}
    assert "LR = 0.99 " in agent.modify_train_script(hypothesis)
    assert "LR = 0.99 " in (toy / "train.py").read_text()
    another = ResearchAgent(toy, home=daemon.home)  # as after the end of the first script
    result = another.run_experiment()
    assert result.parent == baseline.run
    assert another.modify_train_script({"learning_rate": 0.99}) == (toy / "train.py").read_text()
    assert result.gain_reported == pytest.approx((0.9 - 1.1) ** 2 - (0.99 - 1.1) ** 2)
    assert result.is_better
    with pytest.raises(Refused, match=f"was run with this seed before: {result.run[7:15]}"):
        agent.run_experiment()
    assert len(daemon.get("/v1/runs").json()["runs"]) == 2
    for _ in range(2):
        assert agent.publish_results(result, hypothesis) == result
    [note] = daemon.get("/v1/notes").json()["notes"]
    assert note["text"] == "LR 0.9 → 0.99: better than its parent, by 0.0279"
    assert note["evidence"] == [result.run]
    assert agent.read_best_result().parameters["LR"] == 0.99
    assert agent.verify_identity().attested is False

    # What the folder began as is a run on the task as it was: on another one nothing is an ancestor.
    settings = toy / "task.toml"
    settings.write_text(settings.read_text().replace('"toy"', '"other"'))
    other = ResearchAgent(toy, home=daemon.home).run_experiment()
    assert (other.status, other.parent) == ("ok", None)


def script(number: int, daemon: Daemon, **replaced: str) -> list[str]:
    """Run a script of the page as it is printed, but for its addresses; the lines that it prints."""
    text = PAGE.read_text().split("```python\n")[number].partition("```")[0]
    for old, new in replaced.items():
        assert old.replace("_", ".") in text
        text = text.replace(old.replace("_", "."), new)
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False, cwd=daemon.home
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_the_script_of_the_page_runs_as_it_is_printed(daemon: Daemon, toy: Path) -> None:
    first, second, third = script(1, daemon, **{"my-folder": str(toy)})
    assert first == "None {'LR': 0.9, 'Y': 0.1}"
    assert second.startswith("0.2621 not better ")
    assert "attest" in third


@pytest.mark.slow
def test_a_script_begins_with_a_repository_and_a_network(daemon: Daemon, toy: Path, tmp_path: Path) -> None:
    (toy / ".gitignore").write_text(".autoresearch\n")
    with git.Repo.init(toy) as repository:
        repository.git.add("--all")
        repository.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a task"])
    manifest = NetworkManifest(Network(name="tea", nonce=bytes(16)), Trust())
    save_manifest(tmp_path / "tea.toml", manifest)
    addresses = {"https://example_org/research_git": str(toy), "tea_toml": str(tmp_path / "tea.toml")}
    [standing] = script(2, daemon, **addresses)
    assert "attest" in standing
    clone = daemon.home / "toy"
    assert "LR = 0.99 " in (clone / "train.py").read_text()
    assert daemon.status().network == "tea"
    runs = daemon.get("/v1/runs").json()["runs"]  # beside it the baseline, if that ran meanwhile
    assert [run["headline"] for run in runs if run["headline"] != "The baseline"] == ["LR 0.9 → 0.99"]
    [note] = daemon.get("/v1/notes").json()["notes"]
    assert note["text"].startswith("LR 0.9 → 0.99: ")

    agent = ResearchAgent(home=daemon.home)
    assert agent.clone_repository(str(toy), clone) == clone  # it is there already
    with pytest.raises(Refused, match="no clone of"):
        agent.clone_repository("https://example.org/other.git", clone)
    with pytest.raises(NotFound, match=r"can't be cloned: fatal: repository .* does not exist"):
        agent.clone_repository(str(tmp_path / "nowhere"), tmp_path / "new")
    with pytest.raises(NotFound, match="is not a file, an invite or an address"):
        agent.connect_to_ensue("https://example.org")
    agent.connect_to_ensue("commons")
    assert daemon.status().network == "commons"


def test_an_edit_by_hand_is_put_aside(tmp_path: Path, toy: Path) -> None:
    agent = ResearchAgent(toy, home=tmp_path / "nobody")
    mine = RATED.replace("0.9", "0.5")
    (toy / "train.py").write_text(mine)
    best = BestProgram(run="", state="baseline", parameters={"Y": 0.1}, source=RATED)
    for new in (0.2, 0.3):
        agent.modify_train_script(agent.propose_hypothesis(best, {"Y": new}))
    assert [path.read_text() for path in (toy / ".autoresearch" / "kept").iterdir()] == [mine]


def test_without_a_task_the_agent_has_a_folder_of_its_own(tmp_path: Path) -> None:
    home = tmp_path / "nobody"
    folder = ResearchAgent(home=home).folder
    assert folder.is_relative_to(home)
    assert load_task(folder).digest == default_task().digest


def test_type_checkers_see_the_types() -> None:
    assert (Path(autoresearch.__file__).parent / "py.typed").is_file()
    assert inspect.signature(AsyncResearchAgent.read_best_result).return_annotation == "BestProgram"


@pytest.mark.slow
def test_the_same_steps_in_an_event_loop(daemon: Daemon, toy: Path) -> None:
    async def research() -> str:
        agent = AsyncResearchAgent(toy, home=daemon.home)
        await agent.connect()
        best = await agent.read_best_result()
        hypothesis = await agent.propose_hypothesis(best, {"Y": 0.5}, "nearer to what is searched")
        await agent.modify_train_script(hypothesis)
        return (await agent.run_experiment()).status

    assert asyncio.run(research()) == "ok"


def test_a_number_that_the_program_does_not_have_is_refused(tmp_path: Path, toy: Path) -> None:
    agent = ResearchAgent(toy, home=tmp_path / "nobody")
    best = BestProgram(run="", state="baseline", parameters={"Y": 0.1}, source="Y = 0.1\n")
    with pytest.raises(UsageError, match="no setting 'DEPTH'"):
        agent.modify_train_script(agent.propose_hypothesis(best, {"DEPTH": 3}))
    with pytest.raises(UsageError, match="learning rate") as refused:
        agent.propose_hypothesis(best)
    assert "it has Y" in refused.value.hint


def test_a_task_folder_that_is_a_link_out_of_the_clone_is_none(tmp_path: Path, toy: Path) -> None:
    for name in ("experiments", "task.toml"):
        with git.Repo.init(tmp_path / "repository") as repository:
            (tmp_path / "repository" / name).symlink_to(toy if name == "experiments" else toy / name)
            repository.git.add("--all")
            repository.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a task"])
        with pytest.raises(DaemonNotRunning):  # which would make its program a task
            ResearchAgent(home=tmp_path / "home").clone_repository(str(tmp_path / "repository"), tmp_path / name)
