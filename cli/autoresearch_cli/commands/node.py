"""``up``, ``down``, and ``install`` as a service; ``setup``: what is lent; ``open``: the pages; ``version``."""

from __future__ import annotations

import platform
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer
from packaging.version import InvalidVersion, Version

from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import WorkRequest
from autoresearch.errors import DaemonNotRunning, Refused, not_running
from autoresearch.text import counted
from autoresearch.version import __version__
from autoresearch.words import Part, WorkState
from autoresearch_cli import home, starting
from autoresearch_cli.acts import units
from autoresearch_cli.acts.home_backup import remove_all
from autoresearch_cli.catalogue import Answered, CommandApp, Json, Workers, Yes
from autoresearch_cli.models import DownAnswer, InstallAnswer, OpenAnswer, UpAnswer, VersionAnswer
from autoresearch_cli.rendering import output
from autoresearch_cli.rendering.status import next_step, works_alone
from autoresearch_cli.starting import pages_address, private_address, show_pages

app = CommandApp()


@app.command(
    "up",
    ("autoresearch up", "start the daemon; it works when you ask it to"),
    ("autoresearch up --work --workers 2", "start it and let it train two runs at a time"),
    ("autoresearch up --foreground", "stay in this terminal; Ctrl-C stops it"),
    see="down, status, work, node config",
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
            output.say(
                f"the daemon runs already and keeps its workers: autoresearch node config set work.workers {workers}"
            )
        _report("already_running", json=json)
        if open_them:
            show_pages(status)
        return
    first = not (home.paths().keys / "device.key").exists()
    if first and not (work or json or home.paths().settings.exists()):
        work = _ask_at_first()
    process = _start(workers, foreground=foreground)
    try:
        health = starting.wait_until_ready(process)
        if health.status != starting.READY:
            output.say(starting.unready(health))
        if work:
            _work()
    except BaseException:
        # Half started is worse than not started: leave nothing behind that nobody watches.
        if process:
            process.terminate()
        raise
    _report("started", json=json)
    if first and not json:
        output.say(starting.KEY_MADE)
    if open_them and (status := starting.daemon_status()):
        show_pages(status)
    if process and foreground:
        code = process.wait()
        raise typer.Exit(code if code >= 0 else 128 - code)


def _ask_at_first() -> bool:
    """Ask a person what is lent, once. Returns whether to begin to work."""
    from autoresearch_cli.acts.first_start import ask_what_is_lent, is_asked
    from autoresearch_cli.commands.network import join

    return is_asked() and ask_what_is_lent(join)


@app.command(
    "node setup",
    ("autoresearch node setup", "network, task, how much of this machine, when: one question each"),
    ("autoresearch node setup && autoresearch status", "and see what follows"),
    ("autoresearch node config edit", "all settings instead"),
    see="up, work, node config, network join",
)
def setup() -> None:
    """Ask what this machine may be used for: network, task, how much of it, when. The first `up` asks the same."""
    from autoresearch_cli.acts.first_start import ask_what_is_lent
    from autoresearch_cli.commands.network import join

    if not ask_what_is_lent(join):
        output.say("→ autoresearch up, and autoresearch work when you like")
        return
    starting.ensure_running()
    _work()
    output.say("→ autoresearch status")


def _start(workers: int | None, *, foreground: bool) -> subprocess.Popen[bytes] | None:
    """A new daemon's process; None where a service manager starts it, which `node install` asked to."""
    service = None if foreground or workers is not None else units.installed_here(home.environment())
    if service:
        units.start(service)
        return None
    process = starting.start(workers=workers, detached=not foreground)
    if foreground:
        _pass_on_signals(process)
    return process


def _work() -> None:
    from autoresearch_cli.acts.task_folders import network_task
    from autoresearch_cli.commands.work import say_default

    task = network_task()
    home.client().ask(Node.work, WorkRequest(task=task))
    say_default(task)


def _report(state: str, *, json: bool) -> None:
    # What was asked of it before it stopped it goes on with.
    status = starting.daemon_status()
    working = status is not None and status.state != WorkState.IDLE
    answer = UpAnswer(state=state, pid=status.pid if status else None, working=working)
    if json:
        output.print_json(answer)
        return
    if status is not None and status.pages:
        output.say(f"pages: {status.pages} → autoresearch open")
    for check in status.conditions if status else ():
        if check.name == Part.SANDBOX:
            output.say(f"sandbox: {check.sentence}")
    output.say("the daemon runs" if answer.state == "started" else "the daemon runs already")
    if status is None or working:
        output.say("→ autoresearch status")
    else:
        is_new = works_alone(status) and status.task is None
        output.say(f"→ {next_step(status)}{', or watch a few runs: autoresearch demo' if is_new else ''}")


def _pass_on_signals(process: subprocess.Popen[bytes]) -> None:
    """Let what would end this process end the daemon instead; this process then waits for it and ends after it."""

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    # The terminal sends Ctrl-C to both processes.
    signal.signal(signal.SIGINT, lambda *_: None)


@app.command(
    "down",
    ("autoresearch down", "stop the daemon; a run in progress is cancelled"),
    ("autoresearch node finish && autoresearch down", "no new run, then stop"),
    ("autoresearch down --json", "the same for a program"),
    see="up, node pause, node finish",
)
def down() -> Answered:
    """Stop the daemon. The work that you asked for goes on at its next start."""
    begin = time.monotonic()
    try:
        starting.stop()
    except DaemonNotRunning:
        yield DownAnswer(state="was_not_running")
        output.say("the daemon was not running")
        return
    yield DownAnswer(state="stopped", waited_ms=int((time.monotonic() - begin) * 1000))
    output.say("the daemon has stopped")


@app.command(
    "node install",
    (
        "autoresearch node install",
        "a service of yours: the daemon starts when you log in, or with lingering at boot",
    ),
    ("sudo autoresearch node install --system", "a service of the machine, which runs as you"),
    ("autoresearch node install --print", "what would be written, to look at or to change"),
    see="node uninstall, up, down, status",
)
def install(
    *,
    system: Annotated[bool, typer.Option("--system", help="For the whole machine, at boot; needs root.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Print the unit; write and start nothing.")] = False,
) -> Answered:
    """Start the daemon with this machine, as a unit of systemd, and now.

    It goes on with what it was asked for. A daemon that hangs or fails is started again. `autoresearch down` stops it
    until the next start.
    """
    unit = units.unit_here(home.environment(), system=system)
    if only_print:
        output.print_exactly(unit.text)
        return
    if starting.daemon_status() is not None and not units.is_installed(unit):
        raise Refused(
            "a daemon runs already, and a service would be a second one", hint="autoresearch down, then again"
        )
    units.install(unit)
    health = starting.wait_until_ready(None)
    status = starting.daemon_status()
    sandbox = status.sandbox_name if status else ""
    answer = InstallAnswer(path=str(unit.path), installed=True, ready=health.status == starting.READY, sandbox=sandbox)
    yield answer
    output.say(f"wrote {unit.path}; the daemon runs")
    if not answer.ready:
        output.say(f"it is not ready to work: {health.reason}")
    if sandbox:
        output.say(f"inside the service programs run at the sandbox level {sandbox}")
    if unit.hint:
        output.say(unit.hint)
    output.say(f"→ {unit.looks}; autoresearch node uninstall{' --system' if system else ''} undoes it")


@app.command(
    "node uninstall",
    ("autoresearch node uninstall", "stop the daemon and take the service away; keys, log and settings stay"),
    ("sudo autoresearch node uninstall --system", "the machine's service"),
    ("autoresearch node uninstall --everything", "settings, log, files and caches too; the keys stay"),
    see="node install, down, node paths",
)
def uninstall(
    *,
    system: Annotated[bool, typer.Option("--system", help="That of the whole machine; needs root.")] = False,
    everything: Annotated[
        bool, typer.Option("--everything", help="Remove settings, log, files and caches of this node too; no key.")
    ] = False,
    yes: Yes = False,
) -> Answered:
    """Take the service away that `node install` made. Keys, log and settings stay, but for --everything."""
    unit = units.unit_here(home.environment(), system=system)
    if everything:
        yield from _remove_everything(unit, yes=yes)
        return
    units.uninstall(unit)
    yield InstallAnswer(path=str(unit.path), installed=False)
    output.say(f"removed {unit.path}; the daemon has stopped")
    output.say("→ keys, log and settings stay where `autoresearch node paths` says")


def _remove_everything(unit: units.Unit, *, yes: bool) -> Answered:
    paths = home.paths()
    if not yes:
        output.say("runs that no peer has are lost; autoresearch node backup FILE keeps all")
        output.confirm(f"Remove settings, log, files and caches of the node in {paths.data}?")
    if units.is_installed(unit):
        units.uninstall(unit)
    with suppress(DaemonNotRunning):
        starting.stop()
    remove_all(paths)
    yield InstallAnswer(path=str(unit.path), installed=False)
    output.say("the node is gone from this machine")
    if paths.keys.exists():
        output.say(f"→ your keys stay in {paths.keys}: who has them is you; delete that folder yourself")


@app.command(
    "node version",
    ("autoresearch node version", "the version, and of which Python"),
    ("autoresearch node version --check", "whether connected peers have a newer one; nothing is updated"),
    ("autoresearch node version --check --json | jq -r .newest", "for a program"),
    see="network peers, node doctor",
)
def version(
    *, check: Annotated[bool, typer.Option("--check", help="Compare with what connected peers say they have.")] = False
) -> Answered:
    """Show the version. Nothing updates itself: the version of a run is part of what others compare."""
    agents = [peer.agent for peer in home.client().ask(Node.peers).peers if peer.connected] if check else []
    peers = Counter(agent.partition("/")[2] for agent in agents if agent.startswith("autoresearch/"))
    newest = max((parsed for text in peers if (parsed := _version(text))), default=None)
    is_newer = newest is not None and newest > Version(__version__)
    answer = VersionAnswer(
        version=__version__,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        newest=str(newest) if is_newer else "",
        peers=dict(peers),
    )
    yield answer
    output.print_labelled([("version", answer.version), ("python", answer.python), ("platform", answer.platform)])
    if not check:
        return
    if answer.newest:
        count = sum(number for text, number in peers.items() if _version(text) == newest)
        output.say(f"{counted(count, 'connected peer')} of {len(agents)} say they have {answer.newest}")
        output.say("→ pip install --upgrade autoresearch-p2p, where you installed it, then autoresearch down and up")
    elif peers:
        output.say(f"none of {counted(len(agents), 'connected peer')} has a newer version")
    else:
        output.say("no peer is connected that says its version → autoresearch network peers")


def _version(text: str) -> Version | None:
    """The version that a peer wrote, which may be anything."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


@app.command(
    "open",
    ("autoresearch open", "open the pages of this machine's daemon, with controls"),
    ("autoresearch open --print", "print the address instead: it lets a browser control the daemon"),
    ("autoresearch open --json", "the address without controls, for a script"),
    see="up, status, top",
)
def open_command(
    *,
    print_address: Annotated[
        bool, typer.Option("--print", help="Print the address with its token; open nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Open the local pages: progress, runs, leaderboard, what this node does."""
    status = starting.daemon_status()
    if status is None:
        raise not_running()
    if json:
        output.print_json(OpenAnswer(address=pages_address(status)))
    elif print_address:
        output.print_exactly(private_address(pages_address(status)) + "\n")
    else:
        show_pages(status)
