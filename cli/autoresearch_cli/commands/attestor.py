"""``attestor``: what this node does for others' mailboxes, when it has a mail account."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say

app = command_app("What this node does as an attestor of mailboxes.")
apps = {"attestor": app}


@app.callback(
    epilog=examples(
        ("autoresearch attestor log", "what it mailed, attested and refused"),
        ("autoresearch config set attestor.host mail.example.org", "a mail account makes a node an attestor"),
        ("autoresearch network trust KEY", "believe an attestor"),
        see="id attest, network trust, config",
    )
)
def attestor() -> None:
    """An attestor writes a code to a mailbox and says publicly that it came back signed, never to which address."""


@app.command(
    epilog=examples(
        ("autoresearch attestor log", "the newest first"),
        ("autoresearch attestor log --json | jq '.acts[] | select(.what == \"refused\")'", "what it refused, and why"),
        ("autoresearch attestor log --json | jq .attested", "how often it attested"),
        see="config, network show",
    )
)
def log(*, json: Json = False) -> None:
    """Show what this attestor mailed, attested and refused. No address is in it: none was kept."""
    with here.client() as client:
        answer = client.attestor_log()
    if json:
        print_json(answer)
        return
    from autoresearch_cli.rendering.attesting import print_acts

    print_acts(answer, now_ms=here.now_ms())


@app.command(
    epilog=examples(
        ("autoresearch attestor withdraw KEY", "take back what this attestor said of a participant"),
        ("autoresearch attestor withdraw KEY --reason 'account sold'", "and say why, for all to read"),
        ("autoresearch attestor log --json | jq -r '.acts[].participant'", "whom it attested"),
        see="attestor allow, network distrust, id revoke",
    )
)
def withdraw(
    key: Annotated[str, typer.Argument(help="The participant's root key, as `id show` prints it there.")],
    *,
    reason: Annotated[str, typer.Option(help="Why, for all to read.")] = "",
    json: Json = False,
) -> None:
    """Take back what this attestor said of a participant, from now on, and refuse its mailbox until you allow it again.

    What was published before keeps its word.
    """
    from autoresearch.answers import WithdrawRequest
    from autoresearch.networks import parse_key

    with here.client() as client:
        answer = client.withdraw(WithdrawRequest(participant=parse_key(key).hex(), reason=reason))
    if json:
        print_json(answer)
    else:
        say("taken back; it counts nowhere from now on, as soon as the others hear of it")
        say(f"this attestor refuses that mailbox from now on → autoresearch attestor allow {key}")


@app.command(
    epilog=examples(
        ("autoresearch attestor allow KEY", "attest that participant's mailbox again, when it asks"),
        ("autoresearch attestor log --json | jq '.acts[] | select(.what == \"withdrawn\")'", "what it took back"),
        ("autoresearch attestor allow KEY --json", "the same for a program"),
        see="id attest",
    )
)
def allow(
    key: Annotated[str, typer.Argument(help="The root key that `attestor withdraw` was given.")], *, json: Json = False
) -> None:
    """Attest a mailbox again after `attestor withdraw`: when it is shown anew, for what was taken back stays so."""
    from autoresearch.answers import AllowRequest
    from autoresearch.networks import parse_key

    with here.client() as client:
        answer = client.allow(AllowRequest(participant=parse_key(key).hex()))
    if json:
        print_json(answer)
    else:
        say("allowed; it counts once the mailbox is shown again → there: autoresearch id attest ADDRESS")
