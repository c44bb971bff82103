"""Runs as a table, and the results.tsv of karpathy/autoresearch, read strictly. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import inspect

from autoresearch.errors import UsageError
from autoresearch.face.columns.column import TIME, Column, Columns
from autoresearch.log.rows import HistoryRow
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Note, Run
from autoresearch.record.record import Record
from autoresearch.text import sign_of

_GIB = 1 << 30


class ExportedRun(NamedTuple):
    """A run as a line of a file.

    ``plain`` are its fields as JSON has them, ``verdict`` is what results.tsv would say of it, ``state`` its state now.
    ``task`` and ``metric`` are the names of its task and of what its value is.
    """

    record: Record
    run: Run
    plain: Mapping[str, object]
    verdict: str
    state: str
    task: str
    metric: str


def _six_decimals(value: float) -> str:
    """A value as karpathy/autoresearch writes it; with an exponent where six decimals would not show it."""
    return f"{value:.6f}" if not value or 1e-3 <= abs(value) < 1e7 else f"{value:.7g}"


# What programs call the memory of their card, with how many of its units are a GiB.
_STATED_MEMORY = {"peak_vram_mb": 1024.0, "peak_memory_mb": 1024.0, "peak_vram_gb": 1.0, "peak_memory_gb": 1.0}


def _memory_gib(run: Run) -> float:
    """The peak memory that the program states, of its card if it has one; else what the process had."""
    if run.value is None:
        return 0.0
    stated = (run.metrics[name] / units for name, units in _STATED_MEMORY.items() if name in run.metrics)
    return next(stated, run.peak_memory_bytes / _GIB)


# The columns of karpathy/autoresearch; a crash has zeros there.
COLUMNS: Columns[ExportedRun] = (
    Column("commit", lambda row: short_id(row.record.id)),
    Column("val_bpb", lambda row: _six_decimals(row.run.value or 0.0)),
    Column("memory_gb", lambda row: f"{_memory_gib(row.run):.1f}"),
    Column("status", lambda row: row.verdict),
    Column("description", lambda row: row.run.title),
)
# Types of which a value fits into a cell.
_CELLS = (
    *(inspect.IntType, inspect.FloatType, inspect.StrType, inspect.BytesType),
    *(inspect.LiteralType, inspect.NoneType),
)


def _run_columns() -> Columns[ExportedRun]:
    """The fields of a run that are one number or one text."""
    about = inspect.type_info(Run)
    assert isinstance(about, inspect.StructType)
    kinds = {field.name: getattr(field.type, "types", (field.type,)) for field in about.fields}

    def column(name: str) -> Column[ExportedRun]:
        return Column("run_status" if name == "status" else name, lambda row: row.plain[name])

    return tuple(column(name) for name, types in kinds.items() if all(isinstance(kind, _CELLS) for kind in types))


EXPORT_COLUMNS: Columns[ExportedRun] = (
    *COLUMNS,
    Column("id", lambda row: format_id(row.record.id)),
    *_run_columns(),
    Column("author", lambda row: row.record.author.hex()),
    Column("time", lambda row: row.record.time, TIME),
    Column("state", lambda row: row.state),
    Column("task_name", lambda row: row.task),
    Column("metric", lambda row: row.metric),
)
# What forks call the columns that every file has; all others before the last of these are numbers.
_NAMES = {
    "commit": ("commit", "hash", "sha", "id", "run", "experiment", "iteration"),
    "status": ("status", "result", "verdict", "decision"),
    "description": ("description", "desc", "notes", "note", "change", "idea", "hypothesis"),
}
# The numbers of such a row are zeros that nobody measured.
_CRASHED = ("crash", "crashed", "fail", "failed", "error", "oom", "timeout")
_NO_NUMBER = ("", "-", "–", "n/a", "na", "none", "null")
_DIGEST = re.compile("[0-9a-f]{64}")
MAXIMUM_TEXT = 2048
MAXIMUM_STATUS = 32
MAXIMUM_NAME = 64
MAXIMUM_NUMBERS = 64


# A spreadsheet takes a cell that begins so as a formula, which may run a program or send the table away.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def text_cell(text: str) -> str:
    """A cell that every spreadsheet takes as text: with a quote before what would be a formula. Numbers stay."""
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _typed(cell: str) -> str:
    """What :func:`text_cell` was given."""
    return cell[1:] if cell.startswith("'") and text_cell(cell[1:]) == cell else cell


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One experiment of the file, with its numbers by the names of their columns.

    ``task`` is the digest of its task, where the file names one as exports of this program do.
    """

    commit: str
    numbers: dict[str, float | None]
    status: str
    description: str
    task: str = ""

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
class _TableHeader:
    """Where the columns of a file are; ``status`` is None in a file without one."""

    commit: int
    status: int | None
    description: int
    numbers: dict[str, int]
    task: int | None = None

    @property
    def width(self) -> int:
        """How many columns a row needs."""
        return 1 + max(self.commit, self.status or 0, self.description, *self.numbers.values())


def read_rows(text: str) -> list[ExperimentRow]:
    """The rows of a results.tsv as karpathy/autoresearch or a fork of it writes it.

    It has a column for the commit, one for the description, one for the status if it likes, and between them numbers.
    Columns behind these are ignored.

    Raises:
        UsageError: a line is not as it should be; nothing is to be taken over then.
    """
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    header = _header(lines[0].split("\t") if lines else [])
    return [_row(line, header, number) for number, line in enumerate(lines[1:], start=2)]


def _header(cells: list[str]) -> _TableHeader:
    names = [cell.strip().lower() for cell in cells]
    commit, status, description = (_place(names, kind) for kind in ("commit", "status", "description"))
    if commit is None or description is None:
        raise UsageError(
            "this is not a results.tsv: the first line is not its header",
            hint=f"tab-separated, such as: {' '.join(column.name for column in COLUMNS)}",
        )
    end = max(description, status or 0)
    numbers = {names[n]: n for n in range(end) if n not in (commit, status, description)}
    if not 0 < len(numbers) <= MAXIMUM_NUMBERS or not all(0 < len(name) <= MAXIMUM_NAME for name in numbers):
        sentence = f"the first line names no column of numbers, more than {MAXIMUM_NUMBERS}, or one too long"
        raise UsageError(sentence, hint=f"such as: {' '.join(column.name for column in COLUMNS)}")
    return _TableHeader(commit, status, description, numbers, names.index("task") if "task" in names else None)


def _place(names: list[str], kind: str) -> int | None:
    """Which column is of a kind; the first of its usual names wins."""
    return next((names.index(name) for name in _NAMES[kind] if name in names), None)


def _row(line: str, header: _TableHeader, number: int) -> ExperimentRow:
    cells = [_typed(cell.strip()) for cell in line.split("\t")]
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
    task = cells[header.task] if header.task is not None and header.task < len(cells) else ""
    return ExperimentRow(commit, numbers, status, description, task if _DIGEST.fullmatch(task) else "")


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
    Nor does a program that differs from one before in its seeds alone.
    """
    best: float | None = None
    programs: dict[bytes, bytes] = {}
    sign = sign_of(direction)
    for run in history:
        if run.value is None:
            yield run.id, "crash"
            continue
        counts = not run.forked and (budget is None or run.budget == budget) and is_believed(run)
        repeats = programs.get(run.seedless, run.source_digest) != run.source_digest
        better = (best is None or sign * run.value < sign * best) and not repeats
        if counts:
            programs.setdefault(run.seedless, run.source_digest)
        if counts and better:
            best = run.value
        yield run.id, "keep" if counts and better else "discard"
