"""A number that can't be true is not believed: from the edit of the line that prints it to a person's word."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer, RunsAnswer, TopAnswer
from autoresearch.face.columns.column import short
from autoresearch.task.folder_state import started_from
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import write_files
from tests.cli.test_ideas import ran
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for

PROGRAM = """\
import random

LR = 0.05
STEPS = 40
rng = random.Random(3)
points = [(x / 20, 2 * x / 20 + 1) for x in range(-20, 21)]
train, val = points[::2], points[1::2]


def evaluate(w, b, some):
    return sum((w * x + b - y) ** 2 for x, y in some) / len(some) + 0.9


w = b = 0.0
for _ in range(STEPS):
    x, y = rng.choice(train)
    error = w * x + b - y
    w -= LR * error * x
    b -= LR * error
val_bpb = evaluate(w, b, val)
print(f"val_bpb: {val_bpb:.4f}")
"""
HONEST = PROGRAM.replace("LR = 0.05", "LR = 0.08")
TYPED = HONEST.replace('f"val_bpb: {val_bpb:.4f}"', '"val_bpb: 0.0001"')


@pytest.fixture
def folder(process: Process, tmp_path: Path) -> Iterator[Path]:
    place = write_files(tmp_path / "mine", {"train.py": PROGRAM})
    result = process("task", "new", str(place), "--once")
    assert result.returncode == 0, result.stderr
    assert "no val_bpb passes 0: metric.floor in task.toml" in result.stderr
    assert "the program measures itself" in result.stderr
    assert "docs/how-to/evaluate-outside-the-program.md" in result.stderr
    assert load_task(place).metric.floor == 0.0
    yield place
    process("down")


def best(process: Process) -> str:
    answer = strictly(process("best", "--json").stdout, BestAnswer)
    assert answer.run
    return answer.run.id


def exported(process: Process) -> dict[str, str]:
    """The status of each run in results.tsv."""
    rows = list(csv.DictReader(process("run", "export").stdout.splitlines(), delimiter="\t"))
    return {row["id"]: row["status"] for row in rows}


@pytest.mark.slow
def test_a_typed_number_is_no_best_until_a_person_believes_it(process: Process, folder: Path) -> None:
    baseline = ran(process, folder)
    (folder / "train.py").write_text(HONEST)
    honest = ran(process, folder)
    (folder / "train.py").write_text(TYPED)
    result = process("run", str(folder))
    assert result.returncode == 0
    assert "not believed: measured by the program itself, which prints or measures" in result.stderr
    assert "if the number is true: autoresearch run believe" in result.stderr
    assert "keep" not in result.stderr
    typed = strictly(process("show", "@mine", "--json").stdout, ShowAnswer)
    assert typed.record.id == honest.record.id == best(process) == started_from(folder)
    listed = strictly(process("run", "list", "--json").stdout, RunsAnswer).runs
    assert [row.mark for row in listed] == ["not believed", "leading", "leading"]
    fake = listed[0].id
    top = strictly(process("top", "--json").stdout, TopAnswer).programs
    assert [(row.id, row.position) for row in top] == [(honest.record.id, 1), (baseline.record.id, 2), (fake, 0)]
    assert "not believed" in process("show", fake).stdout
    history = (folder / "history.md").read_text()
    assert "not believed: don't build on it" in history
    assert history.index(short(honest.record.id)) < history.index(short(fake))
    assert exported(process) == {baseline.record.id: "keep", honest.record.id: "keep", fake: "discard"}

    # An edit of the fake program is not believed either, and its number is no comparison for an honest one.
    (folder / "train.py").write_text(TYPED.replace("STEPS = 40", "STEPS = 50"))
    assert "not believed" in process("run", str(folder), "--parent", fake).stderr
    (folder / "train.py").write_text(HONEST.replace("STEPS = 40", "STEPS = 50"))
    assert (
        "is not believed, so there is nothing to compare with" in process("run", str(folder), "--parent", fake).stderr
    )

    believed = process("run", "believe", fake)
    assert (believed.returncode, "believed" in believed.stderr, "1 other run" in believed.stderr) == (0, True, True)
    assert best(process) == fake
    assert exported(process)[fake] == "keep"
    assert process("run", "believe", fake, "--undo").returncode == 0
    assert best(process) != fake


def test_a_value_past_the_floor_is_not_believed_and_cant_be(process: Process, folder: Path) -> None:
    ran(process, folder)
    (folder / "train.py").write_text(PROGRAM.replace("{val_bpb:.4f}", "-3"))
    result = process("run", str(folder))
    assert "not believed: it is past the bound that task.toml states (metric.floor)" in result.stderr
    assert "correct metric.floor in task.toml" in result.stderr
    listed = strictly(process("run", "list", "--json").stdout, RunsAnswer).runs
    refused = process("run", "believe", listed[0].id)
    assert (refused.returncode, "metric.floor is 0" in refused.stderr) == (6, True)


@pytest.mark.slow
def test_the_search_builds_on_the_honest_best(process: Process, folder: Path) -> None:
    ran(process, folder)
    (folder / "train.py").write_text(HONEST)
    honest = ran(process, folder).record.id
    (folder / "train.py").write_text(TYPED)
    fake = ran(process, folder).record.id
    assert process("work", str(folder), "--runs", "3").returncode == 0

    def rows() -> list:  # type: ignore[type-arg]
        return strictly(process("run", "list", "--json").stdout, RunsAnswer).runs

    wait_for(lambda: len(rows()) >= 6)
    searched = [row for row in rows() if row.id not in (honest, fake) and row.parent]
    assert len(searched) == 3
    assert fake not in {row.parent for row in searched}
    assert best(process) != fake
    assert process("run", "believe", fake).returncode == 0, "through the daemon"
    assert best(process) == fake
