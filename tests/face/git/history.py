"""A history of runs on one task, by several devices, with their sources: records and blobs to be put into any home."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.kinds import BlobRef, Task
from autoresearch.record.record import Record
from autoresearch.task.program import source_digest
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.record.making import DEFINITION, NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed

PREPARE = b"BUDGET = 1\n"
BASELINE = b"X = 2.0\n"
LIMITS = {"seconds": 900.0, "memory_mib": 2048, "disk_mib": 256, "processes": 64, "output_kib": 1024}


class History:
    """Signs runs; ``records`` and ``sources`` are all there is to say."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._heads: dict[bytes, tuple[int, bytes]] = {}
        self.records: list[Record] = []
        self.sources: dict[bytes, bytes] = {}
        prepare, baseline = self._put(PREPARE), self._put(BASELINE)
        pinned = {"harness": {"prepare.py": prepare.sha256}, "baseline": source_digest(BASELINE.decode())}
        metric = {"name": "val_bpb", "direction": "minimize", "source": "harness", "noise": 0.02}
        self.definition: dict[str, object] = {**DEFINITION, "metric": metric, "limits": LIMITS, "data": {}, **pinned}
        self.task = digest_of(self.definition)
        harness = {"prepare.py": prepare}
        body = Task(digest=self.task, name="grammar", definition=self.definition, baseline=baseline, harness=harness)
        self.sign(key(1), "task", body)

    def sign(self, who: KeyPair, kind: str, body: object, links: Sequence[bytes] = ()) -> Record:
        """The next record of a device, a second after the one before."""
        seq, prev = self._heads.get(who.public, (0, None))
        time_ms = NOW_MS + 1000 * len(self.records)
        record = sealed(who, body, kind=kind, seq=seq + 1, prev=prev, time_ms=time_ms, links=links)
        self._heads[who.public] = (seq + 1, record.id)
        self.records.append(record)
        return record

    def run(
        self, value: float | None, source: bytes, parent: Record | None = None, *, by: int = 1, **fields: object
    ) -> Record:
        """A run of a program."""
        run_fields = {"title": f"X to {value}", "parent": parent.id if parent else None} | fields
        if value is None:
            run_fields = {"status": "crashed", "reason": "ValueError: no"} | run_fields
        body = run_body(value, source=source, task=run_fields.pop("task", self.task), **run_fields)
        body = msgspec.structs.replace(body, source=self._put(source))
        return self.sign(key(by), "run", body, [parent.id] if parent else [])

    def _put(self, content: bytes) -> BlobRef:
        ref = self._blobs.put(content)
        self.sources[ref.sha256] = content
        return ref


def small(history: History) -> list[Record]:
    """A baseline, two steps, a crash beside them and a worse branch."""
    base = history.run(2.0, BASELINE, title="the baseline")
    better = history.run(1.5, b"X = 1.5\n", base, by=2, hypothesis="smaller is better\n\nas in the paper")
    crash = history.run(None, b"X = 1/0\n", better, by=3)
    best = history.run(1.25, b"X = 1.25\n", better, by=1, proposer=None)
    aside = history.run(1.75, b"X = 1.75\n", base, by=2)
    return [base, better, crash, best, aside]


def grown(history: History, runs: int) -> list[Record]:
    """A tree of many runs."""
    chance, made = random.Random(1), [history.run(2.0, BASELINE)]
    for number in range(runs):
        value = None if chance.random() < 0.1 else 2.0 - chance.random()
        source = b"X = %d\n" % (number % 50) + b"# line\n" * 300
        body = {"source_digest": number.to_bytes(32, "big")}
        made.append(history.run(value, source, chance.choice(made[-20:]), by=1 + number % 5, **body))
    return made


def settle(paths: Paths, records: Sequence[Record], sources: Sequence[bytes]) -> None:
    """Have records and files come to a home, in this order."""
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK))
    with Log.open(paths.log, NETWORK) as log, BlobStore(paths.blobs) as blobs:
        for record in records:
            log.writer.ingest(pairs([record]), now_ms=NOW_MS + 10_000_000)
        for source in sources:
            blobs.put(source)


def home(folder: Path) -> Paths:
    """The folders of a home."""
    return Paths.from_environment({"AUTORESEARCH_HOME": str(folder)})
