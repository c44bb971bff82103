"""The steps in their order. Each reads what records say and what the steps before it wrote."""

from __future__ import annotations

import sqlite3

from autoresearch.log.derive.beliefs import BELIEFS
from autoresearch.log.derive.copies import COPIES
from autoresearch.log.derive.credit import CREDIT
from autoresearch.log.derive.entries import ENTRIES
from autoresearch.log.derive.forks import FORKS
from autoresearch.log.derive.leaders import LEADERS
from autoresearch.log.derive.listing import LISTING
from autoresearch.log.derive.pairs import PAIRS
from autoresearch.log.derive.people import PEOPLE
from autoresearch.log.derive.programs import PROGRAMS
from autoresearch.log.derive.step import Changes, Step
from autoresearch.log.derive.verdicts import VERDICTS
from autoresearch.log.standing.hiding import HIDDEN

STEPS: tuple[Step, ...] = (
    HIDDEN,  # what a person hides
    FORKS,  # two records of one number
    PEOPLE,  # whose word counts
    COPIES,  # who published first
    BELIEFS,  # what a program's own number is worth
    VERDICTS,  # what is judged of each run
    CREDIT,  # what that says of people
    PROGRAMS,  # all runs of a program together
    PAIRS,  # a run beside its parent
    ENTRIES,  # a program as one device ran it
    LISTING,  # rows of lists and charts
    LEADERS,  # who led when
)


def change_all(connection: sqlite3.Connection, changes: Changes) -> None:
    """Have all steps follow the records that were stored and dropped. In the transaction that does it."""
    for step in STEPS:
        if step.change:
            step.change(connection, changes)


def finish_all(connection: sqlite3.Connection) -> None:
    """Do what comes last in a transaction."""
    for step in STEPS:
        if step.finish:
            step.finish(connection)
