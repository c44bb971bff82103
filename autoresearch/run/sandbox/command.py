"""How a sandboxed run is started: the launcher's argument, and the command line of bubblewrap.

The argument is program, limits, user, landlock rules and filter, marshalled as text. The command line says file system,
namespaces and capabilities.

Started by an ordinary user, bubblewrap makes a user namespace and closes the way to more of them. Started by root it
makes none, so that the launcher can change to an unused user id of the machine: the kernel counts no process limit for
root's own id, whatever name a namespace gives it.
"""

from __future__ import annotations

import marshal
import os
import platform
import shutil
import stat
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from autoresearch.run.sandbox import filters, layout
from autoresearch.run.sandbox.cards import PROCESSOR, card_of, libraries
from autoresearch.run.sandbox.job import Job, JobLimits, Level
from autoresearch.run.sandbox.layout import shown_folders

GIB = 1 << 30
_FIRST_UID = 1_900_000_000
PYTHON = frozenset({"python", "python3"})
"""The names of Python in a command."""
_OPEN_FILES = 1024
_LARGEST_LIMIT = 1 << 60
_NULL_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Joblib asks for its share of the processors, and ends where the file is there but closed.
_PROCESSOR_SHARE = ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
_PROCESSOR_FILES = (
    *("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
    *(f"/sys/fs/cgroup/{name}" for name in _PROCESSOR_SHARE),
)


def run_user() -> int | None:
    """The user id that a run changes to when root starts it: unused, and another one for each running thread."""
    return _FIRST_UID + threading.get_native_id() if os.geteuid() == 0 else None


def tasks_allowed(limits: JobLimits, threads: int) -> int:
    """The kernel's own bound on processes and threads together; the watchdog counts processes before it."""
    return limits.processes + 4 * threads + 32


def memory_allowed(limits: JobLimits) -> int:
    """The kernel's own bound on memory, with files in memory and libraries; the watchdog looks at programs alone."""
    return min(limits.memory_bytes + 2 * limits.disk_bytes + GIB, _LARGEST_LIMIT)


def rlimits(job: Job, *, tasks_of_others: int) -> dict[str, int]:
    """The kernel's limits. Data segments are bounded as a backstop against allocations between two looks."""
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": job.limits.disk_bytes,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_NPROC": tasks_allowed(job.limits, job.threads) + tasks_of_others,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 4096,
    }
    if job.device == PROCESSOR:  # CUDA reserves far more than it uses
        limits["RLIMIT_DATA"] = 2 * job.limits.memory_bytes + GIB
    return {name: min(value, _LARGEST_LIMIT) for name, value in limits.items()}


def environment(job: Job, *, home: str, data: str, result_fd: int, checkpoint_fd: int | None) -> dict[str, str]:
    """The environment of the program: nothing of ours, and what the harness reads."""
    variables = layout.environment(home=home, threads=job.threads, card=card_of(job.device))
    if job.python is not None:
        variables["PATH"] = f"{job.python.executable.parent}:{variables['PATH']}"
    variables |= {
        "AUTORESEARCH_RESULT_FD": str(result_fd),
        "AUTORESEARCH_SEED": str(job.seed),
        "AUTORESEARCH_BUDGET": repr(float(job.budget)),
        "AUTORESEARCH_STOP_AT": repr(float(job.stop_at)),
        "AUTORESEARCH_THREADS": str(job.threads),
        "AUTORESEARCH_DEVICE": PROCESSOR if job.device == PROCESSOR else "cuda:0",  # the only card that it sees
    }
    if checkpoint_fd is not None and not job.artifact:
        variables["AUTORESEARCH_CHECKPOINT_FD"] = str(checkpoint_fd)
    if job.data is not None:
        variables["AUTORESEARCH_DATA"] = data
    if job.talk is not None:
        read, write = job.talk.descriptors
        variables |= {"AUTORESEARCH_TALK_READ": str(read), "AUTORESEARCH_TALK_WRITE": str(write)}
    if job.library:
        variables["PYTHONSAFEPATH"] = "1"
    return variables


def landlock_rules(job: Job, inputs: Iterable[Path], scratch: Path) -> list[tuple[str, int]]:
    """What a run may touch below bubblewrap: system, interpreter, inputs to read, its scratch folder to write."""
    system = (*layout.SYSTEM_FOLDERS, *layout.SYSTEM_LINKS, *layout.SYSTEM_FILES)
    read = [*system, *shown_folders(job.python), *map(Path, _PROCESSOR_FILES), *inputs]
    read += [*(mount.expanduser() for mount in job.read_only_folders), *job.inputs.values()]
    write = [scratch]
    if job.data is not None:
        (write if job.writable_data else read).append(job.data)
    return filters.path_rules(read, write, map(Path, _NULL_DEVICES))


INPUT, INPUTS, DATA, SCRATCH, HOME, SHARED = "/in", "/inputs", "/data", "/tmp/run", "/tmp", "/dev/shm"  # noqa: S108


class Handles(NamedTuple):
    """Descriptors that the launcher gets: it says on ``ready`` how it went, and waits at ``go`` for a byte or the end.

    ``keeper``: what its keeper holds and the program does not get: the leash first, a text last.
    """

    ready: int
    go: int
    checkpoint: int | None
    keeper: Sequence[int]


class Inside(NamedTuple):
    """What a run finds inside: the ``folder`` of its files, and where it begins.

    ``inputs`` says where the job's inputs are by their places; None: in ``INPUTS``. The last three are for the levels
    below bubblewrap.
    """

    folder: str = INPUT
    cwd: str = SCRATCH
    inputs: Mapping[str, str] | None = None
    rules: Sequence[tuple[str, int]] = ()
    shared: Path | None = None
    tasks_of_others: int = 0


def specification(job: Job, level: Level, handles: Handles, inside: Inside) -> str:
    """The launcher's argument."""
    folder, cwd, inputs, rules, shared, tasks_of_others = inside
    seen = [Path(path) for path, _ in rules]
    shows_shared = level is not Level.LANDLOCK or any(path.resolve().is_relative_to(SHARED) for path in seen)
    walled = level is not Level.NONE
    program = b""
    if walled:
        sockets, memory_files = level is Level.BUBBLEWRAP, job.device != PROCESSOR
        program = filters.deny_filter(platform.machine(), sockets=sockets, memory_files=memory_files)
    inputs = {place: f"{INPUTS}/{place}" for place in job.inputs} if inputs is None else inputs
    asking = walled and job.text is not None and job.device == PROCESSOR  # a card's driver opens files at any time
    return marshal.dumps(
        {
            "argv": _words(job, job.command or ("python", f"{folder}/{job.entry}", *job.arguments)),
            "build": _words(job, job.build),
            "cwd": cwd,
            "copied": [(f"{folder}/{name}", name) for name in job.copied],
            "linked": [
                *((f"{folder}/{name}", name) for name in job.linked),
                *((at, place) for place, at in inputs.items()),
            ],
            "artifact": (f"{cwd}/{job.artifact}", handles.checkpoint) if job.artifact else None,
            "ready": handles.ready,
            "kept": list(handles.keeper),
            "go": handles.go,
            "namespace": walled,
            "network": walled and level is not Level.APPTAINER,
            "uid": run_user(),
            "keep_read": os.geteuid() == 0 and level < Level.BUBBLEWRAP and not all(map(open_to_all, seen)),
            "limits": rlimits(job, tasks_of_others=tasks_of_others),
            "landlock": (filters.LANDLOCK_HANDLED, list(rules)) if level is Level.LANDLOCK else None,
            # A mount would hide what is shown of there.
            "shared": None if shared is None or shows_shared else (str(shared), SHARED, filters.WRITE),
            "seccomp": program,
            "text": None if job.text is None else handles.keeper[-1],
            "asking": filters.asking_filter(platform.machine()) if asking else b"",
        }
    ).hex()


def _words(job: Job, command: Sequence[str]) -> list[str]:
    """What is executed: of Python that of the job, of all else what a shell finds by its name."""
    if command and command[0] in PYTHON:
        return [str(job.python.executable) if job.python else sys.executable, *command[1:]]
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *command] if command else []


def open_to_all(path: Path) -> bool:
    """Whether every user may walk to ``path`` and read it, going by the permission bits."""
    walk = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)
    return walk and bool(path.stat().st_mode & stat.S_IROTH)


def tasks_of(uid: int, stat_folders: Iterable[Path]) -> int:
    """How many tasks (threads count each) a user runs already: the kernel's limit counts them all."""
    total = 0
    for folder in stat_folders:
        try:
            if folder.stat().st_uid == uid:
                total += len(list((folder / "task").iterdir()))
        except OSError:
            continue
    return total


LAUNCHER = "/launcher.py"
_LARGEST_SIZE = 1 << 60


def executable() -> str | None:
    """Where bubblewrap is, if it is installed."""
    return shutil.which("bwrap")


def inside(mount: Path) -> Path:
    """Where a mounted folder appears: what lies in the home keeps its place below the run's home."""
    mount = mount.expanduser().absolute()
    home = layout.home()
    return Path(HOME) / mount.relative_to(home) if mount.is_relative_to(home) else mount


def bubblewrap_command(job: Job, files: Mapping[str, int], tail: list[str]) -> list[str]:
    """The full command. ``files`` maps paths inside to open descriptors; ``tail`` is what runs inside.

    Whether it may run is the launcher's to say, as is its end. Not bubblewrap's ``--die-with-parent``: a bubblewrap
    that is killed before it has told its child that the namespaces are ready leaves a child that waits for ever.

    Raises FileNotFoundError where bubblewrap isn't installed.
    """
    program = executable()
    if program is None:
        raise FileNotFoundError("bwrap")
    parts = [program, "--new-session", "--as-pid-1", *namespaces(), "--hostname", "run", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        parts += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # The keeper ends what the program, with another user id, left behind, and looks what files it has.
        parts += ["--cap-add", "CAP_KILL", "--cap-add", "CAP_SYS_PTRACE", "--cap-add", "CAP_DAC_READ_SEARCH"]
    parts += walls(job)
    for path, descriptor in files.items():
        parts += ["--perms", "0444", "--file", str(descriptor), path]
    return [*parts, "--remount-ro", "/", "--chdir", SCRATCH, "--", *tail]


def namespaces() -> list[str]:
    """The namespaces of a run, in bubblewrap's words."""
    parts = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    of_user = ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    return parts if os.geteuid() == 0 else parts + of_user


def walls(job: Job) -> list[str]:
    """The file system of a run, in bubblewrap's words."""
    # The scratch folder first: an interpreter may lie below it, and a later mount would hide it.
    return _scratch(job) + _system(job) + _devices(job) + _folders(job)


def _system(job: Job) -> list[str]:
    parts: list[str] = []
    for folder in (*layout.SYSTEM_FOLDERS, *shown_folders(job.python)):
        if folder.is_dir():
            parts += _bind("--ro-bind", folder, folder)
    for link in layout.SYSTEM_LINKS:
        if link.is_symlink():
            parts += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            parts += _bind("--ro-bind", link, link)
    for file in layout.SYSTEM_FILES:
        parts += _bind("--ro-bind-try", file, file)
    parts += ["--proc", "/proc", "--dev", "/dev"]
    for path in layout.hidden_in_proc(card_of(job.device)):
        parts += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return parts


def _devices(job: Job) -> list[str]:
    parts: list[str] = []
    if (card := card_of(job.device)) is not None:
        for node in card.nodes:
            parts += ["--dev-bind", str(node), f"/dev/{node.name}"]
        for folder in (*layout.CARD_FOLDERS, *libraries()):
            parts += _bind("--ro-bind-try", folder, folder)
        if card.place.exists():
            folder = card.place.resolve()
            parts += _bind("--ro-bind", folder, folder)
            parts += [*_parents(card.place.parents), "--symlink", str(folder), str(card.place)]
    size = str(min(job.limits.disk_bytes, _LARGEST_SIZE))
    parts += ["--perms", "1777", "--size", size, "--tmpfs", SHARED]
    return [*parts, "--remount-ro", "/dev"]


def _scratch(job: Job) -> list[str]:
    size = str(min(job.limits.disk_bytes, _LARGEST_SIZE))
    return ["--perms", "1777", "--size", size, "--tmpfs", HOME, "--perms", "1777", "--dir", SCRATCH]


def _folders(job: Job) -> list[str]:
    parts = ["--perms", "0755", "--dir", INPUT]
    if job.data is not None:
        parts += _bind("--bind" if job.writable_data else "--ro-bind", job.data, Path(DATA))
    for mount in job.read_only_folders:
        parts += _bind("--ro-bind", mount.expanduser().absolute(), inside(mount))
    for place, path in job.inputs.items():
        parts += _bind("--ro-bind", path, Path(INPUTS, place))
    return parts


def _bind(option: str, source: Path, target: Path) -> list[str]:
    return [*_parents(target.parents), option, str(source), str(target)]


def _parents(parents: Iterable[Path]) -> list[str]:
    """Makes the folders above a mount point readable for all: left to itself, bubblewrap makes them private."""
    missing = [path for path in parents if path not in {Path("/"), Path(HOME), Path("/dev")}]
    return [part for path in reversed(missing) for part in ("--perms", "0755", "--dir", str(path))]
