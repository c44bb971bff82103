"""A small log of real records: a task, its baseline, what was tried, and what somebody else did."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import Note, Run, Task
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.task.model import seed_for
from autoresearch.trust.keys import KeyPair

START_MS = 1_790_000_000_000
BASELINE = "DEPTH = 4\nLR = 0.1\n\n\ndef build_model():\n    return DEPTH\n"
BUDGET = 1e9


def definition(name="grammar", direction="minimize", floor=0.75, harness=None, unit="work", budget=BUDGET, **metric):
    metric |= {"name": "val_bpb", "direction": direction, "noise": 0.02} | ({} if floor is None else {"floor": floor})
    return {
        "name": name,
        "metric": metric,
        "budget": {"unit": unit, "amount": budget},
        "baseline": hashlib.sha256(BASELINE.encode()).digest(),
        "harness": harness or {},
    }


@dataclass
class Notebook:
    """A log, blobs and two keys; each record comes a second after the one before."""

    log: Log
    blobs: BlobStore
    mine: KeyPair = field(default_factory=KeyPair.generate)
    other: KeyPair = field(default_factory=KeyPair.generate)
    now_ms: int = START_MS

    @classmethod
    def at(cls, folder: Path, **state) -> Notebook:
        return cls(Log.open(folder / "log.sqlite", DEFAULT_NETWORK), BlobStore(folder / "blobs"), **state)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log.close()
        self.blobs.close()

    def append(self, kind, body, *, by=None, links=()):
        self.now_ms += 1000
        return self.log.writer.append(by or self.mine, kind, body, links=links, now_ms=self.now_ms).id

    def task(self, name="grammar", *, by=None, called=None, **options):
        """Publish a task and return its digest."""
        rules = definition(name, **options)
        digest = hashlib.sha256(encode(rules)).digest()
        self.append(
            "task",
            Task(
                digest=digest,
                name=called or name,
                summary=f"about {name}",
                definition=rules,
                baseline=self.blobs.put(BASELINE.encode()),
                harness={},
            ),
            by=by,
        )
        return digest

    def run(self, task, value=None, *, source=BASELINE, parent=None, status="ok", by=None, log=b"", cites=(), **fields):
        """Publish a run and return its id."""
        fields = {"budget": BUDGET, "source_digest": hashlib.sha256(source.encode()).digest()} | fields
        body = Run(
            task=task,
            status=status,
            value=value,
            source=self.blobs.put(source.encode()),
            parent=parent,
            seed=seed_for(task, fields["source_digest"], fields.get("replicate", 0)),
            log=self.blobs.put(log) if log else None,
            **fields,
        )
        return self.append("run", body, by=by, links=(*((parent,) if parent else ()), *cites))

    def note(self, text, *, task=None, topic="insight", by=None):
        return self.append("note", Note(topic=topic, text=text, task=task), by=by)


@dataclass
class Story:
    """Baseline 1.25 → deeper 1.05 → faster 1.00 (the best, by somebody else); one crash; one note."""

    notebook: Notebook
    task: bytes
    baseline: bytes
    deeper: bytes
    faster: bytes
    crashed: bytes
    note: bytes


def tell(notebook: Notebook) -> Story:
    """Write the story into an empty notebook."""
    task = notebook.task()
    deep, fast = BASELINE.replace("DEPTH = 4", "DEPTH = 6"), BASELINE.replace("4", "6").replace("0.1", "0.2")
    baseline = notebook.run(task, 1.25, title="the baseline", genome={"DEPTH": 4, "LR": 0.1})
    deeper = notebook.run(
        task, 1.05, source=deep, parent=baseline, title="DEPTH 4 → 6", genome={"DEPTH": 6, "LR": 0.1}, log=b"step 1\n"
    )
    faster = notebook.run(
        task,
        1.00,
        source=fast,
        parent=deeper,
        by=notebook.other,
        title="LR 0.1 → 0.2",
        genome={"DEPTH": 6, "LR": 0.2},
    )
    crashed = notebook.run(
        task, source=fast + "1 / 0\n", parent=faster, status="crashed", reason="division by zero", title="divide"
    )
    return Story(notebook, task, baseline, deeper, faster, crashed, notebook.note("depth helps", task=task))
