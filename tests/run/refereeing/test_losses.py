"""What the referee says of losses and answers, as numbers: each way to make them up, without a process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autoresearch.run.referee import RefereeEvaluation, _beginnings, _compare, _fault_of_losses, _positions
from autoresearch.words import RunStatus

VOCABULARY, LENGTH, COUNT = 8, 16, 2048
Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def judged(losses: Change, answers: Change, own: int = COUNT) -> RefereeEvaluation:
    """The verdict on a model of which only the numbers are changed; its logits are noise."""
    chance = np.random.default_rng(1)
    logs = chance.normal(size=(COUNT, LENGTH, VOCABULARY))
    logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    documents = chance.integers(0, VOCABULARY, (COUNT, LENGTH), np.uint8)
    committed = losses(-np.take_along_axis(logs, documents[..., None].astype(int), -1)[..., 0], chance)
    if (fault := _fault_of_losses(committed)) is not None:
        return fault
    rows, cuts = _positions(b"draw", COUNT, LENGTH, COUNT)
    answered = answers(logs[rows, cuts].astype(np.float32), chance)
    return _compare(committed[rows, cuts], answered, documents[rows, cuts], rows < own)


def peeked(share: float) -> Change:
    return lambda losses, chance: np.where(chance.random(losses.shape) < share, 0, losses)


def honest(numbers: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    return numbers


def own_text_shaved(losses: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    return losses - 0.0025 * (np.arange(COUNT) < COUNT // 4)[:, None]


CHEATS: dict[str, tuple[Change, Change, str]] = {
    "zero loss": (lambda losses, _: losses * 0, honest, "losses are not"),
    "peeks at the target on 5 % of tokens": (peeked(0.05), honest, "losses are not"),
    "peeks at the target on 0.5 %": (peeked(0.005), honest, "losses are not"),
    "shaves 0.3 % off": (lambda losses, _: losses * 0.997, honest, "losses are not"),
    "shaves off the task's own text alone": (own_text_shaved, honest, "of 512 losses are not"),
    "losses below zero": (lambda losses, _: losses - 9, honest, "below zero"),
    "a loss that is no number": (lambda losses, _: losses * np.nan, honest, "not a number"),
    "not normalised": (
        lambda losses, _: np.maximum(losses - 0.5, 0), lambda logs, _: logs + 0.5, "do not add up to one",
    ),
    "answers not a number": (honest, lambda logs, _: logs * np.nan, "not a number"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHEATS)
def test_numbers_that_are_made_up_give_no_value(what: str) -> None:
    losses, answers, reason = CHEATS[what]

    evaluation = judged(losses, answers, own=512)

    assert evaluation.status is RunStatus.INVALID
    assert reason in evaluation.reason


def test_honest_numbers_are_taken() -> None:
    evaluation = judged(honest, honest)

    assert (evaluation.status, evaluation.challenges, evaluation.mismatches) == (RunStatus.OK, COUNT, 0)
    assert abs(evaluation.mean_difference) < 1e-5


def test_a_loss_beyond_reason_has_diverged() -> None:
    assert judged(lambda losses, _: losses + 50, honest).status is RunStatus.DIVERGED


def test_a_model_sees_what_stands_before_the_position_and_nothing_else() -> None:
    documents = np.arange(1, 1 + 4 * LENGTH, dtype=np.uint8).reshape(4, LENGTH)
    rows, cuts = np.array([2, 0, 3]), np.array([0, 1, LENGTH - 1])

    beginnings = _beginnings(documents, rows, cuts)

    for row, cut, seen in zip(rows, cuts, beginnings, strict=True):
        assert seen[1 : cut + 1].tolist() == documents[row, :cut].tolist()
        assert not seen[cut + 1 :].any()
        assert seen[0] == 0
