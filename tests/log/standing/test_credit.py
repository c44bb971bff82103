"""What a participant has done that others can count: every fact follows from the records, in any order."""

from __future__ import annotations

import random

import pytest

from autoresearch.ask.people.evidence import credit_answer
from autoresearch.errors import NotFound, UsageError
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import RecordsView
from autoresearch.log.standing.credit import credit
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import NUMBER_MAX, Verification
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, EVE, PEOPLE, ROOTS, STRANGER, TRUST, Village, settled
from tests.record.making import BLOB, DEFINITION, NETWORK, pairs

COST = {"cpu_ms": 24_000, "duration_ms": 30_000, "metrics": {"work": 1e12, "flops": 3e11}}
FULL = DEFINITION["budget"]["amount"]
LISTED = [
    "provisional",
    "confirmed",
    "not_replicated",
    "refuted",
    "implausible",
    "passes",
    "fails",
    "replications",
    "refutations",
]


def of(log, who):
    """The facts of one of the village's people."""
    root = (ROOTS[PEOPLE.index(who)] if who in PEOPLE else who).public
    (row,) = credit(settled(log), roots=[root])
    everybody = {each.participant: each for each in credit(log)}
    for name in LISTED:
        assert getattr(row, name).count == getattr(everybody[row.participant], name).count
        assert not getattr(everybody[row.participant], name).newest
    return row


def ids(records):
    """All that there are, the newest first."""
    return RecordsView(count=len(records), newest=[format_id(record.id) for record in reversed(records)])


def test_compute_counts_once_others_came_to_the_number_and_never_before(village):
    run = village.run(1.2, "good", by=ANN, **COST)
    village.run(1.1, "said", by=ANN, **COST)
    before = of(village.log, ANN)
    assert (before.runs, before.cpu_ms, before.work) == (2, 0, 0)
    village.evaluate(run, 1.2, BEN, CEM, EVE)
    after = of(village.log, ANN)
    assert (after.cpu_ms, after.work) == (24_000, FULL)
    assert (after.provisional, after.confirmed) == (ids([run]), ids([]))


def test_an_improvement_is_what_others_measured_against_the_parent(village):
    run = village.run(1.0, "lucky", by=ANN)
    village.confirm(run, 2.0, 1.4)
    row = of(village.log, ANN)
    assert row.confirmed == ids([run])
    assert [(gain.total, gain.runs) for gain in row.improvements] == [(pytest.approx(0.6), 1)]


def test_verifications_that_count_are_listed_with_the_time_that_they_took(village):
    run = village.run(1.2, "good")
    checks = village.confirm(run, 2.0, 1.2)
    row = of(village.log, ANN)
    mine = [check for check in checks if check.author == ANN.public]
    assert (row.passes, row.replications) == (ids(mine[:1]), ids(mine[1:]))
    assert row.verifying_ms == 300_000
    assert EVE.public.hex() not in {row.participant for row in credit(village.log)}


def test_what_one_says_of_oneself_or_without_being_attested_earns_nothing(village):
    run = village.run(1.2, "good", by=ANN)
    village.evaluate(run, 1.2, ANN)
    assert of(village.log, ANN).passes == ids([])
    village.evaluate(run, 1.2, STRANGER)
    assert [row for row in credit(village.log) if row.participant == STRANGER.public.hex() and row.passes.count] == []


def test_a_refutation_counts_when_it_held(village):
    false, honest = village.run(0.9, "false"), village.run(1.3, "honest")
    opener = village.evaluate(false, 1.9, ANN)
    village.evaluate(false, 1.9, BEN, CEM, EVE, number=1)
    village.evaluate(honest, 1.9, ANN)
    row = of(village.log, ANN)
    assert row.refutations == ids(opener)
    assert row.fails.count == 2
    author = of(village.log, AUTHOR)
    assert author.refuted == ids([false])
    assert [mark.mark for mark in author.marks] == ["fabricator"]
    assert author.marks[0].record == format_id(false.id)
    assert author.cpu_ms == 0


def test_who_is_attested_is_told_apart_and_a_stranger_keeps_its_own_account(village):
    village.run(1.0, "mine", by=STRANGER)
    facts = {row.participant: (row.attested, row.runs) for row in credit(village.log)}
    assert facts[STRANGER.public.hex()] == (False, 1)
    assert facts[ROOTS[0].public.hex()] == (True, 1)


@pytest.mark.parametrize("seed", range(4))
def test_the_facts_do_not_depend_on_the_order_of_arrival(village, tmp_path, seed):
    good, false = village.run(1.2, "good", by=ANN, **COST), village.run(0.9, "false", by=BEN)
    village.confirm(good, 2.0, 1.25)
    village.refute(false, 1.9)
    batch = pairs(village.log.records.newest(limit=1000))
    random.Random(seed).shuffle(batch)
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as other:
        other.writer.ingest(batch, now_ms=village.now_ms)
        assert credit(settled(other)) == credit(settled(village.log))


def test_a_participant_is_found_by_me_or_the_beginning_of_a_key(village):
    village.run(1.2, "mine", by=ANN)
    root = ROOTS[PEOPLE.index(ANN)].public.hex()
    for text, author in (("me", ANN.public), (root, None), (root[:10].upper(), None)):
        assert [row.participant for row in credit_answer(village.log, text, author=author).participants] == [root]
    with pytest.raises(NotFound):
        credit_answer(village.log, "0" * 20)
    with pytest.raises(NotFound):
        credit_answer(village.log, "me")
    for wrong in ("abc", "x" * 8, "me too"):
        with pytest.raises(UsageError):
            credit_answer(village.log, wrong)


def test_in_a_network_that_names_nobody_runs_are_counted_and_nothing_is_verified(tmp_path):
    village = Village.at(tmp_path, Trust())
    run = village.run(1.2, "good", by=ANN, **COST)
    village.confirm(run, 2.0, 1.2)
    answer = credit_answer(village.log)
    village.log.close()
    assert not answer.trust
    assert sum(row.runs for row in answer.participants) == 2
    assert all(row.cpu_ms == 0 and not row.passes.count and not row.attested for row in answer.participants)


def test_sums_stay_numbers_whatever_budget_a_task_has(tmp_path):
    village = Village.at(tmp_path, definition=DEFINITION | {"budget": {"unit": "work", "amount": NUMBER_MAX}})
    for name in ("one", "two"):
        run = village.run(1.2, name, by=ANN)
        village.evaluate(run, 1.2, BEN, CEM, EVE)
    row = of(village.log, ANN)
    assert row.work == 2 * NUMBER_MAX
    village.log.close()


@pytest.mark.parametrize(
    "cost",
    [
        {"cpu_ms": 30_000 * 1024 + 1},
        {"cpu_ms": 1, "duration_ms": 0},
        {"duration_ms": 4 * 900_000 + 1},
    ],
)
def test_of_a_run_that_cannot_have_spent_what_it_says_nothing_counts(tmp_path, cost):
    village = Village.at(tmp_path, definition=DEFINITION | {"limits": {"seconds": 900}})
    run = village.run(1.2, "boasting", by=ANN, **(COST | cost))
    village.evaluate(run, 1.2, BEN, CEM, EVE)
    row = of(village.log, ANN)
    village.log.close()
    assert (row.cpu_ms, row.work) == (0, 0.0)
    assert row.implausible == row.provisional == ids([run])


def test_where_the_budget_is_time_no_work_counts(tmp_path):
    village = Village.at(tmp_path, definition=DEFINITION | {"budget": {"unit": "seconds", "amount": 60}})
    run = village.run(1.2, "good", by=ANN, device="cpu", checkpoint=BLOB, **COST)
    village.replicate(run, 2.0, 1.2, BEN, CEM, EVE)
    row = of(village.log, ANN)
    village.log.close()
    assert (row.work, row.cpu_ms, row.implausible) == (0.0, 24_000, ids([]))


def test_a_verification_takes_no_longer_than_the_run_has_been_there(village):
    run = village.run(1.2, "good", by=ANN)
    for who in (BEN, CEM, EVE):
        proof = ecvrf.prove(bytes(who.key), question(run.id, EVALUATE, 0))
        ms = 10**12 if who is BEN else 60_000
        check = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.2, proof=proof, duration_ms=ms)
        village.verify(who, check)
    assert [of(village.log, who).verifying_ms for who in (BEN, CEM, EVE)] == [0, 60_000, 60_000]
