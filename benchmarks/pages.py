"""How fast a large log answers what the local pages ask: table, chart, a run's context, leaderboard, lineage.

The log is a search as it goes: each run changes a few settings of a good recent one, some fail, good ones are verified.
``AUTORESEARCH_PAGES`` names a folder in which the log is kept between calls.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from autoresearch.answers import (
    FoundTask,
    find_task,
    path_answer,
    progress_answer,
    run_context_answer,
    runners_answer,
    runs_answer,
    top_answer,
)
from autoresearch.api import ProgressOf, RunsOf
from autoresearch.identity import KeyPair
from autoresearch.log import BlobStore, Log
from autoresearch.records import BlobRef, Record, Run
from autoresearch.tasks import seed_for, source_digest
from autoresearch.views import run_table
from benchmarks.scale import NETWORK, PARTICIPANTS, SPAN_MS, START_MS, TRUST, Generator

COMPARED = "nothing; asked for are 100 ms an answer and 30 ms more after a record at 100,000 runs"
BATCH = 2_000
SIZES = (5_000, 100_000)
_PARENTS, _RECENT = 30, 400
ASKED: dict[str, RunsOf] = {
    "table": RunsOf(),
    "table_sorted": RunsOf(sort="-change", page=40),
    "table_filtered": RunsOf(state="confirmed,leading", sort="value"),
    "table_by": RunsOf(by="a"),
    "table_has": RunsOf(has="LR"),
    "table_words": RunsOf(q="shorter warm"),
}


class Search(Generator):
    """Signed records of a search on one task by many."""

    def __init__(self, runs: int) -> None:
        super().__init__(min(size for size in PARTICIPANTS if size >= runs), "search")
        self.tasks, self._definitions = self.tasks[:1], self._definitions[:1]
        self.count, self.wanted, self.size = 0, runs, 2 * runs
        self._default = {one.name: one.default for one in self._space}
        self._chance = random.Random(runs)

    def records(self) -> Iterator[Record]:
        """All of them, with so many runs."""
        yield from self._people()
        self.now_ms += 2 * 86_400_000
        while self.count < self.wanted:
            for record in self._next():
                self.now_ms += SPAN_MS // self.size
                yield record

    def run(self, who: KeyPair) -> Iterator[Record]:
        """A run: the baseline, or a few changes of a good recent one."""
        chance, (task,) = self._chance, self.tasks
        there = self.runs.setdefault(task, [])
        genome, parent, digest, value = dict(self._default), None, chance.randbytes(32), 2.057
        if there:
            parent = min(chance.sample(there, min(3, len(there))), key=_value)
            assert isinstance(parent.body, Run)
            genome |= parent.body.genome
            for one in chance.sample(self._space, chance.choice((1, 1, 2, 3))):
                old = genome[one.name]
                genome[one.name] = not old if isinstance(old, bool) else old * 2 if isinstance(old, float) else old
            value = max(0.8, _value(parent) - 0.02 * chance.random() ** 8) + abs(chance.gauss(0, 0.05))
        else:
            digest = source_digest(self._task.baseline.decode())
        failed = bool(there) and chance.random() < 0.08
        body = Run(
            task=task,
            status="diverged" if failed else "ok",
            value=None if failed else value,
            metrics={"steps": 1000},
            source=BlobRef(sha256=chance.randbytes(32), size=9000),
            source_digest=digest,
            parent=parent.id if parent else None,
            seed=seed_for(task, digest, 0),
            budget=self._task.budget.amount,
            genome=genome,
            title=f"Shorter warm-up, number {self.count}",
            hypothesis="The model is limited by width at this budget. ",
            checkpoint=None if failed else BlobRef(sha256=chance.randbytes(32), size=9000),
            device="one core",
            cpu_ms=20_000,
            duration_ms=20_000,
        )
        self.count += 1
        run = self.write(who, "run", body, (parent.id,) if parent else ())
        if not failed:
            there.append(run)
            if len(there) > _RECENT:
                there.sort(key=_value)
                del there[_PARENTS:]
        yield run


def _value(run: Record) -> float:
    assert isinstance(run.body, Run)
    return run.body.value if run.body.value is not None else 9.0


def made(folder: Path, runs: int) -> Path:
    """The log with so many runs, made unless it is there."""
    place = folder / f"search-{runs}"
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        with Log.open(place / "log.sqlite", NETWORK, trust=TRUST) as log:
            batch: list[tuple[bytes, bytes]] = []
            for record in Search(runs).records():
                batch.append((record.raw, record.signature))
                if len(batch) == BATCH:
                    log.writer.ingest(batch, now_ms=START_MS + 2 * SPAN_MS)
                    batch = []
            log.writer.ingest(batch, now_ms=START_MS + 2 * SPAN_MS)
        (place / "done").touch()
    return place


def _ms(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began)


def questions(log: Log, blobs: BlobStore, task: FoundTask) -> dict[str, Callable[[], object]]:
    """What the pages ask, by the figure's name; where they are rendered too, the pages are further entries."""
    newest = log.runs.newest(task.digest, limit=1)[0].record.id

    def table(asked: RunsOf) -> Callable[[], object]:
        return lambda: runs_answer(log, blobs, task, asked)

    return {
        **{name: table(asked) for name, asked in ASKED.items()},
        "progress": lambda: progress_answer(log, blobs, task, ProgressOf()),
        "run": lambda: run_context_answer(log, blobs, newest),
        "board": lambda: top_answer(log, task, limit=50),
        "path": lambda: path_answer(log, blobs, newest),
        "runners": lambda: runners_answer(log, task),
    }


def ask(place: Path, runs: int) -> dict[str, float]:
    """The figures of a log: first answers, answers once warm, the first answer after one more record."""
    figures: dict[str, float] = {}
    with Log.open(place / "log.sqlite", NETWORK, trust=TRUST) as log, BlobStore(place / "blobs") as blobs:
        task = find_task(log, None)
        assert log.tasks.find(task.digest)
        figures["columns_first_ms"] = _ms(lambda: run_table(log, task.digest))
        asked = questions(log, blobs, task)
        figures |= {f"{name}_first_ms": _ms(one) for name, one in asked.items()}
        figures |= {f"{name}_ms": min(_ms(one) for _ in range(3)) for name, one in asked.items()}
        figures["chart_kb"] = len(msgspec.json.encode(progress_answer(log, blobs, task, ProgressOf()))) / 1000
        generator, who = Search(5_000), KeyPair.from_seed(b"n" * 32)
        generator.runs[task.digest] = [found.record for found in log.runs.newest(task.digest, limit=5)]
        figures["verified_and_parents"] = float(len(log.verifications.verified_and_parents()))
        if head := log.devices.head(who.public):
            generator.heads[who.public] = log.records.get(head.id)
        newest = log.runs.newest(task.digest, limit=1)[0].record
        generator.now_ms = newest.time
        for name in ("columns", "table", "progress"):
            generator.now_ms += 1000
            (record,) = generator.run(who)
            log.writer.ingest([(record.raw, record.signature)], now_ms=generator.now_ms)
            columns: Callable[[], object] = lambda: run_table(log, task.digest)  # noqa: E731
            figures[f"{name}_after_record_ms"] = _ms(asked.get(name, columns))
    return figures | {"runs": float(runs)}


def measure(*, quick: bool) -> dict[str, float]:
    """The figures at 100,000 runs, when quick at 5,000."""
    runs = SIZES[0] if quick else SIZES[1]
    with tempfile.TemporaryDirectory() as temporary:
        return ask(made(Path(os.environ.get("AUTORESEARCH_PAGES") or temporary), runs), runs)


if __name__ == "__main__":
    print(json.dumps(ask(Path(sys.argv[1]), int(sys.argv[2]))))
