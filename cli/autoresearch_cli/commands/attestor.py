"""``attestor``: what this node does for others' mailboxes, when it has a mail account."""

from __future__ import annotations

from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json

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
