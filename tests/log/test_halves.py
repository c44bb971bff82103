"""One record never costs another: what can't be stored is refused alone, whoever brings the batch."""

import sqlite3
from contextlib import contextmanager

import pytest

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.bundle import Imported, import_bundle, write_bundle
from autoresearch.log.connection import store_by_halves
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from tests.log.dumping import dump
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed, task_body

TRIGGER = "CREATE TRIGGER culprit BEFORE INSERT ON run WHEN NEW.title = 'culprit' BEGIN SELECT {}; END"
FAULTS = {
    "constraint": "RAISE(ABORT, 'not this one')",
    "overflow": "sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)",
    "fails": "RAISE(FAIL, 'nor this one')",
    "json": "json('{')",
}


def batch(culprits, count=20):
    """Honest records, and those of a stranger at these places among them."""
    honest = [sealed(key(1), task_body(), kind="task")]
    honest += [sealed(key(1), run_body(float(seq), source=b"%d" % seq), seq=seq) for seq in range(2, count + 1)]
    bad = [sealed(key(2), run_body(title="culprit", replicate=at), seq=at + 1) for at in culprits]
    made = list(honest)
    for at, record in zip(culprits, bad, strict=True):
        made.insert(at, record)
    return honest, bad, made


@contextmanager
def faulty(path, fault):
    """A log in which SQLite raises at the stranger's runs."""
    with Log.open(path, NETWORK) as log:
        log.reader.connection.execute(TRIGGER.format(FAULTS[fault]))
        yield log


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("culprits", [[0], [20], [7], [3, 4], [0, 5, 6, 11, 23], list(range(0, 40, 2))])
def test_the_culprits_alone_are_refused(tmp_path, fault, culprits):
    honest, bad, made = batch(culprits)
    with faulty(tmp_path / "log.sqlite", fault) as log, Log.open(tmp_path / "clean.sqlite", NETWORK) as clean:
        verdicts = log.writer.ingest(pairs(made), now_ms=NOW_MS)
        assert [verdict.id for verdict in verdicts] == [record.id for record in made]
        refused = [verdict for verdict in verdicts if verdict.state is State.REFUSED]
        assert [each.id for each in refused] == [record.id for record in made if record in bad]
        assert all(each.refusal and each.refusal.sentence.startswith("it can't be stored: ") for each in refused)
        assert {verdict.state for verdict in verdicts if verdict not in refused} == {State.STORED}
        clean.writer.ingest(pairs(honest), now_ms=NOW_MS)
        assert dump(log) == dump(clean)
        again = log.writer.ingest(pairs(made), now_ms=NOW_MS)
        assert {each.state for each in again if each not in refused} <= {State.DUPLICATE, State.REFUSED}


def test_an_import_goes_on_after_a_culprit(tmp_path):
    honest, bad, made = batch([4, 9])
    with Log.open(tmp_path / "there.sqlite", NETWORK) as sender, BlobStore(tmp_path / "blobs") as blobs:
        sender.writer.ingest(pairs(made), now_ms=NOW_MS)
        with (tmp_path / "bundle.car").open("wb") as file:
            write_bundle(sender, blobs, file)
        imported = Imported()
        with faulty(tmp_path / "log.sqlite", "overflow") as log, (tmp_path / "bundle.car").open("rb") as file:
            import_bundle(file, log, blobs, imported, now_ms=NOW_MS)
            assert (imported.new, imported.refused) == (len(honest), len(bad))
            assert "integer overflow" in imported.reason


@pytest.mark.parametrize(
    "body", [{"cpu_ms": 2**63 - 1}, {"value": 1e300}, {"replicate": 2**60}, {"metrics": {"a": -1e101}}]
)
def test_a_rebuild_drops_what_an_earlier_version_took_in_and_today_is_none(tmp_path, body):
    path = tmp_path / "log.sqlite"
    honest, _, made = batch([])
    with Log.open(path, NETWORK) as log:
        log.writer.ingest(pairs(made), now_ms=NOW_MS)
        contents = dump(log)
        fields = {"task": made[0].body.digest, "seed": 1, "budget": 1.0, "source": {"sha256": bytes(32), "size": 1}}
        fields |= {"source_digest": bytes(32), "status": "ok", **body}
        old = sealed(key(3), fields)
        assert log.writer.ingest(pairs([old]), now_ms=NOW_MS)[0].state is State.REFUSED
        row = (1000, old.id, old.author, 1, old.time, "run", made[0].body.digest, old.raw, old.signature)
        log.reader.connection.execute("INSERT INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        log.reader.connection.execute("PRAGMA user_version = 17")
    with Log.open(path, NETWORK) as log:
        assert log.records.count() == len(honest)
        assert dump(log) == contents


def test_what_the_disk_or_the_file_is_to_blame_for_keeps_the_batch(tmp_path):
    made, _, _ = batch([])
    with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
        log.reader.connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(Refused, match="full"):
            log.writer.ingest(pairs(made), now_ms=NOW_MS)
        log.reader.connection.execute("PRAGMA max_page_count = 100000")
        log.reader.connection.execute("ALTER TABLE lineage RENAME TO away")
        with pytest.raises(Refused, match="no such table"):
            log.writer.ingest(pairs(made), now_ms=NOW_MS)
        log.reader.connection.execute("ALTER TABLE away RENAME TO lineage")
        assert {each.state for each in log.writer.ingest(pairs(made), now_ms=NOW_MS)} == {State.STORED}


@pytest.mark.parametrize("bad", [2**63, -(2**63) - 1, "\ud800", 10**400])
def test_values_that_sqlite_has_no_place_for(bad):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE number(value)")

    def store(values):
        connection.execute("SAVEPOINT one")
        try:
            connection.executemany("INSERT INTO number VALUES(?)", [(value,) for value in values])
        except BaseException:
            connection.execute("ROLLBACK TO one")
            raise
        finally:
            connection.execute("RELEASE one")

    values = [*range(5), bad, *range(5, 11), bad, 11]
    assert [value for value, _ in store_by_halves(values, store)] == [bad, bad]
    assert connection.execute("SELECT value FROM number").fetchall() == [(number,) for number in range(12)]
