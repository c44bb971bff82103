"""What participants have done: everybody's facts, or those of one who is named."""

from __future__ import annotations

import re

from autoresearch.answers.finding import task_of
from autoresearch.answers.models import Answer
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import Log
from autoresearch.plain import one_line, plain_name
from autoresearch.views import CreditView, credit, roster_of

_KEY = re.compile(r"[0-9a-f]{4,64}")
_FORMS = "me, at least four digits of a key, or a name that only one has"


class TaskCredit(Answer, frozen=True, kw_only=True):
    """A task whose metric somebody improved."""

    digest: str
    name: str
    metric: str
    direction: str


class CreditAnswer(Answer, frozen=True, kw_only=True):
    """What participants have done that others can count. ``trust``: the network names whose word counts."""

    schema: str = "autoresearch.credit/1"
    participants: list[CreditView]
    tasks: list[TaskCredit]
    trust: bool


def credit_answer(log: Log, participant: str | None = None, *, author: bytes | None = None) -> CreditAnswer:
    """Everybody's facts, or those of one participant: ``me``, the beginning of a key, or a name that only one has.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several begin so.
        UsageError: that is no key.
    """
    everybody = credit(log)
    shown = everybody if participant is None else [_one(log, everybody, participant, author)]
    tasks = {gain.task for row in shown for gain in row.improvements}
    return CreditAnswer(
        participants=shown,
        tasks=[
            TaskCredit(digest=task, name=found.name, metric=found.metric, direction=found.direction)
            for task in sorted(tasks)
            if (found := task_of(log, bytes.fromhex(task))) is not None
        ],
        trust=bool(log.trust.attestors or log.trust.participants),
    )


def _one(log: Log, everybody: list[CreditView], text: str, author: bytes | None) -> CreditView:
    if text == "me":
        return _mine(log, everybody, author)
    key = text.strip().lower()
    found = [
        row for row in everybody if _is_key(key) and any(one.startswith(key) for one in (row.participant, *row.keys))
    ]
    found = found or _of_device(log, everybody, key) or [row for row in everybody if _has_name(row, text)]
    if len(found) > 1:
        raise AmbiguousId(f"{one_line(text, 80)} can mean several participants.", [_short(row) for row in found][:10])
    if found:
        return found[0]
    if not _is_key(key):
        raise UsageError(f"“{one_line(text, 80)}” names no participant.", hint=f"{_FORMS}: autoresearch credit")
    raise NotFound(f"Nobody whose key begins with {key} has done anything here.", hint="autoresearch credit")


def _mine(log: Log, everybody: list[CreditView], author: bytes | None) -> CreditView:
    newest = log.records(author=author, limit=1) if author else []
    if not newest or author is None:
        raise NotFound("This machine has published nothing yet.", hint="autoresearch up --work")
    root = roster_of(log).voice(author, newest[0].time).root.hex()
    found = next((row for row in everybody if root in row.keys), None)
    if found is None:
        raise NotFound("This participant has no run and no verification yet.", hint="autoresearch work")
    return found


def _of_device(log: Log, everybody: list[CreditView], text: str) -> list[CreditView]:
    """Those for whom a device speaks whose key begins so."""
    roster, newest = roster_of(log), log.records(limit=1)
    devices = [key for key in log.everybody() if key.hex().startswith(text)] if _is_key(text) else []
    roots = {roster.voice(device, newest[0].time).root.hex() for device in devices}
    return [row for row in everybody if roots.intersection(row.keys)]


def _has_name(row: CreditView, text: str) -> bool:
    return any(who.name and who.name == plain_name(text) for who in row.known_as)


def _short(row: CreditView) -> str:
    return row.known_as[0].short if row.known_as else row.participant


def _is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None
