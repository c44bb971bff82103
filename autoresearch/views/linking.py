"""Which runs of others a new run names, so that nobody who copies one of them can say that it was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from autoresearch.log import SIGHTINGS_MOST, HeardRow, Log
from autoresearch.views.memory import roster_of
from autoresearch.views.witnesses import was_seen_before

# So many runs that came last are looked at.
_HEARD_MOST = 500
# And so many of one participant: looking for what is like them takes its time.
_EACH_MOST = 2 * SIGHTINGS_MOST


def to_link(log: Log, task: bytes, device: bytes, now_ms: int, *, parent: bytes | None) -> list[bytes]:
    """The runs of others that a run of this device links, besides its parent: none where its word does not count.

    Those that came here since its last one, of as many participants as there are, what came last first. Of several
    with one program or one checkpoint it is the one that was here first: that is what a link says.
    """
    if not roster_of(log).voice(device, now_ms).attested:
        return []
    found: dict[bytes, list[bytes]] = {}
    named = {parent}
    for run, voice in _first_heard(log, task, device, now_ms, parent):
        if run not in named and not log.has_named(device, run):
            found.setdefault(voice, []).append(run)
        named.add(run)
    turns = (run for turn in zip_longest(*found.values()) for run in turn if run is not None)
    return [run for run, _ in zip(turns, range(SIGHTINGS_MOST), strict=False)]


def heard_first(log: Log, run: bytes) -> bytes:
    """The run that was here first of those with its program or its checkpoint; itself where nobody has it.

    Which one that is depends on what came when to this log: nobody has to come to the same.
    """
    row = log.heard_run(run)
    first = _first(log, row) if row else None
    return first.id if first else run


def _first_heard(
    log: Log, task: bytes, device: bytes, now_ms: int, parent: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """The runs that were heard first, with the voices of their authors, others' alone."""
    roster = roster_of(log)
    me = roster.voice(device, now_ms).voice
    above = log.heard_run(parent) if parent else None
    looked_at: Counter[bytes] = Counter()
    for row in [*([above] if above else []), *log.heard(task, device, roster.keys, limit=_HEARD_MOST)]:
        author = roster.voice(row.author, row.time).voice
        looked_at[author] += 1
        if looked_at[author] > _EACH_MOST:
            continue
        first = _first(log, row)
        voice = roster.voice(first.author, first.time).voice if first else me
        if first and voice != me:
            yield first.id, voice


def _first(log: Log, row: HeardRow) -> HeardRow | None:
    """Of attested participants' runs that are like one, the one that others had seen first, else that came here first.

    Who was away hears of both at once, in an order that says nothing.
    """
    voice = roster_of(log).voice
    first: HeardRow | None = None
    for like in log.heard_like(row):
        if voice(like.author, like.time).attested and (first is None or was_seen_before(log, like, first)):
            first = like
    return first
