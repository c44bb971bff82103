"""The training curve is read from what a program prints, whatever its lines look like."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.run.sandbox.capture import CURVE_POINTS, RunProgress, printed_curve
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Level
from autoresearch.words import RunStatus
from tests.run.sandbox.support import job


@pytest.mark.parametrize(
    "line",
    [
        "step {step} loss {loss}",
        "step {step}/100 | train loss: {loss} | val loss: 9.9 | 12.3 ms",
        "Epoch {step}: loss={loss}, val_loss=9.9, acc=0.5",
        '{{"step": {step}, "train_loss": {loss}, "val_loss": 9.9, "lr": 0.01}}',
        "[{step}] lr 0.01 Loss = {loss}",
        "10%|#### | {step}/10 [00:01<00:09, 9.5it/s, loss={loss}]",
        "iter {step} mse {loss}",
        "iter {step} best mse 0.1, mse: {loss}",
    ],
)
def test_lines_of_a_training_make_a_curve(line: str) -> None:
    losses = [3.5, 2.25, 1e-3]
    text = "\n".join(line.format(step=step, loss=loss) for step, loss in enumerate(losses))
    assert printed_curve(f"start\n{text}\nmse: 0.2\n", "mse") == losses
    assert printed_curve(text.replace("\n", "\r"), "mse") == losses


@pytest.mark.parametrize(
    "text",
    [
        "loss: 0.5\n---\nmse: 0.5",
        "step 1 val_loss 0.5\nstep 2 val_loss 0.4",
        "step 1 loss nan\nstep 2 loss inf",
        "glossary 1 2\nlossless 3\nthe closs 4",
        "mse: 0.4\nmse: 0.3",
        "",
    ],
)
def test_what_is_no_training_makes_none(text: str) -> None:
    assert printed_curve(text, "mse") == []


def test_many_points_are_the_means_of_equal_parts() -> None:
    curve = printed_curve("\n".join(f"step {step} loss {step % 2 + 1}" for step in range(6400)))
    assert curve == [1.5] * CURVE_POINTS


@given(st.text(max_size=300), st.text(max_size=20))
def test_any_text_is_borne(text: str, metric: str) -> None:
    curve = printed_curve(f"{text}\nstep 1 loss 1\n{text}\nstep 2 loss 2", metric)
    assert len(curve) <= CURVE_POINTS
    assert all(map(math.isfinite, curve))


@pytest.mark.parametrize("piece", ["a", "loss ", "loss: ", "1", "train-", "step 1 "])
def test_text_made_for_it_is_read_in_linear_time(piece: str) -> None:
    lines = (piece * 1000)[:999]
    began = time.process_time()
    printed_curve(f"{lines}\n" * 1000, "mse")
    assert time.process_time() - began < 2


def test_what_a_program_prints_is_told_while_it_runs(level: Level) -> None:
    reports: list[RunProgress] = []
    source = """
        for step in range(1, 21):
            print(f"step {step} loss {1 / step:.2f} " + "x" * 300, flush=True)
        time.sleep(1.5)
        print("step 20 loss 0.05 " + "x" * 300, flush=True)
        report(event="progress", fraction=0.5, step=20, lines=["made up"])
        while True: time.sleep(1)
    """

    def is_told() -> bool:
        return any(progress.lines and progress.fraction for progress in reports)

    outcome = execute(job(source), level=level, on_progress=reports.append, cancelled=is_told)
    assert outcome.status is RunStatus.CANCELLED
    last = next(progress for progress in reports if progress.lines and progress.lines[-1].startswith("step 20"))
    assert (len(last.lines), {len(line) for line in last.lines}, last.loss) == (8, {160}, 0.05)
    assert not any("made up" in line for progress in reports for line in progress.lines)
