"""Records of any kind: the newest, and one whole."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from autoresearch.answers.conditions import Condition
from autoresearch.answers.notes import notes_of
from autoresearch.answers.releases import release_view
from autoresearch.answers.summaries import summary
from autoresearch.answers.task_lookup import FoundTask
from autoresearch.answers.verification_state import verification_state_view
from autoresearch.api import LogAnswer, RecordView, ReleaseView, ShowAnswer
from autoresearch.log import Log, StoredRun
from autoresearch.records import Record, Run, format_id
from autoresearch.views import in_snapshot, judged, kept_answer, participant_of, run_view
from autoresearch.words import MEASURED_BY

DEFAULT_RECORDS = 50
# So many records are looked through at most for those that are wanted.
SEARCHED_MOST = 100_000


@in_snapshot
def log_answer(  # noqa: PLR0913 - one for each way to choose
    log: Log,
    *,
    kind: str | None = None,
    author: bytes | None = None,
    task: FoundTask | None = None,
    limit: int = DEFAULT_RECORDS,
    before: bytes | None = None,
    claims: bool = True,
    since_ms: int = 0,
    where: Condition | None = None,
    starred: frozenset[bytes] = frozenset(),
    only_starred: bool = False,
) -> LogAnswer:
    """The newest records first; ``before`` is the id of the last one of the page before.

    Without ``claims`` they are left out: every run has one, and they say nothing once it has ended. ``where`` chooses
    among the ``SEARCHED_MOST`` newest, and ``since_ms`` those of that time and later. ``only_starred`` leaves of all
    records those that are ``starred``.

    Raises:
        NotFound: there is no record ``before``.
    """
    mark = log.records.get(before) if before is not None else None
    digest = task.digest if task else None
    without = None if claims or kind == "claim" else "claim"
    wanted = limit
    while True:
        if only_starred:
            found = [record for record in _newest(log, starred) if _is(record, kind, author, digest)]
        else:
            found = log.records.newest(kind=kind, author=author, task=digest, limit=wanted, without=without)
        page = [
            record
            for record in found
            if (mark is None or (record.time, record.id) < (mark.time, mark.id))
            and record.time >= since_ms
            and (where is None or where(record))
        ]
        is_all = only_starred or len(found) < wanted or found[-1].time < since_ms or wanted >= SEARCHED_MOST
        if len(page) >= limit or is_all:
            return LogAnswer(records=[stated_view(log, record, starred) for record in page[:limit]])
        # The log reads from its newest end only: look further back until the page is full.
        wanted *= 4


@kept_answer
def show_answer(
    log: Log, record_id: bytes, *, marks: bool = True, starred: frozenset[bytes] = frozenset()
) -> ShowAnswer:
    """One record, whole; of a run without its author's marks when there are many to show. Raises NotFound."""
    record = log.records.get(record_id)
    forked = log.devices.forked(record)
    withdrawal = log.records.withdrawal(record)
    return ShowAnswer(
        record=stated_view(log, record, starred),
        run=run_view(log, StoredRun(record, forked)) if isinstance(record.body, Run) else None,
        verification=verification_state_view(log, record, marks=marks) if isinstance(record.body, Run) else None,
        body=plain_body(record),
        links=[format_id(link) for link in record.links],
        measured_by=_measured_by(log, record.body),
        forked=forked,
        withdrawn=withdrawal is not None,
        withdrawn_ms=withdrawal.time if withdrawal else None,
        withdrawn_reason=getattr(withdrawal.body, "reason", "") if withdrawal else "",
        notes=notes_of(log, record) if isinstance(record.body, Run) else [],
        release=_release_of(log, record),
    )


def _release_of(log: Log, record: Record) -> ReleaseView | None:
    """The component that a record releases; None where it is none, or is withdrawn."""
    return release_view(log, record.id) if log.releases.find(record.id) else None


def _newest(log: Log, ids: frozenset[bytes]) -> list[Record]:
    """The records with these ids that are here, newest first."""
    found = filter(None, map(log.records.find, ids))
    return sorted(found, key=lambda record: (record.time, record.id), reverse=True)


def _is(record: Record, kind: str | None, author: bytes | None, task: bytes | None) -> bool:
    return (
        kind in (None, record.kind)
        and author in (None, record.author)
        and task in (None, getattr(record.body, "task", None))
    )


def _measured_by(log: Log, body: object) -> str:
    """What measures on a run's task, by its definition; empty where that is not here."""
    definition = log.tasks.definition(body.task) if isinstance(body, Run) else None
    metric = (definition or {}).get("metric")
    source = metric.get("source") if isinstance(metric, Mapping) else None
    return source if isinstance(source, str) and source in MEASURED_BY else ""


def record_view(log: Log, record: Record) -> RecordView:
    """One record in a line."""
    return RecordView(
        id=format_id(record.id),
        kind=record.kind,
        author=record.author.hex(),
        seq=record.seq,
        time_ms=record.time,
        summary=summary(record.body),
        participant=participant_of(log, record.author, record.time),
    )


def stated_view(log: Log, record: Record, starred: frozenset[bytes] = frozenset()) -> RecordView:
    """One record in a line, of a run with its state; and whether it is among the ``starred``."""
    view = msgspec.structs.replace(record_view(log, record), starred=record.id in starred)
    if not isinstance(record.body, Run):
        return view
    return msgspec.structs.replace(view, state=judged(log, record).state.value)


def plain_body(record: Record) -> dict[str, object]:
    """A record's body as JSON can hold it: bytes as hex."""
    plain = _plain(msgspec.to_builtins(record.body, builtin_types=(bytes,)))
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
