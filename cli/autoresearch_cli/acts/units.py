"""The node as a service that starts with the machine: a unit of systemd.

What the file says is pure; systemd's own commands (systemctl, loginctl) are run here.
"""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.text import one_line

NAME = "autoresearch"
UNIT = f"{NAME}.service"
# The machine's own folder of units; a user's is below the configuration.
SYSTEM_UNITS = Path("/etc/systemd/system")
# A manager that takes longer than this to answer hangs.
SECONDS = 120
# What a node needs of the shell that installs it, besides where its home is: programs such as bwrap, cc and git.
_PASSED = ("AUTORESEARCH_HOME", "PATH")
_HOME = re.compile(r'^Environment="AUTORESEARCH_HOME=(.*)"$', re.MULTILINE)

_UNIT = """\
# Written by `{made_by}`; `{undone_by}` takes it away.
[Unit]
Description=autoresearch node{of}
{after}StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
{environment}
# A stopped node writes what it has in hand; that takes seconds.
KillMode=mixed
TimeoutStartSec=180
TimeoutStopSec=60
# The event loop answers the watchdog: a node that hangs is started again.
WatchdogSec=120
Restart=on-failure
RestartSec=10
# A setting or a rule says no (2, 6): that does not go away by itself.
RestartPreventExitStatus=2 6
# Each run has a control group of its own below this unit's: what takes too much memory is ended, and not the node.
Delegate=yes
OOMPolicy=continue
# The machine's owner comes first.
CPUWeight=20
IOSchedulingClass=idle
UMask=0077
# Left out, since the node builds sandboxes itself: RestrictNamespaces, PrivateUsers (no sandbox could be made),
# ProtectKernelTunables, ProtectKernelLogs, ProcSubset (the kernel then refuses a sandbox its own /proc),
# MemoryDenyWriteExecute (torch compiles at run time), NoNewPrivileges (bubblewrap is setuid on some systems).
{user}
[Install]
WantedBy={wanted_by}
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """What starts the node: its file, what is in it, how to start it, to stop it and to look at it.

    ``adds`` are commands after which the manager knows it, ``starts`` the one after which the node runs anew, ``drops``
    those after which it does not. ``hint`` is what only the machine's owner can decide.
    """

    path: Path
    text: str
    adds: tuple[tuple[str, ...], ...]
    starts: tuple[str, ...]
    drops: tuple[tuple[str, ...], ...]
    looks: str
    hint: str = ""


def unit_here(environment: Mapping[str, str], *, system: bool = False) -> Unit:
    """The unit for this machine and this home.

    Raises:
        UsageError: a path has a character that no unit can name.
    """
    user = environment.get("SUDO_USER", "") or getpass.getuser()
    return systemd_unit(environment, user=user, system=system)


def systemd_unit(environment: Mapping[str, str], *, user: str, system: bool) -> Unit:
    """The unit of systemd: a user's, or with ``system`` the machine's, which runs as that user."""
    variables = {name: environment[name] for name in _PASSED if environment.get(name)}
    home = Path(environment.get("HOME") or Path.home())
    if variables.get("AUTORESEARCH_HOME"):
        variables["AUTORESEARCH_HOME"] = str(Path(variables["AUTORESEARCH_HOME"]).expanduser().absolute())
    option = " --system" if system else ""
    text = _UNIT.format(
        made_by=f"autoresearch node install{option}",
        undone_by=f"autoresearch node uninstall{option}",
        of=f" of {user}" if system else "",
        after="Wants=network-online.target\nAfter=network-online.target\n" if system else "",
        command=" ".join(_quoted(word).replace("$", "$$") for word in node_command()),
        environment="\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()),
        user=f"User={user}\n" if system else "",
        wanted_by="multi-user.target" if system else "default.target",
    )
    ctl = ("systemctl",) if system else ("systemctl", "--user")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return Unit(
        path=(SYSTEM_UNITS if system else config / "systemd" / "user") / UNIT,
        text=text,
        adds=((*ctl, "daemon-reload"), (*ctl, "enable", UNIT)),
        starts=(*ctl, "restart", UNIT),
        drops=((*ctl, "disable", "--now", UNIT),),
        looks=f"{' '.join(ctl)} status {NAME}",
        hint="" if system else f"loginctl enable-linger {user} lets it run while you are not logged in",
    )


def node_command() -> tuple[str, ...]:
    """The command of the daemon by this Python. -P: no folder that it is started in can shadow a package."""
    return (sys.executable, "-P", "-m", "autoresearch_daemon")


def install(unit: Unit) -> None:
    """Write the unit and start it.

    Raises:
        Refused: there is no such manager, its folder can't be written, it holds another home's node, or it says no.
    """
    other = _home_of(unit.path)
    if other is not None and other != _home_in(unit.text):
        hint = f"AUTORESEARCH_HOME={other} autoresearch node uninstall" if other else "autoresearch node uninstall"
        raise Refused(f"{unit.path} starts the node of another home: {other or 'the usual one'}", hint=hint)
    manager = unit.starts[0]
    if shutil.which(manager) is None:
        raise Refused(f"there is no {manager} on this machine", hint="autoresearch up starts the node without one")
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        beside = unit.path.with_suffix(".new")
        beside.write_text(unit.text)
        beside.replace(unit.path)
    except OSError as error:
        hint = "sudo autoresearch node install --system" if unit.path.is_relative_to(SYSTEM_UNITS) else ""
        raise Refused(f"{unit.path} can't be written: {error.strerror}", hint=hint) from error
    for command in unit.adds:
        _run(command)
    start(unit)


def start(unit: Unit) -> None:
    """Have the manager start the node, anew where it runs. Raises Refused where it says no."""
    _run(unit.starts)


def uninstall(unit: Unit) -> None:
    """Stop the node and take its unit away.

    Raises:
        NotFound: it was not installed.
        Refused: its manager says no, or its file can't be removed.
    """
    if not unit.path.exists():
        raise NotFound(f"the node is not installed as a service: there is no {unit.path}", hint="autoresearch down")
    for command in unit.drops:
        _run(command)
    try:
        unit.path.unlink()
    except OSError as error:
        raise Refused(f"{unit.path} can't be removed: {error.strerror}", hint="check its permissions") from error


def installed_here(environment: Mapping[str, str]) -> Unit | None:
    """The unit that starts the node of this home, or None where there is none."""
    return next((unit for system in (False, True) if is_installed(unit := unit_here(environment, system=system))), None)


def is_installed(unit: Unit) -> bool:
    """Whether that unit starts the node of this home."""
    return _home_of(unit.path) == _home_in(unit.text)


def _run(command: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{' '.join(command)} did not answer: {error}", hint="the same once more") from error
    if done.returncode:
        message = one_line(done.stderr.strip() or f"exit status {done.returncode}", 300)
        raise Refused(
            f"{' '.join(command)}: {message}", hint="autoresearch up starts the node without a service manager"
        )


def _home_of(path: Path) -> str | None:
    """The home whose node a unit starts, empty for the usual one; None where there is no unit."""
    try:
        return _home_in(path.read_text(errors="replace"))
    except OSError:
        return None


def _home_in(text: str) -> str:
    match = _HOME.search(text)
    return match[1] if match else ""


def _quoted(word: str) -> str:
    """A word as units write it (``systemd.syntax(7)``)."""
    if any(ord(character) < ord(" ") for character in word):
        raise UsageError(f"“{one_line(word, 80)}” can't stand in a unit: it has a control character", hint="rename it")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
