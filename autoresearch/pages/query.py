"""The state of the progress page as the query of its address, and back. Pure.

The whole state is in the address: filters, order, page, axes, zoom, size of the chart. What has its default is left
out. An address that somebody typed or cut is read as far as it can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, get_args
from urllib.parse import urlencode

from autoresearch.api import MAXIMUM_ROWS, Axis, ProgressOf, RunsOf
from autoresearch.words import RunMark

AXES: Final[tuple[str, ...]] = get_args(Axis)
UPS = ("value", "distance", "full")
SIZES = ("", "small", "large")
SORTS = ("number", "time", "value", "change", "cost")
LARGEST = 2**53
LAST_PAGE = 2**31
# As long as the operations take.
LONGEST = {"task": 128, "by": 64, "has": 64, "q": 200, "hardware": 128}
CHOICES = {
    "x": AXES,
    "y": UPS,
    "chart": SIZES,
    "sort": tuple(f"{minus}{name}" for name in SORTS for minus in ("", "-")),
}
BOUNDS = {
    "page": (1, LAST_PAGE),
    "size": (1, MAXIMUM_ROWS),
    "until": (0, LARGEST),
    "since": (0, LARGEST),
    "to": (0, LARGEST),
}
# What narrows the runs down; the rest says how they are shown.
FILTERS = ("state", "by", "has", "q", "hardware")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What the progress page shows.

    ``state`` are marks; empty: all. ``x`` and ``y`` are the axes, ``since`` and ``to`` bound ``x`` in its unit (zoom).
    ``chart`` is empty, ``small`` or ``large``. ``until`` keeps new runs off the pages after the first.
    """

    task: str = ""
    state: tuple[str, ...] = ()
    by: str = ""
    has: str = ""
    q: str = ""
    hardware: str = ""
    sort: str = "-time"
    page: int = 1
    size: int = 50
    until: int = 0
    x: str = "number"
    y: str = "value"
    since: int = 0
    to: int = 0
    chart: str = ""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Query:
        """The query of an address. What is unknown, out of range or too long has its default; the last of two counts.

        ``state`` may be given as a form does, once for each mark, or with commas.
        """
        given: dict[str, Any] = {}
        marks: set[str] = set()
        for name, text in pairs:
            if name == "state":
                marks |= set(text.split(","))
            elif (found := _read(name, text)) is not None:
                given[name] = found
        return cls(state=tuple(mark.value for mark in RunMark if mark.value in marks), **given)

    def with_(self, **changes: object) -> Query:
        """The same but for some fields. Another filter or order begins on its first page, with the newest runs."""
        if changes.keys() & {*FILTERS, "sort", "size"}:
            changes = {"page": 1, "until": 0, **changes}
        return replace(self, **changes)  # type: ignore[arg-type]  # each is checked by who calls

    def cleared(self) -> Query:
        """Without filters."""
        return self.with_(state=(), by="", has="", q="", hardware="")

    @property
    def is_filtered(self) -> bool:
        """Whether it narrows the runs down."""
        return any(getattr(self, name) for name in FILTERS)

    def search(self) -> str:
        """The short form, without what has its default: ``state=confirmed&sort=value``."""
        usual = Query()
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        said = {name: value for name, value in given if value != getattr(usual, name)}
        if self.state:
            said["state"] = ",".join(self.state)
        return urlencode(said, safe=",")

    def address(self, **changes: object) -> str:
        """The address of the progress page in this state, or with some changes."""
        search = self.with_(**changes).search()
        return f"/?{search}" if search else "/"

    def runs(self) -> RunsOf:
        """The runs of the table."""
        return RunsOf(**self._filter(), sort=self.sort, page=self.page, size=self.size, until=self.until)

    def newest(self) -> RunsOf:
        """The last run of the task alone: its ``cost_ms`` is the processor time of all."""
        return RunsOf(task=self.task or None, sort="-number", size=1)

    def all_progress(self) -> ProgressOf:
        """All runs of the chart, or of the part that is zoomed to."""
        return ProgressOf(task=self.task or None, **self._axis())

    def found_progress(self) -> ProgressOf:
        """Those of them that the filter finds."""
        return ProgressOf(**self._filter(), **self._axis())

    def _axis(self) -> dict[str, Any]:
        return {"x": self.x, "since": self.since, "to": self.to}

    def _filter(self) -> dict[str, Any]:
        task, state = self.task or None, ",".join(self.state)
        return {"task": task, "state": state, "by": self.by, "has": self.has, "q": self.q, "hardware": self.hardware}


def _read(name: str, text: str) -> str | int | None:
    """A field's value, or None where the text says none."""
    if name in LONGEST:
        return text[: LONGEST[name]].strip()
    if name in CHOICES:
        return text if text in CHOICES[name] else None
    if name in BOUNDS and text.isascii() and text.isdigit() and len(text) < 20:
        low, high = BOUNDS[name]
        return int(text) if low <= int(text) <= high else None
    return None
