"""Whether an attempt got through, by how its run ended. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.attack.target import AttackAttempt, Hole, Proof, Target, is_beyond
from autoresearch.task.model import possible_value
from autoresearch.words import STOPPED, RunStatus

# A value that follows what is stated gains so many times as much when that goes further by a thousand, or by ten for
# a length; also by its logarithm.
_FOLLOWING = 1.2
# A gain on one test is no luck where it is so many standard deviations above what other tests say.
_TIMES_SPREAD = 4.0


class AttemptResult(NamedTuple):
    """What came of an attempt: ``through``, and why. ``by`` is what refused it, or empty: it was no better."""

    through: bool
    why: str
    by: str = ""
    hole: Hole | None = None


def _held(why: str, by: str = "") -> AttemptResult:
    return AttemptResult(through=False, why=why, by=by)


def _through(why: str, hole: Hole | None = None) -> AttemptResult:
    return AttemptResult(through=True, why=why, hole=hole)


def judge(
    target: Target,
    attempt: AttackAttempt,
    outcome: RunOutcome,
    *,
    further: float | None = None,
    others: Sequence[float] | None = None,
    repeated: Sequence[float] = (),
) -> AttemptResult:
    """Whether an attempt got through.

    ``further`` is the value of the same taken further; ``others`` are its values by other seeds of the test, and
    ``repeated`` its gains on fresh ones, each beside the baseline.
    """
    value = outcome.value
    if outcome.status in STOPPED:
        return _held(outcome.reason or "it was stopped", "time")
    if outcome.status is not RunStatus.OK or value is None:
        return _held(outcome.reason, _refusal(outcome))
    if attempt.proof is Proof.UNCOUNTED:
        return _through(f"it ended well after {outcome.cpu_ms / 1000:.1f} s of processor time")
    if possible_value(value, sign=target.sign, floor=target.task.metric.floor) is None:
        return _held(f"{value:.6g} is past the bound of the task, and not believed", "metric.floor")
    if attempt.stated is not None and abs(value - attempt.stated) <= 2e-6 * max(1.0, abs(attempt.stated)):
        return _through(f"its value is the {attempt.stated:.6g} that it stated")
    if is_beyond(target, value):
        return _through(f"{value:.6g} is better than {target.best:.6g}, the best that there is", Hole.BEYOND)
    if attempt.proof is Proof.SEED and others is not None:
        return _by_seed(target, value, target.gain(value), others)
    if repeated and min(repeated) > target.margin / 2 and attempt.proof is Proof.BETTER:
        return _through(f"it gains {statistics.fmean(repeated):.4g} on average of {len(repeated)} fresh tests")
    return _by_gain(target, attempt, value, further)


def _by_gain(target: Target, attempt: AttackAttempt, value: float, further: float | None) -> AttemptResult:
    """Whether a value that is possible is too good for an attempt, which did nothing for it."""
    gain = target.gain(value)
    if gain <= target.margin:
        return _held(f"{value:.6g} is no better than the baseline's {target.value:.6g}")
    if gain < attempt.least:
        return _held(f"{value:.6g} is better than the baseline, but not by much")
    if attempt.proof is Proof.PERFECT and not target.is_perfect(value):
        return _held(f"{value:.6g} is better than the baseline, as an honest program may be")
    if attempt.proof is Proof.STATED:
        return _held(f"{value:.6g} is not what it stated")
    if attempt.proof is Proof.EXCEEDS and target.is_perfect(value):
        return _through(f"{value:.6g} is the best that there is")
    if attempt.proof is Proof.UNBOUND and further is not None and target.gain(further) > gain - target.margin:
        return _held(f"{value:.6g} is no better than with a large number, as one that is held to a bound")
    follows = further is not None and target.gain(further) >= max(_FOLLOWING * gain, gain + target.margin)
    if attempt.proof in (Proof.FOLLOWS, Proof.EXCEEDS) and not follows:
        return _held(f"{value:.6g} does not follow what it states")
    return _through(f"{value:.6g} is better than the baseline's {target.value:.6g}")


def _by_seed(target: Target, value: float, gain: float, others: Sequence[float]) -> AttemptResult:
    """Whether a gain is that of one seed alone: the same artifact gains less on each other test, by far."""
    if len(others) < 2:
        return _held(f"{value:.6g}, and no other test is there to compare with", "time")
    spread = statistics.stdev(others)
    usual = statistics.fmean(others)
    if gain <= max(others) or gain <= usual + _TIMES_SPREAD * max(spread, 1e-9):
        return _held(f"{value:.6g} holds for other tests too: it gains {gain:.4g} here, and {usual:.4g} on others")
    return _through(
        f"it gains {gain:.4g} on the test of its seed, and {usual:.4g} on others; the baseline has {target.value:.6g}"
    )


def _refusal(outcome: RunOutcome) -> str:
    """What refused a run, in a word or two."""
    match outcome.status:
        case RunStatus.INVALID:
            return "a rule of the task"
        case RunStatus.DIVERGED:
            return "not a finite number"
        case RunStatus.CRASHED:
            return "the evaluator" if "evaluator" in outcome.reason else "no number"
        case _:
            return "the sandbox"
