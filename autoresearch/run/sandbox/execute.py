"""Runs one job in the sandbox and turns what happened into an outcome."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping

import msgspec

from autoresearch.errors import CannotRunHere, Refused, UsageError
from autoresearch.run.sandbox.capture import BoundedLog, CheckpointFile, RunProgress, printed_curve
from autoresearch.run.sandbox.cards import NO_CARD, card_of
from autoresearch.run.sandbox.job import Job, JobOutcome, Level, Used
from autoresearch.run.sandbox.obstacle import find_obstacle, get_bubblewrap
from autoresearch.run.sandbox.process import Ending, StartError, started
from autoresearch.run.sandbox.supervise import (
    RunWatch,
    StopReason,
    drain,
    failure,
    judge_result,
    memory_used,
    over_processor_time,
    supervise,
)
from autoresearch.task.printed import read_metric
from autoresearch.words import RunStatus


def execute(
    job: Job,
    *,
    level: Level,
    on_progress: Callable[[RunProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> JobOutcome:
    """Runs a job to its end, whatever it does, and returns what came of it; blocks.

    When it returns (or raises what a callback raised) every process of the run is dead. ``cancelled`` is asked about
    ten times a second. Level NONE has limits but no walls. Raises Refused for a foreign job there, UsageError for a job
    that makes no sense, CannotRunHere where its card can't be used; a sandbox that can't be started is an outcome with
    status refused.
    """
    _check(job)
    permit(level, foreign=job.foreign)
    card = card_of(job.device)
    if card is not None and level is Level.LANDLOCK:
        raise CannotRunHere(NO_CARD, hint=get_bubblewrap())
    begun = time.monotonic()
    watch = RunWatch(job, BoundedLog(job.limits.output_bytes, job.metric_name), card=card)
    if job.checkpoint_to is not None:
        watch.checkpoint = CheckpointFile(job.checkpoint_to, job.limits.checkpoint_bytes)
    try:
        with started(job, level) as running:
            stop = supervise(running, watch, begun + job.limits.seconds, on_progress, cancelled)
            ending = running.end()
            drain(running, watch)
            watch.used = watch.used.at_least(ending.used)
            stop = stop or _failed_start(watch)
            if stop is None and running.group is not None and running.group.killed_for_memory():
                stop = StopReason(
                    RunStatus.OUT_OF_MEMORY, f"the kernel ended it{memory_used(b'', watch.used, job.limits)}"
                )
            if stop is None and watch.used.cpu_ms > 1000 * job.limits.processor_seconds:
                stop = over_processor_time(job.limits)
    except StartError as error:
        stop, ending = StopReason(RunStatus.REFUSED, f"the sandbox did not start: {error}"), Ending(125, Used())
    except BaseException:
        if watch.checkpoint is not None:
            watch.checkpoint.finish(keep=False)
        raise
    finally:
        if job.talk is not None:
            job.talk.close()
    return _outcome(watch, stop, ending, level, round(1000 * (time.monotonic() - begun)))


def permit(level: Level, *, foreign: bool) -> None:
    """Whether code may run at a level, ``foreign`` when others may have written some of it. Raises Refused."""
    if foreign and level < Level.LANDLOCK:
        cause, remedy = find_obstacle()
        raise Refused(
            f"this machine has no sandbox that holds, so nothing that others wrote is run here: {cause}", hint=remedy
        )


def _check(job: Job) -> None:
    limits = job.limits
    if sys.platform != "linux":
        raise UsageError("programs can be run on Linux only", hint=find_obstacle().remedy)
    for name in (*job.copied, *job.linked, *(() if job.command else (job.entry,))):
        if name not in job.files:
            raise UsageError(f"the file {name} is not among the job's files")
    for name in job.files:
        if "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
            raise UsageError(f"{name!r} is not a plain file name")
    if any("\0" in argument for argument in (*job.build, *job.command, *job.arguments)):
        raise UsageError("an argument of the program contains a zero byte")
    folders = (*job.mounts, *([job.data] if job.data else []))
    absent = [path for path in folders if not path.expanduser().is_dir()]
    absent += [path for path in job.inputs.values() if not path.exists()]
    if absent:
        raise UsageError(f"{absent[0]} does not exist", hint="make the task's data first")
    if not (math.isfinite(limits.seconds) and min(limits.seconds, limits.processor_seconds, limits.memory_bytes) > 0):
        raise UsageError("the limits of a run must be positive numbers")
    if min(limits.disk_bytes, limits.processes, limits.output_bytes, limits.checkpoint_bytes, job.threads) < 1:
        raise UsageError("the limits of a run must be positive numbers")
    if job.artifact and ("/" in job.artifact or job.checkpoint_to is None):
        raise UsageError(f"{job.artifact!r} is no file name, or there is no folder for it")


def _failed_start(watch: RunWatch) -> StopReason | None:
    """The launcher says "ok" right before it becomes the program, and the error where it can't."""
    if watch.ready == b"ok":
        return None
    message = watch.ready.removeprefix(b"ok") or watch.log.tail(500)
    text = " ".join(message.decode(errors="replace").split()) or "the launcher ended early"
    return StopReason(RunStatus.REFUSED, f"the sandbox did not start: {text}")


def _outcome(watch: RunWatch, stop: StopReason | None, ending: Ending, level: Level, duration_ms: int) -> JobOutcome:
    job, result = watch.job, watch.channel.result
    metrics: Mapping[str, int | float] = result.metrics if result else {}
    log = watch.log.contents()
    value = result.value if result else None
    if stop is None:
        failed = failure(ending.exit_status, watch.log.tail(), watch.used, job.limits)
        if job.metric_source != "stdout":
            channel, wants_value = watch.channel, job.metric_source == "harness"
            stop = judge_result(result, channel.results, channel.complaint, failed, wants_value=wants_value)
        elif failed is None:
            stop, metrics, value = _printed(job, log)
        else:
            stop = failed
    is_ok = stop.status is RunStatus.OK
    answered = (0, 0) if watch.checkpoint is None else watch.answered or (duration_ms, watch.used.cpu_ms)
    return JobOutcome(
        status=stop.status,
        reason=stop.reason,
        value=value if is_ok and job.metric_source != "referee" else None,
        metrics=dict(metrics),
        curve=list(result.curve if result else []) or printed_curve(log.decode(errors="replace"), job.metric_name),
        log=log,
        checkpoint=watch.checkpoint.finish(keep=is_ok) if watch.checkpoint else None,
        duration_ms=duration_ms,
        sandbox=int(level),
        answered_ms=answered[0],
        answered_cpu_ms=answered[1],
        has_used_card=watch.has_used_card,
        **msgspec.structs.asdict(watch.used),
    )


def _printed(job: Job, log: bytes) -> tuple[StopReason, dict[str, float], float | None]:
    """What a program that ended well printed: its last word on the metric decides."""
    if not job.metric_name:
        return StopReason(RunStatus.OK, "finished and measured"), {}, None
    reading = read_metric(log.decode(errors="replace"), job.metric_name)
    if reading.diverged:
        stop = StopReason(RunStatus.DIVERGED, reading.divergence(job.metric_name))
    elif reading.value is None:
        stop = StopReason(RunStatus.CRASHED, f"it printed no {job.metric_name}")
    else:
        stop = StopReason(RunStatus.OK, "finished and measured")
    return stop, reading.numbers, reading.value
