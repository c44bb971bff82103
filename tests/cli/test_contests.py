"""Contests: founded whole or not at all, their board, their end, their marks."""

from __future__ import annotations

import csv
import os
import re
import signal
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.acts.task_folders import network_task
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import ClosedChallengeAnswer, GradesAnswer, NewChallengeAnswer

from autoresearch.ask.acts.networks import home_networks
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.challenges.answers import ChallengeAnswer
from autoresearch.ask.challenges.board import contest_words
from autoresearch.ask.challenges.founding import parse_end
from autoresearch.ask.node import StatusAnswer
from autoresearch.errors import UsageError
from autoresearch.log.bundle import is_bundle
from autoresearch.paths import NETWORKS, Paths
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import UNIT_MS
from autoresearch.trust.invite import join_with, read_invite
from autoresearch.trust.keys import KeyPair
from tests.cli.conftest import Cli, Process
from tests.cli.filling import measured
from tests.cli.test_json import strictly
from tests.daemon.toy import TRAIN, write_toy_task

FRIENDS = ("--ends", "7d", "--for", "friends", "--no-up", "--no-attack")
NOW_MS = 1_800_000_000_000


@pytest.fixture
def toy(tmp_path: Path) -> Task:
    """A task folder whose baseline is pinned."""
    return pin_baseline(write_toy_task(tmp_path / "toy"))


def home_here() -> Paths:
    return Paths.from_environment(os.environ)


def networks() -> list[str]:
    return [network.name for network in home_networks(home_here())]


def publish(task: Task, *values: float, at_ms: int = 0) -> list[str]:
    """Runs of this home, without running them."""
    with Notebook(home_here()) as notebook:
        now_ms = at_ms or notebook.now_ms()
        records = [
            notebook.publish_run(
                plan_as_it_stands(task, TRAIN.replace("0.9", str(x)), title=f"X {x}", genome={"X": x}),
                measured(x),
                now_ms + number,
            )
            for number, x in enumerate(values)
        ]
    return [record.record.id.hex() for record in records]


@pytest.mark.slow
def test_a_contest_from_its_founding_to_its_marks(cli: Cli, toy: Task, tmp_path: Path) -> None:
    made = cli("challenge", "new", str(toy.folder), *FRIENDS, "--title", "one week", "--json")
    assert made.exit_code == 0, made.stderr
    answer = strictly(made.stdout, NewChallengeAnswer)
    assert (answer.title, answer.network, answer.reachable, answer.codes) == ("one week", "toy", False, "")
    assert networks() == ["toy"]
    command, word = answer.line.rsplit(" ", 1)
    invite = read_invite(word)
    assert (command, invite.manifest.network.id.hex()) == ("autoresearch join", answer.network_id)
    assert invite.token is not None
    assert invite.manifest.tasks == (toy.digest,)
    page = Path(answer.pages[0])
    assert page == tmp_path / "toy-challenge" / "rules.md"
    assert f"$ {answer.line}\n" in page.read_text()
    assert "Two verifiers, 4 pairs: a gain of 0.0051 is seen with 90 %." in page.read_text()
    assert word in Path(answer.pages[1]).read_text()
    signed = cli("challenge", "show", "--rules").stdout
    assert page.read_text().startswith(signed)
    assert word not in signed

    publish(toy, 0.7, 0.5)
    screen = cli("challenge", "show")
    assert screen.exit_code == 0
    assert "contest\tone week\n" in screen.stdout
    assert "end\tends in 6 d 23 h" in screen.stdout
    early = cli("challenge", "close")
    assert (early.exit_code, "challenge close --now" in early.stderr) == (6, True)

    folder = tmp_path / "result"
    closed = strictly(cli("challenge", "close", "--now", "-o", str(folder), "--json").stdout, ClosedChallengeAnswer)
    assert (closed.placed, closed.submissions) == (2, 2)
    board = Path(closed.board).read_text()
    assert "No place is confirmed" in board
    assert "0.5000 reported" in board
    assert "Programs share a place where their intervals overlap" in board
    assert is_bundle(Path(closed.bundle))
    assert (folder / "pages" / "index.html").is_file()
    result = msgspec.json.decode((folder / "result.json").read_bytes(), type=ChallengeAnswer)
    assert [each.position for each in result.submissions] == [2, 1]
    assert result.ended
    with open_desk() as desk:
        assert contest_words(desk.log, toy.digest, result.ends_ms - 1) == ""
        assert contest_words(desk.log, b"?" * 32, result.ends_ms) == ""
        assert contest_words(desk.log, toy.digest, result.ends_ms + 40_000).startswith(
            "the contest on it ended 40 s ago"
        )

    publish(toy, 0.3)
    again = strictly(cli("challenge", "show", "--json").stdout, ChallengeAnswer)
    assert [program.reported for program in again.programs] == [0.5, 0.7], "what comes after the end is no part of it"
    assert (again.contestants[0].runs, again.contestants[0].counted) == (3, 2)
    refused = cli("challenge", "close", "-o", str(folder))
    assert (refused.exit_code, "holds something already" in refused.stderr) == (6, True)


@pytest.mark.slow
def test_a_contest_is_worked_on_where_nobody_names_a_task(cli: Cli, toy: Task) -> None:
    assert cli("challenge", "new", str(toy.folder), *FRIENDS).exit_code == 0
    assert load_task(Path(network_task())).digest == toy.digest
    assert cli("best").stderr == "→ autoresearch work\n"  # nothing is measured: there is no best run to look at
    assert cli("node", "config", "set", "work.task", str(toy.folder)).exit_code == 0
    assert network_task() == ""


@pytest.mark.slow
def test_the_founder_sets_another_end_and_the_page_says_so(cli: Cli, toy: Task, tmp_path: Path) -> None:
    made = strictly(cli("challenge", "new", str(toy.folder), *FRIENDS, "--json").stdout, NewChallengeAnswer)
    page = tmp_path / "toy-challenge"
    extended = cli("challenge", "extend", "--ends", "9d", "-o", str(page), "--json")
    answer = strictly(extended.stdout, ChallengeAnswer)
    assert answer.founder
    assert answer.ends_ms > made.ends_ms
    assert strictly(cli("status", "--json").stdout, StatusAnswer).contest_ends_ms == answer.ends_ms
    assert "contest\tends in 8 d 23 h" in cli("status").stdout
    text = (page / "rules.md").read_text()
    assert datetime.fromtimestamp(answer.ends_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") in text
    assert f"$ {made.line}\n" in text
    assert text.startswith(cli("challenge", "show", "--rules").stdout)
    assert cli("challenge", "extend", "--ends", "9d", "-o", str(tmp_path)).exit_code == 4, "no page is there"
    earlier = cli("challenge", "extend", "--ends", "2d")
    assert (earlier.exit_code, "is earlier" in earlier.stderr, "close --now" in earlier.stderr) == (2, True, True)


@pytest.mark.slow
def test_a_second_contest_says_which_network_the_node_leaves(cli: Cli, toy: Task, tmp_path: Path) -> None:
    first = cli("challenge", "new", str(toy.folder), *FRIENDS)
    assert "leaves the network" not in first.stderr
    second = cli("challenge", "new", str(toy.folder), *FRIENDS, "-o", str(tmp_path / "second"))
    back = re.search(r"admits and verifies nobody there → autoresearch (network use \S+) goes back", second.stderr)
    assert back, second.stderr
    assert cli(*back[1].split()).exit_code == 0


@pytest.mark.slow
def test_only_a_founder_sets_the_end(cli: Cli, toy: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = strictly(cli("challenge", "new", str(toy.folder), *FRIENDS, "--json").stdout, NewChallengeAnswer)
    bundle = tmp_path / "log.car"
    cli("run", "export", "--bundle", str(bundle))
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    assert cli("network", "join", made.line.rsplit(" ", 1)[1]).exit_code == 0
    assert cli("challenge", "show").exit_code == 4
    assert cli("node", "import", str(bundle)).exit_code == 0
    answer = strictly(cli("challenge", "show", "--json").stdout, ChallengeAnswer)
    assert (answer.founder, answer.ends_ms) == (False, made.ends_ms)
    assert cli("challenge", "show", "--rules").stdout.startswith("# toy: rules")
    for words in (("extend", "--ends", "9d"), ("close", "--now", "-o", str(tmp_path / "mine"))):
        refused = cli("challenge", *words)
        assert (refused.exit_code, "only a founder says when a contest ends" in refused.stderr) == (6, True)
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow
def test_a_class_has_a_code_and_an_alias_for_each(cli: Cli, toy: Task, tmp_path: Path) -> None:
    words = (
        "--ends",
        "2d",
        "--for",
        "class",
        "--codes",
        "12",
        "--runs",
        "3",
        "--no-up",
        "--no-attack",
        "-o",
        str(tmp_path / "class"),
    )
    made = strictly(cli("challenge", "new", str(toy.folder), *words, "--json").stdout, NewChallengeAnswer)
    rows = list(csv.DictReader(Path(made.codes).read_text().splitlines()))
    assert [row["alias"] for row in rows] == [f"student-{number:02}" for number in range(1, 13)]
    assert len({read_invite(row["invite"]).token for row in rows}) == 12
    assert all(row["line"] == f"autoresearch join {row['invite']}" for row in rows)
    assert Path(made.codes).stat().st_mode & 0o077 == 0
    assert made.line == "autoresearch join INVITE"
    assert not any(row["invite"] in (tmp_path / "class" / "rules.md").read_text() for row in rows)
    assert "the first 3 runs count" in (tmp_path / "class" / "rules.md").read_text()
    publish(toy, 0.8, 0.7, 0.6, 0.5)
    with open_desk() as desk:
        assert "counts your first 3 runs alone" in contest_words(desk.log, toy.digest, desk.now_ms())
    grades = strictly(cli("challenge", "grade", "--json").stdout, GradesAnswer)
    assert [(each.runs, each.counted) for each in grades.contestants if each.runs] == [(4, 3)]
    assert [each.alias for each in grades.contestants if not each.runs] == [row["alias"] for row in rows]
    marks = tmp_path / "marks.csv"
    assert cli("challenge", "grade", "-o", str(marks)).exit_code == 0
    assert marks.read_text().splitlines() == cli("challenge", "grade", "--csv").stdout.splitlines()
    [first, *rest] = csv.DictReader(marks.read_text().splitlines())
    assert (first["place"], first["reported"], first["counted"]) == ("1", "0.6", "3")
    assert {row["reason"] for row in rest} == {"its code is unused"}
    student = KeyPair.from_seed(b"s" * 32)
    admit(student, rows[4]["invite"])
    for word in ("dismiss", "admit"):  # by hand, without a code
        assert cli("network", word, student.public.hex()).exit_code == 0
    graded = list(csv.DictReader(cli("challenge", "grade", "--csv").stdout.splitlines()))
    assert [row["reason"] for row in graded if row["alias"] == "student-05"] == ["published no run"]
    assert sum(row["reason"] == "its code is unused" for row in graded) == 11


def admit(joining: KeyPair, invite: str) -> None:
    """What a founder's node does when it sees that somebody joined with an invite."""
    _, seed = read_invite(invite)
    assert seed is not None
    with Notebook(home_here()) as notebook:
        join = join_with(seed, notebook.log.network.id, joining.public)
        notebook.log.writer.append(joining, "join", join, now_ms=notebook.now_ms())
        notebook.publish_admission(joining.public, notebook.now_ms(), token=join.token)


WRONG = [
    (("--ends", "yesterday"), "is not a length of time"),
    (("--ends", "2020-01-01"), "has passed"),
    (("--ends", "2026-13-45"), "is no date"),
    (("--ends", "0d"), "above zero"),
    (("--ends", "9999-12-31"), "more than ten years"),
    (("--ends", "5000d"), "below ten years"),
    (("--name", "a b"), "the name has 1 to 40"),
    (("--name", "x" * 41), "the name has 1 to 40"),
    (("--title", "x" * 121), "at most 120 characters"),
    (("--title", "a\nb"), "in one line"),
    (("--uses", "0"), "1 to 256 participants"),
    (("--uses", "257"), "1 to 256 participants"),
    (("--codes", "3"), "--codes N goes with --for class"),
    (("--for", "class"), "--codes N goes with --for class"),
    (("--for", "open"), "takes 2 attestors"),
    (("--attestor", "ab"), "is no key"),
    (("--attestor", "a" * 64), "go with --for open"),
    (("-o", "{taken}"), "holds something already"),
    (("-o", "{missing}/page"), "no folder that can be written"),
    (("-o", "{taken}/file/page"), "no folder that can be written"),
]


@pytest.mark.parametrize(
    ("words", "sentence"), WRONG, ids=lambda part: " ".join(part) if isinstance(part, tuple) else ""
)
def test_what_makes_no_contest_leaves_nothing_behind(
    cli: Cli, toy: Task, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").write_text("mine")
    places = {"taken": taken, "missing": tmp_path / "missing"}
    result = cli("challenge", "new", str(toy.folder), *FRIENDS, *(word.format(**places) for word in words))
    assert (result.exit_code != 0, sentence in result.stderr) == (True, True), result.stderr
    assert "Traceback" not in result.stderr
    assert networks() == ["commons"]
    assert not (tmp_path / "toy-challenge").exists()
    assert not (home_here().data / NETWORKS).exists()


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("train.py", lambda text: text.replace("prepare.report", "prepare.nothing"), "pins another"),
        ("task.toml", lambda text: text.replace("minimize", "sideways"), "task.toml"),
        ("task.toml", lambda text: "\n".join(line for line in text.split("\n") if "baseline" not in line), "task pin"),
        ("prepare.py", lambda text: text + "\n", "prepare.py"),
        ("task.toml", None, "task.toml does not exist"),
    ],
)
def test_a_folder_that_is_no_sound_task_makes_no_contest(cli: Cli, toy: Task, name: str, change, sentence: str) -> None:
    file = toy.folder / name
    if change is None:
        file.unlink()
    else:
        file.write_text(change(file.read_text()))
    if name == "train.py":
        for copy in (toy.folder / ".autoresearch").rglob("*.py"):
            copy.unlink()
    result = cli("challenge", "new", str(toy.folder), *FRIENDS)
    assert (result.exit_code != 0, sentence in result.stderr) == (True, True), result.stderr
    assert networks() == ["commons"]


def test_a_baseline_that_does_not_run_here_makes_no_contest(cli: Cli, tmp_path: Path) -> None:
    task = pin_baseline(write_toy_task(tmp_path / "broken", "import prepare\nraise SystemExit('no data')\n"))
    result = cli("challenge", "new", str(task.folder), *FRIENDS)
    assert (result.exit_code, "does not run on this machine" in result.stderr) == (6, True), result.stderr
    assert networks() == ["commons"]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["publish_identity", "publish_challenge", "close"])
def test_a_process_that_is_killed_leaves_no_half_network(cli: Cli, process: Process, toy: Task, step: str) -> None:
    """At the begin, in the middle and at the end of what the new network begins with."""
    die = f"""
import os, sys
from autoresearch.ask.acts.notebook import Notebook
from autoresearch_cli.main import main
Notebook.{step} = lambda *_, **__: os.kill(os.getpid(), {int(signal.SIGKILL)})
main()
"""
    killed = process("challenge", "new", str(toy.folder), *FRIENDS, python=("-c", die))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert networks() == ["commons"]
    assert cli("status").exit_code == 0
    assert cli("challenge", "show").exit_code == 4
    again = cli("challenge", "new", str(toy.folder), *FRIENDS)
    assert again.exit_code == 0, again.stderr
    assert networks() == ["toy"]
    assert len(list((home_here().data / NETWORKS).iterdir())) == 1, "what was left is removed"


@pytest.mark.slow
@pytest.mark.parametrize("step", ["founding.join", "founding.as_html"])
def test_a_founding_that_is_killed_before_its_page_goes_on_when_typed_again(
    cli: Cli, process: Process, toy: Task, tmp_path: Path, step: str
) -> None:
    die = f"""
import os, sys
from autoresearch.ask.challenges import founding
from autoresearch_cli.acts import contests
from autoresearch_cli.main import main
{step} = lambda *_, **__: os.kill(os.getpid(), {int(signal.SIGKILL)})
main()
"""
    words = ("challenge", "new", str(toy.folder), "--ends", "7d", "--for", "class", "--codes", "3", "--no-up")
    killed = process(*words, "--no-attack", "--title", "first", python=("-c", die))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = cli(*words, "--no-attack", "--json")
    assert again.exit_code == 0, again.stderr
    assert "toy was founded, and interrupted before its page was written: it goes on as founded" in again.stderr
    assert strictly(again.stdout, NewChallengeAnswer).title == "first"
    assert sorted(path.name for path in (tmp_path / "toy-challenge").iterdir()) == [
        "codes.csv",
        "index.html",
        "rules.md",
    ]
    codes = csv.DictReader((tmp_path / "toy-challenge" / "codes.csv").open())
    assert [row["alias"] for row in codes] == ["student-1", "student-2", "student-3"]
    contest = strictly(cli("challenge", "show", "--json").stdout, ChallengeAnswer)
    assert [each.alias for each in contest.contestants if each.alias] == ["student-1", "student-2", "student-3"]
    assert networks() == ["toy"]
    assert "holds something already" in cli(*words, "--no-attack").stderr


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("7d", 7 * UNIT_MS["d"]),
        ("36h", 36 * UNIT_MS["h"]),
        ("1h30m", 90 * UNIT_MS["m"]),
        ("2027-02-01T00:00:00+00:00", 1_801_440_000_000 - NOW_MS),
        ("2027-02-01T01:00:00+01:00", 1_801_440_000_000 - NOW_MS),
    ],
)
def test_an_end_is_a_length_of_time_or_a_moment(text: str, ms: int) -> None:
    assert parse_end(text, NOW_MS) == NOW_MS + ms


def test_a_date_alone_means_its_last_moment() -> None:
    end = datetime.fromtimestamp(parse_end("2027-02-01", NOW_MS) / 1000)  # noqa: DTZ006 - of the clock here
    assert (end.date().isoformat(), end.hour, end.minute) == ("2027-02-01", 23, 59)


@pytest.mark.parametrize("text", ["", "7", "-3d", "1w", "2027-02-30", "2027-1-1", "now", "2027-02-01T25:00", "7 days"])
def test_other_texts_are_no_end(text: str) -> None:
    with pytest.raises(UsageError):
        parse_end(text, NOW_MS)


@pytest.mark.slow
def test_no_name_is_a_formula_in_the_marks(cli: Cli, toy: Task) -> None:
    cli("challenge", "new", str(toy.folder), *FRIENDS)
    assert cli("node", "id", "name", "=1+1").exit_code == 0
    publish(toy, 0.5)
    [row] = csv.DictReader(cli("challenge", "grade", "--csv").stdout.splitlines())
    assert row["name"] == "'=1+1"


@pytest.mark.slow  # a passphrase costs seconds
def test_a_root_key_under_a_passphrase_founds_a_contest(cli: Cli, toy: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "open sesame")
    assert cli("node", "id", "new").exit_code == 0
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "wrong")
    assert cli("challenge", "new", str(toy.folder), *FRIENDS).exit_code != 0
    assert networks() == ["commons"]
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "open sesame")
    made = cli("challenge", "new", str(toy.folder), *FRIENDS)
    assert made.exit_code == 0, made.stderr
    monkeypatch.delenv("AUTORESEARCH_PASSPHRASE")
    assert strictly(cli("challenge", "show", "--json").stdout, ChallengeAnswer).founder
    assert cli("challenge", "extend", "--ends", "9d").exit_code == 0


@pytest.mark.slow
def test_an_open_contest_names_attestors_and_still_has_a_founder(cli: Cli, toy: Task, tmp_path: Path) -> None:
    words = (
        "--ends",
        "7d",
        "--for",
        "open",
        "--attestor",
        "ab" * 32,
        "--attestor",
        "cd" * 32,
        "--no-up",
        "--no-attack",
    )
    made = strictly(cli("challenge", "new", str(toy.folder), *words, "--json").stdout, NewChallengeAnswer)
    invite = read_invite(made.line.rsplit(" ", 1)[1])
    assert (invite.token, len(invite.manifest.trust.attestors)) == (None, 2)
    assert "autoresearch node id attest" in (tmp_path / "toy-challenge" / "rules.md").read_text()
    assert cli("challenge", "extend", "--ends", "9d").exit_code == 0
