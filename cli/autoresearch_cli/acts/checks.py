"""What ``doctor`` looks at: one function a check, each with what it found and how to mend it.

Also among them whether this machine can run a task (files, limits, device, data, the baseline's first step). Changes
nothing.
"""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil

from autoresearch.ask.health import examine, failed, guarded, passed
from autoresearch.ask.node import Check, StatusAnswer
from autoresearch.errors import AutoresearchError, CannotRunHere
from autoresearch.extensions import GROUPS, extension_names, load_extension
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.repair import damage, databases, wrong_record
from autoresearch.run.bench import Bench, Ceiling, device_name, task_data
from autoresearch.run.executors import HERE, executor_name
from autoresearch.run.folder import Conditions
from autoresearch.run.lacking import lacking_in_list
from autoresearch.run.packages import is_installed
from autoresearch.run.preflight import forget_runs, missing_imports, preflight, way_to_packages
from autoresearch.run.proving import prove
from autoresearch.run.runner import RunSite, make_bench
from autoresearch.run.sandbox import groups
from autoresearch.run.sandbox.cards import PROCESSOR, card_of, named_devices
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import ProbeResult, detect_level
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import counted, one_line, size, value
from autoresearch.words import Result, RunStatus, WorkState
from autoresearch_cli import home, starting

OLDEST_PYTHON = (3, 11)
# So long the baseline is run for its first number; a daemon that begins waits less.
FIRST_NUMBER_SECONDS = 120


def all_checks() -> Iterator[Check]:
    """Every check but the sandbox's. Where a daemon runs, its conditions are those that its status shows."""
    yield check_python()
    yield check_torch()
    yield guarded("task", check_task)
    yield from extension_checks()
    yield guarded("executor", check_executor)
    checks = examine(home.paths(), home.environment(), home.now_ms())
    try:
        status = starting.daemon_status()
    except AutoresearchError as error:  # it runs, and answers nobody
        yield from (*checks, failed("daemon", error))
        return
    yield from merged(checks, status)
    yield check_daemon(status)


def merged(checks: list[Check], status: StatusAnswer | None) -> list[Check]:
    """The checks of a home, with the conditions of its running daemon in place of those found from outside."""
    if status is None:
        return checks
    ailing = {condition.name for condition in status.conditions}
    return [check for check in checks if check.result == Result.OK and check.name not in ailing] + status.conditions


def log_checks() -> Iterator[Check]:
    """Whether the databases are whole, every record has its hash and signature, every blob its hash: reads all."""
    yield from map(check_database, databases(home.paths()))
    yield guarded("records", check_records)
    yield guarded("files", check_files)


def check_database(file: Path) -> Check:
    """Whether SQLite finds a database whole."""
    if wrong := damage(file):
        detail = f"{file} is damaged: {wrong}"
        fix = "autoresearch down && autoresearch node repair"
        return Check(name="database", result=Result.FAILED, detail=detail, fix=fix)
    return passed("database", f"{file}: {size(file.stat().st_size)}, whole")


def check_records() -> Check:
    """Whether each stored record still has its signature; else the first that is wrong, by the order of time."""
    with Log.open(home.paths().log, home.manifest().network, read_only=True) as log:
        if wrong := wrong_record(log):
            fix = "autoresearch down && autoresearch node repair: peers send what they have of the rest"
            return Check(name="records", result=Result.FAILED, detail=wrong, fix=fix)
        count = log.records.count()
    return passed("records", f"{counted(count, 'record')}, each with its hash and its author's signature")


def check_files() -> Check:
    """Whether each blob has the bytes that its hash names. Raises Refused with the first that has not."""
    with BlobStore(home.paths().blobs, read_only=True) as blobs:
        whole = [blob.sha256 for blob in blobs.stored() if blobs.has(blob.sha256)]
        for name in whole:
            blobs.open(name).close()
    return passed("files", f"{counted(len(whole), 'blob')}, each with its hash")


def check_python() -> Check:
    """Whether this Python is one of those that are tested."""
    detail = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Check(name="python", result=Result.FAILED, detail=detail, fix="install Python 3.11 or newer")
    return passed("python", detail)


def check_torch() -> Check:
    """Whether torch is installed; importing it would take seconds."""
    if importlib.util.find_spec("torch") is None:
        return Check(name="torch", result=Result.FAILED, detail="torch is not installed", fix="pip install torch")
    return passed("torch", "installed")


def check_executor() -> Check:
    """Whether what carries out runs by the settings is there: without it no daemon starts."""
    return passed("executor", executor_name(home.settings().executor) or HERE)


def extension_checks() -> Iterator[Check]:
    """The extensions of each group, with those that need something else; and each one that is broken."""
    for group in GROUPS:
        names = []
        for name in extension_names(group):
            try:
                load_extension(group, name)
                names.append(one_line(name, 40))
            except CannotRunHere as error:
                names.append(f"{one_line(name, 40)} (off: {error}: {error.hint})")
            except AutoresearchError as error:
                yield Check(name="extensions", result=Result.WARNING, detail=str(error), fix=error.hint)
        yield passed("extensions", f"{group}: {', '.join(names) or 'none'}")


def check_task() -> Check:
    """Whether the task that this node works on is whole, and asks for no more than this machine allows."""
    from autoresearch.run.bench import Ceiling

    task = load_task(home.task_folder(""))
    Ceiling.of(home.settings().work).check(task)
    return passed("task", f"{task.name}, {task.folder}")


def check_daemon(status: StatusAnswer | None) -> Check:
    """Whether the daemon answers, and does not wait for something."""
    if status is None:
        return Check(name="daemon", result=Result.WARNING, detail="it is not running", fix="autoresearch up")
    result = Result.WARNING if status.state == WorkState.WAITING else Result.OK
    return Check(name="daemon", result=result, detail=f"process {status.pid}, {status.state}: {status.reason}")


def check_sandbox(level: Level, probes: Sequence[ProbeResult]) -> Check:
    """How well programs are walled in here, by the attacks that were tried."""
    detail = f"{level.label}: {level.sentence}; {groups.sentence()}"
    if level is Level.NONE:
        missing = next((probe for probe in probes if not probe.blocked), None)
        detail += f"; {missing.name}: {missing.detail}" if missing else ""
    if level >= Level.BUBBLEWRAP:
        return passed("sandbox", detail)
    cause, fix = find_obstacle()
    detail += f"; {cause}"
    result = Result.WARNING if level >= home.settings().work.minimum_sandbox and level > Level.NONE else Result.FAILED
    return Check(name="sandbox", result=result, detail=detail, fix=fix)


def check_cards(level: Level) -> Iterator[Check]:
    """Whether each card that runs may get computes in the sandbox. Settings that can't be read name none."""

    def check(device: str) -> Check:
        card = card_of(device)
        assert card is not None, "asked of cards only"
        free, total = (amount >> 20 for amount in prove(card.uuid, level))
        return passed(device, f"{card.model} computes in the sandbox, {free} of {total} MiB are free; {card.uuid}")

    try:
        devices = named_devices(home.settings().work.device)
    except AutoresearchError:
        return
    for device in devices:
        if device != PROCESSOR:
            yield guarded(device, partial(check, device))


def task_checks(folder: str) -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    task = load_task(home.task_folder(folder))
    yield passed("task", f"{task.name} in {task.folder}")
    ceiling = Ceiling.of(home.settings().work)

    def limits() -> Check:
        ceiling.check(task)
        return passed("limits", f"{task.limits.memory_mib} MiB of memory and the rest are allowed")

    checks = [guarded("limits", limits), _memory(task), _device(task)]
    level, _ = detect_level()
    checks.append(_sandbox(level))
    yield from checks
    if any(check.result == Result.FAILED for check in checks):
        return
    paths, threads = home.paths(), home.settings().work.threads
    if lacking := lacking_in_list(task):
        yield Check(
            name="list", result=Result.WARNING,
            detail=f"its list of packages lacks {', '.join(lacking)}, which its files import",
            fix=way_to_packages(task, ()),
        )  # fmt: skip
    if task.packages and not is_installed(task, paths.environments):
        yield Check(
            name="packages", result=Result.FAILED,
            detail=f"{counted(len(task.packages), 'package')} not installed here yet",
            fix=f"autoresearch task allow {shlex.quote(str(task.folder))}",
        )  # fmt: skip
        return
    conditions = Conditions(
        ceiling=ceiling, threads=threads, device=home.first_device(), foreign=level >= Level.LANDLOCK
    )
    with scratch_folder(paths.spool) as scratch:
        place = RunSite(level, paths.task_data, paths.environments, paths.allowed)
        try:
            bench = make_bench(task, conditions, place, scratch.folder)
        except AutoresearchError as error:
            yield Check(name="packages", result=Result.FAILED, detail=str(error), fix=error.hint)
            return
        for name, check in (("packages", _packages), ("imports", _imports), ("data", _data), ("baseline", _baseline)):
            outcome = guarded(name, partial(check, task, bench))
            yield outcome
            if outcome.result == Result.FAILED:
                return


def _sandbox(level: Level) -> Check:
    if level >= Level.LANDLOCK:
        return passed("sandbox", level.sentence)
    cause, fix = find_obstacle()
    detail = f"there is none, so only your own programs run: {cause}"
    return Check(name="sandbox", result=Result.WARNING, detail=detail, fix=fix)


def _memory(task: Task) -> Check:
    free = psutil.virtual_memory().available >> 20
    most = task.limits.memory_mib
    if free >= most:
        return passed("memory", f"{free} MiB are free")
    return Check(
        name="memory", result=Result.WARNING, detail=f"a run may use {most} MiB, and {free} MiB are free now",
        fix="end other programs first, or a run may run out of memory",
    )  # fmt: skip


def _device(task: Task) -> Check:
    device = home.first_device()
    wants = b"cuda" in task.baseline.lower() and b"cpu" not in task.baseline.lower()
    if device == "cpu" and wants:
        return Check(
            name="device", result=Result.WARNING, detail="the program speaks of CUDA alone, and runs here use the CPU",
            fix="nvidia-smi shows whether there is a card; then: autoresearch node config set work.device cuda",
        )  # fmt: skip
    return passed("device", f"{device}: {device_name(device)}")


def _packages(_: Task, bench: Bench) -> Check:
    if bench.python is None:
        return passed("packages", f"those of the node's own Python, {sys.executable}")
    return passed("packages", f"Python {bench.python.version}, {bench.python.executable}")


def _imports(task: Task, bench: Bench) -> Check:
    if missing := missing_imports(task, bench):
        return Check(
            name="imports", result=Result.FAILED, detail=f"not installed: {', '.join(missing)}",
            fix=way_to_packages(task, missing),
        )  # fmt: skip
    return passed("imports", "every module at the top of the files is here")


def _data(task: Task, bench: Bench) -> Check:
    place = task_data(task, bench)
    detail = "the task has none" if place is None else f"{counted(len(task.data), 'file')} in {place}"
    return passed("data", detail)


def _baseline(task: Task, bench: Bench) -> Check:
    forget_runs(task, bench)
    try:
        outcome = preflight(task, bench, seconds=FIRST_NUMBER_SECONDS)
    except AutoresearchError as error:
        return Check(name="baseline", result=Result.FAILED, detail=str(error), fix=error.hint)
    if outcome is None or outcome.status is RunStatus.CANCELLED:
        detail = f"it imports and takes its first step on {bench.device}"
    elif outcome.status is RunStatus.TIMED_OUT:
        detail = f"it runs without an error on {bench.device}; it printed no result in {FIRST_NUMBER_SECONDS} s"
    else:
        number = "" if outcome.value is None else f": {task.metric.name} {value(outcome.value)}"
        detail = f"it ran to its end on {bench.device}{number}"
    return passed("baseline", detail)
