"""The parameters of operations that take no body: a field is a part of the path or of the query string."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from autoresearch.words import EvidenceKind

Reference = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        description="an id or a unique prefix of it, `@` (the best run) or `@mine`; with `~N` its N-th parent",
    ),
]
TaskName = Annotated[
    str, Meta(max_length=128, description="a task's name or a prefix of its digest; left out: the one worked on last")
]
# No answer has more rows than a person or a page can use; the next page is asked for with `before`.
MAXIMUM_ROWS = 200
Limit = Annotated[int, Meta(ge=1, le=MAXIMUM_ROWS, description="rows in the answer")]
Author = Annotated[str, Meta(max_length=64, description="only this key, in hex; or `me`")]
Before = Annotated[str, Meta(max_length=128, description="only records older than this one: the next page")]
Since = Annotated[int, Meta(ge=0, le=2**53, description="first replay events with a larger id, as Last-Event-ID does")]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parameters; unknown ones are refused."""


class Nothing(Parameters, frozen=True, kw_only=True):
    """No parameters."""


class OfTask(Parameters, frozen=True, kw_only=True):
    """Which task."""

    task: TaskName | None = None


class TasksOf(Parameters, frozen=True, kw_only=True):
    """Which tasks."""

    archived: Annotated[bool, Meta(description="those too that are archived on this machine")] = False


class TopOf(OfTask, frozen=True, kw_only=True):
    """Which task, and how many rows."""

    limit: Limit = 20


class OfParticipant(Parameters, frozen=True, kw_only=True):
    """Whose."""

    participant: (
        Annotated[str, Meta(max_length=64, description="`me`, or a beginning of a participant's key; left out: all")]
        | None
    ) = None


class Records(OfTask, frozen=True, kw_only=True):
    """Which records."""

    kind: Annotated[str, Meta(max_length=32, description="only this kind of record")] | None = None
    author: Author | None = None
    limit: Limit = 50
    before: Before | None = None
    starred: Annotated[bool, Meta(description="only records that are starred on this machine")] = False
    since_ms: Annotated[int, Meta(ge=0, le=2**53, description="only records of this time and later")] = 0
    where: Annotated[str, Meta(max_length=500, description="only runs that meet this, such as value<1.1")] = ""


class OneRecord(OfTask, frozen=True, kw_only=True):
    """Which record; ``@`` and ``@mine`` are those of ``task``."""

    id: Reference


class NotesOf(OfTask, frozen=True, kw_only=True):
    """Which notes."""

    query: Annotated[str, Meta(max_length=500, description="only notes with these words, the best fit first")] = ""
    limit: Limit = 20


class ReleasesOf(Parameters, frozen=True, kw_only=True):
    """Which components."""

    query: Annotated[
        str, Meta(max_length=500, description="only with these words in name, description or publisher")
    ] = ""
    type: Annotated[str, Meta(max_length=32, description="only of this type, such as environment or policy")] = ""
    yanked: Annotated[bool, Meta(description="yanked releases too")] = False
    limit: Limit = 20


Kind = Annotated[EvidenceKind, Meta(description="only evidence of this kind; of a record: which kind it may be")]


class OfTaskAndParticipant(OfParticipant, frozen=True, kw_only=True):
    """Whose, and on which task."""

    task: Annotated[str, Meta(max_length=128, description="only on this task; left out: on all")] | None = None


class EvidenceOf(OfParticipant, frozen=True, kw_only=True):
    """Which evidence."""

    kind: Kind | None = None


class OneEvidence(OneRecord, frozen=True, kw_only=True):
    """The record that is evidence, or the run that it is about."""

    kind: Kind | None = None


class Difference(OfTask, frozen=True, kw_only=True):
    """Which two runs."""

    old: Reference
    new: Reference


State = Annotated[str, Meta(max_length=200, description="only runs with these marks, with commas between them")]
By = Annotated[str, Meta(max_length=64, description="only runs of this participant: a beginning of its key, or me")]
Has = Annotated[str, Meta(max_length=64, description="only runs that change this setting or part")]
Words = Annotated[str, Meta(max_length=200, description="only runs with this text in id, title or hypothesis")]
Hardware = Annotated[str, Meta(max_length=128, description="only runs on this kind of hardware")]
Axis = Literal["number", "time", "cost"]
Sort = Annotated[str, Meta(max_length=16, description="number, time, value, change or cost; with -: largest first")]
Until = Annotated[int, Meta(ge=0, le=2**53, description="only records that were here then: see `until` of page 1")]


class Filtered(OfTask, frozen=True, kw_only=True):
    """Which runs of a task."""

    state: State = ""
    by: By = ""
    has: Has = ""
    q: Words = ""
    hardware: Hardware = ""


class RunsOf(Filtered, frozen=True, kw_only=True):
    """Which runs, in which order, which page."""

    sort: Sort = "-time"
    page: Annotated[int, Meta(ge=1, le=2**31, description="the page, from 1")] = 1
    size: Limit = 50
    until: Until = 0


class ProgressOf(Filtered, frozen=True, kw_only=True):
    """Which runs, over what. ``since`` and ``to`` bound the axis in its unit: number or milliseconds."""

    x: Annotated[Axis, Meta(description="the axis: number of the run, time, or cumulated processor time")] = "number"
    since: Annotated[int, Meta(ge=0, le=2**53, description="the beginning of the axis; 0: the first run")] = 0
    to: Annotated[int, Meta(ge=0, le=2**53, description="the end of the axis; 0: the last run")] = 0
    columns: Annotated[int, Meta(ge=10, le=2000, description="cells across, where runs are too many")] = 320
    rows: Annotated[int, Meta(ge=10, le=1000, description="cells from top to bottom")] = 100


class EventsSince(Parameters, frozen=True, kw_only=True):
    """From where."""

    since: Since | None = None
