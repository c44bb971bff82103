"""Which runs of others a new run names, so that nobody who copies one of them can say that it was there before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from autoresearch.log import SIGHTINGS_MOST, HeardRow, Log
from autoresearch.views.memory import roster_of
from autoresearch.views.witnesses import was_seen_before

# So many runs that came last are looked at.
_HEARD_MOST = 500


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


def _first_heard(
    log: Log, task: bytes, device: bytes, now_ms: int, parent: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """The runs that were heard first, with the voices of their authors, others' alone."""
    roster = roster_of(log)
    me = roster.voice(device, now_ms).voice
    above = log.heard_run(parent) if parent else None
    for row in [*([above] if above else []), *log.heard(task, device, roster.keys, limit=_HEARD_MOST)]:
        likes = [like for like in log.heard_like(task, row) if roster.voice(like.author, like.time).attested]
        if likes:
            first = _first(log, likes)
            voice = roster.voice(first.author, first.time).voice
            if voice != me:
                yield first.id, voice


def _first(log: Log, likes: list[HeardRow]) -> HeardRow:
    """The one that others had seen first, else that came here first: who was away hears of both at once."""
    first = likes[0]
    for like in likes[1:]:
        if was_seen_before(log, like, first):
            first = like
    return first
