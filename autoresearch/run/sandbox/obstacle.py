"""Why bubblewrap does not start on this machine, and what helps. Every face that says so has it from here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from autoresearch.run.sandbox.command import executable, namespaces
from autoresearch.text import one_line

PROC = Path("/proc/sys")
PROFILE = Path("/etc/apparmor.d/bwrap-userns-restrict")
_SHIPPED = Path("/usr/share/apparmor/extra-profiles/bwrap-userns-restrict")
_SYSTEM = "/usr/bin/bwrap"
_IN_CONTAINER = (Path("/.dockerenv"), Path("/run/.containerenv"))
_SECONDS = 10.0
_INSTALLERS = ("apt", "dnf", "zypper")
_REFUSALS = ("permission denied", "operation not permitted", "no permissions")
_AGAIN = "then: autoresearch down && autoresearch up"


class Obstacle(NamedTuple):
    """Why there is no bubblewrap, and how to mend it; each a part of a sentence."""

    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read of a machine. ``message`` is bubblewrap's own; empty where it starts.

    ``program`` is its path, empty where it isn't installed. Settings are texts as the kernel has them, empty where it
    has none. ``has_profile``: AppArmor's profile for bubblewrap lies where it is loaded from. ``system`` is as in
    ``sys.platform``, ``installer`` the system's command that installs packages.
    """

    system: str = "linux"
    installer: str = _INSTALLERS[0]
    program: str = ""
    message: str = ""
    is_root: bool = False
    is_container: bool = False
    has_profile: bool = False
    apparmor: str = ""
    userns_clone: str = ""
    max_user_namespaces: str = ""


def obstacle(machine: Readings) -> Obstacle:
    """The one reason that fits what was read, and its remedy. No remedy opens more than bubblewrap or one container."""
    if machine.system != "linux":
        return Obstacle(
            "programs run in a sandbox of Linux only",
            "this machine reads and proposes, and has runs carried out on a Linux machine: "
            "autoresearch work --executor ssh --host HOST; on Windows use WSL2",
        )
    is_restricted = machine.apparmor == "1" and not machine.is_root and not machine.is_container
    if not machine.program:
        after = f", and then, since AppArmor here keeps it from starting: {_profile(machine)}" if is_restricted else ""
        return Obstacle(
            "bubblewrap is not installed", f"sudo {machine.installer} install bubblewrap{after or f', {_AGAIN}'}"
        )
    if not machine.message:
        return Obstacle(
            "bubblewrap starts, but an attack on the sandbox got through",
            f"autoresearch node doctor names it, {_AGAIN}",
        )
    quote, lower = f"“{machine.message}”", machine.message.lower()
    if "unknown option" in lower:
        return Obstacle(f"this bubblewrap is too old: {quote}", f"install bubblewrap 0.8.0 or newer, {_AGAIN}")
    if "setuid" in lower:
        return Obstacle(f"bubblewrap is installed setuid: {quote}", f"sudo chmod u-s {machine.program}, {_AGAIN}")
    if not machine.is_root:
        for name, value in (
            ("user.max_user_namespaces", machine.max_user_namespaces),
            ("kernel.unprivileged_userns_clone", machine.userns_clone),
        ):
            if value == "0":
                return Obstacle(
                    f"{name} is 0, so users of this machine can make no namespaces: {quote}",
                    "its administrator decides on that for all programs; Apptainer, set up by the administrator, is "
                    "another way",
                )
    if any(refusal in lower for refusal in _REFUSALS):
        if machine.is_container:
            more = " --security-opt apparmor=unconfined" if machine.apparmor else ""
            return Obstacle(
                f"this container may make no namespaces: {quote}",
                f"start it (Docker, Podman) with --security-opt seccomp=unconfined{more}: that opens it alone",
            )
        if is_restricted:
            setting = "kernel.apparmor_restrict_unprivileged_userns is 1"
            return Obstacle(
                f"AppArmor takes bubblewrap's rights in its namespaces ({setting}): {quote}", _profile(machine)
            )
    return Obstacle(f"bubblewrap is installed and fails: {quote}", "https://github.com/containers/bubblewrap/issues")


def _profile(machine: Readings) -> str:
    """The commands that let AppArmor allow bubblewrap alone: the profile that Ubuntu ships for it."""
    if machine.program not in ("", _SYSTEM):
        return (
            f"AppArmor's profile allows {_SYSTEM} alone, and {machine.program} comes first in PATH: "
            "sudo apt install bubblewrap, and take the other one out of PATH"
        )
    load = f"sudo apparmor_parser -r {PROFILE}"
    copy = f"sudo apt install apparmor-profiles && sudo cp {_SHIPPED} {PROFILE.parent}/ && "
    return f"{'' if machine.has_profile else copy}{load} (it allows bubblewrap alone), {_AGAIN}"


def read_machine() -> Readings:
    """Tries bubblewrap and reads the settings that decide."""
    program = executable() or ""
    return Readings(
        system=sys.platform,
        installer=next((name for name in _INSTALLERS if shutil.which(name)), _INSTALLERS[0]),
        program=str(Path(program).resolve()) if program else "",
        message=_message(program) if program else "",
        is_root=os.geteuid() == 0,
        is_container=any(path.exists() for path in _IN_CONTAINER) or "container" in os.environ,
        has_profile=PROFILE.exists(),
        apparmor=_setting("kernel/apparmor_restrict_unprivileged_userns"),
        userns_clone=_setting("kernel/unprivileged_userns_clone"),
        max_user_namespaces=_setting("user/max_user_namespaces"),
    )


def find_obstacle() -> Obstacle:
    """Why this machine has no bubblewrap, and what helps."""
    return obstacle(read_machine())


def get_bubblewrap() -> str:
    """How to get cards for programs where landlock alone walls them in."""
    return f"{find_obstacle().remedy}; or: autoresearch node config set work.device cpu"


def _message(program: str) -> str:
    words = [program, *namespaces(), "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":"]
    try:
        trial = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS:g} s"
    except OSError as error:
        return str(error.strerror)
    if trial.returncode == 0:
        return ""
    lines = trial.stderr[:4096].decode(errors="replace").strip().splitlines()
    line = next((line for line in lines if line.startswith("bwrap:")), lines[0] if lines else "")
    return one_line(line, 200) or f"it ended with status {trial.returncode}"


def _setting(name: str) -> str:
    with suppress(OSError):
        return (PROC / name).read_text().strip()
    return ""
