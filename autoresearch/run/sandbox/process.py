"""Starts one sandboxed process tree and ends it whole.

All levels come down to one handle, the leash: a pipe whose write end is ours alone and whose read end the launcher's
keeper holds. Once we let go of it, however we end, the keeper ends the run, counts what it used, and ends itself. In a
sandbox it is the first process of a namespace, and the kernel takes all others with it.
"""

from __future__ import annotations

import os
import platform
import select
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from autoresearch.run.sandbox import command as sandbox_command
from autoresearch.run.sandbox import filters, watchdog
from autoresearch.run.sandbox.apptainer import apptainer_command
from autoresearch.run.sandbox.groups import ControlGroup, control_group
from autoresearch.run.sandbox.job import LIBRARY, Job, Level, Used
from autoresearch.run.sandbox.layout import home, launcher_python
from autoresearch.run.sandbox.queues import Queues
from autoresearch.run.sandbox.scratch import Descriptors, scratch_folder

_LAUNCHER = Path(__file__).with_name("launcher.py")
_KEEPER_MS = 10_000
_OURS = 8


class StartError(Exception):
    """The sandbox itself could not be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """Descriptors of one run: our read ends, and the write ends that its processes inherit."""

    output: tuple[int, int]
    result: tuple[int, int]
    ready: tuple[int, int]
    checkpoint: tuple[int, int] | None
    go: int

    def theirs(self) -> tuple[int, ...]:
        """The write ends."""
        return self.output[1], *self.inherited()

    def inherited(self) -> tuple[int, ...]:
        """The write ends that keep their numbers inside; the output becomes 1 and 2."""
        return *(pair[1] for pair in (self.result, self.ready, self.checkpoint) if pair), self.go

    def handles(self, keeper: Sequence[int]) -> sandbox_command.Handles:
        """What of them the launcher gets."""
        return sandbox_command.Handles(self.ready[1], self.go, self.checkpoint[1] if self.checkpoint else None, keeper)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a tree ended. A signal counts as exit status 128 + its number; memory is that of the largest process."""

    exit_status: int
    used: Used


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """A running tree: its root process (trusted), its pipes, and what ends it."""

    process: subprocess.Popen[bytes]
    pipes: Pipes
    leash: int
    walled: bool
    group: ControlGroup | None = None
    queues: Queues | None = None  # where the run has a network of its own
    written: tuple[Path, ...] = ()  # the folders of a disk that it writes; none under bubblewrap

    def keepers(self) -> frozenset[int]:
        """Our processes below the root: the first of the namespace."""
        return frozenset(watchdog.children(self.process.pid) if self.walled else ())

    def end(self) -> Ending:
        """Ends every process of the run and waits for that. To be called once."""
        _end_keeper(self.process.pid, self.leash)
        _, status, used = os.wait4(self.process.pid, 0)
        if self.group is not None:
            self.group.end()
        code = os.waitstatus_to_exitcode(status)
        self.process.returncode = code
        cpu_ms = max(round(1000 * (used.ru_utime + used.ru_stime)), self.group.cpu_ms() if self.group else 0)
        return Ending(code if code >= 0 else 128 - code, Used(cpu_ms, used.ru_maxrss * 1024))


@contextmanager
def started(job: Job, level: Level) -> Iterator[Sandboxed]:
    """Starts a job; on leaving, its processes, pipes and temporary folders are gone.

    Raises StartError where the sandbox can't be started.
    """
    if level is not Level.NONE and not filters.supported(platform.machine()):
        raise StartError(f"there is no system-call filter for {platform.machine()}")
    # A question has no bound there: at it the kernel would forget pages of files, and tell the next by that.
    memory = None if job.text is not None else sandbox_command.memory_allowed(job.limits)
    tasks = sandbox_command.tasks_allowed(job.limits, job.threads)
    job = _forking(job)
    with Descriptors() as descriptors, control_group(memory_bytes=memory, tasks=tasks + _OURS) as group:
        checkpoint = descriptors.pipe() if job.checkpoint_to is not None else None
        ours, theirs = socket.socketpair()
        queues, go = Queues(ours), descriptors.own(theirs.detach())
        pipes = Pipes(descriptors.pipe(), descriptors.pipe(), descriptors.pipe(), checkpoint, go)
        starts = {Level.BUBBLEWRAP: _under_bubblewrap, Level.APPTAINER: _under_apptainer}
        start = starts.get(level, _under_keeper)
        with closing(queues), start(job, level, pipes, descriptors) as begun:
            has_network = level in (Level.BUBBLEWRAP, Level.LANDLOCK)
            running = replace(begun, group=group, queues=queues if has_network else None)
            try:
                descriptors.close(*pipes.theirs())
                if group is not None:  # while the launcher loads
                    group.take(running.process.pid)
                with suppress(BrokenPipeError):  # it failed already, and says why
                    ours.send(b"x")
                yield running
            finally:
                if running.process.returncode is None:
                    running.end()


@contextmanager
def _under_bubblewrap(job: Job, level: Level, pipes: Pipes, descriptors: Descriptors) -> Iterator[Sandboxed]:
    leash_read, leash_write = descriptors.pipe()
    held = [leash_read, *_text(job, descriptors)]
    spec = sandbox_command.specification(job, level, pipes.handles(held), sandbox_command.Inside())
    files = {f"{sandbox_command.INPUT}/{name}": descriptors.memory_file(text) for name, text in job.files.items()}
    files[sandbox_command.LAUNCHER] = descriptors.memory_file(_LAUNCHER.read_bytes())
    tail = [launcher_python(job.python), "-I", "-S", sandbox_command.LAUNCHER, spec]
    try:
        command = sandbox_command.bubblewrap_command(job, files, tail)
    except FileNotFoundError as error:
        raise StartError("bubblewrap is not installed") from error
    with _owned_data(job):
        variables = _environment_inside(job, pipes)
        process = _popen(command, variables, pipes, (*pipes.inherited(), *_talk(job), *held, *files.values()))
        descriptors.close(*held, *files.values())
        yield Sandboxed(process, pipes, leash_write, walled=True)


@contextmanager
def _under_keeper(job: Job, level: Level, pipes: Pipes, descriptors: Descriptors) -> Iterator[Sandboxed]:
    if level is Level.LANDLOCK and filters.landlock_version() < filters.LEAST_LANDLOCK:
        raise StartError(f"the kernel's landlock is older than version {filters.LEAST_LANDLOCK}")
    leash_read, leash_write = descriptors.pipe()
    with scratch_folder() as base:
        input_folder, scratch, shared = (base.folder / name for name in ("in", "scratch", "shared"))
        _fill(base.folder, input_folder, (scratch, shared), job)
        library = _library(base.folder)
        for mount in job.read_only_folders:
            if sandbox_command.inside(mount).is_relative_to(sandbox_command.HOME):
                link = scratch / sandbox_command.inside(mount).relative_to(sandbox_command.HOME)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(mount.expanduser().absolute())
        held = [leash_read, base.lock, *_text(job, descriptors)]
        # The kernel counts the tasks of each user of a namespace, and root's runs have users of their own.
        alone = level is Level.LANDLOCK or os.geteuid() == 0
        others = 0 if alone else sandbox_command.tasks_of(os.getuid(), Path("/proc").glob("[0-9]*"))
        spec = sandbox_command.specification(
            job,
            level,
            pipes.handles(held),
            sandbox_command.Inside(
                folder=str(input_folder),
                cwd=str(scratch),
                inputs={place: str(path) for place, path in job.inputs.items()},
                rules=sandbox_command.landlock_rules(job, (input_folder, library), scratch),
                shared=shared,
                tasks_of_others=others,
            ),
        )
        command = [launcher_python(job.python), "-I", "-S", str(_LAUNCHER), spec]
        with _owned_data(job):
            variables = _environment(job, pipes, str(scratch), str(job.data), str(library), str(input_folder))
            process = _popen(command, variables, pipes, (*pipes.inherited(), *_talk(job), *held))
            descriptors.close(*(set(held) - {base.lock}))
            yield Sandboxed(process, pipes, leash_write, level is not Level.NONE, written=(scratch, shared))


@contextmanager
def _under_apptainer(job: Job, level: Level, pipes: Pipes, descriptors: Descriptors) -> Iterator[Sandboxed]:
    leash_read, leash_write = descriptors.pipe()
    with scratch_folder() as base:
        input_folder, scratch = base.folder / "in", base.folder / "scratch"
        _fill(base.folder, input_folder, (scratch,), job)
        (base.folder / "launcher.py").write_bytes(_LAUNCHER.read_bytes())
        held = [leash_read, base.lock, *_text(job, descriptors)]
        # Without a user namespace of their own the kernel counts a user's runs with all else of that user.
        others = 0 if os.geteuid() == 0 else sandbox_command.tasks_of(os.getuid(), Path("/proc").glob("[0-9]*"))
        spec = sandbox_command.specification(
            job, level, pipes.handles(held), sandbox_command.Inside(tasks_of_others=others)
        )
        variables = _environment_inside(job, pipes)
        tail = [launcher_python(job.python), "-I", "-S", sandbox_command.LAUNCHER, spec]
        try:
            command = apptainer_command(job, base.folder, variables, tail)
        except FileNotFoundError as error:
            raise StartError("Apptainer is not installed") from error
        for folder in ("run", "shm"):
            _lend(scratch / folder)
        with _owned_data(job):
            process = _popen(
                command,
                {"PATH": os.environ["PATH"], "HOME": str(home())},
                pipes,
                (*pipes.inherited(), *_talk(job), *held),
            )
            descriptors.close(*(set(held) - {base.lock}))
            yield Sandboxed(process, pipes, leash_write, walled=True, written=(scratch,))


# From Python 3.14 on, multiprocessing has a server with sockets start processes. Runs have none: it forks as before.
_FORKING_FILE = ".python/sitecustomize.py"
_FORKING = b"""from multiprocessing import context
context._default_context._default_context = context._concrete_contexts["fork"]
"""


def _forking(job: Job) -> Job:
    """The job with what its Python needs so that its processes fork."""
    version = platform.python_version() if job.python is None else job.python.version
    major, minor = map(int, version.split(".")[:2])
    return job if (major, minor) < (3, 14) else replace(job, files={**job.files, _FORKING_FILE: _FORKING})


def _text(job: Job, descriptors: Descriptors) -> list[int]:
    return [] if job.text is None else [descriptors.memory_file(job.text)]


def _talk(job: Job) -> tuple[int, ...]:
    return () if job.talk is None else job.talk.descriptors


def _environment_inside(job: Job, pipes: Pipes) -> dict[str, str]:
    """The environment where a run has a file system of its own."""
    library = str(sandbox_command.inside(LIBRARY).parent)
    return _environment(job, pipes, sandbox_command.HOME, sandbox_command.DATA, library, sandbox_command.INPUT)


def _environment(job: Job, pipes: Pipes, home: str, data: str, library: str, files: str) -> dict[str, str]:
    checkpoint = pipes.checkpoint[1] if pipes.checkpoint else None
    variables = sandbox_command.environment(
        job, home=home, data=data, result_fd=pipes.result[1], checkpoint_fd=checkpoint
    )
    forking = _FORKING_FILE.partition("/")[0]
    folders = [f"{files}/{forking}"] if _FORKING_FILE in job.files else []
    # A program in a folder may import what lies beside that folder, as where the whole is installed for editing.
    tops = {name.partition("/")[0] for name in (*job.files, *job.inputs) if "/" in name} - {forking}
    if job.library:
        folders.append(library)
    elif tops:
        folders += [".", "src"] if "src" in tops else ["."]
    return variables | ({"PYTHONPATH": ":".join(folders)} if folders else {})


def _popen(
    command: list[str], variables: dict[str, str], pipes: Pipes, inherited: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    for pair in (pipes.output, pipes.result, pipes.ready, pipes.checkpoint):
        if pair:
            os.set_blocking(pair[0], False)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipes.output[1],
            stderr=pipes.output[1],
            env=variables,
            pass_fds=inherited,
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(str(error)) from error


def _fill(base: Path, input_folder: Path, written: Sequence[Path], job: Job) -> None:
    """Writes the inputs, which the run's user can read, and makes the empty folders that it can write."""
    uid = sandbox_command.run_user()
    base.chmod(0o700 if uid is None else 0o711)
    input_folder.mkdir(mode=0o755)
    for name, text in job.files.items():
        for folder in reversed(Path(name).parents[:-1]):
            (input_folder / folder).mkdir(mode=0o755, exist_ok=True)
            (input_folder / folder).chmod(0o755)
        (input_folder / name).write_bytes(text)
        (input_folder / name).chmod(0o444)
    for folder in written:
        folder.mkdir(mode=0o700)
        _lend(folder)


def _lend(folder: Path) -> None:
    """Make a folder the run's user's, for root."""
    if (uid := sandbox_command.run_user()) is not None:
        os.chown(folder, uid, uid)


def _library(base: Path) -> Path:
    """A folder that holds this package alone: Python lists a folder that it imports from, and the real one has more."""
    folder = base / "library"
    folder.mkdir(mode=0o755)
    (folder / LIBRARY.name).symlink_to(LIBRARY)
    return folder


@contextmanager
def _owned_data(job: Job) -> Iterator[None]:
    """Lends a writable data folder to the run's user, for root; ordinary users share their own id with the run."""
    uid = sandbox_command.run_user()
    if job.data is None or not job.writable_data or uid is None:
        yield
        return
    os.chown(job.data, uid, uid)
    try:
        yield
    finally:
        os.chown(job.data, 0, 0)


def _end_keeper(pid: int, leash: int) -> None:
    """Lets go of the keeper, which ends the run. Without walls the run may have stopped or killed it: then it's us."""
    with suppress(BrokenPipeError):  # it may be through already
        os.write(leash, b"x")
    keeper = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(keeper, signal.SIGCONT)
        poller = select.poll()
        poller.register(keeper, select.POLLIN)
        if not poller.poll(_KEEPER_MS):
            for process in (*watchdog.descendants(pid), pid):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # ended, and not yet waited for
    finally:
        os.close(keeper)
