"""The steps that bring an older file to the tables of the log.

In a module of its own because sqlite-utils is slow to import and only a new or an old file needs it.
"""

from __future__ import annotations

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from autoresearch.log.statements import STEPS

migrations = Migrations("log")


def _take(database: Database, step: int) -> None:
    for statement in STEPS[step - 1]:
        database.conn.execute(statement)
    database.conn.execute(f"PRAGMA user_version = {step}")


@migrations()
def records_and_projections(database: Database) -> None:
    """The records, and what is computed from them."""
    _take(database, 1)


@migrations()
def commitments_and_fraud(database: Database) -> None:
    """What verifiers committed themselves to, what proves fraud by itself, whose checkpoint is whose."""
    _take(database, 2)


@migrations()
def lineage_of_withdrawn_runs(database: Database) -> None:
    """What a run named as its parent, whether or not its author took it back."""
    _take(database, 3)


@migrations()
def entries(database: Database) -> None:
    """Which device says what of which program, so that one participant's words are found whatever others write."""
    _take(database, 4)


@migrations()
def sightings(database: Database) -> None:
    """Which runs of others a run says that its author had seen."""
    _take(database, 5)


@migrations()
def tables_named_for_what_they_hold(database: Database) -> None:
    """Programs, and where a run was mentioned."""
    _take(database, 6)


@migrations()
def entries_in_order(database: Database) -> None:
    """What an entry is ordered by, and how many devices measured a run of it; runs with a parent on another task."""
    _take(database, 7)


@migrations()
def words(database: Database) -> None:
    """What participants wrote, found by its words."""
    _take(database, 8)


@migrations()
def costs(database: Database) -> None:
    """The processor time of runs."""
    _take(database, 9)


@migrations()
def releases(database: Database) -> None:
    """Releases of components."""
    _take(database, 10)


@migrations()
def any_budget(database: Database) -> None:
    """Tasks whose runs rank whatever their budget."""
    _take(database, 11)
