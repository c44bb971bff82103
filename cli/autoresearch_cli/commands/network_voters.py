"""``network admit``, ``dismiss`` and ``invites``: the voters, as the founders of a network decide."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.words import Counts
from autoresearch_cli import admitting, here
from autoresearch_cli.models import InvitationsAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, print_labelled, say
from autoresearch_cli.rendering.voters import candidate, invitation, voter_lines

app = command_app()
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")]
Who = Annotated[str, typer.Argument(help="A root key, the beginning of a key in the log, or a name.")]


@app.command(
    epilog=examples(
        ("autoresearch network admit", "list who could be admitted"),
        ("autoresearch network admit ann", "count ann from now on"),
        ("autoresearch network admit KEY --reason 'our new machine'", "with a public reason"),
        see="network dismiss, network invite, network show",
    )
)
def admit(
    who: Annotated[str, typer.Argument(metavar="[WHO]", help="As in `network dismiss`. Left out: lists them.")] = "",
    *,
    reason: Why = "",
    json: Json = False,
) -> None:
    """As a founder, have a participant count for everybody in the network. Without WHO: who does not count yet."""
    answer = admitting.decide(who, admits=True, reason=reason) if who else admitting.voters()
    if json:
        print_json(answer)
        return
    if who:
        print_labelled(voter_lines(answer.voters, answer.note, answer.way, here.now_ms()))
        say("→ autoresearch network show")
        return
    if not answer.named:
        say("this network names nobody, so all participants are alike → autoresearch network new NAME --for lab")
        return
    print_labelled(candidate(row, here.now_ms()) for row in answer.candidates)
    if not answer.candidates:
        say("everybody in the log counts, or nobody else is in it")
    say("→ autoresearch network admit WHO" if answer.founder else "only a founder admits → autoresearch network show")


@app.command(
    epilog=examples(
        ("autoresearch network dismiss 3fa9", "their verifications count no longer, earlier ones neither"),
        ("autoresearch network dismiss ann --reason 'left the team'", "with a public reason"),
        ("autoresearch network admit ann", "the reverse"),
        see="network admit, network invites, peers block",
    )
)
def dismiss(who: Who, *, reason: Why = "", json: Json = False) -> None:
    """As a founder, stop counting a participant that a founder admitted. Its verifications count no longer."""
    before = admitting.voter_named(who)
    answer = admitting.decide(who, admits=False, reason=reason)
    has_ended = admitting.end_invite_of(before)
    if json:
        print_json(answer)
        return
    print_labelled(voter_lines(answer.voters, answer.note, answer.way, here.now_ms()))
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
    epilog=examples(
        ("autoresearch network invites", "the invites of this machine that admit"),
        ("autoresearch network invites --json | jq '.invitations[].state'", "how each stands, for a program"),
        ("autoresearch network invite --revoke 3fa9", "end one"),
        see="network invite, network dismiss, network show",
    )
)
def invites(*, json: Json = False) -> None:
    """List the invites of this machine that admit or did: until when, and how many they admitted."""
    manifest = here.manifest()
    rows = admitting.rows(admitting.invitations(manifest.network).given())
    if json:
        print_json(InvitationsAnswer(network=manifest.network.id.hex(), invitations=rows))
        return
    print_labelled(invitation(row, here.now_ms()) for row in rows)
    say("→ autoresearch network invite --revoke TOKEN ends one" if rows else "→ autoresearch network invite makes one")
