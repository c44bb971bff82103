"""Reading: by id and prefix, newest first, everything for export; hostile values change nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import AMOUNT_MAX, NUMBER_MAX, Claim, Note, Verification, Withdrawal
from tests.log.dumping import dump
from tests.record.making import DEFINITION, NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed, task_body

RUNS = [
    sealed(key(seq % 2), run_body(seq * 1.0, source=b"%d" % seq), seq=seq, time_ms=NOW_MS + seq * 1000)
    for seq in range(1, 41)
]


def ingest(log, records):
    return [verdict.state for verdict in log.writer.ingest(pairs(records), now_ms=NOW_MS + 10**6)]


def test_verdicts_come_one_for_each_in_the_order_given(log):
    good, forged = RUNS[0], RUNS[1]
    early = sealed(key(1), run_body(), time_ms=NOW_MS + 10**9)
    batch = [(good.raw, good.signature), (forged.raw, bytes(64)), (b"", b""), *pairs([early, good])]
    verdicts = log.writer.ingest(batch, now_ms=NOW_MS)
    expected = [State.STORED, State.REFUSED, State.REFUSED, State.EARLY, State.DUPLICATE]
    assert [verdict.state for verdict in verdicts] == expected
    assert [verdict.refusal.code for verdict in verdicts[1:4]] == ["signature", "size", "early"]
    assert verdicts[0].record == good
    assert log.records.count() == 1
    assert ingest(log, [forged]) == [State.STORED], "a forged signature must not block the true record"


def test_ids_resolve_from_any_unambiguous_prefix(log):
    ingest(log, RUNS)
    for record in RUNS:
        assert log.records.resolve(format_id(record.id)) == record.id
        assert log.records.resolve(short_id(record.id)) == log.records.resolve(short_id(record.id).upper()) == record.id
    with pytest.raises(AmbiguousId) as ambiguous:
        log.records.resolve("bafyrei")
    assert len(ambiguous.value.candidates) == 10
    with pytest.raises(NotFound):
        log.records.resolve(format_id(b"\0" * 32))
    with pytest.raises(UsageError):
        log.records.resolve("1!")


def test_the_newest_of_a_task_are_of_all_kinds_that_can_be_about_it(log):
    claim = Claim(task=digest_of(), source_digest=b"d" * 32, until=NOW_MS)
    bodies = {
        "task": task_body(),
        "run": run_body(),
        "claim": claim,
        "note": Note(topic="insight", text="", task=digest_of()),
    }
    made = [
        sealed(key(number), body, kind=kind, time_ms=NOW_MS + number)
        for number, (kind, body) in enumerate(bodies.items())
    ]
    ingest(log, [*made, sealed(key(9), Withdrawal(), kind="withdrawal")])
    assert log.records.newest(task=digest_of()) == made[::-1]
    assert log.records.newest(task=digest_of(), since_ms=NOW_MS + 1, limit=2, without="claim") == [made[3], made[1]]


def test_records_come_newest_first_and_filtered(log):
    ingest(log, RUNS[::-1])
    ingest(log, [sealed(key(3), Note(topic="insight", text="x", task=digest_of()), kind="note")])
    newest = list(reversed(RUNS))
    assert log.records.newest(limit=5) == newest[:5]
    assert log.records.newest(kind="run", limit=100) == newest
    assert log.records.newest(author=key(1).public, limit=3) == newest[1:7:2]
    assert [record.kind for record in log.records.newest(task=digest_of(), limit=100)] == ["run"] * 40 + ["note"]
    assert log.records.newest(task=digest_of(), limit=3, without="note") == newest[:3]
    assert log.records.newest(task=b"?" * 32) == []
    assert log.records.newest(since_ms=NOW_MS + 39_000) == newest[:2]
    assert log.records.newest(kind="run", task=digest_of(), author=key(0).public, since_ms=0, limit=1) == newest[:1]
    counts = (
        log.records.count(),
        log.records.count("run"),
        log.records.count(author=key(1).public),
        log.records.count("note", key(3).public),
    )
    assert counts == (41, 40, 20, 1)


def test_everything_comes_out_again_in_the_order_of_sync(log):
    ingest(log, RUNS[::-1])
    assert list(log.records.iter_raw()) == pairs(RUNS)
    assert list(log.records.iter_keys()) == [(record.time, record.id) for record in RUNS]
    assert list(log.records.iter_keys(since_ms=NOW_MS + 39_000)) == [(record.time, record.id) for record in RUNS[38:]]
    expected = [RUNS[3].id, b"?" * 32, RUNS[1].id]
    assert log.records.raw(expected) == pairs([RUNS[3], RUNS[1]])
    assert log.records.has(expected) == {RUNS[3].id, RUNS[1].id}


def test_unknown_kinds_are_stored_and_given_out_but_in_no_view(log):
    song = sealed(key(1), {"melody": [1, 2]}, kind="song")
    assert ingest(log, [song]) == [State.STORED]
    assert log.records.get(song.id).body == {"melody": [1, 2]}
    assert all(not rows for table, rows in dump(log).items() if table not in ("record", "bucket"))


def test_a_withdrawal_takes_ones_own_run_out_of_the_views_and_no_one_elses(log):
    ingest(log, [sealed(key(5), task_body(), kind="task"), *RUNS[:2]])
    theirs = sealed(key(0), Withdrawal(), kind="withdrawal", seq=50, links=[RUNS[0].id, b"?" * 32])
    own = sealed(key(1), Withdrawal(), kind="withdrawal", seq=50, links=[RUNS[0].id])
    ingest(log, [theirs])
    assert [row.mean for row in log.programs.ranked(digest_of())] == [1.0, 2.0]
    ingest(log, [own])
    assert [row.mean for row in log.programs.ranked(digest_of())] == [2.0]
    assert log.records.get(RUNS[0].id) == RUNS[0]


def test_a_withdrawal_that_comes_first_works_too(log):
    ingest(log, [sealed(key(1), Withdrawal(), kind="withdrawal", seq=50, links=[RUNS[0].id])])
    ingest(log, RUNS[:2])
    assert [row.value for row in log.runs.history(digest_of())] == [2.0]


def test_nobody_sets_the_rules_of_a_task_with_a_digest_that_is_not_its_own(log):
    false = DEFINITION | {"metric": {"direction": "maximize", "noise": 0.0}}
    forged = sealed(key(3), task_body(false), kind="task").body
    import msgspec

    ingest(log, [sealed(key(3), msgspec.structs.replace(forged, digest=digest_of()), kind="task"), *RUNS[:2]])
    assert log.tasks.find(digest_of()) is None
    ingest(log, [sealed(key(4), task_body(), kind="task")])
    assert [row.mean for row in log.programs.ranked(digest_of())] == [1.0, 2.0]


def test_the_same_run_again_is_no_new_evidence(log):
    again = [sealed(key(1), run_body(1.0, title=str(seq)), seq=seq) for seq in range(1, 30)]
    other = sealed(key(2), run_body(2.0))
    second = sealed(key(1), run_body(3.0, replicate=1), seq=30)
    ingest(log, [sealed(key(5), task_body(), kind="task"), *again, other, second])
    (program,) = log.programs.ranked(digest_of())
    assert (program.runs, program.mean) == (3, 2.0)


def test_only_ok_runs_with_the_full_budget_are_ranked(log):
    ingest(
        log,
        [
            sealed(key(5), task_body(), kind="task"),
            sealed(key(1), run_body(0.1, source=b"a", budget=1e11)),
            sealed(key(1), run_body(0.2, source=b"b", status="crashed"), seq=2),
            sealed(key(1), run_body(None, source=b"c"), seq=3),
            sealed(key(1), run_body(0.4, source=b"d"), seq=4),
        ],
    )
    assert [row.mean for row in log.programs.ranked(digest_of())] == [0.4]


finite = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
numbers = st.floats(-NUMBER_MAX, NUMBER_MAX).filter(lambda number: str(number) != "-0.0")
scalars = st.integers(-(2**63), 2**63 - 1) | finite | st.text(max_size=5) | st.booleans()


@given(
    value=numbers,
    budget=numbers,
    replicate=st.integers(0, AMOUNT_MAX),
    genome=st.dictionaries(st.text(min_size=1, max_size=5), scalars, max_size=4),
    noise=st.integers() | finite | st.text(max_size=2) | st.none(),
    amount=st.integers() | finite | st.lists(st.integers(), max_size=1),
    time_ms=st.integers(NETWORK.start_ms, NOW_MS),
)
@settings(max_examples=12, deadline=None)
def test_hostile_values_break_nothing(tmp_path_factory, value, budget, replicate, genome, noise, amount, time_ms):
    definition = {"metric": {"direction": "minimize", "noise": noise}, "budget": {"amount": amount}}
    from autoresearch.errors import AutoresearchError

    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK) as log:
        try:
            log.writer.append(key(1), "task", task_body(definition), now_ms=NOW_MS)
        except (AutoresearchError, ValueError):
            definition = DEFINITION
        body = run_body(
            value,
            task=digest_of(definition),
            budget=budget,
            replicate=replicate,
            genome=genome,
            seed=2**63 - 1,
        )
        stored = sealed(key(2), body, time_ms=time_ms, seq=2**63 - 1)
        assert ingest(log, [stored]) == [State.STORED]
        check = Verification(run=stored.id, stage="L1", verdict="pass", value=value)
        assert ingest(log, [sealed(key(3), check, kind="verification")]) == [State.STORED]
        contents = dump(log)
        log.writer.rebuild()
        assert dump(log) == contents
        assert log.runs.history(digest_of(definition))[0].value == value


def test_what_another_process_stored_is_noticed_and_told_apart(log):
    assert not log.reader.changed_elsewhere()
    ingest(log, RUNS[:3])
    assert not log.reader.changed_elsewhere(), "its own changes are no news"
    row = log.records.last_row()
    with Log.open(log.path, NETWORK) as other:
        ingest(other, RUNS[3:5])
    assert log.reader.changed_elsewhere()
    assert not log.reader.changed_elsewhere()
    assert log.records.keys_after(row) == [(run.time, run.id) for run in RUNS[3:5]]
    assert log.records.keys_after(log.records.last_row()) == []


def test_export_of_one_task_takes_what_is_about_none_along(log):
    other = sealed(key(1), run_body(1.0, task=b"o" * 32), seq=41)
    identity = sealed(key(1), Verification(run=RUNS[0].id, stage="L1", verdict="pass"), kind="verification", seq=42)
    ingest(log, [*RUNS[:3], other, identity])
    assert set(log.records.iter_raw(task=digest_of())) == set(pairs([*RUNS[:3], identity]))


def test_what_sqlite_refuses_to_read_is_a_sentence(log):
    with pytest.raises(Refused, match=r"log.sqlite can't be used: no such table: hats"):
        log.reader.rows("SELECT * FROM hats")
