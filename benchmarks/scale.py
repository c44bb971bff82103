"""How answers, start and the work after one record grow with the log: 10,000, 100,000 and a million records.

Each size is a log of signed records that were ingested: 40 % runs on three tasks, 40 % claims, 20 % commitments and
verifications, by 100, 300 or 1,000 participants. Nine in ten of these are attested. ``ties`` is an unfavourable log: of
ten runs two have exactly the best value, three repeat one of fifty popular programs, and one changes the baseline
(``mixed``: one of fifty).

A process of its own opens each log and asks. ``first_ms`` is the slowest question to a log just opened, of which each
has its ``…_first_ms``. Three others ask again, each of another run, and the fastest answer counts (``…_ms``).
``runs_ms`` and ``progress_ms`` are the list and the chart of runs. ``settle_us`` is what a run takes that was not
settled when it was stored. ``after_record_ms`` is the slowest of what a daemon asks after one more record;
``proposal_ms`` a worker's, which opens the log for each. All are processor time. ``x_…`` is each over ``floor_ms``: the
50 newest runs of the same log, read and decoded.

The quick version has one log of 1,000 records. ``AUTORESEARCH_SCALE`` names a folder in which logs are kept from one
call to the next, ``AUTORESEARCH_SCALE_MOST`` the largest size.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from autoresearch.ask.lookup import find_task
from autoresearch.ask.people.evidence import credit_answer
from autoresearch.ask.requests import ProgressOf, RunsOf
from autoresearch.ask.runs.boards import best_answer, task_status, top_answer
from autoresearch.ask.runs.diffs import lineage_answer
from autoresearch.ask.runs.progress import progress_answer
from autoresearch.ask.runs.rows import runs_answer
from autoresearch.ask.show import show_answer
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE, commitment_digest
from autoresearch.log.blobs import BlobStore
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import backed, contenders
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import next_job
from autoresearch.propose.mind.recall import recall
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.search import propose
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import Attestation, BlobRef, Body, Claim, Commitment, Identity, Run, Task, Verification
from autoresearch.record.record import DAY_MS, Network, Record, seal
from autoresearch.task.loading import shipped_task
from autoresearch.task.model import seed_for
from autoresearch.task.program import source_digest
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState

COMPARED = "50 runs read and decoded in the same run: x; the same at other sizes: exponents"
# The smallest is for the quick version alone.
QUICK_SIZE = 1_000
PARTICIPANTS = {QUICK_SIZE: 30, 10_000: 100, 100_000: 300, 1_000_000: 1_000}
SHAPES = ("mixed", "ties")
START_MS = 1_800_000_000_000
SPAN_MS = 60 * DAY_MS
BATCH = 2_000
POPULAR = 50
SALT = b"s" * 32
BLOB = BlobRef(sha256=b"s" * 32, size=10)
# All who are attested are drawn at once: a generator that had to draw committees would take days.
# And a tenth of the authors are unattested, whose records would be more than the usual bound.
NETWORK = Network(name="scale", verify_committee=2_000, unattested=1_000_000)
ATTESTOR = KeyPair.from_seed(b"a" * 32)
TRUST = Trust(attestors=frozenset({ATTESTOR.public}), needed=1)


def _device(number: int) -> KeyPair:
    return KeyPair.from_seed(b"d" * 28 + number.to_bytes(4, "big"))


class Generator:
    """Signed records of one size and shape, in the order of their times."""

    def __init__(self, size: int, shape: str) -> None:
        self.size, self.shape, self.now_ms = size, shape, START_MS
        self.devices = [_device(number) for number in range(PARTICIPANTS[size])]
        self._dice = random.Random(f"{size} {shape}")
        self.heads: dict[bytes, Record] = {}
        self._due: list[tuple[int, int, str, int, Record]] = []  # time, tie, stage, verifier, run
        self.runs: dict[bytes, list[Record]] = {}
        self._task = shipped_task()
        definition = self._task.definition()
        self._definitions = [definition, definition | {"name": "second"}, definition | {"name": "third"}]
        self.tasks = [_digest(each) for each in self._definitions]
        self._space = list(space_of(self._task.baseline.decode(), patches_of(self._task)).parameters.values())

    def write(self, who: KeyPair, kind: str, body: Body, links: tuple[bytes, ...] = ()) -> Record:
        """The next record of a key."""
        before = self.heads.get(who.public)
        seq, prev = (before.seq + 1, before.id) if before else (1, b"")
        record = seal(who, NETWORK, kind, body, seq=seq, prev=prev, time_ms=self.now_ms, links=links)
        self.heads[who.public] = record
        return record

    def records(self) -> Iterator[Record]:
        """All of them, about as many as the size says."""
        count = 0
        for record in self._people():
            count += 1
            yield record
        step = SPAN_MS // self.size
        while count < self.size:
            self.now_ms += 2 * DAY_MS if not self.runs else step
            for record in self._next():
                self.now_ms += step
                count += 1
                yield record

    def _people(self) -> Iterator[Record]:
        for number, device in enumerate(self.devices):
            root = KeyPair.from_seed(b"r" * 28 + number.to_bytes(4, "big"))
            delegate = Identity(action="delegate", root=root.public, device=device.public)
            yield self.write(root, "identity", delegate)
            yield self.write(device, "identity", Identity(action="profile", root=root.public, name=f"node {number}"))
            if number % 10:
                tag, end_ms = number.to_bytes(32, "big"), START_MS + 365 * DAY_MS
                said = Attestation(
                    subject=root.public, tag=tag, method="code", domain="big", issued=START_MS, expires=end_ms
                )
                yield self.write(ATTESTOR, "attestation", said)
        for definition in self._definitions:
            digest, name = _digest(definition), str(definition["name"])
            task = Task(digest=digest, name=name, definition=definition, baseline=BLOB, harness={"prepare.py": BLOB})
            yield self.write(self.devices[1], "task", task)

    def _next(self) -> Iterator[Record]:
        """What is published next: a verification that is due, else a claim and its run."""
        if self._due and self._due[0][0] <= self.now_ms:
            _, _, stage, verifier, run = heapq.heappop(self._due)
            yield from self.verify(self.devices[verifier], run, stage)
            return
        dice = self._dice
        who = min(dice.randrange(len(self.devices)), dice.randrange(len(self.devices)))  # some work more than others
        for record in self.run(self.devices[who]):
            yield record
            if record.kind == "run":
                self._expect(record, who)

    def run(self, who: KeyPair) -> Iterator[Record]:
        """A claim and the run that follows it."""
        dice = self._dice
        task = dice.choices(self.tasks, (7, 2, 1))[0]
        there = self.runs.setdefault(task, [])
        genome = anywhere(self._space, Draws(dice.randbytes(8)))
        digest, replicate = dice.randbytes(32), 0
        if not there:
            digest, genome = source_digest(self._task.baseline.decode()), {}
        elif self.shape == "ties" and dice.random() < 0.3:
            digest, replicate = bytes(31) + bytes([dice.randrange(POPULAR)]), dice.randrange(3)
        elif dice.random() < 0.05:
            found = dice.choice(there[-200:]).body
            assert isinstance(found, Run)
            digest, genome, replicate = found.source_digest, found.genome, dice.randrange(1, 4)
        yield self.write(
            who,
            "claim",
            Claim(
                task=task,
                source_digest=digest,
                replicate=replicate,
                genome=genome,
                title="Wider layers, shorter warm-up",
                until=self.now_ms + 600_000,
            ),
        )
        first = 0.02 if self.shape == "mixed" else 0.1
        parent = (there[0] if dice.random() < first else dice.choice(there[-200:])) if there else None
        others = [run.id for run in there[-4:] if parent and run.id != parent.id]
        status = "ok" if not there or dice.random() < 0.9 else "crashed"
        value = 0.9 + 1.2 * math.sqrt(dice.random())
        if not there:
            value = 2.057
        elif self.shape == "ties" and dice.random() < 0.2:
            value = 0.9
        checkpoint = BlobRef(sha256=dice.randbytes(32), size=9000) if status == "ok" else None
        body = Run(
            task=task,
            status=status,
            value=value if status == "ok" else None,
            metrics={"steps": 1000},
            source=BlobRef(sha256=dice.randbytes(32), size=9000),
            source_digest=digest,
            replicate=replicate,
            parent=parent.id if parent else None,
            seed=seed_for(task, digest, replicate),
            budget=self._task.budget.amount,
            genome=genome,
            title="Wider layers, shorter warm-up",
            checkpoint=checkpoint,
            cpu_ms=20_000,
            duration_ms=20_000,
        )
        links = (parent.id, *others) if parent else ()
        run = self.write(who, "run", body, links)
        if status == "ok":
            there.append(run)
            if len(there) > 1_000:
                del there[1:500]
        yield run

    def _expect(self, run: Record, author: int) -> None:
        """Verifications of one run in twenty, good ones: three evaluations four hours later, then two pairs."""
        body = run.body
        assert isinstance(body, Run)
        if body.value is None or body.parent is None or body.value > 1.2 or self._dice.random() > 0.9:
            return
        others = [number for number in range(1, len(self.devices)) if number % 10 and number != author]
        drawn = self._dice.sample(others, 3)
        stages = [*((EVALUATE, who) for who in drawn), *((REPLICATE, who) for who in drawn[:2])]
        for at, (stage, verifier) in enumerate(stages):
            due_ms = self.now_ms + (4 + at) * 3_600_000
            heapq.heappush(self._due, (due_ms, self.heads[run.author].seq, stage, verifier, run))

    def verify(self, who: KeyPair, run: Record, stage: str) -> Iterator[Record]:
        """A commitment and the verification that opens it."""
        body = run.body
        assert isinstance(body, Run)
        assert body.value is not None
        proof = ecvrf.prove(bytes(who.key), question(run.id, stage, 0))
        check = Verification(run=run.id, stage=stage, verdict="pass", value=body.value, proof=proof)
        if stage == REPLICATE:
            drawn, value = seeds(ecvrf.output(proof), 2), body.value
            check = msgspec.structs.replace(
                check, value=None, seeds=drawn, values=[value, value], parent_values=[value + 0.1, value + 0.12]
            )
        digest = commitment_digest(who.public, SALT, msgspec.to_builtins(check, builtin_types=(bytes,)))
        fixed = Commitment(run=run.id, stage=stage, round=0, proof=proof, digest=digest)
        commitment = self.write(who, "commitment", fixed)
        yield commitment
        check = msgspec.structs.replace(check, salt=SALT)
        yield self.write(who, "verification", check, (run.id, commitment.id))


def _digest(definition: dict[str, object]) -> bytes:
    return hashlib.sha256(encode(definition)).digest()


def _write(pipe: Connection, size: int, shape: str) -> None:
    """Send the signed records of a log in batches, each with the time that it ends at; then None."""
    generator = Generator(size, shape)
    records = generator.records()
    while batch := [(record.raw, record.signature) for record in islice(records, BATCH)]:
        pipe.send((batch, generator.now_ms))
    pipe.send(None)


def _made(folder: Path, size: int, shape: str) -> tuple[Path, dict[str, float]]:
    """The log of a size and shape, made unless it is there; records a second taken in, microseconds to settle a run."""
    place = folder / f"{shape}-{size}"
    said = place / "ingest.json"
    if not said.exists():
        place.mkdir(parents=True, exist_ok=True)
        spent, count, end_ms = 0.0, 0, 0
        batches, sender = multiprocessing.Pipe(duplex=False)
        # The next batch is signed in another process while this one is taken in.
        writer = multiprocessing.Process(target=_write, args=(sender, size, shape))
        writer.start()
        sender.close()
        with Log.open(place / "log.sqlite", NETWORK, trust=TRUST) as log:
            while batch := batches.recv():
                records, end_ms = batch
                began = time.process_time()
                log.writer.ingest(records, now_ms=START_MS + 2 * SPAN_MS)
                spent += time.process_time() - began
                count += len(records)
            kept = log.records.count()
            left, began = log.todo.count(), time.process_time()
            settle(log, seconds=math.inf)
            settled = time.process_time() - began
        assert kept == count, f"{count - kept} of {count} records were not kept"
        rates = {"ingest_per_s": count / spent, "settle_us": 1e6 * settled / max(left, 1)}
        said.write_text(json.dumps(rates | {"end_ms": end_ms}))
    told = json.loads(said.read_text())
    return place, {name: float(told[name]) for name in ("ingest_per_s", "settle_us")}


def ask(place: Path, size: int) -> dict[str, float]:
    """Open a log and ask; in a process of its own, whose memory it tells."""
    end_ms = json.loads((place / "ingest.json").read_text())["end_ms"] + DAY_MS
    me = _device(1)
    began = time.process_time()
    with Log.open(place / "log.sqlite", NETWORK, trust=TRUST) as log:
        for row in log.tasks.all():  # a daemon looks at start which runs lead
            next(backed(log, row.digest, trust_context(log), RunState.CONFIRMED), None)
        figures = {"start_s": time.process_time() - began}
        task = find_task(log, shipped_task().name, author=me.public)
        newest = [stored.record.id for stored in log.runs.newest(task.digest, limit=4)]
        figures["floor_ms"] = min(_took(log, lambda log: log.runs.newest(task.digest, limit=50)) for _ in range(3))
    blobs = BlobStore(place / "blobs", read_only=True)

    def questions(run: bytes, who: bytes) -> dict[str, Callable[[Log], object]]:
        return {
            "status": lambda log: task_status(log, task, author=who),
            "best": lambda log: best_answer(log, task, author=who),
            "top": lambda log: top_answer(log, task, limit=50, author=who),
            "show": lambda log: show_answer(log, run),
            "lineage": lambda log: lineage_answer(log, run),
            "runs": lambda log: runs_answer(log, blobs, task, RunsOf()),
            "progress": lambda log: progress_answer(log, blobs, task, ProgressOf()),
            "credit": lambda log: credit_answer(log, None, author=who),
        }

    # Each time somebody else asks, and of another run: no answer is that of the question before.
    first, *others = [questions(run, _device(1 + number).public) for number, run in enumerate(newest)]
    for name, question_ in first.items():
        with Log.open(place / "log.sqlite", NETWORK, trust=TRUST, read_only=True) as log:
            figures[f"{name}_first_ms"] = _took(log, question_)
            figures[f"{name}_ms"] = min(_took(log, other[name]) for other in others)
    blobs.close()
    figures["first_ms"] = max(figures[f"{name}_first_ms"] for name in first)
    figures["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["proposal_ms"] = _proposal(place, me, end_ms)
    figures["after_record_ms"] = _after(place, size, me, task.digest, end_ms)
    return figures


def _took(log: Log, question_: Callable[[Log], object]) -> float:
    began = time.process_time()
    question_(log)
    return 1000 * (time.process_time() - began)


def _proposal(place: Path, me: KeyPair, now_ms: int) -> float:
    """A worker's search for what to try next."""
    task = shipped_task()

    def search(log: Log) -> object:
        with BlobStore(place / "blobs", read_only=True) as blobs:
            problem, runs, claims = recall(log, blobs, task, now_ms, me=me.public)
        return propose(problem, runs, claims, worker="benchmark", counter=1)

    with Log.open(place / "log.sqlite", NETWORK, trust=TRUST, read_only=True) as log:
        return _took(log, search)


def _after(place: Path, size: int, me: KeyPair, task: bytes, now_ms: int) -> float:
    """What the daemon asks after one more record: a claim, a run, a commitment and a verification of it."""

    def asked(log: Log) -> object:
        here = trust_context(log, me.public)
        return (
            next_job(log, task, me.public, bytes(me.key), now_ms),
            contenders(log, task, here, limit=10),
            task_status(log, found, author=me.public),
        )

    generator, slowest = Generator(size, str(time.time_ns())), 0.0
    with Log.open(place / "log.sqlite", NETWORK, trust=TRUST) as log:
        found = find_task(log, shipped_task().name, author=me.public)
        generator.tasks = [task] * 3
        generator.runs[task] = [stored.record for stored in log.runs.newest(task, limit=3)]
        author, verifier = _device(2), _device(3)
        for who in (author, verifier):
            head = log.devices.head(who.public)
            assert head
            generator.heads[who.public] = log.records.get(head.id)
        asked(log)
        generator.now_ms = now_ms
        records = list(generator.run(author))
        body = records[-1].body
        assert isinstance(body, Run)
        if body.value is not None:
            records += generator.verify(verifier, records[-1], EVALUATE)
        for record in records:
            log.writer.ingest([(record.raw, record.signature)], now_ms=now_ms + SPAN_MS)
            settle(log, seconds=math.inf)
            slowest = max(slowest, _took(log, asked))
    return slowest


def measure(*, quick: bool) -> dict[str, float]:
    """The figures by shape and size."""
    most = int(os.environ.get("AUTORESEARCH_SCALE_MOST", "1000000"))
    sizes = [QUICK_SIZE] if quick else [size for size in PARTICIPANTS if QUICK_SIZE < size <= most]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("AUTORESEARCH_SCALE") or made)
        for shape in SHAPES:
            before: dict[str, float] = {}
            for size in sizes:
                place, rates = _made(folder, size, shape)
                command = [sys.executable, "-m", "benchmarks.scale", str(place), str(size)]
                asked: dict[str, float] = json.loads(subprocess.check_output(command))
                figures |= {f"{shape}_{size}_{name}": value for name, value in (asked | rates).items()}
                for name, value in asked.items():
                    if name.endswith("_ms"):
                        figures[f"x_{shape}_{size}_{name.removesuffix('_ms')}"] = value / asked["floor_ms"]
                    if before:
                        growth = math.log10(max(value, 1e-3) / max(before[name], 1e-3))
                        figures[f"exponent_{shape}_{size}_{name.rsplit('_', 1)[0]}"] = growth
                before = asked
    return figures


if __name__ == "__main__":
    print(json.dumps(ask(Path(sys.argv[1]), int(sys.argv[2]))))
