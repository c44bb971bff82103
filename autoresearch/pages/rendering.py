"""Templates filled with answers. Pure but for reading the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from autoresearch import __version__, words
from autoresearch.api import StatusAnswer, TaskStatus
from autoresearch.errors import UsageError
from autoresearch.figures import LAST_MS, age, counted, duration, largest_unit, lately, moment, percent, size, value
from autoresearch.pages.links import NAVIGATION, Links
from autoresearch.records import parse_id, short_id
from autoresearch.sanitise import one_line, plain_name, sanitised

THIN_SPACE = "\N{THIN SPACE}"
MINUS = "\N{MINUS SIGN}"
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


def render(template: str, view: View, **values: object) -> str:
    """A page or a part of one as HTML."""
    now = view.now_ms
    times = {"ago": partial(_ago, now_ms=now), "age": lambda time_ms: age(time_ms, now)}
    return _templates().get_template(template).render(view=view, links=view.links, **times, **values)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "value": value,
        "signed": signed,
        "percent": percent,
        "number": number,
        "duration": duration,
        "brief": largest_unit,
        "size": size,
        "moment": moment,
        "date": date,
        "short": short,
        "line": one_line,
        "lines": partial(sanitised, lines=True),
        "name": plain_name,
        "counted": counted,
        "json": script_json,
        "slug": lambda text: str(text).replace(" ", "-"),
    }
    found.globals |= {
        "words": words,
        "version": __version__,
        "navigation": NAVIGATION,
        "abs": abs,
        "min": min,
        "max": max,
    }
    return found


def signed(change: float | None, digits: int = 4) -> str:
    """A change with its sign, set as a person writes it."""
    if change is None:
        return "–"
    return f"{'+' if change > 0 else MINUS if change < 0 else '±'}{abs(change):.{digits}f}"


def number(count: float) -> str:
    """A count with thin spaces between thousands."""
    return f"{count:,.0f}".replace(",", THIN_SPACE)


def date(time_ms: int) -> str:
    """Day and time of day in UTC."""
    return datetime.fromtimestamp(min(time_ms, LAST_MS) / 1000, UTC).strftime("%d %b %H:%M")


def short(run: str) -> str:
    """The short form of an id; anything else as it is, in a line."""
    try:
        return short_id(parse_id(run))
    except UsageError:
        return one_line(run, 60)


def script_json(answer: object) -> Markup:
    """JSON that can stand in a script element."""
    text = msgspec.json.encode(answer)
    for harmful, escaped in _IN_SCRIPT:
        text = text.replace(harmful, escaped)
    return Markup(text.decode())  # noqa: S704 - what could end the element is escaped


def _ago(time_ms: int, now_ms: int) -> str:
    return lately(time_ms, now_ms).removesuffix(" ago")
