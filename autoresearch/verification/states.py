"""From what others measured to the word for a run. Pure: the same reports give the same word, in any order.

reported → provisional → confirmed | not replicated
        ↘ disputed → provisional | refuted            fraud: proven by records alone
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median, median_high, median_low
from typing import NamedTuple

from autoresearch.verification.choosing import Rules
from autoresearch.verification.commitments import in_time
from autoresearch.verification.reports import EVALUATE, REPLICATE, Report
from autoresearch.verification.statistics import LOOKS, Finding, judge_pairs, standard_error
from autoresearch.words import RunState

# A dispute is decided by two thirds of the new committee.
DECIDING_SHARE = 2 / 3
# A confirmation is the word of at least so many participants besides the author, and so is a refutation.
CONFIRMING_VOICES = LOOKS[0]
# So many standard deviations over seeds honest runs of one program hardly ever lie apart in the middle of all.
_APART_NOISES = 3.0


class Judgement(NamedTuple):
    """The word for a run; the network's value with its standard error and number of runs; how many voices spoke.

    ``value`` is as those of the reports are, the smaller the better.
    ``improvement`` is the median difference to the parent that others measured, positive where the run is better; it
    too is the worse of the two in the middle where these lie far apart.
    """

    state: RunState
    value: float | None
    error: float | None
    runs: int
    voices: int
    improvement: float | None = None


def judge(
    reports: Iterable[Report],
    *,
    author: bytes,
    voices: int,
    rules: Rules,
    noise: float,
    minimum_effect: float,
    fraud: bool = False,
    pairs_only: bool = False,
) -> Judgement:
    """The word for a run, from the reports on it.

    ``author`` is the author's voice, whose own reports never count, ``voices`` how many attested voices there are. One
    voice has one report for each stage and round, its first. Below ``rules.least`` voices nothing passes provisional.
    ``pairs_only``: pairs need no evaluation before them, because none can be made.
    """
    heard = _heard(reports, author)
    pairs = [report for report in heard if (report.stage, report.round) == (REPLICATE, 0)]
    finding, count = judge_pairs(
        [report.improvements for report in pairs], noise=noise, minimum_effect=minimum_effect, most=voices - 1
    )
    told = pairs[:count] if count >= CONFIRMING_VOICES else []  # one alone is no number of the network's
    improvements = [value for report in told for value in report.improvements]
    values = [value for report in told for value in report.values]
    speakers = len({report.voice for report in heard})
    measured = (
        _middle(values, noise, worse=median_high) if values else None,
        _error(values, noise) if len(values) > 1 else None,
        len(values),
        speakers,
        _middle(improvements, noise, worse=median_low) if improvements else None,
    )
    if fraud:
        return Judgement(RunState.FRAUD, *measured)
    state = _evaluated([report for report in heard if report.stage == EVALUATE], voices, rules)
    ready = state is RunState.PROVISIONAL or (pairs_only and state is RunState.REPORTED)
    if not ready or voices < rules.least:
        return Judgement(state, *measured)
    if finding is Finding.BETTER and _is_apart(values, noise) and len(pairs) == CONFIRMING_VOICES < voices - 1:
        finding = Finding.OPEN  # how good it is, is one voice against the other: a third is asked
    if finding is not Finding.OPEN:
        state = RunState.CONFIRMED if finding is Finding.BETTER else RunState.NOT_REPLICATED
    return Judgement(state, *measured)


def _middle(values: Sequence[float], noise: float, *, worse: Callable[[Sequence[float]], float]) -> float:
    """The median; the worse of the two in the middle where these lie too far apart to be runs of one program.

    Half of what the first two say is one voice's: it must not lift the number as far as it likes.
    """
    return worse(values) if _is_apart(values, noise) else median(values)


def _is_apart(values: Sequence[float], noise: float) -> bool:
    """Whether the two in the middle lie further apart than runs of one program do."""
    return bool(values) and median_high(values) - median_low(values) > _APART_NOISES * noise


def _error(values: Sequence[float], noise: float) -> float:
    """The standard error of the values; what lies too far out to be of one program counts as if it lay just there."""
    middle, most = median(values), _APART_NOISES * noise if noise > 0 else math.inf
    return standard_error([min(max(value, middle - most), middle + most) for value in values], noise=noise)


def _heard(reports: Iterable[Report], author: bytes) -> list[Report]:
    """The reports that count, in their order: of attested voices besides the author's, one for each stage and round."""
    first: dict[tuple[bytes, str, int], Report] = {}
    for report in sorted(reports, key=lambda report: report.order):
        if report.attested and report.voice != author:
            first.setdefault((report.voice, report.stage, report.round), report)
    return sorted(first.values(), key=lambda report: report.order)


def _evaluated(evaluations: Sequence[Report], voices: int, rules: Rules) -> RunState:
    """What the evaluations come to. One that fails opens a dispute; it never rejects."""
    state, last = RunState.REPORTED, max((report.round for report in evaluations), default=0)
    quorum = min(rules.quorum, max(voices - 1, 1))
    timely = in_time(evaluations, quorum)
    for number in range(last + 1):
        spoken = [report for report in evaluations if report.round == number]
        if number and state is not RunState.DISPUTED:
            break  # nobody asked for this round
        if number == 0:
            if any(not report.passed for report in spoken):
                state = RunState.DISPUTED
            elif len(spoken) >= quorum:
                state = RunState.PROVISIONAL
            continue
        # What may be a repetition decides nothing, unless what is none decides nothing either.
        for decisive in ([report for report in spoken if report in timely], spoken):
            passed = sum(report.passed for report in decisive)
            failed = len(decisive) - passed
            if len(decisive) >= quorum and passed >= DECIDING_SHARE * len(decisive):
                state = RunState.PROVISIONAL
            elif len(decisive) >= max(quorum, CONFIRMING_VOICES) and failed >= DECIDING_SHARE * len(decisive):
                state = RunState.REFUTED  # by more than one: where there are two, it is word against word
            if state is not RunState.DISPUTED:
                break
    return state
