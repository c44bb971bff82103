"""What the templates of a run, a lineage and the board take: texts, diffs as rows, the end of a run's output. Pure.

Strangers' lines are cleaned and clipped here, and escaped where they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from autoresearch.ask.node import TaskStatus, VotersAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import DiffAnswer, EffectsAnswer, PathAnswer, RunContextAnswer, RunRow, TopAnswer
from autoresearch.ask.runs.boards import closed
from autoresearch.ask.runs.diffs import genome_changes
from autoresearch.face.columns.column import short
from autoresearch.face.columns.runs import used_words
from autoresearch.face.pages.boards import bare_row, by_credit, confirmed_board
from autoresearch.face.pages.chart import CurveData, axis_over, curve_data, curve_of
from autoresearch.face.pages.pictures import forest, refuting, waterfall
from autoresearch.log.standing.answers import CreditAnswer, ProgramView, RunFields, leading
from autoresearch.run.sandbox.capture import bytes_left_out
from autoresearch.text import MAXIMIZE, brief, one_line, sanitised, value
from autoresearch.words import BoardSection, RunState

TAIL_LINES = 200
TAIL_CHARACTERS = 400


class LogTail(NamedTuple):
    """The last lines of a log that has ``total`` lines; ``bytes_left_out`` of the run's text are in no log."""

    lines: list[str]
    total: int
    bytes_left_out: int = 0

    @property
    def left_out(self) -> int:
        """How many lines stand before them."""
        return self.total - len(self.lines)


def log_tail(text: str) -> LogTail:
    """The last lines of a log. Of a line that is written over by carriage returns it has what was written last."""
    ended = text.removesuffix("\n")
    if not ended:
        return LogTail([], 0)
    last = (line.rstrip("\r").rpartition("\r")[2] for line in ended.rsplit("\n", TAIL_LINES)[-TAIL_LINES:])
    return LogTail([_printable(line, TAIL_CHARACTERS) for line in last], ended.count("\n") + 1, bytes_left_out(text))


# A page shows so many lines, and so much of each; `autoresearch diff` prints all.
MOST_LINES = 2_000
MOST_CHARACTERS = 400
MOST_FILES = 50
NAME_CHARACTERS = 120
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class DiffLine(NamedTuple):
    """One line: ``kind`` is add, del, same or gap, ``old`` and ``new`` its numbers, 0 where it has none.

    ``before``, ``changed`` and ``after`` are its text. ``changed`` is empty where the whole line is new.
    """

    kind: str
    old: int = 0
    new: int = 0
    before: str = ""
    changed: str = ""
    after: str = ""


@dataclass(slots=True)
class ChangedFile:
    """A file of the program, and how many lines were added and removed."""

    name: str
    lines: list[DiffLine] = field(default_factory=list)
    added: int = 0
    removed: int = 0


class ChangedProgram(NamedTuple):
    """What changed, file by file. ``left_out``: so many lines more than a page shows."""

    files: list[ChangedFile]
    left_out: int

    @property
    def added(self) -> int:
        """The lines that were added, in all files."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """The lines that were removed, in all files."""
        return sum(file.removed for file in self.files)


def changed_program(diff: str) -> ChangedProgram:
    """The files and lines of a unified diff, as `autoresearch.ask.runs.diffs` writes it."""
    files: list[ChangedFile] = []
    count = left_out = 0
    lines = iter(diff.split("\n"))
    for line in lines:
        if line.startswith("--- "):
            files.append(ChangedFile(_name(next(lines, ""))))
        elif files and (match := _HUNK.match(line)):
            file = files[-1]
            for hunk_line in _hunk(match, lines):
                file.added += hunk_line.kind == "add"
                file.removed += hunk_line.kind == "del"
                if count < MOST_LINES and len(files) <= MOST_FILES:
                    count += 1
                    file.lines.append(hunk_line)
                else:
                    left_out += hunk_line.kind != "gap"
    for file in files:
        file.lines = list(_marked(file.lines))
    return ChangedProgram(files[:MOST_FILES], left_out)


def _name(line: str) -> str:
    """The file of a line such as ``+++ 7fq2xk1a/train.py``."""
    return one_line(line.removeprefix("+++ ").partition("/")[2], NAME_CHARACTERS)


def _hunk(match: re.Match[str], lines: Iterator[str]) -> Iterator[DiffLine]:
    """The lines of a hunk, counted by its head: a line of the program may look like a head itself."""
    old, new = int(match[1]), int(match[3])
    old_left, new_left = int(match[2] or 1), int(match[4] or 1)
    if old > 1 or new > 1:
        yield DiffLine("gap")
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            return
        text = _printable(line[1:], MOST_CHARACTERS)
        if line.startswith("+"):
            yield DiffLine("add", 0, new, text)
            new, new_left = new + 1, new_left - 1
        elif line.startswith("-"):
            yield DiffLine("del", old, 0, text)
            old, old_left = old + 1, old_left - 1
        else:
            yield DiffLine("same", old, new, text)
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1


def _printable(text: str, most: int) -> str:
    clean = sanitised(text[: most + 1].expandtabs(4))
    return clean if len(clean) <= most else f"{clean[:most]}…"


def _marked(lines: list[DiffLine]) -> Iterable[DiffLine]:
    """The lines, where as many stand in the place of others with what differs marked."""
    marked = list(lines)
    starts = [0, *(at for at, (a, b) in enumerate(pairwise(lines), 1) if a.kind != b.kind), len(lines)]
    blocks = list(pairwise(starts))
    for (first, middle), (_, last) in pairwise(blocks):
        is_exchange = lines[first].kind == "del" and middle < len(lines) and lines[middle].kind == "add"
        if is_exchange and middle - first == last - middle:
            for place in range(middle - first):
                marked[first + place], marked[middle + place] = _pair(lines[first + place], lines[middle + place])
    return marked


def _pair(old: DiffLine, new: DiffLine) -> tuple[DiffLine, DiffLine]:
    """Two lines, one in the place of the other, split where they begin and stop to differ."""
    a, b = old.before, new.before
    shortest = min(len(a), len(b))
    head = next((at for at in range(shortest) if a[at] != b[at]), shortest)
    tail = next((at for at in range(shortest - head) if a[-1 - at] != b[-1 - at]), shortest - head)
    if not a[:head].strip() and not a[len(a) - tail :].strip():
        return old, new  # nothing of it stayed
    return _split(old, head, len(a) - tail), _split(new, head, len(b) - tail)


def _split(line: DiffLine, start: int, end: int) -> DiffLine:
    text = line.before
    return line._replace(before=text[:start], changed=text[start:end], after=text[end:])


# The metric of the tasks of environments: what their programs report while they train are rewards.
_REWARD = "mean_reward"


def run_content(
    answer: ShowAnswer,
    *,
    context: RunContextAnswer | None,
    effects: EffectsAnswer | None,
    parent: ShowAnswer | None,
    task: TaskStatus | None,
    diff: DiffAnswer | None = None,
    me: str = "",
) -> dict[str, object]:
    """The page of a run. ``context`` is None where it was withdrawn, ``me`` the key of the participant who looks.

    ``diff`` is the difference to its parent; None where it comes later, or is not here.
    """
    view, verification = answer.run, answer.verification
    assert view is not None  # a record of another kind has no such page
    assert verification is not None
    run = view.run
    return {
        "shown": answer,
        "used": used_words(run),
        "row": context.row if context else bare_row(view, own=view.participant.key == me),
        "parent": context.parent if context else None,
        "context": context,
        "picture": forest(view, verification, noise=task.noise if task else 0.0),
        "refuting": refuting(run, verification),
        "effects": {effect.name: effect for effect in effects.effects} if effects else None,
        "program": changed_program(diff.diff) if diff else None,
        "curve": _curve(answer, parent.run.run if parent and parent.run else None, task),
        "metrics": _metrics([run, *([parent.run.run] if parent and parent.run else [])]),
        "parent_metrics": bool(parent and parent.run and parent.run.run.metrics),
        "closed": closed(task.baseline, leading(view.standing).value, task.floor) if task else None,
    }


def _curve(answer: ShowAnswer, parent: RunFields | None, task: TaskStatus | None) -> CurveData | None:
    assert answer.run is not None
    run = answer.run.run
    curves = [curve_of(parent, "text-3", label="its parent")] if parent and len(run.curve) > 1 else []
    own = curve_of(run, "blue", label="this run")
    return curve_data([*curves, own], rewards=has_rewards(run, task), unit=answer.budget_unit)


def _metrics(runs: Sequence[RunFields]) -> list[tuple[str, list[str]]]:
    """The other numbers that programs stated, beside each other by name; a dash where a run states none."""
    names = sorted({name for run in runs for name in run.metrics})
    return [
        (name, [brief(run.metrics[name], 6) if name in run.metrics else value(None) for run in runs]) for name in names
    ]


def has_rewards(run: RunFields, task: TaskStatus | None) -> bool:
    """Whether the curve of a run is of rewards and not of losses."""
    return run.mode != "experiment" or (task is not None and task.metric == _REWARD)


# A picture with more curves, a table with more columns, is not read.
MOST_COMPARED = 6
LOOKS = ("blue", "amber", "violet", "red", "text", "grey")
SETTING_CHARACTERS = 40


# Settings that differ from another run's: the other's value, this run's value.
Change = Mapping[str, Sequence[object]]


class Compared(NamedTuple):
    """A run beside others: its row, its record, the difference from the first run, or why that can't be told."""

    row: RunRow
    run: RunFields
    diff: DiffAnswer | None = None
    sentence: str = ""


class Bar(NamedTuple):
    """A run's leading value on the common axis, and the ends of its interval where verifiers measured it."""

    look: str
    at: float
    low: float
    high: float
    text: str


def comparison_content(compared: Sequence[Compared], task: TaskStatus | None, *, unit: str = "") -> dict[str, object]:
    """Runs beside each other: values on one axis, settings that differ, curves, programs as diffs to the first."""
    numbers = [leading(entry.row) for entry in compared]
    ends = [(n.value, n.margin or 0.0) for n in numbers if n.value is not None]
    axis = axis_over(value + side * margin for value, margin in ends for side in (-1, 1))
    bars = [
        None
        if number.value is None
        else Bar(
            look,
            axis.at(number.value),
            axis.at(number.value - (number.margin or 0.0)),
            axis.at(number.value + (number.margin or 0.0)),
            f"{value(number.value)}{f' ± {value(number.margin)}' if number.margin else ''} {number.origin}",
        )
        for look, number in zip(LOOKS, numbers, strict=False)
    ]
    first = compared[0].run
    # Where a program is not here, the settings that the records state are.
    changes: list[Change] = [
        entry.diff.change
        if entry.diff
        else genome_changes(first.genome, entry.run.genome, same_base=first.base == entry.run.base)
        for entry in compared
    ]
    return {
        "compared": compared,
        "looks": LOOKS,
        "bars": bars,
        "ticks": axis.ticks(),
        "metrics": _metrics([entry.run for entry in compared]),
        "settings": [
            (name, [_setting(change, name, changes) for change in changes])
            for name in dict.fromkeys(name for change in changes for name in change)
        ],
        "programs": [changed_program(entry.diff.diff) if entry.diff else None for entry in compared],
        "curve": curve_data(
            [
                curve_of(entry.run, look, label=short(entry.row.id))
                for look, entry in zip(LOOKS, compared, strict=False)
            ],
            rewards=has_rewards(first, task),
            unit=unit,
        ),
    }


def _setting(change: Change, name: str, changes: Sequence[Change]) -> str:
    """A run's value of a setting: the new one where it differs from the first run's, else the first run's."""
    setting = change[name][1] if name in change else next(other[name][0] for other in changes if name in other)
    return "–" if setting is None else one_line(str(setting), SETTING_CHARACTERS)


def lineage_content(path: PathAnswer) -> dict[str, object]:
    """The steps from the baseline to a run."""
    floor, maximize = path.task.floor, path.task.direction == MAXIMIZE
    way = waterfall(path.steps, noise=path.task.noise, floor=floor, maximize=maximize)
    return {"of": path.steps[-1].row.id, "way": way, "floor": floor, "left_out": path.left_out}


def board_content(
    top: TopAnswer,
    rows: Mapping[str, RunRow],
    credit: CreditAnswer,
    voters: VotersAnswer,
    *,
    me: str = "",
    devices: Sequence[str] = (),
    hardware: str = "",
) -> dict[str, object]:
    """The leaderboard of a task. ``rows`` are runs of it by id, ``me`` is the key of the participant who looks.

    ``devices`` are the kinds of hardware to choose from, ``hardware`` the one that is shown; empty: what is compared.
    """
    sections, task = board_sections(top.programs), top.task.digest
    board = confirmed_board(sections[BoardSection.CONFIRMED], rows)
    return {
        "top": top,
        "confirmed": sections[BoardSection.CONFIRMED],
        "lines": {line.program.id: line for line in board.rows},
        "rows": rows,
        "credit": credit,
        "participants": by_credit(credit.participants, task),
        "open": sections[BoardSection.OPEN],
        "failed": sections[BoardSection.FAILED],
        "unattested": sections[BoardSection.UNATTESTED],
        "voters": voters,
        "me": me,
        "devices": devices,
        "hardware": hardware,
    }


def board_sections(programs: Sequence[ProgramView]) -> dict[BoardSection, list[ProgramView]]:
    """Programs by section of the board; where trust names nobody by their state."""
    sections: dict[BoardSection, list[ProgramView]] = {section: [] for section in BoardSection}
    for program in programs:
        usual = BoardSection.OPEN if program.state == RunState.REPORTED else BoardSection.FAILED
        sections[BoardSection(program.section) if program.section else usual].append(program)
    return sections
