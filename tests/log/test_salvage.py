"""Records are found in what is left of a log's file, and a repair that is killed is begun again without a loss."""

import os
import random
import shutil
import signal
import sqlite3
import sys
from contextlib import closing

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import Refused
from autoresearch.log.connection import refuse_unread_changes
from autoresearch.log.log import Log
from autoresearch.log.repair import damage, repair
from autoresearch.log.salvage import salvage
from autoresearch.paths import Paths
from autoresearch.record.kinds import Note
from autoresearch.trust.roster import Trust
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed

PAGE = 8192
RECORDS = 300


def written(log, first, count, author=7):
    """Notes of all lengths: some rows fit into a page, some go on in others."""
    chance = random.Random(first)
    made = []
    for seq in range(first, first + count):
        if seq % 3:
            body = Note(topic="insight", text=chance.choice("abc") * chance.randint(1, 2000))
            made.append(sealed(key(author), body, seq=seq, kind="note"))
        else:
            made.append(sealed(key(author), run_body(float(seq), genome={f"x{n}": n / 7 for n in range(60)}), seq=seq))
    log.writer.ingest(pairs(made), now_ms=NOW_MS)
    return {record.id for record in made}


@pytest.fixture
def paths(tmp_path):
    made = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    made.create()
    with Log.open(made.log, NETWORK) as log:
        written(log, 1, RECORDS)
    return made


def ids(file):
    with Log.open(file, NETWORK, read_only=True) as log:
        return {record_id for _, record_id in log.records.iter_keys()}


def overwrite(file, start, octets):
    with file.open("r+b") as out:
        out.seek(start)
        out.write(octets)


def pages_of(file, name):
    with closing(sqlite3.connect(file)) as connection:
        return [page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (name,))]


def execute(file, statement):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)


def cut(file, share):
    os.truncate(file, int(file.stat().st_size * share))


def cut_out_of_the_middle(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 3 // PAGE * PAGE] + content[len(content) // 2 // PAGE * PAGE :])


def spoil_the_roots_of_all_tables(file):
    with closing(sqlite3.connect(file)) as connection:
        roots = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 0")]
    for page in roots:
        overwrite(file, (page - 1) * PAGE, os.urandom(PAGE))


def spoil_the_heads_of_all_pages(file):
    for start in range(0, file.stat().st_size, PAGE):
        overwrite(file, start, os.urandom(8))


DAMAGE = {
    "the first page": (lambda file: overwrite(file, 0, bytes(PAGE)), 1.0),
    "another first line": (lambda file: overwrite(file, 0, b"NoSQLite format 1"), 1.0),
    "noise in the header": (lambda file: overwrite(file, 16, os.urandom(84)), 1.0),
    "another page size": (lambda file: overwrite(file, 16, b"\x02\x00"), 1.0),
    "the roots of all tables": (spoil_the_roots_of_all_tables, 0.9),
    "the heads of all pages": (spoil_the_heads_of_all_pages, 0.5),
    "cut off": (lambda file: cut(file, 0.9), 0.2),
    "cut off within a page": (lambda file: cut(file, 0.8701), 0.2),
    "cut out of the middle": (cut_out_of_the_middle, 0.1),
    "one page of records": (lambda file: overwrite(file, (pages_of(file, "record")[9] - 1) * PAGE, bytes(PAGE)), 0.9),
    "an index": (lambda file: overwrite(file, (pages_of(file, "record_id")[-1] - 1) * PAGE, bytes(PAGE)), 1.0),
    "a table is gone": (lambda file: execute(file, "DROP TABLE claim"), 1.0),
    "an index is gone": (lambda file: execute(file, "DROP INDEX record_time"), 1.0),
    "bits": (lambda file: [overwrite(file, n * 40_009 + 8192, b"\x5a") for n in range(20)], 0.8),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGE)
def test_whole_records_are_found_and_the_damaged_file_is_kept(paths, what):
    spoil, share = DAMAGE[what]
    before = ids(paths.log)
    spoil(paths.log)
    content = paths.log.read_bytes()
    [first] = repair(paths, NETWORK, Trust())
    after = ids(paths.log)
    assert after <= before
    assert len(after) >= share * len(before)
    assert first.rows == len(after)
    assert first.kept_as.read_bytes() == content
    assert not damage(paths.log)
    assert repair(paths, NETWORK, Trust()) == []


def test_no_row_is_missed_in_a_whole_log(paths):
    with Log.open(paths.log, NETWORK, read_only=True) as log:
        rows = set(log.reader.rows("SELECT n, raw, signature FROM record"))
    assert rows <= {tuple(row) for row in salvage([paths.log], most_bytes=NETWORK.record_bytes)}


@pytest.mark.slow
def test_records_of_a_damaged_write_ahead_log_are_not_overwritten_but_found(paths, tmp_path):
    wal = paths.log.with_name("log.sqlite-wal")
    copy = tmp_path / "copy"
    copy.mkdir()
    with Log.open(paths.log, NETWORK) as log:
        for number in range(6):
            written(log, 1000 + 20 * number, 20)
        for name in ("log.sqlite", "log.sqlite-wal"):  # as after a kill
            shutil.copy(paths.log.with_name(name), copy / name)
        everything = {record_id for _, record_id in log.records.iter_keys()}
    for name in ("log.sqlite", "log.sqlite-wal"):
        shutil.copy(copy / name, paths.log.with_name(name))
    refuse_unread_changes(paths.log)  # what a kill leaves behind is whole
    assert not damage(paths.log)
    overwrite(wal, wal.stat().st_size // 4, os.urandom(5000))
    with pytest.raises(Refused, match="damaged after its frame"):
        refuse_unread_changes(paths.log)
    assert "is damaged" in damage(paths.log)
    left = wal.read_bytes()
    [first] = repair(paths, NETWORK, Trust())
    assert len(everything) - 10 <= len(ids(paths.log)) <= len(everything)
    assert first.kept_as.with_name(f"{first.kept_as.name}-wal").read_bytes() == left
    assert not wal.exists() or not wal.stat().st_size


def die_at(number):
    """Have this process killed before it changes the name of a file for this time."""
    calls = iter(range(1, number))

    def audit(event, _arguments):
        if event in {"os.link", "os.remove", "os.rename"} and next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)


def test_a_log_that_is_empty_or_gone_beside_its_write_ahead_log_is_not_begun_anew(paths):
    wal = paths.log.with_name("log.sqlite-wal")
    wal.write_bytes(bytes(100))
    for spoil in (lambda: os.truncate(paths.log, 0), paths.log.unlink):
        spoil()
        for opening in (lambda: Notebook(paths), lambda: Log.open(paths.log, NETWORK, read_only=True)):
            with pytest.raises(Refused, match=r"is empty, and|is gone, and"):
                opening()
        assert wal.read_bytes() == bytes(100)


@pytest.mark.slow
def test_a_killed_repair_is_begun_again_and_loses_nothing(paths):
    """Killed before each call that changes a name, one after the other, in a process of its own."""
    before = ids(paths.log)
    overwrite(paths.log, 0, bytes(PAGE))
    content = paths.log.read_bytes()
    for deadly in range(1, 200):
        child = os.fork()
        if child == 0:
            die_at(deadly)
            repair(paths, NETWORK, Trust())
            os._exit(0)
        _, how = os.waitpid(child, 0)
        stored = [path for path in paths.data.glob("log.sqlite*") if path.is_file() and path.read_bytes() == content]
        assert stored, f"the damaged file was lost before call {deadly}"
        if how == 0:
            break
        assert damage(paths.log) or ids(paths.log) == before
    assert deadly > 3
    assert ids(paths.log) == before
