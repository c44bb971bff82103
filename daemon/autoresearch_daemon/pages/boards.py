"""The board: confirmed programs with the places that their intervals allow, participants, and what is not confirmed."""

from __future__ import annotations

import msgspec
from aiohttp import web

from autoresearch.api import MAXIMUM_ROWS, OfTask, OfTaskAndParticipant, RunRow, RunsOf, TopAnswer, TopOf, operations
from autoresearch.api.parameters import Hardware
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import NotFound
from autoresearch.pages import SECTION_MARKS, as_program, board_content
from autoresearch_daemon.pages.asking import Asking

# The value by which the address asks for what the network compares, whatever this machine has.
COMPARED = "compared"


class BoardOf(OfTask, frozen=True, kw_only=True):
    """Which task, and on which hardware: left out, that of this machine where wall-clock numbers are compared."""

    hardware: Hardware = ""


async def board(asking: Asking) -> web.Response:
    """The leaderboard of a task, and who brought it there."""
    asked = asking.parameters(BoardOf)
    try:
        top = await asking.ask(operations.TOP, TopOf(task=asked.task, limit=MAXIMUM_ROWS))
    except NotFound:
        if asked.task:
            raise
        return await asking.render("board.html", "board", top=None)
    hardware = asked.hardware or await _own_hardware(asking, top)
    chosen = "" if hardware in (COMPARED, top.hardware) else hardware
    shown, rows = await _on_hardware(asking, top, chosen) if chosen else (top, await _rows(asking, top))
    credit = await asking.ask(operations.CREDIT, OfTaskAndParticipant(task=top.task.digest))
    voters, me = await asking.ask(operations.VOTERS), asking.status().participant.key
    devices = await _devices(asking, top)
    values = board_content(shown, rows, credit, voters, me=me, devices=devices, hardware=chosen)
    return await asking.render("board.html", "board", **values)


async def _own_hardware(asking: Asking, top: TopAnswer) -> str:
    """The hardware of this participant's newest run, where numbers of one kind alone are compared."""
    if not top.hardware:
        return ""
    newest = await asking.ask(operations.RUNS, RunsOf(task=top.task.digest, by="me", size=1))
    return newest.runs[0].device if newest.runs else ""


async def _devices(asking: Asking, top: TopAnswer) -> list[str]:
    """The kinds of hardware that runs of the task state."""
    runners = (await asking.ask(operations.RUNNERS, OfTask(task=top.task.digest))).runners
    return sorted({device for one in runners for device in one.devices if device})


async def _on_hardware(asking: Asking, top: TopAnswer, hardware: str) -> tuple[TopAnswer, dict[str, RunRow]]:
    """The same of the runs on one kind of hardware."""
    rows: dict[str, RunRow] = {}
    programs = []
    for section, marks in SECTION_MARKS.items():
        found = await _rows(asking, top, hardware=hardware, state=",".join(marks))
        programs += [as_program(row, section) for row in found.values() if row.value is not None]
        rows |= found
    return msgspec.structs.replace(top, programs=programs), rows


async def _rows(asking: Asking, top: TopAnswer, *, hardware: str = "", state: str = "") -> dict[str, RunRow]:
    """The best runs of a board by id, with what they changed."""
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    asked = RunsOf(task=top.task.digest, hardware=hardware, state=state, sort=sort, size=MAXIMUM_ROWS)
    return {row.id: row for row in (await asking.ask(operations.RUNS, asked)).runs}
