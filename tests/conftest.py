"""What all tests share: properties are tested by their verdict, never by their speed."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from autoresearch.run.sandbox import probes
from tests.empty_logs import copy_empty_logs
from tests.walls import attacked_once

# Few examples, the same each time: a change is judged by what it changes. `make hunt` looks for others, many of them.
# A property that found its mistake only among more says how many it needs. The first example that fails is shown as it
# is: making it small takes minutes, and ends with the time limit instead of a message. `make shrink` makes it small.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("shrink", settings.get_profile("project"), phases=tuple(Phase))
settings.load_profile("project")

# Tests start many processes: all of them load compiled modules, whatever the caller's environment says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Threads of torch wait for each other in loops: side by side with other tests they cost many times what they compute.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests write many small files, each with a wait until it is on the disk: in memory there is nothing to wait for.
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 2 << 30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# The files with the tests that take longest, these first: what begins last is not what everybody waits for.
LONGEST_FIRST = (
    "hostile/test_training_while_asked.py",
    "run/cards/test_measuring.py",
    "hostile/test_good_at_home_alone.py",
    "docs/test_tutorial.py",
    "run/attack/test_shipped.py",
    "daemon/test_orders.py",
    "run/slurm/test_slurm.py",
    "run/sandbox/test_shipped_task.py",
    "run/attack/test_planted.py",
    "run/refereeing/test_contamination.py",
    "project/test_dqn.py",
    "sim/test_whole_nodes.py",
    "sim/test_duplicates.py",
    "run/ssh/test_ssh.py",
    "daemon/test_minds.py",
    "daemon/test_checking.py",
    "daemon/test_proving.py",
    "daemon/net/test_chaos.py",
    "services/test_requests.py",
    "hostile/test_exchange.py",
    "hostile/test_ends.py",
    "propose/test_catalogue.py",
    "cli/test_demo_cluster.py",
    "daemon/net/test_project_runs.py",
    "daemon/net/test_own_machines.py",
    "daemon/net/test_cheaters.py",
    "daemon/net/test_verification.py",
    "daemon/net/test_attesting.py",
    "daemon/net/test_first_evening.py",
    "run/refereeing/test_referee.py",
    "daemon/net/test_daemons.py",
    "daemon/net/test_fetching.py",
    "daemon/net/test_network.py",
    "experiments/test_runs.py",
    "services/test_exactly_once.py",
)
HERE = Path(__file__).parent
# After so long a slow test hangs: many times what the longest takes beside others on two cores.
SLOW_SECONDS = 1800


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--hunt N``: properties alone, N times as many examples, other ones each time; ``--shrink``: those of each run.

    Both make an example that fails small, however long that takes.
    """
    parser.addoption("--hunt", type=int, metavar="N", help="properties alone, with N times as many, random, examples")
    parser.addoption("--shrink", action="store_true", help="properties alone; examples that fail are made small")


def pytest_configure(config: pytest.Config) -> None:
    """Before tests are loaded: their own settings are added to those of the profile."""
    if config.getoption("hunt") or config.getoption("shrink"):
        settings.load_profile("shrink")


WHOLLY_SLOW = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files without a test of the kind that was asked for: loading them takes longer than many a test."""
    kind = config.option.markexpr
    if kind not in {"slow", "not slow"} or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    return ("mark.slow" not in text if kind == "slow" else bool(WHOLLY_SLOW.search(text))) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Has the longest tests begin first, within a file in order, and gives the slow ones more time before they hang."""
    ranks = {HERE / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    if config.getoption("hunt") or config.getoption("shrink"):
        items[:] = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
        for item in items:
            item.add_marker(pytest.mark.timeout(0))  # as long as it takes
    if times := config.getoption("hunt"):
        # Hypothesis has no public way to change a property's own settings from outside.
        holders = {
            (item.cls, "settings") if item.cls else (item.obj, "_hypothesis_internal_use_settings") for item in items
        }
        for holder, name in holders:
            own = getattr(holder, name, settings())
            setattr(holder, name, settings(own, max_examples=own.max_examples * times, derandomize=False))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Has the garbage collector leave alone what stays until the end: modules and tests, a million objects.

    To look for garbage among them takes a seventh of the time of loading them, and among what tests make, as often as
    Python does by itself, a tenth of the time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        gc.enable()


Report = pytest.CollectReport | pytest.TestReport
# What extras install, beside the extra that the program names where it is missing.
OPTIONAL = {
    "aiosmtpd": "demo",
    "aiosmtplib": "attest",
    "asyncssh": "ssh",
    "google_crc32c": "rlds",
    "gymnasium": "projects",
    "libp2p": "network",
    "mcp": "mcp",
    "PIL": "images",
}
MISSING = {name: extra for name, extra in OPTIONAL.items() if find_spec(name) is None}
# The interpreter's word for a missing package, and the program's.
NAMED = re.compile(r"No module named '(\w+)|pip install [^\n]*(?:\[(\w+)\]|(network)\.txt)")


def skip_missing(report: Report, path: Path, *errors: BaseException) -> Report:
    """The same report, or that it was skipped where the failure comes from a package of an extra that is missing."""
    texts = [report.longreprtext, report.capstdout, report.capstderr]
    for error in errors:
        texts += [str(error), getattr(error, "hint", "")]
    names = {next(filter(None, names)) for names in NAMED.findall("\n".join(texts))}
    missing = next((name for name, extra in MISSING.items() if names & {name, extra}), None)
    if report.failed and missing:
        report.outcome, report.longrepr = "skipped", (str(path), None, f"Skipped: {missing} is not installed")
    return report


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Report, Report]:
    """Skips a file that imports a package of an extra that is not installed."""
    return skip_missing((yield), collector.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Report, Report]:
    """Skips a test that fails for want of a package of an extra that is not installed."""
    return skip_missing((yield), item.path, *causes(call.excinfo.value if call.excinfo else None))


@pytest.fixture(scope="session", autouse=True)
def _walls() -> None:
    """What asks in this process how good the sandbox is gets the answer of one attack."""
    probes.probe_sandbox = attacked_once


@pytest.fixture(scope="session", autouse=True)
def _empty_logs() -> None:
    """New logs are copies of an empty one."""
    copy_empty_logs()


Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Makes a folder with what takes long, one time for all the processes that run tests side by side."""
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        folder, made = common / name, common / f"{name}.made"
        with FileLock(f"{folder}.lock"):
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o755)
                fill(folder)
                made.touch()
        return folder

    return make
