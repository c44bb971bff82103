"""A whole node of the simulator without sockets and processes: notebook, state machine, verification, workers in time.

Its workers measure what the world says a program is worth. A cheater publishes better values than that; a slanderer
reports that others' runs are worse.
"""

import math

import msgspec
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import (
    Announce,
    Approve,
    Assign,
    Cancel,
    Decline,
    Overtake,
    Verify,
    WantWorkers,
    WithdrawClaim,
)
from autoresearch_daemon.service.inputs import (
    Dropped,
    Finished,
    JobReady,
    Outrun,
    Proposed,
    Settled,
    Tick,
    VerificationsChanged,
    WorkAsked,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.verification.queue import VerificationQueue
from autoresearch_daemon.verification.reveals import Reveals

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import RunInHand
from autoresearch.errors import NotFound
from autoresearch.judging.states import REPLICATE
from autoresearch.paths import Paths
from autoresearch.record.kinds import Claim, Commitment, RunOutcome, Verification
from autoresearch.run.checking import Verified
from autoresearch.run.experiment import abandoned, plan_as_it_stands
from autoresearch.trust.keys import write_key
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.words import RunStatus
from tests.record.making import key

RUN_MS, CHECK_MS, CLAIM_SECONDS = 900_000, 180_000, 3600
PROGRAMS = 200
GAIN = 0.2


class Participant:
    """``world`` schedules what its workers do, ``chance`` is its only randomness."""

    def __init__(self, world, number, folder, *, cheats=False, slanders=False):
        self.world, self.number = world, number
        self.chance, self.skew_ms = world.chance_of(number), world.skew_ms(number)
        self.cheats, self.slanders = cheats, slanders
        self.paths = Paths.from_environment({"AUTORESEARCH_HOME": str(folder)})
        self.paths.create()
        self.root, device = key(300 + number), key(200 + number)
        write_key(self.paths.keys / "root.key", self.root)
        write_key(self.paths.keys / "device.key", device)
        save_manifest(self.paths.manifest, NetworkManifest(world.network, trust=world.trust))
        self.published, self.plans, self.begun, self.attempts, self.claims = [], {}, {}, {}, {}
        self._open()

    def _open(self):
        self.notebook = Notebook(self.paths)
        self.notebook.announce = lambda record: self.world.announce(self, (record.raw, record.signature))
        self.local = LocalState(self.paths.local)
        self.jobs = VerificationQueue(self.notebook, self, self._fetch)
        self.reveals = Reveals(self.notebook, self.local, draw=self.chance.randbytes)
        self.machine = NodeService(workers_wanted=1)
        self.life = self.world.next_number()

    def close(self):
        self.local.close()
        self.notebook.close()

    def crash(self):
        """Everything that only the process knew is gone; what was asked is asked again."""
        claimed = [self.plans[assignment] for assignment in self.claims]
        self.close()
        for memory in (self.plans, self.begun, self.attempts, self.claims):
            memory.clear()
        self._open()
        for plan in claimed:
            self.notebook.publish_run(plan, abandoned("the daemon ended while it was in hand"), self.now_ms)
        self.work()

    @property
    def log(self):
        return self.notebook.log

    @property
    def now_ms(self):
        return self.world.now_ms + self.skew_ms

    def work(self):
        """Search, and verify others' runs for half of the time."""
        self.take(WorkAsked(Order(verify_share=0.5)))

    # --- the machine ---

    def take(self, event):
        for effect in self.machine.handle(event, self.now_ms):
            self._act(effect)

    def later(self, after_ms, event):
        """An event of this life of the node."""
        life = self.life
        self.world.later(after_ms, lambda: self.take(event()) if self.life == life else None)

    def _act(self, effect):
        match effect:
            case WantWorkers(count):
                if count and "w1" not in self.machine.workers:
                    self.take(WorkerReady("w1", "cpu"))
            case Assign(worker, assignment):
                if assignment.job:
                    check = self.jobs.check(assignment.job)
                    self.later(self._checking_ms(check), lambda: self._verified(worker, assignment, check))
                else:
                    self.later(self._thinking_ms(), lambda: self._proposed(worker, assignment.name, 0))
            case Decline(worker, assignment):
                attempt = self.attempts[assignment] + 1
                self.later(1000, lambda: self._proposed(worker, assignment, attempt))
            case Announce() | Approve() | WithdrawClaim():
                self._act_on_claim(effect)
            case Cancel(worker, assignment) | Overtake(worker, assignment):
                if (plan := self.begun.pop(assignment, None)) is not None:
                    del self.claims[assignment]
                    self.notebook.publish_run(plan, abandoned("cancelled"), self.now_ms)
                    self.later(0, lambda: Finished(worker, counted=False))
                else:
                    self.later(0, lambda: Dropped(worker))
            case Verify(tasks, ready):
                self._look(tasks, ready)
            case _:
                return

    def _act_on_claim(self, effect):
        match effect:
            case Announce(worker, assignment, key_of, settle_ms):
                self._claim(assignment)
                self.later(settle_ms, lambda: Settled(worker, key_of))
            case Approve(worker, assignment):
                if assignment not in self.claims:
                    self._claim(assignment)
                self.begun[assignment] = self.plans[assignment]
                self.later(self._running_ms(), lambda: self._ran(worker, assignment))
            case WithdrawClaim(assignment):
                self.notebook.withdraw(self.claims.pop(assignment), self.now_ms)

    def _claim(self, assignment):
        plan = self.plans[assignment]
        self.notebook.publish_task(self.world.task, self.now_ms)
        self.claims[assignment] = self.notebook.publish_claim(plan, self.now_ms, seconds=CLAIM_SECONDS)

    def _thinking_ms(self):
        return 1000

    def _running_ms(self):
        return self.chance.randrange(RUN_MS, 2 * RUN_MS)

    def _checking_ms(self, check):
        return CHECK_MS

    def _invent(self, attempt):
        number = self.chance.randrange(PROGRAMS)
        leading = self.world.best_of(self)
        source = self.world.program(number)
        return plan_as_it_stands(self.world.task, source, title=f"program {number}", parent=leading)

    def _proposed(self, worker, assignment, attempt):
        self.attempts[assignment] = attempt
        plan = self.plans[assignment] = self._invent(attempt)
        taken = self.notebook.is_tried_elsewhere(plan, self.now_ms)
        key_of = (plan.task, plan.source_digest, plan.replicate)
        has_peers = bool(self.world.reachable(self))
        return Proposed(worker, assignment, key_of, RunInHand(title=plan.title), taken, has_peers)

    def _ran(self, worker, assignment):
        plan = self.begun.pop(assignment, None)
        if plan is None:
            return Tick()
        del self.claims[assignment]
        value = self.world.value(plan.source_digest) - (GAIN if self.cheats else 0)
        self.notebook.publish_run(plan, measurement(value, plan), self.now_ms)
        return Finished(worker)

    # --- verification ---

    def _look(self, tasks, ready):
        in_hand = self.machine.status().jobs
        if ready is not None and not self.world.wait(self.jobs.is_next(ready, self.now_ms, in_hand=in_hand)):
            self.jobs.put_back(ready, self.now_ms)
            self.take(JobReady(None))
        if tasks is not None:
            job = self.world.wait(self.jobs.find(self.world.task_digest, self.now_ms, in_hand=in_hand))
            if job is not None:
                self.take(JobReady(*job))
        self.reveals.work(self.now_ms)

    def _verified(self, worker, assignment, check):
        body = self.jobs.measured(assignment.job, self._measured(check))
        self.reveals.add(assignment.name, body)
        self.reveals.work(self.now_ms)
        return Finished(worker, counted=False)

    def _measured(self, check):
        worse = GAIN if self.slanders else 0
        value = self.world.value(check.source_digest) + worse
        verified = Verified(verdict="pass", device="cpu", duration_ms=CHECK_MS)
        if check.stage != REPLICATE:
            return msgspec.structs.replace(verified, value=value)
        parent = self.log.records.get(self.log.records.get(check.run).body.parent).body
        above = self.world.value(parent.source_digest)
        noise = [seed % 1000 * 1e-7 for seed in check.seeds]
        return msgspec.structs.replace(
            verified,
            values=[value + deviation for deviation in noise],
            parent_values=[above - deviation for deviation in noise],
        )

    async def run(self, work):
        """What takes long about the log is done at once here."""
        return work(self.log)

    async def _fetch(self, blob):
        if self.notebook.blobs.has(blob.sha256):
            return
        for other in self.world.reachable(self):
            if other.notebook.blobs.has(blob.sha256):
                self.notebook.blobs.put(other.notebook.blobs.get(blob.sha256))
                return
        raise NotFound("nobody has it")

    # --- others ---

    def hear(self, pairs, now_ms):
        """Records of others, as they come: what is stored is acted upon."""
        verdicts = self.log.writer.ingest(pairs, now_ms=now_ms + self.skew_ms)
        records = [verdict.record for verdict in verdicts if verdict.state.name == "STORED"]
        if any(isinstance(record.body, Commitment | Verification) for record in records):
            self.later(0, VerificationsChanged)
        for record in records:
            if isinstance(record.body, Claim):
                claim = record.body
                place = (claim.task, claim.source_digest, claim.replicate)
                if self.machine.status().is_running(place) and self.notebook.is_outrun(record, self.now_ms):
                    self.take(Outrun(place))
        return [(record.time, record.id) for record in records]


def measurement(value, plan):
    assert math.isfinite(value)
    return RunOutcome(
        status=RunStatus.OK,
        value=value,
        curve=[value],
        duration_ms=RUN_MS,
        cpu_ms=RUN_MS,
        peak_memory_bytes=1 << 20,
        sandbox=2,
        device="cpu",
    )
