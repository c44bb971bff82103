"""The daemon without work: resident memory, share of a processor, and seconds until it is ready."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil

from autoresearch.paths import Paths

COMPARED = "the bounds that a background daemon should keep: 120 MB and 1 % of one processor"
START_SECONDS_MAX = 60.0
MEASURE_SECONDS = {True: 3.0, False: 120.0}


def measure(*, quick: bool) -> dict[str, float]:
    """Start a daemon in a home of its own, wait until it is ready, watch it do nothing."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "AUTORESEARCH_HOME": home}
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "autoresearch_daemon"], env=environment)
        try:
            wait_until_ready(Paths.from_environment(environment).socket)
            start_seconds = time.monotonic() - began
            return {"start_seconds": start_seconds, **watch(process.pid, MEASURE_SECONDS[quick])}
        finally:
            process.terminate()
            process.wait()


def wait_until_ready(socket: Path) -> None:
    """Ask until the daemon says that it is ready."""
    deadline = time.monotonic() + START_SECONDS_MAX
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://daemon") as client:
        while time.monotonic() < deadline:
            try:
                if client.get("/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
    raise TimeoutError("the daemon did not become ready")


def watch(pid: int, seconds: float) -> dict[str, float]:
    """Memory and processor time of the daemon and its children over some time."""
    daemon = psutil.Process(pid)
    before = processor_seconds(daemon)
    time.sleep(seconds)
    used = processor_seconds(daemon) - before
    memory = sum(process.memory_info().rss for process in [daemon, *daemon.children(recursive=True)])
    return {"rss_mb": memory / 1e6, "cpu_percent": 100 * used / seconds}


def processor_seconds(daemon: psutil.Process) -> float:
    """User and system time so far."""
    return sum(sum(process.cpu_times()[:2]) for process in [daemon, *daemon.children(recursive=True)])
