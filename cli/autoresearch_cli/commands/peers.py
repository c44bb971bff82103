"""``peers``: the other nodes. ``peers add`` connects to one, ``peers block`` refuses one."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import BlockRequest, DialRequest, PeersAnswer, operations
from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.peers import print_peers

RUNNING = "running"
PeerId = Annotated[
    str, typer.Argument(metavar="PEER", help="A peer id, 12D3KooW…, or the end of one, as `peers` shows it.")
]
app = command_app(no_args_is_help=False)
apps = {"peers": app}


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch peers", "which peers are connected, and which were"),
        ("autoresearch peers add /ip4/203.0.113.7/tcp/4001/p2p/12D3…", "connect to a node, and stay connected"),
        ("autoresearch peers --json | jq .addresses", "what others need to reach this node"),
        see="status, network, doctor network",
    ),
)
def peers(context: typer.Context, *, json: Json = False) -> None:
    """Show this node's addresses and its peers. Offline is normal: what was missed is fetched later."""
    if context.invoked_subcommand is None:
        _report(here.client().ask(operations.PEERS), json=json)


@app.command(
    epilog=examples(
        ("autoresearch peers add /ip4/192.168.1.20/tcp/4001/p2p/12D3…", "a node in the same house"),
        ("autoresearch peers add /dns4/node.example.org/tcp/4001/p2p/12D3…", "a node with a name"),
        ("autoresearch peers add ADDRESS --json", "the same for a program"),
        see="peers, status",
    )
)
def add(
    address: Annotated[str, typer.Argument(help="A multiaddr that ends in /p2p/PEER, as `peers` shows it there.")],
    *,
    json: Json = False,
) -> None:
    """Connect to a node; its address is kept and tried again."""
    answer = here.client().ask(operations.DIAL, DialRequest(address=address))
    _report(answer, json=json)
    say("connecting → autoresearch peers")


@app.command(
    epilog=examples(
        ("autoresearch peers block 12D3KooW…", "refuse a peer, now and after every start"),
        ("autoresearch peers unblock 12D3KooW…", "no longer"),
        ("autoresearch peers block 12D3KooW… --json", "the same for a program"),
        see="peers, doctor network",
    )
)
def block(peer: PeerId, *, json: Json = False) -> None:
    """Refuse a peer from now on: close its connection, do not dial it, accept nothing from it."""
    _block(peer, blocked=True, json=json)


@app.command(
    epilog=examples(
        ("autoresearch peers unblock 12D3KooW…", "let a peer in again"),
        ("autoresearch peers", "who is blocked"),
        ("autoresearch peers unblock 12D3KooW… --json", "the same for a program"),
        see="peers, peers block",
    )
)
def unblock(peer: PeerId, *, json: Json = False) -> None:
    """Refuse a peer no longer."""
    _block(peer, blocked=False, json=json)


def _block(peer: str, *, blocked: bool, json: bool) -> None:
    answer = here.client().ask(operations.BLOCK, BlockRequest(peer=peer, blocked=blocked))
    if json:
        print_json(answer)
    else:
        say(f"{peer} is {'blocked' if blocked else 'no longer blocked'}")
        say("→ autoresearch peers")


def _report(answer: PeersAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    say(answer.network.reason)
    print_peers(answer, now_ms=here.now_ms())
    if not answer.peers and answer.network.state == RUNNING:
        say("→ no peer is known yet: autoresearch doctor network")
