"""How long it takes to say how far others stand behind runs: 10,000 runs, 1,000 verifications with their commitments.

Nine participants; the 200 best runs have three evaluations and two replications each. ``first`` is the first question
to a log that was just opened, as every command asks it; ``again`` the same question once more; ``after`` the question
after one more verification came in, as a daemon asks it.

``crowd`` and ``flooded``: 10,000 runs of a hundred participants that nobody verified, before and after 5,000 runs of
keys made for it, half of them repetitions of the best programs under earlier times, half programs that claim to be
better than all; ``after`` one more of these. Processor time.

``linked``: the same crowd, every run links the eight before it, and each of the 200 best programs was published by two
participants, the second under an earlier time; ``after`` one more run that links eight.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE, commitment_digest
from autoresearch.log.log import Log
from autoresearch.log.projection import MENTIONS_MOST
from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.participants import track_records
from autoresearch.log.standing.queries import board
from autoresearch.record.kinds import BlobRef, Body, Commitment, Identity, Run, Task, Verification
from autoresearch.record.record import Network, Record, seal
from autoresearch.task.model import seed_for
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from benchmarks.queries import DEFINITION, TASK

COMPARED = "the same before standings were kept between questions; figures in benchmarks/README.md"
RUNS = {True: 1_000, False: 10_000}
VERIFIED = {True: 40, False: 200}
PEOPLE = 9
CROWD = 100
FLOOD = {True: 500, False: 5_000}
NOW_MS = 1_800_000_000_000
NETWORK = Network(name="standing")
BLOB = BlobRef(sha256=b"s" * 32, size=10)
SALT = b"s" * 32


class Writer:
    """Seals records of several authors, each with its own chain, a second apart."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self._heads: dict[bytes, Record] = {}

    def write(self, who: KeyPair, kind: str, body: Body, links: tuple[bytes, ...] = ()) -> Record:
        """The next record."""
        self.now_ms += 1000
        before = self._heads.get(who.public)
        record = seal(
            who,
            NETWORK,
            kind,
            body,
            seq=before.seq + 1 if before else 1,
            prev=before.id if before else b"",
            time_ms=self.now_ms,
            links=links,
        )
        self._heads[who.public] = record
        return record

    def verify(self, who: KeyPair, body: Verification) -> Iterator[Record]:
        """A commitment and the verification that opens it."""
        digest = commitment_digest(who.public, SALT, msgspec.to_builtins(body, builtin_types=(bytes,)))
        fixed = Commitment(run=body.run, stage=body.stage, round=body.round, proof=body.proof, digest=digest)
        commitment = self.write(who, "commitment", fixed)
        yield commitment
        yield self.write(who, "verification", msgspec.structs.replace(body, salt=SALT), (body.run, commitment.id))


def measure(*, quick: bool) -> dict[str, float]:
    """Milliseconds of processor time for the board, the best, the next job and everybody's track record."""
    people = [KeyPair.from_seed(bytes([1]) * 31 + bytes([number])) for number in range(PEOPLE)]
    roots = [KeyPair.from_seed(bytes([2]) * 31 + bytes([number])) for number in range(PEOPLE)]
    trust = Trust(participants=frozenset(root.public for root in roots))
    writer = Writer()
    records, more = _records(writer, people, roots, quick=quick)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        figures = {"records": float(len(records)), "ingest_ms": _ingest(path, trust, writer, records)}
        figures |= _asked(path, trust, writer, people[-1], more)
    return figures | _flooded(quick=quick) | _linked(quick=quick)


def _asked(
    path: Path, trust: Trust, writer: Writer, me: KeyPair, more: list[list[Record]], *, before: str = ""
) -> dict[str, float]:
    """Milliseconds for each question, at first, again, and after some of ``more`` came in, a part for each question."""

    def top(log: Log) -> object:
        return board(log, TASK, trust_context(log, me.public), limit=20)

    def best(log: Log) -> object:
        return preferred(log, TASK, trust_context(log, me.public))

    def job(log: Log) -> object:
        return next_job(log, TASK, me.public, bytes(me.key), writer.now_ms)

    questions: dict[str, Callable[[Log], object]] = {"top": top, "best": best, "job": job, "track": track_records}
    figures = {}
    for (name, ask), news in zip(questions.items(), more, strict=False):
        with Log.open(path, NETWORK, trust=trust) as log:
            figures[f"{before}{name}_first_ms"] = _took(log, ask)
            figures[f"{before}{name}_again_ms"] = _took(log, ask)
            for record in news:
                log.writer.ingest([(record.raw, record.signature)], now_ms=writer.now_ms)
            figures[f"{before}{name}_after_ms"] = _took(log, ask)
    return figures


def _flooded(*, quick: bool) -> dict[str, float]:
    """The same questions among many participants, before and after a flood."""
    people = [KeyPair.from_seed(bytes([3]) * 31 + bytes([number])) for number in range(CROWD)]
    strangers = [KeyPair.from_seed(bytes([4]) * 30 + number.to_bytes(2, "big")) for number in range(FLOOD[quick] // 10)]
    trust = Trust(participants=frozenset(who.public for who in people))
    writer, dice = Writer(), random.Random(2)
    values = [dice.uniform(0.8, 1.2) for _ in range(RUNS[quick])]
    best = sorted(range(len(values)), key=lambda number: values[number])
    task = Task(digest=TASK, name="grammar", definition=DEFINITION, baseline=BLOB, harness={"prepare.py": BLOB})
    false = [
        writer.write(
            strangers[number % len(strangers)],
            "run",
            _run(best[number // 20], 9.0, None) if number % 2 else _run(len(values) + number, 0.1, None),
        )
        for number in range(FLOOD[quick] + 6)
    ]
    records = [writer.write(people[0], "task", task)]
    records += [writer.write(people[at % CROWD], "run", _run(at, value, None)) for at, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        _ingest(path, trust, writer, records)
        figures = _asked(path, trust, writer, people[-1], [[one] for one in false[:3]], before="crowd_")
        _ingest(path, trust, writer, false[6:])
        return figures | _asked(path, trust, writer, people[-1], [[one] for one in false[3:6]], before="flooded_")


def _linked(*, quick: bool) -> dict[str, float]:
    """The same questions where runs link others, and participants dispute who was first."""
    people = [KeyPair.from_seed(bytes([3]) * 31 + bytes([number])) for number in range(CROWD)]
    trust = Trust(participants=frozenset(who.public for who in people))
    writer, dice = Writer(), random.Random(3)
    values = [dice.uniform(0.8, 1.2) for _ in range(RUNS[quick])]
    contested = set(sorted(range(len(values)), key=lambda number: values[number])[: VERIFIED[quick]])
    task = Task(digest=TASK, name="grammar", definition=DEFINITION, baseline=BLOB, harness={"prepare.py": BLOB})
    records, runs = [writer.write(people[0], "task", task)], list[Record]()
    for number, value in enumerate([*values, *[1.0] * 4]):
        links = tuple(run.id for run in runs[-MENTIONS_MOST:])
        runs.append(writer.write(people[number % CROWD], "run", _run(number, value, None), links))
        if number in contested:
            writer.now_ms -= 500_000
            records.append(writer.write(people[(number + 50) % CROWD], "run", _run(number, value, None)))
            writer.now_ms += 500_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        took = _ingest(path, trust, writer, records + runs[:-4])
        later = [[run] for run in runs[-4:]]
        return {"linked_ingest_ms": took} | _asked(path, trust, writer, people[-1], later, before="linked_")


def _ingest(path: Path, trust: Trust, writer: Writer, records: list[Record]) -> float:
    """Store all records; returns how many milliseconds it took."""
    with Log.open(path, NETWORK, trust=trust) as log:
        began = time.process_time()
        for start in range(0, len(records), 1000):
            log.writer.ingest([(r.raw, r.signature) for r in records[start : start + 1000]], now_ms=writer.now_ms)
        return 1000 * (time.process_time() - began)


def _took(log: Log, ask: Callable[[Log], object]) -> float:
    began = time.process_time()
    ask(log)
    return 1000 * (time.process_time() - began)


def _records(
    writer: Writer, people: list[KeyPair], roots: list[KeyPair], *, quick: bool
) -> tuple[list[Record], list[list[Record]]]:
    """All records, and four verifications that come later."""
    records: list[Record] = []
    for device, root in zip(people, roots, strict=True):
        says = Identity(action="delegate", root=root.public, device=device.public)
        records.append(writer.write(root, "identity", says))
        records.append(writer.write(device, "identity", Identity(action="profile", root=root.public)))
    task = Task(digest=TASK, name="grammar", definition=DEFINITION, baseline=BLOB, harness={"prepare.py": BLOB})
    records.append(writer.write(people[0], "task", task))
    dice = random.Random(1)
    values = sorted(dice.uniform(0.8, 1.2) for _ in range(RUNS[quick]))
    runs: list[Record] = []
    parent: Record | None = None
    for number in dice.sample(range(len(values)), len(values)):
        runs.append(writer.write(people[number % PEOPLE], "run", _run(number, values[number], parent)))
        parent = parent or runs[0]
    best = sorted(runs, key=lambda record: record.body.value)[: VERIFIED[quick] + 4]  # type: ignore[union-attr]
    for run in best[:-4]:
        records += _verified(writer, run, people)
    return runs[:1] + records + runs[1:], [_verified(writer, run, people)[:2] for run in best[-4:]]


def _run(number: int, value: float, parent: Record | None) -> Run:
    digest = number.to_bytes(32, "big")
    return Run(
        task=TASK,
        status="ok",
        value=value,
        source=BLOB,
        source_digest=digest,
        seed=seed_for(TASK, digest, 0),
        budget=1e12,
        parent=parent.id if parent else None,
        title=f"run {number}",
    )


def _verified(writer: Writer, run: Record, people: list[KeyPair]) -> list[Record]:
    """Three evaluations and two replications by others."""
    body = run.body
    assert isinstance(body, Run)
    assert body.value is not None
    others = [who for who in people if who.public != run.author]
    records: list[Record] = []
    for who in others[:3]:
        proof = ecvrf.prove(bytes(who.key), question(run.id, EVALUATE, 0))
        check = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=body.value, proof=proof)
        records += writer.verify(who, check)
    for who in others[:2]:
        proof = ecvrf.prove(bytes(who.key), question(run.id, REPLICATE, 0))
        check = Verification(
            run=run.id,
            stage=REPLICATE,
            verdict="pass",
            proof=proof,
            seeds=seeds(ecvrf.output(proof), 2),
            values=[body.value, body.value],
            parent_values=[1.5, 1.5],
        )
        records += writer.verify(who, check)
    return records
