"""Which values that a program printed itself are a jump: real trainings hardly ever, made-up numbers always."""

import json
import math
import random
from pathlib import Path

import pytest

from autoresearch.judging.belief import least_believed
from autoresearch.task.bounds import Bound, bound_of
from autoresearch.text import sign_of

RECORDED = Path(__file__).parents[2] / "benchmarks/recorded.jsonl"


def is_jump(value: float, seen: list[float], metric: str, direction: str) -> bool:
    sign = sign_of(direction)
    first, best = sign * seen[0], min(sign * score for score in seen)
    bound = bound_of(metric, direction, seen[:1])
    return sign * value < least_believed(best, first, bound, sign=sign)


@pytest.mark.parametrize(
    ("metric", "direction", "seen", "value"),
    [
        ("val_bpb", "minimize", [1.0179, 1.0139], 0.0001),
        ("loss", "minimize", [1.0], 0.0001),
        ("loss", "minimize", [1.0], 0.0),
        ("test_accuracy", "maximize", [0.55], 1.0),
        ("test_accuracy", "maximize", [0.55], 0.9999),
        ("accuracy", "maximize", [55.0], 100.0),
        ("perplexity", "minimize", [30.0], 1.0),
        ("r2", "maximize", [0.2, 0.3], 1.0),
        ("mse", "minimize", [0.53], 1e-9),
        ("error_rate", "minimize", [0.45], 0.0),
        ("elbo_loss", "minimize", [-120.0, -130.0], -1e6),
        ("score", "maximize", [20.0, 30.0], 1e6),
    ],
)
def test_a_made_up_number_is_a_jump(metric: str, direction: str, seen: list[float], value: float) -> None:
    assert is_jump(value, seen, metric, direction)


@pytest.mark.parametrize(
    ("metric", "direction", "seen", "value"),
    [
        ("accuracy", "maximize", [0.3509], 0.9474),  # a learning rate that learned nothing
        ("accuracy", "maximize", [0.3509, 0.9474], 1.0),  # a small test set
        ("accuracy", "maximize", [0.098], 0.985),  # from guessing
        ("accuracy", "maximize", [9.8], 98.5),
        ("val_loss", "minimize", [2.25], 0.063),
        ("mse", "minimize", [0.53], 0.043),
        ("error", "minimize", [0.0526], 0.0),
        ("perplexity", "minimize", [9000.0], 120.0),
        ("r2", "maximize", [-0.4], 0.93),
        ("reward", "maximize", [21.0], 500.0),
        ("reward", "maximize", [-1500.0], 250.0),
        ("score", "maximize", [0.0], 17.0),
        ("nll", "minimize", [1.3, 0.2], -0.4),
        ("loss", "minimize", [-3.0], -9.0),  # a density has no floor
    ],
)
def test_a_large_real_gain_is_none(metric: str, direction: str, seen: list[float], value: float) -> None:
    assert not is_jump(value, seen, metric, direction)


@pytest.mark.parametrize("half", [0, 1])
def test_no_recorded_training_is_a_jump_in_any_order(half: int) -> None:
    values = [value for line in RECORDED.read_text().splitlines()[half::2] if (value := json.loads(line)) is not None]
    order, jumps = random.Random(half), 0
    for _ in range(20):
        order.shuffle(values)
        best = values[0]
        for value in values[1:]:
            jumps += value < least_believed(best, values[0], Bound(0.0, counted=False), sign=1.0)
            best = min(best, value)
    assert jumps == 0


def test_what_is_at_the_bound_leaves_nothing_to_say() -> None:
    assert least_believed(0.0, 1.0, Bound(0.0, counted=False), sign=1.0) == -math.inf
    assert least_believed(0.0, 0.0, None, sign=1.0) == -math.inf
