"""The board: confirmed programs with the places that their intervals allow, participants, and what is not confirmed."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import MAXIMUM_ROWS, OfTaskAndParticipant, RunRow, RunsOf, TopAnswer, TopOf, operations
from autoresearch.direction import MAXIMIZE
from autoresearch.errors import NotFound
from autoresearch.pages import board_content
from autoresearch_daemon.pages.asking import Asking


async def board(asking: Asking) -> web.Response:
    """The leaderboard of a task, and who brought it there."""
    try:
        top = await asking.ask(operations.TOP, TopOf(task=asking.task, limit=MAXIMUM_ROWS))
    except NotFound:
        if asking.task:
            raise
        return await asking.render("board.html", "board", top=None)
    credit = await asking.ask(operations.CREDIT, OfTaskAndParticipant(task=top.task.digest))
    voters, me = await asking.ask(operations.VOTERS), asking.status().participant.key
    values = board_content(top, await _rows(asking, top), credit, voters, me=me)
    return await asking.render("board.html", "board", **values)


async def _rows(asking: Asking, top: TopAnswer) -> dict[str, RunRow]:
    """The runs of the board with what they changed, by id: those that stand first by value."""
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    answer = await asking.ask(operations.RUNS, RunsOf(task=top.task.digest, sort=sort, size=MAXIMUM_ROWS))
    return {row.id: row for row in answer.runs}
