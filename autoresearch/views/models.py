"""What the views tell other rooms. Record ids are CIDs, other hashes and keys hexadecimal."""

from __future__ import annotations

import msgspec


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One run, compact: what a proposer learns from. ``time_ms`` orders, the oldest first."""

    id: str
    source_digest: str
    genome: dict[str, int | float | str | bool]
    value: float | None
    replicate: int
    parent: str | None
    base: str | None
    status: str
    author: str
    budget: float
    time_ms: int


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    """A claim: its author tries this source with this replicate until ``until_ms``."""

    id: str
    source_digest: str
    replicate: int
    author: str
    time_ms: int
    until_ms: int
    title: str


class TaskStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A task in numbers."""

    runs: int
    statuses: dict[str, int]
    programs: int
    authors: int
