"""What a demo cluster of daemons does, from their events and answers, on a terminal or elsewhere.

On a terminal a row a daemon is redrawn, with finished lines above; elsewhere there are plain lines.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autoresearch.ask.node import Event, StatusAnswer, TaskStatus
from autoresearch.face.columns.column import short
from autoresearch.face.columns.runs import leading_words
from autoresearch.log.standing.answers import Leading, leading
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.text import counted, one_line, percent, value
from autoresearch.words import STOPPED, RunStatus
from autoresearch_cli.demo.plan import task_to_name
from autoresearch_cli.event_display import finished_line, progress_in, text_in
from autoresearch_cli.rendering.layout import shortened
from autoresearch_cli.rendering.output import print_line, say, wants_color

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

CHOOSING, CHECKING = "choosing the next change", "checking"
DONE = frozenset({"runs_done", "time_over", "not_asked"})


@dataclass(slots=True)
class Member:
    """One daemon as it was last seen. ``ended`` says how, when it is gone."""

    name: str
    doing: str = "starting"
    fraction: float = 0.0
    note: str = ""
    in_hand: bool = False
    connected: int = 0
    records: int = 0
    behind: int = 0
    best: Leading | None = None
    done: bool = False
    ended: str = ""


@dataclass(slots=True)
class ScreenLine:
    """Something to keep on the screen."""

    text: str
    style: str = ""


@dataclass(slots=True)
class DemoState:
    """All members, what they did together, and where they stand."""

    members: dict[str, Member]
    runs: int = 0
    failed: int = 0
    gave_way: int = 0
    task: str = ""
    statuses: dict[str, StatusAnswer] = field(default_factory=dict)

    @property
    def status(self) -> StatusAnswer | None:
        """What was said last of the task that they work on, by its digest ``task``."""
        return self.statuses.get(self.task)

    def task_to_name(self) -> TaskStatus | None:
        """The last task with a gain, else the last one that has a value, or the one in work."""
        tasks = [status.task for status in self.statuses.values() if status.task]
        return task_to_name(tasks) or (self.status.task if self.status else None)

    @classmethod
    def of(cls, names: Iterable[str]) -> DemoState:
        """A demo cluster that just started."""
        return cls({name: Member(name) for name in names})

    def alive(self) -> list[Member]:
        """Those whose daemon is there."""
        return [member for member in self.members.values() if not member.ended]

    def is_over(self) -> bool:
        """Whether all that are left have done what they were asked for."""
        return all(member.done and not member.in_hand for member in self.alive())

    def is_equal(self) -> bool:
        """Whether all that are left hold the same records."""
        return not any(member.behind for member in self.alive())

    def hear(self, name: str, event: Event) -> ScreenLine | None:
        """Take one event of a member in; what is worth a line of its own comes back."""
        member = self.members[name]
        match event.kind:
            case "run_started" | "check_started":
                member.doing, member.fraction, member.note, member.in_hand = event.text, 0.0, "", True
            case "progress":
                member.fraction, member.note = progress_in(event)
            case "run_finished" | "run_failed":
                checked = member.doing.startswith(CHECKING)
                member.doing, member.fraction, member.note, member.in_hand = CHOOSING, 0.0, "", False
                # A check that was stopped is nobody's run.
                return ScreenLine(f"◇ {name}  {event.text}", "dim") if checked else self._ended(name, event)
            case "committed" | "verified":
                # What was measured earlier is told while the next is being measured.
                if member.doing.startswith(f"{CHECKING} {short(text_in(event, 'run'))}"):
                    member.doing, member.fraction, member.note, member.in_hand = CHOOSING, 0.0, "", False
                return ScreenLine(f"◇ {name}  {event.text}", "dim")
            case "state":
                member.done = text_in(event, "why") in DONE
                if member.done or not member.in_hand:
                    member.doing = text_in(event, "reason")
            case _:
                pass
        return None

    def _ended(self, name: str, event: Event) -> ScreenLine:
        status = text_in(event, "status")
        title = text_in(event, "title") or event.text
        if status == RunStatus.CANCELLED:
            self.gave_way += 1
            return ScreenLine(f"↷ {name}  leaves “{title}” to another", "dim")
        self.runs += 1
        self.failed += status != RunStatus.OK
        good = status == RunStatus.OK
        return ScreenLine(
            f"{name}  {finished_line(event)}", ("bold" if event.data.get("is_best") else "") if good else "yellow"
        )

    def see(self, name: str, status: StatusAnswer) -> None:
        """Take a member's answer about itself in."""
        member = self.members[name]
        member.connected = status.net.connected if status.net else 0
        is_same = status.task is not None and status.task.digest == self.task
        member.best = leading(status.task.best) if status.task and is_same and status.task.best else None
        if status.task and is_same:
            previous = self.status.task if self.status else None
            if previous is None or status.task.runs >= previous.runs:
                self.statuses[self.task] = status

    def compare(self, held: Mapping[str, frozenset[bytes]]) -> None:
        """Take in which records each member holds; those that are gone are compared with what they held last."""
        everything = frozenset[bytes]().union(*held.values())
        for name, records in held.items():
            self.members[name].records, self.members[name].behind = len(records), len(everything - records)

    def lose(self, name: str, how: str) -> ScreenLine | None:
        """A member's process is gone; a line the first time."""
        member = self.members[name]
        if member.ended:
            return None
        member.ended, member.in_hand, member.doing, member.fraction, member.note = how, False, how, 0.0, ""
        left = counted(len(self.alive()), "daemon")
        return ScreenLine(f"✗ {name} {how}; {left} {'goes' if len(self.alive()) == 1 else 'go'} on", "bold red")


def standing(state: DemoState) -> str:
    """Best, distance to the floor, runs, and whether all hold the same."""
    parts = []
    task = state.status.task if state.status else None
    if task is not None and task.best is not None:
        way = "" if task.closed is None else f", {percent(task.closed)} of the way to {value(task.floor)}"
        parts.append(f"best {leading_words(task.best)}{way}")
    parts.append(f"{counted(state.runs, 'run')}, {state.failed} failed")
    alive = state.alive()
    equal = sum(1 for member in alive if not member.behind)
    same = "all logs equal" if len(alive) == len(state.members) else f"the {counted(len(alive), 'log')} left equal"
    parts.append(same if equal == len(alive) else f"{equal} of {len(alive)} logs equal")
    return " · ".join(parts)


def row(member: Member) -> str:
    """One member in a line of text: how far it is, what it does, what it holds."""
    parts = [
        member.name,
        percent(member.fraction) if member.in_hand else "",
        member.doing,
        member.note,
        holding(member),
    ]
    return "  ".join(filter(None, parts))


def holding(member: Member) -> str:
    """How many records a member holds, whether that is all there are, and how many others it is connected with."""
    where = f"{member.behind} behind" if member.behind else "equal"
    text = f"{counted(member.records, 'record')}, {where}"
    return text if member.ended else f"{text}, {counted(member.connected, 'peer')}"


def done_twice(records: Iterable[Record]) -> int:
    """How many runs repeat what another run had measured: same task, source and seed, by anybody."""
    done = Counter(
        (record.body.task, record.body.source_digest, record.body.replicate)
        for record in records
        if isinstance(record.body, Run) and record.body.status not in STOPPED
    )
    return sum(done.values()) - len(done)


PLAIN_SECONDS = 10.0
TITLE_CHARACTERS = 44
BAR_CHARACTERS = 16
NOTE_CHARACTERS = 22
# What a row always has besides: the daemon's name, how many records it holds, gaps.
BESIDE_CHARACTERS = 50
# A bar and a note are left out where less than this would be left for what a daemon does.
LEAST_CHARACTERS = 20


class DemoDisplay:
    """Shows the state of a demo cluster; ``live`` is the context in which the rows are redrawn."""

    def __init__(self, state: DemoState, *, quiet: bool) -> None:
        self._state = state
        self._quiet = quiet
        self._spoken = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False, markup=False, emoji=False, no_color=not wants_color())
            self._live = Live(
                get_renderable=lambda: picture(state, console.width),
                console=console,
                transient=True,
                refresh_per_second=4,
            )

    def live(self) -> AbstractContextManager[object]:
        """While this is entered the rows are on the screen."""
        return self._live or nullcontext()

    def line(self, line: ScreenLine) -> None:
        """Keep a line: above the rows, and in the pipe when standard output is one."""
        if not self._quiet:
            print_line(line.text, style=line.style, above=self._live.console if self._live else None)

    def look(self) -> None:
        """Without a terminal: say every ten seconds where everybody stands."""
        now = time.monotonic()
        if self._live or now - self._spoken < PLAIN_SECONDS:
            return
        self._spoken = now
        say(standing(self._state))
        for member in self._state.members.values():
            say(f"  {row(member)}")


def picture(state: DemoState, width: int) -> Table:
    """A row for each daemon and one for where they stand; without the bars and the notes where it is narrow."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), show_footer=False)
    room = width - BESIDE_CHARACTERS
    has_bars = room >= LEAST_CHARACTERS + BAR_CHARACTERS
    room -= BAR_CHARACTERS * has_bars
    has_notes = room >= LEAST_CHARACTERS + NOTE_CHARACTERS
    room -= NOTE_CHARACTERS * has_notes
    for member in state.members.values():
        gone = "red" if member.ended else ""
        bar = ProgressBar(total=1.0, completed=member.fraction, width=BAR_CHARACTERS) if member.in_hand else Text("")
        rows.add_row(
            Text(member.name, style=gone or "bold cyan"),
            Text(shortened(one_line(member.doing), max(1, min(TITLE_CHARACTERS, room))), style=gone),
            *([bar] if has_bars else []),
            *([Text(one_line(member.note))] if has_notes else []),
            Text(holding(member), style="yellow" if member.behind else "green"),
        )
    for column in rows.columns:
        column.no_wrap = True
    whole = Table.grid()
    whole.add_row(rows)
    whole.add_row(Text(standing(state), style="bold"))
    return whole
