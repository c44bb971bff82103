"""Three machines become a network that confirms a run, by the commands of the how-to page and nothing else."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.runs.answers import BestAnswer
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import SECOND_TRAIN, write_toy_task
from tests.warm import run_command

PAGE = Path(__file__).parents[3] / "docs/how-to/found-a-network.md"
BLOCK = r"<!-- {} -->\n```console\n(.*?)^```$"
CONFIRM_SECONDS = 600.0

pytestmark = pytest.mark.slow


def commands(place: str) -> list[list[str]]:
    """What the page has a reader type in one place."""
    [block] = re.findall(BLOCK.format(place), PAGE.read_text(), re.M | re.S)
    lines = [line.partition("#")[0].removeprefix("$ ").split() for line in block.splitlines()]
    assert all(words[0] == "autoresearch" for words in lines)
    return [words[1:] for words in lines]


class Machine:
    """A home, and the command line at it."""

    def __init__(self, home: Path, task: Path) -> None:
        self.home = home
        self._settings = {
            "AUTORESEARCH_HOME": str(home),
            "AUTORESEARCH_WORK_TASK": str(task),
            "AUTORESEARCH_NETWORK_LAN": "false",
            "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
            "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        home.mkdir()

    def type(self, *words: str) -> str:
        """Run a command; its standard output."""
        ended = run_command(*words, environment=os.environ | self._settings, folder=self.home, seconds=300)
        assert ended.returncode == 0, (words, ended.stderr)
        return ended.stdout


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """The founder's and two others; their daemons are stopped at the end."""
    task = write_toy_task(tmp_path / "task", SECOND_TRAIN)
    made = [Machine(tmp_path / name, task) for name in ("founder", "ann", "ben")]
    yield made
    for machine in made:
        machine.type("down")


def test_the_page_makes_a_network_in_which_a_run_is_confirmed(machines: list[Machine]) -> None:
    founder, *others = machines
    typed = [founder.type(*words) for words in commands("on the founder's machine")]
    assert "founder · you" in founder.type("network", "show")
    assert "2 more participants and runs can be confirmed" in founder.type("status")
    for other in others:
        invite = typed.pop() if typed else founder.type("network", "invite")
        typed.clear()
        for words in commands("on each other machine"):
            other.type(*(invite.strip() if word == "INVITE" else word for word in words))
        wait_for(lambda other=other: "· admitted by " in other.type("status"))
    shows, best = commands("on any machine")
    for machine in machines:
        wait_for(lambda machine=machine: machine.type(*shows).count("counts\t") == len(machines))
    assert "more participant" not in founder.type("status")
    anybody = machines[-1]

    def is_confirmed() -> bool:  # a command to ask would cost more than the work that is waited for
        answer = msgspec.json.decode(Daemon(anybody.home).get("/v1/best").content, type=BestAnswer)
        return answer.confirmed is not None

    wait_for(is_confirmed, CONFIRM_SECONDS)
    assert "confirmed" in anybody.type(*best)
    assert founder.type("network", "invites").count("\tused up\t1\t1\t") == len(others)
