"""The board: confirmed programs with the places that their intervals allow, participants, and what is not confirmed."""

from __future__ import annotations

from typing import NamedTuple

from aiohttp import web

from autoresearch.api import OfTask, OfTaskAndParticipant, ProgramView, RunRow, RunsOf, TopAnswer, TopOf, operations
from autoresearch.api.parameters import MAXIMUM_ROWS, Hardware
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import NotFound
from autoresearch.pages import as_program, by_credit, confirmed_board, improvement, verifications
from autoresearch.words import BoardSection, RunMark, RunState
from autoresearch_daemon.pages.asking import Asking

# The value by which the address asks for what the network compares, whatever this machine has.
COMPARED = "compared"
MARKS = {
    BoardSection.CONFIRMED: (RunMark.CONFIRMED,),
    BoardSection.OPEN: (RunMark.PROVISIONAL, RunMark.LEADING, RunMark.REPORTED),
    BoardSection.FAILED: (
        *(RunMark.NOT_REPLICATED, RunMark.DISPUTED, RunMark.REFUTED),
        *(RunMark.FRAUD, RunMark.BANNED),
    ),
}


class BoardOf(OfTask, frozen=True, kw_only=True):
    """Which task, and on which hardware: left out, that of this machine where wall-clock numbers are compared."""

    hardware: Hardware = ""


class Sections(NamedTuple):
    """The programs of a board by section, and their runs by id."""

    programs: dict[BoardSection, list[ProgramView]]
    rows: dict[str, RunRow]


async def board(asking: Asking) -> web.Response:
    """The leaderboard of a task, and who brought it there."""
    asked = asking.parameters(BoardOf)
    try:
        top = await asking.ask(operations.TOP, TopOf(task=asked.task, limit=MAXIMUM_ROWS))
    except NotFound:
        if asked.task:
            raise
        return await asking.render("board.html", "board", top=None)
    task = top.task.digest
    hardware = asked.hardware or await _own_hardware(asking, top)
    chosen = "" if hardware in (COMPARED, top.hardware) else hardware
    programs, rows = await (_on_hardware(asking, top, chosen) if chosen else _compared(asking, top))
    credit = (await asking.ask(operations.CREDIT, OfTaskAndParticipant(task=task))).participants
    return await asking.render(
        "board.html",
        "board",
        top=top,
        board=confirmed_board(programs[BoardSection.CONFIRMED], rows, maximize=top.task.direction == MAXIMIZE),
        rows=rows,
        credit=[(one, improvement(one, task), verifications(one)) for one in by_credit(credit, task)],
        open=programs[BoardSection.OPEN],
        failed=programs[BoardSection.FAILED],
        unattested=programs[BoardSection.UNATTESTED],
        voters=await asking.ask(operations.VOTERS),
        me=asking.status().participant.key,
        devices=await _devices(asking, task),
        hardware=chosen,
    )


async def _own_hardware(asking: Asking, top: TopAnswer) -> str:
    """The hardware of this participant's newest run, where numbers of one kind alone are compared."""
    if not top.hardware:
        return ""
    newest = await asking.ask(operations.RUNS, RunsOf(task=top.task.digest, by="me", size=1))
    return newest.runs[0].device if newest.runs else ""


async def _devices(asking: Asking, task: str) -> list[str]:
    """The kinds of hardware that runs of the task state."""
    runners = (await asking.ask(operations.RUNNERS, OfTask(task=task))).runners
    return sorted({device for one in runners for device in one.devices if device})


async def _compared(asking: Asking, top: TopAnswer) -> Sections:
    """The leaderboard as every node has it; where trust names nobody its sections are by state."""
    programs: dict[BoardSection, list[ProgramView]] = {section: [] for section in BoardSection}
    for program in top.programs:
        section = program.section or (BoardSection.OPEN if program.state == RunState.REPORTED else BoardSection.FAILED)
        programs[BoardSection(section)].append(program)
    return Sections(programs, await _rows(asking, top, RunsOf()))


async def _on_hardware(asking: Asking, top: TopAnswer, hardware: str) -> Sections:
    """The same of the runs on one kind of hardware."""
    programs: dict[BoardSection, list[ProgramView]] = {section: [] for section in BoardSection}
    rows: dict[str, RunRow] = {}
    for section, marks in MARKS.items():
        found = await _rows(asking, top, RunsOf(hardware=hardware, state=",".join(marks)))
        programs[section] = [as_program(row) for row in found.values() if row.value is not None]
        rows |= found
    return Sections(programs, rows)


async def _rows(asking: Asking, top: TopAnswer, which: RunsOf) -> dict[str, RunRow]:
    """The best runs of a board by id, with what they changed."""
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    asked = RunsOf(task=top.task.digest, hardware=which.hardware, state=which.state, sort=sort, size=MAXIMUM_ROWS)
    return {row.id: row for row in (await asking.ask(operations.RUNS, asked)).runs}
