"""Runs and notes as one SQLite database for SQL, Datasette and spreadsheets: tidy tables, views, full-text search.

A name that a participant chose (a setting, a metric) is a value in a row, never the name of a table or column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from sqlite_utils import Database
from sqlite_utils.db import Table

from autoresearch.ask.desk import Desk
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.notes import note_view
from autoresearch.ask.show import show_answer
from autoresearch.errors import Refused
from autoresearch.face.exports.result import ExportResult
from autoresearch.log.standing.answers import ParticipantView, RunView
from autoresearch.record.kinds import Note
from autoresearch.text import LAST_MS
from autoresearch.words import DISCREDITED

Row = dict[str, Any]
_RUN = """
id task participant parent time title hypothesis proposer mode status reason state:s
value:f verified:f verified_margin:f verified_runs:i verifiers:i gain:f gain_margin:f gain_reported:f
replicate:i budget:f duration_ms:i cpu_ms:i peak_memory_bytes:i device source_digest
"""
# Each table with its columns; those without a type are text.
_TABLES = {
    "task": "id name metric direction budget:f unit floor:f",
    "participant": "id short name",
    "run": _RUN,
    "setting": "run name value",
    "metric": "run name value:f",
    "curve": "run point:i value:f",
    "note": "id task participant time topic status text",
}
_TYPES = {"": str, "s": str, "f": float, "i": int}
_KEYS = ("task", "participant", "run")
_SEARCHED = {"run": ["title", "hypothesis", "reason"], "note": ["text"]}
_DOUBTED = ", ".join(f"'{state}'" for state in sorted(DISCREDITED))
_VIEWS = {
    "leaderboard": f"""
SELECT task.name AS task, run.id, run.title, run.state, coalesce(run.verified, run.value) AS value, run.verifiers,
    participant.short AS participant, participant.name, run.time
FROM run JOIN task ON task.id = run.task JOIN participant ON participant.id = run.participant
WHERE coalesce(run.verified, run.value) IS NOT NULL AND run.state NOT IN ({_DOUBTED})
ORDER BY task.name, coalesce(run.verified, run.value) * iif(task.direction = 'maximize', -1, 1)""",  # noqa: S608 - states are words of this program
    "steps": """
SELECT task.name AS task, run.id, run.title, parent.id AS parent, parent.value AS before, run.value AS after,
    (run.value - parent.value) * iif(task.direction = 'maximize', 1, -1) AS gain, run.time
FROM run JOIN run AS parent ON parent.id = run.parent JOIN task ON task.id = run.task
WHERE run.value IS NOT NULL AND parent.value IS NOT NULL ORDER BY run.time""",
}
# An integer of SQLite has 64 bits with a sign.
_LARGEST = 2**63 - 1
_ROWS_AT_ONCE = 500


def export_sqlite(desk: Desk, tasks: Sequence[FoundTask], place: Path, final: Path) -> ExportResult:
    """Write the runs and notes of tasks into the file ``place``, which is ``final`` afterwards.

    Raises:
        Refused: there is a database that another program has open.
    """
    if final.is_dir():
        raise Refused(f"{final} is a folder", hint="name a file")
    if final.with_name(f"{final.name}-wal").exists():
        raise Refused(f"{final} is open in another program, or was not closed", hint="give a new file")
    return ExportResult(_write(desk, tasks, place), [f"datasette {quote(str(final))}"])


def _write(desk: Desk, tasks: Sequence[FoundTask], path: Path) -> int:
    """Write the database; returns how many runs are in it."""
    path.touch()  # an error of the folder is then one of the system, in its words
    with closing(Database(path)) as database, database.conn:
        for name, words in _TABLES.items():
            columns = dict(word.partition(":")[::2] for word in words.split())
            types = {column: _TYPES[kind] for column, kind in columns.items()}
            keys = [(column, column, "id") for column in columns if column in _KEYS]
            _table(database, name).create(types, pk="id" if "id" in columns else None, foreign_keys=keys)
        people: dict[str, ParticipantView] = {}
        runs = 0
        for task in tasks:
            _insert(database, "task", [{**task._asdict(), "id": task.digest.hex()}])
            for view in _runs(desk, task):
                people[view.participant.key] = view.participant
                _add_run(database, view)
                runs += 1
        _insert(database, "note", _notes(desk, {task.digest for task in tasks}, people))
        participants = ({"id": each.key, "short": each.short, "name": each.name} for each in people.values())
        _insert(database, "participant", participants)
        for name, searched in _SEARCHED.items():
            _table(database, name).enable_fts(searched)
        for name, query in _VIEWS.items():
            database.create_view(name, query)
        for name, column in (("run", "parent"), ("run", "task"), ("setting", "run"), ("metric", "run")):
            _table(database, name).create_index([column])
        _table(database, "curve").create_index(["run"])
    return runs


def _table(database: Database, name: str) -> Table:
    table = database[name]
    assert isinstance(table, Table)
    return table


def _insert(database: Database, name: str, rows: Iterable[Row]) -> None:
    """Add rows; what the table has no column for is left out."""
    columns = [word.partition(":")[0] for word in _TABLES[name].split()]
    cells = ({column: _cell(row.get(column)) for column in columns} for row in rows)
    _table(database, name).insert_all(cells, batch_size=_ROWS_AT_ONCE)


def _cell(value: object) -> object:
    return str(value) if isinstance(value, int) and abs(value) > _LARGEST else value


def _runs(desk: Desk, task: FoundTask) -> Iterator[RunView]:
    history = desk.log.runs.history(task.digest)
    left_out = desk.log.hidden.of([row.id for row in history])
    for row in history:
        view = show_answer(desk.log, row.id, marks=False).run if row.id not in left_out else None
        if view is not None:
            yield view


def _add_run(database: Database, view: RunView) -> None:
    run, standing = view.run, view.standing
    row = {name: getattr(run, name) for name in run.__struct_fields__}
    row |= {name: getattr(standing, name) for name in standing.__struct_fields__}
    row |= {
        "id": view.id,
        "participant": view.participant.key,
        "time": _time(view.time_ms),
        "proposer": run.proposed_by,
    }
    _insert(database, "run", [row])
    _insert(database, "setting", ({"run": view.id, "name": name, "value": str(v)} for name, v in run.genome.items()))
    _insert(database, "metric", ({"run": view.id, "name": name, "value": v} for name, v in run.metrics.items()))
    _insert(database, "curve", ({"run": view.id, "point": at, "value": v} for at, v in enumerate(run.curve)))


def _notes(desk: Desk, tasks: set[bytes], people: dict[str, ParticipantView]) -> Iterator[Row]:
    """The notes on these tasks that hold and are not hidden; their authors are added to ``people``."""
    for record in desk.log.records.of_kinds(["note"]):
        body = record.body
        assert isinstance(body, Note), "they were asked for"
        if body.task is None or body.task not in tasks or desk.log.records.is_withdrawn(record):
            continue
        if desk.log.hidden.of([record.id]):
            continue
        view = note_view(desk.log, record)
        people[view.participant.key] = view.participant
        yield {
            "id": view.id,
            "task": body.task.hex(),
            "participant": view.participant.key,
            "time": _time(view.time_ms),
            "topic": view.topic,
            "status": view.status,
            "text": view.text,
        }


def _time(time_ms: int) -> str:
    """In UTC, as SQLite's functions of time read it."""
    return datetime.fromtimestamp(min(time_ms, LAST_MS) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
