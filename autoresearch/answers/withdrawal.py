"""What a participant may withdraw: own runs and notes, from the device that published them."""

from __future__ import annotations

from autoresearch.answers.references import resolve_reference
from autoresearch.api import WithdrawnAnswer
from autoresearch.errors import Refused
from autoresearch.log import Log
from autoresearch.records import Note, Record, Run, Withdrawal, format_id, short_id
from autoresearch.views import participant_of
from autoresearch.words import with_article

# What stays, whatever its author wants, and why.
_STAYS = {
    "verification": "others rely on it",
    "commitment": "it fixes what was measured",
    "task": "others may work on it",
}
_HINTS = {
    "attestation": "autoresearch attestor withdraw KEY",
    "identity": "autoresearch id revoke DEVICE",
    "admission": "autoresearch network dismiss WHO",
}


def own_record(log: Log, reference: str, me: bytes | None, *, archived: frozenset[bytes] = frozenset()) -> Record:
    """The run or note that the device ``me`` may withdraw; ``@mine`` is never of a task that is ``archived``.

    Raises:
        NotFound: there is no such record.
        Refused: it is no run and no note, another device's, or withdrawn already.
    """
    record = log.records.get(resolve_reference(log, reference, author=me, archived=archived))
    name, kind = short_id(record.id), with_article(record.kind)
    if not isinstance(record.body, Run | Note):
        why = f": {_STAYS[record.kind]}" if record.kind in _STAYS else ""
        raise Refused(f"{name} is {kind}, which can't be withdrawn{why}", hint=_HINTS.get(record.kind, ""))
    if record.author != me:
        author = participant_of(log, record.author, record.time)
        mine = me is not None and participant_of(log, me, record.time).key == author.key
        raise Refused(
            f"{name} was published by {'another device of yours' if mine else 'another participant'}",
            hint="withdraw it on that device" if mine else f"autoresearch show {name} says who published it",
        )
    if log.records.is_withdrawn(record):
        raise Refused(f"{name} is withdrawn already", hint=f"autoresearch show {name}")
    return record


def withdrawn_answer(record: Record, withdrawal: Record) -> WithdrawnAnswer:
    """What was withdrawn, and by which record."""
    assert isinstance(withdrawal.body, Withdrawal)
    return WithdrawnAnswer(
        id=format_id(record.id),
        kind=record.kind,
        withdrawal=format_id(withdrawal.id),
        reason=withdrawal.body.reason,
    )
