"""An evaluator asks a program that runs in another sandbox: what each sees of the other is what that writes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from autoresearch.run.bench import Bench
from autoresearch.run.evaluating import evaluate
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.cli.programs import ANSWER, asking_task


@pytest.fixture
def bench(level: Level, tmp_path: Path) -> Bench:
    return Bench(level, 1, "cpu", tmp_path / "data", tmp_path / "scratch")


def evaluate_answer(tmp_path: Path, bench: Bench, answer: str, seed: int = 7, most_seconds: float = 20) -> JobOutcome:
    """What comes of an evaluation with this program at the other end."""
    task = load_task(asking_task(tmp_path / "seek", answer))
    limits = msgspec.structs.replace(task.limits, seconds=most_seconds)
    task = msgspec.structs.replace(task, limits=limits, budget=msgspec.structs.replace(task.budget, amount=0.1))
    artifact = task.folder / "begin.txt"
    artifact.write_text("50")
    return evaluate(task, task.program.decode(), artifact, bench, seed)


@pytest.mark.slow
def test_the_evaluator_asks_and_the_program_answers(tmp_path: Path, bench: Bench) -> None:
    task = load_task(asking_task(tmp_path / "seek"))

    measured = outcome = Experiment(task, plan_as_it_stands(task, task.program.decode()), bench).measure(own=True)

    assert measured.status is RunStatus.OK, measured.reason
    assert measured.value is not None
    assert 1 <= measured.value <= 7
    assert outcome.checkpoint is not None
    values = {evaluate(task, task.program.decode(), outcome.checkpoint, bench, seed).value for seed in range(4)}
    assert len(values) > 1


@pytest.mark.slow
def test_what_the_program_prints_of_itself_does_not_count(tmp_path: Path, bench: Bench) -> None:
    boasting = 'print("questions: 1", flush=True)\n' + ANSWER

    assert (
        evaluate_answer(tmp_path, bench, boasting).value
        == evaluate_answer(tmp_path / "plain", bench, ANSWER).value
        != 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "looking",
    [
        "import glob; assert not [p for p in glob.glob('/proc/*/cmdline') if 'ask.py' in open(p).read()]",
        "import os; assert os.environ['AUTORESEARCH_SEED'] != '7'",
        "import os; open('ask.py', 'w').write('print(\"questions: 1\")')",
    ],
)
def test_the_program_neither_sees_nor_changes_the_evaluator(looking: str, tmp_path: Path, bench: Bench) -> None:
    outcome = evaluate_answer(tmp_path, bench, f"{looking}\n{ANSWER}")

    assert outcome.status is RunStatus.OK, outcome.reason
    assert outcome.value == evaluate_answer(tmp_path / "plain", bench, ANSWER).value


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("raise SystemExit(3)", "the program that the task's evaluator asked did not end well"),
        ("import os; os.write(int(os.environ['AUTORESEARCH_TALK_WRITE']), bytes(1 << 20))", "did not end well"),
        ("import os\nwhile os.fork() or True: pass", "did not end well"),
        ("x = bytearray(1 << 33)", "did not end well"),
    ],
)
def test_a_program_that_does_not_answer_fails_with_its_reason(
    answer: str, reason: str, tmp_path: Path, bench: Bench
) -> None:
    outcome = evaluate_answer(tmp_path, bench, answer)

    assert outcome.status is not RunStatus.OK
    assert reason in outcome.reason
    assert outcome.value is None


def test_a_program_that_never_answers_is_stopped(tmp_path: Path, bench: Bench) -> None:
    outcome = evaluate_answer(tmp_path, bench, "import time; time.sleep(600)", most_seconds=1)

    assert outcome.status is RunStatus.TIMED_OUT
