"""``task attack`` as it is typed: its exit status, its document, its report and the programs that it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.ask.acts.attack_reports import publish_report
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.discussion import AttacksAnswer
from autoresearch.errors import NotFound
from autoresearch.paths import Paths
from autoresearch.run.attack.report import REPORT, AttackReport, read_report
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import shell_task
from tests.cli.test_json import strictly


def test_what_got_through_is_said_with_its_program_and_the_mend(process: Process, tmp_path: Path) -> None:
    folder, programs = shell_task(tmp_path / "count"), tmp_path / "programs"

    result = process("task", "attack", str(folder), "--only", "says-a-number", "--keep", str(programs), "--json")

    assert result.returncode == 1, result.stderr
    report = strictly(result.stdout, AttackReport)
    assert [hole.hole for hole in report.holes] == ["own_number"]
    assert (report.tried, report.through, report.source) == (1, 1, "stdout")
    assert "echo 'score: " in (programs / "says-a-number" / "count.sh").read_text()
    assert "+echo 'score: " in (programs / "says-a-number" / "attack.diff").read_text()
    assert not (folder / "attack.json").exists(), "one attack is no report"


def test_what_got_through_is_said_where_the_log_can_not_be_read(process: Process, tmp_path: Path) -> None:
    log = Paths.from_environment(os.environ).log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("no database")

    result = process("task", "attack", str(shell_task(tmp_path / "count")), "--only", "says-a-number", "--json")

    assert result.returncode == 1, result.stderr
    assert strictly(result.stdout, AttackReport).through == 1
    assert "published reports can't be read" in result.stderr


def test_an_attack_that_is_none_and_a_folder_that_is_taken_are_refused(process: Process, tmp_path: Path) -> None:
    folder = shell_task(tmp_path / "count")

    assert process("task", "attack", str(folder), "--only", "nonsense").returncode == 2
    taken = process("task", "attack", str(folder), "--keep", str(folder))
    assert taken.returncode == 2
    assert "holds something already" in taken.stderr


def test_a_cheat_of_ones_own_is_tried_alone_and_again_once_it_got_through(process: Process, tmp_path: Path) -> None:
    folder, cheat = shell_task(tmp_path / "count"), tmp_path / "My cheat.sh"
    cheat.write_text("echo 'score: 1e6'\n")

    def attacked(*words: str) -> AttackReport:
        return strictly(process("task", "attack", str(folder), *words, "--json").stdout, AttackReport)

    report = attacked("--program", str(cheat))
    [row] = report.rows
    assert (row.name.startswith("own-my-cheat-"), row.result) == (True, "through")
    assert [hole.hole for hole in report.holes] == ["other"]
    place = folder / ".autoresearch" / "attacks" / row.name
    assert (place / "count.sh").read_text() == cheat.read_text()

    assert attacked("--only", row.name).through == 1
    other = tmp_path / "other" / cheat.name
    other.parent.mkdir()
    other.write_text("echo 'score: -1e6'\n")
    both = attacked("--program", str(other), "--program", str(cheat))
    assert [each.result for each in both.rows] == ["held", "through"], "of one name, and not the same"
    assert [each.name for each in place.parent.iterdir()] == [row.name], "what is held is not kept"
    (place / "count.sh").unlink()
    refused = process("task", "attack", str(folder), "--only", row.name)
    assert refused.returncode == 2
    assert f"{row.name} is left out: " in refused.stderr


def test_ctrl_c_says_what_was_tried_and_what_is_kept(process: Process, tmp_path: Path) -> None:
    folder, cheat = shell_task(tmp_path / "count"), tmp_path / "waits.sh"
    cheat.write_text("sleep 60\n")
    (tmp_path / "quick.sh").write_text("echo 'score: 1e6'\n")
    programs = [word for each in ("quick.sh", "waits.sh") for word in ("--program", str(tmp_path / each))]
    words = [sys.executable, "-m", "autoresearch_cli", "task", "attack", str(folder), *programs]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        words,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # A job of a shell in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - starts no thread before
    ) as running:
        assert running.stderr is not None
        assert next(line for line in running.stderr if line.startswith("50 %"))
        running.send_signal(signal.SIGINT)
        lines = running.stderr.read()

    assert running.returncode == 130, lines
    place = folder / ".autoresearch" / "attacks"
    [name] = [each.name for each in place.iterdir()]
    sentence = f"1 attack tried, 1 got through: {name}; their programs are kept in {place}, no report is written"
    assert sentence in " ".join(lines.split()), lines
    assert not (folder / "attack.json").exists()


def test_a_file_that_is_no_program_is_no_cheat(process: Process, tmp_path: Path) -> None:
    folder = shell_task(tmp_path / "count")
    for words in (("--program", str(tmp_path / "none.sh")), ("--program", str(folder / "task.toml"), "--publish")):
        refused = process("task", "attack", str(folder), *words)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr


def reports(process: Process, task: str) -> AttacksAnswer:
    return strictly(process("task", "reports", task, "--json").stdout, AttacksAnswer)


@pytest.mark.slow
def test_a_published_task_has_its_report_beside_it_and_others_repeat_it(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, bundle = shell_task(tmp_path / "count"), tmp_path / "log.car"

    published = process("publish", "task", str(folder))
    assert published.returncode == 0, published.stderr
    assert "at most 60 s" in published.stderr
    [view] = reports(process, "count").reports
    assert (view.quick, view.holes) == (True, {"own_number": view.tried - view.held})

    again = process("publish", "task", str(folder))
    assert "at most 60 s" not in again.stderr, "the report is there"
    assert [view] == reports(process, "count").reports, "and published"
    whole = strictly(process("task", "reports", "--read", view.id, "--json").stdout, AttackReport)
    assert whole.counts == read_report(folder, reports(process, "count").digest).counts  # type: ignore[union-attr]
    assert str(tmp_path) not in whole.published.decode()
    assert "reports\tattacked: " in process("task", "show", str(folder)).stdout

    assert process("run", "export", "--bundle", str(bundle)).returncode == 0
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    assert process("node", "import", str(bundle)).returncode == 0
    repeated = process("task", "attack", "count", "--quick", "--publish", "--json")
    assert repeated.returncode == 1, repeated.stderr
    [beside] = strictly(repeated.stdout, AttackReport).others
    assert (beside.id, beside.both, beside.differing, beside.why) == (view.id, view.tried, [], "")
    assert "by 2 participants" in process("task", "reports", "count").stderr


@pytest.mark.slow
def test_a_contest_says_what_attacks_came_to_on_every_page(process: Process, tmp_path: Path) -> None:
    folder, page = pin_baseline(shell_task(tmp_path / "count")).folder, tmp_path / "page"

    made = process("challenge", "new", str(folder), *["--ends", "7d", "--for", "friends", "--no-up", "-o"], str(page))

    assert made.returncode == 0, made.stderr
    sentence = reports(process, "count").sentence
    assert "by 1 participant; the program states its own number" in sentence
    screen = process("challenge", "show").stdout
    assert f"attacked\t{sentence.removeprefix('attacked: ')}\n" in screen
    assert "self-reported" in screen
    assert sentence in process("challenge", "show", "--rules").stdout.replace("\\", "")
    closed = process("challenge", "close", "--now", "-o", str(tmp_path / "result"))
    assert closed.returncode == 0, closed.stderr
    assert sentence in (tmp_path / "result" / "index.html").read_text()
    assert sentence in (tmp_path / "result" / "pages" / "board.html").read_text()


def test_left_out_it_is_said_and_nothing_is_claimed(process: Process, tmp_path: Path) -> None:
    folder = shell_task(tmp_path / "count")

    published = process("publish", "task", str(folder), "--no-attack")

    assert published.returncode == 0
    assert "no report of attacks stands beside it: left out by --no-attack" in published.stderr
    assert (reports(process, "count").reports, reports(process, "count").self_reported) == ([], True)
    assert "reports\t" not in process("task", "show", str(folder)).stdout


def test_only_a_whole_report_of_this_very_task_is_published(process: Process, tmp_path: Path) -> None:
    folder = shell_task(tmp_path / "count")
    assert process("task", "attack", str(folder), "--only", "says-a-number", "--publish").returncode == 2
    assert process("task", "attack", "moons", "--publish").returncode == 2
    assert process("task", "reports", "count").returncode == 4
    digest = load_task(folder).digest
    lie = {"digest": digest.hex()[::-1]}
    with Notebook(Paths.from_environment({**os.environ, "AUTORESEARCH_HOME": str(tmp_path / "home")})) as notebook:
        for report in ("{}", json.dumps(lie)):
            (folder / REPORT).write_text(report)
            with pytest.raises(NotFound, match="holds no report"):
                publish_report(notebook, load_task(folder), 1)
