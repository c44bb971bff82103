"""How many records of others a node checks and stores in one second of processor time."""

from __future__ import annotations

import hashlib
import random
import tempfile
import time
from pathlib import Path

from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.encoding import decode_strictly
from autoresearch.record.kinds import BlobRef, Proposer, Run
from autoresearch.record.record import DEFAULT_NETWORK, Record, seal
from autoresearch.trust.keys import KeyPair

COMPARED = "the decoder of dag-cbor alone, on the same records in the same run (strict_decodes_per_cpu_second)"

BATCH = 1000
START_MS = 1_800_000_000_000


def run_body(chance: random.Random, task: bytes) -> Run:
    """A run as a worker writes it: 1.2 to 1.5 KB when encoded."""

    def blob(size: int) -> BlobRef:
        return BlobRef(sha256=chance.randbytes(32), size=chance.randrange(1, size))

    value = chance.uniform(0.9, 2.5)
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
        source_digest=chance.randbytes(32),
        parent=chance.randbytes(32),
        base=chance.randbytes(32),
        seed=chance.randrange(2**63),
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
    """Ingest signed runs in batches into a fresh log, and decode some of them with the slow decoder for comparison."""
    records = sealed_runs(5_000 if quick else 50_000)
    pairs = [(record.raw, record.signature) for record in records]
    now_ms = START_MS + len(records) * 1000
    with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder) / "log.sqlite", DEFAULT_NETWORK) as log:
        began = time.process_time()
        for start in range(0, len(pairs), BATCH):
            verdicts = log.writer.ingest(pairs[start : start + BATCH], now_ms=now_ms)
            if any(verdict.state is not State.STORED for verdict in verdicts):
                raise RuntimeError("a record of the benchmark was not stored")
        spent = time.process_time() - began
    began = time.process_time()
    for raw, _ in pairs[:BATCH]:
        decode_strictly(raw)
    strict = time.process_time() - began
    return {
        "records_per_cpu_second": len(pairs) / spent,
        "record_bytes": sum(len(raw) for raw, _ in pairs) / len(pairs),
        "strict_decodes_per_cpu_second": BATCH / strict,
    }


if __name__ == "__main__":
    print(measure(quick=True))
