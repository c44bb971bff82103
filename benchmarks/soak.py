"""Three nodes that are left alone while what happens to machines happens to them: is a record lost, does anything grow?

All search on one small task and share their records. One after the other: a node is restarted and killed; a disk is
full; a node is suspended; a clock is two hours behind and set right; a node has no network; a program takes too much
memory. Then they are paused, and must agree.

    python -m benchmarks soak            an hour
    python -m benchmarks soak --quick    a minute
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from autoresearch.link import death_signal
from autoresearch.paths import Paths
from autoresearch.settings import environment_variable

COMPARED = "0 lost, stuck, left over; 1 for growth: the medians of the last quarter over those of the second"
PHASE_SECONDS = {True: 5.0, False: 600.0}
SAMPLE_SECONDS = 1.0
# The machine may have other things to do.
AGREE_SECONDS, READY_SECONDS, STOP_SECONDS = 300.0, 240.0, 120.0
TWO_HOURS = 7200.0
DISK_BYTES = 96 << 20
# What the settings of a node's home are, and the file by which its clock is set.
CLOCK_VARIABLE = "BENCHMARK_CLOCK_FILE"

HARNESS = """
import json
import os


def report(value):
    with os.fdopen(int(os.environ["AUTORESEARCH_RESULT_FD"]), "w") as channel:
        result = {"event": "result", "status": "ok", "value": value, "metrics": {}, "curve": [value]}
        channel.write(json.dumps(result) + "\\n")
"""
TRAIN = """
import time

import prepare

X = 0.9  # float [0.0, 1.0]
Y = 0.1  # float [0.0, 1.0]

time.sleep(0.5)
prepare.report((X - 0.3) ** 2 + (Y - 0.6) ** 2)
"""
HUNGRY = TRAIN.replace("time.sleep(0.5)", "hungry = [bytearray(b'x') * (64 << 20) for _ in range(64)]")
MANIFEST = """
name = "soak"
[metric]
name = "distance"
direction = "minimize"
floor = 0.0
noise = 0.001
[budget]
unit = "work"
amount = 1.0
[limits]
seconds = 60
memory_mib = 512
[harness]
"prepare.py" = "{digest}"
"""


def measure(*, quick: bool) -> dict[str, float]:
    """Records lost, workers stuck, processes left over, growth of memory and descriptors, seconds until all agreed."""
    with tempfile.TemporaryDirectory() as folder:
        return _soak(Path(folder), PHASE_SECONDS[quick])


@dataclass
class Node:
    """A daemon in a home of its own. ``disk`` is the size in bytes of one for its data, 0: none of its own."""

    home: Path
    settings: Mapping[str, str]
    disk: int = 0
    process: subprocess.Popen[bytes] | None = None
    pid: int = 0  # of the daemon, once it is ready
    seen: set[bytes] = field(default_factory=set)  # records that its log had at any time
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, MiB; since its last start
    files: list[tuple[float, float]] = field(default_factory=list)

    @property
    def paths(self) -> Paths:
        """Where its files are."""
        return Paths.from_environment({"AUTORESEARCH_HOME": str(self.home)})

    @property
    def clock(self) -> Path:
        """By how many seconds its clock is wrong, as text."""
        return self.home.with_suffix(".clock")

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.memory, self.files = [], []
        variables = {environment_variable(name): value for name, value in self.settings.items()}
        own = {"AUTORESEARCH_HOME": str(self.home), CLOCK_VARIABLE: str(self.clock)}
        self.paths.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        bwrap = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/"]
        disk = [*bwrap, "--size", str(self.disk), "--tmpfs", str(self.paths.data)]
        self.process = subprocess.Popen(
            [*(disk if self.disk else ()), sys.executable, "-m", "benchmarks.soak"],
            env={**os.environ, **variables, **own},
            stderr=(self.home.parent / f"{self.home.name}.err").open("ab"),
            preexec_fn=death_signal(signal.SIGTERM),  # noqa: PLW1509 - asks the kernel, and takes no lock of a thread
        )
        _wait(lambda: self._answers("/readyz"), READY_SECONDS, f"{self.home.name} is ready")
        self.pid = int(self.ask("/v1/status")["pid"])  # that of bwrap is another

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it, and return its exit status."""
        self.look()
        assert self.process
        os.kill(self.pid, number)
        return self.process.wait(STOP_SECONDS)

    def ask(self, path: str, **body: object) -> Any:  # noqa: ANN401 - JSON
        """What its API answers: a question without a body, else an order."""
        transport = httpx.HTTPTransport(uds=str(self.paths.socket))
        with httpx.Client(transport=transport, base_url="http://node", timeout=READY_SECONDS) as client:
            answer = client.post(path, json=body) if body else client.get(path)
            answer.raise_for_status()
            return answer.json()

    def look(self) -> set[bytes]:
        """The records that its log has now, by a copy: SQLite takes no path through another process's root."""
        log = Path(f"/proc/{self.pid}/root{self.paths.log}")
        with tempfile.TemporaryDirectory() as folder, suppress(sqlite3.Error, OSError):
            copy = Path(folder) / log.name
            for end in ("", "-wal"):
                shutil.copyfile(f"{log}{end}", f"{copy}{end}")
            with closing(sqlite3.connect(copy)) as database:
                found = {row[0] for row in database.execute("SELECT id FROM record")}
            self.seen |= found
            return found
        return set()

    def sample(self, at: float) -> None:
        """Note the memory and the open files of the daemon and its network process."""
        with suppress(psutil.Error):
            daemon = psutil.Process(self.pid)
            both = [
                daemon,
                *(one for one in daemon.children() if any("net.host.child" in word for word in one.cmdline())),
            ]
            self.memory.append((at, sum(one.memory_info().rss for one in both) / (1 << 20)))
            self.files.append((at, sum(one.num_fds() for one in both)))

    def _answers(self, path: str) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"{self.home.name} ended with {self.process and self.process.returncode}")
        try:
            self.ask(path)
        except (httpx.HTTPError, OSError):
            return False
        return True


def _soak(folder: Path, seconds: float) -> dict[str, float]:
    task = folder / "task"
    task.mkdir()
    (task / "prepare.py").write_text(HARNESS)
    (task / "train.py").write_text(TRAIN)
    (task / "task.toml").write_text(MANIFEST.format(digest=hashlib.sha256(HARNESS.encode()).hexdigest()))
    disks = {"restarted": 0, "suspended": 0, "small": DISK_BYTES}
    nodes = [Node(folder / name, _settings(task), disk) for name, disk in disks.items()]
    restarted, suspended, small = nodes
    try:
        for node in nodes:
            node.start()
        _wait(lambda: all(node.ask("/v1/peers")["addresses"] for node in nodes), READY_SECONDS, "all listen")
        for node, other in itertools.permutations(nodes, 2):
            node.ask("/v1/peers", address=other.ask("/v1/peers")["addresses"][0])
        for node in nodes:
            node.ask("/v1/work", verify_share=0.2)
        with _sampled(nodes):
            _phases(restarted, suspended, small, seconds)
        growth = _growth(suspended)
        agreed = _agree(nodes)
        stuck = sum(_is_busy(node) for node in nodes)
        everything = set.union(*(node.seen for node in nodes))
        lost = sum(len(everything - node.look()) for node in nodes)
        hungry = _hungry(restarted)
        children = [child for node in nodes for child in psutil.Process(node.pid).children(recursive=True)]
        unclean = sum(node.stop() != 0 for node in nodes)
        _, left = psutil.wait_procs(children, timeout=STOP_SECONDS)
        return {
            "records": len(everything),
            "lost": lost,
            "stuck": stuck,
            "unclean_ends": unclean,
            "left_over": len(left),
            "out_of_memory": hungry,
            "agreed_seconds": agreed,
            **growth,
        }
    finally:
        for node in nodes:
            if node.process and node.process.poll() is None:
                node.process.kill()


def _settings(task: Path) -> dict[str, str]:
    return {
        "work.task": str(task),
        "api.port": "0",
        "network.enabled": "true",
        "network.lan": "false",
        "network.listen": f"/ip4/127.0.0.1/tcp/{_free_port()}",
        "network.exchange_seconds": "5",
        "storage.minimum_free_mib": "16",
    }


def _phases(restarted: Node, suspended: Node, small: Node, seconds: float) -> None:
    _pass(seconds, restarted, suspended, small)
    for number in (signal.SIGTERM, signal.SIGKILL):
        restarted.stop(number)
        restarted.start()
        _pass(seconds / 2, restarted, suspended, small)
    with _full(small):
        _pass(seconds, restarted, suspended, small)
    os.kill(suspended.pid, signal.SIGSTOP)
    _pass(seconds / 2, restarted, small)
    os.kill(suspended.pid, signal.SIGCONT)
    suspended.clock.write_text(str(-TWO_HOURS))
    _pass(seconds, restarted, suspended, small)
    suspended.clock.write_text("0")
    restarted.ask("/v1/settings", name="network.hours", value=_not_now())
    _pass(seconds, restarted, suspended, small)
    restarted.ask("/v1/settings", name="network.hours", value="")
    restarted.ask("/v1/proposals", program=HUNGRY, hypothesis="takes too much memory")
    _wait(lambda: _hungry(restarted) > 0, AGREE_SECONDS, "the hungry program has ended")
    _pass(seconds, restarted, suspended, small)


def _pass(seconds: float, *nodes: Node) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for node in nodes:
            node.look()
        time.sleep(SAMPLE_SECONDS)


@contextmanager
def _full(node: Node) -> Iterator[None]:
    """Fill the disk of a node's data to its last byte."""
    filler = Path(f"/proc/{node.pid}/root{node.paths.data}/filler")
    with filler.open("wb", buffering=0) as out, suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while out.write(bytes(size)) == size:
                    pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def _sampled(nodes: list[Node]) -> Iterator[None]:
    """Note memory and open files of all nodes meanwhile."""
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            for node in nodes:
                node.sample(time.monotonic())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _growth(node: Node) -> dict[str, float]:
    """How memory and descriptors of a node that was never restarted grew, in its second half."""
    figures: dict[str, float] = {}
    for name, points in (("memory", node.memory), ("descriptors", node.files)):
        quarter = len(points) // 4
        second, last = points[quarter : 2 * quarter], points[-quarter:]
        figures[f"{name}_growth"] = statistics.median(y for _, y in last) / statistics.median(y for _, y in second)
        late = points[len(points) // 2 :]
        slope, _ = statistics.linear_regression([x for x, _ in late], [y for _, y in late])
        figures[f"{name}_per_hour"] = 3600 * slope
    return {**figures, "memory_mib": statistics.median(y for _, y in node.memory[-(len(node.memory) // 4) :])}


def _agree(nodes: list[Node]) -> float:
    """Pause all, and wait until every log has the same records; the seconds that took."""
    for node in nodes:
        node.ask("/v1/pause", until_ms=None)
    began = time.monotonic()
    _wait(lambda: not any(_is_busy(node) for node in nodes), AGREE_SECONDS, "runs have stopped")
    with suppress(TimeoutError):  # what is missing then is counted as lost
        _wait(lambda: len({frozenset(node.look()) for node in nodes}) == 1, AGREE_SECONDS, "all logs are the same")
    return time.monotonic() - began


def _hungry(node: Node) -> int:
    """How many runs ended because they took too much memory."""
    runs = node.ask("/v1/runs?state=failed&sort=-time&size=200")["runs"]
    return sum(run["status"] == "out_of_memory" for run in runs)


def _is_busy(node: Node) -> bool:
    return any(worker.get("run") for worker in node.ask("/v1/status")["workers"])


def _wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.2)


def _not_now() -> str:
    """A day of the week on which nothing is, the day after tomorrow."""
    return f"{time.strftime('%a', time.localtime(time.time() + 2 * 86400)).lower()} 12:00-13:00"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _shifted_clock(file: Path) -> None:
    """Have this process read its clock with the offset in seconds that a file holds."""
    real, real_ns = time.time, time.time_ns

    def offset() -> float:
        try:
            return float(file.read_text() or 0)
        except OSError:
            return 0.0

    time.time = lambda: real() + offset()
    time.time_ns = lambda: real_ns() + round(1e9 * offset())


if __name__ == "__main__":
    from autoresearch_daemon.main import main

    _shifted_clock(Path(os.environ[CLOCK_VARIABLE]))
    main()
