"""How long the answers behind the pages take in a large log, what they weigh, and what the pages ship with."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import httpx
import msgspec
import psutil

from autoresearch.ask.lookup import find_task
from autoresearch.ask.requests import ProgressOf, RunsOf
from autoresearch.ask.runs.boards import top_answer
from autoresearch.ask.runs.progress import progress_answer
from autoresearch.ask.runs.rows import path_answer, run_context_answer, runs_answer
from autoresearch.face.pages.rendering import asset, asset_names
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import transaction
from autoresearch.log.derive.driver import Driver
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import Answer
from autoresearch.paths import Paths
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import BlobRef, Run, Task
from autoresearch.record.record import DEFAULT_NETWORK, Record, seal
from autoresearch.task.model import seed_for
from benchmarks.idle import wait_until_ready
from benchmarks.queries import BATCH, DEFINITION, START_MS, TASK, _Unsigned

COMPARED = "the first of these questions, which reads all runs (first_ms), and the question after one more record"
# Pages of the browser, each with its address.
ADDRESSES = {
    "progress_page": "/",
    "table_page": "/?sort=value&page=30",
    "where_page": "/?where=setting_3>0.9",
    "words_page": "/?q=setting_3",
    "chart": "/chart.json",
    "curves": "/curves.json",
    "board_page": "/board",
    "effects_page": "/effects",
    "columns": "/columns.bin?sample=30000&" + "&".join(f"setting=setting_{at}" for at in range(10)),
    "groups_page": "/?group=setting_3",
    "contour": "/parts/contour?setting=setting_3&second=setting_4",
    "timeline": "/parts/timeline",
    "node_page": "/node",
}
# Of so many requests the mean is told: the kernel counts processor time in hundredths of a second.
REQUESTS = {True: 2, False: 10}
RUNS = {True: 2_000, False: 100_000}
AUTHORS = 20
SETTINGS = 12
FLOOR = 0.9


class _Story:
    """Runs that descend from good earlier ones, become better more and more slowly, and sometimes fail."""

    def __init__(self, seed: int, authors: int = AUTHORS) -> None:
        self.chance = random.Random(seed)
        self.authors = [_Unsigned(self.chance.randbytes(32)) for _ in range(authors)]
        self.good: list[tuple[bytes, dict[str, int | float | str | bool]]] = []
        self.best = 2.5
        self.count = 0

    def next(self) -> Record:
        """The next run."""
        chance, index = self.chance, self.count
        self.count += 1
        parent, genome = chance.choice(self.good[-50:]) if self.good else (None, dict[str, int | float | str | bool]())
        changed = {f"setting_{chance.randrange(SETTINGS)}": round(chance.random(), 4)}
        genome = {**{f"setting_{at}": 0.5 for at in range(SETTINGS)}, **genome, **changed}
        fails = index % 13 == 7
        value = None if fails else FLOOR + (self.best - FLOOR) * chance.uniform(0.97, 1.9)
        blob, digest = BlobRef(sha256=chance.randbytes(32), size=9000), chance.randbytes(32)
        body = Run(
            task=TASK,
            status="crashed" if fails else "ok",
            value=value,
            curve=[chance.random() for _ in range(16)],
            source=blob,
            source_digest=digest,
            parent=parent,
            base=bytes(32),
            seed=seed_for(TASK, digest, 0),
            budget=1e12,
            genome=genome,
            title=f"{next(iter(changed))} {next(iter(changed.values()))}",
            hypothesis="The model is limited by width at this budget: " * 4,
            cpu_ms=chance.randrange(20_000, 40_000),
            device="one kind of processor",
        )
        author, seq = self.authors[index % len(self.authors)], index // len(self.authors) + 1
        prev = b"" if seq == 1 else chance.randbytes(32)
        record = seal(author, DEFAULT_NETWORK, "run", body, seq=seq, prev=prev, time_ms=START_MS + index * 7000)
        if value is not None and value < self.best * 1.05:
            self.best = min(self.best, value)
            self.good.append((record.id, genome))
        return record


def _put(log: Log, records: list[Record]) -> None:
    last = log.records.last_row()
    with transaction(log.reader.connection, durable=False):
        driver = Driver(log)
        driver.store(records)
        driver.arrive(last)
        driver.finish()


def _p50_ms(question: Callable[[], object], times: int = 7) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        question()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e3


def _kb(answer: Answer) -> float:
    return len(msgspec.json.encode(answer)) / 1e3


def _served(home: str, newest: str, requests: int) -> dict[str, float]:
    """Processor time of a daemon with this log for whole pages, and what they weigh.

    ``begin_ms`` is that of the first request after its start, of Progress; others were asked for once before.
    """
    environment = {**os.environ, "AUTORESEARCH_HOME": home}
    process = subprocess.Popen([sys.executable, "-m", "autoresearch_daemon"], env=environment)
    try:
        socket = Paths.from_environment(environment).socket
        wait_until_ready(socket)
        daemon = psutil.Process(process.pid)
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://daemon", timeout=300
        ) as client:

            def spent_ms(path: str, times: int = requests) -> float:
                before = sum(daemon.cpu_times()[:2])
                for _ in range(times):
                    client.get(path).raise_for_status()
                return (sum(daemon.cpu_times()[:2]) - before) * 1e3 / times

            figures = {"begin_ms": spent_ms("/", 1)}
            for name, path in {**ADDRESSES, "run_page": f"/run/{newest}", "lineage": f"/lineage?of={newest}"}.items():
                figures[f"{name}_kb"] = len(client.get(path).raise_for_status().content) / 1e3
                figures[f"{name}_ms"] = spent_ms(path)
            return figures
    finally:
        process.terminate()
        process.wait()


def measure(*, quick: bool) -> dict[str, float]:
    """Fill a log with runs, and ask what the pages ask."""
    with tempfile.TemporaryDirectory() as home:
        paths = Paths.from_environment({"AUTORESEARCH_HOME": home})
        paths.create()
        with Log.open(paths.log, DEFAULT_NETWORK) as log, BlobStore(paths.blobs) as blobs:
            figures, newest = _answered(log, blobs, RUNS[quick])
        shipped = [one.content for one in map(asset, asset_names()) if one]
        return figures | _served(home, newest, REQUESTS[quick]) | {"assets_kb": sum(map(len, shipped)) / 1e3}


def _answered(log: Log, blobs: BlobStore, count: int) -> tuple[dict[str, float], str]:
    """How long the answers take without HTTP and HTML; and the short id of a run with a long lineage."""
    story = _Story(1)
    task = Task(
        digest=TASK, name="benchmark", definition=DEFINITION, baseline=BlobRef(sha256=bytes(32), size=1), harness={}
    )
    publisher = _Unsigned(bytes(32))
    _put(log, [seal(publisher, DEFAULT_NETWORK, "task", task, seq=1, prev=b"", time_ms=START_MS)])
    for start in range(0, count, BATCH):
        _put(log, [story.next() for _ in range(start, min(start + BATCH, count))])
    found = find_task(log)
    newest = story.good[-1][0]

    def table(**asked: object) -> Answer:
        return runs_answer(log, blobs, found, RunsOf(**asked))  # type: ignore[arg-type]

    def progress(**asked: object) -> Answer:
        return progress_answer(log, blobs, found, ProgressOf(**asked))  # type: ignore[arg-type]

    def after_record() -> Answer:
        _put(log, [story.next()])
        return table()

    figures = {"runs": float(count), "first_ms": _p50_ms(table, 1)}
    figures |= {
        "table_ms": _p50_ms(table),
        "table_200_ms": _p50_ms(lambda: table(size=200)),
        "sorted_ms": _p50_ms(lambda: table(sort="value", page=30)),
        "by_participant_ms": _p50_ms(lambda: table(by=story.authors[0].public.hex()[:8])),
        "with_words_ms": _p50_ms(lambda: table(q="setting_3")),
        "changed_setting_first_ms": _p50_ms(lambda: table(has="setting_3"), 1),
        "changed_setting_ms": _p50_ms(lambda: table(has="setting_3")),
        "progress_ms": _p50_ms(progress),
        "progress_time_ms": _p50_ms(lambda: progress(x="time")),
        "chart_kb": _kb(progress()),
        "run_ms": _p50_ms(lambda: run_context_answer(log, blobs, newest)),
        "path_ms": _p50_ms(lambda: path_answer(log, blobs, newest)),
        "board_ms": _p50_ms(lambda: top_answer(log, found)),
        "after_record_ms": _p50_ms(after_record),
    }
    return figures, short_id(newest)


if __name__ == "__main__":
    print(measure(quick=True))
