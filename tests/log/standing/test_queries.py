"""Best, leaderboard, history, claims, lineage: what people and proposers are told."""

import json

import msgspec
import pytest

from autoresearch.errors import NotFound, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.queries import leaderboard, lineage, run, run_view, statistics
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import AMOUNT_MAX, Claim, Note, Run, Withdrawal
from tests.record.making import DEFINITION, NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed, task_body

TASK = digest_of()
HOUR_MS = 3_600_000


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK) as opened:
        opened.writer.append(key(99), "task", task_body(), now_ms=NOW_MS)
        yield opened


def best(log, task):
    return next(iter(leaderboard(log, task, limit=1)), None)


def runs(log, task, **choice):
    return [run_view(log, stored) for stored in log.runs.newest(task, **choice)]


def publish(log, value, *, author=1, now_ms=NOW_MS, **fields):
    fields = {"source": repr((value, fields)).encode()} | fields
    return log.writer.append(key(author), "run", run_body(value, **fields), now_ms=now_ms)


def test_an_empty_log_has_no_best_and_no_lineage(log):
    assert best(log, TASK) is None
    assert (
        leaderboard(log, TASK)
        == runs(log, TASK)
        == log.runs.history(TASK)
        == log.claims.open(TASK, now_ms=NOW_MS)
        == []
    )
    assert statistics(log, TASK).runs == 0
    with pytest.raises(NotFound):
        lineage(log, b"?" * 32)


def test_a_lucky_seed_does_not_beat_a_repeated_measurement(log):
    lucky = publish(log, 1.000, source=b"lucky")
    values = enumerate([1.004, 1.006, 1.005, 1.005])
    steady = [publish(log, value, source=b"steady", replicate=replicate) for replicate, value in values]
    ranked = leaderboard(log, TASK)
    assert [(program.position, program.reported_runs) for program in ranked] == [(1, 4), (2, 1)]
    assert ranked[0].score == pytest.approx(1.005 + 0.02 / 2)
    assert ranked[1].score == pytest.approx(1.02)
    assert ranked[1].id == format_id(lucky.id)
    first = min(steady, key=lambda record: (record.time, record.id))
    assert ranked[0].id == format_id(first.id), "the first run stands for its program"
    assert {program.state for program in ranked} == {"reported"}
    assert best(log, TASK) == ranked[0]
    assert leaderboard(log, TASK, limit=1) == ranked[:1]


def test_more_is_better_where_the_task_says_so(log):
    definition = DEFINITION | {"metric": {"direction": "maximize", "noise": 0.1}}
    log.writer.append(key(99), "task", task_body(definition), now_ms=NOW_MS)
    for value in (0.5, 0.9, 0.7):
        publish(log, value, task=digest_of(definition))
    ranked = leaderboard(log, digest_of(definition))
    assert [program.reported for program in ranked] == [0.9, 0.7, 0.5]
    assert ranked[0].score == pytest.approx(0.8)


def test_equal_scores_are_ranked_by_time(log):
    later = publish(log, 1.0, source=b"later", now_ms=NOW_MS + 1)
    earlier = publish(log, 1.0, source=b"earlier", author=2)
    assert [program.id for program in leaderboard(log, TASK)] == [format_id(earlier.id), format_id(later.id)]


def test_without_the_tasks_record_nothing_is_ranked_and_with_it_everything_is(tmp_path):
    with Log.open(tmp_path / "other.sqlite", NETWORK) as log:
        publish(log, 1.0)
        assert leaderboard(log, TASK) == []
        log.writer.append(key(99), "task", task_body(), now_ms=NOW_MS)
        assert len(leaderboard(log, TASK)) == 1


def test_a_publisher_who_withdraws_a_task_takes_it_from_nobody(log):
    publish(log, 1.0)
    log.writer.append(key(99), "withdrawal", Withdrawal(), links=[log.tasks.find(TASK).id], now_ms=NOW_MS)
    assert log.tasks.all() == []
    publish(log, 0.5)
    assert [program.reported for program in leaderboard(log, TASK)] == [0.5, 1.0]


def test_the_gain_of_a_program_is_of_the_means_of_its_runs_and_of_its_parents(log):
    baseline = publish(log, 2.0, source=b"0")
    publish(log, 2.2, source=b"0", replicate=1)
    publish(log, -50.0, source=b"0", replicate=2, author=2)  # the word of somebody else on this program
    publish(log, 1.5, source=b"1", parent=baseline.id)
    publish(log, 1.3, source=b"1", parent=baseline.id, replicate=1)
    best = next(row for row in leaderboard(log, TASK) if row.parent == format_id(baseline.id))
    assert (best.reported, best.gain_reported) == (pytest.approx(1.4), pytest.approx(0.7))


def test_lineage_goes_from_the_baseline_to_the_run_with_the_change_of_each_step(log):
    baseline = publish(log, 2.0, source=b"0")
    better = publish(log, 1.5, source=b"1", parent=baseline.id)
    publish(log, 1.7, source=b"1", parent=baseline.id, replicate=1, author=2)
    failed = publish(log, None, source=b"2", parent=better.id, status="crashed")
    last = publish(log, 1.2, source=b"3", parent=failed.id)
    steps = lineage(log, last.id)
    assert [step.run.id for step in steps] == [format_id(r.id) for r in (baseline, better, failed, last)]
    assert [step.run.standing.reported for step in steps] == [2.0, 1.5, None, 1.2]
    assert [step.run.standing.gain_reported for step in steps] == [None, pytest.approx(0.5), None, None]


def test_lineage_ends_where_the_parent_is_unknown_or_no_run(log):
    note = log.writer.append(key(1), "note", Note(topic="insight", text="x"), now_ms=NOW_MS)
    for parent in (b"?" * 32, note.id):
        child = publish(log, 1.0, parent=parent)
        assert [step.run.run.parent for step in lineage(log, child.id)] == [format_id(parent)]
    with pytest.raises(UsageError):
        lineage(log, note.id)


def test_claims_hold_until_they_expire_or_are_done(log):
    source = run_body(source=b"x").source_digest

    def claim(author, until, *, replicate=0, now_ms=NOW_MS):
        body = Claim(task=TASK, source_digest=source, replicate=replicate, until=until, title="try x")
        return log.writer.append(key(author), "claim", body, now_ms=now_ms)

    claim(1, NOW_MS + HOUR_MS)
    claim(2, NOW_MS + 2 * HOUR_MS, replicate=1)
    claim(3, AMOUNT_MAX, replicate=2, now_ms=NOW_MS + 1)
    assert [row.replicate for row in log.claims.open(TASK, now_ms=NOW_MS)] == [0, 1, 2]
    assert [row.replicate for row in log.claims.open(TASK, now_ms=NOW_MS + HOUR_MS)] == [1, 2]
    publish(log, 1.0, source=b"x", replicate=1)
    assert [row.replicate for row in log.claims.open(TASK, now_ms=NOW_MS + HOUR_MS)] == [2]
    assert log.claims.open(TASK, now_ms=NOW_MS + 25 * HOUR_MS) == [], "nobody blocks a source for ever"
    assert log.claims.open(b"?" * 32, now_ms=NOW_MS) == []


def test_a_claim_outlives_the_stopped_run_of_somebody_else_but_not_its_own(log):
    source = run_body(source=b"y").source_digest

    def is_tried(by, now_ms):
        return bool(log.claims.tried_by(TASK, source, 0, now_ms=now_ms) - {key(by).public})

    def stopped(author, now_ms):
        body = run_body(None, source=b"y", status="cancelled", reason="stopped")
        log.writer.append(key(author), "run", body, now_ms=now_ms)

    stopped(1, NOW_MS - 1)
    body = Claim(task=TASK, source_digest=source, replicate=0, until=NOW_MS + HOUR_MS, title="try y")
    log.writer.append(key(1), "claim", body, now_ms=NOW_MS)
    stopped(2, NOW_MS + 1)
    assert [row.author for row in log.claims.open(TASK, now_ms=NOW_MS + 2)] == [key(1).public]
    assert is_tried(2, NOW_MS + 2)
    assert not is_tried(1, NOW_MS + 2)
    stopped(1, NOW_MS + 3)
    assert log.claims.open(TASK, now_ms=NOW_MS + 4) == []
    assert not is_tried(2, NOW_MS + 4)
    publish(log, 1.0, author=1, source=b"y")
    assert is_tried(2, NOW_MS + 5)
    assert not is_tried(1, NOW_MS + 5)


def test_history_has_every_run_of_the_task_oldest_first_with_its_genome(log):
    genome = {"lr": 0.1, "layers": 4, "tied": True, "kind": "gelu", "one": 1.0}
    first = publish(log, 1.0, genome=genome, base=b"b" * 32)
    failed = publish(log, None, status="crashed", parent=first.id, now_ms=NOW_MS + 1)
    rows = log.runs.history(TASK)
    assert [row.id for row in rows] == [first.id, failed.id]
    stored = msgspec.json.decode(rows[0].genome)
    assert stored == genome
    assert [type(stored[name]) for name in genome] == [type(value) for value in genome.values()]
    assert (rows[0].base, rows[0].value, rows[0].budget) == (b"b" * 32, 1.0, 1e12)
    assert (rows[1].status, rows[1].value, rows[1].parent) == ("crashed", None, first.id)


def test_a_run_is_shown_whole_and_as_json(log):
    record = publish(log, 1.5, title="wider", hypothesis="width helps", metrics={"steps": 3}, curve=[2.0, 1.5])
    result = run(log, record.id)
    assert (result.run.title, result.run.metrics, result.run.curve) == ("wider", {"steps": 3}, [2.0, 1.5])
    plain, body = json.loads(msgspec.json.encode(result))["run"], record.body
    assert plain.keys() == set(Run.__struct_fields__), "an answer has every field of a run's record"
    arguments = {name: value for name, value in plain.items() if isinstance(value, int | float | list) and value}
    assert arguments == {name: getattr(body, name) for name in arguments}
    assert plain["source"] == {"sha256": body.source.sha256.hex(), "size": body.source.size, "manifest": None}
    assert (plain["task"], plain["hypothesis"]) == (TASK.hex(), "width helps")
    assert runs(log, TASK) == [result] == runs(log, TASK, author=key(1).public)
    assert runs(log, TASK, author=key(2).public) == []
    for view in (result, best(log, TASK), lineage(log, record.id), statistics(log, TASK)):
        assert json.loads(msgspec.json.encode(view))


def test_runs_come_newest_first(log):
    made = [publish(log, float(index), now_ms=NOW_MS + index) for index in range(5)]
    assert [view.id for view in runs(log, TASK, limit=3)] == [format_id(record.id) for record in made[:1:-1]]


def test_statistics_count_runs_by_how_they_ended(log):
    for author, status in ((1, "ok"), (1, "crashed"), (2, "ok"), (2, "timed_out")):
        publish(log, 1.0 if status == "ok" else None, author=author, status=status)
    numbers = statistics(log, TASK)
    assert numbers.statuses == {"ok": 2, "crashed": 1, "timed_out": 1}
    assert (numbers.runs, numbers.programs, numbers.authors) == (4, 1, 2)


def test_runs_behind_a_fork_are_marked_and_do_not_count(log):
    record = sealed(key(5), run_body(0.1, source=b"one"), seq=2)
    two = sealed(key(5), run_body(0.2, source=b"two"), seq=2)
    before = sealed(key(5), run_body(0.9, source=b"before"), seq=1)
    log.writer.ingest(pairs([record, before]), now_ms=NOW_MS)
    assert best(log, TASK).reported == 0.1
    log.writer.ingest(pairs([two]), now_ms=NOW_MS)
    assert best(log, TASK).reported == 0.9
    assert {view.id: view.standing.forked for view in runs(log, TASK)} == {
        format_id(before.id): False,
        format_id(record.id): True,
        format_id(two.id): True,
    }
    assert run(log, record.id).standing.forked
    assert [row.id for row in log.runs.history(TASK) if not row.forked] == [before.id]
