"""A folder in the shape of karpathy/autoresearch becomes a task, and nothing that is there is overwritten."""

from __future__ import annotations

import hashlib
import unicodedata
from pathlib import Path

import pytest

from autoresearch.errors import Refused, UsageError
from autoresearch.task.folders import name_of_task, write_task
from autoresearch.task.loading import load_task

PREPARE = """
import os
import helper
CACHE_DIR = os.path.join(os.path.expanduser("~"), ".cache", "autoresearch")
TIME_BUDGET = 300
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    folder = tmp_path / "My Model (v2)"
    folder.mkdir()
    (folder / "prepare.py").write_text(PREPARE)
    (folder / "train.py").write_text("from prepare import TIME_BUDGET\nprint('---')\nprint('val_bpb: 1.0')\n")
    (folder / "helper.py").write_text("import math\n")
    (folder / "unused.py").write_text("this is not Python\n")
    return folder


def test_the_new_task_loads(bare: Path) -> None:
    assert write_task(bare, mounts=["~/.cache/autoresearch", "/data/autoresearch"]) == bare / "task.toml"

    task = load_task(bare)
    assert task.name == "my-model-v2"
    assert (task.metric.name, task.metric.direction, task.metric.source) == ("val_bpb", "minimize", "stdout")
    assert (task.budget.unit, task.budget.amount) == ("seconds", 300.0)
    assert set(task.harness) == {"helper.py", "prepare.py"}
    assert dict(task.mounts) == {"autoresearch": "~/.cache/autoresearch", "autoresearch-2": "/data/autoresearch"}
    assert dict(task.data) == {}
    pin = hashlib.sha256(PREPARE.encode()).hexdigest()
    assert f'"prepare.py" = "{pin}"' in (bare / "task.toml").read_text()
    assert sorted(path.name for path in bare.iterdir()) == [
        ".autoresearch", "helper.py", "prepare.py", "task.toml", "train.py", "unused.py"
    ]  # fmt: skip


def test_nothing_is_mounted_that_was_not_asked_for(bare: Path) -> None:
    write_task(bare)

    assert dict(load_task(bare).mounts) == {}


def test_an_existing_task_is_left_alone(bare: Path) -> None:
    (bare / "task.toml").write_text("mine")

    with pytest.raises(Refused, match="exists already"):
        write_task(bare)

    assert (bare / "task.toml").read_text() == "mine"


def test_a_program_alone_is_a_task(bare: Path) -> None:
    (bare / "prepare.py").unlink()
    (bare / "train.py").write_text("import helper\nprint('accuracy: 0.5')\n")
    write_task(bare, metric="accuracy", direction="maximize", seconds=2)
    task = load_task(bare)
    assert (task.metric.name, task.metric.direction, task.budget.amount) == ("accuracy", "maximize", 2.0)
    assert (set(task.harness), task.limits.seconds) == ({"helper.py"}, 6.0)


def test_a_folder_without_a_program_is_refused_and_left_clean(bare: Path) -> None:
    (bare / "train.py").unlink()

    with pytest.raises(UsageError, match=r"train\.py"):
        write_task(bare)

    assert not (bare / "task.toml").exists()


def test_a_broken_source_is_refused(bare: Path) -> None:
    (bare / "train.py").write_text("def f(:\n")

    with pytest.raises(UsageError, match=r"train\.py.*line 1"):
        write_task(bare)

    assert not (bare / "task.toml").exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_task(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("pä th", "pa-th"),
        ("Größe_2", "grosse-2"),
        ("Smørrebrød Æble", "smorrebrod-aeble"),
        ("Łódź", "lodz"),
        ("ﬁne № 1", "fine-no-1"),
        ("数据-mnist", "mnist"),
        ("数据", ""),
        ("--", ""),
    ],
)
def test_a_task_is_called_as_its_folder_in_plain_letters(tmp_path: Path, folder: str, name: str) -> None:
    assert name_of_task(tmp_path / folder) == name
    assert name_of_task(tmp_path / unicodedata.normalize("NFD", folder)) == name
