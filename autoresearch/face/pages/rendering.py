"""Templates filled with answers, their style sheets and scripts, and where pages are.

Pages are addresses of the daemon, or files of an export beside each other. Nothing is loaded from elsewhere.
``vendor/`` has files of others, unchanged, each with its licence: htmx (https://htmx.org, 0BSD), uPlot
(https://github.com/leeoniya/uPlot, MIT).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from autoresearch import words
from autoresearch.ask.node import StatusAnswer, TaskStatus
from autoresearch.errors import UsageError
from autoresearch.face.columns import node, people, runs
from autoresearch.face.columns.column import Column, Face, short, visible
from autoresearch.face.pages.pictures import curve
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.text import (
    LAST_MS,
    age,
    counted,
    decimals_beside,
    duration,
    failures,
    largest_unit,
    lately,
    moment,
    one_line,
    percent,
    plain_name,
    sanitised,
    signed,
    size,
    unsettled,
    value,
)
from autoresearch.version import __version__

FOLDERS = (Path(__file__).parent / "static", Path(__file__).parent / "vendor")
MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
TAG_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """One file: its content, its media type, and a tag that changes with the content."""

    content: bytes
    media: str
    tag: str


@cache
def _assets() -> dict[str, Asset]:
    return {file.name: _read(file) for folder in FOLDERS for file in sorted(folder.iterdir()) if file.suffix in MEDIA}


def _read(file: Path) -> Asset:
    content = file.read_bytes()
    return Asset(content, MEDIA[file.suffix], hashlib.sha256(content).hexdigest()[:TAG_CHARACTERS])


def asset(name: str) -> Asset | None:
    """The file of that name, or None."""
    return _assets().get(name)


def asset_names() -> list[str]:
    """All of them."""
    return list(_assets())


class Destination(NamedTuple):
    """A page of the navigation."""

    name: str
    title: str
    exported: bool = False
    live: bool = True


NAVIGATION = (
    Destination("progress", "Progress", exported=True),
    Destination("board", "Board", exported=True),
    Destination("lineage", "Lineage", exported=True, live=False),  # the tree leads to it, which no export has
    Destination("tree", "Tree"),
    Destination("effects", "Effects"),
    Destination("notes", "Notes"),
    Destination("verifications", "Verifications"),
    Destination("participants", "Participants"),
    Destination("peers", "Peers"),
    Destination("tasks", "Tasks"),
    Destination("components", "Components"),
    Destination("node", "This node"),
)
HOME = "progress"


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of pages and assets. ``task`` is kept in each; ``runs`` are the runs that an export has, by id."""

    task: str = ""
    exported: bool = False
    runs: frozenset[str] = frozenset()

    def page(self, name: str, **query: str) -> str:
        """A page by its name in the navigation."""
        if self.exported:
            return "index.html" if name == HOME else f"{name}.html"
        return self._address("" if name == HOME else name, query)

    def run(self, run: str) -> str:
        """The page of a run; empty where an export lacks it."""
        if self.exported:
            return f"run-{_short(run)}.html" if run in self.runs else ""
        return self._address(f"run/{_short(run)}", {})

    def lineage(self, run: str) -> str:
        """The lineage of a run; in an export that of the best one."""
        return self.page("lineage") if self.exported else self._address("lineage", {"of": _short(run)})

    def participant(self, key: str) -> str:
        """A participant's page, or nothing."""
        return "" if self.exported else self._address(f"participants/{key}", {})

    def component(self, of: str) -> str:
        """The page of a release by its id, or of a component that ships as ``policy.q_table``; nothing in an export."""
        return "" if self.exported else self._address("component", {"of": of})

    def asset(self, name: str) -> str:
        """A style sheet or script. Its address changes with its content, so that browsers may keep it for ever."""
        file = asset(name)
        tag = file.tag if file else ""
        return f"assets/{name}" if self.exported else f"/assets/{name}?{tag}"

    def _address(self, path: str, query: dict[str, str]) -> str:
        search = urlencode({name: value for name, value in {"task": self.task, **query}.items() if value}, safe=",")
        return f"/{path}?{search}" if search else f"/{path}"


def _short(run: str) -> str:
    """The short form of an id; what is short already stays."""
    try:
        return short_id(parse_id(run))
    except UsageError:
        return quote(run, safe="")


THIN_SPACE = "\N{THIN SPACE}"
MINUS = "\N{MINUS SIGN}"
# Of what is no id.
ID_CHARACTERS = 60
# What JSON may hold and a script element may not.
_IN_SCRIPT = ((b"<", rb"\u003c"), (b">", rb"\u003e"), (b"&", rb"\u0026"))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What every page shows around its own content.

    ``task`` is the one that the page is about, ``tasks`` all that can be chosen, ``status`` the node's; None in an
    export. ``read_only``: nobody may control the node from this address.
    """

    page: str
    links: Links
    now_ms: int
    task: TaskStatus | None = None
    tasks: Sequence[TaskStatus] = ()
    status: StatusAnswer | None = None
    read_only: bool = False


def render(name: str, view: View, **values: object) -> str:
    """A page or a part of one as HTML."""
    now, is_kept = view.now_ms, view.links.exported

    def text(column: Column[Any], row: object) -> str:
        # Who reads a file later has another now.
        return moment(column.value(row)) if is_kept and column.format.page == "time" else column.text(row, now)

    context = {
        "view": view,
        "links": view.links,
        "me": view.status.participant.key if view.status else "",
        "ago": moment if is_kept else lambda time_ms: lately(time_ms, now).removesuffix(" ago"),
        "age": moment if is_kept else lambda time_ms: age(time_ms, now),
        "text": text,
        "visible": lambda columns, rows: visible(columns, rows, Face.PAGE, now),
    }
    return template(name).render(**context | values)


def template(name: str) -> Template:
    """One of the templates, with the filters that all have."""
    return _templates().get_template(name)


def compile_templates() -> None:
    """Compile all templates: the first page then takes no longer than the next."""
    environment = _templates()
    for name in environment.list_templates():
        environment.get_template(name)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "value": value,
        "signed": _signed,
        "decimals": decimals_beside,
        "percent": percent,
        "number": number,
        "duration": duration,
        "brief": largest_unit,
        "size": size,
        "moment": moment,
        "date": date,
        "short": lambda record: one_line(short(record), ID_CHARACTERS),
        "line": one_line,
        "lines": partial(sanitised, lines=True),
        "name": plain_name,
        "counted": counted,
        "unsettled": unsettled,
        "json": script_json,
        "curve": curve,
        "slug": lambda text: str(text).replace(" ", "-"),
        "heading": heading,
    }
    environment.globals |= {
        "words": words,
        "run_lists": runs,
        "people_lists": people,
        "node_lists": node,
        "version": __version__,
        "navigation": NAVIGATION,
        "failures": failures,
        "abs": abs,
        "min": min,
        "max": max,
    }
    return environment


def heading(column: Column[Any]) -> str:
    """What stands above a column, as a title; the name of a metric as its task has it: ``val_bpb``."""
    return column.title if "_" in column.title else column.title[:1].upper() + column.title[1:]


def _signed(change: float | None, decimals: int | None = None) -> str:
    text = "–" if change is None else signed(change, decimals)
    return MINUS + text[1:] if text.startswith("-") else text


def number(count: float) -> str:
    """A count with thin spaces between thousands."""
    return f"{count:,.0f}".replace(",", THIN_SPACE)


def date(time_ms: int) -> str:
    """Day and time of day in UTC."""
    return datetime.fromtimestamp(min(time_ms, LAST_MS) / 1000, UTC).strftime("%d %b %H:%M")


def script_json(answer: object) -> Markup:
    """JSON that can stand in a script element."""
    text = msgspec.json.encode(answer)
    for harmful, escaped in _IN_SCRIPT:
        text = text.replace(harmful, escaped)
    return Markup(text.decode())  # noqa: S704 - what could end the element is escaped
