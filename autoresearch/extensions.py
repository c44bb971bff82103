"""Features of other packages, found by entry points: ``docs/reference/extending.md``. A broken one breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points

from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.text import one_line

DATASETS, EXECUTORS = "autoresearch.datasets", "autoresearch.executors"
EXPORTS, NOTICES = "autoresearch.exports", "autoresearch.notices"
GROUPS = (DATASETS, EXECUTORS, EXPORTS, NOTICES)
ANEW = "install its package anew"


def extension_names(group: str) -> list[str]:
    """What installed packages register in a group."""
    return sorted({point.name for point in entry_points(group=group)})


def load_extension(group: str, name: str) -> object:
    """What the package that registers ``name`` in ``group`` points to. The first on the path wins.

    Raises:
        NotFound: no package registers it.
        AutoresearchError: it can't be imported; with its own sentence, where it raises one (a package is missing).
    """
    point = next((point for point in entry_points(group=group) if point.name == name), None)
    if point is None:
        names = ", ".join(extension_names(group)) or "none"
        raise NotFound(f"no installed package registers {one_line(name, 40)} in {group}", hint=f"there are: {names}")
    try:
        loaded: object = point.load()
    except AutoresearchError:  # it says what it lacks
        raise
    except (Exception, SystemExit) as error:
        package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
        sentence = f"the extension {name}{package} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
        raise Refused(one_line(sentence, 300), hint=f"{ANEW}, or remove it") from error
    return loaded


@contextmanager
def guard_extension(name: str) -> Iterator[None]:
    """What an extension does: an error by mistake is raised as Refused with its name, this program's own as it is."""
    try:
        yield
    except AutoresearchError:
        raise
    except (Exception, SystemExit) as error:
        sentence = one_line(f"the extension {name} failed: {type(error).__name__}: {error}", 300)
        raise Refused(sentence, hint=f"{ANEW}, or choose another") from error
