"""An agent's folder is the same whichever way its runs went: ``run``, ``propose`` and ``wait``, or MCP."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from autoresearch_cli.models import WaitedAnswer

from autoresearch.ask.node import ProposedAnswer
from autoresearch.ask.records import EditOutcome, ShowAnswer
from autoresearch.propose.mind.writing import HISTORY
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.task.folder_state import started_from
from autoresearch.task.folders import pin_baseline
from tests.cli.conftest import Process
from tests.cli.test_json import strictly
from tests.cli.test_mcp import OTHERS, answer, over_stdio, refusal
from tests.daemon.daemons import Daemon
from tests.daemon.toy import TRAIN, write_toy_task

if TYPE_CHECKING:
    from mcp import Client

BETTER = TRAIN.replace("X = 0.9", "X = 0.5")
SEQUENCE = {
    "half as far": BETTER,
    "too far": BETTER.replace("X = 0.5", "X = 1.0"),
    "a part that is missing": f"import missing_part\n{BETTER}",
    "a schedule": BETTER.replace("prepare.report(", "X = X - 0.1\nprepare.report("),
}


class Session:
    """A home with a daemon and a task folder in which an agent works, whose baseline was run."""

    def __init__(self, place: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.process = place, process
        self.folder = write_toy_task(place / "toy")
        pin_baseline(self.folder)
        monkeypatch.setenv("AUTORESEARCH_HOME", str(place / "home"))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        monkeypatch.chdir(place)
        self.daemon = Daemon(place / "home", {"AUTORESEARCH_NETWORK__ENABLED": "false"}).start()
        baseline = strictly(process("run", str(self.folder), "--json").stdout, ShowAnswer)
        self.runs = [baseline.record.id]
        self.checkout()

    def checkout(self) -> None:
        assert self.process("run", "checkout", str(self.folder)).returncode == 0

    def write(self, program: str) -> None:
        (self.folder / "train.py").write_text(program)

    def state(self) -> dict[str, str]:
        """The folder, with the places of runs for their ids, and without what takes another time each time."""
        texts = {
            "program": (self.folder / "train.py").read_text(),
            "parent": short_id(parse_id(started_from(self.folder))),
            "history": (self.folder / HISTORY).read_text(),
        }
        return {name: self.plain(text) for name, text in texts.items()}

    def plain(self, text: str) -> str:
        for number, run in enumerate(self.runs):
            text = text.replace(short_id(parse_id(run)), f"run {number}")
        return re.sub(r"The best run took .*", "", text.replace(str(self.folder), "FOLDER"))


def step_of(session: Session, outcome: EditOutcome) -> dict[str, Any]:
    """The verdict, and the next step in both forms."""
    facts = {"parent": outcome.parent, "verdict": outcome.verdict, "next": outcome.next, "calls": outcome.calls}
    return msgspec.json.decode(session.plain(msgspec.json.encode(facts).decode()))


def by_run(session: Session) -> Iterator[dict[str, Any]]:
    for hypothesis, program in SEQUENCE.items():
        session.write(program)
        words = ("run", str(session.folder), "--hypothesis", hypothesis, "--json")
        answered = strictly(session.process(*words).stdout, ShowAnswer)
        session.runs.append(answered.record.id)
        assert answered.outcome
        yield step_of(session, answered.outcome)


def by_waiting(session: Session) -> Iterator[dict[str, Any]]:
    for hypothesis, program in SEQUENCE.items():
        session.write(program)
        words = ("run", "propose", str(session.folder), "--hypothesis", hypothesis, "--json")
        (name,) = strictly(session.process(*words).stdout, ProposedAnswer).proposed
        answered = strictly(session.process("run", "wait", name, "--json").stdout, ShowAnswer)
        session.runs.append(answered.record.id)
        assert answered.outcome
        yield step_of(session, answered.outcome)


@pytest.fixture
def sessions(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Session]]:
    made = list[Session]()
    yield made
    for session in made:
        session.daemon.stop()


@pytest.mark.slow
def test_the_folder_is_the_same_by_each_path(
    sessions: list[Session], tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, steps = list[list[dict[str, str]]](), list[list[dict[str, Any]]]()
    for name, path in {"run": by_run, "wait": by_waiting}.items():
        session = Session(tmp_path / name, process, monkeypatch)
        sessions.append(session)
        states.append([])
        steps.append([])
        for step in path(session):
            states[-1].append(session.state())
            steps[-1].append(step)
            if "checkout" in step["next"]:
                session.checkout()
    session = Session(tmp_path / "mcp", process, monkeypatch)
    sessions.append(session)

    async def talk(client: Client) -> None:
        for number, (hypothesis, program) in enumerate(SEQUENCE.items()):
            facts = await answer(client, "run", hypothesis=hypothesis, program=program)
            session.runs.append(facts["id"])
            assert session.state() == states[0][number]
            outcome = json.loads(session.plain(json.dumps(facts["outcome"])))
            calls = [{"add": [], **call} for call in outcome["next"]]
            result = {"parent": outcome["parent"], "verdict": outcome["verdict"], "calls": calls}
            assert result == {name: value for name, value in steps[0][number].items() if name != "next"}
            if number == 2:
                assert "No module named 'missing_part'" in facts["outcome"][OTHERS]["cause"]
            if number == 3:
                (note,) = facts["outcome"][OTHERS]["notes"]
                assert "X is assigned twice (lines 4 and 7)" in note

    over_stdio(talk, str(session.folder))
    assert states[0] == states[1]
    assert steps[0] == steps[1]
    assert "cache" not in str(steps)


@pytest.mark.slow
def test_several_are_in_hand_and_an_edit_of_a_person_stays(
    sessions: list[Session], tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path / "place", process, monkeypatch)
    sessions.append(session)
    names = list[str]()
    for number in (0.5, 0.4, 0.35):
        session.write(TRAIN.replace("X = 0.9", f"X = {number}"))
        proposed = process("run", "propose", str(session.folder), "--json")
        names += strictly(proposed.stdout, ProposedAnswer).proposed
    first = strictly(process("run", "wait", *names, "--any", "--json").stdout, WaitedAnswer)
    assert (len(first.ended), len(first.left)) == (1, 2)
    every = strictly(process("run", "wait", *names, "--json").stdout, WaitedAnswer)
    assert ([each.name for each in every.ended], every.left) == (names, [])
    assert "no proposal proposal-99" in process("run", "wait", names[0], "proposal-99").stderr
    edit = "# what a person writes now\n"
    session.write(edit + TRAIN)

    async def talk(client: Client) -> None:
        changes = [{"hypothesis": f"Y {y}", "program": TRAIN.replace("Y = 0.1", f"Y = {y}")} for y in (0.4, 0.5)]
        held = [await answer(client, "run", parent="@baseline", wait_seconds=0, **change) for change in changes]
        assert "has an edit that was never run" in held[0]["folder"]
        both = await answer(client, "result", name=[each["name"] for each in held])
        assert [each["outcome"]["verdict"] for each in both["ended"]] == ["keep", "keep"], both["ended"][0]["outcome"][
            "sentence"
        ]
        again = await answer(client, "run", parent="@", replicate=1)
        assert (again["replicate"], again["outcome"]["seeds"]) == (1, 2)
        assert "with this seed before" in await refusal(client, "run", parent="@", replicate=1)

    over_stdio(talk, str(session.folder))
    assert (session.folder / "train.py").read_text() == edit + TRAIN


@pytest.mark.slow
def test_nobody_is_sent_into_the_cache(
    sessions: list[Session], tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path / "place", process, monkeypatch)
    sessions.append(session)
    session.write(BETTER)
    proposed = process("run", "propose", str(session.folder), "--json")
    (name,) = strictly(proposed.stdout, ProposedAnswer).proposed
    assert "keep" in process("run", "wait", name).stderr
    session.folder.rename(session.place / "gone")
    waited = process("run", "wait", name)
    assert "→ autoresearch task get toy --run " in waited.stderr
    assert "cache" not in waited.stderr
