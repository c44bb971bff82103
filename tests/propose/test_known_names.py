"""Names say what a number may be, and what is never turned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.known_names import guess
from autoresearch.propose.program.ranges import Value


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        ("LR", 3e-4, "1e-05 .. 0.009 (log)"),
        ("learningRate", 0.1, "0.003333 .. 1 (log)"),
        ("--learning-rate", 4.0, "0.1333 .. 10 (log)"),  # outside the known range: four times that value, at most 10
        ("cfg.optim.weight_decay", 0.0, "one of 0.0 0.0001 0.001 0.01 0.1"),
        ("Config.weight_decay", 0.1, "0.001 .. 1 (log)"),
        ("beta2", 0.97, "one of 0.9 0.95 0.97 0.98 0.99 0.995 0.999"),
        ("BETAS[1]", 0.999, "one of 0.9 0.95 0.98 0.99 0.995 0.999"),
        ("ADAM_EPS", 1e-8, "1e-10 .. 1e-06 (log)"),
        ("dropout", 0.6, "0 .. 0.9"),
        ("batch_size", 12, "one of 3 6 12 24 48"),
        ("n_layer", 12, "6 .. 24"),
        ("n_head", 6, "one of 3 6 12 24"),
        ("n_embd", 384, "one of 96 192 384 768 1536"),
        ("hidden_size", 25, "6 .. 100 (log)"),
        ("warmup_steps", 200, "50 .. 800 (log)"),
        ("warmup_ratio", 0.1, "0 .. 0.5"),
        ("momentum", 0.0, "one of 0.0 0.5 0.8 0.9 0.95 0.98 0.99"),
        ("grad_clip", 0.0, "one of 0.0 0.3 1.0 3.0"),
        ("max_grad_norm", 1.0, "0.1 .. 10 (log)"),
        ("label_smoothing", 0.1, "0 .. 0.3"),
        ("n_estimators", 100, "25 .. 400 (log)"),
        ("max_depth", 6, "3 .. 12"),
        ("C", 1.0, "0.03333 .. 30 (log)"),
        ("alpha", 1, "0.03333 .. 30 (log)"),
        ("min_samples_leaf", 1, "1 .. 8 (log)"),
        ("ema_decay", 0.999, "one of 0.8 0.9 0.95 0.98 0.99 0.995 0.999"),
        ("temperature", 2.0, "0.5 .. 8 (log)"),
        ("offset", -2.0, "-8 .. -0.5"),
        ("kernel_size", 3, "1 .. 12 (log)"),
        ("gamma", 0.1, "0.01 .. 1 (log)"),
        ("gamma", 0.99, "one of 0.8 0.9 0.95 0.98 0.99 0.995 0.999"),
        ("n_components", 16, "4 .. 64 (log)"),
        ("degree", 3, "2 .. 6"),
        ("hidden_layer_sizes[0]", 64, "one of 16 32 64 128 256"),
    ],
)  # fmt: skip
def test_the_range_that_a_name_gets(name: str, value: Value, range_: str) -> None:
    assert str(guess(name, value)) == range_


@pytest.mark.parametrize(
    "name",
    [
        "seed", "SEED", "--manual-seed", "random_state", "VERSION", "port", "data_path", "device_id", "gpu", "n_jobs",
        "num_workers", "num_classes", "vocab_size", "VOCAB", "n_samples", "train_size", "test_size", "eval_iters",
        "eval_batch_size", "val_fraction", "EvalConfig.batch_size", "log_interval", "print_every", "save_freq",
        "TIME_BUDGET", "max_seconds", "epochs", "max_iters", "n_steps", "block_size", "MAX_SEQ_LEN", "image_size",
        "in_channels", "pad_id", "PEAK_FLOPS", "use_bias", "debug", "N", "x", "BYTES_PER_TOKEN", "DATA_NOISE",
        "data.n_users", "dataset.difficulty", "Env.gravity",
    ],
)  # fmt: skip
def test_what_is_never_turned_without_a_comment(name: str) -> None:
    assert guess(name, 4) is None
    assert guess(name, 0.4) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr_decay_iters", 4),
        ("flag", 0),
        ("limit", -1),
        ("bound", 10**9),
        ("sizes[0]", 64),
        ("other", True),
        ("mode", "a"),
    ],
)
def test_what_is_not_turned_because_of_its_value(name: str, value: Value) -> None:
    assert guess(name, value) is None


@given(st.text(min_size=1, max_size=30), st.integers() | st.floats() | st.booleans() | st.text(max_size=3))
def test_any_name_and_value_give_a_range_around_the_value_or_none(name: str, value: Value) -> None:
    range_ = guess(name, value)

    if range_ is not None:
        assert value in range_.choices if range_.kind == "one of" else range_.low <= float(value) <= range_.high
