"""A published task becomes a folder again: the same task or none."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.task.folders import rebuild_task, side_file
from autoresearch.task.loading import CHANGES, load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.task.program import split_program


def rebuilt(task: Task, folder: Path, **changed: object) -> Task:
    fields = {
        "definition": task.definition(),
        "digest": task.digest,
        "harness": dict(task.harness),
        "baseline": task.baseline,
        "summary": task.summary,
    }
    return rebuild_task(**{**fields, **changed}, folder=folder)  # type: ignore[arg-type]


def test_files_beside_a_task_are_no_part_of_it(tmp_path: Path) -> None:
    task = shipped_task()
    folder = rebuilt(task, tmp_path / "grammar").folder
    shipped = (task.folder / CHANGES).read_bytes()
    assert side_file(CHANGES, task.definition(), folder) == shipped, "records don't hold it"

    (folder / CHANGES).write_bytes(b"patch = []")

    assert load_task(folder).digest == task.digest
    assert side_file(CHANGES, task.definition(), folder) == b"patch = []"
    assert side_file(CHANGES, {**task.definition(), "harness": {}}, tmp_path) == b""


def test_the_shipped_task_comes_back_the_same(tmp_path: Path) -> None:
    task = shipped_task()
    again = rebuilt(task, tmp_path / "new" / "grammar")

    assert again.digest == task.digest
    assert (again.harness, again.baseline, again.summary) == (task.harness, task.baseline, task.summary)
    assert load_task(tmp_path / "new" / "grammar").digest == task.digest


def test_files_in_folders_come_back_where_they_were(tmp_path: Path, folder: Path) -> None:
    for name, text in {"lib/net.py": "X = 1\n", "data/a.csv": "1\n", "lib/new.py": "Y = 1\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    manifest = (folder / "task.toml").read_text()
    pinned = f'[harness]\n"data/a.csv" = "{hashlib.sha256(b"1" + bytes([10])).hexdigest()}"'
    program = '[program]\ncommand = "python -m lib.net"\nedit = ["train.py", "lib/*.py"]\n'
    (folder / "task.toml").write_text(manifest.replace("[harness]", pinned) + program)
    task = load_task(folder)
    assert list(split_program(task.program.decode())) == ["train.py", "lib/net.py", "lib/new.py"]

    again = rebuilt(task, tmp_path / "again")

    assert again.digest == task.digest
    assert (again.folder / "data/a.csv").read_text() == "1\n"
    assert (again.folder / "lib/new.py").read_text() == "Y = 1\n"


def test_a_folder_that_is_the_task_is_left_alone(tmp_path: Path) -> None:
    task = shipped_task()
    rebuilt(task, tmp_path / "grammar")
    (tmp_path / "grammar" / "notes.txt").write_text("mine")
    rebuilt(task, tmp_path / "grammar")
    assert (tmp_path / "grammar" / "notes.txt").read_text() == "mine"


def test_something_else_in_its_place_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(Refused, match="another task"):
        rebuilt(shipped_task(), folder)


def spoiled() -> list[tuple[str, dict[str, object], type[AutoresearchError]]]:
    task = shipped_task()
    definition, harness = task.definition(), dict(task.harness)
    return [
        ("harness", {**harness, "prepare.py": b"print(1)\n"}, UsageError),
        ("harness", {**harness, "../outside.py": b""}, UsageError),
        ("harness", {**harness, "a/../../outside.py": b""}, UsageError),
        ("harness", {**harness, "train.py/a.py": b""}, UsageError),
        ("harness", {**harness, "train.py": b""}, UsageError),
        ("harness", {}, UsageError),
        ("baseline", b"LR = 1\n", Refused),
        ("baseline", b"not python (", UsageError),
        ("digest", bytes(32), Refused),
        ("definition", {**definition, "name": 3}, UsageError),
        ("definition", {**definition, "metric": None}, UsageError),
        ("definition", {**definition, "extra": {"a": object()}}, UsageError),
        ("definition", {}, UsageError),
    ]


@pytest.mark.parametrize(
    ("part", "value", "error"), [pytest.param(*row, id=f"{row[0]}-{n}") for n, row in enumerate(spoiled())]
)
def test_what_is_not_the_published_task_leaves_nothing(tmp_path: Path, part: str, value: object, error: type) -> None:
    with pytest.raises(error):
        rebuilt(shipped_task(), tmp_path / "in" / "grammar", **{part: value})
    assert not (tmp_path / "outside.py").exists()
    assert not (tmp_path / "in" / "grammar").exists()
    assert list((tmp_path / "in").glob("*")) == [] if (tmp_path / "in").exists() else True
