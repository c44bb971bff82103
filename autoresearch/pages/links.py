"""Where pages are: addresses of the daemon, or files of an export beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urlencode

from autoresearch.errors import UsageError
from autoresearch.pages.assets import asset
from autoresearch.records import parse_id, short_id


class Destination(NamedTuple):
    """A page of the navigation."""

    name: str
    title: str
    exported: bool = False


NAVIGATION = (
    Destination("progress", "Progress", exported=True),
    Destination("board", "Board", exported=True),
    Destination("lineage", "Lineage", exported=True),
    Destination("verifications", "Verifications"),
    Destination("queue", "Queue"),
    Destination("participants", "Participants"),
    Destination("peers", "Peers"),
    Destination("tasks", "Tasks"),
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

    def asset(self, name: str) -> str:
        """A style sheet or script. Its address changes with its content, so that browsers may keep it for ever."""
        found = asset(name)
        tag = found.tag if found else ""
        return f"assets/{name}" if self.exported else f"/assets/{name}?{tag}"

    def _address(self, path: str, query: dict[str, str]) -> str:
        given = urlencode({name: value for name, value in {"task": self.task, **query}.items() if value}, safe=",")
        return f"/{path}?{given}" if given else f"/{path}"


def _short(run: str) -> str:
    """The short form of an id; what is short already stays."""
    try:
        return short_id(parse_id(run))
    except UsageError:
        return quote(run, safe="")
