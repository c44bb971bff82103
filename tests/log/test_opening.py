"""Opening: what is ours and of our time opens; everything else is a sentence, and nothing is harmed."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from autoresearch.errors import Locked, NotFound, Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import lock_device
from autoresearch.log.derive.driver import settle
from autoresearch.log.local import LocalFile
from autoresearch.log.log import Log
from autoresearch.record.record import Network
from tests.log.dumping import dump
from tests.record.making import NETWORK, NOW_MS, digest_of, key, run_body, task_body


def append(log, value=1.0):
    return log.writer.append(key(1), "run", run_body(value), now_ms=NOW_MS)


def test_a_missing_log_reads_as_an_empty_one_and_is_not_created(tmp_path):
    path = tmp_path / "nowhere" / "log.sqlite"
    with Log.open(path, NETWORK, read_only=True) as log:
        assert (log.records.count(), log.records.newest(), log.devices.head(b"a" * 32), log.devices.forks()) == (
            0,
            [],
            None,
            [],
        )
        with pytest.raises(NotFound):
            log.records.get(b"x" * 32)
        with pytest.raises(Refused):
            append(log)
    assert not path.parent.exists()


def test_reading_works_while_another_connection_writes(log):
    append(log)
    with Log.open(log.path, NETWORK, read_only=True) as reader:
        assert reader.records.count() == 1
        log.reader.connection.execute("BEGIN IMMEDIATE")
        assert reader.records.count() == 1
        log.reader.connection.execute("ROLLBACK")
        append(log, 2.0)
        assert reader.records.count() == 2
        for write in (lambda: append(reader), lambda: reader.writer.ingest([], now_ms=NOW_MS), reader.writer.rebuild):
            with pytest.raises(Refused):
                write()


def open_log(path, *, read_only):
    return Log.open(path, NETWORK, read_only=read_only)


def open_blobs(path, *, read_only):
    return BlobStore(path.parent, read_only=read_only)


@pytest.mark.parametrize("opened", [open_log, open_blobs, LocalFile])
def test_a_newer_format_is_refused_and_left_alone(opened, tmp_path):
    path = tmp_path / "index.sqlite"
    opened(path, read_only=False).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
        tables = newer.execute("SELECT * FROM sqlite_master").fetchall()
    for read_only in (True, False):
        with pytest.raises(Refused, match=f"{path} was written by a newer version") as refused:
            opened(path, read_only=read_only)
        assert "install that version" in refused.value.hint
    with closing(sqlite3.connect(path)) as check:
        assert check.execute("PRAGMA user_version").fetchone()[0] == 99
        assert check.execute("SELECT * FROM sqlite_master").fetchall() == tables


def test_a_database_of_something_else_keeps_what_it_holds(tmp_path):
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as other:
        other.execute("CREATE TABLE theirs(x)")
    Log.open(tmp_path / "log.sqlite", NETWORK).close()
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as other:
        assert other.execute("SELECT count(*) FROM theirs").fetchone() == (0,)


@pytest.mark.parametrize(("theirs", "size"), [(None, 8192), (4096, 4096)])
def test_a_new_log_has_pages_of_8_kib_and_one_with_others_is_used_as_it_is(tmp_path, theirs, size):
    path = tmp_path / "log.sqlite"
    if theirs:
        with closing(sqlite3.connect(path)) as older:
            older.execute(f"PRAGMA page_size = {theirs}")
            older.execute("CREATE TABLE theirs(x)")
    with Log.open(path, NETWORK) as log:
        append(log)
        assert log.reader.rows("PRAGMA page_size") == [(size,)]
        assert log.reader.rows("PRAGMA wal_autocheckpoint") == [((64 << 20) // size,)]


def test_a_log_of_another_network_is_refused(tmp_path):
    Log.open(tmp_path / "log.sqlite", NETWORK).close()
    with pytest.raises(Refused, match="another network"):
        Log.open(tmp_path / "log.sqlite", Network(name="other"))


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "log.sqlite").write_bytes(b"not a database at all" * 100)
    for read_only in (True, False):
        with pytest.raises(Refused):
            Log.open(tmp_path / "log.sqlite", NETWORK, read_only=read_only)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused):
        Log.open(tmp_path / "file" / "log.sqlite", NETWORK)


def test_an_older_format_is_rebuilt_from_the_records_at_the_next_opening(tmp_path):
    path = tmp_path / "log.sqlite"
    with Log.open(path, NETWORK) as log:
        log.writer.append(key(1), "task", task_body(), now_ms=NOW_MS)
        append(log)
        contents = dump(log)
        for statement in (
            "PRAGMA user_version = 1",
            "DELETE FROM run",
            "ALTER TABLE run DROP COLUMN title",
            "UPDATE program SET mean = 7",
            "DROP TABLE text_index",
            "DROP INDEX record_time",
            "CREATE TABLE gone(x)",
        ):
            log.reader.connection.execute(statement)
    with pytest.raises(Refused, match="up to date"):
        Log.open(path, NETWORK, read_only=True)
    with Log.open(path, NETWORK) as log:
        settle(log, seconds=10)
        assert dump(log) == contents
        assert len(log.programs.ranked(digest_of())) == 1
        names = {name for (name,) in log.reader.connection.execute("SELECT name FROM sqlite_master")}
        assert ("record_time" in names, "gone" in names) == (True, False)


BEGINNER = """
import sys
from contextlib import closing
from pathlib import Path
from autoresearch.log.log import Log
from autoresearch.log.blobs import BlobStore
from tests.record.making import NETWORK, NOW_MS, key, run_body
print("ready", flush=True)
sys.stdin.readline()
folder = Path(sys.argv[1])
with Log.open(folder / "log.sqlite", NETWORK) as log, BlobStore(folder / "blobs") as blobs:
    log.writer.append(key(1), "run", run_body(), now_ms=NOW_MS)
    blobs.put(b"bytes")
"""


@pytest.mark.slow
def test_processes_that_make_a_log_at_the_same_moment_all_succeed(tmp_path):
    repository = Path(__file__).parents[2]
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        beginners = [
            subprocess.Popen(
                [sys.executable, "-c", BEGINNER, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=repository,
                env=os.environ | {"PYTHONPATH": str(repository)},
            )
            for _ in range(4)
        ]
        for beginner in beginners:
            assert beginner.stdout.readline() == b"ready\n"
        for beginner in beginners:
            beginner.stdin.write(b"go\n")
            beginner.stdin.flush()
        for beginner in beginners:
            beginner.communicate()
        assert [beginner.returncode for beginner in beginners] == [0] * 4
        with Log.open(folder / "log.sqlite", NETWORK, read_only=True) as log:
            assert (log.records.count(), log.devices.forks()) == (4, [])


HOLDER = """
import sys
from contextlib import closing
from pathlib import Path
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import lock_device
from autoresearch.log.local import LocalFile
with lock_device(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_on_one_key_is_refused_until_the_first_ends_however_it_ends(tmp_path):
    key_file = tmp_path / "device.key"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(key_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked), lock_device(key_file):
            pass
        holder.kill()
        holder.wait()
    with lock_device(key_file):
        pass
    with lock_device(key_file):
        pass
