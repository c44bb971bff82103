"""The words for states and reasons, shared by CLI, API, pages and log. A state without words here does not exist."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """How one execution ended."""

    OK = "ok"
    DIVERGED = "diverged"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_LIMIT = "output_limit"
    DISK_LIMIT = "disk_limit"
    PROCESS_LIMIT = "process_limit"
    INVALID = "invalid"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


RUN_STATUS_SENTENCES: dict[RunStatus, str] = {
    RunStatus.OK: "finished and measured",
    RunStatus.DIVERGED: "the loss became infinite or not a number",
    RunStatus.CRASHED: "the program stopped with an error",
    RunStatus.TIMED_OUT: "it ran longer than the task allows and was stopped",
    RunStatus.OUT_OF_MEMORY: "it needed more memory than the task allows and was stopped",
    RunStatus.OUTPUT_LIMIT: "it printed more than the task allows and was stopped",
    RunStatus.DISK_LIMIT: "it wrote more to disk than the task allows and was stopped",
    RunStatus.PROCESS_LIMIT: "it started more processes than the task allows",
    RunStatus.INVALID: "the harness refused the model",
    RunStatus.REFUSED: "it was not started: a check before the run said no",
    RunStatus.CANCELLED: "a person or the daemon stopped it",
    RunStatus.ABANDONED: "the daemon ended while it was in hand",
}
