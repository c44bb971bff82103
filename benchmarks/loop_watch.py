"""The daemon with a watch on its event loop: how long it was held each time, in the file that a variable names.

By the clock, and in processor time of its thread, which other programs on the machine don't add to.
"""

from __future__ import annotations

import json
import os
import selectors
import time
from pathlib import Path
from typing import NamedTuple

from autoresearch_daemon.main import main

FILE_VARIABLE = "BENCHMARK_LOOP_FILE"
# Shorter times are not kept.
SHORTEST_MS = 2.0


class Held(NamedTuple):
    """A time for which the loop was away from its selector: its end, Unix time, and its length in ms, two ways."""

    ended: float
    ms: float
    cpu_ms: float


def watch(held: list[Held]) -> None:
    """Note from now on each time for which the loop was held."""
    selector = selectors.DefaultSelector
    select, back = selector.select, [(time.perf_counter(), time.thread_time())]

    def timed(self: selectors.BaseSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ms = 1000 * (time.perf_counter() - back[0][0])
        if ms >= SHORTEST_MS:
            held.append(Held(time.time(), ms, 1000 * (time.thread_time() - back[0][1])))
        try:
            return select(self, timeout)  # type: ignore[arg-type]
        finally:
            back[0] = time.perf_counter(), time.thread_time()

    selector.select = timed  # type: ignore[method-assign]


def read(file: Path, since: float, until: float) -> list[Held]:
    """What ended between two times."""
    return [held for held in map(Held._make, json.loads(file.read_text())) if since <= held.ended <= until]


if __name__ == "__main__":
    times: list[Held] = []
    watch(times)
    try:
        main()
    finally:
        Path(os.environ[FILE_VARIABLE]).write_text(json.dumps(times))
