"""The researcher as a Python object, with a real daemon and a task whose runs take milliseconds."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.ask.agent import AsyncResearchAgent, Best, ResearchAgent
from autoresearch.errors import DaemonNotRunning, UsageError
from autoresearch.task.folders import pin_baseline
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
    with pytest.raises(UsageError, match="no changed program"):
        agent.run_experiment()

    agent.modify_train_script(agent.propose_hypothesis(changes={"LR": 0.9}), best.source)
    baseline = agent.run_experiment()
    assert (baseline.status, baseline.parent, baseline.gain_reported) == ("ok", None, None)

    best = agent.read_best_result()
    assert best.run == baseline.run
    hypothesis = agent.propose_hypothesis(best)
    assert hypothesis.changes == {"LR": 0.99}
    assert "LR = 0.99 " in agent.modify_train_script(hypothesis)
    result = agent.run_experiment()
    assert result.parent == baseline.run
    assert result.gain_reported == pytest.approx((0.9 - 1.1) ** 2 - (0.99 - 1.1) ** 2)
    assert result.is_better
    assert agent.publish_results(result) == result
    assert agent.read_best_result().parameters["LR"] == 0.99
    assert agent.verify_identity().attested is False


@pytest.mark.slow
def test_the_script_of_the_page_runs_as_it_is_printed(daemon: Daemon, toy: Path) -> None:
    _, _, rest = PAGE.read_text().partition("```python\n")
    script = rest.partition("```")[0].replace("my-folder", str(toy))
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    first, second, third = ran.stdout.splitlines()
    assert first == "None {'LR': 0.9, 'Y': 0.1}"
    assert second.startswith("0.2621 not better ")
    assert "attest" in third


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
    best = Best(run="", state="baseline", parameters={"Y": 0.1}, source="Y = 0.1\n")
    with pytest.raises(UsageError, match="no constant DEPTH"):
        agent.modify_train_script(agent.propose_hypothesis(best, {"DEPTH": 3}))
    with pytest.raises(UsageError, match="learning rate") as refused:
        agent.propose_hypothesis(best)
    assert "it has Y" in refused.value.hint
