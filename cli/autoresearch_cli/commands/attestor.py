"""``attestor``: what this node does for others' mailboxes, when it has a mail account."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import operations
from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say

app = command_app("What this node does as an attestor of mailboxes.")
apps = {"attestor": app}


@app.callback(
    epilog=examples(
        ("autoresearch attestor log", "what it mailed, attested and refused"),
        ("autoresearch config set attestor.host mail.example.org", "a mail account makes a node an attestor"),
        ("autoresearch network trust KEY", "trust an attestor"),
        see="id attest, network trust, config",
    )
)
def attestor() -> None:
    """An attestor sends a code to a mailbox and publishes that it came back signed, never the address."""


@app.command(
    epilog=examples(
        ("autoresearch attestor log", "the newest first"),
        ("autoresearch attestor log --json | jq '.acts[] | select(.what == \"refused\")'", "what it refused, and why"),
        ("autoresearch attestor log --json | jq .attested", "how often it attested"),
        see="config, network show",
    )
)
def log(*, json: Json = False) -> None:
    """Show what this attestor mailed, attested and refused. Addresses are not kept."""
    answer = here.client().ask(operations.ATTESTOR)
    if json:
        print_json(answer)
        return
    from autoresearch_cli.rendering.attesting import print_acts

    print_acts(answer, now_ms=here.now_ms())


@app.command(
    epilog=examples(
        ("autoresearch attestor withdraw KEY", "withdraw its attestations of a participant"),
        ("autoresearch attestor withdraw KEY --reason 'account sold'", "with a public reason"),
        ("autoresearch attestor log --json | jq -r '.acts[].participant'", "which participants it attested"),
        see="attestor allow, network distrust, id revoke",
    )
)
def withdraw(
    key: Annotated[str, typer.Argument(help="The participant's root key, as `id show` prints it there.")],
    *,
    reason: Annotated[str, typer.Option(help="The reason, public.")] = "",
    json: Json = False,
) -> None:
    """Withdraw this attestor's attestations of a participant, and refuse its mailbox until you allow it again.

    Records that were published before still count.
    """
    from autoresearch.api import WithdrawRequest
    from autoresearch.networks import parse_key

    answer = here.client().ask(
        operations.WITHDRAW_ATTESTATION, WithdrawRequest(participant=parse_key(key).hex(), reason=reason)
    )
    if json:
        print_json(answer)
    else:
        say("withdrawn: it does not count any more, once other nodes have the record")
        say(f"→ to attest that mailbox again: autoresearch attestor allow {key}")


@app.command(
    epilog=examples(
        ("autoresearch attestor allow KEY", "attest that participant's mailbox again, when it asks"),
        ("autoresearch attestor log --json | jq '.acts[] | select(.what == \"withdrawn\")'", "what it withdrew"),
        ("autoresearch attestor allow KEY --json", "the same for a program"),
        see="id attest",
    )
)
def allow(
    key: Annotated[str, typer.Argument(help="The root key that `attestor withdraw` was given.")], *, json: Json = False
) -> None:
    """Allow a mailbox again after `attestor withdraw`. Its owner has to ask for a new attestation."""
    from autoresearch.api import AllowRequest
    from autoresearch.networks import parse_key

    answer = here.client().ask(operations.ALLOW, AllowRequest(participant=parse_key(key).hex()))
    if json:
        print_json(answer)
    else:
        say("allowed; the participant has to ask again → there: autoresearch id attest ADDRESS")
