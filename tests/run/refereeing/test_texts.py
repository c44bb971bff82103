"""A task whose texts are not what it says is refused with a sentence, whoever runs it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from autoresearch.errors import AutoresearchError
from autoresearch.run.bench import Bench
from autoresearch.run.evaluating import ChallengeDraw, Model, examine
from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task
from tests.walls import best_level

TEXT = bytes([1, 2, 3, 4] * 2)
FRESH = """
import os, struct, sys
from pathlib import Path
folder = Path(os.environ["AUTORESEARCH_DATA"])
if sys.argv[1:] == ["fresh"]:
    (folder / "fresh.bin").write_bytes({fresh!r})
    (folder / "fresh.bits").write_bytes(struct.pack("2d", {cost}, 1.0))
    (folder / "text.bits").write_bytes(struct.pack("2d", {cost}, 1.0))
else:
    (folder / "val.bin").write_bytes({text!r})
"""


def task_with(text: bytes, fresh: bytes = TEXT, cost: str = "1.0") -> Task:
    task = shipped_task()
    assert task.evaluation is not None
    return msgspec.structs.replace(
        task,
        harness={"prepare.py": FRESH.format(text=text, fresh=fresh, cost=cost).encode()},
        data={"val.bin": hashlib.sha256(text).digest()},
        evaluation=msgspec.structs.replace(task.evaluation, length=4, vocabulary=8, withheld=[]),
    )


def ask(task: Task, folder: Path, fresh_seed: int | None = None) -> None:
    folder.chmod(0o755)
    bench = Bench(best_level(), 1, "cpu", folder / "cache", folder)
    examine(task, Model("", folder / "none"), bench, challenge=ChallengeDraw(b"", 1), fresh_seed=fresh_seed)


@pytest.mark.parametrize("text", [b"", bytes([1, 2, 3]), bytes([1, 2, 3, 8])])
def test_a_text_that_is_no_documents(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(AutoresearchError, match=r"val.bin can't be asked about"):
        ask(task_with(text), tmp_path)


def test_new_text_that_is_no_documents(tmp_path: Path) -> None:
    with pytest.raises(AutoresearchError, match=r"fresh.bin can't be asked about"):
        ask(task_with(TEXT, fresh=b"abc"), tmp_path, fresh_seed=1)


def test_costs_of_other_texts(tmp_path: Path) -> None:
    with pytest.raises(AutoresearchError, match="for another text"):
        ask(task_with(TEXT, fresh=TEXT + TEXT), tmp_path, fresh_seed=1)


@pytest.mark.parametrize("cost", ['float("nan")', 'float("inf")', "1e308", "-1.0"])
def test_costs_that_no_document_has(tmp_path: Path, cost: str) -> None:
    with pytest.raises(AutoresearchError, match="for another text"):
        ask(task_with(TEXT, cost=cost), tmp_path, fresh_seed=1)
