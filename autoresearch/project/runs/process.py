"""Starts a project's own process, hears what it tells, and has it stop.

Also runs of a project in the sandbox, for code that other participants wrote. Its components' folders travel as one
file, without what is hidden, within bounds.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import msgspec

from autoresearch.beneath import read_beneath
from autoresearch.errors import AutoresearchError, CannotRunHere, Refused
from autoresearch.link import Link, LinkEnded, start_linked
from autoresearch.project.child.messages import (
    AnyOrder,
    ComponentChecked,
    Message,
    OrderDone,
    OrderFailed,
    RunFigures,
    RunOrder,
    StopOrder,
    encode_line,
    unmarked,
)
from autoresearch.project.child.recording import METRICS, OFFLINE_UPDATES
from autoresearch.project.components.trusting import foreign_components, is_fetched
from autoresearch.project.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.project.model import Component, Project
from autoresearch.record.kinds import AMOUNT_MAX, NUMBER_MAX
from autoresearch.run.sandbox.capture import CURVE_POINTS, RunProgress
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobChannel, JobLimits, JobOutcome, Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.text import one_line
from autoresearch.words import RunStatus


class RunStopped(AutoresearchError):
    """A run was stopped before it was done. Nothing is kept."""

    exit_status = 130


# A file of the working folder takes the place of no module (-P); the package is found where this one was.
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from autoresearch.project.child.child import main; main(int(sys.argv[2]))"
)
_ROOT = Path(__file__).parents[3]


def run_order(order: AnyOrder, log: Path, python: Interpreter | None = None) -> Iterator[Message]:
    """What a project's own process, of another Python if one is given, tells of an order until that is done.

    Of a run, a service or an actor the last is ``OrderDone``; of a check there is one ``ComponentChecked`` for each
    component. Ctrl-C asks it to stop and keep what it learned; a second one kills it.

    Raises:
        AutoresearchError: a component is missing or wrong, raised an error, or ended the process.
        KeyboardInterrupt: it was killed by a second Ctrl-C; nothing is kept.
    """
    child, checked = ProjectProcess(order, log, python), 0
    try:
        with stop_asked(child.stop):
            for message in child.messages():
                checked += isinstance(message, ComponentChecked)
                yield message
                if isinstance(message, OrderDone):
                    return
    finally:
        child.close()
    is_check = isinstance(order, RunOrder) and not order.episodes
    if not is_check or checked < len(order.project.all()):
        raise ended(log)


class ProjectProcess:
    """A project's own process, at work on an order. It ends with the thread that made it."""

    def __init__(self, order: AnyOrder, log: Path, python: Interpreter | None = None) -> None:
        self.log = log
        # One thread for each run unless the person says otherwise: small networks are slower with more.
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        with log.open("wb") as output:
            self._process, descriptor = start_linked(
                [str(python.executable) if python else sys.executable, "-P", "-c", _START, str(_ROOT)],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
            )
        self._link: Link[Message] = Link(descriptor, descriptor, Message)
        self._give(order)

    def stop(self) -> None:
        """Ask it to stop."""
        self._give(StopOrder())

    def messages(self) -> Iterator[Message]:
        """What it tells, until it ends. Raises AutoresearchError where it failed."""
        for message in self._link:
            if isinstance(message, OrderFailed):
                raise failure_of(message, self.log)
            yield message

    def close(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._link.close()

    def _give(self, message: AnyOrder | StopOrder) -> None:
        with suppress(LinkEnded):  # what it said last is in its log
            self._link.send(message)


@contextmanager
def stop_asked(stop: Callable[[], None]) -> Iterator[None]:
    """Have the first Ctrl-C or SIGTERM ask processes to stop, and the second end them at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        restore()
        stop()
        del number, frame

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()


def failure_of(message: OrderFailed, log: Path) -> AutoresearchError:
    """The error that a process, maybe a stranger's, tells of."""
    error = AutoresearchError(one_line(message.error, 400), hint=one_line(message.hint, 200) or f"see {log}")
    error.exit_status = message.exit_status if 0 < message.exit_status < 128 else 1
    return error


def ended(log: Path) -> AutoresearchError:
    """The error where a process ended without a word."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    last = f": {one_line(lines[-1], 200)}" if lines else ""
    return AutoresearchError(f"the project's process ended before the run was done{last}", hint=f"see {log}")


MOST_FILES = 2000
MOST_BYTES = 64 << 20
OWN = "project"


def packed_code(project: Project, secrets: Sequence[Path] = (), *, within: bool = False) -> tuple[bytes, Project]:
    """The code as a stored zip, and the project as it is where that is unpacked: its paths are relative.

    Of an installed component it is the component's folder, of others every file in the project or beside the
    component's file. Left out are hidden files, environments, links, and ``secrets`` with what is in them. With
    ``within`` nothing outside of the project's folder is taken.

    Raises:
        Refused: it is too large, or the project lies in the home folder itself.
    """
    hidden = frozenset(path.resolve() for path in secrets)
    buffer = io.BytesIO()
    places: dict[Path, str] = {}
    done: set[Path] = set()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        used = files = 0
        for component in project.all():
            root, place = Path(component.root), _shown(component, project)
            if place in done or not Path(component.file).is_file():
                continue
            if within and not place.resolve().is_relative_to(project.folder.resolve()):
                raise Refused(
                    f"{component.origin}: {component.key} lies outside of the project",
                    hint="what came from another participant is run only with files in its folder",
                )
            done.add(place)
            places.setdefault(root, OWN if root == project.folder else f"c{len(places)}")
            for path in _files(place, hidden, also=Path(component.file)):
                used, files = used + path.stat().st_size, files + 1
                if used > MOST_BYTES or files > MOST_FILES:
                    raise Refused(
                        f"{root} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB to show to the sandbox",
                        hint="move what is no code elsewhere",
                    )
                file.writestr(zipfile.ZipInfo(f"{places[root]}/{path.relative_to(root)}"), _code(root, path))
    components = {
        kind: {name: _moved(each, places) for name, each in members.items()}
        for kind, members in project.components.items()
    }
    inside = msgspec.structs.replace(project, folder=Path(OWN), ini=Path(OWN, project.ini.name), components=components)
    return buffer.getvalue(), inside


def _code(root: Path, path: Path) -> bytes:
    try:
        return read_beneath(root, path.relative_to(root), MOST_BYTES)
    except OSError as error:
        raise Refused(f"{path} can't be read: {error.strerror}", hint="copy the file there") from None


def _shown(component: Component, project: Project) -> Path:
    """The folder to show of a component: its root; where that is above its package, the package alone."""
    root, file = Path(component.root), Path(component.file)
    if root in (file.parent, project.folder, Path(os.path.normpath(project.folder / component.pins.get("path", "")))):
        return root
    return root / file.relative_to(root).parts[0]


def _moved(component: Component, places: dict[Path, str]) -> Component:
    root = Path(component.root)
    if root not in places:  # there is no such file, which is an error only where the component is used
        return component
    inner = Path(component.file).relative_to(root)
    return msgspec.structs.replace(component, file=f"{places[root]}/{inner}", root=places[root])


def _files(root: Path, secrets: frozenset[Path], *, also: Path) -> Iterator[Path]:
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - Path.home raises where there is none
    if home.is_relative_to(root.resolve()):
        raise Refused(
            f"{root} holds the home folder, which no sandbox is shown", hint="give the project its own folder"
        )
    for place, folders, names in os.walk(root):
        folder = Path(place)
        folders[:] = sorted(name for name in folders if _is_shown(folder / name, secrets))
        for path in (folder / name for name in sorted(names)):
            if path.is_file() and (path == also or not path.is_symlink()) and _is_shown(path, secrets):
                yield path


def _is_shown(path: Path, secrets: frozenset[Path]) -> bool:
    is_ours = not path.name.startswith(".") and path.name != "__pycache__" and not (path / "pyvenv.cfg").exists()
    return is_ours and path.resolve() not in secrets


_COMMAND = ("python", "-m", "autoresearch.project.inside", "order")
# After the first Ctrl-C a run has so long to end and to leave what it learned.
GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Box:
    """The sandbox of this machine, what a run in it may use, and what it is never shown (``secrets``).

    Below ``least`` nothing is run.
    """

    level: Level
    limits: JobLimits = field(default_factory=JobLimits)
    threads: int = 1
    device: str = "cpu"
    least: Level = Level.LANDLOCK
    secrets: tuple[Path, ...] = ()


def box_here() -> Box:
    """The best sandbox that holds on this machine, with the usual limits."""
    return Box(detect_level()[0])


def run_boxed(
    order: RunOrder,
    box: Box,
    log: Path,
    python: Interpreter | None = None,
    on_figures: Callable[[RunFigures], None] = lambda _figures: None,
) -> Sequence[Message]:
    """What a project tells of a run or a check in the sandbox, with another Python if one is given.

    Of a run there is one ``OrderDone``, and what it learned is left in the order's ``out``; of a check there is one
    ``ComponentChecked`` for each component. Ctrl-C asks a run to stop and keep what it learned; a second one kills it.

    Raises:
        Refused: there is no sandbox here, or the project can't be shown to it.
        RunStopped: a person stopped it, and it did not end; nothing is kept.
        DamagedState: what it left is no learned state.
        AutoresearchError: a component is missing or wrong, raised an error, or went over a limit.
    """
    if box.level < max(box.least, Level.LANDLOCK):
        others = foreign_components(order.project)
        wrote = "another participant wrote" if len(others) == 1 else "other participants wrote"
        cause, remedy = find_obstacle()
        raise Refused(
            f"{wrote} {', '.join(others[:3])}, and this machine has no sandbox that holds: {cause}",
            hint=f"{remedy}; or read the code and use --trust",
        )
    began = time.monotonic()

    def tell(step: RunProgress) -> None:
        episodes = round(step.fraction * order.episodes)
        on_figures(RunFigures(episodes, step.step, time.monotonic() - began, step.reward))

    with scratch_folder() as scratch:
        outcome, stopped = _executed(order, box, scratch.folder, python, tell)
        messages, rest = unmarked(outcome.log)
        log.write_bytes(rest)
        if outcome.status is RunStatus.CANCELLED:
            late = f"the run was stopped: it did not end within {GRACE_SECONDS:g} s, so nothing is kept"
            raise RunStopped(late if order.episodes else "the check was stopped", hint=f"see {log}")
        if outcome.status is RunStatus.OK and messages and isinstance(failure := messages[-1], OrderFailed):
            raise failure_of(failure, log)
        if not order.episodes:
            checks = [each for each in messages if isinstance(each, ComponentChecked)]
            if {each.key for each in checks} != {each.key for each in order.project.all()}:
                raise _ended(outcome, log)
            return checks
        done = next((each for each in reversed(messages) if isinstance(each, OrderDone)), None)
        if done is None or outcome.checkpoint is None:
            raise _ended(outcome, log)
        unpack_learned(outcome.checkpoint.replace(scratch.folder / LEARNED), Path(order.out))
    # A run says that it was stopped only where somebody did, or a component's error.
    done = msgspec.structs.replace(done, stopped=done.stopped and (stopped or bool(done.fault)))
    return [_plausible(done, time.monotonic() - began)]


def _executed(
    order: RunOrder,
    box: Box,
    scratch: Path,
    python: Interpreter | None,
    on_progress: Callable[[RunProgress], None],
) -> tuple[JobOutcome, bool]:
    """How the job ended, and whether a person asked it to."""
    code, project = packed_code(order.project, box.secrets, within=is_fetched(order.project))
    files = {
        "project.zip": code,
        "order.json": encode_line(msgspec.structs.replace(order, project=project, learned="", out="")),
    }
    if order.learned:
        pack_learned(Path(order.learned), scratch / BEGIN)
        files[BEGIN] = (scratch / BEGIN).read_bytes()
    ours, theirs = JobChannel.pair()
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
        python=python,
        library=True,
        talk=theirs,
    )
    asked_at: list[float] = []
    with stop_asked(lambda: asked_at.append(time.monotonic())):

        def is_over() -> bool:
            """Ask the run to end, if a person wants that; say whether it was asked too long ago."""
            if asked_at:
                ours.close()  # which is the question
            return bool(asked_at) and time.monotonic() - asked_at[0] > (GRACE_SECONDS if order.episodes else 0)

        try:
            outcome = execute(job, level=box.level, on_progress=on_progress, cancelled=is_over)
        finally:
            ours.close()
            theirs.close()
    return outcome, bool(asked_at)


def _ended(outcome: JobOutcome, log: Path) -> AutoresearchError:
    """Why a run in the sandbox has no result."""
    kind = _SETTINGS.get(outcome.status)
    hint = f"autoresearch node config set {kind} allows more" if kind else f"see {log}"
    if outcome.status is RunStatus.REFUSED:
        return CannotRunHere(one_line(outcome.reason, 300), hint="autoresearch node doctor")
    reason = "it ended before the run was done" if outcome.status is RunStatus.OK else outcome.reason
    return AutoresearchError(f"the run in the sandbox failed: {one_line(reason, 300)}", hint=hint)


_SETTINGS = {
    RunStatus.TIMED_OUT: "work.max_seconds",
    RunStatus.OUT_OF_MEMORY: "work.max_memory_mib",
    RunStatus.DISK_LIMIT: "work.max_disk_mib",
    RunStatus.PROCESS_LIMIT: "work.max_processes",
}


def _plausible(done: OrderDone, seconds: float) -> OrderDone:
    """What a run told of itself, without what can't be: a component may have told it."""
    metrics = {name: value for name, value in done.metrics.items() if name in METRICS and abs(value) <= NUMBER_MAX}
    for name in {"episodes", "steps", *({OFFLINE_UPDATES} & metrics.keys())}:
        metrics[name] = min(max(int(metrics.get(name, 0)), 0), AMOUNT_MAX)
    curve = done.curve[:CURVE_POINTS] if all(abs(each) <= NUMBER_MAX for each in done.curve) else []
    took = done.seconds if 0 <= done.seconds <= seconds else seconds
    return msgspec.structs.replace(done, metrics=metrics, curve=curve, seconds=took, fault=one_line(done.fault, 400))
