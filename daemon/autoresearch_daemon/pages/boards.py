"""The board: confirmed programs with the places that their intervals allow, participants, and what is not confirmed."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import OfTaskAndParticipant, ProgramView, RunRow, RunsOf, TopAnswer, TopOf, operations
from autoresearch.api.parameters import MAXIMUM_ROWS
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import NotFound
from autoresearch.pages import by_credit, confirmed_board, improvement, verifications
from autoresearch.words import BoardSection, RunState
from autoresearch_daemon.pages.asking import Asking


async def board(asking: Asking) -> web.Response:
    """The leaderboard of a task, and who brought it there."""
    try:
        top = await asking.ask(operations.TOP, TopOf(task=asking.task, limit=MAXIMUM_ROWS))
    except NotFound:
        if asking.task:
            raise
        return await asking.render("board.html", "board", top=None)
    sections = _sections(top)
    rows = await _rows(asking, top)
    credit = (await asking.ask(operations.CREDIT, OfTaskAndParticipant(task=top.task.digest))).participants
    task = top.task.digest
    return await asking.render(
        "board.html",
        "board",
        top=top,
        board=confirmed_board(sections[BoardSection.CONFIRMED], rows, maximize=top.task.direction == MAXIMIZE),
        rows=rows,
        credit=[(one, improvement(one, task), verifications(one)) for one in by_credit(credit, task)],
        open=sections[BoardSection.OPEN],
        failed=sections[BoardSection.FAILED],
        unattested=sections[BoardSection.UNATTESTED],
        voters=await asking.ask(operations.VOTERS),
        me=asking.status().participant.key,
        devices=[],
        hardware="",
    )


def _sections(top: TopAnswer) -> dict[BoardSection, list[ProgramView]]:
    """The programs by section; where trust names nobody by their state."""
    found: dict[BoardSection, list[ProgramView]] = {section: [] for section in BoardSection}
    for program in top.programs:
        section = program.section or (BoardSection.OPEN if program.state == RunState.REPORTED else BoardSection.FAILED)
        found[BoardSection(section)].append(program)
    return found


async def _rows(asking: Asking, top: TopAnswer) -> dict[str, RunRow]:
    """The runs of the board with what they changed, by id: those that stand first by value."""
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    answer = await asking.ask(operations.RUNS, RunsOf(task=top.task.digest, sort=sort, size=MAXIMUM_ROWS))
    return {row.id: row for row in answer.runs}
