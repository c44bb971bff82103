"""Runs after a fork of a device's log: they count once others verified them, all of them after a merge."""

from __future__ import annotations

import random

import pytest

from autoresearch.log.log import Log
from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.queries import board, leaderboard, run_view
from autoresearch.trust.roster import Trust
from autoresearch.words import BoardSection, RunState
from tests.log.standing.village import ANN, BEN, PEOPLE, TRUST, Village
from tests.record.making import NETWORK, pairs


def board_rows(log, task):
    """Titles with states, as they stand on the board."""
    return {row.title: (row.section, row.state) for row in board(log, task, trust_context(log), limit=50)}


@pytest.fixture
def forked(village):
    """Ann had runs, put an old copy back, and went on."""
    village.run(1.8, "before", by=ANN)
    village.run(1.7, "last", by=ANN)
    village.fork(ANN, 1.6, "other")
    return village


def test_after_a_fork_a_run_is_shown_once_others_verified_it(forked):
    run, other = forked.run(1.2, "later", by=ANN), forked.run(1.1, "unseen", by=ANN)
    assert set(board_rows(forked.log, forked.task)) == {"baseline", "before"}
    forked.evaluate(run, 1.2, *[who for who in PEOPLE if who is not ANN][:3])
    assert board_rows(forked.log, forked.task)["later"] == (BoardSection.OPEN, RunState.PROVISIONAL)
    forked.confirm(run, 2.0, 1.2)
    rows = board_rows(forked.log, forked.task)
    assert rows["later"] == (BoardSection.CONFIRMED, RunState.CONFIRMED)
    assert "unseen" not in rows
    assert preferred(forked.log, forked.task, trust_context(forked.log)).row.first == run.id
    forked.refute(other, 1.9)
    assert "unseen" not in board_rows(forked.log, forked.task)


def test_a_merge_by_the_root_key_makes_all_count_again(forked):
    forked.run(1.2, "later", by=ANN)
    forked.merge(ANN)
    assert set(board_rows(forked.log, forked.task)) == {"baseline", "before", "last", "other", "later"}
    forked.run(1.1, "after", by=ANN)
    assert "after" in board_rows(forked.log, forked.task)


def test_others_are_drawn_to_verify_what_follows_a_fork(forked):
    run = forked.run(1.0, "later", by=ANN)
    job = next_job(forked.log, forked.task, BEN.public, bytes(BEN.key), forked.now_ms)
    assert job is not None
    assert job.run == run.id


def test_an_unverified_copy_after_a_fork_takes_no_program_from_who_published_it_later(forked):
    forked.run(1.2, "same", by=ANN)
    honest = forked.run(1.2, "same", by=BEN)
    assert preferred(forked.log, forked.task, trust_context(forked.log)).row.first == honest.id


def test_where_nobody_is_named_nothing_after_a_fork_counts_until_a_merge(tmp_path):
    village = Village.at(tmp_path, Trust())
    village.run(1.7, "last", by=ANN)
    village.fork(ANN, 1.6, "other")
    run = village.run(1.2, "later", by=ANN)
    village.confirm(run, 2.0, 1.2)
    assert [row.title for row in leaderboard(village.log, village.task)] == ["baseline"]
    village.merge(ANN)
    assert [row.title for row in leaderboard(village.log, village.task)] == ["later", "other", "last", "baseline"]
    village.log.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("merged", [False, True])
def test_the_board_does_not_depend_on_the_order_of_arrival(forked, tmp_path, seed, merged):
    run = forked.run(1.2, "later", by=ANN)
    forked.run(1.1, "unseen", by=ANN)
    forked.confirm(run, 2.0, 1.2)
    if merged:
        forked.merge(ANN)
    expected = board_rows(forked.log, forked.task)
    assert ("unseen" in expected) == merged
    batch = pairs(forked.log.records.newest(limit=1000))
    random.Random(seed).shuffle(batch)
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as log:
        for start in range(0, len(batch), 5):
            log.writer.ingest(batch[start : start + 5], now_ms=forked.now_ms)
            board_rows(log, forked.task)
        assert board_rows(log, forked.task) == expected
        log.writer.rebuild()
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as log:
        assert board_rows(log, forked.task) == expected


def test_the_run_says_that_it_follows_a_fork(forked):
    run = forked.run(1.2, "later", by=ANN)
    stored = forked.log.runs.newest(forked.task, limit=1)[0]
    assert run_view(forked.log, stored).standing.forked
    assert stored.record.id == run.id
