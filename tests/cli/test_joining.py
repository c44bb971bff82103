"""``join``: from an invite to a first run, and what is said where that is not possible."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from autoresearch_cli.models import JoinAnswer

from autoresearch.ask.node import StatusAnswer
from autoresearch.ask.runs.answers import BestAnswer
from tests.cli.conftest import Cli
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.terminals import AUTORESEARCH, on_terminal
from tests.warm import run_command

# A program of somebody who never heard of this one: it fits a line by steps, and prints how well.
PROGRAM = """
import math
import random

LR = 0.02
MOMENTUM = 0.0
STEPS = 400
random.seed(0)
points = [(x / 50 - 1, math.sin(2.5 * (x / 50 - 1))) for x in range(101)]
weights, speed = [0.0] * 4, [0.0] * 4
for step in range(STEPS):
    x, y = random.choice(points)
    error = sum(w * x**i for i, w in enumerate(weights)) - y
    for i in range(4):
        speed[i] = MOMENTUM * speed[i] - LR * error * x**i
        weights[i] += speed[i]
loss = sum((sum(w * x**i for i, w in enumerate(weights)) - y) ** 2 for x, y in points) / len(points)
print("val_loss:", min(loss, 9.0))
"""
# The whole way, from an empty folder to a run that two others confirmed, on two busy cores.
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Machine:
    """A home of its own, as on a machine of its own, and its command line."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """What its commands run in: daemons that they start find the packages as the tests do."""
        apart = {"AUTORESEARCH_HOME": str(self.home), "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0"}
        return {**os.environ, **apart, "PYTHONPATH": os.pathsep.join(sys.path)}

    def __call__(self, *words: str, status: int = 0, cold: bool = False) -> subprocess.CompletedProcess[str]:
        """Type a command; ``cold``: as a Python that begins from nothing."""
        if cold:
            command = [*AUTORESEARCH, *words]
            ended = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
        else:
            ended = run_command(*words, environment=self.environment)
        assert ended.returncode == status, (words, ended.stdout, ended.stderr)
        assert "Traceback" not in ended.stderr
        return ended


Machines = Callable[[str], Machine]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Machines by name, whose daemons end with the test; commands are typed in an empty folder."""
    made: dict[str, Machine] = {}
    (tmp_path / "typed").mkdir()
    monkeypatch.chdir(tmp_path / "typed")

    def named(name: str) -> Machine:
        return made.setdefault(name, Machine(tmp_path / name))

    yield named
    for each in made.values():
        each("down")


def make_network(machine: Machine, name: str = "lab") -> None:
    """Make a network, and be its first node."""
    machine("network", "new", name, "--for", "lab")
    answer = strictly(machine("join", f"{name}.toml", "--json").stdout, JoinAnswer)
    assert (answer.network, answer.task, answer.working) == (name, None, False)
    assert answer.voter


def invite(machine: Machine, *options: str) -> str:
    """An invite with an address."""
    return machine("network", "invite", *options).stdout.strip()


@pytest.mark.slow
def test_three_machines_come_from_nothing_to_a_run_that_two_others_confirmed(
    machine: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = time.monotonic()
    watch: list[str] = []

    def lap(what: str, since: float = begin) -> float:
        watch.append(f"{time.monotonic() - since:6.1f} s  {what}")
        return time.monotonic()

    folder = Path("line")
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    founder, second, third = map(machine, ("founder", "second", "third"))
    founder("task", "new", "line", cold=True)
    founder("network", "new", "lab", "--for", "lab", cold=True)
    founder("join", "lab.toml", cold=True)
    founder("work", "line", "--runs", "6", cold=True)  # so few that its best is better beyond chance
    word = founder("network", "invite", "--uses", "2", cold=True).stdout.strip()
    lap("from nothing: a task, a network, its first node at work, an invite")
    os.chdir(tmp_path)  # the others have no folder of that name

    joining = time.monotonic()
    answer = strictly(second("join", word, "--yes", "--json", cold=True).stdout, JoinAnswer)
    lap("the second machine: from join to the task, its best and its author", joining)
    assert answer.working
    assert answer.voter
    assert answer.task
    assert answer.task.name == "line"
    assert answer.task.best
    assert answer.task.best.participant.key != strictly(second("status", "--json").stdout, StatusAnswer).participant.key
    again = strictly(second("join", word, "--yes", "--wait", "--json", cold=True).stdout, JoinAnswer)
    lap("the second machine: from join to a place on the board", joining)
    assert again.place
    third("join", word, "--yes", cold=True)
    lap("all three machines at work")
    for other in (second, third):
        other("work", "line", "--only", "verify", "--instead")

    def confirmed() -> bool:
        best = strictly(third("best", "--task", "line", "--json").stdout, BestAnswer)
        return best.confirmed is not None

    wait_for(confirmed, MOST_SECONDS)
    seconds = lap("a run is confirmed by two others") - begin
    with capsys.disabled():
        print("\n" + "\n".join(watch))
    assert seconds < MOST_SECONDS


@pytest.fixture(scope="module")
def word(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An invite without an address, as a founder prints it whose daemon does not run."""
    machine = Machine(tmp_path_factory.mktemp("founder"))
    file = machine.home.parent / "lab.toml"
    machine("network", "new", "lab", "--for", "lab", "-o", str(file))
    machine("network", "join", str(file))
    return invite(machine)


def damaged(word: str) -> list[str]:
    """The invite as it comes out of mails and of hands."""
    middle = len(word) // 2
    other = "a" if word[middle] != "a" else "b"
    return [
        word[:-1],
        word[:100],
        word[:20],
        word + "a",
        word[:middle] + other + word[middle + 1 :],
        word[:middle] + word[middle + 1 :],
        word.replace("autoresearch1", "autoresearch1 !"),
        "autoresearch1",
        word * 20,
        word[:middle] + "1" + word[middle:],
    ]


def test_a_damaged_invite_is_a_sentence_and_changes_nothing(cli: Cli, home: Path, word: str) -> None:
    for text in damaged(word):
        result = cli("join", text)
        assert (result.exit_code, result.stdout) == (2, ""), text
        assert "→ copy it again, whole" in result.stderr
    assert not home.exists()


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("", 4),
        ("hello", 4),
        ("/nowhere/tea.toml", 4),
        ("https://example.org/invite", 4),
        (".", 4),
        ("program.py", 2),
        ("empty.toml", 2),
        ("/ip4/1.2.3/tcp/0", 2),
        ("/ip4/127.0.0.1/tcp/4001", 2),
        ("nul\0", 2),
        ("--within 0s", 2),
        ("--within soon", 2),
    ],
)
def test_what_is_no_network_is_a_sentence_with_a_next_step(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, where: str, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text("LR = 1\n")
    Path("empty.toml").write_text("")
    result = cli("join", *([word, *where.split()] if where.startswith("--within") else [where]))
    assert (result.exit_code, result.stdout) == (status, "")
    assert "→ " in result.stderr or "length of time" in result.stderr
    assert not home.exists()


@pytest.mark.parametrize("place", ["/proc/nothing", "/dev/null", "/proc/self/mem/home"])
def test_a_home_that_can_not_be_written_is_a_sentence(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, word: str, place: str
) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", place)
    result = cli("join", word)
    assert result.exit_code in (1, 2, 6)
    assert place.removesuffix("/home") in result.stderr.replace("\n", "")
    assert "→ " in result.stderr


@pytest.mark.slow
def test_where_no_node_answers_join_says_why_and_goes_on_later(machine: Machines, tmp_path: Path) -> None:
    founder, second, third = map(machine, ("founder", "second", "third"))
    make_network(founder)
    Path("line").mkdir()
    Path("line/train.py").write_text(PROGRAM)
    founder("task", "new", "line")
    founder("work", "line", "--runs", "2")
    word = invite(founder)
    wait_for(lambda: strictly(founder("status", "--json").stdout, StatusAnswer).state == "idle")
    founder("down")
    os.chdir(tmp_path)

    alone = second("join", word, "--yes", "--within", "1s", status=7)
    assert "no node of lab answered" in alone.stderr
    assert "does not answer" in alone.stderr
    assert "autoresearch join lab goes on from here" in alone.stderr
    founder("up")
    later = second("join", "lab")  # no terminal: nothing is asked, and nothing begins
    assert "autoresearch work line lets this machine run experiments" in later.stderr
    assert "line: val_loss, lower is better, 2 runs" in later.stdout
    # The founder's node admits as soon as it has seen the join: on a busy machine after the first answer.
    wait_for(lambda: "admitted by" in second("join", "lab").stdout)
    assert strictly(second("join", "lab", "--json").stdout, JoinAnswer).working is False

    screen = on_terminal([*AUTORESEARCH, "join", "lab"], typed="n\n", **second.environment)
    assert "Let this machine run experiments on line and verify others' now? [Y/n]" in screen.replace("\n", " ")
    assert "autoresearch work line does so later" in screen
    assert "working until" in on_terminal([*AUTORESEARCH, "join", "lab"], typed="\n", **second.environment)
    assert "works on line already" in second("join", word, "--wait").stderr
    second("node", "pause")  # its runs add nothing to what follows

    # The invite admitted one; a daemon that runs in another network begins again in this one.
    third("up")
    late = third("join", word, status=6)
    assert "lab is now the network in use; back to the other one: autoresearch network use commons" in late.stderr
    assert "this invite did not admit you: your verifications do not count" in late.stderr
    assert "for another invite and join with it: its node is up and did not admit you" in late.stderr
    make_network(third, "tea")
    assert strictly(third("join", "lab", "--json").stdout, JoinAnswer).network == "lab"
    # Killed in the middle, it goes on.
    third("down")
    killed = subprocess.Popen([*AUTORESEARCH, "join", word], env=third.environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: strictly(third("status", "--json").stdout, StatusAnswer).running)
    killed.kill()
    killed.wait()
    assert strictly(third("join", word, "--json", status=6).stdout, JoinAnswer).task


@pytest.mark.slow
def test_an_answer_that_finds_no_room_is_a_sentence(cli: Cli, tmp_path: Path) -> None:
    for words in (["network", "show", "--json"], ["network", "show"]):
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run([*AUTORESEARCH, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert ended.returncode == 1
        assert ended.stderr.splitlines()[0] == "No space left on device"
        assert "Traceback" not in ended.stderr
