"""What hiding costs: the questions behind lists, charts and prompts with 1,000 hidden participants, and without.

Half of the participants are hidden, and with them half of the runs. ``x_…`` is the time with hiding over that without,
in one log. ``store_x`` is the same for storing records, ``words_ms`` what hiding a phrase in all that is there takes.
All is processor time, of three times the shortest.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from autoresearch.ask.lookup import find_task
from autoresearch.ask.notes import notes_answer
from autoresearch.ask.people.evidence import credit_answer
from autoresearch.ask.requests import ColumnsOf, ProgressOf, RunsOf
from autoresearch.ask.runs.boards import best_answer, top_answer
from autoresearch.ask.runs.progress import columns_answer, progress_answer
from autoresearch.ask.runs.rows import path_answer, runners_answer, runs_answer
from autoresearch.ask.show import log_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.hiding import hide
from autoresearch.log.standing.trials import trials
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.kinds import BlobRef, Task
from autoresearch.record.record import DEFAULT_NETWORK, seal
from benchmarks.pages import _put, _Story
from benchmarks.queries import BATCH, DEFINITION, START_MS, TASK, _Unsigned

COMPARED = "the same questions to the same log before anything was hidden (x_…)"
AUTHORS = 2_000
HIDDEN, WORDS = 1_000, 1_000


def measure(*, quick: bool) -> dict[str, float]:
    """Fill a log with runs, 2,000 when quick and 100,000 otherwise; ask, hide, and ask again."""
    count = 2_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        with Log.open(path, DEFAULT_NETWORK) as log, BlobStore(Path(folder) / "blobs") as blobs:
            return _measure(log, blobs, count)


def _measure(log: Log, blobs: BlobStore, count: int) -> dict[str, float]:
    story = _Story(1, AUTHORS)
    blob = BlobRef(sha256=bytes(32), size=1)
    task = Task(digest=TASK, name="benchmark", definition=DEFINITION, baseline=blob, harness={})
    _put(log, [seal(_Unsigned(bytes(32)), DEFAULT_NETWORK, "task", task, seq=1, prev=b"", time_ms=START_MS)])
    for start in range(0, count, BATCH):
        _put(log, [story.next() for _ in range(start, min(start + BATCH, count))])
    before, batch = _asked(log, blobs, story), min(BATCH, count)
    stored = _timed(lambda: _put(log, [story.next() for _ in range(batch)]))
    hidden = [HiddenRow(author.public, b"", "", 0) for author in story.authors[:HIDDEN]]
    hide_ms = _timed(lambda: hide(log, hidden))
    after = _asked(log, blobs, story)
    words_ms = _timed(lambda: hide(log, [HiddenRow("setting_3 0.5", b"", "", 0)]))
    hide(log, [HiddenRow(f"word{number} that nobody wrote", b"", "", 0) for number in range(WORDS - 1)])
    stored_hiding = _timed(lambda: _put(log, [story.next() for _ in range(batch)]))
    return {
        "runs": float(count),
        "hide_1000_ms": hide_ms,
        "words_ms": words_ms,
        "store_x": stored_hiding / stored,
        **{f"{name}_ms": one for name, one in before.items()},
        **{f"x_{name}": after[name] / before[name] for name in before},
    }


def _timed(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return (time.process_time() - began) * 1e3


def _asked(log: Log, blobs: BlobStore, story: _Story) -> dict[str, float]:
    found, newest = find_task(log), story.good[-1][0]
    asked: dict[str, Callable[[], object]] = {
        "table": lambda: runs_answer(log, blobs, found, RunsOf()),
        "sorted": lambda: runs_answer(log, blobs, found, RunsOf(sort="value", page=30)),
        "with_words": lambda: runs_answer(log, blobs, found, RunsOf(q="setting_3")),
        "where": lambda: runs_answer(log, blobs, found, RunsOf(where="value<1.2")),
        "progress": lambda: progress_answer(log, blobs, found, ProgressOf()),
        "columns": lambda: columns_answer(log, found, ColumnsOf(setting=["setting_1"])),
        "board": lambda: top_answer(log, found),
        "best": lambda: best_answer(log, found),
        "path": lambda: path_answer(log, blobs, newest),
        "records": lambda: log_answer(log),
        "notes": lambda: notes_answer(log, found, query="width"),
        "credit": lambda: credit_answer(log),
        "runners": lambda: runners_answer(log, found),
        "trials": lambda: trials(log, found.digest, trust_context(log), device=b"d" * 32),
    }
    return {name: min(_timed(question) for _ in range(3)) for name, question in asked.items()}


if __name__ == "__main__":
    print(measure(quick=True))
