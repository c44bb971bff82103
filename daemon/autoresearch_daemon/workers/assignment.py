"""A worker process: one assignment at a time, while a thread hears the daemon on the link.

An assignment is: propose, ask, run, report. It reads the log and never writes it.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.link import Link, LinkEnded, keep_link
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.context import is_own_program, own_keys
from autoresearch.paths import Paths
from autoresearch.propose.mind.recall import due_from_smaller, known_genome, recall
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import LiveClaim, SearchProblem, SearchProposal
from autoresearch.propose.search.search import propose, replicate_due
from autoresearch.propose.search.sharing import LLM, SEARCH
from autoresearch.run.bench import Bench, Ceiling, limits_of
from autoresearch.run.checking import VerificationPlan
from autoresearch.run.consent import check_reaches, reaches_of
from autoresearch.run.executors import executor_class
from autoresearch.run.experiment import Plan, plan_as_it_stands
from autoresearch.run.folder import (
    MODEL,
    PARENT_MODEL,
    Conditions,
    Fault,
    RunRequest,
    fault_of,
    run_folder,
    write_request,
)
from autoresearch.run.packages import are_allowed, may_install, program_python
from autoresearch.run.runner import RunSite, make_ready
from autoresearch.run.runner import carry_out as carry_out_request
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.scratch import sweep
from autoresearch.settings import Work, load_settings
from autoresearch.task.loading import default_task, load_task, shipped_as
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import RunStatus, Why
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.minds.ahead import Mind, Think
from autoresearch_daemon.minds.proposing import Occasion, propose_change
from autoresearch_daemon.workers import protocol


@dataclass(slots=True)
class Talk:
    """The link as an assignment sees it: what it says, and what the thread that hears the daemon puts here."""

    assignment: str
    say: Callable[[protocol.FromWorker], None]
    stop: threading.Event = field(default_factory=threading.Event)
    answers: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)

    def ask(self, proposal: protocol.Proposal) -> bool:
        """Propose something: may it be run? What comes first counts: an approval, a refusal or the end of it all.

        What was approved is a run, and has a record of how it ended, also when it is cancelled before it begins.
        """
        self.say(proposal)
        return self.answers.get()

    def cancelled(self) -> bool:
        """Whether the daemon wants the assignment stopped."""
        return self.stop.is_set()


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a worker has: its name, device and threads, where the node's files are, what a run may ask for, its mind.

    ``settings`` say whose tasks' packages it installs. ``nice``: its niceness.
    """

    name: str
    device: str
    threads: int
    paths: Paths
    ceiling: Ceiling
    settings: Work = field(default_factory=Work)
    nice: int = 0
    mind: Mind = field(default_factory=Mind)

    @classmethod
    def from_environment(cls, paths: Paths, name: str, device: str) -> Workplace:
        """The workplace that the settings describe."""
        settings, _ = load_settings(paths.settings, os.environ)
        work = settings.work
        return cls(name, device, work.threads, paths, Ceiling.of(work), work, work.nice)

    def with_limits_of_now(self) -> Workplace:
        """The same with what the settings allow a run by now; where they can't be read, as before."""
        try:
            return replace(self, ceiling=Ceiling.of(load_settings(self.paths.settings, os.environ)[0].work))
        except UsageError:
            return self

    def allows(self, programs: Sequence[str]) -> int:
        """What the packages that these programs bring may take of the disk, with all others; 0: nobody allowed them."""
        return are_allowed(programs, self.paths, self.settings)

    @contextmanager
    def reading(self) -> Iterator[tuple[Log, BlobStore]]:
        """The log and the blobs of this node."""
        manifest = load_manifest(self.paths.manifest)
        with (
            Log.open(self.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log,
            BlobStore(self.paths.blobs, read_only=True) as blobs,
        ):
            yield log, blobs


def carry_out(work: protocol.AssignWork, talk: Talk, place: Workplace) -> None:
    """Do one assignment. Says exactly one of Ended, Written, Dropped or Failed at its end, whatever happens."""
    folder = run_folder(place.paths.spool, work.run)
    try:
        ending = _carry_out(work, talk, place, folder)
    except AutoresearchError as error:
        ending = _failed(work, fault_of(error))
    except Exception:  # noqa: BLE001 - the edge of a worker: the sentence goes to the daemon's log with the traceback
        ending = _failed(work, Fault(sentence=traceback.format_exc(limit=-3)))
    if isinstance(ending, protocol.Failed | protocol.Dropped):
        shutil.rmtree(folder, ignore_errors=True)
    talk.say(ending)


def _failed(work: protocol.AssignWork, fault: Fault) -> protocol.Failed:
    return protocol.Failed(assignment=work.assignment, sentence=fault.sentence, cannot_run_here=fault.cannot_run_here)


def _carry_out(work: protocol.AssignWork, talk: Talk, place: Workplace, folder: Path) -> protocol.FromWorker:
    task = load_task(Path(work.task)) if work.task else default_task()
    folder.mkdir(parents=True)
    conditions = Conditions(
        ceiling=place.ceiling,
        threads=place.threads,
        device=work.executor_device if work.executor else place.device,
        foreign=_has_others_part(work, task, place),
        may_install=_may_install(work, task, place) if task.packages else 0,
        recheck=work.recheck,
    )
    if work.executor:
        executor_class(work.executor.partition(":")[0])  # one that is gone is noticed before a claim is made
        check_reaches(task.folder, reaches_of(task), place.paths.allowed)
        conditions = msgspec.structs.replace(conditions, is_allowed=True)
    bench = None if work.executor else _ready(work, task, talk, conditions, place, folder)
    if bench is None and talk.cancelled():
        return protocol.Dropped(assignment=work.assignment)
    if work.check is not None:
        if task.digest != work.check.task:
            raise UsageError("the run is on another task than the one this worker has")
        plan, programs = None, [work.check.source, work.check.parent_source or ""]
        _copy_models(work.check, folder, place.paths)
    else:
        if work.plan is not None and work.plan.task != task.digest:
            raise UsageError(
                f"{work.task}/task.toml was changed after the program was proposed",
                hint="autoresearch run propose it again",
            )
        talk.say(protocol.Stage(assignment=work.assignment, why=Why.PROPOSING.value))
        plan = _agree(work, talk, task, place, bench)
        if plan is None:
            return protocol.Dropped(assignment=work.assignment)
        programs = [plan.source]
    conditions = msgspec.structs.replace(conditions, programs_may_install=place.allows(programs))
    request = RunRequest(
        run=work.run, task=task, conditions=conditions, plan=plan, check=work.check, executor=work.executor
    )
    write_request(folder, request)
    if bench is None:
        return protocol.Written(assignment=work.assignment, folder=str(folder), executor=work.executor)
    _run_here(work, request, talk, bench, folder, place)
    return protocol.Ended(assignment=work.assignment, folder=str(folder))


def _ready(
    work: protocol.AssignWork, task: Task, talk: Talk, conditions: Conditions, place: Workplace, folder: Path
) -> Bench | None:
    """Make this machine ready before anything is claimed; None where that was cancelled."""
    site = RunSite(Level(work.level), place.paths.task_data, place.paths.environments, place.paths.allowed)

    def tell(why: Why) -> None:
        talk.say(protocol.Stage(assignment=work.assignment, why=why.value))

    try:
        return make_ready(task, conditions, site, folder, on_stage=tell, cancelled=talk.cancelled)
    except AutoresearchError:
        if not talk.cancelled():
            raise
        return None


def _run_here(
    work: protocol.AssignWork, request: RunRequest, talk: Talk, bench: Bench, folder: Path, place: Workplace
) -> None:
    """Carry out a request in this process; meanwhile a mind may make the next change."""

    def on_progress(progress: RunProgress) -> None:
        talk.say(protocol.Progress.of(work.assignment, progress))

    if request.check is not None:
        talk.say(protocol.Stage(assignment=work.assignment, why=Why.VERIFYING.value))
    elif work.plan is None and work.goes_on and (thinking := _thinking(work, request.task, place, beside_run=True)):
        place.mind.think_ahead(*thinking)
    ended = carry_out_request(
        folder,
        request,
        bench.level,
        lambda scratch, _: replace(bench, scratch=scratch, may_install=request.conditions.programs_may_install),
        on_progress=on_progress,
        cancelled=talk.cancelled,
    )
    if request.plan is not None and talk.cancelled():
        place.mind.stop()
    if ended.outcome is not None and ended.outcome.status is RunStatus.OK:
        place.mind.note_run(ended.outcome.duration_ms / 1000)


def _may_install(work: protocol.AssignWork, task: Task, place: Workplace) -> int:
    """The bytes that all environments may take with the task's packages; 0: nobody allowed them."""
    with place.reading() as (log, _):
        return may_install(task, place.paths, place.settings, log, work.author, now_ms())


def _has_others_part(work: protocol.AssignWork, task: Task, place: Workplace) -> bool:
    """Whether others wrote, or may have written, some of what is run: a search below the wall builds on own runs only.

    Behind the wall nobody looks: everything may be.
    """
    if work.check is not None or work.level >= Level.LANDLOCK:
        return True
    with place.reading() as (log, _):
        own, plan = own_keys(log, work.author, now_ms()), work.plan
        program, parent = (plan.source, plan.parent) if plan else (task.baseline.decode(), None)
        return not is_own_program(log, task, program, parent, own, shipped=shipped_as(task))


def _copy_models(check: VerificationPlan, folder: Path, paths: Paths) -> None:
    """Put the models that a check asks into its folder; they are blobs here, and are checked on the way."""
    models = ((check.source, check.checkpoint, MODEL), (check.parent_source, check.parent_checkpoint, PARENT_MODEL))
    for source, checkpoint, name in models:
        if source is not None and checkpoint is not None:
            with (
                BlobStore(paths.blobs, read_only=True) as blobs,
                blobs.open(checkpoint) as blob,
                (folder / name).open("wb") as copy,
            ):
                shutil.copyfileobj(blob, copy)


def _agree(work: protocol.AssignWork, talk: Talk, task: Task, place: Workplace, bench: Bench | None) -> Plan | None:
    """Propose until the daemon agrees; ``None`` when it wants the assignment back.

    Raises CannotRunHere where a program needs packages that this machine may not install: nothing is claimed then.
    """
    attempt = 0
    while not talk.cancelled():
        plan = work.plan or _invent(work, talk, task, place, attempt)
        if bench is not None:
            program_python(plan.source, replace(bench, may_install=place.allows([plan.source])))
        seconds = int(limits_of(task)["seconds"])
        proposal = protocol.Proposal(assignment=work.assignment, run=work.run, plan=plan, claim_seconds=seconds)
        if talk.ask(proposal):
            return plan
        attempt += 1
    return None


def _invent(work: protocol.AssignWork, talk: Talk, task: Task, place: Workplace, attempt: int) -> Plan:
    """A change by whoever is to make it. The search takes its place where that fails or is not ready.

    Also where others were faster. Another seed of what leads is run when it is time, whoever makes the changes. So is
    what leads a smaller size of the task.
    """
    made: Plan | str | None = None
    if not attempt and (moved := _moved(work, task, place)):
        return moved
    if not attempt and (thinking := _thinking(work, task, place)):
        if again := _searched(work, task, place, replicate_due):
            return again
        made = place.mind.change(*thinking, patient=work.counted, cancelled=talk.cancelled)
    return made if isinstance(made, Plan) else _search(work, task, place, attempt)


def _moved(work: protocol.AssignWork, task: Task, place: Workplace) -> Plan | None:
    """What leads a smaller size of the task, where it is new in this one."""
    with place.reading() as (log, blobs):
        due = due_from_smaller(log, blobs, task, now_ms(), me=work.author)
        if due is None or work.level < Level.LANDLOCK or not place.allows([due[0]]):
            return None
        program, smaller = due
        start = log.programs.find(task.digest, source_digest(task.baseline.decode()), float(task.budget.amount))
        genome, base = known_genome(log, blobs, task, program, None)
        return plan_as_it_stands(
            task,
            program,
            title=f"what leads {smaller}, with a budget of {task.budget.amount:g}",
            hypothesis=f"What is better in {smaller} may be better with more work too, or not: this run shows it.",
            parent=start.first if start else None,
            genome=genome,
            base=base,
            proposer="search",
            kind="moved",
        )


def _thinking(
    work: protocol.AssignWork, task: Task, place: Workplace, *, beside_run: bool = False
) -> tuple[Hashable, Think] | None:
    """For what a mind is to make a change, and how it does; None where the search makes it."""
    settings, _ = load_settings(place.paths.settings, os.environ)
    proposer = work.proposer or settings.work.proposer
    # Below the wall a change must be this participant's own: a model reads what others wrote.
    if proposer == SEARCH or work.level < Level.LANDLOCK:
        return None
    # A command computes here, which would slow down a run that is held against the clock.
    if beside_run and task.budget.unit == "seconds" and proposer != LLM:
        return None
    scratch = run_folder(place.paths.spool, f"{place.name}-mind")

    def think(unwanted: Callable[[], bool]) -> Plan | str:
        occasion = Occasion(task, settings, proposer, work.author, place.paths.home_local, scratch, unwanted)
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            with place.reading() as (log, blobs):
                return propose_change(log, blobs, occasion, Draws(os.urandom(16)))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    return (task.digest, proposer, settings), think


def _search(work: protocol.AssignWork, task: Task, place: Workplace, attempt: int) -> Plan:
    # Two nodes that know the same and draw alike would try the same.
    worker = f"{work.author.hex()}/{place.name}"
    plan = _searched(work, task, place, partial(propose, worker=worker, counter=attempt))
    assert plan is not None, "the search proposes or says why not"
    return plan


def _searched(
    work: protocol.AssignWork,
    task: Task,
    place: Workplace,
    make: Callable[[SearchProblem, Collection[PastRun], Collection[LiveClaim]], SearchProposal | None],
) -> Plan | None:
    """What the search makes of all that is known."""
    with place.reading() as (log, blobs):
        own = own_keys(log, work.author, now_ms()) if work.level < Level.LANDLOCK else None
        proposal = make(
            *recall(
                log, blobs, task, now_ms(), me=work.author, own=own, may_run=lambda text: bool(place.allows([text]))
            )
        )
    if proposal is None:
        return None
    fields = asdict(proposal)
    source = fields.pop("source")
    del fields["source_digest"], fields["change"]  # these follow from the others
    return plan_as_it_stands(task, source, proposer="search", **fields)


ALIVE_SECONDS = 5.0


class Worker:
    """Takes assignments until it is told to quit; the one in hand is ended first. Without a daemon it ends at once."""

    def __init__(self, link: Link[protocol.FromDaemon], place: Workplace) -> None:
        self._link = link
        self._place = place
        self._talk: Talk | None = None
        self._jobs: queue.SimpleQueue[tuple[protocol.AssignWork, Talk] | None] = queue.SimpleQueue()

    def serve(self) -> None:
        """Work."""
        self._link.send(protocol.Ready(pid=os.getpid(), device=self._place.device))
        for part in (self._hear, self._beat):
            threading.Thread(target=part, daemon=True).start()
        while job := self._jobs.get():
            carry_out(*job, self._place.with_limits_of_now())
        self._place.mind.stop()

    def _hear(self) -> None:
        try:
            for message in self._link:
                if isinstance(message, protocol.AssignWork):
                    self._talk = Talk(message.assignment, self._link.send)
                    self._jobs.put((message, self._talk))
                elif isinstance(message, protocol.Quit):
                    self._jobs.put(None)
                elif self._talk and message.assignment == self._talk.assignment:
                    if isinstance(message, protocol.Cancel):
                        self._talk.stop.set()
                    self._talk.answers.put(isinstance(message, protocol.Approve))
        finally:
            os._exit(1)  # the daemon is gone, or what it says is no message

    def _beat(self) -> None:
        with suppress(LinkEnded):
            while True:
                time.sleep(ALIVE_SECONDS)
                self._link.send(protocol.Alive())


def give_way(nice: int) -> None:
    """Have this process and the runs that it starts give way to other programs; never less than they do already."""
    least = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(least, nice))


def main() -> None:
    """Entry of the process; started by the daemon's pool only, with the worker's name, its device and the link."""
    name, device, text = sys.argv[1:]
    descriptor = keep_link(int(text))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the daemon's to handle
    place = Workplace.from_environment(Paths.from_environment(os.environ), name, device)
    give_way(place.nice)
    for folder in (None, place.paths.task_data):  # of a worker before this one, that was killed
        sweep(folder)
    Worker(Link(descriptor, descriptor, protocol.FromDaemon), place).serve()


if __name__ == "__main__":
    main()
