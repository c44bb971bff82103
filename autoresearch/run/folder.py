"""A run as a folder: what travels between who asks for a run and the machine that carries it out.

In go ``request.msgpack`` and the models that a check asks. Out come ``events.jsonl``, ``log``,
``checkpoint.safetensors`` and, last and whole, ``outcome.msgpack``. A folder is carried out once: whoever makes its
``events.jsonl`` carries it out, and a copy that an engine starts later finds that file and ends. The readers here trust
nothing that they find: another machine wrote it.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Any

import msgspec

from autoresearch.beneath import open_beneath, read_beneath
from autoresearch.errors import AutoresearchError, CannotRunHere, Refused, UsageError
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.bench import Ceiling
from autoresearch.run.checking import VerificationPlan, Verified
from autoresearch.run.experiment import Plan
from autoresearch.run.sandbox.capture import RunProgress, parse_line
from autoresearch.task.model import Task
from autoresearch.words import RunStatus

REQUEST, EVENTS, LOG, OUTCOME = "request.msgpack", "events.jsonl", "log", "outcome.msgpack"
CHECKPOINT = "checkpoint.safetensors"
# The author's model and its parent's, of a check that asks them; or a model that is measured alone.
MODEL, PARENT_MODEL = "model.safetensors", "parent.safetensors"
# A task has up to 17 files of a MiB each, a program is smaller.
MOST_REQUEST_BYTES = 64 << 20
MOST_OUTCOME_BYTES = 1 << 20
MOST_LOG_BYTES = 64 << 20
# The end of the events; a line of progress is shorter, also with lines of a script that JSON writes as numbers.
TAIL_BYTES = 32_768


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may have where it is carried out, and what holds for it.

    ``foreign``: others wrote, or may have written, some of it. ``least_level``: the weakest sandbox that will do.
    ``may_install``: the bytes that all environments may take when the task's packages are installed, 0 where they may
    not be; ``programs_may_install``: the same of those that its programs bring. ``recheck``: the baseline has to take
    its first step again before anything is run. ``is_allowed``: what the task's folder reaches was allowed where the
    run was asked for; another machine has no marks of it.
    """

    ceiling: Ceiling
    threads: int = 1
    device: str = "cpu"
    foreign: bool = True
    least_level: int = 0
    may_install: int = 0
    programs_may_install: int = 0
    recheck: bool = False
    is_allowed: bool = False


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that is asked of whoever carries out a run: the plan of an experiment, or a check of somebody else's run.

    ``run`` names this attempt; it is the folder's name. The task travels with its files; its inputs lie in its folder.
    ``executor`` has it carried out (empty: the process that asked, or a person by hand). ``has_model``: the plan's
    program was trained already, and what it learned is in the folder: it is measured alone.
    """

    run: str
    task: Task
    conditions: Conditions
    plan: Plan | None = None
    check: VerificationPlan | None = None
    executor: str = ""
    has_model: bool = False


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run could not be begun; ``cannot_run_here``: the machine lacks what the task needs."""

    sentence: str
    cannot_run_here: bool = False


class RunReply(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended: the ``outcome`` of a plan, what a check came to (``verified``), or a ``fault``.

    ``level`` is the sandbox level that was found on the machine; None: no machine says anything. ``cancelled``: it was
    asked to stop.
    """

    run: str
    level: int | None = None
    outcome: RunOutcome | None = None
    verified: Verified | None = None
    fault: Fault | None = None
    cancelled: bool = False


def run_folder(spool: Path, name: str) -> Path:
    """Where the files of a run lie while it is in hand."""
    return spool / name


def new_run(assignment: str) -> str:
    """A name for an attempt at an assignment that no other attempt has, of this node or another."""
    return f"{assignment}-{secrets.token_hex(6)}"


def fault_of(error: AutoresearchError) -> Fault:
    """An error as it is told elsewhere."""
    sentence = f"{error} → {error.hint}" if error.hint else str(error)
    return Fault(sentence=sentence, cannot_run_here=isinstance(error, CannotRunHere))


def write_request(folder: Path, request: RunRequest) -> None:
    """Put a request into its folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    put(folder, REQUEST, msgspec.msgpack.encode(request, enc_hook=str))


def read_request(folder: Path) -> RunRequest:
    """The request in a folder. Raises UsageError where there is none, or another folder's."""
    content = read_plain(folder / REQUEST, MOST_REQUEST_BYTES)
    if content is None:
        raise UsageError(f"{folder} has no {REQUEST}", hint="give the folder of a run")
    try:
        request = msgspec.msgpack.decode(content, type=RunRequest, dec_hook=_path)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{folder / REQUEST} is no request of this version: {error}") from error
    if request.run != folder.name or (request.plan is None) == (request.check is None):
        raise UsageError(f"{folder / REQUEST} is not the request of {folder.name}")
    return request


class EventFile:
    """The events of a run that is carried out by this process."""

    def __init__(self, folder: Path) -> None:
        """Begin the run. Raises Refused where another process has begun it."""
        try:
            self._descriptor = os.open(folder / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except FileExistsError as error:
            raise Refused(f"{folder.name} was begun before, and a run is carried out once") from error
        self._line({"event": "begun", "time_ms": time.time_ns() // 1_000_000, "machine": os.uname().nodename})

    def stage(self, why: str) -> None:
        """Tell what is done before the run starts: a word of ``autoresearch.words.Why``."""
        self._line({"event": "stage", "why": why})

    def progress(self, progress: RunProgress) -> None:
        """Tell how far it is."""
        self._line(msgspec.to_builtins(progress))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _line(self, event: object) -> None:
        os.write(self._descriptor, json.dumps(event).encode() + b"\n")


def last_progress(folder: Path) -> RunProgress | None:
    """How far a run is, by the end of its events; None before its first progress."""
    try:
        with open_beneath(folder, EVENTS, links=False) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).split(b"\n")[:-1]  # the last may be half-written
    except OSError:
        return None
    events = map(parse_line, reversed(lines))
    return next((event for event in events if isinstance(event, RunProgress)), None)


def is_begun(folder: Path) -> bool:
    """Whether somebody has begun to carry it out."""
    return (folder / EVENTS).exists()


def write_outcome(folder: Path, ended: RunReply) -> None:
    """Put the outcome into the folder, as the last of its files. The first that is there stays."""
    put(folder, OUTCOME, msgspec.msgpack.encode(ended))


def has_outcome(folder: Path) -> bool:
    """Whether there is an outcome, of whatever worth."""
    return os.path.lexists(folder / OUTCOME)


def read_outcome(folder: Path) -> RunReply | None:
    """How the run of a folder ended; None where it has not.

    Raises:
        Refused: what is there is no outcome of this run.
    """
    if not has_outcome(folder):
        return None
    content = read_plain(folder / OUTCOME, MOST_OUTCOME_BYTES)
    if content is None:
        raise Refused("its outcome is not a plain file, or is too large")
    try:
        ended = msgspec.msgpack.decode(content, type=RunReply)
        encode(msgspec.to_builtins(ended))  # a record can hold it: numbers are finite
        if ended.outcome is not None:
            RunStatus(ended.outcome.status)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise Refused(f"its outcome can't be read: {error}") from error
    parts = [part for part in (ended.outcome, ended.verified, ended.fault) if part is not None]
    if ended.run != folder.name or len(parts) != 1:
        raise Refused("its outcome is that of another run")
    return ended


def log_of(folder: Path) -> bytes:
    """What the program printed; empty where there is no such plain file, or it is larger than any."""
    return read_plain(folder / LOG, MOST_LOG_BYTES) or b""


def checkpoint_of(folder: Path) -> Path | None:
    """The checkpoint that a run left; None where there is no such plain file."""
    try:
        status = (folder / CHECKPOINT).lstat()
    except OSError:
        return None
    return folder / CHECKPOINT if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else None


def read_plain(path: Path, most: int) -> bytes | None:
    """The content of a plain file of at most so many bytes; None where it is missing, larger or something else."""
    try:
        return read_beneath(path.parent, path.name, most, links=False)
    except OSError:
        return None


def put(folder: Path, name: str, content: bytes) -> None:
    """Make a file whole or not at all; one that is there already stays."""
    temporary = folder / f".{name}.{secrets.token_hex(4)}"
    with temporary.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, folder / name)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _path(kind: type, value: Any) -> Any:  # noqa: ANN401 - the signature that msgspec asks for
    if kind is Path:
        return Path(value)
    raise NotImplementedError(f"a request holds no {kind}")
