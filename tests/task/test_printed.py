"""What a program prints about itself is read as it was meant, its last word counts, and no text costs much time."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.task.metric_names import direction_of
from autoresearch.task.printed import MAX_KEYS, guess_metric, numbers_in, read_metric

SUMMARY = """\
step 00952 (99.9%) | loss: 2.991 | remaining: 0s
---
val_bpb:          0.997900
training_seconds: 300.1
peak_vram_mb:     45060.2
mfu_percent:      39.80
total_tokens_M:   499.6
num_params_M:     50.3
depth:            8
"""


def test_below_a_rule_that_has_the_metric_only_the_summary_counts() -> None:
    assert read_metric(SUMMARY, "val_bpb").numbers == {
        "val_bpb": 0.9979,
        "training_seconds": 300.1,
        "peak_vram_mb": 45060.2,
        "mfu_percent": 39.8,
        "total_tokens_M": 499.6,
        "num_params_M": 50.3,
        "depth": 8.0,
    }
    assert read_metric(SUMMARY, "loss").value == 2.991
    assert read_metric("val_bpb: 1.0\n---\n", "val_bpb").value == 1.0
    assert read_metric("---\nval_bpb: 3\n---\nval_bpb: 2\nval_bpb: 1\n", "val_bpb").value == 1.0


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("val_bpb: 1.5", 1.5),
        ("  val_bpb :1.5  ", 1.5),
        ("VAL BPB = 1.5", 1.5),
        ("val_bpb: 1.5 bits/byte", 1.5),
        ("val_bpb: 1.5bits", 1.5),
        ("val_bpb: 39.8%", 39.8),
        ("val_bpb: 1,234,567.5", 1234567.5),
        ("val_bpb: 1_000", 1000.0),
        ("val_bpb: 1.5k", 1500.0),
        ("val_bpb: -1e-3", -0.001),
        ("val_bpb: .5", 0.5),
        ("val_bpb: 5.", 5.0),
        ("val_bpb: +5\r", 5.0),
        ("val_bpb: 0.93 ± 0.01", 0.93),
        ("val_bpb: 9/12 (75%)", 0.75),
        ("val_bpb: tensor([[0.5]], grad_fn=<MeanBackward0>)", 0.5),
        ("\x1b[1m\x1b[32mval_bpb:\x1b[0m 0.5", 0.5),
        ("2026-03-01 10:00:00,123 - INFO - [eval] val_bpb: 0.5", 0.5),
        ("epoch 3/10: 100%|████| 5/5 [00:00<00:00, 9.1it/s, val_bpb=0.5]", 0.5),
        ('{"step": 3, "val": {"bpb": 0.5}}', 0.5),
    ],
)
def test_one_number_in_many_forms(line: str, value: float) -> None:
    assert read_metric(f"before\n{line}\nbye\n", "val_bpb").value == pytest.approx(value)


@pytest.mark.parametrize("last", ["nan", "-inf", "Infinity", "None", "null", "1e999", ""])
@pytest.mark.parametrize(
    "form",
    [
        "val_loss: {}",
        "val_loss={}",
        "step 500: train loss nan, val loss {}",
        "epoch 3 val_loss: {}",
        '{{"val_loss": {}}}',
        "{{'epoch': 3, 'val_loss': {}}}",
        "val_loss: tensor([{}], grad_fn=<MeanBackward0>)",
        "| val_loss | {} |",
        "\x1b[31mval_loss: {}\x1b[0m",
    ],
)
def test_what_stands_last_decides_and_is_quoted(form: str, last: str) -> None:
    line = form.format(last)
    reading = read_metric(f"{form.format(0.31)}\n{line}\nbye\n", "val_loss")
    if last or form in ("val_loss: {}", "val_loss={}", "epoch 3 val_loss: {}", "\x1b[31mval_loss: {}\x1b[0m"):
        assert (reading.value, reading.diverged) == (None, True)
        assert reading.line in line.replace("\x1b[31m", "").replace("\x1b[0m", "")
    finite = read_metric(f"{line}\n{form.format(0.31)}\n", "val_loss")
    assert (finite.value, finite.diverged) == (0.31, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--- \n",
        "val_bpb: one",
        "val_bpb:",
        "val_bpb: 1.2.3",
        "val_bpb: 1,5,7",
        "val_bpb: [1, 2]",
        "loss: 1.0",
        "xval_bpb: 1",
        "val_bpb.x: 1",
        "val_bpb at 12:30:45",
        "val_bpb: true",
        '{"val_bpb": "high"}',
        "see val_bpb 9 earlier",
    ],
)
def test_what_is_no_number_of_this_name_is_none(text: str) -> None:
    reading = read_metric(text, "val_bpb")
    assert (reading.value, reading.diverged, reading.line) == (None, False, "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("train loss 0.2, eval loss 0.3", "eval_loss"),
        ("SPS: 812\nglobal_step=100, episodic_return=[12.]", "episodic_return"),
        ("accuracy: 0.9\ntraining took 12.3 s\npeak memory: 512 MB\nlr: 0.001", "accuracy"),
        ("val_acc: 0.9\nbest_val_acc: 0.95", "val_acc"),
        ("score: 3\nfoo: 4", "score"),
        ("time: 3.2 s", "time"),
    ],
)
def test_results_come_before_speeds_and_held_out_data_before_training(text: str, name: str) -> None:
    guess = guess_metric(text)
    assert guess
    assert guess.name == name
    assert guess.is_sure == (name != "time")


@pytest.mark.parametrize(
    ("text", "name", "value", "direction"),
    [
        ("train/val loss: 0.17 / 0.22", "val_loss", 0.22, "minimize"),
        ("Train/Test acc: 0.99/0.81", "Test_acc", 0.81, "maximize"),
        ("acc train/val = 0.5/0.6", "val_acc", 0.6, "maximize"),
        ("loss (train, val): 0.17, 0.22", "val_loss", 0.22, "minimize"),
        ("BLEU (dev/test) = 30.1/29.8", "dev_BLEU", 30.1, "maximize"),
        ("epoch 3 | train / valid rmse: 1.5 / 1.75", "valid_rmse", 1.75, "minimize"),
        ("accuracy: 45/50", "accuracy", 0.9, "maximize"),
        ("score (lower is better): 0.37", "score_lower_is_better", 0.37, "minimize"),
        ("Score: 0.37 (lower is better)", "Score_lower_is_better", 0.37, "minimize"),
        ("cost = 12 (higher is better)", "cost_higher_is_better", 12.0, "maximize"),
        ("steps to solve: 226", "steps_to_solve", 226.0, "minimize"),
        ("moves to win: 31", "moves_to_win", 31.0, "minimize"),
        ("time to accuracy: 31.5", "time_to_accuracy", 31.5, "minimize"),
        ("val_loss: 12,53", "val_loss", 12.53, "minimize"),
        ("accuracy: 93,4 %", "accuracy", 93.4, "maximize"),
        ("reward: 1,234", "reward", 1234.0, "maximize"),
        ("Results on test set:\n  mse: 0.3\nResults on training set:\n  mse: 0.1", "test_mse", 0.3, "minimize"),
        ("test:\n  mse: 0.3\ntrain:\n  mse: 0.1\n", "test_mse", 0.3, "minimize"),
        ("epoch 1\nTraining:\n\tloss 0.4\nValidation:\n\tloss 0.5\ndone: 3 s", "Validation_loss", 0.5, "minimize"),
        ("Training:\nloss: 0.5\naccuracy: 0.9\n", "accuracy", 0.9, "maximize"),
        ("val loss:\n0.3\n", "val_loss", 0.3, "minimize"),
    ],
)
def test_two_numbers_in_one_print_and_what_a_line_says_of_its_own_are_read(
    text: str, name: str, value: float, direction: str
) -> None:
    guess = guess_metric(text)
    assert guess
    assert (guess.name, guess.value, direction_of(guess.name)) == (name, pytest.approx(value), direction)


@pytest.mark.parametrize(
    "text", ["", "hello", "loaded 400 rows", "at 12:30:45 loss", "[1, 2]", '{"a": "b"}', "lr: 0.1"]
)
def test_where_no_number_can_be_a_result_none_is_taken(text: str) -> None:
    assert guess_metric(text) is None


@pytest.mark.slow
def test_a_flood_of_names_does_not_push_the_metric_out() -> None:
    flood = "".join(f"k{i}: {i}\n" for i in random.Random(0).sample(range(10**6), 30_000))

    reading = read_metric(f"val_bpb: 1\n{flood}", "val_bpb")

    assert reading.value == 1.0
    assert len(reading.numbers) <= MAX_KEYS


@pytest.mark.slow
def test_only_the_end_of_many_alike_lines_counts() -> None:
    lines = [f"step {step}: train loss {step / 7:.4f}, val loss {step / 3:.4f}" for step in range(1, 100_000)]
    assert read_metric("\n".join(lines), "val_loss").value == pytest.approx(33333.0)


@pytest.mark.parametrize(
    "text",
    [
        "a=" * 500000,
        (("a" + " " * 38 + "=") * 40 + "1\n") * 500,
        "100%|" * 200000,
        "\x1b[" * 500000,
        ("(" * 1900 + "1\n") * 300,
        ('{"a": ' * 300 + "1\n") * 300,
        ("1\t" * 900 + "\n") * 300,
        "val loss " * 200000,
    ],
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    read_metric(text, "val_loss")
    guess_metric(text)


@given(st.text(), st.floats(allow_nan=True, allow_infinity=True))
def test_no_text_gives_a_number_that_is_not_finite(text: str, number: float) -> None:
    whole = f"{text}\nx: {number}\n"
    reading = read_metric(whole, "x")

    assert all(math.isfinite(value) for value in (*reading.numbers.values(), *numbers_in(whole).values()))
    assert reading.diverged != (abs(number) <= NUMBER_MAX)
    assert reading.diverged or reading.value == number
    guess_metric(whole)


@given(st.text(alphabet="abc1.,:=|{}[]()'\"\t -/%\n\r\x1bné", max_size=300))
def test_no_text_raises(text: str) -> None:
    read_metric(text, "a")
    guess_metric(text)
    numbers_in(text)
