"""From what was seen to a status and a sentence. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autoresearch.running.channel import Result
from autoresearch.running.job import MIB, Limits
from autoresearch.words import RunStatus

_SIGNS = (
    (RunStatus.OUT_OF_MEMORY, rb"MemoryError|bad_alloc|can't allocate memory|CUDA out of memory|OutOfMemoryError"),
    (RunStatus.DISK_LIMIT, rb"No space left on device|\[Errno 27\] File too large"),
    (RunStatus.PROCESS_LIMIT, rb"BlockingIOError: \[Errno 11\]|can't start new thread|fork: retry"),
)
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
class Stop:
    """Why the supervisor ended a run."""

    status: RunStatus
    reason: str


def over_time(limits: Limits) -> Stop:
    """The wall clock ran out."""
    return Stop(RunStatus.TIMED_OUT, f"stopped after {limits.seconds:g} s, the limit")


def over_processor_time(limits: Limits) -> Stop:
    """Too much processor time, of all its processes and threads together."""
    text = f"stopped after {limits.processor_seconds:.1f} s of processor time, more than its budget may cost here"
    return Stop(RunStatus.OVER_BUDGET, text)


def over_memory(limits: Limits, used_bytes: int) -> Stop:
    """Too much resident memory."""
    text = f"it used {used_bytes // MIB} MiB of memory, the limit is {limits.memory_bytes // MIB} MiB"
    return Stop(RunStatus.OUT_OF_MEMORY, text)


def over_processes(limits: Limits) -> Stop:
    """Too many processes."""
    return Stop(RunStatus.PROCESS_LIMIT, f"it started more than {limits.processes} processes")


def over_disk(limits: Limits) -> Stop:
    """Too many bytes or files on disk."""
    return Stop(RunStatus.DISK_LIMIT, f"it wrote more than {limits.disk_bytes // MIB} MiB to disk or too many files")


def over_output(limits: Limits) -> Stop:
    """Too much text."""
    return Stop(RunStatus.OUTPUT_LIMIT, f"it printed more than {limits.output_bytes // 1024} KiB")


def over_checkpoint(limits: Limits) -> Stop:
    """Too large a checkpoint."""
    return Stop(RunStatus.OUTPUT_LIMIT, f"its checkpoint is larger than {limits.checkpoint_bytes // MIB} MiB")


def over_channel() -> Stop:
    """Too much on the result channel."""
    return Stop(RunStatus.OUTPUT_LIMIT, "it wrote more to the result channel than any harness does")


def failure(exit_status: int, log_tail: bytes) -> Stop | None:
    """What an exit status says, with the log's end as a hint; None for success."""
    if exit_status == 0:
        return None
    if exit_status == 128 + _SIGXFSZ:
        return Stop(RunStatus.DISK_LIMIT, "it wrote a file larger than its disk limit")
    for status, pattern in _SIGNS:
        if found := re.search(pattern, log_tail):
            return Stop(status, f"the program stopped: {found.group().decode()}")
    if exit_status > 128:
        return Stop(RunStatus.CRASHED, _by_signal(exit_status - 128))
    last = log_tail.strip().rsplit(b"\n", 1)[-1].decode(errors="replace")[:200]
    return Stop(RunStatus.CRASHED, f"the program ended with status {exit_status}" + (f": {last}" if last else ""))


def judge_result(
    result: Result | None, count: int, complaint: str, failed: Stop | None, *, wants_value: bool = True
) -> Stop:
    """The status of a run that the harness ends; ``wants_value`` when it measures it as well."""
    if count > 1:
        return Stop(RunStatus.INVALID, "the result channel carried more than one result")
    if result is None:
        return failed or Stop(RunStatus.CRASHED, complaint or "the program ended without a result")
    if result.status == "ok":
        if wants_value and result.value is None:
            return Stop(RunStatus.CRASHED, "the harness ended the run without a value")
        return failed or Stop(RunStatus.OK, "finished and measured")
    status = RunStatus(result.status)
    return Stop(status, " ".join(result.reason.split()) or f"the harness says {status.value}")
