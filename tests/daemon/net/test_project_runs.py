"""An agent is published, got elsewhere, run, trained on and published again; others confirm both, and boards agree."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.agent.models import GotAnswer, ProjectRunAnswer

from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.words import RunState
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.test_verification import VERIFY_SECONDS, answer_of, begin, friends, state_of
from tests.project.making import learner, train
from tests.warm import run_command

pytestmark = pytest.mark.slow


def typed(home: Path, folder: Path, *words: str) -> str:
    """What a command prints at a home, in a folder."""
    settings = {"AUTORESEARCH_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = run_command(*words, "--json", environment=os.environ | settings, folder=folder)
    assert ended.returncode == 0, (words, ended.stderr)
    return ended.stdout.splitlines()[-1] if words[0] in ("train", "run") else ended.stdout


def test_an_agent_travels_is_trained_on_and_both_are_confirmed(tmp_path: Path) -> None:
    homes = friends(tmp_path, 5)
    daemons = [Daemon(home) for home in homes]
    try:
        begin(daemons[:1], "")
        begin(daemons[1:], answer_of(daemons[0], "/v1/peers", PeersAnswer).addresses[0])
        mine = learner(tmp_path / "mine")
        train(mine, 200)
        first = msgspec.json.decode(typed(homes[0], mine, "publish"), type=ShowAnswer).run
        assert first is not None
        assert first.run.value == -9

        def board(daemon: Daemon) -> list[str]:
            with suppress(msgspec.ValidationError):  # the task is not there yet
                answer = answer_of(daemon, "/v1/top?task=corridor", TopAnswer)
                return [row.id for row in answer.programs] if isinstance(answer, TopAnswer) else []
            return []

        wait_for(lambda: all(board(daemon) == [first.id] for daemon in daemons))
        for number, verifier in enumerate(daemons[2:], 2):
            typed(homes[number], tmp_path, "task", "get", "corridor", f"corridor{number}")
            task = str(tmp_path / f"corridor{number}")
            assert verifier.post("/v1/work", task=task, verify_share=1).status_code == 200
        got = msgspec.json.decode(typed(homes[1], tmp_path, "get", "@", "theirs"), type=GotAnswer)
        theirs = Path(got.folder)
        measured = msgspec.json.decode(typed(homes[1], theirs, "run"), type=ProjectRunAnswer).run
        assert measured.metrics["mean_reward"] == first.run.value
        typed(homes[1], theirs, "train", "50")
        child = msgspec.json.decode(typed(homes[1], theirs, "publish"), type=ShowAnswer).run
        typed(homes[0], mine, "task", "allow", ".", "--yes")  # no init of this home made the project
        typed(homes[0], mine, "use", "policy", "random")
        typed(homes[0], mine, "run", "-n", "2")
        erratic = msgspec.json.decode(typed(homes[0], mine, "publish"), type=ShowAnswer).run
        assert erratic is not None
        assert (erratic.run.task, erratic.run.metrics["standard_error"] > 0) == (first.run.task, True)
        assert child is not None
        assert (child.run.parent, child.run.budget, child.run.task) == (first.id, 250, first.run.task)

        for verifier in daemons[2:]:  # it leads nothing, so nobody verifies it unasked
            wait_for(lambda verifier=verifier: verifier.post("/v1/verify", run=erratic.id).status_code in (200, 202))
        for run in (first.id, child.id, erratic.id):
            wait_for(
                lambda run=run: all(state_of(daemon, run) == RunState.CONFIRMED for daemon in daemons[:2]),
                VERIFY_SECONDS,
            )
        assert sorted(board(daemons[0])) == sorted(board(daemons[1])) == sorted((first.id, child.id, erratic.id))
        assert board(daemons[0]) == board(daemons[1])
    finally:
        stop_all(daemons)
