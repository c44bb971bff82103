"""Damaged pages, queries: what a person does with the databases by hand."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.models import RepairAnswer

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.local import Choice, choose, chosen
from autoresearch.log.log import Log
from autoresearch.log.repair import damage, repair
from autoresearch.paths import Paths
from autoresearch.record.kinds import Note
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK
from autoresearch.trust.roster import Trust
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, Filled
from tests.daemon.daemons import Daemon, wait_for
from tests.log.standing.village import ANN


def pages_of(file: Path, table: str) -> list[int]:
    """The numbers of the pages that hold the rows of a table, from 1 on."""
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
        try:
            return [page for (page,) in connection.execute(query, (table,))]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not say which pages are whose")


def spoil(file: Path, *pages: int) -> None:
    """Overwrite pages, as a failing disk does."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as out:
        for page in pages:
            out.seek((page - 1) * size)
            out.write(b"\xff" * size)


def ids(paths: Paths) -> set[bytes]:
    with Log.open(paths.log, DEFAULT_NETWORK, read_only=True) as log:
        return {record_id for _, record_id in log.records.iter_keys()}


@pytest.mark.slow
def test_a_log_with_a_damaged_page_keeps_what_can_be_read(cli: Cli, filled: Filled, paths: Paths) -> None:
    with Log.open(paths.log, DEFAULT_NETWORK) as log:
        for number in range(300):
            body = Note(topic="insight", text=f"{number} " * 40, task=filled.task.digest)
            log.writer.append(ANN, "note", body, now_ms=START_MS + number)
        pairs = list(log.records.iter_raw())
    before = ids(paths)
    pages = pages_of(paths.log, "record")
    spoil(paths.log, pages[len(pages) // 2], pages[-1])
    listed = cli("node", "records")
    assert listed.exit_code not in {0, 70}
    assert "is damaged" in listed.stderr
    assert "autoresearch node repair" in listed.stderr
    checked = cli("node", "doctor", "log")
    assert checked.exit_code == 1
    assert f"{paths.log} is damaged" in checked.stdout + checked.stderr

    repaired = cli("node", "repair", "--json")
    assert repaired.exit_code == 0, repaired.stderr
    answer = msgspec.json.decode(repaired.stdout, type=RepairAnswer)
    [file] = answer.files
    assert (file.file, file.rows + file.lost) == (str(paths.log), len(before))
    assert 0 < file.lost < len(before) / 2
    assert Path(file.kept_as).read_bytes().count(b"\xff" * 4096) > 0
    stored = ids(paths)
    assert stored < before
    assert len(stored) == file.rows
    assert cli("node", "records").exit_code == 0
    assert cli("node", "doctor", "log").exit_code == 0
    assert "no database is damaged" in cli("node", "repair").stderr

    with Log.open(paths.log, DEFAULT_NETWORK) as log:  # a peer sends all that it has
        log.writer.ingest(pairs, now_ms=START_MS + DAY_MS)
    assert ids(paths) == before


@pytest.mark.slow
def test_the_index_of_files_and_the_nodes_own_notes_come_back(cli: Cli, filled: Filled, paths: Paths) -> None:
    with BlobStore(paths.blobs) as blobs:
        names = {blob.sha256 for blob in blobs.stored()}
    stars = [number.to_bytes(32, "big") for number in range(1500)]
    for star in stars:
        choose(paths.local, Choice.STARRED, star)
    index = paths.blobs / "index.sqlite"
    pages = pages_of(paths.local, "choice")
    spoil(index, *pages_of(index, "blob"))
    spoil(paths.local, pages[len(pages) // 2])
    assert damage(index)
    assert damage(paths.local)
    done = {each.file: each for each in repair(paths, DEFAULT_NETWORK, Trust())}
    assert set(done) == {index, paths.local}
    with BlobStore(paths.blobs) as blobs:
        assert {blob.sha256 for blob in blobs.stored()} == names
    left = chosen(paths.local, Choice.STARRED)
    assert len(stars) / 2 < len(left) < len(stars)
    assert paths.local.stat().st_mode & 0o077 == 0


def test_where_nothing_can_be_read_nothing_is_replaced(cli: Cli, filled: Filled, paths: Paths) -> None:
    paths.log.write_bytes(b"no database" * 1000)
    refused = cli("node", "repair")
    assert refused.exit_code not in {0, 70}
    assert "No record could be read" in refused.stderr
    assert paths.log.read_bytes() == b"no database" * 1000
    with pytest.raises(Refused):
        repair(paths, DEFAULT_NETWORK, Trust())


def test_an_endless_query_is_ended(cli: Cli, filled: Filled) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    ended = cli("node", "query", endless, "--seconds", "0.1")
    assert (ended.exit_code, "longer than 0.1 s" in ended.stderr) == (7, True)


def test_a_query_reads_and_changes_nothing(cli: Cli, filled: Filled, paths: Paths) -> None:
    before = ids(paths)
    answer = cli("node", "query", "SELECT kind, count(*) AS many FROM record GROUP BY kind", "--json")
    counts = {row["kind"]: row["many"] for row in map(json.loads, answer.stdout.splitlines())}
    assert sum(counts.values()) == len(before)
    assert cli("node", "query", "SELECT id FROM record LIMIT 1").stdout.splitlines()[0] == "id"
    assert "record\traw\tBLOB" in cli("node", "query").stdout
    assert cli("node", "query", "SELECT 1 AS a, NULL AS b, '=2' AS c, '1,2' AS d", "--csv").stdout == (
        'a,b,c,d\n1,,\'=2,"1,2"\n'
    )
    table = cli("--color", "always", "node", "query", "SELECT kind, count(*) AS many FROM record GROUP BY kind").stdout
    assert "\t" not in table
    assert re.search(r"kind +many", table)
    more = cli("node", "query", "SELECT n FROM record", "--limit", "1")
    assert len(more.stdout.splitlines()) == 2
    assert "--limit N" in more.stderr
    for wrong in (
        "DELETE FROM record",
        "DROP TABLE record",
        "SELECT 1; DELETE FROM record",
        "nonsense",
        "PRAGMA query_only = 0",
    ):
        refused = cli("node", "query", wrong)
        assert refused.exit_code != 70
        assert "Traceback" not in refused.stderr
    assert ids(paths) == before


WRITES = ["ATTACH '{}' AS x", "ATTACH DATABASE '{}' AS x", "VACUUM INTO '{}'", "VACUUM", "CREATE TABLE x(a)"]
WRITES += ["CREATE TEMP TABLE x AS SELECT 1", "CREATE TEMP VIEW x AS SELECT 1", "PRAGMA journal_mode = DELETE"]
WRITES += ["PRAGMA user_version = 1", "PRAGMA writable_schema = 1", "PRAGMA temp_store_directory = '{}'", "REINDEX"]
WRITES += ["PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA optimize", "ANALYZE", "BEGIN IMMEDIATE", "BEGIN", "SAVEPOINT x"]
WRITES += [
    "UPDATE record SET n = 0",
    "INSERT INTO record DEFAULT VALUES",
    "REPLACE INTO meta VALUES('a', 'b')",
    "DETACH main",
]
WRITES += ["WITH x AS (SELECT 1) DELETE FROM record", "SELECT load_extension('{}')", "SELECT writefile('{}', 'x')"]
WRITES += [
    "SELECT * FROM pragma_user_version; VACUUM INTO '{}'",
    "CREATE VIRTUAL TABLE temp.x USING fts5(a)",
    "ROLLBACK",
]
WRITES += ["SELECT edit('a', 'touch {}')", "DROP INDEX x", "ALTER TABLE record ADD COLUMN x", "PRAGMA mmap_size = 1"]
WRITES += ["/* SELECT */ ATTACH '{}' AS x", "UPDATE sqlite_master SET sql = ''", "SELECT readfile('/etc/passwd')"]


@pytest.mark.parametrize("sql", WRITES)
def test_a_query_writes_no_file_at_all(cli: Cli, filled: Filled, paths: Paths, tmp_path: Path, sql: str) -> None:
    before, planted = ids(paths), tmp_path / "planted"
    refused = cli("node", "query", sql.format(planted))
    assert refused.exit_code == 2, refused.stdout
    assert "That can't be asked" in refused.stderr
    assert not planted.exists()
    assert ids(paths) == before


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x WHERE a < 5) SELECT sum(a) FROM x",
        "PRAGMA table_info(record)",
        "SELECT name FROM pragma_table_xinfo('record')",
        "EXPLAIN QUERY PLAN SELECT * FROM record",
        "SELECT json_extract('{\"a\": 1}', '$.a'), row_number() OVER () FROM record ORDER BY 1 LIMIT 1",
        "SELECT name FROM sqlite_master",
        "SELECT value FROM json_each('[1, 2]')",
        "VALUES (1), (2)",
    ],
)
def test_a_query_asks_all_that_reads(cli: Cli, filled: Filled, sql: str) -> None:
    answer = cli("node", "query", sql)
    assert answer.exit_code == 0, answer.stderr
    assert len(answer.stdout.splitlines()) > 1


@pytest.mark.slow
@pytest.mark.parametrize("table", ["task", "run"])
def test_a_running_daemon_with_a_damaged_log_says_so_and_can_be_stopped_and_repaired(
    cli: Cli, filled: Filled, paths: Paths, table: str
) -> None:
    with closing(sqlite3.connect(paths.log)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    spoil(paths.log, root)
    before = paths.log.read_bytes()
    daemon = Daemon(paths.data.parent, {"AUTORESEARCH_NETWORK_ENABLED": "false", "AUTORESEARCH_API_PORT": "0"})
    daemon.launch()
    wait_for(lambda: daemon.answers("/healthz"))
    with daemon.client() as client:
        ready = client.get("/readyz")
    assert ready.status_code == 503
    assert f"{paths.log} is damaged" in ready.text
    status = cli("status")
    assert status.exit_code == 1
    assert f"{paths.log} is damaged" in status.stdout
    assert status.stderr.splitlines()[-1] == "→ autoresearch down && autoresearch node repair"
    refused = cli("node", "repair")
    assert (refused.exit_code, "autoresearch down" in refused.stderr) == (6, True)
    assert paths.log.read_bytes() == before
    stopped = cli("down")
    assert (stopped.exit_code, daemon.process.wait(60)) == (0, 0), stopped.stderr
    repaired = cli("node", "repair")
    assert repaired.exit_code == 0, repaired.stderr
    assert "log.sqlite.damaged-1" in repaired.stderr
    assert cli("status").exit_code == 0
