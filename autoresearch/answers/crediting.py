"""What participants have done: everybody's facts, or those of one who is named."""

from __future__ import annotations

import re

from autoresearch.answers.finding import task_of
from autoresearch.answers.models import CreditAnswer, TaskCredit
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import Log
from autoresearch.views import CreditView, credit, roster_of

_KEY = re.compile(r"[0-9a-f]{4,64}")


def credit_answer(log: Log, participant: str | None = None, *, author: bytes | None = None) -> CreditAnswer:
    """Everybody's facts, or those of one participant: ``me``, or the beginning of a participant's or root key.

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
        newest = log.records(author=author, limit=1) if author else []
        if not newest or author is None:
            raise NotFound("this machine has published nothing yet", hint="autoresearch up --work")
        text = roster_of(log).voice(author, newest[0].time).root.hex()
    if not _KEY.fullmatch(text.lower()):
        raise UsageError(
            f"“{text[:80]}” names no participant.", hint="me, or at least four digits of a key: autoresearch credit"
        )
    found = [row for row in everybody if any(key.startswith(text.lower()) for key in (row.participant, *row.keys))]
    if not found:
        raise NotFound(f"Nobody whose key begins with {text} has done anything here.", hint="autoresearch credit")
    if len(found) > 1:
        raise AmbiguousId(f"{text} can mean several participants.", [row.participant for row in found][:10])
    return found[0]
