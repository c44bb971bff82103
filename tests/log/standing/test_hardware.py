"""Wall-clock tasks: one kind of hardware is ranked, replays elsewhere say nothing, pairs on one machine do."""

from __future__ import annotations

import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.log import Log
from autoresearch.log.standing.jobs import job_for
from autoresearch.log.standing.queries import leaderboard
from autoresearch.log.standing.verification import counted_reports, judgement
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import Record
from autoresearch.words import RunState
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, Village
from tests.record.making import DEFINITION, digest_of, run_body, task_body

CLOCKED = DEFINITION | {"name": "clocked", "budget": {"unit": "seconds", "amount": 300}}
TASK = digest_of(CLOCKED)


@pytest.fixture
def village(village):
    village.append(AUTHOR, "task", task_body(CLOCKED))
    return village


def run(village: Village, value: float, name: str, *, by=AUTHOR, device: str = "fast", **fields: object) -> Record:
    body = run_body(value, source=name.encode(), task=TASK, budget=300.0, device=device, title=name, **fields)
    return village.append(by, "run", body)


def evaluate(village: Village, checked: Record, value: float, who, device: str) -> Record:
    proof = ecvrf.prove(bytes(who.key), question(checked.id, EVALUATE, 0))
    body = Verification(run=checked.id, stage=EVALUATE, verdict="pass", value=value, proof=proof, device=device)
    return village.verify(who, body)


def replicate(village: Village, checked: Record, before: float, after: float, who, device: str) -> Record:
    proof = ecvrf.prove(bytes(who.key), question(checked.id, REPLICATE, 0))
    body = Verification(
        run=checked.id,
        stage=REPLICATE,
        verdict="pass",
        proof=proof,
        seeds=seeds(ecvrf.output(proof), 2),
        values=[after, after],
        parent_values=[before, before],
        device=device,
    )
    return village.verify(who, body)


def test_a_replay_on_other_hardware_says_nothing(village: Village) -> None:
    parent = run(village, 1.5, "parent")
    child = run(village, 1.2, "child", parent=parent.id)
    for who in (ANN, BEN, CEM):
        evaluate(village, child, 1.6, who, "slow")
    assert judgement(village.log, child.id).state is RunState.REPORTED
    assert list(counted_reports(village.log, child)) == []
    evaluate(village, child, 1.6, DOT, "fast")
    assert judgement(village.log, child.id).state is RunState.DISPUTED


def test_pairs_on_whatever_machine_confirm_without_a_replay(village: Village) -> None:
    parent = run(village, 1.5, "parent")
    child = run(village, 1.2, "child", parent=parent.id)
    job = job_for(village.log, child.id, ANN.public, bytes(ANN.key), village.now_ms)
    assert job is not None
    assert job.stage == REPLICATE
    assert job_for(village.log, parent.id, ANN.public, bytes(ANN.key), village.now_ms) is None
    replicate(village, child, 2.5, 2.2, ANN, "slow")
    replicate(village, child, 1.5, 1.21, BEN, "fast")
    result = judgement(village.log, child.id)
    assert result.state is RunState.CONFIRMED
    assert (result.value, result.runs) == (1.21, 2)  # of the author's kind of hardware alone
    assert result.improvement == pytest.approx(0.295)


def test_a_program_has_the_mean_of_one_kind_of_hardware(village: Village) -> None:
    first = run(village, 1.2, "child")
    run(village, 1.9, "child", by=ANN, device="slow", replicate=1)
    run(village, 1.4, "child", by=BEN, replicate=2)
    row = village.log.programs.find(TASK, first.body.source_digest, 300.0)
    assert (row.runs, row.mean, row.device) == (2, pytest.approx(1.3), "fast")


def test_the_board_has_the_hardware_on_which_most_participants_work(village: Village) -> None:
    quick = [run(village, 0.5 + number / 10, f"quick {number}", device="a cluster") for number in range(5)]
    slow = [run(village, 1.0, "ann", by=ANN, device="slow"), run(village, 1.1, "ben", by=BEN, device="slow")]
    assert [row.id for row in leaderboard(village.log, TASK)] == [format_id(record.id) for record in slow]
    assert all(judgement(village.log, record.id).state is RunState.REPORTED for record in quick)


def test_work_units_are_compared_everywhere(village: Village) -> None:
    for number, who in enumerate((AUTHOR, ANN, BEN)):
        village.run(1.0 + number, f"run {number}", by=who, device=f"machine {number}")
    assert len(leaderboard(village.log, village.task)) == 4


def test_a_log_knows_the_hardware_of_a_run(village: Village) -> None:
    record = run(village, 1.0, "x", device="slow")
    assert isinstance(record.body, Run)
    assert village.log.programs.hardware(TASK) == [("slow", AUTHOR.public, 1)]
    with Log.open(village.log.path, village.log.network, trust=village.log.trust) as again:
        again.writer.rebuild()
        assert again.programs.hardware(TASK) == [("slow", AUTHOR.public, 1)]
