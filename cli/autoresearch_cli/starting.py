"""Start the daemon as a process and wait until it is ready.

Also the address of the local pages, and a browser that opens it. Knows no command and prints nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.ask.node import Health, StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, Refused, TimedOut
from autoresearch.paths import Paths, write_refusals
from autoresearch.words import WHY_SENTENCES, Result, Why
from autoresearch_cli import home
from autoresearch_cli.rendering.output import say

if TYPE_CHECKING:
    import subprocess

# A cold start reads the log, on a busy machine for half a minute; more than three mean that something hangs.
READY_SECONDS, SLOW_SECONDS = 180.0, 3.0
# It answers but is not ready: the sandbox's test takes seconds; a full disk or a log that is behind lasts.
UNREADY_SECONDS = 15.0
POLL_SECONDS = 0.05
READY = "ready"
STOP_SECONDS = 60.0
KEY_MADE = "made a root key, unencrypted → autoresearch node id passphrase encrypts it"
# What errors end with; above are signals and faults.
MOST_EXIT_STATUS = 9
OUTPUT_NAME = "daemon.out"


def daemon_status() -> StatusAnswer | None:
    """What a running daemon says, or None when none runs."""
    try:
        return home.client().ask(Node.status)
    except DaemonNotRunning:
        return None


def start(
    *, workers: int | None, detached: bool, bound: bool = False, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start ``python -m autoresearch_daemon``; what it prints goes to a file, or stays here when not ``detached``.

    A daemon that is ``bound`` is told to stop when this process ends, however it ends. With another ``environment`` it
    is a daemon of another home.
    """
    import subprocess

    from autoresearch.link import death_signal

    environment = dict(home.environment() if environment is None else environment)
    paths = Paths.from_environment(environment)
    paths.create()
    if workers is not None:
        environment["AUTORESEARCH_WORK_WORKERS"] = str(workers)
    # -P: a folder that somebody works in may have a package of this name, which is not to be run.
    command = [sys.executable, "-P", "-m", "autoresearch_daemon"]
    if not detached:
        output_file(paths).unlink(missing_ok=True)
        return subprocess.Popen([*command, "--verbose"], env=environment, stdin=subprocess.DEVNULL)
    with write_refusals():
        descriptor = os.open(output_file(paths), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # A session of its own: closing the terminal or Ctrl-C in it doesn't reach the daemon.
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            preexec_fn=death_signal(signal.SIGTERM) if bound else None,  # noqa: PLW1509 - no threads are started before
        )
    finally:
        os.close(descriptor)


def output_file(paths: Paths) -> Path:
    """What a detached daemon printed besides its log."""
    return paths.state / OUTPUT_NAME


def wait_until_ready(process: subprocess.Popen[bytes] | None, *, seconds: float = READY_SECONDS) -> Health:
    """Return as soon as the daemon is ready, or has said for a while that it isn't and why.

    ``process`` is None where a service manager has started it.

    Raises:
        AutoresearchError: it ended instead; the sentence holds its last words.
        TimedOut: it does not answer within ``seconds``.
    """
    return _wait_until_ready(process.poll if process else lambda: None, since_ms=None, seconds=seconds)


def ensure_running() -> None:
    """Start the daemon in the background where none runs. Raises as :func:`wait_until_ready` does."""
    if daemon_status() is not None:
        return
    first = not (home.paths().keys / "device.key").exists()
    process = start(workers=None, detached=True)
    try:
        wait_until_ready(process)
    except BaseException:  # half started is worse than not started
        process.terminate()
        raise
    say("started the daemon → autoresearch down stops it")
    if first:
        say(KEY_MADE)


def restart() -> Health | None:
    """Have a running daemon begin again, with the settings and the network of now, and wait as above; None without one.

    Raises:
        AutoresearchError: it ended instead; the sentence holds its last words.
        Refused: it is of a version that can't do that.
        TimedOut: it does not answer in time.
    """
    status = daemon_status()
    if status is None:
        return None
    try:
        home.client().ask(Node.restart)
    except NotFound as error:
        hint = "autoresearch down && autoresearch up"
        raise Refused("the daemon is of an earlier version and can't begin again by itself", hint=hint) from error

    def ended() -> int | None:
        return None if is_alive(status.pid) else 1

    return _wait_until_ready(ended, since_ms=status.started_ms, seconds=READY_SECONDS)


def unready(health: Health) -> str:
    """That a daemon is not ready to work, and why: what every start does first is no failure."""
    is_starting = health.reason in {WHY_SENTENCES[Why.TESTING_SANDBOX], WHY_SENTENCES[Why.ASKING_PEERS]}
    return f"the daemon {'works in a moment' if is_starting else 'is not ready to work'}: {health.reason}"


def _wait_until_ready(ended: Callable[[], int | None], *, since_ms: int | None, seconds: float) -> Health:
    """Wait for a daemon that is not the one which started at ``since_ms``."""
    begun = time.monotonic()
    deadline, is_slow = begun + seconds, False
    health = None
    while time.monotonic() < deadline:
        if (code := ended()) is not None:
            error = AutoresearchError(
                f"the daemon did not start: {last_words(home.paths()) or _ailment() or f'exit status {code}'}",
                hint=f"autoresearch node doctor; its log is {home.paths().daemon_log}",
            )
            if AutoresearchError.exit_status < code <= MOST_EXIT_STATUS:
                error.exit_status = code  # a refusal of the daemon is one here
            raise error
        with suppress(DaemonNotRunning, TimedOut):
            if since_ms is None or home.client().ask(Node.status).started_ms != since_ms:
                answer = home.client().ready()
                if answer.status == READY:
                    return answer
                if health is None:
                    deadline = min(deadline, time.monotonic() + UNREADY_SECONDS)
                health = answer
        if not is_slow and time.monotonic() > begun + SLOW_SECONDS:
            is_slow = True
            slowly = f"it loads its program and the log, slowly on a busy machine; it has {seconds:.0f} s"
            say(f"waiting for the daemon: {health.reason if health else slowly}")
        time.sleep(POLL_SECONDS)
    if health is None:
        raise TimedOut(f"the daemon does not answer after {seconds:.0f} s", hint="autoresearch node doctor")
    return health


def is_running() -> bool:
    """Whether a daemon listens, whatever it answers and whatever its database is like."""
    with suppress(DaemonNotRunning):
        home.client().process()
        return True
    return False


def stop() -> None:
    """Have the daemon stop, and wait until it is gone. One that doesn't answer gets a signal.

    Raises DaemonNotRunning where none runs, TimedOut.
    """
    client = home.client()
    pid = client.process()
    try:
        client.ask(Node.stop)
    except DaemonNotRunning:
        raise
    except AutoresearchError:
        if pid is None:
            raise
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while is_alive(pid) if pid else home.paths().socket.exists():
        if time.monotonic() > deadline:
            hint = f"kill -9 {pid} ends it, and nothing stored is lost; " if pid else ""
            raise TimedOut(
                f"the daemon was asked to stop and is still there after {STOP_SECONDS:.0f} s",
                hint=f"{hint}its log says why: {home.paths().daemon_log}",
            )
        time.sleep(POLL_SECONDS)


def is_alive(pid: int | None) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    import psutil

    try:
        return pid is not None and bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def last_words(paths: Paths) -> str:
    """The last line that a detached daemon printed; where that is a hint, what it is about too."""
    try:
        lines = output_file(paths).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    if len(lines) > 1 and lines[-1].startswith("  "):
        return f"{lines[-2].removeprefix('autoresearchd: ')} → {lines[-1].strip()}"[-500:]
    return lines[-1][-500:] if lines else ""


def _ailment() -> str:
    """What keeps this home from being used, with its remedy: a daemon whose output has no room can't say so."""
    from autoresearch.ask.health import conditions, examine

    checks = conditions(examine(home.paths(), home.environment(), home.now_ms()))
    return next((f"{check.detail} → {check.fix}" for check in checks if check.result == Result.FAILED), "")


OPENER = "open-pages.html"


def pages_address(status: StatusAnswer) -> str:
    """Where the daemon serves its pages. Raises Refused when they are off."""
    if not status.pages:
        raise Refused(
            "the pages are off", hint="autoresearch node config set api.port 8420, then autoresearch down and up"
        )
    return status.pages


def private_address(address: str) -> str:
    """The address with the token in its fragment, which a browser sends to nobody: the page has controls then."""
    return f"{address}#token={home.paths().make_api_token()}"


def show_pages(status: StatusAnswer) -> None:
    """Open the pages in a browser, or say where they are. Raises Refused when they are off."""
    address = pages_address(status)
    if open_pages(address):
        say(f"the pages are open in your browser: {address}")
    else:
        say(f"no browser was found here; open {address} yourself")
        say("→ autoresearch open --print prints the address with controls")


def announce_pages(status: StatusAnswer) -> None:
    """Say where the pages are, and on a desktop open them, without controls."""
    if status.pages:
        say(f"pages: {status.pages}")
        if has_display():
            import webbrowser

            webbrowser.open(status.pages)


def open_pages(address: str) -> bool:
    """Open the pages with controls in a browser; whether one was found.

    The browser is given a file that leads there: its command line, which all users of this machine can read, would show
    the token.
    """
    if not has_display():
        return False
    file = home.paths().state / OPENER
    import webbrowser
    from html import escape

    target = escape(private_address(address), quote=True)
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
    _write_private(file, text)
    return webbrowser.open(file.as_uri())


def has_display() -> bool:
    """Whether a browser has a screen to open on; a text browser would take the terminal."""
    if os.name != "posix" or os.uname().sysname == "Darwin":
        return True
    return bool(home.environment().get("DISPLAY") or home.environment().get("WAYLAND_DISPLAY"))


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(text)
