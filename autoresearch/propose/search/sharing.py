"""Which of several proposers makes the next change, and why not another: limits, pauses after failures, shares. Pure.

What kind of change a model is asked for is drawn by the same rule.

A cost-aware bandit: each has a share of the runs in proportion to its gain for a unit of cost, and never less than
:data:`LEAST_SHARE`. The gain is what its changes brought this device: its newest runs on a task, each against the
best before it.
What is new is taken to be as good as the others until it has runs of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from autoresearch.errors import UsageError
from autoresearch.log.local import ModelCost, ModelLedger
from autoresearch.log.log import Log
from autoresearch.propose.program.ranges import Draws
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.settings import Settings
from autoresearch.task.model import Task
from autoresearch.text import sign_of
from autoresearch.words import Operator

LEAST_SHARE = 0.1
# Each is taken to have so many runs more, with the mean gain and the mean cost of all.
PRIOR_RUNS = 4.0
# What an hour of computing is worth, in the money that models cost.
MONEY_OF_HOUR = 1.0


@dataclass(frozen=True, slots=True)
class ProposerResults:
    """What one proposer's runs brought. ``gain`` is the sum of their gains over the best before, in the metric's unit.

    ``seconds`` of computing and ``money`` are what they cost. Runs without a gain count with 0.
    """

    runs: int = 0
    better: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    money: float = 0.0

    @property
    def cost(self) -> float:
        """Everything in money."""
        return self.seconds / 3600 * MONEY_OF_HOUR + self.money


# Less than this was not measured: no proposal costs less than a microsecond.
LEAST_COST = 1e-6


def shares(brought: Mapping[str, ProposerResults]) -> dict[str, float]:
    """The share of the next runs that each proposer gets; they sum to 1. Empty for none."""
    if not brought:
        return {}
    runs = sum(each.runs for each in brought.values())
    gain = sum(each.gain for each in brought.values())
    cost = sum(each.cost for each in brought.values())
    rates = dict.fromkeys(brought, 1.0)
    if runs and gain > 0 and cost >= LEAST_COST:
        more_gain, more_cost = PRIOR_RUNS * gain / runs, PRIOR_RUNS * cost / runs
        rates = {name: (each.gain + more_gain) / (each.cost + more_cost) for name, each in brought.items()}
    least = min(LEAST_SHARE, 1 / len(brought))
    free = 1 - least * len(brought)
    total = sum(rates.values())
    return {name: least + free * rate / total for name, rate in sorted(rates.items())}


def choose(brought: Mapping[str, ProposerResults], draws: Draws) -> str:
    """One of the proposers, drawn by their shares. Raises ValueError for none."""
    if not brought:
        raise ValueError("there is no proposer to choose from")
    left = draws.uniform()
    chosen = ""
    for name, share in shares(brought).items():
        chosen = name
        left -= share
        if left < 0:
            break
    return chosen


SEARCH, LLM, COMMAND, MIX = "search", "llm", "command", "mix"
WORDS = {LLM: "language model", COMMAND: "command that proposes changes"}


@dataclass(frozen=True, slots=True)
class ProposerStanding:
    """How a proposer stands now. ``ready_ms``: not to be asked before; ``failure``: why its last attempt failed."""

    today: ModelCost = field(default_factory=ModelCost)
    ready_ms: int = 0
    failure: str = ""


def configured(settings: Settings) -> list[str]:
    """The proposers that this node has: the search always."""
    proposers = [SEARCH]
    if settings.llm.model:
        proposers.append(LLM)
    if settings.agent.command:
        proposers.append(COMMAND)
    return proposers


def check_proposer(proposer: str, settings: Settings) -> None:
    """Refuse to work with a proposer that this node does not have. Raises UsageError."""
    able = configured(settings)
    if proposer == MIX and len(able) == 1:
        raise UsageError(
            "there is nothing to mix: this node has the search alone",
            hint="autoresearch node config set llm.model NAME, or agent.command",
        )
    if proposer not in (MIX, *able):
        key = "llm.model NAME" if proposer == LLM else "agent.command 'PROGRAM {prompt_file}'"
        raise UsageError(f"this node has no {WORDS[proposer]} yet", hint=f"autoresearch node config set {key}")


def objection(name: str, settings: Settings, standing: ProposerStanding, now_ms: int) -> str:
    """Why a proposer can't be asked now, or an empty text."""
    today = standing.today
    if name == SEARCH:
        return ""
    if name not in configured(settings):
        return f"no {WORDS[name]} is configured"
    tokens, cost = settings.llm.day_tokens, settings.llm.day_cost if name == LLM else settings.agent.day_cost
    if name == LLM and tokens and today.tokens >= tokens:
        return f"{today.tokens:,} tokens in 24 hours: the limit llm.day_tokens is reached"
    if name == COMMAND and settings.agent.day_starts and today.starts >= settings.agent.day_starts:
        return f"{today.starts} starts in 24 hours: the limit agent.day_starts is reached"
    if cost and today.cost >= cost:
        setting = "llm.day_cost" if name == LLM else "agent.day_cost"
        return f"{today.cost:.2f} spent in 24 hours: the limit {setting} is reached"
    if now_ms < standing.ready_ms:
        seconds = (standing.ready_ms - now_ms + 999) // 1000
        why, arrow, way = standing.failure.partition(" → ")
        return f"{why}; it is asked again in {seconds} s{arrow}{way}"
    return ""


def next_proposer(
    proposer: str, settings: Settings, standings: Mapping[str, ProposerStanding],
    brought: Mapping[str, ProposerResults], draws: Draws, now_ms: int,
) -> tuple[str, str]:  # fmt: skip
    """Who makes the next change, and why the one that is wanted does not; the search takes every other's place."""
    if proposer == MIX:
        able = {
            name: brought.get(name, ProposerResults())
            for name in configured(settings)
            if not objection(name, settings, standings.get(name, ProposerStanding()), now_ms)
        }
        return choose(able, draws), ""
    reason = objection(proposer, settings, standings.get(proposer, ProposerStanding()), now_ms)
    return (SEARCH, reason) if reason else (proposer, "")


# Older runs say little about what a proposer brings now.
RUNS_READ = 500


def family(proposer: str) -> str:
    """The proposer of a run's record without the model or the program behind it: “llm” of “llm/some-model/draft”."""
    return proposer.partition("/")[0]


def brought_by(
    log: Log, ledger: ModelLedger, task: Task, me: bytes, proposers: Iterable[str]
) -> dict[str, ProposerResults]:
    """What each of some proposers brought this device on a task, and what that cost in computing and in money."""
    runs = _own_runs(log, task, me)
    sums = _sums(log, runs, task, family)
    since_ms = min((record.time for record in runs), default=0)
    return {
        name: replace(sums.get(name, ProposerResults()), money=ledger.spent(name, since_ms=since_ms).cost)
        for name in proposers
    }


def operators_brought(
    log: Log, task: Task, me: bytes, proposer: str, usable: Iterable[Operator]
) -> dict[str, ProposerResults]:
    """What each kind of change by one proposer brought this device on a task, and what that cost in computing."""
    sums = _sums(log, _own_runs(log, task, me), task, lambda name: f"{family(name)}/{name.rpartition('/')[2]}")
    return {operator: sums.get(f"{proposer}/{operator}", ProposerResults()) for operator in usable}


def _own_runs(log: Log, task: Task, me: bytes) -> list[Record]:
    """The newest runs of this device, the oldest of them first."""
    runs = [stored.record for stored in log.runs.newest(task.digest, limit=RUNS_READ, author=me)]
    return sorted(runs, key=lambda record: record.time)


def _sums(log: Log, runs: Iterable[Record], task: Task, key: Callable[[str], str]) -> dict[str, ProposerResults]:
    """What runs brought by the key of their proposer: each against the best of all parents and runs before it.

    Against its own parent a proposer would be paid for beginning with a bad one.
    """
    bodies = [record.body for record in runs if isinstance(record.body, Run)]
    parents = {row.id: row.value for row in log.runs.history_of({body.parent for body in bodies if body.parent})}
    sums, sign, best = defaultdict[str, ProposerResults](ProposerResults), sign_of(task.metric.direction), math.inf
    for body in bodies:
        above = parents.get(body.parent) if body.parent else None
        best = best if above is None else min(best, sign * above)
        value = math.inf if body.value is None else sign * body.value
        is_change = body.parent is not None  # a baseline is a beginning
        gain = best - value - (task.metric.noise or 0.0) if is_change and value < best < math.inf else 0.0
        before = sums[name := key(body.proposed_by)]
        sums[name] = ProposerResults(
            runs=before.runs + 1,
            better=before.better + (gain > 0),
            gain=before.gain + max(0.0, gain),
            seconds=before.seconds + body.duration_ms / 1000,
        )
        best = min(best, value)
    return sums
