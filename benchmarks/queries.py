"""How fast a large log answers: the best of a task, the newest records, one record, the whole of what sync needs."""

from __future__ import annotations

import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from autoresearch.log.connection import transaction
from autoresearch.log.derive.storing import store
from autoresearch.log.log import Log
from autoresearch.log.standing.queries import leaderboard
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import BlobRef, Run, Task
from autoresearch.record.record import DEFAULT_NETWORK, Record, seal

COMPARED = "the same question without an index, in the same file and run (best_without_index_us)"

BATCH = 5_000
AUTHORS = 200
START_MS = 1_800_000_000_000
DEFINITION: dict[str, object] = {
    "name": "benchmark",
    "metric": {"name": "loss", "direction": "minimize", "noise": 0.02},
    "budget": {"unit": "work", "amount": 1e12},
}
TASK = hashlib.sha256(encode(DEFINITION)).digest()
_UNINDEXED = """
SELECT id FROM run NOT INDEXED WHERE task = ? AND status = 'ok' AND budget = 1e12 ORDER BY value, time, id LIMIT 1
"""


class _Unsigned:
    """Names an author and signs nothing: rows for measuring queries need no valid signature."""

    def __init__(self, public: bytes) -> None:
        self.public = public

    def sign(self, message: bytes) -> bytes:
        return bytes(64 + 0 * len(message))


def _record(index: int, chance: random.Random, author: _Unsigned) -> Record:
    blob = BlobRef(sha256=chance.randbytes(32), size=9000)
    body = Run(
        task=TASK,
        status="ok" if index % 10 else "crashed",
        value=chance.uniform(0.9, 2.5) if index % 10 else None,
        metrics={"steps": index, "tokens": index * 100},
        curve=[chance.random() for _ in range(16)],
        source=blob,
        source_digest=chance.randbytes(32),
        parent=chance.randbytes(32),
        seed=chance.randrange(2**63),
        budget=1e12,
        genome={f"constant_{number}": chance.random() for number in range(12)},
        title="Wider feed-forward layers with a shorter warm-up",
        hypothesis="The model is limited by width at this budget: " * 4,
        log=blob,
    )
    seq = index // AUTHORS + 1
    prev = b"" if seq == 1 else chance.randbytes(32)
    return seal(author, DEFAULT_NETWORK, "run", body, seq=seq, prev=prev, time_ms=START_MS + index * 1000)


def fill(log: Log, rows: int, *, seed: int = 1) -> list[bytes]:
    """Store unsigned runs by the same way as admitted ones, but past admission. Returns some of their ids."""
    chance = random.Random(seed)
    authors = [_Unsigned(chance.randbytes(32)) for _ in range(AUTHORS)]
    blob = BlobRef(sha256=bytes(32), size=1)
    task = Task(digest=TASK, name="benchmark", definition=DEFINITION, baseline=blob, harness={})
    publisher = _Unsigned(chance.randbytes(32))
    records = [seal(publisher, DEFAULT_NETWORK, "task", task, seq=1, prev=b"", time_ms=START_MS)]
    ids = []
    for start in range(0, rows, BATCH):
        records += [
            _record(index, chance, authors[index % AUTHORS]) for index in range(start, min(start + BATCH, rows))
        ]
        with transaction(log.reader.connection, durable=False):
            store(log.reader.connection, DEFAULT_NETWORK, records)
        ids += [record.id for record in records[:: BATCH // 20]]
        records = []
    return ids


def _p50_us(question: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        question()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6


def measure(*, quick: bool) -> dict[str, float]:
    """Fill a log with runs, 2,000 when quick and a million otherwise, and ask."""
    rows, times = (2_000, 100) if quick else (1_000_000, 500)
    with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder) / "log.sqlite", DEFAULT_NETWORK) as log:
        began = time.process_time()
        ids = fill(log, rows)
        filled = time.process_time() - began
        chance = random.Random(2)
        began = time.perf_counter()
        keys = sum(1 for _ in log.records.iter_keys())
        keys_s = time.perf_counter() - began
        return {
            "rows": float(log.records.count()),
            "best_p50_us": _p50_us(lambda: leaderboard(log, TASK, limit=1), 4 * times),
            "best_row_p50_us": _p50_us(lambda: log.programs.ranked(TASK, limit=1), 4 * times),
            "log_p50_us": _p50_us(lambda: log.records.newest(limit=50), times),
            "log_of_task_p50_us": _p50_us(lambda: log.records.newest(kind="run", task=TASK, limit=50), times),
            "record_p50_us": _p50_us(lambda: log.records.get(chance.choice(ids)), 4 * times),
            "leaderboard_rows_p50_us": _p50_us(lambda: log.programs.ranked(TASK, limit=50), times),
            "best_without_index_us": _p50_us(lambda: log.reader.rows(_UNINDEXED, TASK), 3),
            "keys_per_second": keys / keys_s,
            "stored_per_cpu_second": rows / filled,
        }


if __name__ == "__main__":
    print(measure(quick=True))
