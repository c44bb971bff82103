"""``network list``, ``use``, ``bring``, ``forget``: the networks that this home has, side by side.

``bring`` has own runs of another network in the one in use, by the daemon where one runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from autoresearch.ask import publishing
from autoresearch.ask.acts.networks import (
    HomeNetwork,
    contents_of,
    find_home_network,
    forget_network,
    home_networks,
    network_to_use,
    runs_to_bring,
    use_network,
)
from autoresearch.ask.node import BroughtAnswer
from autoresearch.ask.records import RecordView
from autoresearch.ask.requests import BringRequest
from autoresearch.ask.show import record_view
from autoresearch.errors import AutoresearchError, Refused
from autoresearch.log.log import Log
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.text import counted
from autoresearch_cli import home, starting
from autoresearch_cli.catalogue import Answered, CommandApp, Yes, complete_network
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import BroughtRunsAnswer, HomeNetworksAnswer, HomeNetworkView
from autoresearch_cli.rendering.lists import BROUGHT_COLUMNS, HOME_NETWORK_COLUMNS
from autoresearch_cli.rendering.output import confirm, print_list, say

# At a time: how often a person sees how far it is.
RUNS_AT_ONCE = 20


def still_to_bring(origin: HomeNetwork) -> list[RecordView]:
    """The finished runs that the network in use lacks, parents before their children. Reads only."""
    network = origin.manifest.network
    with open_desk() as desk, Log.open(origin.paths.log, network, read_only=True) as log:
        if desk.me is None:
            return []
        return [record_view(log, run) for run in runs_to_bring(log, desk.log, desk.me, home.now_ms()).runs]


def bring_all(origin: HomeNetwork, *, progress: Callable[[int, int], None]) -> BroughtAnswer:
    """Publish them. ``progress`` is told how many are done, and of how many.

    Raises:
        AutoresearchError: it can't go on now; the sentence says how many were brought.
    """
    if origin.in_use:
        raise Refused(f"{origin.name} is the network in use: its runs are here", hint="autoresearch network list")
    brought = 0
    while True:
        try:
            answer = home.ask(publishing.bring, BringRequest(network=origin.id, most=RUNS_AT_ONCE))
        except AutoresearchError as error:
            done = f"; {counted(brought, 'run')} brought before that" if brought else ""
            raise type(error)(f"{str(error).rstrip('.')}{done}", hint=error.hint) from error
        brought += answer.brought
        if not answer.left:
            return BroughtAnswer(brought=brought, skipped=answer.skipped, repeated=answer.repeated, left=0)
        progress(brought, brought + answer.left)


app = CommandApp()

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A network of this home: its name, or its id's beginning.",
        autocompletion=complete_network,
    ),
]


@app.command(
    "network list",
    ("autoresearch network list", "their names, and which is in use"),
    ("autoresearch network list --json | jq -r '.networks[].name'", "the names for a program"),
    ("autoresearch network list && autoresearch network use tea", "look, then switch"),
    see="network use, network join, network bring",
)
def show_networks() -> Answered:
    """List the networks of this home. Each has its own log; keys and settings are shared."""
    answer = networks_answer()
    yield answer
    print_list(HOME_NETWORK_COLUMNS, answer.networks)
    used = next(network for network in answer.networks if network.in_use)
    status = starting.daemon_status()
    if status is not None and status.network_id != used.id:
        say(f"the daemon still works in {status.network} → autoresearch network use {used.name}")
    elif len(answer.networks) > 1:
        say("→ autoresearch network use NAME")


@app.command(
    "network use",
    ("autoresearch network use tea", "work in another network of this home from now on"),
    ("autoresearch node finish && autoresearch network use tea", "let the run in hand end first"),
    ("autoresearch network use commons", "back to the network without a manifest"),
    see="network list, network bring, node finish",
)
def use(name: Name) -> Answered:
    """Use another network of this home. A running daemon begins again in it; both logs stay as they are."""
    network = network_to_use(home.paths(), name)
    if not network.in_use:
        use_network(network.paths)
    sentences = follow(network)
    yield networks_answer()
    say(f"{network.name} is {'already' if network.in_use else 'now'} the network in use")
    for sentence in sentences:
        say(sentence)
    if network.manifest.network == DEFAULT_NETWORK and home.settings().network.enabled:
        say("its records are exchanged too; to be alone in it: autoresearch node config set network.enabled false")
    say("→ autoresearch status" if sentences else "→ autoresearch up")


@app.command(
    "network bring",
    ("autoresearch network bring commons --dry-run", "list the runs that would be published"),
    ("autoresearch network bring commons", "publish them in the network in use; again: only what is new"),
    ("autoresearch network join INVITE --bring", "the same while joining"),
    see="network list, network use, node records",
)
def bring_runs(
    origin: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The network of this home that they come from.", autocompletion=complete_network
        ),
    ],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them and publish nothing.")] = False,
) -> Answered:
    """Publish your finished runs of another network in the one in use, with the values that you reported.

    They are signed anew and verified there like any others. Each comes with its task, program, log and checkpoint, as
    far as those are on this machine. A run whose parent is another participant's has no parent there.
    """
    network = find_home_network(home.paths(), origin)
    if network.in_use:
        raise Refused(f"{network.name} is the network in use: its runs are here", hint="autoresearch network list")
    if dry_run:
        runs = still_to_bring(network)
        yield BroughtRunsAnswer(network=home.manifest().network.name, origin=network.name, runs=runs)
        print_list(BROUGHT_COLUMNS, runs)
        say(f"{counted(len(runs), 'run')} to bring from {network.name}")
        if runs:
            say(f"→ autoresearch network bring {network.name}")
        return
    answer = bring_from(network)
    yield answer
    say("→ autoresearch node records --kind run")


@app.command(
    "network forget",
    ("autoresearch network forget tea", "asks first, on a terminal"),
    ("autoresearch run export --bundle tea.car", "keep a copy of the network in use before"),
    ("autoresearch network forget tea --yes --json", "without a question, for a program"),
    see="network list, network use, run export",
)
def forget(
    name: Name,
    *,
    yes: Yes = False,
) -> Answered:
    """Remove a network's log and files from this machine, never a key. What nobody else has of it is lost."""
    network = find_home_network(home.paths(), name)
    status = starting.daemon_status()
    if status is not None and status.network_id == network.id:
        raise Refused(f"the daemon works in {network.name}", hint="first use another: autoresearch network use NAME")
    if not yes and not network.in_use:
        held = contents_of(network)
        confirm(f"Remove the {counted(held.records, 'record')} of {network.name} and their files for good?")
    forget_network(network)
    yield networks_answer()
    say(f"{network.name} is forgotten: its log and files are gone, your keys are not")
    say("→ autoresearch network list")


def after_joining(left: HomeNetwork | None, *, bring: bool) -> None:
    """Say what joining a network beside the one that was used means, and bring own runs of that one."""
    networks = home_networks(home.paths())
    current = next(network for network in networks if network.in_use)
    others = [network for network in networks if not network.in_use and left in (None, network)]
    if left is not None:
        say(f"{current.name} is now the network in use; back to the other one: autoresearch network use {left.name}")
        for sentence in follow(current):
            say(sentence)
    if not bring:
        mine = len(still_to_bring(left)) if left is not None else 0
        if left is not None and mine:
            stay = "stays" if mine == 1 else "stay"
            say(f"{counted(mine, 'run')} of yours {stay} there → autoresearch network bring {left.name}")
        return
    if len(others) == 1:
        bring_from(others[0])
    else:
        say("no run is brought: name the network that they come from with autoresearch network bring FROM")


def networks_answer() -> HomeNetworksAnswer:
    """The networks of this home as programs get them."""
    return HomeNetworksAnswer(networks=[_view(network) for network in home_networks(home.paths())])


def bring_from(origin: HomeNetwork) -> BroughtRunsAnswer:
    """Bring own runs and say how far it is, and how it ended."""
    answer = bring_all(origin, progress=lambda done, of: say(f"{done} of {of} runs"))
    say(f"{counted(answer.brought, 'run')} of {origin.name} brought here")
    if answer.skipped:
        say(f"{answer.skipped} left out, whose program is not on this machine")
    if answer.repeated:
        say(f"{answer.repeated} left out, whose program another participant has run here with the same seed")
    return BroughtRunsAnswer(
        network=home.manifest().network.name,
        origin=origin.name,
        brought=answer.brought,
        skipped=answer.skipped,
        repeated=answer.repeated,
    )


def follow(network: HomeNetwork) -> list[str]:
    """Have a running daemon work in this network; what a person should know of it. Empty where none runs."""
    status = starting.daemon_status()
    if status is None:
        return []
    if status.network_id == network.id:
        return ["the daemon works in it"]
    had = [worker.run.title for worker in status.workers if worker.run]
    health = starting.restart()
    sentences = ["the daemon has begun again in it; what waits in the other network stays there"]
    if health is not None and health.status != starting.READY:
        sentences.append(starting.unready(health))
    if had:
        sentences.append(f"stopped, and recorded there as cancelled: {', '.join(map(repr, had))}")
    return sentences


def _view(network: HomeNetwork) -> HomeNetworkView:
    try:
        held = contents_of(network)
    except Refused as error:  # such as one that an earlier version wrote, and that was not in use since
        say(f"{network.name}: {error}")
        return HomeNetworkView(name=network.name, id=network.id, participants=None, records=None, in_use=network.in_use)
    return HomeNetworkView(
        name=network.name, id=network.id, participants=held.participants, records=held.records, in_use=network.in_use
    )
