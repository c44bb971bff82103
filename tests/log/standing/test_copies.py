"""What rows say about copies is what all records say, after each record that can change it."""

from __future__ import annotations

import pytest

from autoresearch.log.derive import copies as copies_step
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.record.kinds import BlobRef, Claim, Merge, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from tests.log.standing.copying import pairs_by_rule, pairs_in_rows
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, TRUST, Village
from tests.record.making import NETWORK, NOW_MS, pairs, run_body, sealed

HOUR_MS = 3_600_000
MODEL = BlobRef(sha256=b"m" * 32, size=5)
GREAT = run_body(source=b"great").source_digest


@pytest.fixture
def village(village):
    village.now_ms += 10 * HOUR_MS
    return village


def copied(log: Log) -> dict[bytes, bool]:
    """The runs that others had before, and whether their authors copied: by rows as they were settled at once."""
    rows = pairs_in_rows(log)
    assert rows == pairs_by_rule(log)
    assert log.todo.count() == 0
    return {pair.run: any(row.marked for row in rows if row.run == pair.run) for pair in rows}


def dated_back(village: Village, name: str = "great", **fields: object) -> Record:
    """Somebody publishes a run under an earlier time."""
    with village.earlier(HOUR_MS):
        return village.run(1.2, name, by=EVE, **fields)


def witness(village: Village, run: Record, *people: KeyPair) -> list[Record]:
    """These people publish runs that link a run."""
    return [village.run(1.9, f"{who.public.hex()} {village.now_ms}", by=who, links=[run]) for who in people]


def compared(log: Log) -> set[bytes]:
    """The runs whose values are compared with others."""
    query = "SELECT run.id FROM standing JOIN run ON run.n = standing.n WHERE compared"
    return {run for (run,) in log.reader.read(query, ())}


def test_a_claim_from_before_takes_a_mark_away_and_its_withdrawal_brings_it_back(village) -> None:
    village.run(1.2, "great", by=ANN)
    copy = village.run(1.2, "great", by=EVE)
    assert copied(village.log) == {copy.id: True}
    with village.earlier(HOUR_MS):
        body = Claim(task=village.task, source_digest=GREAT, until=village.now_ms + HOUR_MS)
        claim = village.append(EVE, "claim", body)
    assert copied(village.log) == {copy.id: False}
    village.append(EVE, "withdrawal", Withdrawal(), [claim.id])
    assert copied(village.log) == {copy.id: True}


@pytest.mark.slow
def test_who_linked_a_run_says_of_its_program_and_of_its_checkpoint_whose_it_is(village) -> None:
    honest = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    same, other = dated_back(village), dated_back(village, "rewritten", checkpoint=MODEL)
    assert copied(village.log) == {honest.id: True}
    assert honest.id not in compared(village.log)
    assert other.id in compared(village.log)
    witness(village, honest, BEN, CEM)
    assert copied(village.log) == {same.id: True, other.id: True}
    assert honest.id in compared(village.log)
    assert other.id not in compared(village.log)
    village.append(ANN, "withdrawal", Withdrawal(), [honest.id])
    assert copied(village.log) == {}
    assert other.id in compared(village.log)


def test_a_task_whose_noise_comes_to_be_known_says_that_equal_checkpoints_are_copies(village, tmp_path) -> None:
    task = village.log.records.newest(kind="task")[0]
    village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    copy = village.run(1.2, "rewritten", by=EVE, checkpoint=MODEL)
    others = pairs([run for run in village.log.records.newest(limit=1000) if run.id != task.id])
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as log:
        log.writer.ingest(others, now_ms=village.now_ms)
        settle(log, seconds=60)
        assert copied(log) == {copy.id: False}
        log.writer.ingest(pairs([task]), now_ms=village.now_ms)
        assert copied(log) == {copy.id: True}


@pytest.mark.parametrize("measured_first", [False, True])
def test_a_withdrawn_copy_stays_one_when_two_others_measured_it(village, measured_first: bool) -> None:
    honest = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    witness(village, honest, BEN, CEM)
    copy = village.run(1.2, "great", by=EVE, checkpoint=MODEL)
    people = (BEN, CEM)
    if measured_first:
        village.evaluate(copy, 1.2, *people)
    village.append(EVE, "withdrawal", Withdrawal(), [copy.id])
    if not measured_first:
        assert copied(village.log) == {}
        village.evaluate(copy, 1.2, *people)
    assert copied(village.log) == {copy.id: True}
    village.log.writer.rebuild()
    settle(village.log, seconds=60)
    assert copied(village.log) == {copy.id: True}
    village.append(ANN, "withdrawal", Withdrawal(), [honest.id])
    assert copied(village.log) == {}


def test_a_withdrawn_run_is_a_copy_of_one_that_comes_late(village) -> None:
    copy = village.run(1.2, "great", by=EVE)
    village.evaluate(copy, 1.2, BEN, CEM)
    village.append(EVE, "withdrawal", Withdrawal(), [copy.id])
    with village.earlier(HOUR_MS):
        witness(village, village.run(1.2, "great", by=ANN), DOT, PEOPLE[0])
    assert copied(village.log) == {copy.id: True}


def test_a_withdrawn_copy_that_comes_after_its_withdrawal_is_one(village) -> None:
    witness(village, village.run(1.2, "great", by=ANN), BEN, CEM)
    body = run_body(1.2, source=b"great", parent=village.baseline.id)
    head = village.log.devices.head(EVE.public)
    copy = sealed(EVE, body, seq=head.seq + 1, prev=head.id, time_ms=village.now_ms)
    village.evaluate(copy, 1.2, BEN, CEM)
    taken_back = sealed(
        EVE, Withdrawal(), seq=head.seq + 2, prev=copy.id, time_ms=village.now_ms, links=[copy.id], kind="withdrawal"
    )
    for record in (taken_back, copy):
        village.log.writer.ingest(pairs([record]), now_ms=village.now_ms)
    assert copied(village.log) == {copy.id: True}


def test_what_a_device_signed_before_says_when_it_saw_a_run(village) -> None:
    honest = village.run(1.2, "great", by=ANN)
    copy = dated_back(village)
    witness(village, honest, BEN, CEM)
    assert copied(village.log) == {copy.id: True}
    late, lies = [], []
    for friend in (DOT, PEOPLE[0]):
        head = village.log.devices.head(friend.public)
        seq = head.seq if head else 0
        body = run_body(1.9, source=friend.public)
        late.append(sealed(friend, body, seq=seq + 1, time_ms=village.now_ms + 1000))
        lies.append(sealed(friend, body, seq=seq + 2, time_ms=village.now_ms - HOUR_MS // 2, links=[copy.id]))
    village.log.writer.ingest(pairs(lies), now_ms=village.now_ms)
    assert copied(village.log) == {honest.id: True}
    village.log.writer.ingest(pairs(late), now_ms=village.now_ms)
    assert copied(village.log) == {copy.id: True}
    with village.earlier(HOUR_MS // 2):  # they have signed something later by now
        witness(village, copy, DOT, PEOPLE[0])
    assert copied(village.log) == {copy.id: True}


def test_who_cheated_or_forked_is_no_witness(village) -> None:
    honest = village.run(1.2, "great", by=ANN)
    copy = dated_back(village)
    last = witness(village, honest, BEN, CEM)[1]
    assert copied(village.log) == {copy.id: True}
    with village.earlier(HOUR_MS // 2):
        village.run(1.5, "lucky", by=BEN, seed=7)
    assert copied(village.log) == {honest.id: True}
    witness(village, honest, DOT)
    assert copied(village.log) == {copy.id: True}
    branch = sealed(CEM, run_body(1.7, source=b"branch"), seq=last.seq, prev=last.body.parent, time_ms=NOW_MS)
    village.log.writer.ingest(pairs([branch]), now_ms=village.now_ms)
    assert copied(village.log) == {honest.id: True}
    village.append(ROOTS[PEOPLE.index(CEM)], "merge", Merge(device=CEM.public, heads=[last.id, branch.id]))
    assert copied(village.log) == {copy.id: True}


def test_another_trust_list_has_other_witnesses(village) -> None:
    honest = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    copy = dated_back(village, checkpoint=MODEL)
    village.evaluate(copy, 1.2, *PEOPLE[:2])
    witness(village, honest, CEM, DOT)
    assert set(copied(village.log)) == {copy.id}
    village.log.trust = Trust(participants=frozenset(root.public for root in (*ROOTS[:4], ROOTS[5])))
    settle(village.log, seconds=60)
    assert set(copied(village.log)) == {honest.id}


def test_of_a_program_that_many_share_copies_are_found_when_there_is_time(village, monkeypatch) -> None:
    monkeypatch.setattr(copies_step, "ALIKE", 1)
    village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    copy = village.run(1.2, "great", by=EVE, checkpoint=MODEL)
    assert pairs_in_rows(village.log) == set()
    assert village.log.todo.count() == 2
    assert copy.id in compared(village.log)
    settle(village.log, seconds=60)
    assert copied(village.log) == {copy.id: True}
    assert copy.id not in compared(village.log)
