"""What a node tells a person elsewhere, and the interface of the ways there: ``docs/reference/extending.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from autoresearch.errors import Refused
from autoresearch.settings import Settings
from autoresearch.text import one_line


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened; ``who`` is the participant's key, ``name`` what a person calls it."""

    kind: str
    text: str
    time_ms: int
    data: dict[str, object]
    who: str
    name: str

    @property
    def sentence(self) -> str:
        """All of it, for a person who reads nothing else."""
        return one_line(f"autoresearch of {self.name}, {self.kind}: {self.text}")


def heading(notices: Sequence[Notice]) -> str:
    """One line about all of them."""
    if len(notices) == 1:
        return one_line(notices[0].sentence, 120)
    kinds = ", ".join(dict.fromkeys(notice.kind for notice in notices))
    return one_line(f"autoresearch of {notices[-1].name}: {len(notices)} notices ({kinds})", 120)


@dataclass(frozen=True, slots=True)
class Taken:
    """So many of the first notices were handed over; for ``pause_seconds`` no others are to be."""

    count: int
    pause_seconds: float = 0.0


class NotTaken(Refused):
    """The other side takes no notice now; the text says why, without a secret."""


# Hands over the first of the notices, or all, to an address of the settings, in a thread of its own. The environment is
# that of the node's start, with what it keeps from other processes. Raises NotTaken.
Send = Callable[[Sequence[Notice], str, Settings, Mapping[str, str]], Taken]
