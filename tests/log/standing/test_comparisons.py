"""What each setting did: from pairs, the same whatever the order of arrival, without runs that are in doubt."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.tables.differences import PAIRS_MOST
from autoresearch.propose.search.effects import Comparisons
from autoresearch.record.kinds import Withdrawal
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, STRANGER, Village
from tests.record.making import NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed, task_body

BASE = {"LR": 0.1, "+muon": False}


def effects_of(village: Village, **options) -> dict[str, tuple[int, int, float]]:
    effects = Comparisons(village.log, village.task, **options).effects
    return {each.parameter: (each.pairs, each.better, each.median and round(each.median, 6)) for each in effects}


def test_pairs_of_a_run_and_its_parent_are_counted_as_they_come(village: Village):
    first = village.run(1.9, "first", genome=BASE)
    assert effects_of(village) == {}, "the baseline's genome is not known"
    muon = village.run(1.7, "muon", parent=first, genome=BASE | {"+muon": True})
    assert effects_of(village) == {"+muon": (1, 1, -0.2)}
    village.run(1.8, "rate", parent=muon, genome=BASE | {"+muon": True, "LR": 0.2})
    village.run(2.0, "back", parent=muon, genome=BASE | {"LR": 0.1})
    village.run(None, "failed", parent=muon, genome=BASE | {"LR": 0.1}, status="crashed")
    assert effects_of(village) == {"+muon": (2, 2, -0.25), "LR": (1, 0, 0.1)}


def test_failures_are_counted_apart_and_one_explosion_moves_nothing(village: Village):
    first = village.run(1.9, "first", genome=BASE)
    for number, value in enumerate((1.8, 1.7, 1.85, 738.9, None, None)):
        rate = BASE | {"LR": 0.2 + number}
        status = "ok" if value else "diverged"
        village.run(value, f"{number}", parent=first, genome=rate, status=status)
    village.run(None, "stopped", parent=first, genome=BASE | {"LR": 9.0}, status="cancelled")
    village.run(None, "other budget", parent=first, genome=BASE | {"LR": 9.5}, status="diverged", budget=1e11)
    (rate,) = Comparisons(village.log, village.task).effects
    assert (rate.pairs, rate.better, rate.raised, rate.raised_failed, rate.lowered) == (4, 3, 6, 2, 0)
    assert rate.median == pytest.approx(-0.075)


def test_pairs_that_differ_in_much_or_in_the_program_too_say_nothing(village: Village):
    four = {"A": 1, "B": 1, "C": 1, "D": 1}
    first = village.run(1.9, "first", genome=four)
    village.run(1.5, "three", parent=first, genome=four | {"A": 2, "B": 2, "C": 2})
    assert set(effects_of(village)) == {"A", "B", "C"}
    village.run(1.1, "all", parent=first, genome=dict.fromkeys(four, 3))
    village.run(1.1, "by hand", parent=first, genome=four | {"A": 2}, base=b"b" * 32)
    village.run(1.1, "copied words", parent=first, genome=four | {"A": "two"})
    assert {name: pairs for name, (pairs, *_) in effects_of(village).items()} == {"A": 1, "B": 1, "C": 1}


@pytest.mark.slow
def test_the_newest_100_pairs_count(village: Village):
    first = village.run(1.9, "first", genome=BASE)
    for number in range(PAIRS_MOST + 3):
        village.run(2.5 if number < 3 else 1.5, f"{number}", parent=first, genome=BASE | {"LR": 1.0 + number})
    assert effects_of(village) == {"LR": (PAIRS_MOST, PAIRS_MOST, -0.4)}


def test_earlier_pairs_are_those_of_older_runs(village: Village):
    first = village.run(1.9, "first", genome=BASE)
    runs = [village.run(1.9 - n / 10, f"{n}", parent=first, genome=BASE | {"LR": 0.2 + n}) for n in range(4)]
    result = Comparisons(village.log, village.task)
    assert result.of("LR", runs[0].time) is None
    earlier, all_of_them = result.of("LR", runs[2].time), result.of("LR")
    assert (earlier.pairs, earlier.better, earlier.worse) == (2, 1, 0)
    assert (all_of_them.pairs, all_of_them.better, all_of_them.worse) == (4, 3, 0)
    assert result.of("DEPTH") is None


def test_a_refuted_run_says_nothing_and_a_stranger_s_only_to_itself(village: Village):
    first = village.run(1.9, "first", genome=BASE)
    liar = village.run(0.5, "liar", by=DOT, parent=first, genome=BASE | {"LR": 0.2})
    village.run(0.9, "stranger", by=STRANGER, parent=first, genome=BASE | {"LR": 0.4})
    assert effects_of(village) == {"LR": (1, 1, -1.4)}
    assert effects_of(village, me=STRANGER.public)["LR"][0] == 2
    village.evaluate(liar, 1.9, ANN, BEN, CEM)
    assert effects_of(village) == {}
    village.append(AUTHOR, "withdrawal", Withdrawal(), [first.id])
    assert effects_of(village, me=STRANGER.public) == {}


@st.composite
def histories(draw):
    """Records of a task and of runs that change each other, each by one of two devices, in any order of arrival."""
    devices = [key(60), key(61)]
    records = [sealed(devices[0], task_body(), kind="task")]
    heads = {devices[0].public: records[0], devices[1].public: None}
    runs = []
    for number in range(draw(st.integers(1, 8))):
        who = draw(st.sampled_from(devices))
        above = draw(st.sampled_from(runs)) if runs else None
        genome = {"A": draw(st.integers(0, 2)), "+b": draw(st.booleans())}
        body = run_body(draw(st.floats(1, 3)), source=f"{number}".encode(), parent=above and above.id, genome=genome)
        before = heads[who.public]
        seq, prev = (before.seq + 1, before.id) if before else (1, b"")
        links = (above.id,) if above else ()
        run = sealed(who, body, seq=seq, prev=prev, time_ms=NOW_MS + number, links=links)
        heads[who.public] = run
        runs.append(run)
    order = draw(st.permutations(devices))
    streams = {who.public: [each for each in (*records, *runs) if each.author == who.public] for who in order}
    return streams, draw(st.lists(st.sampled_from(order), max_size=20)), order


@pytest.mark.slow
@given(histories())
@settings(max_examples=40, deadline=None)
def test_the_order_of_arrival_is_no_matter(made):
    streams, turns, order = made
    with tempfile.TemporaryDirectory() as folder:
        with Log.open(Path(folder) / "piece.sqlite", NETWORK, trust=Trust()) as log:
            left = {who: list(records) for who, records in streams.items()}
            for who in (*turns, *(each for each in order for _ in left[each.public])):
                if left[who.public]:
                    log.writer.ingest(pairs([left[who.public].pop(0)]), now_ms=NOW_MS + 1000)
                    assert Comparisons(log, digest_of()).effects is not None
            piece = Comparisons(log, digest_of()).effects
        with Log.open(Path(folder) / "whole.sqlite", NETWORK, trust=Trust()) as log:
            everything = [record for records in streams.values() for record in records]
            log.writer.ingest(pairs(everything), now_ms=NOW_MS + 1000)
            assert Comparisons(log, digest_of()).effects == piece
