"""The walls made by Apptainer, for clusters that close user namespaces and landlock and offer it instead.

The folders, links and devices of a run are those under bubblewrap, said in Apptainer's words: its image is a folder of
mount points that is made for the run. What is written lies in a real folder. The system-call filter refuses sockets, as
under landlock, so nothing depends on what a cluster lets Apptainer do with networks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from autoresearch.run.sandbox.command import HOME, INPUT, LAUNCHER, SCRATCH, SHARED, walls
from autoresearch.run.sandbox.job import Job

# What the launcher of root's runs needs, as under bubblewrap; it lets go of it.
_ROOT_NEEDS = "CAP_SETUID,CAP_SETGID,CAP_KILL,CAP_SYS_PTRACE,CAP_DAC_READ_SEARCH"
_WITH_TWO = frozenset({"--ro-bind", "--ro-bind-try", "--bind", "--dev-bind", "--symlink"})


def executable() -> str | None:
    """Where Apptainer is, if it is installed."""
    return shutil.which("apptainer")


def apptainer_command(job: Job, base: Path, variables: Mapping[str, str], tail: list[str]) -> list[str]:
    """The full command. ``base`` holds ``in``, ``scratch`` and ``launcher.py``; ``tail`` is what runs inside.

    Raises FileNotFoundError where Apptainer isn't installed.
    """
    program = executable()
    if program is None:
        raise FileNotFoundError("apptainer")
    image, empty, scratch = base / "image", base / "empty", base / "scratch"
    own = (image / name for name in ("proc", "dev", "tmp", "sys", "etc", "var/tmp"))
    for folder in (*own, empty, scratch / "run", scratch / "shm"):
        folder.mkdir(mode=0o755, parents=True)
    binds = [(scratch, HOME, ""), (scratch / "shm", SHARED, "")]
    binds += [(base / "in", INPUT, ":ro"), (base / "launcher.py", LAUNCHER, ":ro")]
    for option, source, target in _mounts(walls(job)):
        place = _inside(image, scratch, target)
        if option == "--symlink":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source)
        elif option == "--tmpfs" and target not in (HOME, SHARED):
            binds.append((empty, target, ":ro"))
        elif option != "--tmpfs" and Path(source).exists():
            binds.append((Path(source), target, ":ro" if option.startswith("--ro-bind") else ""))
    words = [program, "--silent", "exec", "--containall", "--no-init", "--no-eval", "--no-home", "--no-privs"]
    words += ["--hostname", "run", "--no-mount", "sys,hostfs,bind-paths,cwd"]
    if os.geteuid() == 0:
        words += ["--add-caps", _ROOT_NEEDS]
    for outside, target, options in binds:
        if not target.startswith("/proc/"):  # what is there comes with the mount
            _make_mount_point(_inside(image, scratch, target), is_folder=outside.is_dir())
        words += ["--bind", f"{outside}:{target}{options}"]
    words += ["--pwd", SCRATCH, str(image), "/usr/bin/env", "-i"]
    return [*words, *(f"{name}={text}" for name, text in variables.items()), *tail]


def _make_mount_point(place: Path, *, is_folder: bool) -> None:
    (place if is_folder else place.parent).mkdir(parents=True, exist_ok=True)
    if not is_folder:
        place.touch()


def _mounts(words: list[str]) -> Iterator[tuple[str, str, str]]:
    """What bubblewrap's words mount: option, source, target."""
    rest = iter(words)
    for option in rest:
        if option in _WITH_TWO:
            yield option, next(rest), next(rest)
        elif option == "--tmpfs":
            yield option, "", next(rest)
        else:
            next(rest)


def _inside(image: Path, scratch: Path, target: str) -> Path:
    """Where a path of the inside lies outside."""
    path = Path(target)
    for top, folder in ((HOME, scratch), (SHARED, scratch / "shm")):
        if path.is_relative_to(top):
            return folder / path.relative_to(top)
    return image / path.relative_to("/")
