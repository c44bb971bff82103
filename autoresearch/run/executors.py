"""Executors carry runs that are folders: they start, find and end the runner elsewhere, and bring its outcome back.

The truth about a run is its outcome file; then the engine's list; then five minutes without either, after which it is
lost. An engine that does not answer says nothing: a run is never lost because of that.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from autoresearch.errors import Refused, TimedOut, UsageError
from autoresearch.extensions import ANEW, EXECUTORS, guard_extension, load_extension
from autoresearch.run.folder import has_outcome, is_begun, last_progress
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.settings import ExecutorSection

# An engine restarts, a network file system shows a file late: nothing is concluded from a shorter absence.
ABSENT_SECONDS = 300.0
HERE, SSH = "here", "ssh"
# In place of a folder: the runner prints what machine it is on. Before it: the end of standard input stops no run.
MACHINE, DETACHED = "--machine", "--detached"


class EngineJob(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine lists of a run: its own id (``native``), whether it waits, runs or is over, and its word."""

    native: str
    state: Literal["queued", "running", "over"]
    sentence: str = ""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is: ``unknown`` while nobody can say, ``lost`` when nobody will."""

    state: Literal["queued", "running", "ended", "lost", "unknown"]
    native: str = ""
    sentence: str = ""
    progress: RunProgress | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that carries out runs, as it says itself: its name, kernel, Python and its path, sandbox.

    ``version`` is this program's there; ``torch`` is empty where there is none. ``obstacle`` and ``remedy`` say why it
    has no bubblewrap, and are empty where it has.
    """

    name: str
    version: str
    kernel: str
    python: str
    executable: str
    torch: str
    level: int
    obstacle: str = ""
    remedy: str = ""


@dataclass(slots=True)
class Absences:
    """Since when runs have been missing from an engine's list; a reappearance clears it, and an engine that is away."""

    seconds: float = ABSENT_SECONDS
    since: dict[Path, float] = field(default_factory=dict)

    def judge(self, folder: Path, listed: Mapping[str, EngineJob] | None, now: float) -> Seen:
        """How a run is. ``listed``: by run, None where the engine does not answer; ``now`` in seconds of any clock."""
        if has_outcome(folder):
            self.since.pop(folder, None)
            return Seen(state="ended")
        if listed is None:
            self.since.pop(folder, None)
            return Seen(state="unknown", sentence="the engine does not answer", progress=last_progress(folder))
        job = listed.get(folder.name)
        if job is not None and job.state != "over":
            self.since.pop(folder, None)
            progress = last_progress(folder)
            return Seen(state=job.state, native=job.native, sentence=job.sentence, progress=progress)
        absent = now - self.since.setdefault(folder, now)
        if absent < self.seconds:
            return Seen(state="unknown", native=job.native if job else "", sentence="it left the engine's list")
        del self.since[folder]
        word = f"the engine says {job.sentence} of job {job.native}" if job else "the engine does not list it"
        begun = "it left no outcome" if is_begun(folder) else "it never began"
        return Seen(state="lost", native=job.native if job else "", sentence=f"{begun}, and {word}")


class Executor(ABC):
    """A place that carries out runs. Every method may take seconds; each raises TimedOut where the place is away.

    A subclass is an extension, ``docs/reference/extending.md``. What it raises by mistake becomes Refused. ``name`` is
    ``slurm`` or ``ssh:HOST``, ``noun`` stands before a run's own id there, ``at_most`` runs are there at a time.
    """

    # The name of the extension, and what a run is there.
    kind: ClassVar[str]
    unit: ClassVar[str] = "process"
    # Whether the place is a machine that a person names: ``executor.host``, ``work --host``.
    has_host: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        for name in (name for name, method in vars(Executor).items() if name[0] != "_" and callable(method)):
            setattr(cls, name, guard_extension(cls.__module__)(getattr(cls, name)))

    def __init__(self, settings: ExecutorSection, host: str = "") -> None:
        self.name = f"{self.kind}:{host}" if host else self.kind
        self.noun, self.at_most = f"{host or self.kind} {self.unit}", settings.at_most
        self.absences = Absences()

    @abstractmethod
    def listed(self) -> Mapping[str, EngineJob]:
        """What is there now, by run."""

    @abstractmethod
    def start(self, folder: Path) -> None:
        """Have the run of a folder carried out, unless it is already. Raises Refused where the place says no."""

    @abstractmethod
    def cancel(self, folder: Path) -> None:
        """Ask for a run's end; ``look`` says when it has ended."""

    @abstractmethod
    def printed_machine(self) -> str:
        """What ``python -m autoresearch.run --machine`` prints there. Raises Refused where it can't be run."""

    def capacity(self) -> int:
        """How many more runs it takes now. Raises Refused where there is no such place."""
        live = [job for job in self.listed().values() if job.state != "over"]
        return max(0, self.at_most - len(live))

    def look(self, folders: Sequence[Path]) -> Mapping[Path, Seen]:
        """How each of these runs is, by one list for all."""
        try:
            listed = self.listed()
        except TimedOut:
            listed = None
        now = time.monotonic()
        return {folder: self._seen(folder, listed, now) for folder in folders}

    def _seen(self, folder: Path, listed: Mapping[str, EngineJob] | None, now: float) -> Seen:
        try:
            if listed is not None:
                self.collect(folder)
        except TimedOut:
            listed = None
        return self.absences.judge(folder, listed, now)

    def collect(self, folder: Path) -> None:  # noqa: B027 - most places share the file system
        """Bring what the run has left so far into its folder, where that lies on another machine."""

    def forget(self, folder: Path) -> None:
        """End what the place still has of a run that has an outcome, or that nobody waits for."""
        self.cancel(folder)

    def close(self) -> None:  # noqa: B027 - most places hold nothing
        """End what waits for the place, because the daemon ends."""

    def machine(self) -> Machine:
        """One machine of the place, as it says itself. Raises Refused, TimedOut."""
        printed = self.printed_machine()
        try:
            return msgspec.json.decode(printed, type=Machine)
        except msgspec.MsgspecError as error:
            raise Refused(f"the runner there says something else than what it is: {printed[:200]!r}") from error


def executor_class(kind: str) -> type[Executor]:
    """The extension of a name: ``slurm``, ``ssh``. Raises NotFound where there is none, Refused where it is broken."""
    loaded = load_extension(EXECUTORS, kind)
    if not isinstance(loaded, type) or not issubclass(loaded, Executor):
        raise Refused(f"the extension {kind} is no Executor", hint=ANEW)
    return loaded


def executor_of(settings: ExecutorSection, name: str) -> Executor:
    """The executor of a name (:attr:`Executor.name`). Raises UsageError where the settings are wrong, as well."""
    kind, _, host = name.partition(":")
    make = executor_class(kind)
    with guard_extension(kind):
        executor = make(settings, host)
        if executor.name != name:
            raise Refused(f"the extension {kind} makes the executor {executor.name}, not {name}", hint=ANEW)
    return executor


def executor_name(settings: ExecutorSection, name: str = "", host: str = "") -> str:
    """The name of the executor by the settings, or as a person asks; empty: the workers here.

    Raises:
        UsageError: a host is missing, or the executor has none.
        NotFound: no package has it.
        Refused: it can't be loaded.
    """
    kind = name or (SSH if host else settings.name)
    if kind != HERE and executor_class(kind).has_host:
        host = host or settings.host
        if not host:
            raise UsageError(
                "no host is named", hint="--host NAME, or: autoresearch node config set executor.host NAME"
            )
        return f"{kind}:{host}"
    if host:
        raise UsageError(f"{kind} has no host", hint="--executor ssh --host NAME")
    return "" if kind == HERE else kind
