"""The components that a release needs beside it, one level deep."""

from __future__ import annotations

from autoresearch.errors import Refused, UsageError
from autoresearch.log import Log
from autoresearch.registry.choosing import Choice
from autoresearch.registry.finding import component, resolve
from autoresearch.views import in_snapshot


@in_snapshot
def needs_of(log: Log, release: bytes, *, me: bytes | None = None) -> list[tuple[str, Choice]]:
    """What a release needs, each with its type: ``policy/q_table==1.0.0`` names a type and a component.

    Raises:
        UsageError: a need is written otherwise.
        Refused: a need has needs of its own, or needs this component.
        NotFound, AmbiguousName: as :func:`resolve`.
    """
    this = component(log, release)
    found = []
    for text in this.metadata.needs:
        kind, separator, name = text.partition("/")
        if not separator:
            raise UsageError(f"{this.name} needs {text[:80]}, which names no component", hint="TYPE/NAME==VERSION")
        choice = resolve(log, kind, name, me=me)
        other = component(log, choice.release.row.id)
        if other.metadata.needs:
            around = any(
                need.partition("==")[0] == f"{this.metadata.type}/{this.name}" for need in other.metadata.needs
            )
            why = f"which needs {this.name}" if around else "which needs others of its own"
            raise Refused(f"{this.name} needs {other.name}, {why}", hint=f"install {kind} {other.name} first, by hand")
        found.append((kind, choice))
    return found
