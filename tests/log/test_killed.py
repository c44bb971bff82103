"""Killed at any moment: nothing announced is lost, no number is signed twice, no blob is named without its bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import decode_manifest
from autoresearch.log.log import Log
from tests.log.dumping import dump
from tests.log.victim import BATCH, batches, chunked
from tests.record.making import NETWORK, key

KILLS = 80
REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@contextmanager
def victim():
    chance = random.Random(1)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.log.victim"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=environment,
    ) as process:

        def kill_one(what, folder, seed):
            """Start a child, kill it some time after a few announcements, and return all that it announced."""
            process.stdin.write(f"{what} {folder} {seed}\n")
            process.stdin.flush()
            ready, pid = process.stdout.readline().split()
            assert ready == "ready"
            announced = [process.stdout.readline().strip() for _ in range(chance.randrange(3))]
            time.sleep(chance.uniform(0, 0.02))  # the moment of the kill, not a wait for anything
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            while (line := process.stdout.readline().strip()) != "end":
                assert line, "the victim's parent died"
                announced.append(line)
            return announced

        yield kill_one


def check_integrity(log):
    assert log.reader.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    contents = dump(log)
    log.writer.rebuild()
    assert dump(log) == contents


def test_killed_while_appending(tmp_path):
    announced, interrupted = {}, 0
    with victim() as kill_one:
        for seed in range(KILLS):
            for line in kill_one("append", tmp_path, seed):
                seq, record_id = line.split()
                assert announced.setdefault(int(seq), record_id) == record_id, "a number was signed twice"
            with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
                assert log.writer.missing_own(key(1).public) is None
                rows = dict(log.reader.connection.execute("SELECT seq, hex(id) FROM record").fetchall())
            assert {seq: rows[seq].lower() for seq in announced} == announced
            assert sorted(rows) == list(range(1, len(rows) + 1))
            interrupted += len(rows) > len(announced)
    assert len(announced) > KILLS / 2
    assert interrupted, "no kill fell between the commit and the announcement"
    with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
        assert log.devices.forks() == []
        check_integrity(log)


def test_killed_while_ingesting(tmp_path):
    outcomes = Counter()
    with victim() as kill_one:
        for seed in range(KILLS):
            announced = set(kill_one("ingest", tmp_path, seed))
            with Log.open(tmp_path / "log.sqlite", NETWORK, read_only=True) as log:
                for batch in batches(seed):
                    stored = len(log.records.has([record.id for record in batch]))
                    assert stored in (0, BATCH), "a part of a batch was stored"
                    assert stored or batch[0].id.hex() not in announced
                    outcomes[stored] += 1
    assert set(outcomes) == {0, BATCH}, "the kills fell all too early or all too late"
    with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
        check_integrity(log)


def test_killed_while_writing_blobs(tmp_path):
    announced, swept = set(), 0
    with victim() as kill_one:
        for seed in range(KILLS):
            announced |= set(kill_one("blobs", tmp_path, seed))
            before = {path for path in (tmp_path / "blobs").glob("*/**/*") if path.is_file()}
            with BlobStore(tmp_path / "blobs") as store:
                named = {row[0] for row in store._connection.execute("SELECT sha256 FROM blob")}
            files = {path for path in (tmp_path / "blobs").glob("*/**/*") if path.is_file()}
            swept += len(before - files)
            assert {path.name for path in files} == {sha256.hex() for sha256 in named}
            assert announced <= {sha256.hex() for sha256 in named}
    assert swept, "no kill fell into a write"
    with BlobStore(tmp_path / "blobs") as store:
        for sha256 in named:
            store.get(sha256)
            manifest = store.find(sha256).manifest
            assert manifest is None or store.has(manifest)


def test_killed_while_fetching_and_deleting(tmp_path):
    announced, resumed = set(), 0
    with victim() as kill_one:
        for seed in range(KILLS // 4):
            announced |= set(kill_one("collect", tmp_path, seed)) - {"chunk"}
            with BlobStore(tmp_path / "blobs") as store:
                for blob in store.stored():
                    if not blob.partial:
                        store.get(blob.sha256)
                for number in range(3):
                    chunks, raw, whole = chunked(1000 * seed + number)
                    with store.begin(whole, decode_manifest(raw)) as partial:
                        missing = partial.look()
                        resumed += len(missing) < len(chunks)
                        for index in missing:
                            assert partial.put(index, chunks[index])
                        manifest = store.put_stream([raw], fetched=True).sha256
                        assert store.finish(whole, manifest, partial).size == sum(map(len, chunks))
                    assert store.get(whole) == b"".join(chunks)
                assert all(store.has(bytes.fromhex(own)) for own in announced), "what is our own was lost"
                store.delete(blob for blob in store.stored() if blob.fetched)
    assert resumed, "no kill fell between two chunks"
