"""What an attack is, what it knows of a task, what its success would mean. Pure.

An attacker knows what each participant knows: the task's folder, what the baseline prints and leaves, what a program
can read in its sandbox. An attack is tried as a whole program, or as the file that a fixed evaluator measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from autoresearch.task.metric_names import words_of
from autoresearch.task.model import Task
from autoresearch.text import sign_of

ATTACKS_VERSION = 5
"""Raised when attacks are added or changed: a report says with which it was made."""


class Hole(StrEnum):
    """What is wrong with a task that an attack got through."""

    OWN_NUMBER = "own_number"
    RUNS_CODE = "runs_code"
    PRINTS_TEXT = "prints_text"
    NOT_FINITE = "not_finite"
    INCOMPLETE = "incomplete"
    FAILURE_COUNTS = "failure_counts"
    READABLE_ANSWERS = "readable_answers"
    ORDERED = "ordered"
    KNOWN_TEST = "known_test"
    CLAIM = "claim"
    CONSTANT = "constant"
    BEYOND = "beyond"
    UNCOUNTED = "uncounted"
    LOOKS_AHEAD = "looks_ahead"
    SAME_INPUT = "same_input"
    EXIT_STATUS = "exit_status"
    STALE_FILE = "stale_file"
    BEGINS_AGAIN = "begins_again"
    OVERLAP = "overlap"
    OTHER = "other"


HOLE_SENTENCES: dict[Hole, str] = {
    Hole.OWN_NUMBER: "the program states its own number",
    Hole.RUNS_CODE: "the evaluator runs code that the program left",
    Hole.PRINTS_TEXT: "the evaluator prints text that the program left",
    Hole.NOT_FINITE: "numbers that are not finite, or absurd, count as good ones",
    Hole.INCOMPLETE: "answers that are missing, doubled or too many cost nothing",
    Hole.FAILURE_COUNTS: "an answer that nobody can read gets a good number",
    Hole.READABLE_ANSWERS: "the program can read the right answers",
    Hole.ORDERED: "the order or the names of the questions carry their answers",
    Hole.KNOWN_TEST: "the program can work out what it is tested on",
    Hole.CLAIM: "the evaluator believes what the program says of itself",
    Hole.CONSTANT: "a constant answer is better than the baseline",
    Hole.BEYOND: "a value that is impossible is accepted",
    Hole.UNCOUNTED: "work beyond the budget is not counted",
    Hole.LOOKS_AHEAD: "the model is shown what it has to predict",
    Hole.SAME_INPUT: "an answer can be remembered, or worked out while no clock runs",
    Hole.EXIT_STATUS: "a program that ends well counts as right, whatever it did",
    Hole.STALE_FILE: "a file of an earlier measurement counts, and the program can write it",
    Hole.BEGINS_AGAIN: "what was won is kept when a program begins again, and nothing counts its beginnings",
    Hole.OVERLAP: "many things may be in one place at one time",
    Hole.OTHER: "a program that somebody wrote as a cheat is better than the baseline",
}
MENDS: dict[Hole, str] = {
    Hole.OWN_NUMBER: 'move the evaluator outside the program: metric.source = "evaluator", and a file that it measures',
    Hole.RUNS_CODE: "read the artifact as JSON, safetensors or NumPy without pickle; ask code by evaluation.answers",
    Hole.PRINTS_TEXT: "have the evaluator print its numbers only, and nothing of the artifact",
    Hole.NOT_FINITE: "end the evaluator with an error where a number is not finite, out of its range or no whole count",
    Hole.INCOMPLETE: "end the evaluator with an error unless each question has one answer; compare values, not texts",
    Hole.FAILURE_COUNTS: "let the evaluator end with an error where it can't read the artifact, and print no number",
    Hole.READABLE_ANSWERS: "name the files with the answers, and those that can make them, in evaluation.withheld",
    Hole.ORDERED: "put the questions in an order that is drawn, under names that say nothing, and flag no distance",
    Hole.KNOWN_TEST: "draw the test from AUTORESEARCH_SEED with evaluation.fresh = true, or withhold what makes it",
    Hole.CLAIM: "measure it in the evaluator; read no time, size or score from the artifact",
    Hole.CONSTANT: "choose a metric that no constant answer wins, as a balanced one, or begin with a better baseline",
    Hole.BEYOND: "state the bound as metric.floor, and have the evaluator refuse what leads beyond it",
    Hole.UNCOUNTED: 'count the work in budget.unit = "work" or "seconds", and lower [limits]',
    Hole.LOOKS_AHEAD: "ask for one position at a time, as the referee does",
    Hole.SAME_INPUT: "give each call an input of its own (evaluation.fresh = true); stop the clock at the answer",
    Hole.EXIT_STATUS: "compare what the program answers, in another process, with answers that it can't read",
    Hole.STALE_FILE: "measure anew each time, in a folder where the program can't write",
    Hole.BEGINS_AGAIN: "count the steps of all beginnings together, or take back what was won before",
    Hole.OVERLAP: "end the evaluator with an error where two of them are in one place at one time",
    Hole.OTHER: "read what the program uses, and have the evaluator measure it, refuse it or hide it",
}


PAST = " is past the bound"


class Proof(StrEnum):
    """By what it is told that an attempt got through."""

    STATED = "stated"  # its value is the very number that it stated
    BETTER = "better"  # it did nothing that is worth a better value than the baseline's
    PERFECT = "perfect"  # its value is the best that there is
    FOLLOWS = "follows"  # the further it goes, the better its value, without an end
    EXCEEDS = "exceeds"  # it is absurd, and its value follows it, or is the best that there is
    UNBOUND = "unbound"  # better, and a large number in its place is not: no bound holds both
    SEED = "seed"  # better by the seed of its test, not by others
    UNCOUNTED = "uncounted"  # it cost more than it may, and ended well


@dataclass(frozen=True, slots=True)
class AttackAttempt:
    """One program, or one artifact, that is tried. ``program`` has all files of the program by name.

    ``stated`` is the number that it tries to make the value. ``note`` says which of several it is. ``further`` is the
    same taken further, for a value that follows.
    """

    program: Mapping[str, str] = field(default_factory=dict)
    artifact: bytes | None = None
    proof: Proof = Proof.BETTER
    stated: float | None = None
    note: str = ""
    further: bytes | Mapping[str, str] | None = None
    least: float = 0.0
    """The least gain that counts, where an honest change could lead to a smaller one."""
    needs: str = ""
    """The note of an earlier attempt of its attack: where that had no value, this one would have none either.

    With ``PAST`` behind it: this one is tried only where that had a value past the bound of the task.
    """


@dataclass(frozen=True, slots=True)
class Loot:
    """What a program could read: ``columns`` of values by where they stand, ``secrets`` that it should not have."""

    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()
    """Visible files that the evaluator reads and the baseline does not name."""
    is_drawn: bool = False
    """The evaluator draws its test, or reads one."""
    climbed: bytes | None = None
    """The best artifact that a program came to by trying it with the evaluator, where it can run that."""
    dialogue: Sequence[tuple[str, str]] = ()
    """What the evaluator asked the baseline's program, and what that answered."""
    rehearsed: Sequence[str] = ()
    """Better answers to the same questions, where these come again in each evaluation."""
    draws: Sequence[tuple[str, str, Mapping[str, object]]] = ()
    """How the evaluator calls functions of fixed modules: module, function, arguments."""


@dataclass(frozen=True, slots=True)
class Target:
    """A task as an attacker sees it: the baseline's ``value``, its ``noise``, what it printed and what it left.

    ``margin`` is by how much a value must be better to be more than noise. ``share`` is the part of the budget that the
    baseline had; ``cost_ms`` what that cost.
    """

    task: Task
    value: float
    noise: float
    margin: float
    printed: str = ""
    artifact: bytes | None = None
    share: float = 1.0
    cost_ms: int = 0
    loot: Loot = field(default_factory=Loot)

    @property
    def sign(self) -> float:
        """1 where less is better, else -1."""
        return sign_of(self.task.metric.direction)

    def gain(self, value: float) -> float:
        """By how much a value is better than the baseline's."""
        return self.sign * (self.value - value)

    @property
    def best(self) -> float | None:
        """The best value that the metric can have, by the task's floor or by the metric's name; None: nobody knows."""
        return self.task.metric.floor if self.task.metric.floor is not None else bound_of(self.task, self.value)

    @property
    def way(self) -> float:
        """How far it is from the baseline's value to the best, to zero, or to one for what seems to be a share."""
        if self.best is None and self.sign < 0 and 0 <= self.value <= 1:
            return max(1 - self.value, 0.1)
        return abs(self.value if self.best is None else self.best - self.value)

    def is_perfect(self, value: float) -> bool:
        """Whether a value is the best that there is."""
        return self.best is not None and abs(value - self.best) <= 1e-6 * max(1.0, abs(self.best))

    def better_number(self, turn: int = 0) -> float:
        """A number that nobody measures by chance: better than the baseline's, and possible. Each turn has another."""
        best, share = self.best, 0.5309 + 0.0137 * turn
        if best is not None and self.gain(best) > 0:
            number = self.value + share * (best - self.value)
        elif best is not None:  # the baseline is perfect: a number that is a little worse shows the same
            number = best + self.sign * (0.0173 + 0.0011 * turn) * max(abs(best), 1.0)
        else:
            number = self.value - self.sign * share * max(abs(self.value), 1.0)
        return float(f"{number:.6g}")


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack. ``tries`` gives its attempts for a task, or says as a sentence why it is not tried there.

    ``does`` says what the program does; ``hole`` what a success means. ``quick``: it is among the first half.
    """

    name: str
    does: str
    hole: Hole
    tries: Callable[[Target], Iterable[AttackAttempt] | str]
    quick: bool = False


_SHARES = frozenset(
    "accuracy acc auc auroc f1 f2 precision recall iou miou map ap mrr ndcg dice jaccard specificity sensitivity hits "  # noqa: SIM905
    "top1 top5 r2 correct match em exact pass solved success winrate balacc bacc validity coverage purity".split()
)
_NOT_NEGATIVE = frozenset(
    "rmse mse mae mape smape error err errors nll logloss perplexity ppl bpb bits loss time seconds latency duration "  # noqa: SIM905
    "elapsed runtime ms memory bytes wer cer brier distance cost wrong mistakes misclassified length".split()
)
# Losses that may be negative, whatever a name says.
_SIGNED = frozenset({"elbo", "log", "likelihood", "loglikelihood", "reward", "profit", "net"})


def bound_of(task: Task, value: float) -> float | None:
    """The best value that a metric can have by its name: 1 or 100 for a share, 0 for an error; None: no such name.

    >>> from autoresearch.task.loading import shipped_task
    >>> bound_of(shipped_task(), 1.5)
    0.0
    """
    words = set(words_of(task.metric.name))
    if sign_of(task.metric.direction) < 0:
        if not words & _SHARES or value < 0:
            return None
        return 1.0 if value <= 1 else 100.0 if value <= 100 else None
    if words & _SIGNED or not words & _NOT_NEGATIVE or value < 0:
        return None
    return 0.0


def is_beyond(target: Target, value: float) -> bool:
    """Whether a value is past the best that there is."""
    best = target.best
    if best is None:
        return False
    slack = max(1e-6 * max(1.0, abs(best)), 4 * target.noise if target.task.metric.floor is not None else 0.0)
    return target.sign * (best - value) > slack


def margin_of(task: Task, value: float, noise: float) -> float:
    """By how much a value must be better than the baseline's to be more than noise."""
    tolerance = 0.0
    if task.evaluator is not None and task.evaluator.fresh:
        tolerance = task.evaluator.tolerance
    elif task.evaluation is not None:
        tolerance = 4 * task.evaluation.tolerance
    least = 1e-9 * max(1.0, abs(value))
    return max(4 * noise, tolerance, least) if math.isfinite(noise) else math.inf
