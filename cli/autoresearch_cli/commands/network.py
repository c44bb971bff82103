"""``network``: the network of this node. Create one, join one, invite others, change its trust list."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.api import operations
from autoresearch.errors import DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.identity import Trust
from autoresearch.installing import install_command
from autoresearch.networks import (
    NONCE_BYTES,
    PRESETS,
    Manifest,
    Preset,
    PresetName,
    load_manifest,
    parse_constant,
    parse_key,
    save_manifest,
    unusual_constants,
    write_invite,
)
from autoresearch.paths import typed_path
from autoresearch.records import Network
from autoresearch_cli import here, joining, starting
from autoresearch_cli.models import NetworkAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.figures import counted
from autoresearch_cli.rendering.output import print_json, print_labelled, print_text, say

STARTING_SECONDS = 15.0
app = command_app("The network of this node: create one, join one, invite others.", no_args_is_help=False)
apps = {"network": app}

Key = Annotated[str, typer.Argument(help="A participant's root key: `id show` prints it as “participant”.")]
ByHand = Annotated[bool, typer.Option("--participant", help="The key is a participant's, not an attestor's.")]


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch network join autoresearch1…", "join with an invite"),
        ("autoresearch network show", "which network this is, and its trust list"),
        ("autoresearch network new tea && autoresearch network join tea.toml", "create one, and be its first node"),
        see="peers, config, id show",
    ),
)
def network(context: typer.Context) -> None:
    """A network is a set of constants, a trust list, and some nodes to begin with. It has no owner."""
    if context.invoked_subcommand is None:
        show()
        say("→ autoresearch network --help")


@app.command(
    epilog=examples(
        ("autoresearch network new tea", "write tea.toml"),
        ("autoresearch network new lab --for lab --participant KEY", "a team's own machines, you among them"),
        ("autoresearch network new tea --for open --attestor KEY --attestor KEY", "with its attestors"),
        see="network join, id show",
    )
)
def new(  # noqa: PLR0913 - one option for each part of a manifest
    name: Annotated[str, typer.Argument(help="What the network is called: letters, digits, dots, dashes.")],
    *,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file; NAME.toml if left out.")] = None,
    attestor: Annotated[list[str] | None, typer.Option(help="The root key of an attestor; may be repeated.")] = None,
    needed: Annotated[int, typer.Option(help="How many attestors it takes.")] = Trust().needed,
    participant: Annotated[list[str] | None, typer.Option(help="A root key that needs no attestor.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="A task's digest: `task show` prints it.")] = None,
    bootstrap: Annotated[list[str] | None, typer.Option(help="The address of a node to begin with.")] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A constant that is not the usual one; may be repeated."),
    ] = None,
    kind: Annotated[
        PresetName | None,
        typer.Option("--for", help="lab: one team; friends: you name them by hand; open: attested by mail."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the manifest of a new network. This node joins it with `network join FILE`."""
    preset = PRESETS[kind] if kind else Preset(who_counts="", confirmed_from=0, by_hand=False)
    known = {*map(parse_key, participant or ()), *([own_root()] if preset.by_hand else [])}
    numbers = preset.constants | dict(map(parse_constant, constants or ()))
    manifest = Manifest(
        Network(name=name, nonce=secrets.token_bytes(NONCE_BYTES), **numbers),
        Trust(frozenset(map(parse_key, attestor or ())), needed, frozenset(known)),
        tuple(dict.fromkeys(map(parse_key, task or ()))),
        tuple(dict.fromkeys(bootstrap or ())),
    )
    path = typed_path(output or f"{name}.toml")
    if path.exists():
        raise Refused(f"{path} exists", hint="choose another file with -o: a network is never overwritten")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.absolute().parent}")
    save_manifest(path, manifest)
    _report(_answer(manifest, path, []), json=json)
    if not json:
        if kind:
            say(f"for {kind}: {preset.who_counts}; a run can be confirmed from {preset.confirmed_from} participants on")
        if preset.by_hand:
            say(
                "you count from the start; name the others with --participant KEY, or later: autoresearch network trust"
            )
        say(f"→ autoresearch network join {path}, then autoresearch up, then autoresearch network invite for others")


@app.command(
    epilog=examples(
        ("autoresearch network join tea.toml", "with its file"),
        ("autoresearch network join autoresearch1…", "with an invite"),
        ("autoresearch network join /ip4/203.0.113.7/tcp/4001/p2p/12D3…", "by asking a node that is in it"),
        see="network show, up, peers",
    )
)
def join(
    where: Annotated[
        str, typer.Argument(metavar="FILE|INVITE|ADDRESS", help="A manifest, an invite, or the address of a node.")
    ],
    *,
    json: Json = False,
) -> None:
    """Join a network and start to exchange records. No port has to be open here."""
    found = joining.find_network(where)
    manifest, enabled = joining.join(found.manifest)
    _report(_answer(manifest, here.paths().manifest), json=json)
    if found.by_word:
        say("the trust list comes from that node alone: compare id and attestors with another participant")
    if manifest.trust != found.manifest.trust:
        say("you were in this network already: your trust list is unchanged")
    if not enabled:
        say(f"the network stays off, libp2p is not installed → {install_command('network')}, then join again")
    _say_next()


@app.command(
    epilog=examples(
        ("autoresearch network show", "its name, id, trust list, and an invite"),
        ("autoresearch network show --json | jq -r .id", "the id for a program"),
        ("autoresearch network show --json | jq -r .file", "its file, to edit or to send"),
        see="peers, network invite, network trust",
    )
)
def show(*, json: Json = False) -> None:
    """Show the network this node is in."""
    _report(_answer(here.manifest(), here.paths().manifest), json=json)


@app.command(
    epilog=examples(
        ("autoresearch network invite", "one long word to send to another participant"),
        ("autoresearch network invite | qrencode -t utf8", "the same to be photographed"),
        ("autoresearch network invite --json", "with its contents"),
        see="network join, peers",
    )
)
def invite(*, json: Json = False) -> None:
    """Print an invite: one word that holds the network, with this node's addresses when the daemon runs."""
    manifest = here.manifest()
    # Who asks right after `up` gets the addresses too: libp2p takes seconds to start.
    addresses = joining.own_addresses(patience_seconds=STARTING_SECONDS)
    answer = _answer(manifest, here.paths().manifest, addresses)
    if json:
        print_json(answer)
        return
    print_text(write_invite(joining.to_be_sent(manifest, addresses)))
    if not addresses and not manifest.bootstrap:
        say("it holds no address yet: start the daemon with the network on, and print it again")
    say("→ autoresearch network join INVITE, on another machine")


@app.command(
    epilog=examples(
        ("autoresearch network trust KEY", "trust an attestor"),
        ("autoresearch network trust KEY --participant", "count a participant as attested"),
        ("autoresearch network show", "look at the list"),
        see="network distrust, id show",
    )
)
def trust(key: Key, *, participant: ByHand = False, json: Json = False) -> None:
    """Trust one more attestor on this machine. Its attestations count here at once."""
    manifest, root = here.manifest(), parse_key(key)
    _change(manifest.with_participant(root) if participant else manifest.with_attestor(root), json=json)


@app.command(
    epilog=examples(
        ("autoresearch network distrust KEY", "stop trusting an attestor"),
        ("autoresearch network distrust KEY --participant", "count a participant as unattested"),
        ("autoresearch network show", "look at the list"),
        see="network trust, peers",
    )
)
def distrust(key: Key, *, participant: ByHand = False, json: Json = False) -> None:
    """Stop trusting an attestor on this machine. Its attestations stop counting here at once."""
    manifest, root = here.manifest(), parse_key(key)
    _change(manifest.without_participant(root) if participant else manifest.without_attestor(root), json=json)


def own_root() -> bytes:
    """This participant's root key; the keys are made where there are none yet."""
    from autoresearch.identity import make_identity

    here.paths().create()
    return make_identity(here.paths().keys).root.public


def _change(manifest: Manifest, *, json: bool) -> None:
    path = here.paths().manifest
    if manifest != load_manifest(path):
        save_manifest(path, manifest)
    heard = _tell_daemon()
    _report(_answer(manifest, path), json=json)
    say(heard)


def _tell_daemon() -> str:
    """Have the daemon go by the file; a sentence about how that went."""
    try:
        here.client().ask(operations.TRUST)
    except DaemonNotRunning:
        return "the trust list is changed; no daemon runs"
    except NotFound:
        return "the daemon is of an earlier version → autoresearch down && autoresearch up"
    return "the trust list is changed, and the daemon uses it"


def _say_next() -> None:
    if starting.daemon_status() is None:
        say("→ autoresearch up")
    else:
        say("the daemon still uses the network that it read at its start → autoresearch down && autoresearch up")


def _answer(manifest: Manifest, path: Path, addresses: list[str] | None = None) -> NetworkAnswer:
    mine = joining.own_addresses() if addresses is None else addresses
    try:
        word = write_invite(joining.to_be_sent(manifest, mine))
    except UsageError:
        word = ""  # too long for an invite: the file does the same
    found, trusted = manifest.network, manifest.trust
    return NetworkAnswer(
        name=found.name,
        id=found.id.hex(),
        file=str(path.absolute()),
        enabled=path == here.paths().manifest and here.settings().network.enabled,
        constants=unusual_constants(found),
        attestors=sorted(key.hex() for key in trusted.attestors),
        needed=trusted.needed,
        participants=sorted(key.hex() for key in trusted.participants),
        tasks=[digest.hex() for digest in manifest.tasks],
        bootstrap=list(manifest.bootstrap),
        addresses=mine,
        invite=word,
    )


def _report(answer: NetworkAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    lines = [
        ("network", answer.name),
        ("id", answer.id),
        ("file", answer.file),
        ("on", "yes" if answer.enabled else "no"),
        ("trusts", f"{counted(len(answer.attestors), 'attestor')}; a participant needs {answer.needed}"),
    ]
    lines += [("attestor", key) for key in answer.attestors]
    lines += [("participant", key) for key in answer.participants]
    lines += [("constant", f"{name} = {value}") for name, value in answer.constants.items()]
    lines += [("task", digest) for digest in answer.tasks]
    lines += [("begin at", address) for address in answer.bootstrap]
    lines += [("this node", address) for address in answer.addresses]
    lines += [("invite", answer.invite)] if answer.invite else []
    print_labelled(lines)
