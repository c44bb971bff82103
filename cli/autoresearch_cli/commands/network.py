"""``network``: the network of this node. Create one, join one, invite others, decide about voters."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.ask.acts.joining import own_root
from autoresearch.ask.node_acts import Node
from autoresearch.errors import DaemonNotRunning, NotFound, Refused, UsageError, install_command
from autoresearch.paths import output_path
from autoresearch.text import counted, moment
from autoresearch.trust import manifest as manifests
from autoresearch.trust.invite import write_invite
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.trust.roster import Trust
from autoresearch_cli import home, starting
from autoresearch_cli.acts import joining
from autoresearch_cli.catalogue import CommandApp, Json
from autoresearch_cli.commands import voters
from autoresearch_cli.models import InvitationRow, InvitationsAnswer, NetworkAnswer
from autoresearch_cli.rendering.answers import voter_lines
from autoresearch_cli.rendering.lists import INVITATION_COLUMNS
from autoresearch_cli.rendering.output import print_json, print_labelled, print_list, print_text, say

STARTING_SECONDS = 15.0
app = CommandApp()

Key = Annotated[str, typer.Argument(help="A participant's root key: `node id show` prints it as “participant”.")]
ByHand = Annotated[bool, typer.Option("--participant", help="The key is a participant's, not an attestor's.")]
Founding = Annotated[bool, typer.Option("--founder", help="The key is a founder's, who decides who else counts.")]
INVITE_USES, INVITE_DAYS = 1, 7


@app.command(
    "network new",
    ("autoresearch network new tea --for friends", "write tea.toml: whoever you invite counts"),
    ("autoresearch network new lab --for lab", "a team's own machines; you are the founder"),
    ("autoresearch network new tea --for open --attestor KEY --attestor KEY", "with its attestors"),
    see="network join, node id show",
)
def new(  # noqa: PLR0913 - one option for each part of a manifest
    name: Annotated[str, typer.Argument(help="What the network is called: letters, digits, dots, dashes.")],
    *,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file; NAME.toml if left out.")] = None,
    attestor: Annotated[list[str] | None, typer.Option(help="The root key of an attestor; may be repeated.")] = None,
    needed: Annotated[int, typer.Option(help="How many attestors it takes.")] = Trust().needed,
    participant: Annotated[list[str] | None, typer.Option(help="A root key that needs no attestor.")] = None,
    founder: Annotated[list[str] | None, typer.Option(help="A root key that decides who else counts.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="A task's digest: `task show` prints it.")] = None,
    bootstrap: Annotated[list[str] | None, typer.Option(help="The address of a node to begin with.")] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A constant that is not the usual one; may be repeated."),
    ] = None,
    kind: Annotated[
        manifests.PresetName | None,
        typer.Option("--for", help="lab: one team; friends: whoever you invite; open: attested by mail."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the manifest of a new network. This node joins it with `network join FILE`."""
    preset = manifests.PRESETS[kind] if kind else manifests.Preset(who_counts="", confirmed_from=0, founded=False)
    founders = {*map(manifests.parse_key, founder or ()), *([own_root(home.paths())] if preset.founded else [])}
    manifest = manifests.new_manifest(
        name,
        secrets.token_bytes(manifests.NONCE_BYTES),
        preset,
        Trust(
            frozenset(map(manifests.parse_key, attestor or ())),
            needed,
            frozenset(map(manifests.parse_key, participant or ())),
            frozenset(founders),
        ),
        constants=dict(map(manifests.parse_constant, constants or ())),
        tasks=map(manifests.parse_key, task or ()),
        bootstrap=bootstrap or (),
    )
    path = output_path(output or f"{name}.toml")
    if path.exists():
        raise Refused(
            f"{path} exists",
            hint="another file with -o; a network is never overwritten, so delete it if nobody joined it",
        )
    save_manifest(path, manifest)
    nobody = _why_nobody_counts(manifest.trust)
    _report(msgspec.structs.replace(_answer(manifest, path, []), note=nobody), json=json)
    if not json:
        if kind and not nobody:
            say(f"for {kind}: {preset.who_counts}; a run can be confirmed from {preset.confirmed_from} participants on")
        first = f"autoresearch join {shlex.quote(str(path))}"
        say(f"→ {first}, then autoresearch work DIR, then autoresearch network invite for others")


@app.command(
    "network join",
    ("autoresearch network join tea.toml", "with its file"),
    ("autoresearch network join autoresearch1…", "with an invite"),
    ("autoresearch network join /ip4/203.0.113.7/tcp/4001/p2p/12D3…", "by asking a node that is in it"),
    see="network show, up, network peers",
)
def join(
    where: Annotated[
        str, typer.Argument(metavar="FILE|INVITE|ADDRESS", help="A manifest, an invite, or the address of a node.")
    ],
    *,
    bring: joining.Bring = False,
    json: Json = False,
) -> None:
    """Join a network and start to exchange records. No port has to be open here."""
    before = home.manifest().network
    joined = joining.become_member(where, bring=bring)
    answer = _with_voters(_answer(joined.manifest, home.paths().manifest))
    if joined.way and answer.way:
        answer = msgspec.structs.replace(answer, way=joined.way)
    _report(answer, json=json)
    if not joined.enabled:
        say(f"the network stays off, libp2p is not installed → {install_command('network')}, then join again")
    _say_next(follows=before == joined.manifest.network or joined.left is not None)


@app.command(
    "network show",
    ("autoresearch network show", "its name, id and trust list"),
    ("autoresearch network show --json | jq -r .id", "the id for a program"),
    ("autoresearch network show --json | jq -r .file", "its file, to edit or to send"),
    see="network peers, network invite, network trust",
)
def show(*, json: Json = False) -> None:
    """Show the network this node is in."""
    _report(_with_voters(_answer(home.manifest(), home.paths().manifest)), json=json)


@app.command(
    "network invite",
    ("autoresearch network invite", "one long word; where you are the founder, who joins with it counts"),
    ("autoresearch network invite --uses 5 --days 1", "for five participants, until tomorrow"),
    ("autoresearch network invite --revoke 3fa9", "end an invite: it admits nobody from now on"),
    see="network join, network invites, network dismiss",
)
def invite(
    *,
    admit: Annotated[
        bool | None,
        typer.Option("--admit/--no-admit", help="Whether who joins counts; usual for founders without attestors."),
    ] = None,
    uses: Annotated[int, typer.Option(help="How many participants it admits.")] = INVITE_USES,
    days: Annotated[int, typer.Option(help="How long it admits.")] = INVITE_DAYS,
    revoke: Annotated[str, typer.Option(metavar="TOKEN", help="End an invite: the beginning of its token.")] = "",
    json: Json = False,
) -> None:
    """Print an invite: one word that holds the network, with this node's addresses when the daemon runs."""
    manifest = home.manifest()
    if revoke:
        _end_invite(manifest, revoke, json=json)
        return
    admits = voters.admits_by_default(manifest) if admit is None else admit
    if not admits and (uses, days) != (INVITE_USES, INVITE_DAYS):
        raise UsageError("this invite admits nobody, so it has no uses and no days", hint="as a founder, add --admit")
    admission, token = voters.make_token(manifest, uses=uses, days=days) if admits else (None, None)
    # Who asks right after `up` gets the addresses too: libp2p takes seconds to start.
    addresses = joining.own_addresses(patience_seconds=STARTING_SECONDS)
    word = write_invite(joining.to_be_sent(manifest, addresses), token)
    if json:
        answer = _with_voters(_answer(manifest, home.paths().manifest, addresses))
        print_json(msgspec.structs.replace(answer, invite=word, admission=admission))
        return
    print_text(word)
    say(_admission_sentence(manifest, admission))
    if not addresses and not manifest.bootstrap:
        say("it holds no address yet: start the daemon with the network on, and print it again")
    say("→ autoresearch join INVITE, on another machine")


@app.command(
    "network trust",
    ("autoresearch network trust KEY", "trust an attestor"),
    ("autoresearch network trust KEY --participant", "count a participant as attested"),
    ("autoresearch network show", "look at the list"),
    see="network distrust, node id show",
)
def trust(key: Key, *, participant: ByHand = False, founder: Founding = False, json: Json = False) -> None:
    """Trust one more attestor, participant or founder on this machine. It counts here at once."""
    manifest, root = home.manifest(), manifests.parse_key(key)
    _refuse_both(participant=participant, founder=founder)
    if founder:
        changed = manifest.with_founder(root)
    else:
        changed = manifest.with_participant(root) if participant else manifest.with_attestor(root)
    _change(changed, json=json)


@app.command(
    "network distrust",
    ("autoresearch network distrust KEY", "stop trusting an attestor"),
    ("autoresearch network distrust KEY --participant", "count a participant as unattested"),
    ("autoresearch network show", "look at the list"),
    see="network trust, network peers",
)
def distrust(key: Key, *, participant: ByHand = False, founder: Founding = False, json: Json = False) -> None:
    """Stop trusting an attestor, participant or founder on this machine. Its word stops counting here at once."""
    manifest, root = home.manifest(), manifests.parse_key(key)
    _refuse_both(participant=participant, founder=founder)
    if founder:
        changed = manifest.without_founder(root)
    else:
        changed = manifest.without_participant(root) if participant else manifest.without_attestor(root)
    _change(changed, json=json)


def _why_nobody_counts(trust: Trust) -> str:
    """Why no participant can ever count in a network as it is founded, and what to do; empty where one can."""
    if trust.founders or trust.participants or len(trust.attestors) >= trust.needed:
        return ""
    named = f"it names {len(trust.attestors)} of the {counted(trust.needed, 'attestor')} that it takes, and no founder"
    way = "begin again with --for lab, --for friends, or more --attestor KEY"
    return f"no participant can count in this network, so no run can be confirmed: {named} → {way}"


def _refuse_both(*, participant: bool, founder: bool) -> None:
    if participant and founder:
        raise UsageError("--participant or --founder, but not both", hint="a founder counts as a participant too")


def _end_invite(manifest: manifests.NetworkManifest, text: str, *, json: bool) -> None:
    invitations = voters.invitations(manifest.network)
    [row] = voters.invitation_rows([invitations.revoke(invitations.find(text))])
    if json:
        print_json(InvitationsAnswer(network=manifest.network.id.hex(), invitations=[row]))
        return
    print_list(INVITATION_COLUMNS, [row], now_ms=home.now_ms())
    say("it admits nobody from now on; whom it admitted stays → autoresearch network dismiss WHO")


def _admission_sentence(manifest: manifests.NetworkManifest, admission: InvitationRow | None) -> str:
    """What becomes of those who join with an invite."""
    if admission is not None:
        who = "who joins with it first counts" if admission.uses == 1 else f"the first {admission.uses} to join count"
        return f"{who}, until {moment(admission.expires_ms)}; your daemon has to run for it"
    if manifest.trust.founders:
        return "who joins with it reads and runs; so that they count, a founder runs: autoresearch network admit WHO"
    return "who joins with it reads and runs; how they come to count: autoresearch network show"


def _change(manifest: manifests.NetworkManifest, *, json: bool) -> None:
    path = home.paths().manifest
    if manifest != load_manifest(path):
        save_manifest(path, manifest)
    sentence = _tell_daemon()
    _report(_with_voters(_answer(manifest, path)), json=json)
    say(sentence)


def _tell_daemon() -> str:
    """Have the daemon go by the file; a sentence about how that went."""
    try:
        home.client().ask(Node.trust)
    except DaemonNotRunning:
        return "the trust list is changed; no daemon runs"
    except NotFound:
        return "the daemon is of an earlier version → autoresearch down && autoresearch up"
    return "the trust list is changed, and the daemon uses it"


def _say_next(*, follows: bool) -> None:
    if starting.daemon_status() is None:
        say("→ autoresearch up")
    elif follows and home.settings().network.enabled:
        say("→ autoresearch network peers")
    else:
        say("the daemon still uses the network that it read at its start → autoresearch down && autoresearch up")


def _answer(manifest: manifests.NetworkManifest, path: Path, addresses: list[str] | None = None) -> NetworkAnswer:
    mine = joining.own_addresses() if addresses is None else addresses
    try:
        word = write_invite(joining.to_be_sent(manifest, mine))
    except UsageError:
        word = ""  # too long for an invite: the file does the same
    network, trusted = manifest.network, manifest.trust
    return NetworkAnswer(
        name=network.name,
        id=network.id.hex(),
        file=str(path.absolute()),
        enabled=path == home.paths().manifest and home.settings().network.enabled,
        constants=manifests.unusual_constants(network),
        attestors=sorted(key.hex() for key in trusted.attestors),
        needed=trusted.needed,
        participants=sorted(key.hex() for key in trusted.participants),
        founders=sorted(key.hex() for key in trusted.founders),
        tasks=[digest.hex() for digest in manifest.tasks],
        bootstrap=list(manifest.bootstrap),
        addresses=mine,
        invite=word,
    )


def _with_voters(answer: NetworkAnswer) -> NetworkAnswer:
    """The same with the voters, by the log here."""
    listing = voters.voters()
    if not listing.named:
        return answer
    return msgspec.structs.replace(answer, voters=listing.voters, note=listing.note, way=listing.way)


def _report(answer: NetworkAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    lines = [
        ("network", answer.name),
        ("id", answer.id),
        ("file", answer.file),
        ("on", "yes" if answer.enabled else "no"),
    ]
    if answer.attestors or not answer.founders:
        lines += [("trusts", f"{counted(len(answer.attestors), 'attestor')}; a participant needs {answer.needed}")]
    lines += [("attestor", key) for key in answer.attestors]
    lines += [("participant", key) for key in answer.participants]
    lines += [("founder", key) for key in answer.founders]
    lines += voter_lines(answer.voters, answer.note, answer.way, home.now_ms())
    lines += [("constant", f"{name} = {value}") for name, value in answer.constants.items()]
    lines += [("task", digest) for digest in answer.tasks]
    lines += [("begin at", address) for address in answer.bootstrap]
    lines += [("this node", address) for address in answer.addresses]
    # Where founders admit, an invite is made for somebody: `network invite`.
    lines += [("invite", answer.invite)] if answer.invite and not answer.founders else []
    print_labelled(lines)
