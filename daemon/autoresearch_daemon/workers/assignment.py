"""A worker process: one assignment at a time, in a thread, while it hears the daemon on the ZeroMQ link.

An assignment is: propose, ask, run, report. It reads the log and never writes it.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import queue
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import msgspec
import zmq
import zmq.asyncio

from autoresearch.errors import AutoresearchError, CannotRunHere, Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.context import is_own_program, own_keys
from autoresearch.paths import Paths
from autoresearch.propose.mind.recall import recall
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.search.search import propose
from autoresearch.propose.search.sharing import LLM, SEARCH
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.bench import Bench, Ceiling, limits_of, task_data
from autoresearch.run.evaluating import Model
from autoresearch.run.experiment import Plan, measure, plan_as_it_stands
from autoresearch.run.packages import is_installed, may_install, task_python
from autoresearch.run.preflight import forget_runs, preflight, remember_run
from autoresearch.run.sandbox.capture import Progress as RunProgress
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.run.sandbox.scratch import sweep
from autoresearch.settings import load_settings
from autoresearch.task.loading import load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import RunStatus, Why
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.minds.ahead import Mind, Think
from autoresearch_daemon.minds.proposing import Occasion, propose_change
from autoresearch_daemon.runs import run_folder
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.checking import carry_out_check


class Talk(Protocol):
    """The worker's side of the link, as an assignment sees it."""

    assignment: str

    def say(self, message: protocol.FromWorker) -> None:
        """Send a message."""

    def ask(self, proposal: protocol.Proposal) -> bool:
        """Propose something and wait for the answer."""

    def cancelled(self) -> bool:
        """Whether to stop."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a worker has: its name, device and threads, where the node's files are, what a run may ask for, its mind.

    ``allow_packages``: whose tasks' packages it installs, by the setting of that name. ``nice``: its niceness.
    """

    name: str
    device: str
    threads: int
    paths: Paths
    ceiling: Ceiling
    allow_packages: str = "own"
    nice: int = 0
    mind: Mind = field(default_factory=Mind)

    @classmethod
    def from_environment(cls, paths: Paths, name: str, device: str) -> Workplace:
        """The workplace that the settings describe."""
        settings, _ = load_settings(paths.settings, os.environ)
        work = settings.work
        return cls(name, device, work.threads, paths, Ceiling.of(work), work.allow_packages, work.nice)


def carry_out(work: protocol.Work, talk: Talk, place: Workplace) -> None:
    """Do one assignment. Ends with exactly one of Result, Dropped or Failed, whatever happens."""
    try:
        ending = _carry_out(work, talk, place)
    except AutoresearchError as error:
        is_here = isinstance(error, CannotRunHere)
        sentence = f"{error} → {error.hint}" if error.hint else str(error)
        ending = protocol.Failed(assignment=work.assignment, sentence=sentence, cannot_run_here=is_here)
    except Exception:  # noqa: BLE001 - the edge of a worker: the sentence goes to the daemon's log with the traceback
        ending = protocol.Failed(assignment=work.assignment, sentence=traceback.format_exc(limit=-3))
    talk.say(ending)


def _carry_out(work: protocol.Work, talk: Talk, place: Workplace) -> protocol.FromWorker:
    task = load_task(Path(work.task)) if work.task else shipped_task()
    folder = run_folder(place.paths.spool, place.name, work.assignment)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    bench = Bench(Level(work.level), place.threads, place.device, place.paths.task_data, folder, place.ceiling)
    bench = replace(bench, foreign=_has_others_part(work, task, place))
    permit(bench.level, foreign=bench.foreign)
    try:
        bench = replace(bench, python=_python(work, task, talk, place))
    except AutoresearchError:
        if not talk.cancelled():
            raise
        return protocol.Dropped(assignment=work.assignment)
    talk.say(protocol.Stage(assignment=work.assignment, why=Why.PREPARING_DATA.value))
    if work.recheck:
        forget_runs(task, bench)
    _prepare(task, bench, talk)
    if work.check is not None:
        return _verify(work, work.check, talk, task, bench, place.paths)
    if work.plan is not None and work.plan.task != task.digest:
        raise UsageError(
            f"{work.task}/task.toml was changed after the program was proposed",
            hint="autoresearch run propose it again",
        )
    talk.say(protocol.Stage(assignment=work.assignment, why=Why.PROPOSING.value))
    plan = _agree(work, talk, task, place)
    if plan is None:
        shutil.rmtree(folder, ignore_errors=True)
        return protocol.Dropped(assignment=work.assignment)

    def on_progress(progress: RunProgress) -> None:
        talk.say(
            protocol.Progress(
                assignment=work.assignment, fraction=progress.fraction, step=progress.step, loss=progress.loss
            )
        )

    if work.plan is None and work.goes_on and (thinking := _thinking(work, task, place, beside_run=True)):
        place.mind.think_ahead(*thinking)
    outcome = measure(task, plan, bench, own=True, on_progress=on_progress, cancelled=talk.cancelled)
    if talk.cancelled():
        place.mind.stop()
    if outcome.status is RunStatus.OK:
        remember_run(task, bench)
        place.mind.note_run(outcome.duration_ms / 1000)
    (folder / "log").write_bytes(outcome.log)
    return protocol.Result(
        assignment=work.assignment,
        outcome=msgspec.convert(outcome, RunOutcome, from_attributes=True),
        folder=str(folder),
        checkpoint=None if outcome.checkpoint is None else str(outcome.checkpoint),
    )


def _python(work: protocol.Work, task: Task, talk: Talk, place: Workplace) -> Interpreter | None:
    """The Python of the task, its packages installed where a person allowed that."""

    def allowed() -> bool:
        manifest = load_manifest(place.paths.manifest)
        with Log.open(place.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log:
            return may_install(task, place.paths.allowed_packages, place.allow_packages, log, work.author, now_ms())

    if task.packages and not is_installed(task, place.paths.environments):
        talk.say(protocol.Stage(assignment=work.assignment, why=Why.INSTALLING_PACKAGES.value))
    return task_python(task, place.paths.environments, may_install=allowed, cancelled=talk.cancelled)


def _prepare(task: Task, bench: Bench, talk: Talk) -> None:
    """Make the task's data and see the baseline run, both once. Raises CannotRunHere, which is no program's fault."""
    try:
        task_data(task, bench)
    except (Refused, UsageError):
        raise
    except AutoresearchError as error:
        raise CannotRunHere(f"the task's data could not be made here: {error}", hint=error.hint) from error
    preflight(task, bench, talk.cancelled)


def _has_others_part(work: protocol.Work, task: Task, place: Workplace) -> bool:
    """Whether others wrote, or may have written, some of what is run: a search below the wall builds on own runs only.

    Behind the wall nobody looks: everything may be.
    """
    if work.check is not None or work.level >= Level.LANDLOCK:
        return True
    manifest = load_manifest(place.paths.manifest)
    with Log.open(place.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log:
        own, plan = own_keys(log, work.author, now_ms()), work.plan
        program, parent = (plan.source, plan.parent) if plan else (task.baseline.decode(), None)
        return not is_own_program(log, task, program, parent, own, shipped=shipped_task())


def _verify(
    work: protocol.Work, check: protocol.Check, talk: Talk, task: Task, bench: Bench, paths: Paths
) -> protocol.FromWorker:
    if task.digest != check.task:
        raise UsageError("the run is on another task than the one this worker has")
    talk.say(protocol.Stage(assignment=work.assignment, why=Why.VERIFYING.value))

    def tell(fraction: float, progress: RunProgress) -> None:
        talk.say(
            protocol.Progress(assignment=work.assignment, fraction=fraction, step=progress.step, loss=progress.loss)
        )

    try:
        verified = carry_out_check(
            work.assignment,
            check,
            task,
            bench,
            model=_model(check.source, check.checkpoint, bench.scratch / "model.safetensors", paths),
            parent=_model(check.parent_source, check.parent_checkpoint, bench.scratch / "parent.safetensors", paths),
            on_progress=tell,
            cancelled=talk.cancelled,
        )
        return msgspec.structs.replace(verified, cancelled=verified.verdict == "error" and talk.cancelled())
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)


def _model(source: str | None, checkpoint: bytes | None, file: Path, paths: Paths) -> Model | None:
    """A model whose checkpoint is a blob here, copied to a file of its own and checked on the way."""
    if source is None or checkpoint is None:
        return None
    with BlobStore(paths.blobs, read_only=True) as blobs, blobs.open(checkpoint) as kept, file.open("wb") as copy:
        shutil.copyfileobj(kept, copy)
    return Model(source, file)


def _agree(work: protocol.Work, talk: Talk, task: Task, place: Workplace) -> Plan | None:
    """Propose until the daemon agrees; ``None`` when it wants the assignment back."""
    attempt = 0
    while not talk.cancelled():
        plan = work.plan or _invent(work, talk, task, place, attempt)
        seconds = int(limits_of(task)["seconds"])
        proposal = protocol.Proposal(assignment=work.assignment, plan=plan, claim_seconds=seconds)
        if talk.ask(proposal):
            return plan
        attempt += 1
    return None


def _invent(work: protocol.Work, talk: Talk, task: Task, place: Workplace, attempt: int) -> Plan:
    """A change by whoever is to make it. The search takes its place where that fails or is not ready.

    Also where others were faster.
    """
    made: Plan | str | None = None
    if not attempt and (thinking := _thinking(work, task, place)):
        made = place.mind.change(*thinking, patient=work.counted, cancelled=talk.cancelled)
    return made if isinstance(made, Plan) else _search(work, task, place, attempt)


def _thinking(
    work: protocol.Work, task: Task, place: Workplace, *, beside_run: bool = False
) -> tuple[Hashable, Think] | None:
    """For what a mind is to make a change, and how it does; None where the search makes it."""
    settings, _ = load_settings(place.paths.settings, os.environ)
    wanted = work.proposer or settings.work.proposer
    # Below the wall a change must be this participant's own: a model reads what others wrote.
    if wanted == SEARCH or work.level < Level.LANDLOCK:
        return None
    # A command computes here, which would slow down a run that is held against the clock.
    if beside_run and task.budget.unit == "seconds" and wanted != LLM:
        return None
    manifest = load_manifest(place.paths.manifest)
    scratch = run_folder(place.paths.spool, place.name, "mind")

    def think(unwanted: Callable[[], bool]) -> Plan | str:
        occasion = Occasion(task, settings, wanted, work.author, place.paths.home_local, scratch, unwanted)
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            with (
                Log.open(place.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log,
                BlobStore(place.paths.blobs, read_only=True) as blobs,
            ):
                return propose_change(log, blobs, occasion, Draws(os.urandom(16)))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    return (task.digest, wanted, settings), think


def _search(work: protocol.Work, task: Task, place: Workplace, attempt: int) -> Plan:
    manifest = load_manifest(place.paths.manifest)
    with (
        Log.open(place.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log,
        BlobStore(place.paths.blobs, read_only=True) as blobs,
    ):
        own = own_keys(log, work.author, now_ms()) if work.level < Level.LANDLOCK else None
        problem, runs, claims = recall(log, blobs, task, now_ms(), me=work.author, own=own)
        # Two nodes that know the same and draw alike would try the same.
        proposal = propose(problem, runs, claims, worker=f"{work.author.hex()}/{place.name}", counter=attempt)
    return plan_as_it_stands(
        task,
        proposal.source,
        replicate=proposal.replicate,
        title=proposal.title,
        parent=proposal.parent,
        base=proposal.base,
        genome=dict(proposal.genome),
        hypothesis=proposal.hypothesis,
        expected=proposal.expected,
        proposer="search",
        kind=proposal.kind,
    )


ALIVE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Conversation:
    """What the thread with the assignment says to the daemon, and hears from it."""

    assignment: str
    loop: asyncio.AbstractEventLoop
    outbox: asyncio.Queue[protocol.FromWorker]
    stop: threading.Event = field(default_factory=threading.Event)
    answers: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)

    def say(self, message: protocol.FromWorker) -> None:
        """Send a message."""
        self.loop.call_soon_threadsafe(self.outbox.put_nowait, message)

    def ask(self, proposal: protocol.Proposal) -> bool:
        """Propose something: may it be run? What comes first counts: an approval, a refusal or the end of it all.

        What was approved is a run, and has a record of how it ended, also when it is cancelled before it begins.
        """
        self.say(proposal)
        return self.answers.get()

    def cancelled(self) -> bool:
        """Whether the daemon wants the assignment stopped."""
        return self.stop.is_set()


class Worker:
    """The process's main loop."""

    def __init__(self, socket: zmq.asyncio.Socket, place: Workplace) -> None:
        self._socket = socket
        self._place = place
        self._outbox: asyncio.Queue[protocol.FromWorker] = asyncio.Queue()
        self._talk: Conversation | None = None
        self._job: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Work until told to quit; the assignment in hand is ended first."""
        sender = asyncio.create_task(self._send())
        heart = asyncio.create_task(self._beat())
        self._outbox.put_nowait(protocol.Ready(pid=os.getpid(), device=self._place.device))
        while not isinstance(message := protocol.decode_from_daemon(await self._socket.recv()), protocol.Quit):
            self._hear(message)
        if self._job:
            # It may still wait for the answer to what it proposed.
            hearing = asyncio.create_task(self._go_on_hearing())
            await self._job
            hearing.cancel()
        await asyncio.to_thread(self._place.mind.stop)
        await self._outbox.join()
        sender.cancel()
        heart.cancel()

    async def _go_on_hearing(self) -> None:
        while True:
            message = protocol.decode_from_daemon(await self._socket.recv())
            if not isinstance(message, protocol.Work):
                self._hear(message)

    def _hear(self, message: protocol.FromDaemon) -> None:
        if isinstance(message, protocol.Work):
            self._talk = Conversation(message.assignment, asyncio.get_running_loop(), self._outbox)
            self._job = asyncio.create_task(asyncio.to_thread(carry_out, message, self._talk, self._place))
        elif self._talk and not isinstance(message, protocol.Quit) and message.assignment == self._talk.assignment:
            if isinstance(message, protocol.Cancel):
                self._talk.stop.set()
            self._talk.answers.put(isinstance(message, protocol.Approve))

    async def _send(self) -> None:
        while True:
            message = await self._outbox.get()
            await self._socket.send(protocol.encode(message))
            self._outbox.task_done()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            self._outbox.put_nowait(protocol.Alive())


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the daemon ends, however it ends (Linux: prctl(2))."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def give_way(nice: int) -> None:
    """Have this process and the runs that it starts give way to other programs; never less than they do already."""
    least = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(least, nice))


async def connect(link: str, name: str, place: Workplace) -> None:
    """Open the link and work."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, name.encode())
    socket.setsockopt(zmq.LINGER, 1000)
    socket.connect(link)
    try:
        await Worker(socket, place).serve()
    finally:
        socket.close()
        context.term()


def main() -> None:
    """Entry of the process; started by the daemon's pool only."""
    parser = argparse.ArgumentParser()
    for option in ("--link", "--name", "--device", "--parent"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    die_with_parent(int(options.parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the daemon's to handle
    place = Workplace.from_environment(Paths.from_environment(os.environ), options.name, options.device)
    give_way(place.nice)
    for folder in (None, place.paths.task_data):  # of a worker before this one, that was killed
        sweep(folder)
    asyncio.run(connect(options.link, options.name, place))


if __name__ == "__main__":
    main()
