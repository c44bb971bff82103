"""The loop beside a running tree: reads its pipes, looks at what it uses, says when to stop it.

Also how what was seen becomes a status and a sentence.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from autoresearch.run.sandbox import capture, watchdog
from autoresearch.run.sandbox.cards import PROCESSOR, Card
from autoresearch.run.sandbox.job import MIB, Job, JobLimits, Used
from autoresearch.run.sandbox.process import Sandboxed
from autoresearch.run.sandbox.queues import full_socket
from autoresearch.words import RunStatus

_SIGNS = (
    (
        RunStatus.OUT_OF_MEMORY,
        rb"MemoryError|bad_alloc|can't allocate memory|CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY"
        rb"|RESOURCE_EXHAUSTED",
    ),
    (RunStatus.DISK_LIMIT, rb"No space left on device|\[Errno 27\] File too large"),
    (RunStatus.PROCESS_LIMIT, rb"BlockingIOError: \[Errno 11\]|can't start new thread|fork: retry"),
)
_OF_CARD = rb"CUDA|GPU \d|HIP out of memory|hipError"
# torch says it in two forms: total capacity of 10.00 GiB, and before version 2.1 (GPU 0; 10.00 GiB total capacity; …).
_CARD_TOTAL = rb"total capacity of ([0-9.]+ [KMGT]iB)|([0-9.]+ [KMGT]iB) total capacity"
_CARD_IN_USE = rb"this process has ([0-9.]+ [KMGT]iB) memory in use|([0-9.]+ [KMGT]iB) already allocated"
_SIGXFSZ = 25
_SIGNALS = {
    9: "killed",
    11: "segmentation fault",
    6: "aborted",
    15: "terminated",
    7: "bus error",
    8: "arithmetic error",
}


def _by_signal(number: int) -> str:
    return f"the program ended by signal {number} ({_SIGNALS.get(number, 'signal')})"


# The reason of a program that neither ended by itself nor was stopped by the supervisor: so the kernel frees memory.
KILLED = _by_signal(9)


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why the supervisor ended a run."""

    status: RunStatus
    reason: str


def over_processor_time(limits: JobLimits) -> StopReason:
    """Too much processor time, of all its processes and threads together."""
    text = f"stopped after {limits.processor_seconds:.1f} s of processor time, more than its budget may cost here"
    return StopReason(RunStatus.OVER_BUDGET, text)


def memory_used(log_tail: bytes, used: Used, limits: JobLimits) -> str:
    """What a program that ran out of memory used and might use, as the end of a sentence; of its card, as torch says.

    What was on the card when it asked for more is its peak there.
    """
    if total := re.search(_CARD_TOTAL, log_tail):
        in_use = re.search(_CARD_IN_USE, log_tail)
        usage = f"it used {(in_use[1] or in_use[2]).decode()} of its card, which has" if in_use else "its card has"
        return f": {usage} {(total[1] or total[2]).decode()}"
    if re.search(_OF_CARD, log_tail):
        return " on its card"
    return f": it used {used.peak_memory_bytes // MIB} MiB of memory, the limit is {limits.memory_bytes // MIB} MiB"


def over_disk(limits: JobLimits) -> StopReason:
    """Too many bytes or files on disk."""
    return StopReason(
        RunStatus.DISK_LIMIT, f"it wrote more than {limits.disk_bytes // MIB} MiB to disk or too many files"
    )


def failure(exit_status: int, log_tail: bytes, used: Used, limits: JobLimits) -> StopReason | None:
    """What an exit status says, with the log's end as a hint; None for success."""
    if exit_status == 0:
        return None
    if exit_status == 128 + _SIGXFSZ:
        return StopReason(RunStatus.DISK_LIMIT, "it wrote a file larger than its disk limit")
    for status, pattern in _SIGNS:
        if match := re.search(pattern, log_tail):
            text = f"the program stopped: {match.group().decode()}"
            return StopReason(
                status, text + (memory_used(log_tail, used, limits) if status is RunStatus.OUT_OF_MEMORY else "")
            )
    if exit_status > 128:
        return StopReason(RunStatus.CRASHED, _by_signal(exit_status - 128))
    last = log_tail.strip().rsplit(b"\n", 1)[-1].decode(errors="replace")[:200]
    return StopReason(RunStatus.CRASHED, f"the program ended with status {exit_status}" + (f": {last}" if last else ""))


def judge_result(
    result: capture.HarnessResult | None,
    count: int,
    complaint: str,
    failed: StopReason | None,
    *,
    wants_value: bool = True,
) -> StopReason:
    """The status of a run that the harness ends; ``wants_value`` when it measures it as well."""
    if count > 1:
        return StopReason(RunStatus.INVALID, "the result channel carried more than one result")
    if result is None:
        return failed or StopReason(RunStatus.CRASHED, complaint or "the program ended without a result")
    if result.status == "ok":
        if wants_value and result.value is None:
            return StopReason(RunStatus.CRASHED, "the harness ended the run without a value")
        return failed or StopReason(RunStatus.OK, "finished and measured")
    status = RunStatus(result.status)
    return StopReason(status, " ".join(result.reason.split()) or f"the harness says {status.value}")


_LOOK_SECONDS = 0.1
_EARLY_LOOK_SECONDS = 0.05
_EARLY_LOOKS = 20
_DISK_EVERY_LOOKS = 3
_BESIDE_EVERY_LOOKS = 3
_ALL_EVERY_LOOKS = 9
_READ_BYTES = 1 << 18
_LINES_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Beside:
    """Bytes that no process has: in sockets of a run, in its files in memory and in its page tables.

    Of the machine since it began: by how much its shared memory grew, and what it can give less.
    """

    sockets: int = 0
    files: int = 0
    tables: int = 0
    shared: int = 0
    lost: int = 0


@dataclass(slots=True)
class RunWatch:
    """Everything seen of one run so far."""

    job: Job
    log: capture.BoundedLog
    checkpoint: capture.CheckpointFile | None = None
    channel: capture.ResultChannel = field(default_factory=capture.ResultChannel)
    ready: bytes = b""
    used: Used = field(default_factory=Used)
    looks: int = 0
    card: Card | None = None
    has_used_card: bool = False
    last_progress: capture.RunProgress = field(default_factory=lambda: capture.RunProgress(0.0))
    printed: tuple[int, float] = (0, 0.0)  # bytes when lines were told last, and when that was
    beside: Beside = field(default_factory=Beside)
    most_free: int = 0  # bytes that the machine could give, at best, since the run began
    least_shared: int = 1 << 62  # bytes of its shared memory
    answered: tuple[int, int] | None = None  # wall-clock and processor ms when the first byte of its checkpoint came


def supervise(
    running: Sandboxed,
    watch: RunWatch,
    deadline: float,
    on_progress: Callable[[capture.RunProgress], None] | None,
    cancelled: Callable[[], bool] | None,
) -> StopReason | None:
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
            answers = watch.answered is None and watch.checkpoint is not None and watch.checkpoint.received > 0
            next_look = now if answers else next_look
            stop = _over_a_cap(watch)
            if stop is None and ended not in ready:
                text = f"stopped after {watch.job.limits.seconds:g} s, the limit"
                stop = StopReason(RunStatus.TIMED_OUT, text) if now >= deadline else None
                if stop is None and now >= next_look:
                    stop = _look(running, watch, on_progress, cancelled)
                    if answers:
                        begun = deadline - watch.job.limits.seconds
                        watch.answered = round(1000 * (now - begun)), watch.used.cpu_ms
                    next_look = now + (_EARLY_LOOK_SECONDS if watch.looks < _EARLY_LOOKS else _LOOK_SECONDS)
            if stop is not None or ended in ready:
                return stop
    finally:
        os.close(ended)


def drain(running: Sandboxed, watch: RunWatch) -> None:
    """Reads what the ended processes left in the pipes."""
    left = set(_sources(running, watch))
    while left:
        left -= _feed(running, watch, left)
    watch.channel.close()


def _sources(running: Sandboxed, watch: RunWatch) -> dict[int, Callable[[bytes], None]]:
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


def _feed(running: Sandboxed, watch: RunWatch, ready: set[int]) -> set[int]:
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


def _over_a_cap(watch: RunWatch) -> StopReason | None:
    if watch.checkpoint is not None and watch.checkpoint.over_limit:
        mib = watch.job.limits.checkpoint_bytes // MIB
        return StopReason(RunStatus.OUTPUT_LIMIT, f"its checkpoint is larger than {mib} MiB")
    if watch.channel.over_limit:
        return StopReason(RunStatus.OUTPUT_LIMIT, "it wrote more to the result channel than any harness does")
    return None


def _look(
    running: Sandboxed,
    watch: RunWatch,
    on_progress: Callable[[capture.RunProgress], None] | None,
    cancelled: Callable[[], bool] | None,
) -> StopReason | None:
    limits = watch.job.limits
    watch.looks += 1
    if watch.card is not None and not watch.has_used_card:
        watch.has_used_card = watchdog.has_open(running.process.pid, watch.card.node)
    if cancelled is not None and cancelled():
        return StopReason(RunStatus.CANCELLED, "stopped on request")
    if on_progress is not None and (progress := _news(watch)) is not None:
        on_progress(progress)
    now = watchdog.usage(running.process.pid, ours=running.keepers())
    memory = _memory(running, watch, now)
    counted = running.group.cpu_ms() if running.group else 0
    watch.used = watch.used.at_least(Used(max(now.cpu_ms, counted), memory))
    if watch.used.cpu_ms > 1000 * limits.processor_seconds:
        return over_processor_time(limits)
    if memory > limits.memory_bytes:
        text = f"it used {memory // MIB} MiB of memory, the limit is {limits.memory_bytes // MIB} MiB"
        return StopReason(RunStatus.OUT_OF_MEMORY, text)
    if now.processes > limits.processes:
        return StopReason(RunStatus.PROCESS_LIMIT, f"it started more than {limits.processes} processes")
    has_own_files = bool(watch.ready)  # until then its keeper may still see those of the machine
    if has_own_files and watch.looks % _DISK_EVERY_LOOKS == 0 and _disk_is_over(running, watch.job):
        return over_disk(limits)
    return None


def _memory(running: Sandboxed, watch: RunWatch, now: watchdog.Usage) -> int:
    """Bytes of its processes, of its files in memory and of the kernel for it, as far as they are looked for.

    The quick sum counts shared pages more than once and sees nothing in pipes or page tables. Where those could be
    above the limit with it, or the machine lost more than the limit since the run began, all is counted one by one.
    """
    limit, beside, has_lost = watch.job.limits.memory_bytes, watch.beside, False
    if watch.looks % _BESIDE_EVERY_LOOKS == 0:
        beside = watch.beside = _beside(running, watch)
        has_lost = max(beside.lost, beside.shared) > limit and watch.looks % _ALL_EVERY_LOOKS == 0
    memory = now.memory_bytes + beside.sockets + beside.files
    per_socket = full_socket() if running.walled and not running.queues else 0
    unseen = beside.tables + now.files * max(watchdog.FULL_PIPE, per_socket)
    if memory + unseen > limit or has_lost:
        memory = beside.sockets + watchdog.fair_memory(
            running.process.pid, in_files=beside.files, in_others=beside.shared, per_socket=per_socket
        )
    return memory


def _beside(running: Sandboxed, watch: RunWatch) -> Beside:
    keepers = running.keepers()
    sockets = running.queues.held_bytes(*keepers) if running.queues and len(keepers) == 1 else 0
    files = 0 if running.written or not watch.ready else sum(used for used, _ in map(_used, _roots(running)))
    tables = sum(map(watchdog.page_tables, watchdog.descendants(running.process.pid)))
    free, shared = watchdog.machine_memory()
    watch.most_free, watch.least_shared = max(watch.most_free, free), min(watch.least_shared, shared)
    return Beside(sockets, files, tables, shared - watch.least_shared, watch.most_free - free)


def _news(watch: RunWatch) -> capture.RunProgress | None:
    """How far it is, where it says so; and once a second what it printed, with the loss in that."""
    progress, (received, told_at), now = watch.channel.take_progress(), watch.printed, time.monotonic()
    watch.last_progress = progress or watch.last_progress
    if watch.log.received == received or now - told_at < _LINES_SECONDS:
        return progress
    watch.printed, text = (watch.log.received, now), watch.log.tail().decode(errors="replace")
    loss = watch.last_progress.loss
    if loss is None and (losses := capture.printed_curve(text)):
        loss = losses[-1]
    return msgspec.structs.replace(watch.last_progress, loss=loss, lines=capture.last_lines(text))


def _disk_is_over(running: Sandboxed, job: Job) -> bool:
    """The sized file systems under bubblewrap bound bytes but not files; real folders are measured, both ways."""
    if not running.written and any(files > job.limits.files for _, files in map(_used, _roots(running))):
        return True
    used = 0
    for folder in (*running.written, *((job.data,) if job.data is not None and job.writable_data else ())):
        size, files = watchdog.folder_usage(folder, most_files=job.limits.files)
        if files > job.limits.files:
            return True
        used += size
    if used or running.written or job.device != PROCESSOR:  # on a card it may have files in memory
        used += watchdog.unlinked_bytes(running.process.pid)
    return used > job.limits.disk_bytes


def _roots(running: Sandboxed) -> list[str]:
    """The file systems in memory that a run writes under bubblewrap."""
    return [f"/proc/{keeper}/root{folder}" for keeper in running.keepers() for folder in ("/tmp", "/dev/shm")]  # noqa: S108


def _used(mount_point: str) -> tuple[int, int]:
    """Bytes and files in it."""
    try:
        status = os.statvfs(mount_point)
    except OSError:
        return 0, 0
    return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_files - status.f_ffree
