"""Who takes part: all of them in a table, and one with its runs, its marks and its hardware."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import (
    CreditView,
    EvidenceOf,
    OfTask,
    OfTaskAndParticipant,
    ParticipantView,
    RunsAnswer,
    RunsOf,
    VotersAnswer,
    operations,
)
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import NotFound
from autoresearch.pages import by_credit, improvement, verifications
from autoresearch.words import RunMark
from autoresearch_daemon.pages.asking import Asking

RUNS_SHOWN = 8
# The marks of runs whose value still stands.
STANDING = (RunMark.CONFIRMED, RunMark.PROVISIONAL, RunMark.NOT_REPLICATED, RunMark.LEADING, RunMark.REPORTED)


class OneParticipant(OfTask, frozen=True, kw_only=True):
    """Whose page: a beginning of its root key."""

    key: str


async def participants(asking: Asking) -> web.Response:
    """Who takes part: credit, and whose verifications count."""
    credit = await asking.ask(operations.CREDIT, OfTaskAndParticipant(task=asking.task))
    voters = await asking.ask(operations.VOTERS)
    task = await asking.task_status()
    digest = task.digest if task else ""
    return await asking.render(
        "participants.html",
        "participants",
        credit=credit,
        rows=[(one, improvement(one, digest), verifications(one)) for one in by_credit(credit.participants, digest)],
        voters=voters,
    )


async def participant(asking: Asking) -> web.Response:
    """One participant: what it has done that others can count."""
    asked = asking.parameters(OneParticipant)
    voters = await asking.ask(operations.VOTERS)
    everywhere = await asking.found(operations.CREDIT, OfTaskAndParticipant(participant=asked.key))
    credit = everywhere.participants[0] if everywhere and everywhere.participants else None
    who = _named(asked.key, credit, voters)
    keys = {who.key, *(credit.keys if credit else ())}
    newest, best = await _newest(asking, who), await _best(asking, who)
    evidence = await asking.found(operations.EVIDENCE_LIST, EvidenceOf(participant=who.key))
    runners = await asking.found(operations.RUNNERS, OfTask(task=asking.task))
    ours = [one for one in runners.runners if one.participant.key in keys] if runners else []
    status = asking.status()
    return await asking.render(
        "participant.html",
        "participants",
        who=who,
        credit=credit,
        verified=verifications(credit) if credit else 0,
        tasks={task.digest: task for task in everywhere.tasks} if everywhere else {},
        voters=voters,
        voter=next((one for one in voters.voters if one.participant.key in keys), None),
        candidate=next((one for one in voters.candidates if one.participant.key in keys), None),
        is_me=status.participant.key in keys,
        newest=newest.runs if newest else [],
        best=best.runs if best else [],
        total=newest.total if newest else 0,
        evidence=evidence.evidence if evidence else [],
        devices=[device for one in ours for device in one.devices],
    )


def _named(key: str, credit: CreditView | None, voters: VotersAnswer) -> ParticipantView:
    """The participant whose key begins so. Raises NotFound."""
    known = [*(one.participant for one in voters.voters), *(one.participant for one in voters.candidates)]
    if credit is not None:
        known = [*credit.known_as, *(ParticipantView(key=one, short=one[:8]) for one in credit.keys)]
    found = [one for one in known if one.key.startswith(key)] or (known if credit is not None else [])
    if not found:
        raise NotFound("No participant of this log has such a key.", hint="autoresearch credit")
    return found[0]


async def _newest(asking: Asking, who: ParticipantView) -> RunsAnswer | None:
    """Its newest runs on the task; None where no task is here."""
    return await asking.found(operations.RUNS, RunsOf(task=asking.task, by=who.key, size=RUNS_SHOWN))


async def _best(asking: Asking, who: ParticipantView) -> RunsAnswer | None:
    """Its best runs on the task, without those that failed or are in doubt."""
    task = await asking.task_status()
    sort = "-value" if task is not None and task.direction == MAXIMIZE else "value"
    asked = RunsOf(task=asking.task, by=who.key, sort=sort, size=RUNS_SHOWN, state=",".join(STANDING))
    return await asking.found(operations.RUNS, asked)
