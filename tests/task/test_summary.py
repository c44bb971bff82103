"""What a program prints about itself is read as it was meant, and never becomes NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.task.program import guess_direction, guess_metric, parse_summary

PRINTED = """\
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


def test_a_summary_is_read() -> None:
    assert parse_summary(PRINTED, "val_bpb") == {
        "val_bpb": 0.9979,
        "training_seconds": 300.1,
        "peak_vram_mb": 45060.2,
        "mfu_percent": 39.8,
        "total_tokens_M": 499.6,
        "num_params_M": 50.3,
        "depth": 8.0,
    }


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("val_bpb: 1.5", 1.5),
        ("  val_bpb :1.5  ", 1.5),
        ("val_bpb = 1.5", 1.5),
        ("val_bpb: 1.5 bits/byte", 1.5),
        ("val_bpb: 1.5bits", 1.5),
        ("val_bpb: 39.8%", 39.8),
        ("val_bpb: 1,234,567.5", 1234567.5),
        ("val_bpb: 1_000", 1000.0),
        ("val_bpb: -1e-3", -0.001),
        ("val_bpb: .5", 0.5),
        ("val_bpb: 5.", 5.0),
        ("val_bpb: +5\r", 5.0),
    ],
)
def test_spaces_units_and_thousands_are_tolerated(line: str, value: float) -> None:
    assert parse_summary(f"---\n{line}\n", "val_bpb") == {"val_bpb": value}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--- \n",
        "val_bpb: 1.0\n---\n",
        '{"val_bpb": "1.0"}',
        '{"val_bpb": NaN}',
        '{"val_bpb": true}',
        '{"val_bpb": 1.0',
        "---\nval_bpb: nan",
        "---\nval_bpb: inf",
        "---\nval_bpb: 1e999",
        "---\nval_bpb: 1,5",
        "---\nval_bpb: 1.2.3",
        "---\nval_bpb: one",
        "---\nval_bpb:",
        "---\nloss: 1.0",
        "---\nval_bpb: 1.0\n---\nloss: 2.0",
    ],
)
def test_without_a_finite_metric_after_the_last_mark_there_is_no_summary(text: str) -> None:
    assert parse_summary(text, "val_bpb") == {}


@pytest.mark.parametrize(
    "text",
    ["val_bpb: 1.0", "----\nval_bpb: 1.0", " ---\nval_bpb: 1.0", '{"val_bpb": 1.0, "name": "x"}', '  {"val_bpb": 1}'],
)
def test_without_a_mark_all_lines_count_and_json_does_too(text: str) -> None:
    assert parse_summary(f"step 3 | loss 2\n{text}\nbye\n", "val_bpb") == {"val_bpb": 1.0}


@pytest.mark.parametrize(
    ("text", "name", "direction"),
    [
        ("loss: 0.3\naccuracy: 0.93\n", "accuracy", "maximize"),
        ("train_loss: 2\nval_loss: 3\nsteps: 100\n", "val_loss", "minimize"),
        ('{"latency_ms": 12.5}', "latency_ms", "minimize"),
        ("alpha: 1\nbeta: 2\n", "beta", "minimize"),
        ("epoch: 1\nval_acc: 0.5\nepoch: 2\nval_acc: 0.6\n", "val_acc", "maximize"),
        ("Test Accuracy: 93.4%\n", "Test_Accuracy", "maximize"),
        ("Epoch 3/10 - loss: 0.4 - val_loss: 0.5\n", "val_loss", "minimize"),
        ("step 250: train loss 2.1000, val loss 2.3000\n", "val_loss", "minimize"),
        ("[INFO] epoch 10 | lr 0.1 | valid acc 0.93 | 12.3 s\ntime: 3.2 s\n", "valid_acc", "maximize"),
        ("eval_iters = 200\nstep 40: train loss 2.1, val loss 2.3\nalgorithm: 3\n", "val_loss", "minimize"),
        ("RMSE on the test set: 0.4\n", "RMSE_on_the_test_set", "minimize"),
        ("{'eval_loss': 0.69, 'eval_accuracy': '0.53', 'epoch': 1.0}\n", "eval_accuracy", "maximize"),
        ("metrics {'rmse': np.float64(0.27), 'n': 3}\n", "rmse", "minimize"),
        ("val acc: tensor(0.93, device='cuda:0')\n", "val_acc", "maximize"),
        ("Final accuracy = 0.91 (best 0.92)\n", "Final_accuracy", "maximize"),
    ],
)
def test_the_result_of_a_strangers_program_is_guessed_by_its_name(text: str, name: str, direction: str) -> None:
    found = guess_metric(text)
    assert found is not None
    assert (found[0], guess_direction(found[0])) == (name, direction)


@pytest.mark.parametrize("text", ["", "hello", "loaded 400 rows", "at 12:30:45 loss", "[1, 2]", '{"a": "b"}'])
def test_where_no_number_has_a_name_nothing_is_guessed(text: str) -> None:
    assert guess_metric(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("epoch 1, val loss 3.1\nepoch 2, val loss 2.1\n", 2.1),
        ("epoch 1 val_loss=3 val_acc=0.5\n", 3.0),
        ("val loss: 2\nat last val_loss is fine, val_loss 9 earlier\n", 2.0),
        ("val loss: nan, val loss 1,5, val loss 1.2.3, xval_loss 1, val_loss.x 1\n", None),
        ("val_loss 3\n---\nbye\n", None),
        ("val " * 2000 + "loss 1\n", None),
    ],
)
def test_a_number_among_other_words_counts_where_no_line_is_its_own(text: str, value: float | None) -> None:
    assert parse_summary(text, "val_loss").get("val_loss") == value


def test_the_last_summary_and_the_last_number_hold() -> None:
    assert parse_summary("---\nval_bpb: 3\n---\nval_bpb: 2\nval_bpb: 1\n", "val_bpb") == {"val_bpb": 1.0}


def test_a_flood_of_keys_does_not_push_the_metric_out() -> None:
    text = "---\n" + "".join(f"k{i}: {i}\n" for i in range(1000)) + "val_bpb: 1\n"

    summary = parse_summary(text, "val_bpb")

    assert summary["val_bpb"] == 1.0
    assert len(summary) <= 65


@given(st.text(), st.floats(allow_nan=True, allow_infinity=True))
def test_no_text_gives_a_number_that_is_not_finite(text: str, number: float) -> None:
    summary = parse_summary(f"---\nval_bpb: 1\n{text}\nx: {number}\n", "val_bpb")

    assert all(math.isfinite(value) for value in summary.values())
    assert not math.isfinite(number) or summary.get("x", number) == number
