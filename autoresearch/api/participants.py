"""A participant as answers show it, and what stands against it."""

from __future__ import annotations

import msgspec


class ParticipantView(msgspec.Struct, frozen=True, kw_only=True):
    """A participant as commands show it. `credit` takes ``short`` and ``key``.

    ``key`` is its root key, or the device's own key where no root key names the device. ``short`` is the
    beginning of it that no other key in the log has. ``name`` is the name that it chose; others may choose the same.
    """

    key: str
    short: str
    name: str = ""


# What an answer of an older daemon lacks.
NOBODY = ParticipantView(key="", short="")


class MarkView(msgspec.Struct, frozen=True, kw_only=True):
    """A mark of a participant: its own record, and the records by which everybody can check it."""

    mark: str
    record: str
    evidence: list[str]
    time_ms: int
