"""What the log here adds to the status of a node without a running daemon."""

from __future__ import annotations

import msgspec

from autoresearch.answers import task_status, untold, verifying_status, waiting, with_voter
from autoresearch.api import NOBODY, StatusAnswer, VerifyingStatus
from autoresearch.errors import NotFound
from autoresearch.log import Log
from autoresearch.views import participant_of
from autoresearch_cli import here
from autoresearch_cli.reading import open_notebook


def with_log(answer: StatusAnswer) -> StatusAnswer:
    """The same with the participant, the task and the records of the log."""
    with open_notebook() as notebook:
        try:
            task = task_status(notebook.log, notebook.task(), author=notebook.me)
        except NotFound:
            task = None
        me = notebook.me
        whose = participant_of(notebook.log, me, here.now_ms()) if me else NOBODY
        found = msgspec.structs.replace(
            answer,
            participant=whose,
            device_key=me.hex() if me else "",
            network=notebook.log.network.name,
            network_id=notebook.log.network.id.hex(),
            records=notebook.log.records.count(),
            mine=notebook.log.records.count(author=me) if me else 0,
            task=task,
            verifying=_verifying(notebook.log, me) if me else None,
        )
        return with_voter(notebook.log, found, bytes.fromhex(whose.key), here.now_ms()) if me else found


def on_task(answer: StatusAnswer, task: str) -> StatusAnswer:
    """The same with the numbers of another task. Raises NotFound, AmbiguousId."""
    with open_notebook(task) as notebook:
        return msgspec.structs.replace(answer, task=task_status(notebook.log, notebook.task(), author=notebook.me))


def _verifying(log: Log, me: bytes) -> VerifyingStatus:
    """This node's part in verification, as its log has it."""
    part = verifying_status(log, me, here.now_ms())
    return msgspec.structs.replace(part, waiting=waiting(log, me, untold(log, me, here.now_ms())))
