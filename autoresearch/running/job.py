"""What execution takes and gives: a job with its limits in, an outcome out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from autoresearch.running.interpreter import Interpreter
from autoresearch.running.level import Level
from autoresearch.words import RunStatus

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. ``processes`` counts processes; threads have their own allowance on top.

    ``memory_bytes`` bounds the resident memory of all its processes together; under bubblewrap
    its files live in memory too, beside that: ``disk_bytes`` bounds its temporary folder and, again, ``/dev/shm``.
    ``processor_seconds`` bounds the processor time of all its processes and threads together, measured from outside.
    """

    seconds: float = 900.0
    processor_seconds: float = math.inf
    memory_bytes: int = 2048 * MIB
    disk_bytes: int = 256 * MIB
    processes: int = 64
    output_bytes: int = 1 * MIB
    checkpoint_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class Job:
    """One program to run in the sandbox.

    ``files`` are the read-only inputs by plain name (harness files and the program); ``data`` and ``mounts`` are
    folders shown read-only; ``writable_data`` makes ``data`` writable (for making the data). With
    ``metric_source`` "stdout", ``parse`` turns the log into metrics and ``metric_name`` says which one is the value;
    with "referee" the result has no value yet.
    The checkpoint is written to ``checkpoint_to`` (a folder); without it the run gets no checkpoint channel.
    With an ``artifact`` the checkpoint is the plain file of that name that a program which ends well leaves in its
    working folder. Files ``linked`` are shown there by a link, to read.
    ``text`` is what a program is asked about: it comes on descriptor 0 after the program has written a byte there. From
    then on, but on graphics cards, it can only compute and answer: it opens no file and starts no process.
    ``build`` and ``command`` are words, run in the working folder one after the other; without a command Python runs
    ``entry``. Of the files ``copied`` the working folder has copies, which the program may change.
    ``foreign`` is False only where every line of the files is known to be this participant's own, or shipped.
    ``python`` runs the program; None: the node's own Python.
    """

    files: Mapping[str, bytes]
    foreign: bool = True
    entry: str = "train.py"
    build: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    artifact: str = ""
    data: Path | None = None
    writable_data: bool = False
    mounts: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    budget: float = 0.0
    stop_at: float = 1.0
    threads: int = 1
    device: str = "cpu"
    metric_source: Literal["referee", "harness", "stdout"] = "harness"
    metric_name: str = ""
    parse: Callable[[str], Mapping[str, float]] | None = None
    arguments: tuple[str, ...] = ()
    checkpoint_to: Path | None = None
    text: bytes | None = None
    python: Interpreter | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. ``reason`` is one sentence for people; every process of the run is gone."""

    status: RunStatus
    reason: str
    value: float | None
    metrics: dict[str, float]
    curve: tuple[float, ...]
    log: bytes
    checkpoint: Path | None
    duration_ms: int
    cpu_ms: int
    peak_memory_bytes: int
    level: Level
