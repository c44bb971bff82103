"""The results.tsv of karpathy/autoresearch: its columns, reading it strictly, and what a run is in it. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from autoresearch.direction import sign_of
from autoresearch.errors import UsageError
from autoresearch.log import HistoryRow
from autoresearch.records import Note

COLUMNS = ("commit", "val_bpb", "memory_gb", "status", "description")
# What forks call the columns that every file has; all others before the last of these are numbers.
_NAMES = {
    "commit": ("commit", "hash", "sha", "id", "run", "experiment", "iteration"),
    "status": ("status", "result", "verdict", "decision"),
    "description": ("description", "desc", "notes", "note", "change", "idea", "hypothesis"),
}
# The numbers of such a row are zeros that nobody measured.
_CRASHED = ("crash", "crashed", "fail", "failed", "error", "oom", "timeout")
_NO_NUMBER = ("", "-", "–", "n/a", "na", "none", "null")
MAXIMUM_TEXT = 2048
MAXIMUM_STATUS = 32
MAXIMUM_NAME = 64
MAXIMUM_NUMBERS = 64


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment of the file, with its numbers by the names of their columns."""

    commit: str
    numbers: dict[str, float | None]
    status: str
    description: str

    def note(self, task: bytes | None) -> Note:
        """The row as the body of a note. ``origin`` names the row by its content, so that it is added once."""
        parts = (self.commit, *map(str, self.numbers.values()), self.status, self.description)
        digest = hashlib.sha256("\t".join(parts).encode()).hexdigest()[:32]
        return Note(
            topic="history",
            text=f"{self.commit}: {self.description}",
            task=task,
            origin=f"results.tsv {digest}",
            metrics={name: number for name, number in self.numbers.items() if number is not None},
            status=self.status,
        )


@dataclass(frozen=True, slots=True)
class _Header:
    """Where the columns of a file are; ``status`` is None in a file without one."""

    commit: int
    status: int | None
    description: int
    numbers: dict[str, int]

    @property
    def width(self) -> int:
        """How many columns a row needs."""
        return 1 + max(self.commit, self.status or 0, self.description, *self.numbers.values())


def read_rows(text: str) -> list[Row]:
    """The rows of a results.tsv as karpathy/autoresearch or a fork of it writes it.

    It has a column for the commit, one for the description, one for the status if it likes, and between them numbers.
    Columns behind these are ignored.

    Raises:
        UsageError: a line is not as it should be; nothing is to be taken over then.
    """
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    header = _header(lines[0].split("\t") if lines else [])
    return [_row(line, header, number) for number, line in enumerate(lines[1:], start=2)]


def _header(cells: list[str]) -> _Header:
    names = [cell.strip().lower() for cell in cells]
    commit, status, description = (_place(names, kind) for kind in ("commit", "status", "description"))
    if commit is None or description is None:
        raise UsageError(
            "this is not a results.tsv: the first line is not its header",
            hint=f"tab-separated, such as: {' '.join(COLUMNS)}",
        )
    end = max(description, status or 0)
    numbers = {names[n]: n for n in range(end) if n not in (commit, status, description)}
    if not 0 < len(numbers) <= MAXIMUM_NUMBERS or not all(0 < len(name) <= MAXIMUM_NAME for name in numbers):
        sentence = f"the first line names no column of numbers, more than {MAXIMUM_NUMBERS}, or one too long"
        raise UsageError(sentence, hint=f"such as: {' '.join(COLUMNS)}")
    return _Header(commit, status, description, numbers)


def _place(names: list[str], kind: str) -> int | None:
    """Which column is of a kind; the first of its usual names wins."""
    return next((names.index(name) for name in _NAMES[kind] if name in names), None)


def _row(line: str, header: _Header, number: int) -> Row:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) < header.width:
        raise UsageError(f"line {number} has {len(cells)} columns, not {header.width}", hint="separate them by tabs")
    commit, description = cells[header.commit], cells[header.description]
    status = cells[header.status] if header.status is not None else ""
    if len(status) > MAXIMUM_STATUS or (header.status is not None and not status):
        raise UsageError(f"line {number}: the status needs 1 to {MAXIMUM_STATUS} characters, such as keep or crash")
    if not commit or len(commit) + len(description) + 2 > MAXIMUM_TEXT:
        raise UsageError(f"line {number}: commit and description need 1 to {MAXIMUM_TEXT - 2} characters")
    crashed = status.lower() in _CRASHED
    numbers = {name: None if crashed else _number(cells[place], number, name) for name, place in header.numbers.items()}
    return Row(commit=commit, numbers=numbers, status=status, description=description)


def _number(text: str, line: int, column: str) -> float | None:
    if text.lower() in _NO_NUMBER:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"line {line}: {column[:40]} is {text[:40]!r}, not a number")
    return number


def verdicts(
    history: Iterable[HistoryRow],
    *,
    direction: str,
    budget: float | None,
    is_believed: Callable[[HistoryRow], bool] = lambda _: True,
) -> Iterator[tuple[bytes, str]]:
    """For each run, oldest first: ``keep`` when it beat all before it, ``crash`` without a value, else ``discard``.

    A run with a smaller budget, one that an unmerged fork keeps from counting or that is not believed beats nothing.
    """
    best: float | None = None
    sign = sign_of(direction)
    for run in history:
        if run.value is None:
            yield run.id, "crash"
            continue
        counts = not run.forked and (budget is None or run.budget == budget) and is_believed(run)
        better = best is None or sign * run.value < sign * best
        if counts and better:
            best = run.value
        yield run.id, "keep" if counts and better else "discard"
