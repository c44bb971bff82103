"""``peers``: the other nodes. ``peers add`` connects to one."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import DialRequest, PeersAnswer
from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.figures import age, size
from autoresearch_cli.rendering.output import print_json, print_rows, say

app = command_app(no_args_is_help=False)
apps = {"peers": app}


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch peers", "who is connected, and who was"),
        ("autoresearch peers add /ip4/203.0.113.7/tcp/4001/p2p/12D3…", "connect to a node, and stay connected"),
        ("autoresearch peers --json | jq .addresses", "what others need to reach this node"),
        see="status, config set network.enabled true",
    ),
)
def peers(context: typer.Context, *, json: Json = False) -> None:
    """Show this node's addresses and its peers. Offline is normal: what was missed is fetched later."""
    if context.invoked_subcommand is None:
        with here.client() as client:
            _report(client.peers(), json=json)


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
    with here.client() as client:
        answer = client.dial(DialRequest(address=address))
    _report(answer, json=json)
    say("connecting → autoresearch peers")


def _report(answer: PeersAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    say(f"network {answer.network.state}: {answer.network.reason}")
    print_rows(("this node", address, "") for address in answer.addresses)
    now_ms = here.now_ms()
    print_rows(
        (
            "connected" if peer.connected else "offline",
            peer.address or peer.peer,
            f"{size(peer.bytes_in)} in, {size(peer.bytes_out)} out, seen {age(peer.seen_ms, now_ms)}",
        )
        for peer in answer.peers
    )
