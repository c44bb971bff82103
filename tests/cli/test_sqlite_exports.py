"""Runs as a database: read back with SQL, whatever strangers wrote in them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.filling import Filled


def test_every_run_is_a_row_that_sql_and_search_find(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    records = [json.loads(line)["run"] for line in cli("run", "export", "--json").stdout.splitlines()]
    for _ in range(2):  # a second time it takes the place of the first
        written = cli("run", "export", "--format", "sqlite", "-o", str(file))
        assert written.exit_code == 0, written.output
    assert list(tmp_path.glob(".runs.db*")) == []
    with closing(sqlite3.connect(file)) as database:
        rows = dict(database.execute("SELECT id, value FROM run"))
        assert rows == {each["id"]: each["run"]["value"] for each in records}
        assert database.execute("SELECT count(*) FROM run WHERE time = datetime(time, 'subsec')").fetchone()
        best = database.execute("SELECT id FROM leaderboard LIMIT 1").fetchone()
        values = {each["id"]: each["run"]["value"] for each in records}
        assert values[best[0]] == min(value for value in values.values() if value is not None)
        assert database.execute("SELECT count(*) FROM steps WHERE gain > 0").fetchone()[0] >= 2
        search = "SELECT run.title FROM run JOIN run_fts ON run.rowid = run_fts.rowid WHERE run_fts MATCH 'halfway'"
        assert database.execute(search).fetchall() == [("halfway back",)]
        settings = database.execute("SELECT value FROM setting WHERE run = ? AND name = 'X'", (filled.best,)).fetchall()
        assert len(settings) == len([each for each in records if each["id"] == filled.best and each["run"]["genome"]])
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_what_can_not_be_written_leaves_all_as_it_was(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    for words in ((), ("-o", str(tmp_path)), ("-o", str(tmp_path / "no" / "runs.db")), ("-o", "x.db", "--task", "no")):
        failed = cli("run", "export", "--format", "sqlite", *words)
        assert failed.exit_code not in (0, 70), words
        assert "Traceback" not in failed.stderr
    assert not list(tmp_path.rglob("*.db*"))


def test_a_log_without_runs_has_all_tables_and_views(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    assert cli("run", "export", "--format", "sqlite", "-o", str(file)).exit_code == 0
    with closing(sqlite3.connect(file)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    assert {"task", "participant", "run", "setting", "metric", "curve", "note", "leaderboard", "steps"} <= counts.keys()
    assert counts["run"] == counts["leaderboard"] == 0


def test_what_is_hidden_is_left_out_unless_it_is_asked_for(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    assert cli("network", "hide", filled.best).exit_code == 0
    for options, expected in (((), 0), (("--hidden",), 1)):
        assert cli("run", "export", "--format", "sqlite", "-o", str(file), *options).exit_code == 0
        with closing(sqlite3.connect(file)) as database:
            (count,) = database.execute("SELECT count(*) FROM run WHERE id = ?", (filled.best,)).fetchone()
        assert count == expected, options
