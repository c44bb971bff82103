"""What records prove against who signed them: all of it is found, by everybody alike, and nothing else."""

from __future__ import annotations

import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import REPLICATE
from autoresearch.log.standing.credit import all_evidence, evaluations, evidence_with, merge_of
from autoresearch.record.kinds import Merge, Verification, Withdrawal
from autoresearch.record.record import Record
from autoresearch.words import CONSEQUENCE_SENTENCES, EVIDENCE_SENTENCES, Consequence, EvidenceKind
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, ROOTS, STRANGER, Village, settled
from tests.record.making import DEFINITION, NETWORK, pairs, run_body, sealed, task_body


def fork(village: Village, *, of: Record) -> Record:
    """Another record of the same device with the same number."""
    signer = next(who for who in (AUTHOR, ANN, BEN) if who.public == of.author)
    village.now_ms += 1000
    other = sealed(signer, run_body(0.7, source=b"elsewhere"), seq=of.seq, prev=of.prev, time_ms=village.now_ms)
    village.log.writer.ingest(pairs([other]), now_ms=village.now_ms)
    return other


def evidence_in(village: Village) -> list[tuple[EvidenceKind, Consequence, set[bytes]]]:
    return [(each.kind, each.follows, set(each.records)) for each in all_evidence(settled(village.log))]


def test_where_nobody_cheated_nothing_is_proved(village: Village) -> None:
    village.confirm(village.run(1.22, "steady", by=ANN), 2.0, 1.22)
    assert all_evidence(settled(village.log)) == []


def test_every_kind_is_found_with_its_records_the_newest_first(village: Village) -> None:
    false = village.run(0.9, "false", by=CEM)
    against = village.refute(false, 1.9)
    lucky = village.run(0.5, "lucky", by=ANN, seed=7)
    elsewhere = sealed(BEN, run_body(1.0, task=task_body(DEFINITION | {"name": "x"}).digest), seq=100, prev=bytes(32))
    village.log.writer.ingest(pairs([elsewhere]), now_ms=village.now_ms)
    orphan = village.run(1.1, "orphan", by=BEN, parent=elsewhere)
    doubted = village.run(0.95, "doubted", by=STRANGER)
    doubts = village.evaluate(doubted, 1.9, AUTHOR)
    assert evidence_in(village) == [
        (EvidenceKind.VALUE, Consequence.DISPUTED, {doubted.id, *(record.id for record in doubts)}),
        (EvidenceKind.LINEAGE, Consequence.BANNED, {orphan.id, elsewhere.id}),
        (EvidenceKind.SEED, Consequence.BANNED, {lucky.id}),
        (EvidenceKind.VALUE, Consequence.REFUTED, {false.id, *(record.id for record in against)}),
    ]
    assert against[-1].id in evaluations(village.log, false)
    banned = evidence_with(settled(village.log), EvidenceKind.SEED, lucky.id)
    assert banned is not None
    assert (banned.device, banned.until_ms) == (ANN.public, lucky.time + NETWORK.verify_ban_ms)


def test_a_verifier_that_chose_its_seeds_is_among_them(village: Village) -> None:
    run = village.run(1.22, "steady", by=ANN)
    proof = ecvrf.prove(bytes(BEN.key), question(run.id, REPLICATE, 0))
    body = Verification(run=run.id, stage=REPLICATE, verdict="pass", proof=proof, seeds=[1, 2])
    record = village.append(BEN, "verification", body, [run.id])
    assert [(p.kind, p.device, p.records) for p in all_evidence(settled(village.log))] == [
        (EvidenceKind.SEED, BEN.public, (record.id,))
    ]


@pytest.mark.slow
def test_a_fork_is_found_and_a_merge_by_its_root_key_ends_it(village: Village) -> None:
    run = village.run(1.1, "here", by=ANN)
    other = fork(village, of=run)
    assert evidence_in(village) == [(EvidenceKind.FORK, Consequence.UNCOUNTED, {run.id, other.id})]
    merge = Merge(device=ANN.public, heads=sorted([run.id, other.id]))
    village.append(STRANGER, "merge", merge)
    place = village.log.devices.forks()[0]
    assert merge_of(village.log, place) is None, "a stranger ends no fork"
    ended = village.append(ROOTS[1], "merge", merge)
    village.append(STRANGER, "merge", merge)
    assert evidence_in(village) == [(EvidenceKind.FORK, Consequence.MERGED, {run.id, other.id})]
    assert merge_of(village.log, village.log.devices.forks()[0]) == ended.id
    later_ms = village.now_ms + 1000
    flood = [sealed(STRANGER, merge, kind="merge", seq=100 + number, time_ms=later_ms) for number in range(1001)]
    village.log.writer.ingest(pairs(flood), now_ms=later_ms)
    assert merge_of(village.log, village.log.devices.forks()[0]) == ended.id, "however many strangers write"


def test_withdrawing_a_chosen_seed_changes_nothing(village: Village) -> None:
    lucky = village.run(0.5, "lucky", by=ANN, seed=7)
    village.append(ANN, "withdrawal", Withdrawal(), [lucky.id])
    assert evidence_in(village) == [(EvidenceKind.SEED, Consequence.BANNED, {lucky.id})]


def test_withdrawing_a_made_up_lineage_changes_nothing(village: Village) -> None:
    elsewhere = sealed(BEN, run_body(1.0, task=task_body(DEFINITION | {"name": "x"}).digest), seq=100, prev=bytes(32))
    village.log.writer.ingest(pairs([elsewhere]), now_ms=village.now_ms)
    orphan = village.run(1.1, "orphan", by=BEN, parent=elsewhere)
    village.append(BEN, "withdrawal", Withdrawal(), [orphan.id, elsewhere.id])
    assert evidence_in(village) == [(EvidenceKind.LINEAGE, Consequence.BANNED, {orphan.id, elsewhere.id})]


def test_evaluations_against_a_run_come_before_those_for_it_and_only_of_those_whose_word_counts(
    village: Village,
) -> None:
    run = village.run(1.22, "steady", by=ANN)
    good = village.evaluate(run, 1.22, BEN)
    bad = village.evaluate(run, 1.9, CEM)
    village.evaluate(run, 1.9, ANN, STRANGER)
    assert evaluations(village.log, run) == [bad[0].id, good[0].id]


def test_every_word_has_its_sentence() -> None:
    assert set(EVIDENCE_SENTENCES) == set(EvidenceKind)
    assert set(CONSEQUENCE_SENTENCES) == set(Consequence)
