"""``autoresearchd``: start a node, serve its API, stop cleanly within ten seconds."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

import msgspec

from autoresearch.ask.requests import WorkRequest
from autoresearch.errors import AutoresearchError
from autoresearch.paths import NETWORK_VARIABLE, Paths, write_refusals
from autoresearch.run.sandbox.cards import named_devices
from autoresearch.settings import MAIL_PASSWORD_VARIABLE, Api, Settings, load_settings
from autoresearch.text import sanitised
from autoresearch.version import __version__
from autoresearch_daemon.api.app import make_app
from autoresearch_daemon.api.listen import Tcp, serve
from autoresearch_daemon.events import set_up_logging
from autoresearch_daemon.handlers import ApiHandlers
from autoresearch_daemon.node import Node
from autoresearch_daemon.systemd import ServiceManager

# The thread of the log gives way to the event loop after this. Python's own 5 ms, at each read of the log, add up.
SWITCH_SECONDS = 0.0005


def main() -> None:
    """Entry of the command; the exit status says how it ended."""
    options, environment = parse_options(), dict(os.environ)
    try:
        paths = Paths.from_environment(os.environ)
        os.environ[NETWORK_VARIABLE] = paths.folder  # workers stay in this network when another one is put in use
        settings, sources = load_settings(paths.settings, os.environ)
        settings = with_options(settings, options)
        paths.create()
        with write_refusals():
            set_up_logging(paths.daemon_log, settings.logging.level, to_terminal=options.verbose)
        devices = named_devices(settings.work.device)
        sys.setswitchinterval(SWITCH_SECONDS)
        tcp = tcp_of(settings.api, paths, fixed=sources["api.port"] != "default")
        again = asyncio.run(run(paths, settings, devices, tcp, options))
    except AutoresearchError as error:
        print(f"autoresearchd: {sanitised(str(error))}", file=sys.stderr)  # noqa: T201 - words for the person who started it
        if error.hint:
            print(f"  {sanitised(error.hint)}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    if again:  # the same process, as whoever started it waits for its end
        os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - our own command line


def parse_options() -> argparse.Namespace:
    """The command line. Everything else is a setting: a file or environment variables."""
    parser = argparse.ArgumentParser(prog="autoresearchd", description="The daemon of one autoresearch node.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--work", action="store_true", help="begin to work at once")
    parser.add_argument("--task", default="", help="folder of the task to work on; default: the one that ships")
    parser.add_argument("--runs", type=int, default=None, help="with --work: stop working after so many runs")
    parser.add_argument("--workers", type=int, default=None, help="training processes at a time")
    parser.add_argument("--verbose", action="store_true", help="write the log to the terminal too")
    return parser.parse_args()


def with_options(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings with what the command line says."""
    if options.workers is None:
        return settings
    work = msgspec.structs.replace(settings.work, workers=options.workers)
    return msgspec.structs.replace(settings, work=work)


def tcp_of(settings: Api, paths: Paths, *, fixed: bool) -> Tcp | None:
    """Where pages and API are served over TCP; None when they are off."""
    if not settings.port:
        return None
    names = frozenset(name.strip().lower() for name in settings.names.split(",") if name.strip())
    token = paths.make_api_token()
    return Tcp(settings.port, token, settings.address, names, fixed=fixed, pages_only=settings.read_only)


async def run(
    paths: Paths, settings: Settings, devices: list[str], tcp: Tcp | None, options: argparse.Namespace
) -> bool:
    """One life of the daemon; whether it was asked to begin another one."""
    node = Node(paths, settings, devices)
    answering = ApiHandlers(node)
    os.environ.pop(MAIL_PASSWORD_VARIABLE, None)  # what is started from here on has no use for it
    manager = ServiceManager(os.environ)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(node.note_loop_error)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.end)
    try:
        async with serve(make_app(answering), socket=paths.socket, tcp=tcp) as answering.pages:
            await node.start()
            if options.work:
                await answering.orders.work(WorkRequest(task=options.task, runs=options.runs))
            telling = asyncio.create_task(manager.keep_telling(lambda: node.parts.service.status().reason))
            await node.wait()
            telling.cancel()
    finally:
        manager.tell("STOPPING=1")
        await node.stop()
    return node.again
