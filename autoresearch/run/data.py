"""Makes a task's data in the sandbox, once per machine, and checks every byte of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from autoresearch.errors import AutoresearchError, Refused, TimedOut, UsageError
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits, Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.run.sandbox.scratch import remove_tree, scratch_folder
from autoresearch.words import RunStatus

_PROGRAM = "prepare.py"
_LOCK_SPARE_SECONDS = 60.0
MOST_TEXT_BYTES = 256 << 20
"""A file of tokens larger than this is not read: nobody asks a model about so much text."""


@dataclass(frozen=True, slots=True)
class Preparer:
    """A task's ``prepare.py`` with the files beside it, and how it is run: ``foreign`` where others wrote it."""

    files: Mapping[str, bytes]
    level: Level
    limits: JobLimits
    foreign: bool = True
    python: Interpreter | None = None

    def run(self, made: Path, *arguments: str, seed: int = 0) -> None:
        """Have it write into the folder ``made``. Raises Refused or AutoresearchError where it does not end well."""
        job = Job(
            self.files,
            foreign=self.foreign,
            entry=_PROGRAM,
            copied=tuple(self.files),
            data=made,
            writable_data=True,
            limits=self.limits,
            seed=seed,
            metric_source="stdout",
            arguments=arguments,
            python=self.python,
        )
        outcome = execute(job, level=self.level)
        if outcome.status is not RunStatus.OK:
            raise _failure(outcome.status, outcome.reason)


def prepare_data(
    program: Preparer,
    expected: Mapping[str, str],
    cache: Path,
) -> Path:
    """The folder with a task's data, made by running ``python prepare.py`` when it isn't there yet.

    ``expected`` maps file names to hex SHA-256. The folder is ``cache/<digest of expected>``; it appears whole or not
    at all, and several callers may ask at once. Raises UsageError for names that are not plain, TimedOut where another
    caller holds the lock too long or the program takes too long, Refused where the sandbox won't start or the program
    is ``foreign`` and there is no sandbox, and AutoresearchError where the program fails or makes other bytes.
    """
    _check_names(expected)
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / data_digest(expected)
    if _mismatch(target, expected) is None:
        return target
    try:
        with FileLock(f"{target}.lock", timeout=program.limits.seconds + _LOCK_SPARE_SECONDS):
            if _mismatch(target, expected) is not None:
                _make(program, expected, target)
    except Timeout as error:
        raise TimedOut(
            "another process has been making the same data for too long", hint=f"is it stuck? {target}.lock"
        ) from error
    return target


def without(data: Path, withheld: Collection[str]) -> Path:
    """A folder beside ``data`` with all of its files but the ``withheld``: what a run may see of a task's data."""
    names = sorted(path.name for path in data.iterdir() if path.name not in withheld)
    target = data.with_name(f"{data.name}.{hashlib.sha256(repr(names).encode()).hexdigest()[:8]}")
    if _links(target, data, names):
        return target
    with FileLock(f"{target}.lock", timeout=_LOCK_SPARE_SECONDS):
        if not _links(target, data, names):
            with scratch_folder(target.parent) as scratch:
                work = scratch.folder / "kept"
                work.mkdir()
                for name in names:
                    (work / name).hardlink_to(data / name)
                work.chmod(0o755)
                remove_tree(target)  # of data that was damaged, and made anew since
                work.rename(target)
    return target


@contextmanager
def copied(data: Path, withheld: Collection[str], cache: Path) -> Iterator[Path]:
    """A new folder with copies of the files of ``data`` but the ``withheld``, gone at the end.

    It lies in ``cache`` wherever ``data`` lies. So a program sees no path, time, inode or link count by which it could
    tell the data of another world from the task's own.
    """
    with scratch_folder(cache) as scratch:
        scratch.folder.chmod(0o755)
        folder = scratch.folder / "data"
        folder.mkdir(mode=0o755)
        for file in sorted(data.iterdir()):
            if file.name not in withheld:
                shutil.copyfile(file, folder / file.name)
                (folder / file.name).chmod(0o444)
        yield folder


def _links(folder: Path, data: Path, names: Collection[str]) -> bool:
    return folder.is_dir() and all((folder / n).exists() and (folder / n).samefile(data / n) for n in names)


def write_fresh(
    program: Preparer,
    names: Collection[str],
    seed: int,
    scratch: Path,
) -> dict[str, bytes]:
    """What ``python prepare.py fresh`` writes from a seed: those of the files ``names`` that it made, whole.

    Raises:
        Refused: it is ``foreign`` and there is no sandbox, or the sandbox won't start.
        AutoresearchError: the program fails, or a file is larger than MOST_TEXT_BYTES.
    """
    with scratch_folder(scratch) as work:
        made, checked = work.folder / "made", work.folder / "checked"
        made.mkdir()
        checked.mkdir()
        program.run(made, "fresh", seed=seed)
        for name in names:
            _take(made / name, checked / name)
        return {path.name: _whole(path) for path in checked.iterdir()}


def _whole(path: Path) -> bytes:
    """The content of a file that a program made, unless it is larger than any text that is asked about."""
    if (size := path.stat().st_size) > MOST_TEXT_BYTES:
        raise AutoresearchError(
            f"{_PROGRAM} wrote {size} bytes into {path.name}, and {MOST_TEXT_BYTES} are the most",
            hint="the task's author has to mend that",
        )
    return path.read_bytes()


def write_world(
    program: Preparer,
    names: Collection[str],
    optional: str,
    seed: int,
    target: Path,
) -> None:
    """Write what ``python prepare.py world`` makes from a seed as the new folder ``target``: all of ``names``.

    The file ``optional`` is taken where it was made.

    Raises:
        Refused: it is ``foreign`` and there is no sandbox, or the sandbox won't start.
        AutoresearchError: the program fails, or leaves one of ``names`` out.
    """
    with scratch_folder(target.parent) as work:
        made = work.folder / "made"
        made.mkdir()
        target.mkdir()
        target.chmod(0o755)
        program.run(made, "world", seed=seed)
        for name in (*names, optional):
            _take(made / name, target / name)
    if missing := sorted(name for name in names if not (target / name).is_file()):
        raise AutoresearchError(
            f"the task's {_PROGRAM} made no {missing[0]} for another world", hint="the task's author has to mend that"
        )


def data_digest(expected: Mapping[str, str]) -> str:
    """The name of the folder: SHA-256 over the sorted ``name hash`` lines."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(expected.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _check_names(expected: Mapping[str, str]) -> None:
    if not expected:
        raise UsageError("the task names no data file to make")
    for name, digest in expected.items():
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name):
            raise UsageError(f"{name!r} is not a plain file name")
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise UsageError(f"the hash of {name} is not a hex SHA-256")


def _make(
    program: Preparer,
    expected: Mapping[str, str],
    target: Path,
) -> None:
    with scratch_folder(target.parent) as work:
        made, checked = work.folder / "made", work.folder / "checked"
        made.mkdir()
        checked.mkdir()
        program.run(made)
        for name in expected:
            _take(made / name, checked / name)
        if (wrong := _mismatch(checked, expected)) is not None:
            raise AutoresearchError(
                f"the data that {_PROGRAM} makes here differs from the task's: {wrong}",
                hint="the task may need another version of a library; ask its author",
            )
        remove_tree(target)  # a damaged one
        checked.chmod(0o755)
        checked.rename(target)


def _failure(status: RunStatus, reason: str) -> AutoresearchError:
    sentence = f"the task's data could not be made: {reason}"
    if status is RunStatus.TIMED_OUT:
        return TimedOut(sentence, hint="a task file can allow more seconds in its limits")
    if status is RunStatus.REFUSED:
        return Refused(sentence, hint="ask the daemon's doctor what its sandbox lacks")
    return AutoresearchError(sentence, hint=f"run the task's {_PROGRAM} by hand to see more")


def _take(made: Path, checked: Path) -> None:
    """Moves one made file, if it is a plain one, and gives it to us, readable for all and writable for none."""
    try:
        status = made.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        return
    made.rename(checked)
    if os.geteuid() == 0:
        os.chown(checked, 0, 0)
    checked.chmod(0o444)


def _mismatch(folder: Path, expected: Mapping[str, str]) -> str | None:
    """The first file that is missing or has other bytes, as a few words; None when all are right."""
    for name, digest in expected.items():
        try:
            with (folder / name).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return f"{name} is missing"
        if actual != digest:
            return f"{name} has the hash {actual[:16]}…, not {digest[:16]}…"
    return None
