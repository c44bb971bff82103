"""Who goes into a dead end again is asked back once; history, effects and MCP tell it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import EffectsAnswer
from autoresearch.propose.mind.writing import HISTORY
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.task.folders import pin_baseline
from tests.cli.conftest import Process
from tests.cli.test_json import strictly
from tests.cli.test_mcp import OTHERS, answer, daemon, over_stdio, refusal
from tests.daemon.daemons import Daemon
from tests.daemon.toy import TRAIN, write_toy_task

if TYPE_CHECKING:
    from mcp import Client

__all__ = ["daemon"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return folder


def with_x(folder: Path, number: float) -> None:
    (folder / "train.py").write_text(TRAIN.replace("X = 0.9", f"X = {number}"))


def lose(process: Process, folder: Path) -> list[str]:
    """Three programs that go too far, from the baseline."""
    process("run", str(folder))
    process("run", "checkout", str(folder))
    runs = []
    for number in (0.95, 0.97, 1.0):
        with_x(folder, number)
        runs.append(short_id(parse_id(strictly(process("run", str(folder), "--json").stdout, ShowAnswer).record.id)))
    return runs


@pytest.mark.slow
def test_a_change_that_lost_three_times_is_asked_back(process: Process, toy: Path) -> None:
    runs = lose(process, toy)
    (end,) = strictly(process("task", "effects", "--json").stdout, EffectsAnswer).dead_ends
    assert (end.setting, end.relation, end.bound, sorted(end.runs)) == ("X", ">=", 0.95, sorted(runs))
    assert "dead end: X at least 0.95: 3 tries, no gain: -0.0" in process("task", "effects").stderr
    history = (toy / HISTORY).read_text()
    assert "## Dead ends" in history
    assert "X at least 0.95: 3 tries" in history
    with_x(toy, 0.98)
    refused = process("run", str(toy), "--hypothesis", "a bit farther")
    assert refused.returncode == 6
    assert "this goes into a dead end again: X at least 0.95" in refused.stderr
    assert "--anyway" in refused.stderr
    assert process("run", str(toy), "--hypothesis", f"unlike {runs[1]} it is the middle").returncode == 0
    with_x(toy, 0.99)
    assert process("run", str(toy), "--anyway").returncode == 0
    with_x(toy, 0.8)
    assert "keep" in process("run", str(toy)).stderr


@pytest.mark.slow
def test_mcp_tells_dead_ends_and_asks_back_once(process: Process, daemon: Daemon, toy: Path) -> None:
    runs = lose(process, toy)

    async def talk(client: Client) -> None:
        (end,) = (await answer(client, "effects"))[OTHERS]["dead_ends"]
        assert sorted(end["runs"]) == sorted(runs)
        program = TRAIN.replace("X = 0.9", "X = 0.98")
        sentence = await refusal(client, "run", hypothesis="farther", program=program, parent="@baseline")
        assert "this goes into a dead end of X again: runs " in sentence
        assert "anyway: true" in sentence
        taken = await answer(
            client, "run", hypothesis="farther", program=program, parent="@baseline", anyway=True, wait_seconds=60
        )
        assert taken["outcome"]["verdict"] == "discard"

    over_stdio(talk, str(toy))
