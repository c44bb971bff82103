"""A small log about a toy task that is the same to the last byte each time: runs, failures, notes, a claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.propose.mind.history import History, gather
from autoresearch.record.kinds import Claim, Note, Run
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.record.record import Record
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task, seed_for
from autoresearch.task.program import source_digest
from tests.daemon.toy import TRAIN, write_toy_task
from tests.record.making import NETWORK, NOW_MS, key

ME, OTHER = key(1), key(2)
HOUR_MS = 3_600_000


def program(x: float, y: float = 0.1) -> str:
    return TRAIN.replace("X = 0.9", f"X = {x}").replace("Y = 0.1", f"Y = {y}")


@dataclass
class Story:
    """Records in a log, each a second after the one before."""

    task: Task
    log: Log
    blobs: BlobStore
    now_ms: int = NOW_MS
    records: list[Record] = field(default_factory=list)

    @classmethod
    def at(cls, folder: Path) -> Self:
        toy = write_toy_task(folder / "toy")
        pin_baseline(toy)
        made = cls(load_task(toy), Log.open(folder / "log.sqlite", NETWORK), BlobStore(folder / "blobs"))
        task, put = made.task, made.blobs.put
        body = TaskBody(
            digest=task.digest,
            name=task.name,
            definition=task.definition(),
            baseline=put(task.baseline),
            harness={name: put(content) for name, content in task.harness.items()},
        )
        made.append("task", body)
        return made

    def close(self) -> None:
        self.log.close()
        self.blobs.close()

    def append(self, kind: str, body: object, *, by: Any = ME, links: tuple[bytes, ...] = ()) -> Record:
        self.now_ms += 1000
        record = self.log.writer.append(by, kind, body, now_ms=self.now_ms, links=links)
        self.records.append(record)
        return record

    def run(
        self,
        value: float | None,
        source: str,
        *,
        parent: Record | None = None,
        by: Any = ME,
        cites: tuple[Record, ...] = (),
        status: str = "ok",
        **fields: Any,
    ) -> Record:
        digest = source_digest(source) if "digest" not in fields else fields.pop("digest")
        body = Run(
            task=self.task.digest,
            status=status,
            value=value,
            source=self.blobs.put(source.encode(errors="surrogatepass")),
            source_digest=digest,
            parent=parent.id if parent else None,
            seed=seed_for(self.task.digest, digest, fields.get("replicate", 0)),
            budget=float(self.task.budget.amount),
            **fields,
        )
        links = [*([parent.id] if parent else []), *(note.id for note in cites)]
        return self.append("run", body, by=by, links=tuple(links))

    def note(self, topic: Any, text: str, *, by: Any = OTHER) -> Record:
        return self.append("note", Note(topic=topic, text=text, task=self.task.digest), by=by)

    def claim(self, title: str, *, by: Any = OTHER) -> Record:
        body = Claim(task=self.task.digest, source_digest=b"c" * 32, title=title, until=self.now_ms + HOUR_MS)
        return self.append("claim", body, by=by)

    def history(self, log: Log | None = None) -> History:
        return gather(log or self.log, self.blobs, self.task, now_ms=self.now_ms, me=ME.public)

    def tell(self) -> Self:
        """Baseline, three steps, two failures, what two participants expect and learned."""
        first = self.run(0.61, program(0.9), title="the baseline", genome={"X": 0.9, "Y": 0.1})
        useful = self.note("insight", "a smaller X helps on every seed")
        useless = self.note("insight", "a larger Y never helps")
        self.note("hypothesis", "Y near 0.6 should help")
        tested = self.note("hypothesis", "X near 0.3 should help")
        near = self.run(
            0.41, program(0.7), parent=first, cites=(useful,), title="X 0.9 -> 0.7", genome={"X": 0.7, "Y": 0.1},
            hypothesis="the lowest point lies below",
        )  # fmt: skip
        self.run(
            0.29, program(0.5), parent=near, by=OTHER, cites=(useful, tested), title="X 0.7 -> 0.5",
            genome={"X": 0.5, "Y": 0.1}, hypothesis="go on in this direction",
        )  # fmt: skip
        self.run(0.62, program(0.8), parent=near, cites=(useless,), title="X 0.7 -> 0.8", genome={"X": 0.8, "Y": 0.1})
        self.run(
            None, program(5.0), parent=near, status="diverged", title="X 0.7 -> 5", genome={"X": 5.0, "Y": 0.1},
            reason="the loss is not a number", cites=(useless,),
        )  # fmt: skip
        self.run(
            None, program(0.6) + "1 / 0\n", parent=near, status="crashed", title="divide",
            reason='File "/home/ann/work/train.py", line 9: ZeroDivisionError: division by zero',
        )  # fmt: skip
        self.claim("X 0.5 -> 0.3")
        return self
