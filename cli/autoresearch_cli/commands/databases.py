"""``node repair``, ``node query`` and ``node compact``: the databases of this node, by hand."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from csv import writer as csv_writer
from enum import StrEnum
from operator import itemgetter
from typing import Annotated

import msgspec
import typer

from autoresearch.errors import NotFound, Refused, TimedOut, UsageError
from autoresearch.face.columns.column import Column
from autoresearch.face.exports.tables import text_cell
from autoresearch.log.connection import connect_read_only
from autoresearch.log.repair import repair as repair_damaged
from autoresearch.text import counted, size
from autoresearch_cli import home, starting
from autoresearch_cli.acts import home_backup
from autoresearch_cli.catalogue import Answered, CommandApp, JsonLines
from autoresearch_cli.models import CompactAnswer, CompactedFile, RepairAnswer, RepairedFile
from autoresearch_cli.rendering.output import is_rich, print_list, print_rows, say

app = CommandApp()


class Database(StrEnum):
    """Which database of this node."""

    LOG = "log"
    FILES = "files"
    LOCAL = "local"


@app.command(
    "node repair",
    ("autoresearch down && autoresearch node repair", "while no daemon runs"),
    ("autoresearch node doctor log", "what is wrong, and afterwards that nothing is"),
    ("autoresearch node repair --json | jq '.files[].lost'", "how many records could not be read"),
    see="node doctor, node restore, network peers",
)
def repair() -> Answered:
    """Make damaged databases anew from what can be read in them. The damaged file is kept under another name.

    Records that were lost come back from peers when the daemon runs; so do files when somebody looks at them.
    """
    _refuse_running()
    manifest = home.manifest()
    done = repair_damaged(home.paths(), manifest.network, manifest.trust)
    files = [RepairedFile(file=str(db.file), rows=db.rows, lost=db.lost, kept_as=str(db.kept_as)) for db in done]
    yield RepairAnswer(files=files)
    for file in files:
        lost = f", at least {counted(file.lost, 'record')} could not" if file.lost else ""
        say(f"{file.file}: {counted(file.rows, 'row')} could be read{lost}; the damaged file is {file.kept_as}")
    if any(file.lost for file in files):
        say("→ autoresearch up: peers send what they have of the rest; autoresearch node import FILE takes in a bundle")
    if not files:
        say("no database is damaged")


# What a question does. All else is refused: other files are neither attached nor written.
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_DESCRIBING = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "data_version"})


# So many steps of SQLite's machine are between two looks at the clock.
_STEPS = 100_000


def _reads(action: int, first: str | None, *_: str | None) -> int:
    is_description = action == sqlite3.SQLITE_PRAGMA and first in _DESCRIBING
    # SQLite asks this for a function that is read as a table. Nobody changes the schema of a file that is only read.
    is_table_function = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
    is_reading = action in _READING or is_description or is_table_function
    return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY


@app.command(
    "node query",
    ('autoresearch node query "SELECT kind, count(*) FROM record GROUP BY kind"', "records by kind"),
    ("autoresearch node query", "the tables and their columns"),
    (
        'autoresearch node query --db local "SELECT * FROM model_call" --csv > calls.csv',
        "what models were asked, for a spreadsheet",
    ),
    see="run export, run list, node paths",
)
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT. Left out: the tables and columns.")] = "",
    *,
    db: Annotated[Database, typer.Option("--db", help="The log, the index of files, or the node's own notes.")] = (
        Database.LOG
    ),
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, help="No more rows than this.")] = 1000,
    seconds: Annotated[float, typer.Option(min=0.1, help="End a question that takes longer than this.")] = 60.0,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    json: JsonLines = False,
) -> None:
    """Ask a database of this node in SQL; nothing can be changed by it. Tables of the log may change between versions.

    The first line names the columns. Keys and hashes are shown in hex.
    """
    if csv and json:
        raise UsageError("--csv and --json are two forms", hint="take one of them")
    paths = home.paths()
    file = {Database.LOG: paths.log, Database.FILES: paths.blobs / "index.sqlite", Database.LOCAL: paths.local}[db]
    if not file.exists():
        raise NotFound(f"There is no {file} yet.", hint="autoresearch up")
    tables = "SELECT m.name AS 'table', c.name AS 'column', c.type FROM sqlite_master AS m, pragma_table_info(m.name)"
    try:
        with closing(connect_read_only(file)) as connection:
            connection.set_authorizer(_reads)
            end = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            cursor = connection.execute(sql or f"{tables} AS c WHERE m.type = 'table'")
            names = [name for name, *_ in cursor.description or ()]
            rows = cursor.fetchmany(limit + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            raise TimedOut(f"The question took longer than {seconds:g} s.", hint="--seconds N gives it more") from error
        raise UsageError(f"That can't be asked: {error}.", hint="autoresearch node query shows the tables") from error
    printable = [[value.hex() if isinstance(value, bytes) else value for value in row] for row in rows[:limit]]
    if json:
        for row in printable:
            sys.stdout.write(msgspec.json.encode(dict(zip(names, row, strict=True))).decode() + "\n")
    elif csv:
        writer = csv_writer(sys.stdout, lineterminator="\n")
        writer.writerows([text_cell(str("" if cell is None else cell)) for cell in row] for row in [names, *printable])
    elif is_rich():
        cells = [["" if cell is None else str(cell) for cell in row] for row in printable]
        columns: list[Column[list[str]]] = [Column(name, itemgetter(at)) for at, name in enumerate(names)]
        print_list(columns, cells)
    else:
        print_rows([names, *printable])
    if len(rows) > limit:
        say(f"there are more than these {limit} rows: --limit N")


@app.command(
    "node compact",
    ("autoresearch down && autoresearch node compact", "while no daemon runs"),
    ("autoresearch node compact --json", "the same for a program"),
    ("autoresearch node doctor log && autoresearch node compact", "check it first"),
    see="node doctor, node repair, node paths",
)
def compact() -> Answered:
    """Give back to the disk what the databases of this node do not use any more. No record is lost."""
    _refuse_running()
    done = home_backup.compact(home.paths())
    answer = CompactAnswer(files=[CompactedFile(file=str(file), before=old, after=new) for file, old, new in done])
    yield answer
    for file in answer.files:
        say(f"{file.file}: {size(file.before)} → {size(file.after)}")
    if not answer.files:
        say("there are no databases here yet")


def _refuse_running() -> None:
    if starting.is_running():
        raise Refused("The daemon runs, and uses the databases.", hint="autoresearch down, then again")
