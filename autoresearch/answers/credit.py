"""What participants have done: everybody's facts, or those of one who is named."""

from __future__ import annotations

from autoresearch.answers.participants import named
from autoresearch.answers.task_lookup import FoundTask, task_of
from autoresearch.api import CreditAnswer, CreditView, TaskCredit
from autoresearch.errors import NotFound
from autoresearch.log import Log
from autoresearch.sanitise import one_line
from autoresearch.views import credit, kept_answer


@kept_answer
def credit_answer(
    log: Log, participant: str | None = None, *, author: bytes | None = None, task: FoundTask | None = None
) -> CreditAnswer:
    """Everybody's facts, or those of one participant: ``me``, the beginning of a key, or a name that only one has.

    With a ``task`` those on that task; marks are of all tasks.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several begin so.
        UsageError: that is no key, and nobody's name.
    """
    everybody = credit(log, task.digest if task else None)
    shown = everybody if participant is None else [_one(log, everybody, participant, author)]
    tasks = {gain.task for row in shown for gain in row.improvements}
    return CreditAnswer(
        participants=shown,
        tasks=[
            TaskCredit(digest=task, name=found.name, metric=found.metric, direction=found.direction)
            for task in sorted(tasks)
            if (found := task_of(log, bytes.fromhex(task))) is not None
        ],
        trust=log.trust.names_anybody,
    )


def _one(log: Log, everybody: list[CreditView], text: str, author: bytes | None) -> CreditView:
    roots = {root.hex() for root in named(log, text, author=author)}
    found = next((row for row in everybody if roots.intersection(row.keys)), None)
    if found is None:
        whose = "This participant" if text == "me" else one_line(text, 80)
        raise NotFound(f"{whose} has no run and no verification yet.", hint="autoresearch credit")
    return found
