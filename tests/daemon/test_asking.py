"""What a person asks to have measured is queued with all files that it takes, wherever they come from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.events import Events
from autoresearch_daemon.service.effects import Verify
from autoresearch_daemon.service.inputs import Blocked, Input, JobReady, PauseAsked, ResumeAsked, RunAsked
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.verification import controller
from autoresearch_daemon.verification.controller import VerificationController
from autoresearch_daemon.verification.queue import VerificationQueue

from autoresearch.errors import NotFound, Refused
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE
from autoresearch.log.blobs import BlobStore
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Verification
from autoresearch.record.record import Record
from autoresearch.run.bench import Ceiling
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Work
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.words import Why
from tests.daemon.test_reveals import AUTHOR, LATER_MS, OTHERS, Place
from tests.daemon.toy import SECOND_TRAIN, write_toy_task
from tests.record.making import commitment, run_body
from tests.record.making import task_body as published


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "home")
    yield made
    made.local.close()
    made.notebook.close()


class Elsewhere:
    """Another node that has the files of a task and of a run, none of which is here."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.task = load_task(write_toy_task(folder / "task"))
        self.blobs = BlobStore(folder / "blobs")
        self.place = place
        self.requests: list[bytes] = []
        self.has = True
        self.configured = ""
        self.ceiling = Ceiling.of(Work())
        self.taken: list[Input] = []
        self.machine = NodeService(workers_wanted=1)
        harness = {name: self.blobs.put(text) for name, text in self.task.harness.items()}
        body = published(self.task.definition())
        baseline = self.blobs.put(self.task.baseline)
        place.comes(
            AUTHOR, msgspec.structs.replace(body, baseline=baseline, harness=harness, name="toy"), "task", seq=4
        )
        plan = plan_as_it_stands(self.task, self.task.baseline.decode())
        made = run_body(0.61, task=self.task.digest, source_digest=plan.source_digest, seed=plan.seed, budget=1.0)
        self.run = place.comes(AUTHOR, msgspec.structs.replace(made, source=baseline), "run", seq=5)

    def verifying(self) -> VerificationController:
        def load(folder: str) -> Task:
            if not (folder or self.configured):
                raise NotFound("no task is configured")
            task = load_task(Path(folder or self.configured))
            self.ceiling.check(task)
            return task

        async def fetch(blob: BlobRef) -> None:
            self.requests.append(blob.sha256)
            if not self.has:
                raise NotFound("nobody has it")
            self.place.notebook.blobs.put(self.blobs.get(blob.sha256))

        verifying = VerificationController(
            self.place.notebook,
            VerificationQueue(self.place.notebook, self.place.thread, fetch),
            Events(self.place.local),
            self.machine,
            self.place.paths,
            self.place.local,
            take=self.taken.append,
            load=load,
        )
        verifying.level = Level.LANDLOCK
        return verifying

    def says(self, verdict: str) -> Record:
        proof = ecvrf.prove(bytes(OTHERS[0].key), question(self.run.id, EVALUATE, 0))
        body = Verification(run=self.run.id, stage=EVALUATE, verdict=verdict, value=0.9, proof=proof)
        return self.place.comes(OTHERS[0], body, "verification", seq=2)


def test_the_files_of_run_and_task_come_from_others(tmp_path: Path, place: Place) -> None:
    elsewhere = Elsewhere(tmp_path, place)
    record = elsewhere.says("fail")
    name = asyncio.run(elsewhere.verifying().ask_again(format_id(record.id), None))
    (queued,) = elsewhere.taken
    assert isinstance(queued, RunAsked)
    assert queued.assignment.name == name
    assert load_task(Path(queued.assignment.task)).digest == elsewhere.task.digest
    assert len(elsewhere.requests) == 2, "the source, which is the baseline too, and the harness"


def test_what_is_ready_and_no_longer_wanted_is_put_away(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "now_ms", lambda: LATER_MS)  # the records' own day
    elsewhere = Elsewhere(tmp_path, place)
    verifying = elsewhere.verifying()
    ready = asyncio.run(verifying.jobs.find(elsewhere.task.digest, LATER_MS))
    assert ready is not None
    elsewhere.machine.handle(JobReady(*ready), 0)
    effect = Verify(tasks=None, ready=ready[0])
    asyncio.run(verifying.look(effect))
    assert elsewhere.taken == []
    for who in OTHERS:
        proof = ecvrf.prove(bytes(who.key), question(elsewhere.run.id, EVALUATE, 0))
        body = Verification(run=elsewhere.run.id, stage=EVALUATE, verdict="pass", value=0.61, proof=proof)
        place.comes(who, commitment(who, body), "commitment", seq=2)
    asyncio.run(verifying.look(effect))
    assert elsewhere.taken == [JobReady(None)]


def test_runs_on_other_tasks_of_the_network_are_verified_where_this_machine_can(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "now_ms", lambda: LATER_MS)  # the records' own day
    elsewhere = Elsewhere(tmp_path, place)
    elsewhere.configured = str(write_toy_task(tmp_path / "own", SECOND_TRAIN))
    assert load_task(Path(elsewhere.configured)).digest != elsewhere.task.digest
    verifying = elsewhere.verifying()
    asyncio.run(verifying.look(Verify(tasks=("",), ready=None)))
    (ready,) = elsewhere.taken
    assert isinstance(ready, JobReady)
    assert ready.run is not None
    assert (ready.run.checked, verifying.obstacle()) == (format_id(elsewhere.run.id), "")
    assert load_task(Path(ready.task)).digest == elsewhere.task.digest

    again = elsewhere.verifying()
    elsewhere.taken.clear()
    elsewhere.ceiling = Ceiling.of(Work(max_seconds=1))
    monkeypatch.setattr(elsewhere, "configured", "")
    elsewhere.ceiling = Ceiling.of(Work(max_disk_mib=1))
    asyncio.run(again.look(Verify(tasks=("",), ready=None)))
    assert elsewhere.taken == [JobReady(None)]
    assert "more than this machine" in again.obstacle() or "max_disk_mib" in again.obstacle()


def test_who_tells_first_says_how_many_are_to_tell(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "now_ms", lambda: LATER_MS)  # the records' own day
    for who in OTHERS[:2]:
        place.another_commits(who)
    verifying = Elsewhere(tmp_path, place).verifying()
    verifying._reveals.add("check-1", place.measured(place.notebook.identity.device))
    verifying.reveal()
    events = place.local.events_since(0)
    assert events is not None
    assert events[-1].text.endswith("pass, the run is reported now; others who measured it tell next: 2")


def test_what_nobody_has_is_a_sentence_and_nothing_is_queued(tmp_path: Path, place: Place) -> None:
    elsewhere = Elsewhere(tmp_path, place)
    record = elsewhere.says("fail")
    elsewhere.has = False
    with pytest.raises(NotFound, match="nobody has it"):
        asyncio.run(elsewhere.verifying().ask_again(format_id(record.id), None))
    assert elsewhere.taken == []


def test_what_needs_no_measurement_is_not_queued(tmp_path: Path, place: Place) -> None:
    elsewhere = Elsewhere(tmp_path, place)
    verifying = elsewhere.verifying()
    for reference in (format_id(elsewhere.run.id), format_id(elsewhere.says("unavailable").id)):
        with pytest.raises(Refused, match="nothing has to be measured: no misbehaviour found"):
            asyncio.run(verifying.ask_again(reference, None))
    assert elsewhere.taken == []
    assert elsewhere.requests == []


def test_a_run_that_is_being_measured_here_is_not_measured_a_second_time(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "now_ms", lambda: LATER_MS)  # the records' own day
    elsewhere = Elsewhere(tmp_path, place)
    verifying = elsewhere.verifying()
    accepted = asyncio.run(verifying.ask(format_id(elsewhere.run.id)))
    (queued,) = elsewhere.taken
    assert isinstance(queued, RunAsked)
    assert (queued.assignment.name, accepted.note) == (accepted.assignment, "")
    assert queued.assignment.run is not None
    assert queued.assignment.run.checked == format_id(elsewhere.run.id)
    elsewhere.machine.handle(queued, 0)
    with pytest.raises(Refused, match="is being measured here already") as caught:
        asyncio.run(verifying.ask(format_id(elsewhere.run.id)))
    assert caught.value.hint == "autoresearch status"


def test_a_node_that_is_paused_or_blocked_says_so_before_anything_is_fetched(tmp_path: Path, place: Place) -> None:
    elsewhere = Elsewhere(tmp_path, place)
    verifying = elsewhere.verifying()
    blocked = Blocked(Why.DISK_LOW, "the disk is full")
    for event, reason in ((PauseAsked(), "paused"), (ResumeAsked(), ""), (blocked, "the disk is full")):
        elsewhere.machine.handle(event, 0)
        if reason:
            with pytest.raises(Refused, match=reason):
                asyncio.run(verifying.ask(format_id(elsewhere.run.id)))
    assert elsewhere.requests == []


def test_a_task_that_asks_for_more_than_this_machine_allows_is_not_verified(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "now_ms", lambda: LATER_MS)  # the records' own day
    elsewhere = Elsewhere(tmp_path, place)
    elsewhere.ceiling = Ceiling.of(Work(max_seconds=30))
    with pytest.raises(Refused, match="seconds 60, allowed are 30") as caught:
        asyncio.run(elsewhere.verifying().ask(format_id(elsewhere.run.id)))
    assert "autoresearch node config set work.max_seconds 60" in caught.value.hint
    assert elsewhere.taken == []

    elsewhere.configured = str(elsewhere.task.folder)
    effect = Verify(tasks=("",), ready=None)
    fetched = len(elsewhere.requests)
    verifying = elsewhere.verifying()
    asyncio.run(verifying.look(effect))
    assert (elsewhere.taken, verifying.obstacle()) == ([JobReady(None)], caught.value.with_hint)
    assert elsewhere.requests[fetched:] == [b"s" * 32], "of another task alone"
    elsewhere.ceiling = Ceiling.of(Work())
    elsewhere.taken.clear()
    asyncio.run(elsewhere.verifying().look(effect))
    assert [type(event) for event in elsewhere.taken] == [JobReady], "it is there to be done otherwise"
