"""Models and commands as researchers: a real daemon, a scripted model over real HTTP, scripts as agents."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autoresearch.record.encoding import parse_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.task.folders import pin_baseline
from tests.cli.programs import cpp_task
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.scripted_model import Said, in_turn, openai, serving
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow
RANGE = "  # float [0.0, 1.0]"
KEY = "sk-very-secret-key"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return folder


@pytest.fixture
def start(tmp_path: Path, toy: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts a daemon on the toy task with these settings."""
    running: list[Daemon] = []

    def start(**settings: str) -> Daemon:
        base = {"AUTORESEARCH_NETWORK_ENABLED": "false", "AUTORESEARCH_WORK_TASK": str(toy)}
        running.append(Daemon(tmp_path / "home", base | settings).start())
        return running[-1]

    yield start
    for daemon in running:
        daemon.stop()


def with_model(url: str, **more: str) -> dict[str, str]:
    named = {"AUTORESEARCH_LLM_URL": url, "AUTORESEARCH_LLM_MODEL": "scripted", "OPENAI_API_KEY": KEY}
    return named | more


def work(daemon: Daemon, runs: int, proposer: str) -> list[Run]:
    """Work for so many runs; returns all runs."""
    before = len(daemon.runs())
    answer = daemon.post("/v1/work", runs=runs, proposer=proposer)
    assert answer.status_code == 200, answer.text
    wait_for(lambda: len(daemon.runs()) >= before + runs)
    return daemon.runs()


def proposal(name: str, old: str, new: str, why: str = "it is nearer to what is searched") -> Said:
    block = f"            "import os; here = 'written_by_participants/train.py'; os.remove(here); os.symlink('/etc/passwd', here)",
            "left no train.py",
        ),
        (
            "import os; os.chdir('written_by_participants'); os.remove('train.py'); os.mkfifo('train.py')",
            "no plain file",
        ),
        ("open('written_by_participants/train.py', 'w').write('x = 1' * 100_000)", "more than the allowed"),
        ("open('written_by_participants/train.py', 'wb').write(b'\\xff')", "not UTF-8"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
    ],
)
def test_what_a_command_leaves_is_not_believed(
    start: Callable[..., Daemon], tmp_path: Path, script: str, reason: str
) -> None:
    daemon = start(**command(tmp_path, script, AUTORESEARCH_AGENT_SECONDS="1"))
    runs = work(daemon, 2, "command")
    assert {run.proposer.name for run in runs} == {"search"}
    assert reason in daemon.status().proposers[1].reason


def test_a_command_that_is_not_there(start: Callable[..., Daemon]) -> None:
    daemon = start(AUTORESEARCH_AGENT_COMMAND="no-such-agent {prompt}")
    work(daemon, 2, "command")
    assert "no-such-agent can't be started" in daemon.status().proposers[1].reason


def test_nothing_is_left_of_a_command_when_the_daemon_is_killed(start: Callable[..., Daemon], tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    script = (
        f"import pathlib, time\nwhile True: pathlib.Path({str(mark)!r}).write_text(str(time.time())); time.sleep(0.1)"
    )
    daemon = start(**command(tmp_path, script))
    daemon.post("/v1/work", proposer="command")
    wait_for(mark.exists)
    daemon.kill()

    def is_silent() -> bool:
        before = mark.read_text()
        time.sleep(0.5)
        return mark.read_text() == before

    wait_for(is_silent)


def test_a_mix_uses_them_all(start: Callable[..., Daemon], tmp_path: Path) -> None:
    with serving(nearer) as model:
        daemon = start(**with_model(model.url), **command(tmp_path, AGENT))
        runs = work(daemon, 25, "mix")
    names = {run.proposer.name.partition("/")[0] for run in runs}
    assert names == {"search", "llm", "command"}
