"""The daemon attacks its own sandbox: sets up what a stranger must not reach, lets ``attack.py`` try, and reports."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from autoresearch.errors import AutoresearchError
from autoresearch.run.sandbox import apptainer, layout
from autoresearch.run.sandbox.cards import PROCESSOR, card_of
from autoresearch.run.sandbox.command import SHARED, tasks_allowed
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import MIB, Job, JobLimits, Level
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.words import STARTED, RunStatus

_ATTACK = Path(__file__).with_name("attack.py")
_LIMITS = JobLimits(seconds=120, memory_bytes=256 * MIB, disk_bytes=4 * MIB, processes=32, output_bytes=65536)
_UDP_PROBE = "UDP out"
_SPARE_TASKS = 64
"""Below bubblewrap the kernel's process limit counts the user's other processes, which come and go meanwhile."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One way out of the sandbox: whether it is blocked, and what the attacker saw."""

    name: str
    blocked: bool
    detail: str


def probe_sandbox(level: Level, secrets: Sequence[Path] = (), device: str = PROCESSOR) -> tuple[ProbeResult, ...]:
    """Attacks a sandbox of this level with real files, sockets and a victim process; takes well under a second.

    ``secrets`` are files and folders of this node that no run may read; they are tried as they lie. ``device`` is what
    the attacker is given: a card's walls have openings of their own.
    A sandbox that doesn't start is one result that isn't blocked, and so is, beside the others, an attack that is too
    slow.
    """
    try:
        return _attack(level, secrets, device)
    except (OSError, AutoresearchError) as error:
        return (ProbeResult("set up the attack", blocked=False, detail=str(error)),)


def _attack(level: Level, secrets: Sequence[Path], device: str) -> tuple[ProbeResult, ...]:
    with _targets() as (targets, udp):
        targets["tasks"] = tasks_allowed(_LIMITS, 1) + _SPARE_TASKS
        targets["secrets"] = [str(path) for path in secrets]
        targets["card"] = card.node.name if (card := card_of(device)) else ""
        targets["disk_bytes"] = _LIMITS.disk_bytes
        targets["identifiers"] = layout.identifiers(host=level >= Level.BUBBLEWRAP)
        targets["identities"] = [str(path) for path in layout.IDENTITIES]
        job = Job(
            files={"attack.py": _ATTACK.read_bytes()},
            foreign=False,
            entry="attack.py",
            limits=_LIMITS,
            device=device,
            metric_source="stdout",
            arguments=(json.dumps(targets),),
        )
        outcome = execute(job, level=level)
        arrived = _arrived(udp)
    if outcome.status not in STARTED:
        return (ProbeResult("start the sandbox", blocked=False, detail=outcome.reason),)
    try:
        results = [ProbeResult(*json.loads(line)) for line in outcome.log.splitlines()]
    except (ValueError, TypeError):
        return (ProbeResult("start the sandbox", blocked=False, detail="the attack said nothing sensible"),)
    if outcome.status is RunStatus.TIMED_OUT:
        detail = f"it was through with {len(results)} of them after {_LIMITS.seconds:g} s: the machine is too busy"
        results.append(ProbeResult("finish all attacks", blocked=False, detail=detail))
    udp_leak = ProbeResult(_UDP_PROBE, blocked=False, detail="it arrived")
    return tuple(udp_leak if arrived and result.name == _UDP_PROBE else result for result in results)


def detect_level(secrets: Sequence[Path] = ()) -> tuple[Level, tuple[ProbeResult, ...]]:
    """The best level whose probes are all blocked, and what the probes said; with level NONE, of the last one tried.

    ``secrets``: as for :func:`probe_sandbox`.
    """
    results: tuple[ProbeResult, ...] = ()
    for level in (Level.BUBBLEWRAP, Level.LANDLOCK, *((Level.APPTAINER,) if apptainer.executable() else ())):
        results = probe_sandbox(level, secrets)
        if all(result.blocked for result in results):
            return level, results
    return Level.NONE, results


@contextmanager
def _targets() -> Iterator[tuple[dict[str, Any], socket.socket]]:
    token = token_hex(16)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder()).folder
        folder.chmod(0o777)  # permissions of files are not what is tested here
        key = folder / "key"
        key.write_text(token)
        key.chmod(0o666)
        shared = Path(SHARED, f"autoresearch-{token}")
        with contextlib.suppress(OSError):  # there is none here, or not for us
            stack.callback(shared.unlink, missing_ok=True)
            shared.write_text(token)
            shared.chmod(0o666)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for kind, address in (
            (socket.SOCK_STREAM, f"\0autoresearch-{token}"),
            (socket.SOCK_STREAM, f"{folder}/stream"),
            (socket.SOCK_DGRAM, f"{folder}/datagram"),
        ):
            local = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            local.bind(address)
            if kind == socket.SOCK_STREAM:
                local.listen()
        for name in ("stream", "datagram"):
            (folder / name).chmod(0o777)
        victim = stack.enter_context(_victim(token))
        yield (
            {
                "key": str(key),
                "token": token,
                "home": str(layout.home()),
                "allowed": _needed_in_home(),
                "victim": victim,
                "tcp": tcp.getsockname()[1],
                "udp": udp.getsockname()[1],
                "abstract": f"autoresearch-{token}",
                "socket": f"{folder}/stream",
                "datagram": f"{folder}/datagram",
                "outside": str(folder),
                "shared": str(shared),
            },
            udp,
        )


@contextmanager
def _victim(token: str) -> Iterator[int]:
    """A process of ours with the secret in its environment and its command line."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"read _ # {token}"], stdin=subprocess.PIPE, env={**os.environ, "AUTORESEARCH_CANARY": token}
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def _needed_in_home() -> list[str]:
    home = layout.home()
    inside = (folder for folder in layout.interpreter_folders() if folder.is_relative_to(home))
    return sorted({folder.relative_to(home).parts[0] for folder in inside})


def _arrived(udp: socket.socket) -> bool:
    udp.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        return bool(udp.recv(16))
    return False
