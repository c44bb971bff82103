"""Features of other packages, found by entry points: ``docs/reference/extending.md``. A broken one breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.text import one_line

ATTESTORS = "autoresearch.attestors"
DATASETS = "autoresearch.datasets"
EXECUTORS = "autoresearch.executors"
EXPORTS = "autoresearch.exports"
NOTICES = "autoresearch.notices"
GROUPS = (DATASETS, EXECUTORS, EXPORTS, NOTICES, ATTESTORS)
ANEW = "install its package anew"


class BrokenExtension(Refused):
    """The code of an extension can't be loaded, or raised something else than an error for people."""


def extension_names(group: str) -> list[str]:
    """What installed packages register in a group."""
    from importlib.metadata import entry_points  # a command that asks for none does without

    return sorted({point.name for point in entry_points(group=group)})


def load_extension(group: str, name: str) -> object:
    """What the package that registers ``name`` in ``group`` points to. The first on the path wins.

    Raises:
        NotFound: no package registers it.
        BrokenExtension: it can't be imported. An extension that says itself what it lacks raises its own error.
    """
    from importlib.metadata import entry_points

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
        raise BrokenExtension(one_line(sentence, 300), hint=f"{ANEW}, or remove it") from error
    return loaded


@contextmanager
def guard_extension(name: str) -> Iterator[None]:
    """Name the extension in what its code raises, which may be anything: then it raises BrokenExtension."""
    try:
        yield
    except AutoresearchError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise  # a person's Ctrl-C
        sentence = f"the extension {name} failed: {type(error).__name__}: {error}"
        raise BrokenExtension(one_line(sentence, 300), hint=f"{ANEW}, or do without it") from error
