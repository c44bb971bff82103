"""What a node is to verify is made ready, whatever strangers put in their records."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.verification.queue import AGAIN_MS, VerificationQueue
from autoresearch_daemon.verification.reveals import Reveals

from autoresearch.ask.people.own_verification import waiting
from autoresearch.errors import CannotRunHere, NotFound, Refused
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE
from autoresearch.log.standing.hiding import hide
from autoresearch.log.standing.verification import counted_reports
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import BlobRef, Verification
from autoresearch.record.record import Record
from autoresearch.run.checking import VerificationPlan
from tests.daemon.test_reveals import AUTHOR, LATER_MS, OTHERS, Place
from tests.record.making import DEFINITION, commitment, key, run_body, task_body


def test_a_source_that_is_no_text_is_handed_to_the_worker_and_stops_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.notebook.blobs.put(b"\xff\xfe no text")
    body = msgspec.structs.replace(run_body(1.1, source=b"other"), source=source)
    place.comes(AUTHOR, body, "run", seq=4)

    async def fetch(_: BlobRef) -> None:
        return None

    jobs = VerificationQueue(place.notebook, place.thread, fetch)
    job = asyncio.run(jobs.find(body.task, LATER_MS))

    assert job is not None
    check = jobs.check(job[0])
    assert check is not None
    assert check.source.endswith(" no text")


def test_what_others_did_meanwhile_or_something_better_goes_before_what_is_ready(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.notebook.blobs.put(b"X = 1\n")
    run = place.comes(AUTHOR, msgspec.structs.replace(run_body(1.1, source=b"good"), source=source), "run", seq=4)
    better = msgspec.structs.replace(run_body(0.6, source=b"better"), source=source)

    async def fetch(_: BlobRef) -> None:
        return None

    jobs = VerificationQueue(place.notebook, place.thread, fetch)

    def find() -> tuple[str, bytes]:
        name, run_in_hand = asyncio.run(jobs.find(better.task, LATER_MS)) or ("", None)
        return name, parse_id(run_in_hand.checked) if run_in_hand else b""

    first, program = find()
    assert program == run.id
    assert asyncio.run(jobs.is_next(first, LATER_MS))
    better_run = place.comes(AUTHOR, better, "run", seq=5)
    assert not asyncio.run(jobs.is_next(first, LATER_MS))
    jobs.put_back(first, LATER_MS)
    second, program = find()
    assert program == better_run.id
    for who in OTHERS:
        assert asyncio.run(jobs.is_next(second, LATER_MS))
        proof = ecvrf.prove(bytes(who.key), question(better_run.id, EVALUATE, 0))
        body = Verification(run=better_run.id, stage=EVALUATE, verdict="pass", value=0.6, proof=proof)
        place.comes(who, commitment(who, body), "commitment", seq=2)
    assert not asyncio.run(jobs.is_next(second, LATER_MS))
    jobs.put_back(second, LATER_MS)
    assert find()[1] == run.id


@pytest.mark.parametrize("field", ["source", "checkpoint"])
def test_files_larger_than_any_run_has_are_not_even_asked_for(tmp_path: Path, field: str) -> None:
    place = Place(tmp_path)
    task = task_body(DEFINITION | {"name": "asked", "evaluation": {"tolerance": 0.001}})
    place.comes(AUTHOR, task, "task", seq=4)
    small = place.notebook.blobs.put(b"x = 1")
    refs = {"source": small, "checkpoint": small, field: BlobRef(sha256=b"h" * 32, size=1 << 34)}
    run = place.comes(AUTHOR, msgspec.structs.replace(run_body(1.1, task=task.digest), **refs), "run", seq=5)
    fetched: list[BlobRef] = []

    async def fetch(blob: BlobRef) -> None:
        fetched.append(blob)

    jobs = VerificationQueue(place.notebook, place.thread, fetch)
    with pytest.raises(Refused, match="the most there are"):
        asyncio.run(jobs.ask(run.id, LATER_MS))
    assert asyncio.run(jobs.find(task.digest, LATER_MS)) is None
    assert all(blob.size < 1 << 30 for blob in fetched)


def test_what_is_in_hand_is_not_found_again_however_long_it_takes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.notebook.blobs.put(b"X = 1\n")
    body = msgspec.structs.replace(run_body(1.1, source=b"good"), source=source)
    place.comes(AUTHOR, body, "run", seq=4)

    async def fetch(_: BlobRef) -> None:
        return None

    jobs = VerificationQueue(place.notebook, place.thread, fetch)
    name, _ = asyncio.run(jobs.find(body.task, LATER_MS)) or ("", None)
    assert asyncio.run(jobs.find(body.task, LATER_MS + 2 * AGAIN_MS, in_hand=[name])) is None
    assert asyncio.run(jobs.find(body.task, LATER_MS + 2 * AGAIN_MS)) is not None, "when its worker was lost"


def test_what_cannot_be_had_is_tried_more_and_more_seldom(tmp_path: Path) -> None:
    place = Place(tmp_path)
    attempts: list[int] = []
    now_ms = LATER_MS

    async def fetch(_: BlobRef) -> None:
        attempts.append(now_ms)
        raise NotFound("nobody has it")

    jobs = VerificationQueue(place.notebook, place.thread, fetch)
    for _ in range(60):
        now_ms += AGAIN_MS // 2
        assert asyncio.run(jobs.find(place.run.body.task, now_ms)) is None  # type: ignore[union-attr]

    waits = [after - before for before, after in pairwise(attempts)]
    assert waits == [AGAIN_MS * 2**times for times in range(len(waits))]
    assert len(waits) == 4
    verifications = [record.body for record in place.own("verification")]
    assert [body.verdict for body in verifications] == ["unavailable"], "once, and not after the first try"
    assert [report.obstacle for _, report in counted_reports(place.notebook.log, place.run)] == ["unavailable"]


@pytest.mark.parametrize("fault", ["offline", "full"])
def test_what_is_this_machines_own_fault_is_not_held_against_a_run(tmp_path: Path, fault: str) -> None:
    place = Place(tmp_path)

    async def fetch(_: BlobRef) -> None:
        raise CannotRunHere("no room") if fault == "full" else NotFound("nobody is there")

    jobs = VerificationQueue(place.notebook, place.thread, fetch, lambda: fault == "full")
    for now_ms in range(LATER_MS, LATER_MS + 60 * AGAIN_MS, AGAIN_MS):
        assert asyncio.run(jobs.find(place.run.body.task, now_ms)) is None  # type: ignore[union-attr]
    assert not place.own("verification")


def test_a_verification_is_made_once_more_beside_the_parent_only_if_its_verifier_did_so(tmp_path: Path) -> None:
    place = Place(tmp_path)
    blobs = place.notebook.blobs
    task = task_body(DEFINITION | {"name": "asked", "evaluation": {"tolerance": 0.001}})
    place.comes(AUTHOR, task, "task", seq=4)
    above, model, source = (blobs.put(content) for content in (b"above", b"below", b"x = 1"))

    def trained(value: float, checkpoint: BlobRef, seq: int, **fields: object) -> Record:
        body = run_body(value, task=task.digest, checkpoint=checkpoint, **fields)
        return place.comes(AUTHOR, msgspec.structs.replace(body, source=source), "run", seq=seq)

    parent = trained(1.3, above, 5)
    run = trained(1.2, model, 6, parent=parent.id)
    proof = ecvrf.prove(bytes(OTHERS[0].key), question(run.id, EVALUATE, 0))
    alone = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.2, proof=proof)
    beside = msgspec.structs.replace(alone, parent_values=[1.3])
    missing: set[bytes] = set()

    async def fetch(blob: BlobRef) -> None:
        if blob.sha256 in missing:
            raise NotFound("nobody has it")

    jobs = VerificationQueue(place.notebook, place.thread, fetch)

    def again(body: Verification, seq: int) -> VerificationPlan:
        record = place.comes(OTHERS[0], body, "verification", seq=seq)
        check = jobs.check(asyncio.run(jobs.again(record))[0])
        assert check is not None
        return check

    plan = again(alone, 7)
    assert (plan.checkpoint, plan.parent_checkpoint, plan.proof) == (model.sha256, None, proof)
    assert plan.seeds == seeds(ecvrf.output(proof), 1), "whatever seeds the verifier left out"
    assert again(beside, 8).parent_checkpoint == above.sha256
    missing.add(above.sha256)
    assert again(alone, 9).parent_checkpoint is None
    with pytest.raises(NotFound, match="nobody has it"):
        again(beside, 10)
    assert place.own("verification") == place.own("commitment") == []


def test_a_person_is_told_that_a_run_can_t_be_had_and_what_to_do(tmp_path: Path) -> None:
    place = Place(tmp_path)

    async def fetch(_: BlobRef) -> None:
        raise NotFound("none of 2 connected peers has it", hint="autoresearch network peers")

    jobs = VerificationQueue(place.notebook, place.thread, fetch)
    with pytest.raises(NotFound, match="can't be measured here now: none of 2 connected peers has it") as caught:
        asyncio.run(jobs.ask(place.run.id, LATER_MS))
    assert "must be connected: autoresearch network peers" in caught.value.hint


def test_a_run_in_hand_says_whose_it_is_what_is_measured_and_why(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.notebook.blobs.put(b"X = 1\n")
    body = msgspec.structs.replace(run_body(1.1, source=b"other"), source=source, title="faster")
    run = place.comes(AUTHOR, body, "run", seq=4)

    async def fetch(_: BlobRef) -> None:
        return None

    answer = asyncio.run(VerificationQueue(place.notebook, place.thread, fetch).ask(run.id, LATER_MS))
    assert answer.note == ""
    run_in_hand = answer.run
    assert (run_in_hand.checked, run_in_hand.stage, run_in_hand.reason) == (
        format_id(run.id),
        "evaluate",
        "you asked for it",
    )
    assert run_in_hand.participant.key == key(100).public.hex()
    job = asyncio.run(VerificationQueue(place.notebook, place.thread, fetch).find(body.task, LATER_MS))
    assert job is not None
    assert job[1].reason == "drawn by VRF"
    assert "faster" in job[1].title
    hide(place.notebook.log, [HiddenRow("faster", b"", "", 0)])
    job = asyncio.run(VerificationQueue(place.notebook, place.thread, fetch).find(body.task, LATER_MS))
    assert job is not None
    assert job[1].title.endswith(": hidden"), "it is verified, and its words are not shown"
    reveals = Reveals(place.notebook, place.local)
    proof = ecvrf.prove(bytes(place.notebook.identity.device.key), question(run.id, EVALUATE, 0))
    reveals.add("check-1", Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.1, proof=proof))
    assert [row.title for row in waiting(place.notebook.log, place.notebook.author, reveals.waiting())] == ["hidden"]
