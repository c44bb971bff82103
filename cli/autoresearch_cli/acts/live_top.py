"""``top`` as a screen that is drawn anew: a small chart, the workers, the leaderboard; keys act on the chosen run."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

from autoresearch.ask import questions
from autoresearch.ask.node import StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import PauseRequest, ProgressOf, TopOf
from autoresearch.ask.runs.answers import ProgressAnswer, TopAnswer
from autoresearch.errors import AutoresearchError, DaemonNotRunning
from autoresearch.face.columns.runs import program_columns
from autoresearch.face.pages.chart import Scale
from autoresearch.text import counted, sanitised, value
from autoresearch.words import DISCREDITED, WorkState
from autoresearch_cli import home
from autoresearch_cli.rendering.layout import shortened, table
from autoresearch_cli.rendering.output import LOOKS, say, styled, wants_color
from autoresearch_cli.rendering.status import best_so_far, worker_line

ASK_SECONDS, KEY_SECONDS = 2.0, 0.5
CHART_LINES, WORKERS_SHOWN = 6, 4
# On a lower screen the table needs the lines of the chart.
CHART_LEAST = 20
KEYS = "↑ ↓ choose · Enter show · d diff · p pause or resume · q end"
UP, DOWN, FIRST, LAST = ("\x1b[A", "\x1bOA", "k"), ("\x1b[B", "\x1bOB", "j"), ("\x1b[H", "g"), ("\x1b[F", "G")
END = ("q", "\x03", "\x04", "")
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


class Board(NamedTuple):
    """What the screen shows; ``status`` is None where no daemon runs."""

    top: TopAnswer
    progress: ProgressAnswer
    status: StatusAnswer | None

    @classmethod
    def ask(cls, question: TopOf) -> Board:
        """The board now."""
        try:
            status = home.client().ask(Node.status)
        except DaemonNotRunning:
            status = None
        progress = home.ask(questions.progress, ProgressOf(task=question.task))
        return cls(home.ask(questions.top, question), progress, status)


def show_live(question: TopOf, acts: Mapping[str, Callable[[str], None]]) -> None:
    """Show the leaderboard until a person ends it. ``acts`` are done with the id of the chosen run, by their keys."""
    console = Console(highlight=False, markup=False, emoji=False, no_color=not wants_color())
    board, asked_at, chosen, note = Board.ask(question), time.monotonic(), 0, ""
    with _keys() as read, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            ids = [program.id for program in board.top.programs]
            chosen = max(0, min(chosen, len(ids) - 1))
            live.update(Text("\n").join(_lines(board, chosen, note, *console.size)), refresh=True)
            key = read()
            if key in END:
                return
            if key and key in acts and ids:
                live.stop()
                _act(acts[key], ids[chosen])
                while read() is None:
                    pass
                live.start()
            elif key == "p":
                note, asked_at = _pause(board.status), 0.0
            chosen = 0 if key in FIRST else len(ids) - 1 if key in LAST else chosen + (key in DOWN) - (key in UP)
            if time.monotonic() - asked_at >= ASK_SECONDS:
                asked_at = time.monotonic()
                with suppress(AutoresearchError):  # what was there stays
                    board = Board.ask(question)


@contextmanager
def _keys() -> Iterator[Callable[[], str | None]]:
    """What reads the next key; None where none was pressed for half a second, empty where the terminal is gone."""
    descriptor, typed = sys.stdin.fileno(), list[str]()
    before = termios.tcgetattr(descriptor)

    def read() -> str | None:
        if not typed:
            if not select.select([descriptor], [], [], KEY_SECONDS)[0]:
                return None
            try:
                typed.extend(_KEY.findall(os.read(descriptor, 1024).decode(errors="replace")))
            except OSError:
                return ""
        return typed.pop(0) if typed else ""

    try:
        # What was typed ahead is not lost.
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        yield read
    except KeyboardInterrupt:
        return
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _act(act: Callable[[str], None], run: str) -> None:
    """Show what an act prints of a run, until a key is pressed."""
    try:
        act(run)
    except AutoresearchError as error:
        say(f"{error} → {error.hint}" if error.hint else str(error))
    say("any key goes back")


def _pause(status: StatusAnswer | None) -> str:
    """Pause the node, or end its pause. Returns what became of it."""
    try:
        if status is not None and status.state == WorkState.PAUSED:
            return home.client().ask(Node.resume).reason
        return home.client().ask(Node.pause, PauseRequest()).reason
    except AutoresearchError as error:
        return f"{error} → {error.hint}" if error.hint else str(error)


def _lines(board: Board, chosen: int, note: str, width: int, height: int) -> list[Text]:
    """The screen, line by line; at most ``height`` of them."""
    top, now_ms = board.top, home.now_ms()
    task = top.task
    head = f"{task.name} · {task.metric}, {task.direction} · {counted(task.runs, 'run')}, {task.failed} failed"
    lines = [_line(head, width, "bold"), _line(best_so_far(task), width)]
    if height >= CHART_LEAST:
        lines += _chart(board.progress, width)
    if board.status is None:
        lines.append(_line("no daemon runs → autoresearch up --work", width, "yellow"))
    else:
        workers = board.status.workers
        worker_texts = [worker_line(worker, now_ms) for worker in workers[:WORKERS_SHOWN]] or [board.status.reason]
        more = len(workers) - WORKERS_SHOWN
        lines += [_line(text, width) for text in worker_texts] + [_line(f"and {more} more", width)] * (more > 0)
    table_lines = table(program_columns(now_ms, sections=False), top.programs, width - 2, now_ms, cut=True)
    room = max(1, height - len(lines) - 3)
    first = max(0, min(chosen - room // 2, len(top.programs) - room))
    lines.append(Text(""))
    for number, line in enumerate(table_lines[:1] + table_lines[1 + first : 1 + first + room]):
        is_chosen = number and first + number - 1 == chosen
        text = Text.assemble("▶ " if is_chosen else "  ", styled(line))
        if is_chosen:
            text.stylize("bold")
        lines.append(text)
    if not top.programs:
        lines.append(_line("nothing is measured yet", width, "dim"))
    return [*lines[: height - 1], _line(note or KEYS, width, "dim")]


def _line(text: str, width: int, style: str = "") -> Text:
    return Text(shortened(sanitised(text), width), style, no_wrap=True)


# The bit of each of the two by four dots of a Braille pattern, by column and row.
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_PATTERNS = 0x2800


@dataclass(frozen=True, slots=True)
class _Dots:
    """Points in the cells of a chart: by cell the bits of its pattern."""

    columns: int
    cells: dict[tuple[int, int], int]

    def add(self, x: int, y: int) -> None:
        place = (x // 2, y // 4)
        self.cells[place] = self.cells.get(place, 0) | _BITS[x % 2][y % 4]


def _chart(progress: ProgressAnswer, width: int) -> list[Text]:
    """The values by the number of the run, the best one up; the best reported so far as a line."""
    sign = -1.0 if progress.task.direction == "maximize" else 1.0
    marks = [mark for mark in progress.marks if mark.mark not in DISCREDITED]
    points = [(mark.number, mark.reported) for mark in marks]
    points += zip(progress.dots.number, progress.dots.reported, strict=True)
    if len(points) < 2:
        return []
    values = sorted(sign * number for _, number in points)
    # The worst tenth would press the others together.
    best, worst = values[0], values[min(len(values) - 1, len(values) * 9 // 10)]
    axis = Scale(best, worst)
    labels = [value(sign * best), value(sign * worst)]
    margin = max(map(len, labels)) + 1
    wide, high = 2 * (width - margin), 4 * CHART_LINES
    last = max(progress.total, 2)
    some, led = _Dots(wide, {}), _Dots(wide, {})

    def place(number: int, reported: float) -> tuple[int, int]:
        return (number - 1) * (wide - 1) // (last - 1), round(axis.at(sign * reported) / 100 * (high - 1))

    for number, reported in points:
        some.add(*place(number, reported))
    steps = sorted((mark.number, mark.reported) for mark in marks if mark.led_by_claim)
    _draw_steps([place(*step) for step in steps], led, wide)
    lines = []
    for row in range(CHART_LINES):
        label = labels[0] if not row else labels[1] if row == CHART_LINES - 1 else ""
        line = Text.assemble((label.rjust(margin - 1) + " ", "dim"))
        cells = [(column, row) for column in range(width - margin)]
        for leads, part in groupby(cells, led.cells.__contains__):
            drawn = [led.cells.get(cell) or some.cells.get(cell, 0) for cell in part]
            line.append(
                "".join(chr(_PATTERNS + bits) if bits else " " for bits in drawn), LOOKS["good"] if leads else "dim"
            )
        lines.append(line)
    return lines


def _draw_steps(steps: Sequence[tuple[int, int]], dots: _Dots, wide: int) -> None:
    """A line that goes right until the next step, and there up to it."""
    for (x, y), (end, to) in zip(steps, [*steps[1:], (wide, -1)], strict=True):
        for across in range(x, min(end + 1, wide)):
            dots.add(across, y)
        for up in range(min(y, to), max(y, to) + 1) if to >= 0 else ():
            dots.add(end, up)
