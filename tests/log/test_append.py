"""One's own records: each sequence number is spent once, and what is returned is on the disk."""

import shutil
import sqlite3

import pytest

from autoresearch.errors import LogBehind, Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.log.standing.queries import leaderboard
from autoresearch.record.kinds import Identity, Merge, Note
from autoresearch.record.record import DAY_MS, Network, admit
from tests.record.making import DEFINITION, NETWORK, NOW_MS, digest_of, key, pairs, run_body, task_body

AUTHOR = key(1)


def append(log, value=1.0, **options):
    options = {"now_ms": NOW_MS} | options
    return log.writer.append(AUTHOR, "run", run_body(value, source=b"%r" % value), **options)


def test_records_chain_and_are_admitted_elsewhere(log):
    first, second = append(log), append(log, 2.0)
    assert (first.seq, first.prev) == (1, b"")
    assert (second.seq, second.prev) == (2, first.id)
    assert log.devices.head(AUTHOR.public) == (2, second.id)
    for record in (first, second):
        assert admit(record.raw, record.signature, NETWORK, now_ms=NOW_MS) == record == log.records.get(record.id)


def test_the_chain_goes_on_after_reopening(tmp_path):
    for seq in range(1, 4):
        with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
            assert append(log, seq * 1.0).seq == seq


def test_two_processes_with_one_log_spend_no_number_twice(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK) as first, Log.open(tmp_path / "log.sqlite", NETWORK) as other:
        seqs = [append(log, value).seq for value, log in enumerate([first, other, first, other])]
    assert seqs == [1, 2, 3, 4]


def restored(tmp_path):
    """A log whose database is an old copy: two records, then the copy, then two more, then the copy put back."""
    path = tmp_path / "log.sqlite"
    with Log.open(path, NETWORK) as log:
        append(log, 1.0)
        append(log, 2.0)
    shutil.copy(path, tmp_path / "copy")
    with Log.open(path, NETWORK) as log:
        lost = [append(log, 3.0), append(log, 4.0)]
    for leftover in tmp_path.glob("log.sqlite*"):
        leftover.unlink()
    shutil.copy(tmp_path / "copy", path)
    return path, lost


def test_an_old_copy_refuses_to_append_until_it_has_caught_up(tmp_path):
    path, lost = restored(tmp_path)
    with Log.open(path, NETWORK) as log:
        assert log.writer.missing_own(AUTHOR.public) == (4, lost[-1].id)
        with pytest.raises(LogBehind):
            append(log, 5.0)
        assert log.records.count() == 2
        log.writer.ingest(pairs(lost), now_ms=NOW_MS)
        assert log.writer.missing_own(AUTHOR.public) is None
        assert append(log, 5.0).seq == 5
        assert log.devices.forks() == []


def test_a_part_of_what_is_missing_is_not_enough(tmp_path):
    path, lost = restored(tmp_path)
    with Log.open(path, NETWORK) as log:
        log.writer.ingest(pairs(lost[:1]), now_ms=NOW_MS)
        with pytest.raises(LogBehind):
            append(log, 5.0)


def test_a_forced_fork_is_shown_and_a_merge_by_the_root_key_ends_it(tmp_path):
    path, lost = restored(tmp_path)
    root, task = key(9), digest_of()
    with Log.open(path, NETWORK) as log:
        log.writer.append(key(8), "task", task_body(), now_ms=NOW_MS)
        forked = append(log, 0.5, accept_fork=True)
        assert forked.seq == 3
        assert append(log, 0.6).seq == 4
        log.writer.ingest(pairs(lost), now_ms=NOW_MS)
        assert [(fork.seq, fork.merged) for fork in log.devices.forks()] == [(3, False), (4, False)]
        assert log.devices.forks(AUTHOR.public)[0].ids == tuple(sorted([lost[0].id, forked.id]))
        assert [program.reported for program in leaderboard(log, task)] == [1.0, 2.0]
        assert [stored.forked for stored in log.runs.newest(task)].count(True) == 4

        heads = [log.devices.head(AUTHOR.public).id, forked.id]
        merge = Merge(device=AUTHOR.public, heads=heads)
        log.writer.append(key(7), "merge", merge, now_ms=NOW_MS)
        assert [fork.merged for fork in log.devices.forks()] == [False, False], "a stranger can end no fork"
        log.writer.append(root, "merge", merge, now_ms=NOW_MS)
        assert [fork.merged for fork in log.devices.forks()] == [False, False], "nor a key that delegated nothing"
        log.writer.append(
            root, "identity", Identity(action="delegate", root=root.public, device=AUTHOR.public), now_ms=NOW_MS
        )
        assert [fork.merged for fork in log.devices.forks()] == [True, True]
        assert leaderboard(log, task)[0].reported == 0.5
        assert len(leaderboard(log, task)) == 6
        assert append(log, 0.4).seq == 5
        assert leaderboard(log, task)[0].reported == 0.4


def test_a_fork_by_others_is_kept_and_shown_whatever_comes_first(log, tmp_path):
    with (
        Log.open(tmp_path / "a" / "log.sqlite", NETWORK) as first,
        Log.open(tmp_path / "b" / "log.sqlite", NETWORK) as two,
    ):
        left, right = append(first, 1.0), append(two, 2.0)
    verdicts = log.writer.ingest(pairs([left, right, left]), now_ms=NOW_MS)
    assert [verdict.state for verdict in verdicts] == [State.STORED, State.STORED, State.DUPLICATE]
    assert log.devices.forks()[0].ids == tuple(sorted([left.id, right.id]))


def test_a_used_up_quota_is_said_with_the_time_when_it_resumes(tmp_path):
    network = Network(name="small", per_day=2, per_author=3)
    with Log.open(tmp_path / "log.sqlite", network) as log:
        append(log, 1.0)
        append(log, 2.0)
        with pytest.raises(Refused) as refused:
            append(log, 3.0)
        assert "2027-01-16 00:00 UTC" in refused.value.hint
        append(log, 3.0, now_ms=NOW_MS + DAY_MS)
        with pytest.raises(Refused):
            append(log, 4.0, now_ms=NOW_MS + 2 * DAY_MS)
        assert log.records.count() == 3


@pytest.mark.parametrize(
    "body",
    [run_body(float("nan")), run_body(genome={"n": 2**63}), run_body(title="x" * 121), {"status": "ok"}],
    ids=["nan", "large integer", "long title", "fields missing"],
)
def test_what_others_would_refuse_is_refused_here_and_spends_no_number(log, body):
    with pytest.raises(UsageError):
        log.writer.append(AUTHOR, "run", body, now_ms=NOW_MS)
    assert append(log).seq == 1


def test_a_record_over_the_size_is_refused(log):
    with pytest.raises(UsageError, match="16384"):
        log.writer.append(AUTHOR, "unknown", {"filler": bytes(16_384)}, now_ms=NOW_MS)


def test_a_full_disk_is_refused_cleanly_and_nothing_is_lost(log):
    record = append(log)
    pages = log.reader.connection.execute("PRAGMA page_count").fetchone()[0]
    log.reader.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Refused, match="full"):
        append_notes(log, 100)
    before = log.devices.head(AUTHOR.public)
    log.reader.connection.execute("PRAGMA max_page_count = 100000")
    assert append(log, 9.0).seq == before.seq + 1
    assert log.records.get(record.id) == record
    assert log.reader.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def append_notes(log, count):
    for number in range(count):
        log.writer.append(AUTHOR, "note", Note(topic="insight", text="x" * 2000, origin=str(number)), now_ms=NOW_MS)


def test_a_read_only_database_is_refused_cleanly(log):
    append(log)
    log.reader.connection.execute("PRAGMA query_only = 1")
    with pytest.raises(Refused, match="read only"):
        append(log, 2.0)
    with pytest.raises(Refused, match="read only"):
        log.writer.ingest([(b"x", b"y"), *pairs([other_record()])], now_ms=NOW_MS)
    log.reader.connection.execute("PRAGMA query_only = 0")
    assert append(log, 2.0).seq == 2


def other_record():
    from tests.record.making import sealed

    return sealed(key(5), run_body())


def test_a_lock_held_too_long_by_another_writer_is_a_sentence(log):
    log.reader.connection.execute("PRAGMA busy_timeout = 1")
    holder = sqlite3.connect(log.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Refused, match="Another process"):
        append(log)
    holder.execute("ROLLBACK")
    holder.close()
    assert append(log).seq == 1


def test_a_damaged_head_file_is_a_sentence(log):
    append(log)
    (log.path.parent / "heads" / AUTHOR.public.hex()).write_text("nonsense")
    with pytest.raises(Refused, match="last record"):
        append(log, 2.0)


def test_the_definition_decides_what_is_better(log):
    definition = DEFINITION | {"metric": {"direction": "maximize", "noise": 0.5}}
    log.writer.append(AUTHOR, "task", task_body(definition), now_ms=NOW_MS)
    for value in (1.0, 3.0, 2.0):
        body = run_body(value, source=b"%r" % value, task=digest_of(definition))
        log.writer.append(AUTHOR, "run", body, now_ms=NOW_MS)
    ranked = leaderboard(log, digest_of(definition))
    assert [(program.reported, program.score) for program in ranked] == [(3.0, 2.5), (2.0, 1.5), (1.0, 0.5)]
