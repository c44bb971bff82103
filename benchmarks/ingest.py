"""How many records of others a node checks and stores in a second of processor time, and the least that it takes."""

from __future__ import annotations

import hashlib
import random
import tempfile
import time
from pathlib import Path

import psutil
from nacl import bindings

from autoresearch.log.connection import connect, transaction
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.encoding import decode_strictly
from autoresearch.record.kinds import BlobRef, Proposer, Run, task_of_body
from autoresearch.record.record import DEFAULT_NETWORK, Record, Refusal, parse, seal, signed_bytes
from autoresearch.task.model import seed_for
from autoresearch.trust.keys import KeyPair

COMPARED = (
    "the floor: signature, hash, strict decoding and one row of a table with three indexes (x_floor);"
    " the decoder of dag-cbor alone (strict_decodes_per_cpu_second); both on the same records in the same run"
)

BATCH = 1000
START_MS = 1_800_000_000_000


def run_body(chance: random.Random, task: bytes) -> Run:
    """A run as a worker writes it: 1.2 to 1.5 KB when encoded."""

    def blob(size: int) -> BlobRef:
        return BlobRef(sha256=chance.randbytes(32), size=chance.randrange(1, size))

    value, digest = chance.uniform(0.9, 2.5), chance.randbytes(32)
    return Run(
        task=task,
        status="ok",
        value=value,
        metrics={
            "steps": chance.randrange(10_000),
            "tokens": chance.randrange(10**7),
            "flops": chance.uniform(1e10, 1e12),
        },
        curve=[value + 3 / (step + 1) for step in range(24)],
        source=blob(20_000),
        source_digest=digest,
        parent=chance.randbytes(32),
        base=chance.randbytes(32),
        seed=seed_for(task, digest, 0),
        budget=1.5e12,
        genome={
            f"constant_{index}": chance.choice([chance.random(), chance.randrange(4096), True]) for index in range(12)
        },
        title="Wider feed-forward layers with a shorter warm-up",
        hypothesis="The model is limited by width at this budget: " * 2,
        expected=value,
        proposer=Proposer(name="search", version="1"),
        log=blob(60_000),
        checkpoint=blob(4_000_000),
        duration_ms=31_000,
        cpu_ms=60_000,
        peak_memory_bytes=400_000_000,
        sandbox=2,
        device="2 cores",
        environment={"python": "3.11.7", "torch": "2.13.0", "platform": "linux-x86_64"},
    )


def sealed_runs(count: int, *, authors: int = 50, seed: int = 1) -> list[Record]:
    """Signed runs of several authors on one task."""
    chance = random.Random(seed)
    task = hashlib.sha256(b"benchmark").digest()
    keys = [KeyPair.from_seed(chance.randbytes(32)) for _ in range(authors)]
    heads = [b""] * authors
    records = []
    for index in range(count):
        who, seq = index % authors, index // authors + 1
        body = run_body(chance, task)
        record = seal(
            keys[who], DEFAULT_NETWORK, "run", body, seq=seq, prev=heads[who], time_ms=START_MS + index * 1000
        )
        heads[who] = record.id
        records.append(record)
    return records


def measure(*, quick: bool) -> dict[str, float]:
    """Ingest signed runs in batches into a fresh log, and do beside it what no node can leave out.

    ``x_floor`` is the processor time over that of the floor: signature, hash, strict decoding, and one row of a table
    with three indexes. Bytes are those of the file at the end, and those written to the disk meanwhile.
    """
    records = sealed_runs(2_000 if quick else 50_000)
    pairs = [(record.raw, record.signature) for record in records]
    now_ms = START_MS + len(records) * 1000
    spent = floor = 0.0
    process = psutil.Process()
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        with Log.open(path, DEFAULT_NETWORK) as log, Floor(Path(folder) / "floor.sqlite") as least:
            for start in range(0, len(pairs), BATCH):
                batch = pairs[start : start + BATCH]
                began, before = time.process_time(), process.io_counters().write_bytes
                verdicts = log.writer.ingest(batch, now_ms=now_ms)
                spent += time.process_time() - began
                written += process.io_counters().write_bytes - before
                if any(verdict.state is not State.STORED for verdict in verdicts):
                    raise RuntimeError("a record of the benchmark was not stored")
                began = time.process_time()
                least.store(batch)
                floor += time.process_time() - began
        file_bytes = path.stat().st_size  # the last to close it has written all into the one file
    began = time.process_time()
    for raw, _ in pairs[:BATCH]:
        decode_strictly(raw)
    strict = time.process_time() - began
    return {
        "records_per_cpu_second": len(pairs) / spent,
        "x_floor": spent / floor,
        "record_us": spent / len(pairs) * 1e6,
        "floor_us": floor / len(pairs) * 1e6,
        "record_bytes": sum(len(raw) for raw, _ in pairs) / len(pairs),
        "file_bytes_per_record": file_bytes / len(pairs),
        "written_bytes_per_record": written / len(pairs),
        "strict_decodes_per_cpu_second": BATCH / strict,
    }


class Floor:
    """The least that admitting and storing records takes, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.execute(
            "CREATE TABLE record(n INTEGER PRIMARY KEY, id BLOB, author BLOB, seq INTEGER, time INTEGER, kind TEXT,"
            " task BLOB, raw BLOB, signature BLOB)"
        )
        for columns in ("id", "author, seq", "time, id"):
            self._connection.execute(f"CREATE INDEX {columns.replace(', ', '_')} ON record({columns})")

    def __enter__(self) -> Floor:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def store(self, batch: list[tuple[bytes, bytes]]) -> None:
        """Check signatures, decode, and insert one row a record."""
        rows = []
        for raw, signature in batch:
            record = parse(raw, signature)
            if isinstance(record, Refusal):
                raise RuntimeError(record.sentence)
            bindings.crypto_sign_open(signature + signed_bytes(raw), record.author)
            task = task_of_body(record.body)
            rows.append(
                (record.id, record.author, record.seq, record.time, record.kind, task, record.raw, record.signature)
            )
        with transaction(self._connection, durable=False):
            self._connection.executemany("INSERT INTO record VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


if __name__ == "__main__":
    print(measure(quick=True))
