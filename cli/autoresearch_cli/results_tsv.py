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
STATUSES = ("keep", "discard", "crash")
MAXIMUM_TEXT = 2048


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment of the file."""

    commit: str
    val_bpb: float | None
    memory_gb: float | None
    status: str
    description: str

    def note(self, task: bytes | None) -> Note:
        """The row as the body of a note. ``origin`` names the row by its content, so that it is added once."""
        parts = (self.commit, f"{self.val_bpb}", f"{self.memory_gb}", self.status, self.description)
        digest = hashlib.sha256("\t".join(parts).encode()).hexdigest()[:32]
        measured = {"val_bpb": self.val_bpb, "memory_gb": self.memory_gb}
        return Note(
            topic="history",
            text=f"{self.commit}: {self.description}",
            task=task,
            origin=f"results.tsv {digest}",
            metrics={name: number for name, number in measured.items() if number is not None},
            status=self.status,
        )


def read_rows(text: str) -> list[Row]:
    """The rows of a results.tsv; more columns than its five are ignored.

    Raises:
        UsageError: a line is not as it should be; nothing is to be taken over then.
    """
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    if not lines or tuple(lines[0].split("\t")[: len(COLUMNS)]) != COLUMNS:
        raise UsageError(
            "this is not a results.tsv: the first line is not its header",
            hint=f"tab-separated, beginning with: {' '.join(COLUMNS)}",
        )
    return [_row(line, number) for number, line in enumerate(lines[1:], start=2)]


def _row(line: str, number: int) -> Row:
    cells = line.split("\t")
    if len(cells) < len(COLUMNS):
        raise UsageError(f"line {number} has {len(cells)} columns, not {len(COLUMNS)}", hint="separate them by tabs")
    commit, val_bpb, memory_gb, status, description = (cell.strip() for cell in cells[: len(COLUMNS)])
    if status not in STATUSES:
        raise UsageError(f"line {number}: the status {status[:40]!r} is not one of {', '.join(STATUSES)}")
    if not commit or len(commit) + len(description) + 2 > MAXIMUM_TEXT:
        raise UsageError(f"line {number}: commit and description need 1 to {MAXIMUM_TEXT - 2} characters")
    crashed = status == "crash"
    return Row(
        commit=commit,
        val_bpb=None if crashed else _number(val_bpb, number, "val_bpb"),
        memory_gb=None if crashed else _number(memory_gb, number, "memory_gb"),
        status=status,
        description=description,
    )


def _number(text: str, line: int, column: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"line {line}: {column} is {text[:40]!r}, not a number")
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
