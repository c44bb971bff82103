"""Programs that people and their agents proposed: kept across restarts until their run begins."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from autoresearch.api import QueuedRun
from autoresearch.records import short_id
from autoresearch.research import Plan
from autoresearch_daemon import service
from autoresearch_daemon.local_state import LocalState, Proposal
from autoresearch_daemon.runs import run_in_hand


class Proposals:
    """The queue of proposals, by the name of their assignment."""

    def __init__(self, local: LocalState) -> None:
        self._local = local
        self._waiting = {proposal.name: proposal for proposal in local.proposals()}

    def add(self, task: str, plan: Plan, proposed_ms: int) -> service.Assignment:
        """Keep a plan for a task folder; returns the assignment that runs it."""
        kept = self._local.add_proposal(Proposal(task=task, plan=plan, proposed_ms=proposed_ms))
        self._waiting[kept.name] = kept
        return _assignment(kept)

    def left_over(self) -> list[service.Assignment]:
        """What waited when the daemon last ended, the oldest first."""
        return [_assignment(proposal) for proposal in self._waiting.values()]

    def plan(self, name: str) -> Plan | None:
        """The plan of an assignment; None where it is no proposal."""
        found = self._waiting.get(name)
        return found.plan if found else None

    def end(self, name: str) -> bool:
        """Forget a proposal: its run began, or nobody wants it any more. Returns whether it was there."""
        found = self._waiting.pop(name, None)
        if found is not None:
            self._local.end_proposal(found.number)
        return found is not None

    def queued(self, assignments: Sequence[service.Assignment], reason: str) -> list[QueuedRun]:
        """The proposals among the assignments that wait, in their order."""
        found = [self._waiting[each.name] for each in assignments if each.name in self._waiting]
        return [
            QueuedRun(
                name=each.name,
                title=each.plan.title,
                hypothesis=each.plan.hypothesis,
                task=each.plan.task.hex(),
                parent=None if each.plan.parent is None else short_id(each.plan.parent),
                replicate=each.plan.replicate,
                proposed_ms=each.proposed_ms,
                reason=reason if number == 0 else "after the one before it",
            )
            for number, each in enumerate(found)
        ]


def _assignment(proposal: Proposal) -> service.Assignment:
    shown = msgspec.structs.replace(run_in_hand(proposal.plan), kind="proposal")
    return service.Assignment(proposal.name, proposal.task, given=True, shown=shown)
