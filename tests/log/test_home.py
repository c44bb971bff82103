"""A home of before format 12 is brought over whole, also when it is killed at any moment; a newer one is left alone."""

import os
import shutil
import signal
import sqlite3
import sys
from contextlib import closing

import pytest
from autoresearch_attestor.ledger import MailLedger

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.derive.driver import settle
from autoresearch.log.local import (
    Choice,
    LocalFile,
    ModelCost,
    ModelLedger,
    bring_home,
    choose,
    chosen,
    forget_local,
)
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from tests.log.dumping import dump
from tests.record.making import NETWORK, NOW_MS, digest_of, key, run_body, task_body

# As version 11 made them.
CHOICES = "CREATE TABLE choice(what TEXT, thing BLOB, PRIMARY KEY(what, thing)) WITHOUT ROWID"
CALLS = """
CREATE TABLE asked(time_ms INTEGER NOT NULL, proposer TEXT NOT NULL, failure TEXT NOT NULL,
    tokens INTEGER NOT NULL, cost REAL NOT NULL, seconds REAL NOT NULL, retry_ms INTEGER NOT NULL);
"""
MAILS = """
CREATE TABLE pending(token BLOB PRIMARY KEY, statement BLOB NOT NULL, root BLOB NOT NULL,
    device BLOB NOT NULL, peer TEXT NOT NULL, tag BLOB NOT NULL, domain TEXT NOT NULL, expires_ms INTEGER NOT NULL,
    tries_left INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE act(id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL, what TEXT NOT NULL,
    why TEXT NOT NULL, root BLOB NOT NULL, peer TEXT NOT NULL, tag BLOB NOT NULL, domain TEXT NOT NULL);
CREATE TABLE barred(tag BLOB NOT NULL, root BLOB NOT NULL, PRIMARY KEY(tag, root)) WITHOUT ROWID;
"""
LOCAL = """
CREATE TABLE value(name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE proposal(number INTEGER PRIMARY KEY AUTOINCREMENT, proposal BLOB NOT NULL);
"""
STAR, ARCHIVED = b"s" * 32, b"a" * 32
TEA = "tea-0123456789ab"


def write(file, tables, **rows):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(tables)
        for table, row in rows.items():
            connection.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)
        connection.commit()


def home(folder):
    return Paths.from_environment({"AUTORESEARCH_HOME": str(folder)})


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A home of format 11 with two networks, and what each log holds."""
    folder, contents = tmp_path_factory.mktemp("home"), []
    for place in (home(folder), home(folder).of_network(TEA)):
        place.create()
        place.local.parent.mkdir(parents=True, exist_ok=True)
        with Log.open(place.log, NETWORK) as log, BlobStore(place.blobs) as blobs:
            for kind, body in (("task", task_body()), ("run", run_body(1.0)), ("run", run_body(0.5))):
                log.writer.append(key(1), kind, body, now_ms=NOW_MS)
            contents.append(dump(log))
            log.reader.connection.execute("INSERT INTO meta VALUES('projection_version', 13)")
            log.reader.connection.execute("PRAGMA user_version = 11")
            blobs.put(place.folder.encode())
        with closing(sqlite3.connect(place.blobs / "index.sqlite")) as index:
            index.execute("PRAGMA user_version = 0")
        write(place.local, LOCAL, value=("asked", b"{}"), proposal=(7, b"plan"))
        act = (41, NOW_MS, "mailed", "", b"root", place.folder, b"tag", "big")
        challenge = (b"token", b"statement", b"root", b"device", "peer", b"tag", "big", NOW_MS, 3)
        write(place.state / "attestor.sqlite" if not place.folder else place.local.with_name("attestor.sqlite"), MAILS,
              pending=challenge, act=act, barred=(b"tag", b"root"))  # fmt: skip
    write(home(folder).state / "choices.sqlite", CHOICES, choice=("starred", STAR))
    write(home(folder).state / "proposers.sqlite", CALLS, asked=(NOW_MS, "llm", "", 5, 0.5, 2.0, 0))
    return folder, contents


def check(paths, contents):
    """Everything is there once, and nothing of before is left."""
    assert chosen(paths.home_local, Choice.STARRED) == {STAR}
    with ModelLedger(paths.home_local) as ledger:
        assert ledger.spent("llm", since_ms=0) == ModelCost(starts=1, tokens=5, cost=0.5, seconds=2.0)
    for place, content in zip((paths, paths.of_network(TEA)), contents, strict=True):
        with Log.open(place.log, NETWORK) as log:
            settle(log, seconds=10)
            assert dump(log) == content
            assert len(log.programs.ranked(digest_of())) == 1
        with BlobStore(place.blobs) as blobs:
            assert [(blob.size, blob.fetched) for blob in blobs.stored()] == [(len(place.folder), False)]
        with MailLedger(place.local) as ledger:
            assert [(act.what, act.peer) for act in ledger.acts(9)] == [("mailed", place.folder)]
            assert (ledger.pending(b"token").tries_left, ledger.is_barred(b"tag")) == (3, True)
            rows = ledger.connection.execute("SELECT * FROM value, proposal").fetchall()
            assert rows == [("asked", b"{}", 7, b"plan")]
            assert ledger.add(ledger.acts(1)[0]) == 42, "numbers go on"
    left = {file.name for file in paths.state.parent.rglob("*.sqlite")}
    assert left == {"log.sqlite", "index.sqlite", "local.sqlite"}


def test_an_older_home_is_refused_to_readers_and_brought_over_once(older, tmp_path):
    folder, contents = older
    paths = home(shutil.copytree(folder, tmp_path / "home"))
    for read in (
        lambda: Log.open(paths.log, NETWORK, read_only=True),
        lambda: BlobStore(paths.blobs, read_only=True),
        lambda: chosen(paths.home_local, Choice.STARRED),
    ):
        with pytest.raises(Refused, match="up to date first") as refused:
            read()
        assert refused.value.hint == "autoresearch up, once"
    bring_home(paths)
    files = {file: file.read_bytes() for file in paths.state.parent.rglob("*.sqlite")}
    bring_home(paths)
    assert {file: file.read_bytes() for file in files} == files
    check(paths, contents)


def test_a_newer_file_anywhere_in_a_home_is_refused_before_anything_changes(older, tmp_path):
    folder, _ = older
    for number, name in enumerate(("log.sqlite", "index.sqlite", "local.sqlite")):
        paths = home(shutil.copytree(folder, tmp_path / str(number)))
        (newer,) = paths.state.parent.rglob(f"networks/{TEA}/**/{name}")
        with closing(sqlite3.connect(newer)) as connection:
            connection.execute("PRAGMA user_version = 99")
        files = {file: file.read_bytes() for file in paths.state.parent.rglob("*.sqlite")}
        with pytest.raises(Refused, match=f"{newer} was written by a newer version") as refused:
            bring_home(paths)
        assert refused.value.exit_status == 6
        assert {file: file.read_bytes() for file in files} == files


def killed_at(paths, number):
    """Whether a process that brings a home over ended before its statement ``number``, where it was to be killed."""
    child = os.fork()
    if not child:
        left = iter(range(number, -1, -1))

        def watch(frame, event, called):
            if event == "c_call" and called.__name__ in {"execute", "executemany", "unlink"} and not next(left, 1):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(watch)
        try:
            bring_home(paths)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing(older, tmp_path):
    folder, contents = older
    number = kills = 0
    while True:
        paths = home(shutil.copytree(folder, tmp_path / str(number)))
        if not killed_at(paths, number):
            break
        kills += 1
        bring_home(paths)
        check(paths, contents)
        number += 17
    assert kills > 10


def test_a_network_is_forgotten_without_the_stars_of_the_home(tmp_path):
    file = tmp_path / "local.sqlite"
    choose(file, Choice.ARCHIVED, ARCHIVED)
    with LocalFile(file) as local:
        local.connection.execute("INSERT INTO value VALUES('asked', '{}')")
    forget_local(file)
    assert chosen(file, Choice.ARCHIVED) == {ARCHIVED}
    with LocalFile(file) as local:
        assert local.connection.execute("SELECT count(*) FROM value").fetchone() == (0,)
