"""A pinned task stays the same task while its train.py is edited; a folder remembers where the edit started."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from autoresearch.errors import Refused, UsageError
from autoresearch.task.folder_state import BASELINE, keep_baseline, remember_start, started_from
from autoresearch.task.folders import pin_baseline, rebuild_task
from autoresearch.task.loading import load_task, shipped_task
from autoresearch.task.program import source_digest

EDITED = "LR = 0.2\n"


def edit(folder: Path, text: str = EDITED) -> None:
    (folder / "train.py").write_text(text)


def test_without_a_pin_an_edit_is_another_task(folder: Path) -> None:
    before = load_task(folder)
    edit(folder)
    after = load_task(folder)
    assert not after.is_pinned
    assert after.digest != before.digest
    assert after.baseline == after.program == EDITED.encode()


def test_with_a_pin_an_edit_is_a_program_of_the_same_task(folder: Path) -> None:
    before = load_task(folder)
    pinned = pin_baseline(folder)
    edit(folder)
    after = load_task(folder)
    assert (after.digest, after.baseline) == (pinned.digest, pinned.baseline) == (before.digest, before.baseline)
    assert (after.program, after.is_pinned) == (EDITED.encode(), True)


def test_pinning_keeps_what_a_person_wrote_in_the_file(folder: Path) -> None:
    manifest = folder / "task.toml"
    manifest.write_text("# mine\n" + manifest.read_text())
    pin_baseline(folder)
    text = manifest.read_text()
    assert text.startswith("# mine\n")
    assert source_digest("LR = 0.1\n").hex() in text
    with pytest.raises(Refused, match="pins its baseline already"):
        pin_baseline(folder)


@pytest.mark.parametrize("baseline", [None, b"LR = 0.3\n", b"\xff"], ids=["missing", "another program", "no text"])
def test_an_edit_without_the_pinned_baseline_is_refused_with_a_way_out(folder: Path, baseline: bytes | None) -> None:
    pin_baseline(folder)
    edit(folder)
    (folder / ".autoresearch" / "baseline.py").unlink()
    if baseline is not None:
        keep_baseline(folder, baseline)
    with pytest.raises(UsageError, match="pins another train") as refused:
        load_task(folder)
    assert "autoresearch task get" in refused.value.hint


def test_a_comment_in_the_baseline_is_no_edit_and_needs_no_copy(folder: Path) -> None:
    pin_baseline(folder)
    (folder / ".autoresearch" / "baseline.py").unlink()
    edit(folder, "LR = 0.10  # the rate\n")
    assert load_task(folder).is_pinned


def test_a_published_task_comes_back_ready_for_an_edit(tmp_path: Path) -> None:
    task, place = shipped_task(), tmp_path / "grammar"

    def again() -> bytes:
        return rebuild_task(
            task.definition(), task.digest, harness=task.harness, baseline=task.baseline, summary="", folder=place
        ).program

    assert again() == task.baseline
    edit(place)
    assert again() == EDITED.encode()
    assert load_task(place).digest == task.digest


def test_a_folder_remembers_the_run_that_its_edit_started_from(folder: Path) -> None:
    assert started_from(folder) == BASELINE
    remember_start(folder, "bafy1")
    remember_start(folder, "bafy2")
    assert started_from(folder) == "bafy2"
    (folder / ".autoresearch" / "parent").write_bytes(b"\xff\xfe")
    assert started_from(folder) == ""
    remember_start(folder, "")
    assert started_from(folder) == ""


def test_what_cannot_be_remembered_is_a_sentence(folder: Path) -> None:
    (folder / ".autoresearch").write_text("a file in the way")
    with pytest.raises(UsageError, match="can't be written"):
        remember_start(folder, "bafy1")


def test_an_edit_of_the_task_that_ships_is_a_program_of_it(tmp_path: Path) -> None:
    shipped = shipped_task()
    place = tmp_path / "experiments"
    copytree(shipped.folder, place)
    edit(place)
    task = load_task(place)
    assert (task.digest, task.baseline, task.program) == (shipped.digest, shipped.baseline, EDITED.encode())
