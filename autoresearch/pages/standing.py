"""What stands on top of the progress page: the best program, and one that is reported better. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.api import BestAnswer, ProgramView, RunRow, best_value
from autoresearch.direction import sign_of
from autoresearch.words import RunState

# A difference of two runs has twice the variance of one: below about two deviations it says nothing.
DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a task has come.

    ``best`` is the best confirmed program, or the best one that there is. ``row`` is its run as a row of the table.
    ``rival`` is only reported, and better by ``ahead`` (in the metric's unit and sign); ``is_noise``: by less than two
    standard deviations over seeds.
    """

    best: ProgramView
    row: RunRow | None = None
    rival: ProgramView | None = None
    ahead: float = 0.0
    is_noise: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Whether the best one is confirmed."""
        return self.best.state == RunState.CONFIRMED

    @property
    def value(self) -> float:
        """Its value: what verifiers measured where they did."""
        return best_value(self.best)


def best_program(answer: BestAnswer) -> ProgramView | None:
    """The one to show first: confirmed before provisional before reported."""
    return answer.confirmed or answer.provisional or answer.reported


def standing(answer: BestAnswer, row: RunRow | None = None) -> Standing | None:
    """How far the task of an answer has come; None while no run has a value."""
    best = best_program(answer)
    if best is None:
        return None
    sign = sign_of(answer.task.direction)
    open_ones = [one for one in (answer.reported, answer.provisional) if one and one.id != best.id]
    rival = min(open_ones, key=lambda one: sign * best_value(one), default=None)
    ahead = best_value(rival) - best_value(best) if rival else 0.0
    if rival is None or sign * ahead >= 0:
        return Standing(best, row)
    return Standing(best, row, rival, ahead, is_noise=abs(ahead) < DEVIATIONS * answer.task.noise)
