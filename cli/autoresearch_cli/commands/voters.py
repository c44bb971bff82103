"""Voters and peers of a network: ``admit``, ``dismiss`` and ``invites``, as its founders decide.

``peers``, with ``add`` to connect to one and ``block`` to refuse one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import PeersAnswer, VotersAnswer, VoterView
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.voters import named_participant, voters_answer
from autoresearch.ask.requests import AdmitRequest, BlockRequest, DialRequest
from autoresearch.errors import DaemonNotRunning, NotFound, Refused
from autoresearch.face.columns.people import CANDIDATE_COLUMNS
from autoresearch.log.standing.participants import spent_uses
from autoresearch.record.record import Network
from autoresearch.trust.identity import load_identity
from autoresearch.trust.invite import Invitation, Invitations
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.words import Counts, NetworkState
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Json, examples
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import InvitationRow, InvitationsAnswer
from autoresearch_cli.rendering.answers import voter_lines
from autoresearch_cli.rendering.lists import INVITATION_COLUMNS
from autoresearch_cli.rendering.output import print_json, print_labelled, print_list, say
from autoresearch_cli.rendering.status import print_peers


def voters() -> VotersAnswer:
    """Who counts in this network, from the daemon where one of this network runs, else from the log."""
    network = home.manifest().network.id.hex()
    with suppress(DaemonNotRunning, NotFound):  # NotFound: a daemon of an earlier version
        answer = home.client().ask(Node.voters)
        if answer.network == network:
            return answer
    with open_desk() as desk:
        return voters_answer(desk.log, own_root(), home.now_ms())


def decide(who: str, *, admits: bool, reason: str) -> VotersAnswer:
    """As a founder, count a participant from now on, or no longer; through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        request = AdmitRequest(participant=who, admits=admits, reason=reason)
        return home.client().ask(Node.admit, request)
    with Notebook(home.paths()) as notebook:
        participant = named_participant(notebook.log, who, author=notebook.author)
        notebook.publish_admission(participant, home.now_ms(), admits=admits, reason=reason)
        return voters_answer(notebook.log, notebook.identity.root.public, home.now_ms())


def voter_named(who: str) -> VoterView | None:
    """The participant that is meant, if it counts."""
    with open_desk() as desk:
        key = named_participant(desk.log, who, author=desk.me).hex()
    return next((voter for voter in voters().voters if voter.participant.key == key), None)


def own_root() -> bytes | None:
    """This participant's root key; None where this machine has no keys yet."""
    with suppress(NotFound):
        return load_identity(home.paths().keys).root.public
    return None


def is_founder(manifest: NetworkManifest) -> bool:
    """Whether this participant is a founder of the network."""
    return own_root() in manifest.trust.founders


def admits_by_default(manifest: NetworkManifest) -> bool:
    """Whether a plain invite admits: a founder's, where no attestors decide about voters."""
    return is_founder(manifest) and not manifest.trust.attestors


def make_token(manifest: NetworkManifest, *, uses: int, days: int) -> tuple[InvitationRow, bytes]:
    """Note an invite that admits; returns it with the seed of its token. Raises UsageError, Refused."""
    if not is_founder(manifest):
        raise Refused(
            "only a founder's invite admits, and you are none of this network's",
            hint="autoresearch network invite --no-admit; a founder can admit others: autoresearch network admit WHO",
        )
    made, seed = invitations(manifest.network).make(home.now_ms(), uses=uses, days=days)
    return row(made, []), seed


def invitations(network: Network) -> Invitations:
    """The invites of this machine to the network."""
    return Invitations(home.paths().manifest, network)


def invitation_rows(issued: list[Invitation]) -> list[InvitationRow]:
    """Invites with whom they admitted, by the log here."""
    with open_desk() as desk:
        root = desk.me and load_identity(home.paths().keys).root.public
        spent = spent_uses(desk.log, root) if root else {}
    return [row(invite, sorted(spent.get(invite.token, ()))) for invite in issued]


def row(invite: Invitation, admitted: list[bytes]) -> InvitationRow:
    """One invite, and how it stands by the clock here."""
    is_used = len(admitted) >= invite.uses
    state = (
        "ended" if invite.revoked else "used up" if is_used else "open" if invite.is_open(home.now_ms()) else "expired"
    )
    return InvitationRow(
        token=invite.token.hex(),
        made_ms=invite.made_ms,
        expires_ms=invite.expires_ms,
        uses=invite.uses,
        state=state,
        admitted=[root.hex() for root in admitted],
    )


def end_invite_of(voter: VoterView | None) -> bool:
    """End the invite that brought a participant, if it was made here and still admits; whether it did."""
    if voter is None or not voter.token:
        return False
    store = invitations(home.manifest().network)
    open_invites = [
        invite for invite in store.all() if invite.token.hex() == voter.token and row(invite, []).state == "open"
    ]
    for invite in open_invites:
        store.revoke(invite)
    return any(invite.uses > 1 for invite in open_invites)


app = CommandApp()
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")]
Who = Annotated[str, typer.Argument(help="A root key, the beginning of a key in the log, or a name.")]


@app.command(
    "network admit",
    ("autoresearch network admit", "list who could be admitted"),
    ("autoresearch network admit ann", "count ann from now on"),
    ("autoresearch network admit KEY --reason 'our new machine'", "with a public reason"),
    see="network dismiss, network invite, network show",
)
def admit(
    who: Annotated[str, typer.Argument(metavar="WHO", help="As in `network dismiss`. Left out: lists them.")] = "",
    *,
    reason: Why = "",
) -> Answered:
    """As a founder, have a participant count for everybody in the network. Without WHO: who does not count yet."""
    answer = decide(who, admits=True, reason=reason) if who else voters()
    yield answer
    if who:
        print_labelled(voter_lines(answer.voters, answer.note, answer.way, home.now_ms()))
        say("→ autoresearch network show")
        return
    if not answer.named:
        say("this network names nobody, so all participants are alike → autoresearch network new NAME --for lab")
        return
    print_list(CANDIDATE_COLUMNS, answer.candidates, now_ms=home.now_ms())
    if not answer.candidates:
        say("everybody in the log counts, or nobody else is in it")
    say("→ autoresearch network admit WHO" if answer.founder else "only a founder admits → autoresearch network show")


@app.command(
    "network dismiss",
    ("autoresearch network dismiss 3fa9", "their verifications count no longer, earlier ones neither"),
    ("autoresearch network dismiss ann --reason 'left the team'", "with a public reason"),
    ("autoresearch network admit ann", "the reverse"),
    see="network admit, network invites, network peers block",
)
def dismiss(who: Who, *, reason: Why = "") -> Answered:
    """As a founder, stop counting a participant that a founder admitted. Its verifications count no longer."""
    before = voter_named(who)
    answer = decide(who, admits=False, reason=reason)
    has_ended = end_invite_of(before)
    yield answer
    print_labelled(voter_lines(answer.voters, answer.note, answer.way, home.now_ms()))
    after = [voter for voter in answer.voters if before and voter.participant.key == before.participant.key]
    for voter in after:
        way = f"autoresearch network distrust {voter.participant.key} --participant"
        say(f"it still counts here: {voter.why}" + (f" → {way}" if voter.why == Counts.BY_HAND else ""))
    if before is None:
        say("it did not count, so nothing changed")
    elif not after:
        say("its verifications count no longer, earlier ones neither; its runs stay in the log, unattested")
    if has_ended:
        say("the invite that it came with is ended too")


@app.command(
    "network invites",
    ("autoresearch network invites", "the invites of this machine that admit"),
    ("autoresearch network invites --json | jq '.invitations[].state'", "how each stands, for a program"),
    ("autoresearch network invite --revoke 3fa9", "end one"),
    see="network invite, network dismiss, network show",
)
def invites() -> Answered:
    """List the invites of this machine that admit or did: until when, and how many they admitted."""
    manifest = home.manifest()
    rows = invitation_rows(invitations(manifest.network).all())
    yield InvitationsAnswer(network=manifest.network.id.hex(), invitations=rows)
    print_list(INVITATION_COLUMNS, rows, now_ms=home.now_ms())
    say("→ autoresearch network invite --revoke TOKEN ends one" if rows else "→ autoresearch network invite makes one")


PeerId = Annotated[
    str, typer.Argument(metavar="PEER", help="A peer id, 12D3KooW…, or the end of one, as `network peers` shows it.")
]
peers_app = CommandApp(no_args_is_help=False)
app.add_typer(peers_app, name="network peers")


@peers_app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch network peers", "which peers are connected, and which were"),
        ("autoresearch network peers add /ip4/203.0.113.7/tcp/4001/p2p/12D3…", "connect to a node, and stay connected"),
        ("autoresearch network peers --json | jq .addresses", "what others need to reach this node"),
        see="status, network, node doctor network",
    ),
)
def peers(context: typer.Context, *, json: Json = False) -> None:
    """Show this node's addresses and its peers. Offline is normal: what was missed is fetched later."""
    if context.invoked_subcommand is None:
        _report(home.client().ask(Node.peers), json=json)


@peers_app.command(
    "add",
    ("autoresearch network peers add /ip4/192.168.1.20/tcp/4001/p2p/12D3…", "a node in the same house"),
    ("autoresearch network peers add /dns4/node.example.org/tcp/4001/p2p/12D3…", "a node with a name"),
    ("autoresearch network peers add ADDRESS --json", "the same for a program"),
    see="network peers, status",
)
def add(
    address: Annotated[
        str, typer.Argument(help="A multiaddr that ends in /p2p/PEER, as `network peers` shows it there.")
    ],
    *,
    json: Json = False,
) -> None:
    """Connect to a node; its address is kept and tried again."""
    answer = home.client().ask(Node.dial, DialRequest(address=address))
    _report(answer, json=json)
    say("connecting → autoresearch network peers")


@peers_app.command(
    "block",
    ("autoresearch network peers block 12D3KooW…", "refuse a peer, now and after every start"),
    ("autoresearch network peers unblock 12D3KooW…", "no longer"),
    ("autoresearch network peers block 12D3KooW… --json", "the same for a program"),
    see="network peers, node doctor network",
)
def block(peer: PeerId) -> Answered:
    """Refuse a peer from now on. Its connection is closed, and nothing is accepted from it."""
    yield from _block(peer, blocked=True)


@peers_app.command(
    "unblock",
    ("autoresearch network peers unblock 12D3KooW…", "let a peer in again"),
    ("autoresearch network peers", "who is blocked"),
    ("autoresearch network peers unblock 12D3KooW… --json", "the same for a program"),
    see="network peers, network peers block",
)
def unblock(peer: PeerId) -> Answered:
    """Refuse a peer no longer."""
    yield from _block(peer, blocked=False)


def _block(peer: str, *, blocked: bool) -> Answered:
    answer = home.client().ask(Node.block, BlockRequest(peer=peer, blocked=blocked))
    yield answer
    say(f"{peer} is {'blocked' if blocked else 'no longer blocked'}")
    say("→ autoresearch network peers")


def _report(answer: PeersAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    say(answer.network.reason)
    print_peers(answer, now_ms=home.now_ms())
    if not answer.peers and answer.network.state == NetworkState.RUNNING:
        say("→ no peer is known yet: autoresearch node doctor network")
    if answer.network.state == NetworkState.OFF:
        say("→ autoresearch join INVITE, or a network of your own: autoresearch network new NAME --for lab")
