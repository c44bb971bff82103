"""What execution takes and gives: a job with its limits in, an outcome out.

Also the ladder of isolation levels, how well a run is walled in.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal

import msgspec

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.words import RunStatus


class Level(IntEnum):
    """How a run is walled in; the best come last but one. ``execute`` refuses below ``LANDLOCK`` what others wrote."""

    NONE = 0
    LANDLOCK = 1
    BUBBLEWRAP = 2
    APPTAINER = 3  # no better than bubblewrap: what a cluster offers that closes the others

    @property
    def label(self) -> str:
        """Short text form: S0, S1, S2 or S3."""
        return f"S{self.value}"

    @property
    def sentence(self) -> str:
        """What the level means, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Level.NONE: "no isolation: only your own code may run here",
    Level.LANDLOCK: "landlock, own processes and a system-call filter: no network, no foreign files, one file system",
    Level.APPTAINER: "Apptainer and a system-call filter: own file system and processes, no network",
    Level.BUBBLEWRAP: "bubblewrap and a system-call filter: own file system, processes and network",
}


MIB = 1 << 20


class JobChannel:
    """One side of a conversation between two jobs: a descriptor to read from, one to write to.

    They are held here too until the program has ended: so the other side hears of its end only after ``close``, and
    ``closed_at`` (seconds of the monotonic clock) says for certain which of two programs ended first.
    """

    def __init__(self, read: int, write: int) -> None:
        self.descriptors: tuple[int, ...] = (read, write)
        self.closed_at = math.inf

    @classmethod
    def pair(cls) -> tuple[JobChannel, JobChannel]:
        """Both sides of a new conversation."""
        (first, answer), (second, question) = os.pipe(), os.pipe()
        return cls(first, question), cls(second, answer)

    def close(self) -> None:
        """Let go of the descriptors, if that was not done."""
        closing, self.descriptors = self.descriptors, ()
        if closing:
            self.closed_at = time.monotonic()
        for descriptor in closing:
            os.close(descriptor)


LIBRARY = Path(__file__).absolute().parents[2]
"""The folder of this package."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What one run may use. ``processes`` counts processes; threads have their own allowance on top.

    ``memory_bytes`` bounds the resident memory of all its processes together, what waits in its sockets and pipes and,
    under bubblewrap, its files. ``disk_bytes`` bounds its temporary folder and, again, ``/dev/shm``.
    ``files`` counts empty ones too: each takes about a kilobyte of the kernel's memory, or an inode of the disk.
    ``processor_seconds`` bounds the processor time of all its processes and threads together, measured from outside.
    """

    seconds: float = 900.0
    processor_seconds: float = math.inf
    memory_bytes: int = 2048 * MIB
    disk_bytes: int = 256 * MIB
    files: int = 100_000
    processes: int = 64
    output_bytes: int = 1 * MIB
    checkpoint_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class Job:
    """One program to run in the sandbox.

    ``files`` are the read-only inputs by plain name (harness files and the program); ``data`` and ``mounts`` are
    folders shown read-only; ``writable_data`` makes ``data`` writable (for making the data). With
    ``metric_source`` "stdout" the value is the last number that the program printed under ``metric_name``, if it has
    one; with "referee" the result has no value yet.
    The checkpoint is written to ``checkpoint_to`` (a folder); without it the run gets no checkpoint channel.
    With an ``artifact`` the checkpoint is the plain file of that name that a program which ends well leaves in its
    working folder. Files ``linked`` are shown there by a link, to read. So are ``inputs``, files and folders of this
    machine, by the place in the working folder where they are shown.
    ``text`` is what a program is asked about: it comes on descriptor 0 after the program has written a byte there. From
    then on, but on graphics cards, it can only compute and answer: it opens no file and starts no process.
    ``build`` and ``command`` are words, run in the working folder one after the other; without a command Python runs
    ``entry``. Of the files ``copied`` the working folder has copies, which the program may change.
    ``foreign`` is False only where every line of the files is known to be this participant's own, or shipped.
    ``python`` runs the program; None: the node's own Python. ``library``: it can import this package.
    ``talk`` is its side of a conversation with another job.
    """

    files: Mapping[str, bytes]
    foreign: bool = True
    entry: str = "train.py"
    build: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    inputs: Mapping[str, Path] = field(default_factory=dict)
    artifact: str = ""
    data: Path | None = None
    writable_data: bool = False
    mounts: tuple[Path, ...] = ()
    limits: JobLimits = field(default_factory=JobLimits)
    seed: int = 0
    budget: float = 0.0
    stop_at: float = 1.0
    threads: int = 1
    device: str = "cpu"
    metric_source: Literal["referee", "harness", "stdout"] = "harness"
    metric_name: str = ""
    arguments: tuple[str, ...] = ()
    checkpoint_to: Path | None = None
    text: bytes | None = None
    python: Interpreter | None = None
    library: bool = False
    talk: JobChannel | None = None

    @property
    def read_only_folders(self) -> tuple[Path, ...]:
        """The folders that are shown read-only where they are."""
        return (*self.mounts, *((LIBRARY,) if self.library else ()))


class Used(msgspec.Struct, frozen=True):
    """What processes used, under the names that it has in a RunOutcome. What is no peak adds up."""

    cpu_ms: int = 0
    peak_memory_bytes: int = 0

    def at_least(self, other: Used) -> Used:
        """The larger of each, of two readings of the same processes."""
        return Used(*map(max, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))

    def with_others(self, other: Used) -> Used:
        """What these and other processes used."""
        peaks, sums = self.at_least(other), zip(*map(msgspec.structs.astuple, (self, other)), strict=True)
        names = zip(self.__struct_fields__, sums, strict=True)
        added = {name: sum(both) for name, both in names if not name.startswith("peak_")}
        return msgspec.structs.replace(peaks, **added)


class JobOutcome(RunOutcome, frozen=True, kw_only=True):
    """How a job ended, and the files that it left on this machine; every process of it is gone.

    Of a job with a checkpoint channel ``answered_ms`` and ``answered_cpu_ms`` are how long it had run, and what it had
    used, when the first byte came there: all of it, where none came before its end. ``has_used_card``: a process of it
    had its card open.
    """

    status: RunStatus
    log: bytes = b""
    checkpoint: Path | None = None
    answered_ms: int = 0
    answered_cpu_ms: int = 0
    has_used_card: bool = False

    @property
    def used(self) -> Used:
        """What its processes used."""
        return msgspec.convert(self, Used, from_attributes=True)
