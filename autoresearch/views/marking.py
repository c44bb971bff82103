"""What the log shows of who published a run: marks, a ban, whose run it copies."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from autoresearch.log import Log
from autoresearch.records import Record, format_id, parse_id
from autoresearch.views.copies import copies, same_models
from autoresearch.views.memory import remembered, roster_of
from autoresearch.views.models import MarkView, SubjectView
from autoresearch.views.reputation import TrackRecord, mark_view, track_records

# Whoever names more devices than this together is looked for among everybody: no query takes any number of keys.
_DEVICES_MAX = 1000


def with_marks(log: Log, subjects: Sequence[SubjectView]) -> list[SubjectView]:
    """The same subjects with what their authors did wrong, and whose runs they copy."""
    found = records_behind(log, [(bytes.fromhex(subject.author), subject.time_ms) for subject in subjects])
    originals = copied_from(log) if subjects else {}
    return [
        msgspec.structs.replace(
            subject,
            marks=_marks(records),
            banned_until_ms=banned_until(records),
            copy_of=_id(originals.get(parse_id(subject.id))),
        )
        for subject, records in zip(subjects, found, strict=True)
    ]


def copied_from(log: Log) -> dict[bytes, bytes]:
    """All runs that are copies, each with the run of another participant that had its checkpoint or program before."""
    return remembered(log, "originals", lambda: {copy.run: copy.original for copy in copies(log)} | same_models(log))


def marks_of(log: Log, run: Record) -> list[MarkView]:
    """The marks of a run's author, as far as the devices go that it has now or had then."""
    return _marks(records_behind(log, [(run.author, run.time)])[0])


def banned_until(records: Sequence[TrackRecord]) -> int | None:
    """Until when a participant's word does not count, Unix milliseconds; None when it was never banned."""
    return max((record.banned_until_ms for record in records if record.banned_until_ms), default=None)


def records_behind(log: Log, signed: Sequence[tuple[bytes, int]]) -> list[list[TrackRecord]]:
    """What the log shows of who stood behind each device at its time, looked for once for all together.

    As far as the devices go that they have now or had then. By voice and by root key: what somebody did before it was
    attested is its own too.
    """
    roster, newest = roster_of(log), log.records(limit=1)
    voices = [roster.voice(device, time_ms) for device, time_ms in signed]
    devices: set[bytes] = set()
    for (device, time_ms), voice in zip(signed, voices, strict=True):
        times = (time_ms, *(record.time for record in newest))
        devices |= {device}.union(*(roster.devices(voice.root, at_ms) for at_ms in times))
    if not devices:
        return []
    records = track_records(log, runs=log.verified_with(devices) if len(devices) <= _DEVICES_MAX else None)
    return [[records[who] for who in dict.fromkeys((voice.voice, voice.root)) if who in records] for voice in voices]


def _marks(records: Sequence[TrackRecord]) -> list[MarkView]:
    return [mark_view(mark) for record in records for mark in record.marks]


def _id(record: bytes | None) -> str | None:
    return None if record is None else format_id(record)
