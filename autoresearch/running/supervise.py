"""The loop beside a running tree: reads its pipes, looks at what it uses, says when to stop it."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from autoresearch.running import verdict, watchdog
from autoresearch.running.capture import CheckpointFile, Log
from autoresearch.running.channel import Progress, ResultChannel
from autoresearch.running.job import Job
from autoresearch.running.process import Sandboxed
from autoresearch.running.verdict import Stop
from autoresearch.words import RunStatus

_LOOK_SECONDS = 0.1
_EARLY_LOOK_SECONDS = 0.05
_EARLY_LOOKS = 20
_DISK_EVERY_LOOKS = 3
_READ_BYTES = 1 << 18
_FILES_ALLOWED = 100_000  # an empty file takes about a kilobyte of the kernel's memory, or an inode of the disk


@dataclass(slots=True)
class Watch:
    """Everything seen of one run so far."""

    job: Job
    log: Log
    checkpoint: CheckpointFile | None = None
    channel: ResultChannel = field(default_factory=ResultChannel)
    ready: bytes = b""
    peak_memory_bytes: int = 0
    cpu_ms: int = 0
    looks: int = 0


def supervise(
    running: Sandboxed,
    watch: Watch,
    deadline: float,
    on_progress: Callable[[Progress], None] | None,
    cancelled: Callable[[], bool] | None,
) -> Stop | None:
    """Watches until the program has ended (None) or must be ended (why). ``deadline`` is on the monotonic clock."""
    poller = select.poll()
    ended = os.pidfd_open(running.process.pid)
    try:
        for descriptor in (ended, *_sources(running, watch)):
            poller.register(descriptor, select.POLLIN)
        next_look = time.monotonic() + _EARLY_LOOK_SECONDS
        while True:
            wait = min(next_look, deadline) - time.monotonic()
            ready = {descriptor for descriptor, _ in poller.poll(max(0.0, 1000 * wait))}
            for descriptor in _feed(running, watch, ready):
                poller.unregister(descriptor)
            now = time.monotonic()
            stop = _over_a_cap(watch)
            if stop is None and ended not in ready:
                stop = verdict.over_time(watch.job.limits) if now >= deadline else None
                if stop is None and now >= next_look:
                    stop = _look(running, watch, on_progress, cancelled)
                    next_look = now + (_EARLY_LOOK_SECONDS if watch.looks < _EARLY_LOOKS else _LOOK_SECONDS)
            if stop is not None or ended in ready:
                return stop
    finally:
        os.close(ended)


def drain(running: Sandboxed, watch: Watch) -> None:
    """Reads what the ended processes left in the pipes."""
    left = set(_sources(running, watch))
    while left:
        left -= _feed(running, watch, left)
    watch.channel.close()


def _sources(running: Sandboxed, watch: Watch) -> dict[int, Callable[[bytes], None]]:
    pipes = running.pipes

    def started(data: bytes) -> None:
        watch.ready = (watch.ready + data)[:4096]

    sources: dict[int, Callable[[bytes], None]] = {
        pipes.output[0]: watch.log.feed,
        pipes.result[0]: watch.channel.feed,
        pipes.ready[0]: started,
    }
    if pipes.checkpoint is not None and watch.checkpoint is not None:
        sources[pipes.checkpoint[0]] = watch.checkpoint.feed
    return sources


def _feed(running: Sandboxed, watch: Watch, ready: set[int]) -> set[int]:
    """Reads once from each ready pipe. Returns those that have nothing more to give."""
    finished = set()
    for descriptor, take in _sources(running, watch).items():
        if descriptor not in ready:
            continue
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            data = b""
        if data:
            take(data)
        else:
            finished.add(descriptor)
    return finished


def _over_a_cap(watch: Watch) -> Stop | None:
    limits = watch.job.limits
    if watch.log.over_limit:
        return verdict.over_output(limits)
    if watch.checkpoint is not None and watch.checkpoint.over_limit:
        return verdict.over_checkpoint(limits)
    return verdict.over_channel() if watch.channel.over_limit else None


def _look(
    running: Sandboxed,
    watch: Watch,
    on_progress: Callable[[Progress], None] | None,
    cancelled: Callable[[], bool] | None,
) -> Stop | None:
    limits = watch.job.limits
    watch.looks += 1
    if cancelled is not None and cancelled():
        return Stop(RunStatus.CANCELLED, "stopped on request")
    if on_progress is not None and (progress := watch.channel.take_progress()) is not None:
        on_progress(progress)
    helpers = frozenset({running.first[0]} if running.first else ())
    now = watchdog.usage(running.process.pid, helpers=helpers)
    watch.cpu_ms = max(watch.cpu_ms, now.cpu_ms)
    memory = now.memory_bytes
    if memory > limits.memory_bytes:  # the quick sum counts shared pages more than once
        memory = watchdog.fair_memory(running.process.pid)
    watch.peak_memory_bytes = max(watch.peak_memory_bytes, memory)
    if watch.cpu_ms > 1000 * limits.processor_seconds:
        return verdict.over_processor_time(limits)
    if memory > limits.memory_bytes:
        return verdict.over_memory(limits, memory)
    if now.processes > limits.processes:
        return verdict.over_processes(limits)
    if watch.looks % _DISK_EVERY_LOOKS == 0 and _disk_is_over(running, watch.job):
        return verdict.over_disk(limits)
    return None


def _disk_is_over(running: Sandboxed, job: Job) -> bool:
    """The sized file systems under bubblewrap bound bytes but not files; real folders are measured, both ways."""
    if running.first is not None:
        root = f"/proc/{running.first[0]}/root"
        if any(_files_in(f"{root}{folder}") > _FILES_ALLOWED for folder in ("/tmp", "/dev/shm")):  # noqa: S108
            return True
    used = 0
    for folder in (running.scratch, job.data if job.writable_data else None):
        if folder is not None:
            size, files = watchdog.folder_usage(folder, most_files=_FILES_ALLOWED)
            if files > _FILES_ALLOWED:
                return True
            used += size
    if used or running.first is None:
        used += watchdog.unlinked_bytes(running.process.pid)
    return used > job.limits.disk_bytes


def _files_in(mount_point: str) -> int:
    try:
        status = os.statvfs(mount_point)
    except OSError:
        return 0
    return status.f_files - status.f_ffree
