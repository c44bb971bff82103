"""How fast an empty node takes over the log of another: two real daemons on loopback, each with its network process.

The runs name files that are too large to travel by themselves, so that records alone are measured.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import psutil

from autoresearch.ask.node import PeersAnswer
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.record import DEFAULT_NETWORK, seal
from autoresearch.trust.keys import KeyPair
from benchmarks import loop_watch
from benchmarks.idle import wait_until_ready
from benchmarks.ingest import BATCH, run_body

COMPARED = "checking and storing alone (`ingest`: records_per_cpu_second), which no transport can beat on one core"
AUTHORS = 50
SPACING_MS = 1000
LARGE_BYTES = 1 << 40
POLL_SECONDS = 0.02
# What the log shows of a peer takes seconds the first time, on a busy machine.
PATIENCE_SECONDS = 60
# More than a node writes about itself when it starts.
OWN = 10


def measure(*, quick: bool) -> dict[str, float]:
    """Records a second from the first that arrives to the last, bytes on the wire and written; what held the loop.

    Plain names: the largest log.
    """
    sizes = [9_000] if quick else [10_000, 100_000]  # more than one batch, which is stored at once
    figures: dict[str, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            figures |= {f"{name}_{size}": value for name, value in catch_up(Path(folder), size).items()}
    plain = ("records_per_second", "bytes_per_record", "written_bytes_per_record", "loop_cpu_ms_longest")
    return {name: figures[f"{name}_{sizes[-1]}"] for name in plain} | figures


def catch_up(folder: Path, size: int) -> dict[str, float]:
    """One empty node beside one with ``size`` records."""
    full, empty = home(folder / "full"), home(folder / "empty")
    record_bytes = fill(full, size)
    Log.open(empty.log, DEFAULT_NETWORK).close()
    with daemon(full) as first:
        wait_until_ready(full.socket)
        wait_until(lambda: bool(peers(full).addresses))
        # A node asks its peers before it is ready: by then all may have come.
        with (
            daemon(empty, peers(full).addresses[0], loop_file=folder / "loop.json") as second,
            Log.open(empty.log, DEFAULT_NETWORK, read_only=True) as log,
        ):
            wait_until(lambda: log.records.count() > OWN)
            before, began = log.records.count(), time.time()
            wait_until(lambda: log.records.count() >= size)
            came, ended = log.records.count() - before, time.time()
            if came <= 0:
                raise RuntimeError(f"all {size} records came between two looks: too few to measure")
            wait_until_ready(empty.socket)
            written = second.io_counters().write_bytes
            spent = {f"cpu_seconds_{name}": value for name, value in processor_seconds(first, second).items()}
            # The network process tells its figures every two seconds.
            time.sleep(3)
            peer = next(peer for peer in peers(empty).peers if peer.connected)
    held = loop_watch.read(folder / "loop.json", began, ended)
    return {
        "records_per_second": came / (ended - began),
        "bytes_per_record": (peer.bytes_in + peer.bytes_out) / size,
        "record_bytes": record_bytes,
        "written_bytes_per_record": written / size,
        "loop_held_ms_longest": max((one.ms for one in held), default=0.0),
        "loop_held_over_50_ms": sum(one.ms > 50 for one in held),
        "loop_cpu_ms_longest": max((one.cpu_ms for one in held), default=0.0),
        **spent,
    }


def home(folder: Path) -> Paths:
    """The folders of a node."""
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(folder)})
    paths.create()
    return paths


def fill(paths: Paths, size: int) -> float:
    """Store signed runs of several authors, up to now; returns their mean size in bytes, signatures included."""
    chance = random.Random(1)
    task = chance.randbytes(32)
    keys = [KeyPair.from_seed(chance.randbytes(32)) for _ in range(AUTHORS)]
    heads = [b""] * AUTHORS
    start_ms = time.time_ns() // 1_000_000 - size * SPACING_MS
    total, batch = 0, []
    with Log.open(paths.log, DEFAULT_NETWORK) as log:
        for index in range(size):
            who, seq = index % AUTHORS, index // AUTHORS + 1
            body = run_body(chance, task)
            large = msgspec.structs.replace(body.source, size=LARGE_BYTES)
            body = msgspec.structs.replace(body, source=large, log=None)
            time_ms = start_ms + index * SPACING_MS
            record = seal(keys[who], DEFAULT_NETWORK, "run", body, seq=seq, prev=heads[who], time_ms=time_ms)
            heads[who] = record.id
            total += len(record.raw) + len(record.signature)
            batch.append((record.raw, record.signature))
            if len(batch) == BATCH or index == size - 1:
                log.writer.ingest(batch, now_ms=start_ms + size * SPACING_MS)
                batch.clear()
    return total / size


@contextmanager
def daemon(paths: Paths, *bootstrap: str, loop_file: Path | None = None) -> Iterator[psutil.Process]:
    """A daemon that was started; with a ``loop_file`` it writes there at its end what held its event loop."""
    environment = {
        **os.environ,
        "AUTORESEARCH_HOME": str(paths.data.parent),
        "AUTORESEARCH_NETWORK_ENABLED": "true",
        "AUTORESEARCH_NETWORK_LAN": "false",
        "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
        "AUTORESEARCH_NETWORK_BOOTSTRAP": ",".join(bootstrap),
    }
    module = "autoresearch_daemon"
    if loop_file:
        module, environment[loop_watch.FILE_VARIABLE] = "benchmarks.loop_watch", str(loop_file)
    process = subprocess.Popen([sys.executable, "-m", module], env=environment)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def peers(paths: Paths) -> PeersAnswer:
    """What a daemon says of its peers."""
    transport = httpx.HTTPTransport(uds=str(paths.socket))
    with httpx.Client(transport=transport, base_url="http://daemon", timeout=PATIENCE_SECONDS) as client:
        return msgspec.json.decode(client.get("/v1/peers").content, type=PeersAnswer)


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again."""
    while not condition():
        time.sleep(POLL_SECONDS)


def processor_seconds(first: psutil.Process, second: psutil.Process) -> dict[str, float]:
    """User and system time so far of both daemons and their network processes."""
    spent = {}
    for name, process in (("sender", first), ("receiver", second)):
        spent[name] = sum(process.cpu_times()[:2])
        spent[f"{name}_network"] = sum(sum(child.cpu_times()[:2]) for child in process.children(recursive=True))
    return spent
