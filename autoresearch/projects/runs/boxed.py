"""Runs of a project in the sandbox: for code that other participants wrote."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, CannotRunHere, Refused
from autoresearch.projects.components.trusting import is_fetched
from autoresearch.projects.exchange.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.projects.own_process.messages import Checked, Done, Failed, Figures, Message, Order, encode, unmarked
from autoresearch.projects.own_process.recording import CURVE_POINTS, METRICS
from autoresearch.projects.runs.interrupting import Interrupted, RunStopped
from autoresearch.projects.runs.packing import packed_code
from autoresearch.running import (
    Interpreter,
    Job,
    Level,
    Limits,
    Outcome,
    Progress,
    Talk,
    detect_level,
    execute,
    scratch_folder,
)
from autoresearch.sanitise import one_line
from autoresearch.words import RunStatus

_COMMAND = ("python", "-m", "autoresearch.projects.inside", "order")
# After the first Ctrl-C a run has so long to end and to leave what it learned.
GRACE_SECONDS = 10.0
_LARGEST, _LARGEST_COUNT = 1e300, 2**53


@dataclass(frozen=True, slots=True)
class Box:
    """The sandbox of this machine, what a run in it may use, and what it is never shown (``secrets``).

    Below ``least`` nothing is run.
    """

    level: Level
    limits: Limits = field(default_factory=Limits)
    threads: int = 1
    device: str = "cpu"
    least: Level = Level.LANDLOCK
    secrets: tuple[Path, ...] = ()


def box_here() -> Box:
    """The best sandbox that holds on this machine, with the usual limits."""
    return Box(detect_level()[0])


def do_boxed_run(
    order: Order,
    box: Box,
    log: Path,
    on_figures: Callable[[Figures], None],
    *,
    others: Sequence[str],
    python: Interpreter | None = None,
) -> Done:
    """Do a run in the sandbox, with another Python if one is given.

    Ctrl-C asks it to stop and keep what it learned; a second one kills it.

    What it learned is left in the order's ``out``.

    ``others`` are the components that other participants wrote, for the sentence where there is no sandbox.

    Raises:
        Refused: there is no sandbox here, or the project can't be shown to it.
        RunStopped: a person stopped it, and it did not end; nothing is kept.
        DamagedState: what it left is no learned state.
        AutoresearchError: a component is missing or wrong, raised an error, or went over a limit.
    """
    began = time.monotonic()

    def tell(step: Progress) -> None:
        episodes = round(step.fraction * order.episodes)
        on_figures(Figures(episodes, step.step, time.monotonic() - began, step.reward))

    with scratch_folder() as scratch:
        told, outcome = _executed(order, box, log, scratch.folder, tell, others, python)
        found = next((each for each in reversed(told) if isinstance(each, Done)), None)
        if found is None or outcome.checkpoint is None:
            raise _ended(outcome, log)
        left = outcome.checkpoint.replace(scratch.folder / LEARNED)
        unpack_learned(left, Path(order.out))
    return _plausible(found, time.monotonic() - began)


def check_boxed(
    order: Order, box: Box, log: Path, *, others: Sequence[str], python: Interpreter | None = None
) -> list[Checked]:
    """Load every component of a project in the sandbox. Raises as ``do_boxed_run`` does."""
    with scratch_folder() as scratch:
        told, outcome = _executed(order, box, log, scratch.folder, lambda _: None, others, python)
    found = [each for each in told if isinstance(each, Checked)]
    if {each.key for each in found} != {each.key for each in order.project.all()}:
        raise _ended(outcome, log)
    return found


def _executed(
    order: Order,
    box: Box,
    log: Path,
    scratch: Path,
    on_progress: Callable[[Progress], None],
    others: Sequence[str],
    python: Interpreter | None,
) -> tuple[list[Message], Outcome]:
    if box.level < max(box.least, Level.LANDLOCK):
        wrote = "another participant wrote" if len(others) == 1 else "other participants wrote"
        raise Refused(
            f"{wrote} {', '.join(others[:3])}, and this machine has no sandbox that holds",
            hint="install bubblewrap (apt install bubblewrap), or read the code and use --trust",
        )
    code, project = packed_code(order.project, box.secrets, within=is_fetched(order.project))
    files = {
        "project.zip": code,
        "order.json": encode(msgspec.structs.replace(order, project=project, learned="", out="")),
    }
    if order.learned:
        pack_learned(Path(order.learned), scratch / BEGIN)
        files[BEGIN] = (scratch / BEGIN).read_bytes()
    ours, theirs = Talk.pair()
    job = Job(
        files=files,
        command=_COMMAND,
        linked=tuple(files),
        artifact=LEARNED,
        checkpoint_to=scratch,
        limits=box.limits,
        threads=box.threads,
        device=box.device,
        seed=order.seed,
        budget=order.episodes,
        metric_source="stdout",
        parse=lambda _: {},
        python=python,
        library=True,
        talk=theirs,
    )
    with Interrupted() as interrupted:
        asked_at = math.inf

        def is_over() -> bool:
            """Ask the run to end, the first time; say whether it was asked too long ago."""
            nonlocal asked_at
            if interrupted.asked and asked_at == math.inf:
                asked_at = time.monotonic()
                ours.close()  # which is the question
            return time.monotonic() - asked_at > (GRACE_SECONDS if order.episodes else 0)

        try:
            outcome = execute(job, level=box.level, on_progress=on_progress, cancelled=is_over)
        finally:
            ours.close()
            theirs.close()
    told, said = unmarked(outcome.log)
    log.write_bytes(said)
    if outcome.status is RunStatus.CANCELLED:
        late = f"the run was stopped: it did not end within {GRACE_SECONDS:g} s, so nothing is kept"
        raise RunStopped(late if order.episodes else "the check was stopped", hint=f"see {log}")
    if outcome.status is RunStatus.OK and told and isinstance(failure := told[-1], Failed):
        raise _failure(failure, log)
    return [_unless(each, stopped=interrupted.asked) for each in told], outcome


def _unless(message: Message, *, stopped: bool) -> Message:
    """A run says that it was stopped only where somebody did."""
    return (
        msgspec.structs.replace(message, stopped=message.stopped and stopped) if isinstance(message, Done) else message
    )


def _failure(message: Failed, log: Path) -> AutoresearchError:
    error = AutoresearchError(one_line(message.error, 400), hint=one_line(message.hint, 200) or f"see {log}")
    error.exit_status = message.exit_status if 0 < message.exit_status < 128 else 1
    return error


def _ended(outcome: Outcome, log: Path) -> AutoresearchError:
    """Why a run in the sandbox has no result."""
    kind = _SETTINGS.get(outcome.status)
    hint = f"autoresearch config set {kind} allows more" if kind else f"see {log}"
    if outcome.status is RunStatus.REFUSED:
        return CannotRunHere(one_line(outcome.reason, 300), hint="autoresearch doctor")
    reason = "it ended before the run was done" if outcome.status is RunStatus.OK else outcome.reason
    return AutoresearchError(f"the run in the sandbox failed: {one_line(reason, 300)}", hint=hint)


_SETTINGS = {
    RunStatus.TIMED_OUT: "work.max_seconds",
    RunStatus.OUT_OF_MEMORY: "work.max_memory_mib",
    RunStatus.DISK_LIMIT: "work.max_disk_mib",
    RunStatus.PROCESS_LIMIT: "work.max_processes",
}


def _plausible(done: Done, seconds: float) -> Done:
    """What a run told of itself, without what can't be: a component may have told it."""
    metrics = {name: value for name, value in done.metrics.items() if name in METRICS and abs(value) <= _LARGEST}
    for name in ("episodes", "steps"):
        metrics[name] = min(max(int(metrics.get(name, 0)), 0), _LARGEST_COUNT)
    curve = done.curve[:CURVE_POINTS] if all(abs(each) <= _LARGEST for each in done.curve) else []
    took = done.seconds if 0 <= done.seconds <= seconds else seconds
    return msgspec.structs.replace(done, metrics=metrics, curve=curve, seconds=took)
