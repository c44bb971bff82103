"""The next change, by whoever is to make it; what fails falls back to the search, with a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autoresearch.log import BlobStore, Log
from autoresearch.prompts import Known, gather, plain_line, reply_rules
from autoresearch.proposers import Change
from autoresearch.proposers.draws import Draws
from autoresearch.recalling import known_genome
from autoresearch.research import Plan, plan_as_it_stands
from autoresearch.settings import Settings
from autoresearch.tasks import Task
from autoresearch.views import next_base, trust_context
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.minds.choosing import COMMAND, LLM, MIX, SEARCH, Standing, next_proposer
from autoresearch_daemon.minds.gains import brought_by
from autoresearch_daemon.minds.ledger import DAY_MS, Asked, Ledger, ModelFailed, not_before_ms

NAME_CHARACTERS = 64
INSIGHT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a change is wanted for: ``wanted`` is a proposer or "mix", ``me`` this device.

    ``ledger`` is the file of what was asked, ``scratch`` a folder for what a command works in.
    """

    task: Task
    settings: Settings
    wanted: str
    me: bytes
    ledger: Path
    scratch: Path
    cancelled: Callable[[], bool]


def propose_change(log: Log, blobs: BlobStore, occasion: Occasion, draws: Draws) -> Plan | str:
    """The plan of a change by a model or a command; or why the search makes the next one (empty: it is its turn)."""
    task, settings, me = occasion.task, occasion.settings, occasion.me
    building_on = next_base(log, task.digest, trust_context(log, me))
    if building_on is None:
        return ""  # the search proposes the baseline first
    with Ledger(occasion.ledger) as ledger:
        standings = {name: standing(ledger, name, now_ms()) for name in (LLM, COMMAND)}
        brought = brought_by(log, ledger, task, me, (SEARCH, LLM, COMMAND)) if occasion.wanted == MIX else {}
        chosen, reason = next_proposer(occasion.wanted, settings, standings, brought, draws, now_ms())
        if chosen == SEARCH:
            return reason
        known = gather(log, blobs, task, now_ms=now_ms(), me=me)
        if known.best.source is None:
            return "the best program has not come to this machine yet"
        turn = Turn(ledger, chosen)
        try:
            change = _change(log, occasion, known, turn)
        except ModelFailed as error:
            turn.end(str(error), error.retry_seconds)
            return f"{error} → {error.hint}" if error.hint else str(error)
        turn.end()
    genome, base = known_genome(log, blobs, task, change.source, building_on.row.first)
    return plan_as_it_stands(
        task,
        change.source,
        title=change.title,
        parent=building_on.row.first,
        base=base,
        genome=genome,
        hypothesis=change.hypothesis,
        insight=plain_line(change.insight, INSIGHT_CHARACTERS),
        expected=change.expected,
        proposer=_name(chosen, settings)[:NAME_CHARACTERS],
        kind=chosen,
    )


def standing(ledger: Ledger, name: str, at_ms: int) -> Standing:
    """How a proposer stands at a time."""
    last = ledger.last(name)
    failure = last[0].failure if last else ""
    return Standing(ledger.spent(name, since_ms=at_ms - DAY_MS), not_before_ms(last), failure)


class Turn:
    """One attempt of a proposer, and what it costs."""

    def __init__(self, ledger: Ledger, proposer: str) -> None:
        self.proposer = proposer
        self._ledger = ledger
        self._tokens, self._cost = 0, 0.0
        self._began = time.monotonic()

    def spend(self, tokens: int, cost: float) -> None:
        """It cost so much more."""
        self._tokens += tokens
        self._cost += cost

    def is_within(self, day_tokens: int, day_cost: float) -> bool:
        """Whether it may cost more, after what was spent in 24 hours; 0 is no limit."""
        today = self._ledger.spent(self.proposer, since_ms=now_ms() - DAY_MS)
        tokens, cost = today.tokens + self._tokens, today.cost + self._cost
        return not (day_tokens and tokens >= day_tokens) and not (day_cost and cost >= day_cost)

    def end(self, failure: str = "", retry_seconds: float = 0.0) -> None:
        """Keep how it went."""
        at_ms = now_ms()
        self._ledger.note(
            Asked(
                time_ms=at_ms,
                proposer=self.proposer,
                failure=failure,
                tokens=self._tokens,
                cost=self._cost,
                seconds=time.monotonic() - self._began,
                retry_ms=at_ms + int(retry_seconds * 1000) if retry_seconds else 0,
            )
        )


def _change(log: Log, occasion: Occasion, known: Known, turn: Turn) -> Change:
    task, cancelled = occasion.task, occasion.cancelled
    rules = reply_rules(log, task, known.best.source or "", now_ms=now_ms(), me=occasion.me)
    if turn.proposer == COMMAND:
        from autoresearch_daemon.minds.agent_command import change_by_command

        agent = occasion.settings.agent
        turn.spend(0, agent.cost)
        return change_by_command(known, task, rules, agent, occasion.scratch, cancelled=cancelled)
    # Workers start without the HTTP library.
    from autoresearch_daemon.minds.language_model import change_by_model

    model = occasion.settings.llm

    def may_go_on() -> bool:
        return turn.is_within(model.day_tokens, model.day_cost) and not cancelled()

    return change_by_model(known, task, rules, model, turn.spend, may_go_on=may_go_on)


def _name(chosen: str, settings: Settings) -> str:
    """What the record of a run says of its proposer."""
    behind = settings.llm.model if chosen == LLM else Path(settings.agent.command.split()[0]).name
    return f"{chosen}/{behind}"
