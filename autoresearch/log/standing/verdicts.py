"""What every screen says of a run's verdict, and of the noise of a task as replicates show it."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean
from typing import NamedTuple

from autoresearch.judging.states import Judgement
from autoresearch.judging.statistics import contradicts, student
from autoresearch.judging.verdicts import missing_sentence, verdict_sentence
from autoresearch.log.log import Log
from autoresearch.log.standing import verification
from autoresearch.log.standing.cache import cached
from autoresearch.log.standing.context import is_clocked, trust_context, whose
from autoresearch.log.standing.metrics import disbelief_sentence
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.task.model import Metric
from autoresearch.text import counted, decimals_apart, value
from autoresearch.words import DOUBTED, UNDECIDED, Disbelief, RunState


def verdict(log: Log, run: Record) -> str:
    """Who measured a run and what follows; of an undecided one in a network that attests participants, what is missing.

    A run of which nobody can measure anything lacks nothing.
    """
    judged, body = verification.judgement(log, run.id), run.body_as(Run)
    if judged.state is RunState.NOT_BELIEVED:
        is_final = log.beliefs.of([run.id]).get(run.id) is Disbelief.FLOOR
        hint = "" if is_final else f"; if the number is true: autoresearch run believe {short_id(run.id)}"
        return disbelief_sentence(log, run.id) + hint
    if body.value is None and not judged.voters and not any(judged.evidence):
        return "it has no value, so there is nothing to verify"
    missing = ""
    if judged.state in UNDECIDED and body.value is not None and log.trust.names_anybody:
        terms = verification.terms_of(log, body, verification.voters_at(log, run))
        missing = missing_sentence(judged, terms, has_parent=body.parent is not None)
    return verdict_sentence(judged, missing=missing)


def verdict_of(log: Log, run_id: bytes, judged: Judgement) -> str:
    """The same for a run in a list, by its judgement; empty where nothing but its author's record tells of it."""
    if not (judged.voters or any(judged.evidence) or judged.state is not RunState.REPORTED):
        return ""
    if judged.state is RunState.NOT_BELIEVED:
        return disbelief_sentence(log, run_id)
    # What is missing follows from the run; nothing is missing of one that is decided, and its record is not read.
    return verdict(log, log.records.get(run_id)) if judged.state in UNDECIDED else verdict_sentence(judged)


# Half of a 95 % interval, in standard deviations.
WIDE = 1.96
# So many of the newest runs of a task are looked at.
_NEWEST = 2000
# Values that differ less are equal apart from rounding.
_ROUNDING = 1e-6


class LearntNoise(NamedTuple):
    """The standard deviation of replicates around the means of their programs, of ``runs`` runs of ``programs``."""

    deviation: float
    runs: int
    programs: int

    @property
    def freedom(self) -> int:
        """The degrees of freedom."""
        return self.runs - self.programs


def learnt_noise(log: Log, task: bytes) -> LearntNoise | None:
    """How far the replicates of a task's programs vary; None where no program was run with two seeds.

    Programs that differ in their seeds alone are one.

    Runs of unattested participants do not count where the network attests any, nor do values in doubt. On a task with
    a wall clock replicates are compared on one kind of hardware.
    """
    return cached(log, ("noise", task), lambda: _learnt(log, task))


def _learnt(log: Log, task: bytes) -> LearntNoise | None:
    context, clocked = trust_context(log), is_clocked(log, task)
    groups: defaultdict[tuple[bytes, float, str], dict[tuple[bytes, int], float]] = defaultdict(dict)
    fixed = set[tuple[bytes, float]]()
    rows = log.runs.replicates(task, _NEWEST)
    by_run = verification.judgements(log, (row.id for row in rows))
    for row in rows:
        group = groups[row.seedless, row.budget, row.device if clocked else ""]
        key, same = (row.source_digest, row.replicate), (row.source_digest, row.value)
        # A source that fixes its own seed gives the same again: that says nothing of other seeds.
        is_again = row.seedless != row.source_digest and same in fixed
        if key in group or is_again or not whose(row.author, row.time, context).attested:
            continue
        if by_run[row.id].state not in DOUBTED:
            group[key] = row.value
            fixed.add(same)
    values = [list(group.values()) for group in groups.values() if len(group) > 1]
    if not values:
        return None
    runs = sum(map(len, values))
    squares = math.fsum((value - fmean(group)) ** 2 for group in values for value in group)
    largest = max(abs(value) for group in values for value in group)
    deviation = math.sqrt(squares / (runs - len(values)))
    return LearntNoise(deviation if deviation > _ROUNDING * largest else 0.0, runs, len(values))


class Spread(NamedTuple):
    """The standard deviation over seeds, by so many degrees of freedom; None: the task states it as known."""

    deviation: float
    freedom: int | None

    @property
    def wide(self) -> float:
        """The deviation of which two make a 95 % interval: of few degrees of freedom it is larger than the one seen."""
        return self.deviation if self.freedom is None else self.deviation * student(self.freedom) / WIDE

    def margin(self, runs: int, others: int) -> float:
        """Half of the 95 % interval of the difference of two programs, over so many runs of each."""
        return WIDE * self.wide * math.sqrt(1 / runs + 1 / others)


def stated_spread(log: Log, task: bytes) -> Spread:
    """How far the seed moves the value of a task, as its publisher states it; 0 where nothing is stated."""
    rules, runs = log.tasks.rules(task), _noise_runs(log, task)
    return Spread(rules.noise if rules else 0.0, runs - 1 if runs else None)


def _noise_runs(log: Log, task: bytes) -> int | None:
    """In how many runs the publisher of a task saw its noise; None: it is stated as known."""
    runs = log.tasks.stated(task, "metric", "noise_runs")
    return runs if isinstance(runs, int) and runs > 1 else None


def spread_of(log: Log, task: bytes, metric: Metric) -> Spread | None:
    """How far the seed moves the value of a task, by its metric and by the replicates here; None: nobody knows.

    What is stated from few runs is one measurement beside those of the replicates. What is stated as known holds,
    unless replicates contradict it.
    """
    learnt = learnt_noise(log, task)
    stated, runs = metric.noise, metric.noise_runs
    if stated is not None and runs is not None:
        squares, freedom = (runs - 1) * stated**2, runs - 1
        if learnt is not None:
            squares, freedom = squares + learnt.freedom * learnt.deviation**2, freedom + learnt.freedom
        return Spread(math.sqrt(squares / freedom), freedom)
    if learnt is not None and (stated is None or noise_doubt(log, task)):
        return Spread(learnt.deviation, learnt.freedom)
    return None if stated is None else Spread(stated, None)


# So many of a task's best programs are to be told apart.
_BEST = 10


def decimals_of(log: Log, task: bytes) -> int | None:
    """So many decimals tell the values of a task apart, by its noise or by its best programs; None: the usual ones."""
    return cached(log, ("decimals", task), lambda: _decimals(log, task))


def _decimals(log: Log, task: bytes) -> int | None:
    noise = stated_spread(log, task).deviation
    if not noise and not verification.is_exact(log, task) and (learnt := learnt_noise(log, task)):
        noise = learnt.deviation
    return decimals_apart(noise, () if noise else (row.mean for row in log.programs.ranked(task, limit=_BEST)))


def noise_doubt(log: Log, task: bytes) -> str:
    """A sentence where the replicates here vary otherwise than the task states; empty where they agree.

    What a task states from a few runs is a guess, which nothing contradicts.
    """
    if _noise_runs(log, task):
        return ""
    learnt, rules = learnt_noise(log, task), log.tasks.rules(task)
    stated = rules.noise if rules else 0.0
    is_stated = stated > 0 or verification.is_exact(log, task)
    if learnt is None or not is_stated or not contradicts(stated, learnt.deviation, learnt.freedom):
        return ""
    runs = f"{counted(learnt.runs, 'run')} of {counted(learnt.programs, 'program')}"
    return f"the task states a noise of {value(stated)}; here {runs} vary by {value(learnt.deviation)} between seeds"
