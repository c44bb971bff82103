"""The bubblewrap command line: the file system, namespaces and capabilities of a run.

Started by an ordinary user, bubblewrap makes a user namespace and closes the way to more of them. Started by root it
makes none, so that the launcher can change to an unused user id of the machine: the kernel counts no process limit
for root's own id, whatever name a namespace gives it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from autoresearch.running import layout
from autoresearch.running.interpreter import shown_folders
from autoresearch.running.job import Job

INPUT, DATA, SCRATCH, HOME = "/in", "/data", "/tmp/run", "/tmp"  # noqa: S108
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


def command(job: Job, files: Mapping[str, int], info_fd: int, go_fd: int, tail: list[str]) -> list[str]:
    """The full command. ``files`` maps paths inside to open descriptors; ``tail`` is what runs inside.

    It runs once a byte came on ``go_fd``, or nobody can send one any more. Whether it may is the launcher's to say, as
    is its end. Not bubblewrap's ``--die-with-parent``: a bubblewrap that is killed before it has told its child that
    the namespaces are ready leaves a child that waits for ever.

    Raises FileNotFoundError where bubblewrap isn't installed.
    """
    program = executable()
    if program is None:
        raise FileNotFoundError("bwrap")
    parts = [
        program,
        "--info-fd",
        str(info_fd),
        "--block-fd",
        str(go_fd),
        "--new-session",
        "--as-pid-1",
    ]
    parts += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    parts += ["--hostname", "run", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        parts += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # The keeper ends what the program, with another user id, left behind, and looks what files it has mapped.
        parts += ["--cap-add", "CAP_KILL", "--cap-add", "CAP_SYS_PTRACE"]
    else:
        parts += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    # The scratch folder first: an interpreter may lie below it, and a later mount would hide it.
    parts += _scratch(job) + _system(job) + _devices(job) + _folders(job)
    for path, descriptor in files.items():
        parts += ["--perms", "0444", "--file", str(descriptor), path]
    return [*parts, "--remount-ro", "/", "--chdir", SCRATCH, "--", *tail]


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
    for path in layout.hidden_in_proc(job.device):
        parts += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return parts


def _devices(job: Job) -> list[str]:
    parts: list[str] = []
    for node in layout.device_nodes(job.device):
        parts += ["--dev-bind", str(node), str(node)]
    for folder in layout.device_information(job.device):
        parts += _bind("--ro-bind-try", folder, folder)
    size = str(min(job.limits.disk_bytes, _LARGEST_SIZE))
    parts += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    return [*parts, "--remount-ro", "/dev"]


def _scratch(job: Job) -> list[str]:
    size = str(min(job.limits.disk_bytes, _LARGEST_SIZE))
    return ["--perms", "1777", "--size", size, "--tmpfs", HOME, "--perms", "1777", "--dir", SCRATCH]


def _folders(job: Job) -> list[str]:
    parts = ["--perms", "0755", "--dir", INPUT]
    if job.data is not None:
        parts += _bind("--bind" if job.writable_data else "--ro-bind", job.data, Path(DATA))
    for mount in job.shown:
        parts += _bind("--ro-bind", mount.expanduser().absolute(), inside(mount))
    return parts


def _bind(option: str, source: Path, target: Path) -> list[str]:
    return [*_parents(target.parents), option, str(source), str(target)]


def _parents(parents: Iterable[Path]) -> list[str]:
    """Makes the folders above a mount point readable for all: left to itself, bubblewrap makes them private."""
    missing = [path for path in parents if path not in {Path("/"), Path(HOME), Path("/dev")}]
    return [part for path in reversed(missing) for part in ("--perms", "0755", "--dir", str(path))]
