"""Which proposer makes the next change, and why not another: limits, pauses after failures, shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoresearch.errors import UsageError
from autoresearch.proposers import Brought, choose
from autoresearch.proposers.draws import Draws
from autoresearch.settings import Settings
from autoresearch_daemon.minds.ledger import Spent

SEARCH, LLM, COMMAND, MIX = "search", "llm", "command", "mix"
WORDS = {LLM: "language model", COMMAND: "command that proposes changes"}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a proposer stands now. ``ready_ms``: not to be asked before; ``failure``: why its last attempt failed."""

    today: Spent = field(default_factory=Spent)
    ready_ms: int = 0
    failure: str = ""


def configured(settings: Settings) -> list[str]:
    """The proposers that this node has: the search always."""
    found = [SEARCH]
    if settings.llm.model:
        found.append(LLM)
    if settings.agent.command:
        found.append(COMMAND)
    return found


def check_proposer(wanted: str, settings: Settings) -> None:
    """Refuse to work with a proposer that this node does not have. Raises UsageError."""
    able = configured(settings)
    if wanted == MIX and len(able) == 1:
        raise UsageError(
            "there is nothing to mix: this node has the search alone",
            hint="autoresearch config set llm.model NAME, or agent.command",
        )
    if wanted not in (MIX, *able):
        key = "llm.model NAME" if wanted == LLM else "agent.command 'PROGRAM {prompt_file}'"
        raise UsageError(f"this node has no {WORDS[wanted]} yet", hint=f"autoresearch config set {key}")


def objection(name: str, settings: Settings, standing: Standing, now_ms: int) -> str:
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
        return f"{standing.failure}; it is asked again in {seconds} s"
    return ""


def next_proposer(
    wanted: str, settings: Settings, standings: Mapping[str, Standing], brought: Mapping[str, Brought],
    draws: Draws, now_ms: int,
) -> tuple[str, str]:  # fmt: skip
    """Who makes the next change, and why the one that is wanted does not; the search takes every other's place."""
    if wanted == MIX:
        able = {
            name: brought.get(name, Brought())
            for name in configured(settings)
            if not objection(name, settings, standings.get(name, Standing()), now_ms)
        }
        return choose(able, draws), ""
    reason = objection(wanted, settings, standings.get(wanted, Standing()), now_ms)
    return (SEARCH, reason) if reason else (wanted, "")
