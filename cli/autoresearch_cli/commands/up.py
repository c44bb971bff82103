"""``up``: start the daemon, in the background or here."""

from __future__ import annotations

import signal
import subprocess
from types import FrameType
from typing import Annotated

import typer

from autoresearch.api import WorkRequest, operations
from autoresearch.words import WorkState
from autoresearch_cli import here, starting
from autoresearch_cli.models import UpAnswer
from autoresearch_cli.options import Json, Workers, command_app, examples
from autoresearch_cli.pages import show_pages
from autoresearch_cli.rendering.output import print_json, say

app = command_app()
apps = {"up": app}


@app.command(
    epilog=examples(
        ("autoresearch up", "start the daemon; it works when you ask it to"),
        ("autoresearch up --work --workers 2", "start it and let it train two runs at a time"),
        ("autoresearch up --foreground", "stay in this terminal; Ctrl-C stops it"),
        see="down, status, work, config",
    )
)
def up(
    *,
    work: Annotated[bool, typer.Option("--work", help="Start working at once.")] = False,
    workers: Workers = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run in this terminal instead of the background.")
    ] = False,
    open_them: Annotated[bool, typer.Option("--open", help="Open the local pages in a browser.")] = False,
    json: Json = False,
) -> None:
    """Start the daemon on this machine. It runs in the background until `autoresearch down`."""
    status = starting.daemon_status()
    if status is not None:
        if work:
            _work()
        if workers is not None:
            say("the daemon runs already and keeps its workers: autoresearch down, then up --workers")
        _report("already_running", status.pid, json=json)
        if open_them:
            show_pages(status)
        return
    first = not (here.paths().keys / "device.key").exists()
    process = starting.start(workers=workers, detached=not foreground)
    if foreground:
        _pass_on_signals(process)
    try:
        health = starting.wait_until_ready(process)
        if health.status != starting.READY:
            say(f"the daemon is not ready to work: {health.reason}")
        if work:
            _work()
    except BaseException:
        # Half started is worse than not started: leave nothing behind that nobody watches.
        process.terminate()
        raise
    _report("started", process.pid, json=json)
    if first and not json:
        say("made a root key, unencrypted → autoresearch id passphrase encrypts it")
    if open_them and (status := starting.daemon_status()):
        show_pages(status)
    if foreground:
        code = process.wait()
        raise typer.Exit(code if code >= 0 else 128 - code)


def _work() -> None:
    here.client().ask(operations.WORK, WorkRequest())


def _report(state: str, pid: int | None, *, json: bool) -> None:
    # What was asked of it before it stopped it goes on with.
    status = starting.daemon_status()
    answer = UpAnswer(state=state, pid=pid, working=status is not None and status.state != WorkState.IDLE)
    if json:
        print_json(answer)
        return
    if status is not None and status.pages:
        say(f"pages: {status.pages} → autoresearch open")
    say("the daemon runs" if answer.state == "started" else "the daemon runs already")
    say("→ autoresearch status" if answer.working else "→ autoresearch work, or watch a few runs: autoresearch demo")


def _pass_on_signals(process: subprocess.Popen[bytes]) -> None:
    """Let what would end this process end the daemon instead; this process then waits for it and ends after it."""

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    # The terminal sends Ctrl-C to both processes.
    signal.signal(signal.SIGINT, lambda *_: None)
