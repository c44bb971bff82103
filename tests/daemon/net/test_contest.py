"""Two machines hold a contest by the commands of the how-to page: what a founder signs reaches the other one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from autoresearch_cli.models import NewChallengeAnswer

from autoresearch.ask.challenges.answers import ChallengeAnswer
from autoresearch.ask.discussion import AttacksAnswer
from autoresearch.run.attack.report import AttackReport
from autoresearch.task.folders import pin_baseline
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.net.test_first_evening import Machine
from tests.daemon.toy import SECOND_TRAIN, write_toy_task

PAGE = Path(__file__).parents[3] / "docs/how-to/hold-a-contest.md"

pytestmark = pytest.mark.slow


def commands() -> dict[str, list[str]]:
    """What the page has a reader type, by the word after ``autoresearch challenge``; of ``new`` the first."""
    blocks = re.findall(r"```console\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    lines = [shlex.split(line.removeprefix("$ "))[1:] for block in blocks for line in block.splitlines()]
    return {words[1]: words for words in reversed(lines)}


def contest(machine: Machine) -> ChallengeAnswer:
    return strictly(machine.type("challenge", "show", "--json"), ChallengeAnswer)


def test_the_page_holds_a_contest_of_two_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    typed = commands()
    folder = write_toy_task(tmp_path / "my-task", SECOND_TRAIN)
    founder, ann = Machine(tmp_path / "founder", folder), Machine(tmp_path / "ann", folder)
    founder.type("up")
    pin_baseline(folder)
    made = strictly(founder.type(*typed["new"], "--json"), NewChallengeAnswer)
    try:
        assert (made.reachable, made.title) == (True, "one week of toy")
        assert (tmp_path / "my-task-challenge" / "index.html").is_file()
        assert "toy" in founder.type("network", "show"), "the daemon that ran works in the contest's network"
        ann.type("network", "join", made.line.rsplit(" ", 1)[1])
        ann.type("up")
        wait_for(lambda: "one week of toy" in ann.type("node", "records", "--kind", "challenge"))
        assert contest(ann).ends_ms == made.ends_ms
        assert ann.type("challenge", "show", "--rules") == founder.type("challenge", "show", "--rules")
        attacks = strictly(ann.type("task", "reports", "toy", "--json"), AttacksAnswer)
        assert "held (quick half), by 1 participant" in contest(ann).task.attacked == attacks.sentence
        report = strictly(ann.type("task", "reports", "--read", attacks.reports[0].id, "--json"), AttackReport)
        assert report.held == attacks.reports[0].held, "its file came from the founder's node"
        ann.type("work", "toy", "--runs", "2")
        wait_for(lambda: [each.runs for each in contest(founder).contestants] == [2])
        founder.type(*typed["extend"])
        wait_for(lambda: contest(ann).ends_ms > made.ends_ms)
        assert (contest(founder).founder, contest(ann).founder) == (True, False)
        founder.type(*typed["close"])
        founder.type(*typed["grade"])
        wait_for(lambda: contest(ann).ended)
        ann.type("challenge", "close", "-o", str(tmp_path / "hers"))
        mine, hers = (tmp_path / name / "board.md" for name in ("my-task-result", "hers"))
        assert mine.read_text().partition("## Places")[2] == hers.read_text().partition("## Places")[2] != ""
        assert len((tmp_path / "marks.csv").read_text().splitlines()) == 2
    finally:
        for machine in (founder, ann):
            machine.type("down")
