"""``task attack`` as it is typed: its exit status, its document, its report and the programs that it leaves."""

from __future__ import annotations

from pathlib import Path

from autoresearch.run.attack.report import AttackReport
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


def test_an_attack_that_is_none_and_a_folder_that_is_taken_are_refused(process: Process, tmp_path: Path) -> None:
    folder = shell_task(tmp_path / "count")

    assert process("task", "attack", str(folder), "--only", "nonsense").returncode == 2
    taken = process("task", "attack", str(folder), "--keep", str(folder))
    assert taken.returncode == 2
    assert "holds something already" in taken.stderr
