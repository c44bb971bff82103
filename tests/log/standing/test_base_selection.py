"""What is built upon: confirmed before provisional before one's own before others' word; never what is in doubt."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.bases import preferred, tier
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import CHECKED_ROWS, RUNS_EACH, next_job
from autoresearch.log.standing.queries import board
from autoresearch.record.encoding import format_id
from autoresearch.trust.roster import Trust
from autoresearch.words import DOUBTED, BoardSection, RunState
from tests.log.standing.copying import copies
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, ROOTS, STRANGER, TRUST, Village
from tests.record.making import BLOB, NETWORK, key, pairs, run_body

CHECKPOINT = BLOB
STRANGERS = [key(60), key(61)]
STATES = st.sampled_from(list(RunState))


def chosen(village, me=None):
    context = trust_context(village.log, me.public if me else None)
    return preferred(village.log, village.task, context).row.first


def test_the_order_is_confirmed_provisional_own_reported(village):
    theirs = village.run(1.0, "others say", by=ANN)
    mine = village.run(1.1, "I say", by=BEN)
    assert chosen(village, BEN) == mine.id
    assert chosen(village) == chosen(village, CEM) == theirs.id
    checked = village.run(1.3, "checked", by=ANN)
    village.evaluate(checked, 1.3, BEN, CEM, DOT)
    assert chosen(village, BEN) == checked.id
    confirmed = village.run(1.5, "confirmed", by=CEM)
    village.confirm(confirmed, 2.0, 1.5)
    assert chosen(village, BEN) == chosen(village, ANN) == confirmed.id


def test_the_confirmed_are_ranked_by_what_others_measured(village):
    lucky, steady = village.run(1.2, "lucky"), village.run(1.22, "steady")
    village.confirm(lucky, 2.0, 1.3)
    village.confirm(steady, 2.0, 1.22)
    assert chosen(village) == steady.id
    rows = board(village.log, village.task, trust_context(village.log), limit=20)
    assert [(row.title, row.position) for row in rows[:2]] == [("steady", 1), ("lucky", 2)]
    assert (rows[0].verified_runs, rows[0].verifiers, rows[0].reported) == (4, 3, 1.22)
    assert rows[0].verified == pytest.approx(1.225)
    assert 0 < rows[0].verified_margin < 0.1


def test_nothing_in_doubt_is_built_upon(village):
    for title, value in (("disputed", 0.5), ("refuted", 0.6)):
        false = village.run(value, title, by=ANN)
        village.evaluate(false, 1.9, BEN)
        if title == "refuted":
            village.evaluate(false, 1.9, CEM, DOT, EVE, AUTHOR, number=1)
    village.run(0.7, "cheated", by=ANN, seed=7)
    honest = village.run(1.4, "honest", by=BEN)
    assert chosen(village) == honest.id


def test_where_nothing_can_be_verified_the_best_word_is_built_upon(tmp_path):
    for name, trust in (("nobody", Trust()), ("three", Trust(participants=frozenset(r.public for r in ROOTS[:3])))):
        (tmp_path / name).mkdir()
        small = Village.at(tmp_path / name, trust)
        small.run(1.2, "mine", by=BEN)
        best = small.run(1.0, "theirs", by=ANN)
        assert chosen(small, BEN) == best.id
        stranger = small.run(0.9, "of nobody", by=STRANGER)
        assert chosen(small, BEN) == (best if trust.participants else stranger).id
        small.log.close()


def test_who_is_not_attested_stands_apart_however_good(village):
    stranger = village.run(0.5, "too good", by=STRANGER)
    attested = village.run(1.5, "attested", by=ANN)
    assert chosen(village, BEN) == attested.id
    assert chosen(village, STRANGER) == stranger.id, "one's own comes before what others say"
    rows = board(village.log, village.task, trust_context(village.log), limit=20)
    assert [(row.title, row.section, row.position) for row in rows] == [
        ("attested", "open", 0),
        ("baseline", "open", 0),
        ("too good", "unattested", 0),
    ]


def test_claims_that_nobody_believes_keep_no_honest_run_from_being_verified(village):
    honest = village.run(1.5, "honest", by=ANN)
    for number in range(CHECKED_ROWS + 1):
        village.run(0.5 + number / 100, f"stranger {number}", by=STRANGER)
        village.run(0.7 + number / 100, f"cheated {number}", by=CEM, seed=7)
    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert job is not None
    assert job.run == honest.id


@pytest.mark.slow
def test_what_strangers_write_about_their_own_runs_hides_nothing_that_is_confirmed(village, monkeypatch):
    monkeypatch.setattr("autoresearch.log.standing.bases.CHECKED_MOST", 3)
    good = village.run(1.5, "good", by=ANN)
    village.confirm(good, 2.0, 1.5)
    for number in range(4):
        run = village.run(0.5 + number / 100, f"stranger {number}", by=STRANGER)
        village.evaluate(run, 0.5, *STRANGERS)
        run = village.run(0.6 + number / 100, f"bought {number}", by=CEM)
        village.evaluate(run, 0.6, *STRANGERS)
    assert chosen(village) == good.id


def test_every_section_gets_its_share_of_a_short_board(village):
    for number in range(6):
        village.run(1.0 + number / 100, f"stranger {number}", by=STRANGER)
        village.run(1.5 + number / 100, f"known {number}")
    for limit in (1, 4, 7):
        rows = board(village.log, village.task, trust_context(village.log), limit=limit)
        assert len(rows) == limit
    assert {row.section for row in rows} == {BoardSection.OPEN, BoardSection.UNATTESTED}
    assert rows[0].title == "known 0"


def test_a_change_to_a_refuted_run_is_to_be_compared_again(village):
    false = village.run(0.5, "false")
    child = village.run(1.6, "child", parent=false, by=ANN)
    other = village.run(1.7, "other", by=ANN)
    assert not any(row.retest for row in board(village.log, village.task, trust_context(village.log), limit=20))
    village.refute(false, 1.9)
    marked = {row.title: row.retest for row in board(village.log, village.task, trust_context(village.log), limit=20)}
    assert marked == {"child": True, "other": False, "baseline": False, "false": False}
    assert child.id != other.id


@given(STATES, STATES, st.booleans(), st.booleans(), st.booleans())
def test_doubt_is_never_preferred_to_anything(left, two, attested, own, verifying):
    first = tier(left, attested=attested, own=own, verifying=verifying)
    second = tier(two, attested=attested, own=own, verifying=verifying)
    wrong = DOUBTED | {RunState.NOT_REPLICATED}
    assert (first is None) == (left in wrong)
    if verifying and attested and (left, two) == (RunState.CONFIRMED, RunState.PROVISIONAL):
        assert first < second


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Everything that can become of a run, as records to be taken in in any order."""
    village = Village.at(tmp_path_factory.mktemp("written"))
    good, false = village.run(1.2, "good"), village.run(0.9, "false", by=ANN)
    village.run(1.1, "child", parent=false, by=BEN)
    village.run(0.8, "stranger", by=STRANGER)
    village.confirm(good, 2.0, 1.25)
    village.refute(false, 1.9)
    records = village.log.records.newest(limit=1000)
    context = trust_context(village.log, ANN.public)
    seen = board(village.log, village.task, context, limit=20), preferred(village.log, village.task, context)
    village.log.close()
    return pairs(records), village.task, village.now_ms, seen


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_the_order_of_arrival_the_board_is_the_same(written, tmp_path_factory, order: random.Random):
    batch, task, now_ms, seen = written
    shuffled = list(batch)
    order.shuffle(shuffled)
    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
        half = len(shuffled) // 2
        for part in (shuffled[:half], shuffled[half:]):
            log.writer.ingest(part, now_ms=now_ms)
        context = trust_context(log, ANN.public)
        assert (board(log, task, context, limit=20), preferred(log, task, context)) == seen


@pytest.mark.slow
def test_what_one_participant_alone_says_takes_no_more_than_its_share_of_the_turns(village):
    for number in range(400):
        village.run(0.1 + number / 1000, f"said {number}", by=EVE)
    good = village.run(1.5, "good")
    trials = set()
    while (job := next_job(village.log, village.task, ANN.public, bytes(ANN.key), village.now_ms, skip=trials)) and (
        job.run != good.id
    ):
        trials.add((job.run, job.stage, job.round))
        assert len(trials) <= RUNS_EACH

    assert job is not None


def test_commitments_to_the_runs_of_one_author_leave_others_their_turn(village):
    for number in range(4 * RUNS_EACH):
        village.commit(ANN, village.run(1.0 + number / 100, f"friend {number}", by=EVE))
    honest, skip = village.run(1.5, "honest"), set()
    village.commit(CEM, honest)
    while (result := next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms, skip=skip)) and (
        result.run != honest.id
    ):
        skip.add((result.run, result.stage, result.round))
    assert result is not None
    assert len(skip) <= RUNS_EACH


def copied_earlier(village, name, value):
    """A stranger writes the same program and the same checkpoint under an earlier time."""
    body = run_body(value, source=name.encode(), checkpoint=CHECKPOINT)
    return village.log.writer.append(STRANGER, "run", body, now_ms=village.now_ms - 300_000)


def test_a_stranger_who_writes_an_earlier_time_takes_a_confirmed_run_from_nobody(village):
    village.now_ms += 600_000
    run = village.run(1.0, "good", by=ANN, checkpoint=CHECKPOINT)
    village.confirm(run, 2.0, 1.0)
    copied_earlier(village, "good", 5.0)

    program = preferred(village.log, village.task, trust_context(village.log))
    assert (program.row.first, program.judgement.state) == (run.id, RunState.CONFIRMED)
    assert [
        row.id for row in board(village.log, village.task, trust_context(village.log), limit=5) if row.position
    ] == [format_id(run.id)]
    assert copies(village.log) == []


def test_a_stranger_who_writes_an_earlier_time_keeps_no_run_from_being_verified(village):
    village.now_ms += 600_000
    run = village.run(0.5, "good", by=ANN, checkpoint=CHECKPOINT)
    copied_earlier(village, "good", 0.5)

    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert job is not None
    assert job.run == run.id
