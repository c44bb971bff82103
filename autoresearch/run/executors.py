"""Executors carry runs that are folders: they start, find and end the runner elsewhere, and bring its outcome back.

The truth about a run is its outcome file; then the engine's list; then five minutes without either, after which it is
lost. An engine that does not answer says nothing: a run is never lost because of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from autoresearch.run.folder import Ended, has_outcome, is_begun, last_progress
from autoresearch.run.sandbox.capture import Progress

# An engine restarts, a network file system shows a file late: nothing is concluded from a shorter absence.
ABSENT_SECONDS = 300.0
# In place of a folder: the runner prints what machine it is on.
MACHINE = "--machine"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine lists of a run: its own id (``native``), whether it waits, runs or is over, and its word."""

    native: str
    state: Literal["queued", "running", "over"]
    sentence: str = ""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is: ``unknown`` while nobody can say, ``lost`` when nobody will."""

    state: Literal["queued", "running", "ended", "lost", "unknown"]
    native: str = ""
    sentence: str = ""
    progress: Progress | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that carries out runs, as it says itself: its name, kernel, Python, torch (empty: none), sandbox."""

    name: str
    kernel: str
    python: str
    torch: str
    level: int
    has_bubblewrap: bool


class Executor(Protocol):
    """A place that carries out runs. Every method may take seconds; each raises TimedOut where the engine is away."""

    name: str

    def capacity(self) -> int:
        """How many more runs it takes now. Raises Refused where the engine is not there at all."""

    def start(self, folder: Path) -> None:
        """Have the run of a folder carried out, unless it is already. Raises Refused where the engine says no."""

    def look(self, folders: Sequence[Path]) -> Mapping[Path, Seen]:
        """How each of these runs is."""

    def cancel(self, folder: Path) -> None:
        """Ask for a run's end; ``look`` says when it has ended."""

    def collect(self, folder: Path) -> Ended | None:
        """How a run ended; None where it has not. Raises Refused where what is there is no outcome of it."""

    def forget(self, folder: Path) -> None:
        """End what the engine still has of a run that has an outcome, or that nobody waits for."""


@dataclass(slots=True)
class Absences:
    """Since when runs have been missing from an engine's list; a reappearance clears it, and an engine that is away."""

    seconds: float = ABSENT_SECONDS
    since: dict[Path, float] = field(default_factory=dict)

    def judge(self, folder: Path, listed: Mapping[str, Listed] | None, now: float) -> Seen:
        """How a run is. ``listed``: by run, None where the engine does not answer; ``now`` in seconds of any clock."""
        if has_outcome(folder):
            self.since.pop(folder, None)
            return Seen(state="ended")
        if listed is None:
            self.since.pop(folder, None)
            return Seen(state="unknown", sentence="the engine does not answer", progress=last_progress(folder))
        found = listed.get(folder.name)
        if found is not None and found.state != "over":
            self.since.pop(folder, None)
            progress = last_progress(folder)
            return Seen(state=found.state, native=found.native, sentence=found.sentence, progress=progress)
        absent = now - self.since.setdefault(folder, now)
        if absent < self.seconds:
            return Seen(state="unknown", native=found.native if found else "", sentence="it left the engine's list")
        del self.since[folder]
        word = f"the engine says {found.sentence} of job {found.native}" if found else "the engine does not list it"
        begun = "it left no outcome" if is_begun(folder) else "it never began"
        return Seen(state="lost", native=found.native if found else "", sentence=f"{begun}, and {word}")
