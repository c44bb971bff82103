"""Features of other packages, found by entry points: ``docs/reference/extending.md``. A broken one breaks nothing."""

from __future__ import annotations

from importlib.metadata import entry_points

from autoresearch.errors import NotFound, Refused
from autoresearch.text import one_line

EXPORTS = "autoresearch.exports"
NOTICES = "autoresearch.notices"
GROUPS = (EXPORTS, NOTICES)
ANEW = "install its package anew"


def extension_names(group: str) -> list[str]:
    """What installed packages register in a group."""
    return sorted({point.name for point in entry_points(group=group)})


def load_extension(group: str, name: str) -> object:
    """What the package that registers ``name`` in ``group`` points to. The first on the path wins.

    Raises:
        NotFound: no package registers it.
        Refused: it can't be imported.
    """
    point = next((point for point in entry_points(group=group) if point.name == name), None)
    if point is None:
        names = ", ".join(extension_names(group)) or "none"
        raise NotFound(f"no installed package registers {one_line(name, 40)} in {group}", hint=f"there are: {names}")
    try:
        loaded: object = point.load()
    except (Exception, SystemExit) as error:
        sentence = f"the extension {name} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
        raise Refused(one_line(sentence, 300), hint=f"{ANEW}, or remove it") from error
    return loaded
