"""Annotations of a run: its author's marks and ban, and the run that it copies."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from autoresearch.api import MarkView, ProgramView
from autoresearch.log import Log
from autoresearch.records import Record, format_id, parse_id
from autoresearch.views.cache import kept, roster_of
from autoresearch.views.copies import copies, same_models
from autoresearch.views.reputation import TrackRecord, mark_view, track_records

# With more devices than this, all runs are read: a query takes a bounded number of keys.
_DEVICES_MAX = 1000


def with_marks(log: Log, programs: Sequence[ProgramView]) -> list[ProgramView]:
    """The same programs with their authors' marks and bans, and the runs that they copy."""
    found = records_behind(log, [(bytes.fromhex(program.author), program.time_ms) for program in programs])
    originals = copied_from(log) if programs else {}
    return [
        msgspec.structs.replace(
            program,
            marks=_marks(records),
            banned_until_ms=banned_until(records),
            copy_of=_id(originals.get(parse_id(program.id))),
        )
        for program, records in zip(programs, found, strict=True)
    ]


def copied_from(log: Log) -> dict[bytes, bytes]:
    """All copies, each with the run of another participant that had its checkpoint or program before."""
    found, models = copies(log), same_models(log)
    if roster_of(log).withdrawals:
        return {copy.run: copy.original for copy in found} | models
    return kept(log, "originals", lambda: ({copy.run: copy.original for copy in found} | models, ["copies", "models"]))


def marks_of(log: Log, run: Record) -> list[MarkView]:
    """The marks of a run's author, by the devices that it has now or had then."""
    return _marks(records_behind(log, [(run.author, run.time)])[0])


def banned_until(records: Sequence[TrackRecord]) -> int | None:
    """When a participant's ban ends, Unix milliseconds; None when it was never banned."""
    return max((record.banned_until_ms for record in records if record.banned_until_ms), default=None)


def records_behind(log: Log, signed: Sequence[tuple[bytes, int]]) -> list[list[TrackRecord]]:
    """The track records of the participant behind each device at its time, looked up together.

    By the devices that each participant has now or had then. By voter and by root key: what a participant did before
    its attestation belongs to it too.
    """
    roster, newest = roster_of(log), log.records.newest(limit=1)
    voters = [roster.voter(device, time_ms) for device, time_ms in signed]
    devices: set[bytes] = set()
    for (device, time_ms), voter in zip(signed, voters, strict=True):
        times = (time_ms, *(record.time for record in newest))
        devices |= {device}.union(*(roster.devices(voter.root, at_ms) for at_ms in times))
    if not devices:
        return []
    records = track_records(
        log, runs=log.verifications.verified_with(devices) if len(devices) <= _DEVICES_MAX else None
    )
    return [[records[who] for who in dict.fromkeys((voter.voter, voter.root)) if who in records] for voter in voters]


def _marks(records: Sequence[TrackRecord]) -> list[MarkView]:
    return [mark_view(mark) for record in records for mark in record.marks]


def _id(record: bytes | None) -> str | None:
    return None if record is None else format_id(record)
