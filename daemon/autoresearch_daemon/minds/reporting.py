"""How the proposers of this node stand, for its status."""

from __future__ import annotations

from autoresearch.api import ProposerStatus
from autoresearch.log import Log
from autoresearch.paths import Paths
from autoresearch.settings import Settings
from autoresearch.tasks import Task
from autoresearch_daemon.minds.choosing import configured, objection
from autoresearch_daemon.minds.gains import brought_by
from autoresearch_daemon.minds.ledger import Ledger
from autoresearch_daemon.minds.proposing import standing


def proposers_status(
    log: Log, paths: Paths, settings: Settings, task: Task | None, *, me: bytes, now_ms: int
) -> list[ProposerStatus]:
    """Each proposer that this node has, with what it brought; none where there is only the search."""
    names = configured(settings)
    if len(names) == 1:
        return []
    with Ledger(paths.proposers) as ledger:
        brought = brought_by(log, ledger, task, me, names) if task else {}
        found = []
        for name in names:
            stands = standing(ledger, name, now_ms)
            reason = objection(name, settings, stands, now_ms)
            mine = brought.get(name)
            found.append(
                ProposerStatus(
                    name=name,
                    model=settings.llm.model if name == "llm" else settings.agent.command if name == "command" else "",
                    state="waiting" if reason else "ready",
                    reason=reason or stands.failure,
                    runs=mine.runs if mine else 0,
                    better=mine.better if mine else 0,
                    gain=mine.gain if mine else 0.0,
                    cost=mine.money if mine else 0.0,
                    tokens_today=stands.today.tokens,
                    cost_today=stands.today.cost,
                    failures_today=stands.today.failures,
                )
            )
    return found
