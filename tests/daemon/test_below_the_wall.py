"""A worker on a machine without a sandbox: it runs this participant's own programs and nothing of anybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from autoresearch_daemon.events import Events
from autoresearch_daemon.service.effects import Verify
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.verification.controller import VerificationController
from autoresearch_daemon.verification.queue import VerificationQueue
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.assignment import Talk, Workplace, carry_out

from autoresearch.ask.acts import edited_program
from autoresearch.ask.acts.edited_program import Idea
from autoresearch.ask.people.claims import published_task
from autoresearch.errors import Refused
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Run
from autoresearch.record.record import Record
from autoresearch.run.bench import Ceiling
from autoresearch.run.checking import VerificationPlan
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.folder import new_run, read_outcome
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Work
from autoresearch.task.loading import load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from tests.daemon.test_reveals import AUTHOR, LATER_MS, Place
from tests.daemon.toy import HARNESS, write_toy_task
from tests.record.making import run_body
from tests.record.making import task_body as published
from tests.run.checks import check_of


class Yes(Talk):
    """A daemon that agrees to what is proposed; ``messages`` is all that it heard."""

    def __init__(self) -> None:
        self.messages: list[protocol.FromWorker] = []
        super().__init__("a", self.messages.append)
        self.answers.put(True)

    @property
    def proposed(self) -> list[protocol.Proposal]:
        return [message for message in self.messages if isinstance(message, protocol.Proposal)]


class Machine:
    """A node without a sandbox, and a stranger whose task and run would copy this node's key to ``seen``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = Place(folder / "home")
        self.key, self.seen = folder / "device.key", folder / "seen"
        self.key.write_text("secret")
        self.seen.write_bytes(b"")
        for file in (self.key, self.seen):
            file.chmod(0o666)
        self.task = load_task(write_toy_task(folder / "theirs", train=self.trap))
        self.run = self.publish(self.task)

    @property
    def trap(self) -> str:
        return (
            f"open({str(self.seen)!r}, 'wb').write(open({str(self.key)!r}, 'rb').read())\n"
            "import prepare\nX = 0.9  # float [0.0, 1.0]\nprepare.report(X)\n"
        )

    def publish(self, task: Task) -> Record:
        """The stranger's task and a run of its program; all files are here already."""
        blobs, place = self.place.notebook.blobs, self.place
        harness = {name: blobs.put(text) for name, text in task.harness.items()}
        baseline = blobs.put(task.baseline)
        body = published(task.definition())
        body = msgspec.structs.replace(body, baseline=baseline, harness=harness, name="toy")
        place.comes(AUTHOR, body, "task", seq=4)
        plan = plan_as_it_stands(task, task.baseline.decode())
        made = run_body(0.61, task=task.digest, source_digest=plan.source_digest, seed=plan.seed, budget=1.0)
        return place.comes(AUTHOR, msgspec.structs.replace(made, source=baseline), "run", seq=5)

    def carry_out(
        self,
        task: Path | None,
        check: VerificationPlan | None = None,
        *,
        planned: bool = False,
        level: Level = Level.NONE,
    ) -> Yes:
        talk = Yes()
        work = protocol.AssignWork(
            assignment="a",
            run=new_run("a"),
            task=str(task or ""),
            plan=plan_as_it_stands(load_task(task), load_task(task).program.decode()) if planned else None,
            level=int(level),
            author=self.place.notebook.author,
            check=check,
        )
        carry_out(work, talk, Workplace("w", "cpu", 1, self.place.paths, Ceiling.of(Work())))
        return talk

    def check(self, **fields: object) -> VerificationPlan:
        return msgspec.structs.replace(check_of(self.task, self.trap, run=self.run.id, claim=0.61), **fields)

    def verifying(self) -> VerificationController:
        async def fetch(_: BlobRef) -> None:
            raise AssertionError("nothing is fetched that can't be run")

        machine = NodeService(workers_wanted=1)
        return VerificationController(
            self.place.notebook,
            VerificationQueue(self.place.notebook, self.place.thread, fetch),
            Events(self.place.local),
            machine,
            self.place.paths,
            self.place.local,
            take=lambda event: None,
            load=lambda folder: self.task,
        )


@pytest.fixture
def machine() -> Iterator[Machine]:
    with TemporaryDirectory(prefix="autoresearch-below-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        made = Machine(folder)
        (folder / "home").chmod(0o755)
        yield made
        made.place.local.close()
        made.place.notebook.close()


def _is_refused(talk: Yes, machine: Machine) -> None:
    (message,) = talk.messages
    assert isinstance(message, protocol.Failed)
    assert "nothing that others wrote is run here: bubblewrap" in message.sentence
    assert machine.seen.read_bytes() == b""


@pytest.mark.parametrize(
    "fields",
    [
        {"stage": EVALUATE},
        {"stage": EVALUATE, "checkpoint": bytes(32)},
        {"stage": REPLICATE, "parent_source": "import prepare"},
    ],
    ids=["measured again", "its model asked", "a pair"],
)
@pytest.mark.parametrize("folder", ["theirs", ""], ids=["their task", "shipped task"])
def test_no_run_of_others_is_verified(machine: Machine, fields: dict[str, object], folder: str) -> None:
    task = load_task(machine.folder / folder) if folder else shipped_task()
    check = machine.check(task=task.digest, **fields)
    _is_refused(machine.carry_out(machine.folder / folder if folder else None, check), machine)


@pytest.mark.parametrize("planned", [True, False], ids=["run", "work"])
def test_no_task_of_others_is_worked_on(machine: Machine, planned: bool) -> None:
    log, blobs = machine.place.notebook.log, machine.place.notebook.blobs
    fetched = published_task(log, blobs, machine.task.digest, machine.folder / "fetched").folder
    _is_refused(machine.carry_out(fetched, planned=planned), machine)


def test_another_program_in_a_fetched_task_does_not_make_it_ones_own(machine: Machine) -> None:
    folder = write_toy_task(machine.folder / "changed", train="import prepare\nprepare.report(0.5)\n")
    _is_refused(machine.carry_out(folder, planned=True), machine)


def test_a_program_of_others_in_ones_own_task_is_refused(machine: Machine) -> None:
    _is_refused(machine.carry_out(own_task(machine, machine.trap), planned=True), machine)


def own_task(machine: Machine, train: str) -> Path:
    """A folder with a task that nobody published, and a program."""
    harness = HARNESS + "# my own\n"
    return write_toy_task(machine.folder / "mine", train=train, harness=harness)


@pytest.mark.slow
@pytest.mark.parametrize("planned", [True, False], ids=["run", "work"])
def test_ones_own_task_runs(machine: Machine, planned: bool) -> None:
    folder = own_task(machine, machine.trap.replace("0.9", "0.8"))
    talk = machine.carry_out(folder, planned=planned)
    assert isinstance(talk.messages[-1], protocol.Ended), talk.messages[-1]
    ended = read_outcome(Path(talk.messages[-1].folder))
    assert ended is not None
    assert ended.outcome is not None
    assert ended.outcome.status == "ok"
    assert machine.seen.read_bytes() == b"secret"


@pytest.mark.slow
def test_ones_own_task_stays_so_when_others_publish_and_run_it(machine: Machine) -> None:
    task = load_task(own_task(machine, machine.trap.replace("0.9", "0.8")))
    machine.place.notebook.publish_task(task, LATER_MS)
    machine.publish(task)
    assert isinstance(machine.carry_out(task.folder, planned=True).messages[-1], protocol.Ended)


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.NONE, Level.LANDLOCK], ids=["without a sandbox", "with one"])
def test_a_search_builds_on_no_program_in_which_others_had_a_part(machine: Machine, level: Level) -> None:
    """The stranger's program leads by far, as its own and as this node's child of it: made when there was a sandbox."""
    place, log = machine.place, machine.place.notebook.log
    task = load_task(own_task(machine, "import prepare\nX = 0.8  # float [0.0, 1.0]\nprepare.report(X)\n"))
    place.notebook.publish_task(task, LATER_MS)
    theirs = "import prepare\nX = 0.3  # float [0.0, 1.0]\nprepare.report(X)  # by others\n"

    def run(source: str, value: float, parent: bytes | None = None) -> Run:
        blob = place.notebook.blobs.put(source.encode())
        made = run_body(value, task=task.digest, source_digest=source_digest(source), parent=parent, budget=1.0)
        return msgspec.structs.replace(made, source=blob)

    device = place.notebook.identity.device
    log.writer.append(device, "run", run(task.baseline.decode(), 0.8), now_ms=LATER_MS)
    parent = place.comes(AUTHOR, run(theirs, 0.1), "run", seq=6)
    log.writer.append(device, "run", run(theirs.replace("0.3", "0.31"), 0.1, parent.id), now_ms=LATER_MS)
    proposed = machine.carry_out(task.folder, level=level).proposed[0].plan
    assert ("by others" in proposed.source) is (level > Level.NONE)


def test_nothing_of_others_is_queued_or_fetched_by_hand_or_by_itself(machine: Machine) -> None:
    verifying = machine.verifying()
    with pytest.raises(Refused, match="nothing that others wrote"):
        asyncio.run(verifying.ask(format_id(machine.run.id)))
    asyncio.run(verifying.look(Verify(tasks=("",), ready=None)))


def _idea(folder: Path) -> Idea:
    task = load_task(folder)
    return Idea(task, task.program.decode())


@pytest.mark.slow
def test_without_a_daemon_it_is_the_same(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edited_program, "detect_level", lambda: (Level.NONE, ()))  # a machine that has none
    paths = machine.place.paths
    machine.place.local.close()
    machine.place.notebook.close()
    with pytest.raises(Refused, match="nothing that others wrote"):
        edited_program.run_once(_idea(machine.folder / "theirs"), paths, now_ms=lambda: LATER_MS, work=Work())
    assert machine.seen.read_bytes() == b""
    edited_program.run_once(
        _idea(own_task(machine, machine.trap.replace("0.9", "0.8"))),
        paths,
        now_ms=lambda: LATER_MS,
        work=Work(),
    )
    assert machine.seen.read_bytes() == b"secret"
