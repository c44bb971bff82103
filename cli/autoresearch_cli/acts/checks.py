"""What ``doctor`` looks at: one function a check, each with what it found and how to mend it.

Also among them whether this machine can run a task (files, limits, device, data, the baseline's first step). Changes
nothing.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.run.bench import Bench, Ceiling, device_name, task_data
from autoresearch.run.folder import Conditions
from autoresearch.run.packages import is_installed
from autoresearch.run.preflight import forget_runs, has_device, missing_imports, preflight, way_to_packages
from autoresearch.run.runner import Place, make_bench
from autoresearch.run.sandbox import groups
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import ProbeResult, detect_level
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.settings import named_devices
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import counted, duration, size, value
from autoresearch.trust.identity import load_identity
from autoresearch.words import RunStatus
from autoresearch_cli import here, starting
from autoresearch_cli.models import Check

OK, WARNING, FAILED = "ok", "warning", "failed"
OLDEST_PYTHON = (3, 11)
# So long the baseline is run for its first number; a daemon that begins waits less.
FIRST_NUMBER_SECONDS = 120


def all_checks() -> Iterator[Check]:
    """Every check but the sandbox's, in the order in which a person would ask."""
    for name, look in CHECKS.items():
        yield guarded(name, look)


def guarded(name: str, look: Callable[[], Check]) -> Check:
    """The check, or what kept it from being made."""
    try:
        return look()
    except AutoresearchError as error:
        return Check(name=name, result=FAILED, detail=str(error), fix=error.hint)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return Check(name=name, result=FAILED, detail=f"{error.strerror}{place}", fix="look at that place")


def check_python() -> Check:
    """Whether this Python is one of those that are tested."""
    detail = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Check(name="python", result=FAILED, detail=detail, fix="install Python 3.11 or newer")
    return Check(name="python", result=OK, detail=detail)


def check_torch() -> Check:
    """Whether torch is installed; importing it would take seconds."""
    if importlib.util.find_spec("torch") is None:
        return Check(name="torch", result=FAILED, detail="torch is not installed", fix="pip install torch")
    return Check(name="torch", result=OK, detail="installed")


def check_settings() -> Check:
    """Whether the settings can be read, and the devices that they name are here."""
    settings = here.settings()
    detail = f"{counted(settings.work.workers, 'worker')} on {settings.work.device}, from {here.paths().settings}"
    if missing := missing_devices(settings.work.device):
        fix = "autoresearch node config set work.device auto"
        return Check(name="settings", result=FAILED, detail=f"there is no {missing[0]} on this machine", fix=fix)
    return Check(name="settings", result=OK, detail=detail)


def check_home() -> Check:
    """Whether the folders of this node can be read, or made."""
    here.check_home()
    return Check(name="home", result=OK, detail=str(here.paths().data))


def check_task() -> Check:
    """Whether the task that this node works on is whole, and asks for no more than this machine allows."""
    from autoresearch.run.bench import Ceiling

    task = load_task(here.task_folder(""))
    Ceiling.of(here.settings().work).check(task)
    return Check(name="task", result=OK, detail=f"{task.name}, {task.folder}")


def check_disk() -> Check:
    """Whether there is room for logs, checkpoints and data."""
    folder = existing_parent(here.paths().data)
    free = shutil.disk_usage(folder).free
    detail = f"{size(free)} free at {folder}"
    least = here.settings().storage.minimum_free_mib << 20
    if free < least:
        fix = f"free some: below {size(least)} the daemon does not work (storage.minimum_free_mib)"
        return Check(name="disk", result=FAILED, detail=detail, fix=fix)
    return Check(name="disk", result=OK, detail=detail)


def check_blobs() -> Check:
    """Whether sources, logs and checkpoints fit what they may take."""
    quota = here.settings().storage.blobs_mib << 20
    with BlobStore(here.paths().blobs, read_only=True) as blobs:
        used = blobs.used_bytes()
    detail = f"{size(used)} of {size(quota)} (storage.blobs_mib)"
    if used > quota:
        fix = "own runs and the best are never deleted; allow more: autoresearch node config set storage.blobs_mib N"
        return Check(name="blobs", result=WARNING, detail=detail, fix=fix)
    return Check(name="blobs", result=OK, detail=detail)


def check_keys() -> Check:
    """Whether the keys are there and nobody else can read them."""
    try:
        identity = load_identity(here.paths().keys)
    except NotFound:
        detail = "there are no keys yet; the daemon makes them at its first start"
        return Check(name="keys", result=OK, detail=detail)
    return Check(name="keys", result=OK, detail=f"device key {identity.device.public.hex()[:16]}…, for this user only")


def check_log() -> Check:
    """Whether the log can be read, and holds this device's last record."""
    paths = here.paths()
    if not paths.log.exists():
        return Check(name="log", result=OK, detail="there is none yet; the daemon makes it at its first start")
    own = here.own_device()
    me = own.public if own else None
    with Log.open(paths.log, here.manifest().network, read_only=True) as log:
        lost = log.writer.missing_own(me) if me else None
        if lost:
            detail = f"this device signed a record number {lost.seq} that is not here: an older copy was put back"
            fix = "put the newest copy back, or accept that the history forks: autoresearch node doctor --accept-fork"
            return Check(name="log", result=FAILED, detail=detail, fix=fix)
        forked = [fork.seq for fork in log.devices.forks(me) if not fork.merged] if me else []
        if forked:
            detail = f"this device's history forked at its record {forked[0]}: later runs don't count by themselves"
            return Check(
                name="log", result=WARNING, detail=detail, fix="autoresearch down && autoresearch node id merge"
            )
        return Check(
            name="log", result=OK, detail=f"{counted(log.records.count(), 'record')}, {size(paths.log.stat().st_size)}"
        )


def check_clock() -> Check:
    """Whether the clock is not obviously wrong: before the network began, or behind this notebook's records."""
    now_ms = here.now_ms()
    network = here.manifest().network
    fix = "set the clock: timedatectl set-ntp true"
    if now_ms < network.start_ms:
        return Check(name="clock", result=FAILED, detail="it is set to a time before the network began", fix=fix)
    with Log.open(here.paths().log, network, read_only=True) as log:
        newest = log.records.newest(limit=1)
    ahead_ms = newest[0].time - now_ms if newest else 0
    if ahead_ms > network.ahead_ms:
        detail = f"the newest record here is {duration(ahead_ms)} ahead of it"
        return Check(name="clock", result=WARNING, detail=detail, fix=fix)
    return Check(name="clock", result=OK, detail="plausible")


def check_daemon() -> Check:
    """Whether the daemon answers."""
    status = starting.daemon_status()
    if status is None:
        return Check(name="daemon", result=WARNING, detail="it is not running", fix="autoresearch up")
    return Check(name="daemon", result=OK, detail=f"process {status.pid}, {status.state}: {status.reason}")


def check_sandbox() -> tuple[Check, tuple[ProbeResult, ...]]:
    """How well programs are walled in here; the attacks that were tried are the second part."""
    level, probes = detect_level(here.paths().secrets())
    detail = f"{level.label}: {level.sentence}; {groups.sentence()}"
    if level is Level.NONE:
        missing = next((probe for probe in probes if not probe.blocked), None)
        detail += f"; {missing.name}: {missing.detail}" if missing else ""
    if level is Level.BUBBLEWRAP:
        return Check(name="sandbox", result=OK, detail=detail), probes
    bubblewrap = "install bubblewrap (apt install bubblewrap)"
    fix = bubblewrap if shutil.which("bwrap") is None else "allow user namespaces to unprivileged users (sysctl)"
    result = WARNING if level >= here.settings().work.minimum_sandbox and level > Level.NONE else FAILED
    return Check(name="sandbox", result=result, detail=detail, fix=fix), probes


def missing_devices(device: str) -> list[str]:
    """The devices of a setting ``work.device`` that this machine lacks."""
    return [name for name in named_devices(device) if not has_device(name)]


def existing_parent(path: Path) -> Path:
    """The nearest folder above that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path if os.access(path, os.R_OK) else Path("/")


CHECKS: dict[str, Callable[[], Check]] = {
    "python": check_python,
    "torch": check_torch,
    "home": check_home,
    "settings": check_settings,
    "task": check_task,
    "disk": check_disk,
    "blobs": check_blobs,
    "keys": check_keys,
    "log": check_log,
    "clock": check_clock,
    "daemon": check_daemon,
}


def task_checks(folder: str) -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    task = load_task(here.task_folder(folder))
    yield Check(name="task", result=OK, detail=f"{task.name} in {task.folder}")
    ceiling = Ceiling.of(here.settings().work)

    def limits() -> Check:
        ceiling.check(task)
        return Check(
            name="limits", result=OK, detail=f"{task.limits.memory_mib} MiB of memory and the rest are allowed"
        )

    checks = [guarded("limits", limits), _memory(task), _device(task)]
    level, _ = detect_level()
    checks.append(_sandbox(level))
    yield from checks
    if any(check.result == FAILED for check in checks):
        return
    paths, threads = here.paths(), here.settings().work.threads
    if task.packages and not is_installed(task, paths.environments):
        yield Check(
            name="packages", result=FAILED, detail=f"{counted(len(task.packages), 'package')} not installed here yet",
            fix=f"autoresearch task allow {task.folder}",
        )  # fmt: skip
        return
    conditions = Conditions(
        ceiling=ceiling, threads=threads, device=here.first_device(), foreign=level >= Level.LANDLOCK
    )
    with scratch_folder(paths.spool) as scratch:
        place = Place(level, paths.task_data, paths.environments)
        try:
            bench = make_bench(task, conditions, place, scratch.folder)
        except AutoresearchError as error:
            yield Check(name="packages", result=FAILED, detail=str(error), fix=error.hint)
            return
        for name, check in (("packages", _packages), ("imports", _imports), ("data", _data), ("baseline", _baseline)):
            found = guarded(name, partial(check, task, bench))
            yield found
            if found.result == FAILED:
                return


def _sandbox(level: Level) -> Check:
    if level >= Level.LANDLOCK:
        return Check(name="sandbox", result=OK, detail=level.sentence)
    return Check(
        name="sandbox", result=WARNING, detail="there is none, so only your own programs run",
        fix="apt install bubblewrap",
    )  # fmt: skip


def _memory(task: Task) -> Check:
    free = psutil.virtual_memory().available >> 20
    most = task.limits.memory_mib
    if free >= most:
        return Check(name="memory", result=OK, detail=f"{free} MiB are free")
    return Check(
        name="memory", result=WARNING, detail=f"a run may use {most} MiB, and {free} MiB are free now",
        fix="end other programs first, or a run may run out of memory",
    )  # fmt: skip


def _device(task: Task) -> Check:
    device = here.first_device()
    wants = b"cuda" in task.baseline.lower() and b"cpu" not in task.baseline.lower()
    if device == "cpu" and wants:
        return Check(
            name="device", result=WARNING, detail="the program speaks of CUDA alone, and runs here are on the CPU",
            fix="nvidia-smi shows whether there is a card; then: autoresearch node config set work.device cuda",
        )  # fmt: skip
    return Check(name="device", result=OK, detail=f"{device}: {device_name(device)}")


def _packages(_: Task, bench: Bench) -> Check:
    if bench.python is None:
        return Check(name="packages", result=OK, detail=f"those of the node's own Python, {sys.executable}")
    detail = f"Python {bench.python.version}, {bench.python.executable}"
    return Check(name="packages", result=OK, detail=detail)


def _imports(task: Task, bench: Bench) -> Check:
    if missing := missing_imports(task, bench):
        return Check(
            name="imports", result=FAILED, detail=f"not installed: {', '.join(missing)}",
            fix=way_to_packages(task, " ".join(missing)),
        )  # fmt: skip
    return Check(name="imports", result=OK, detail="every module at the top of the files is here")


def _data(task: Task, bench: Bench) -> Check:
    place = task_data(task, bench)
    detail = "the task has none" if place is None else f"{counted(len(task.data), 'file')} in {place}"
    return Check(name="data", result=OK, detail=detail)


def _baseline(task: Task, bench: Bench) -> Check:
    forget_runs(task, bench)
    try:
        outcome = preflight(task, bench, seconds=FIRST_NUMBER_SECONDS)
    except AutoresearchError as error:
        return Check(name="baseline", result=FAILED, detail=str(error), fix=error.hint)
    if outcome is None or outcome.status is RunStatus.CANCELLED:
        detail = f"it imports and takes its first step on {bench.device}"
    elif outcome.status is RunStatus.TIMED_OUT:
        detail = f"it runs without an error on {bench.device}; it printed no result in {FIRST_NUMBER_SECONDS} s"
    else:
        number = "" if outcome.value is None else f": {task.metric.name} {value(outcome.value)}"
        detail = f"it ran to its end on {bench.device}{number}"
    return Check(name="baseline", result=OK, detail=detail)
