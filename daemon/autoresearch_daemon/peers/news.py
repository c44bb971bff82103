"""What follows from records of others that came in: pure but for what the log says of them."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.ask.acts.notebook import Notebook, outcome
from autoresearch.ask.show import record_view
from autoresearch.record.kinds import Claim, Commitment, Run, Verification
from autoresearch.record.record import Record
from autoresearch_daemon.service.effects import Happening, ServiceStatus, TellPeople
from autoresearch_daemon.service.inputs import Outrun, VerificationsChanged

# More records of others at once are catching up, not news.
NEWS_MAX = 16


def news_of(records: Sequence[Record], notebook: Notebook, now: ServiceStatus, now_ms: int) -> list[Happening]:
    """So many records at once that nobody reads them are told as one event."""
    happenings: list[Happening] = []
    if any(isinstance(record.body, Commitment | Verification) for record in records):
        happenings.append(VerificationsChanged())
    many = len(records) > NEWS_MAX
    if many:
        happenings.append(TellPeople("records", f"{len(records)} records of others came in", {"count": len(records)}))
    hidden = notebook.log.hidden.of([record.id for record in records])
    for record in records:
        if isinstance(record.body, Run) and not many and record.id not in hidden:
            view = record_view(notebook.log, record)
            fields = {**outcome(notebook.log, record), "author": view.author, "participant": view.participant.key}
            happenings.append(TellPeople("record", view.summary, fields))
        elif isinstance(record.body, Claim):
            key = (record.body.task, record.body.source_digest, record.body.replicate)
            if now.is_running(key) and notebook.is_outrun(record, now_ms):
                happenings.append(Outrun(key))
    return happenings
