"""``id attest`` and ``id confirm`` ask for codes and answer them: the root key signs here, never in the daemon.

``attestor`` tells what this node does for others' mailboxes, when it has a mail account.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from autoresearch.ask.node_acts import Node
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Json, examples
from autoresearch_cli.rendering.output import print_json, say

if TYPE_CHECKING:
    from autoresearch.ask.people.participants import AttestAnswer
    from autoresearch.trust.keys import KeyPair

# A mail with all its headers is some kilobytes.
PASTED_CHARACTERS_MAX = 1 << 20
STATUS = "autoresearch node id attest --status"


def attest(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Your mail address; only attestors see it.")] = "",
    *,
    status: Annotated[
        bool, typer.Option("--status", help="Only show whether you are attested, and what is missing.")
    ] = False,
    json: Json = False,
) -> None:
    """Prove that you control a mailbox, so that your results count. Only attestors see the address."""
    answer = _ask_attestors(address) if address and not status else _standing()
    _report(answer, json=json)
    if address and not status and not json and answer.awaited and sys.stdin.isatty():
        _ask_for_codes(answer)


def confirm(
    code: Annotated[list[str] | None, typer.Argument(metavar="CODE", help="Codes; else standard input.")] = None,
    *,
    json: Json = False,
) -> None:
    """Confirm an attestor's code. Without one, paste the whole mail. Asks for the root key's passphrase."""
    text = " ".join(code) if code else _pasted()
    awaited = home.client().ask(Node.attestation)
    if not awaited.awaited:
        raise NotFound(
            "no attestor waits for a code from this node", hint="autoresearch node id attest ADDRESS asks for one"
        )
    _report(_confirmed(text, awaited, _root()), json=json)


def _ask_attestors(address: str) -> AttestAnswer:
    from autoresearch.ask.people.participants import AttestRequest
    from autoresearch.text import ADDRESS_MAX
    from autoresearch.trust.identity import LockedKey
    from autoresearch.trust.mailbox import mailbox

    mailbox(address)  # what is none is said before anybody is asked
    if len(address) > ADDRESS_MAX:
        raise UsageError("this is not a mail address", hint="autoresearch node id attest you@example.org")
    root = home.loaded().root
    if isinstance(root, LockedKey) and not root.is_local:  # nobody could sign the answers
        raise Refused(
            "the root key is not on this machine",
            hint="ask for the attestation where the root key is: it counts for all its devices",
        )
    say("asking attestors to send codes to your address")
    return home.client().ask(Node.attest, AttestRequest(address=address))


def _standing() -> AttestAnswer:
    """From the daemon, or from the log when none runs."""
    try:
        return home.client().ask(Node.attestation)
    except DaemonNotRunning:
        from autoresearch.ask.people.attestation import attest_answer
        from autoresearch.log.log import Log

        manifest = home.manifest()
        with Log.open(home.paths().log, manifest.network, read_only=True, trust=manifest.trust) as log:
            return attest_answer(log, home.loaded().root.public, now_ms=home.now_ms())


def _confirmed(text: str, awaited: AttestAnswer, root: KeyPair) -> AttestAnswer:
    """Answer all codes in a text. Raises UsageError when none of them is awaited."""
    from autoresearch.ask.people.attestation import confirmations

    device = home.loaded().device.public
    requests = confirmations(text, awaited.awaited, root, device, home.manifest().network.id)
    if not requests:
        raise UsageError("no attestor waits for this code", hint=f"type it again, or: {STATUS}")
    answer = awaited
    refused: AutoresearchError | None = None
    for request in requests:
        try:
            answer = home.client().ask(Node.confirm, request)
        except AutoresearchError as error:
            refused = error  # the other codes may be good, and their attestors there
    if refused:
        raise refused
    return answer


def _ask_for_codes(answer: AttestAnswer) -> None:
    """Ask for one code after the other until none is missing, or the person has had enough."""
    root: KeyPair | None = None
    while answer.awaited and not answer.attested:
        text = typer.prompt("Code from the mail (Enter: later)", default="", show_default=False, err=True)
        if not text.strip():
            say("→ autoresearch node id confirm CODE, within half an hour")
            return
        try:
            root = root or _root()
            answer = _confirmed(text, answer, root)
        except (UsageError, Refused) as error:
            say(f"{error} → {error.hint}" if error.hint else str(error))
            answer = _standing()
            continue
        _report(answer, json=False)


def _root() -> KeyPair:
    from autoresearch.trust.keys import KeyPair

    root = home.unlocked(home.loaded()).root
    assert isinstance(root, KeyPair)
    return root


def _pasted() -> str:
    if sys.stdin.isatty():
        say("paste the mail, then press Ctrl-D on a line of its own")
    return sys.stdin.read(PASTED_CHARACTERS_MAX)


def _report(answer: AttestAnswer, *, json: bool) -> None:
    if json:
        print_json(answer)
        return
    from autoresearch_cli.rendering.answers import print_standing

    print_standing(answer, now_ms=home.now_ms())


app = CommandApp("What this node does as an attestor of mailboxes.")


@app.callback(
    epilog=examples(
        ("autoresearch network attestor log", "what it mailed, attested and refused"),
        ("autoresearch node config set attestor.enabled true", "with a mail account (mail.host) a node can attest"),
        ("autoresearch network trust KEY", "trust an attestor"),
        see="node id attest, network trust, node config",
    )
)
def attestor() -> None:
    """An attestor sends a code to a mailbox and publishes that it came back signed, never the address."""


@app.command(
    "log",
    ("autoresearch network attestor log", "the newest first"),
    (
        "autoresearch network attestor log --json | jq '.acts[] | select(.what == \"refused\")'",
        "what it refused, and why",
    ),
    ("autoresearch network attestor log --json | jq .attested", "how often it attested"),
    see="node config, network show",
)
def log() -> Answered:
    """Show what this attestor mailed, attested and refused. Addresses are not kept."""
    answer = home.client().ask(Node.attestor)
    yield answer
    from autoresearch_cli.rendering.answers import print_acts

    print_acts(answer, now_ms=home.now_ms())


@app.command(
    "withdraw",
    ("autoresearch network attestor withdraw KEY", "withdraw its attestations of a participant"),
    ("autoresearch network attestor withdraw KEY --reason 'account sold'", "with a public reason"),
    ("autoresearch network attestor log --json | jq -r '.acts[].participant'", "which participants it attested"),
    see="network attestor allow, network distrust, node id revoke",
)
def withdraw(
    key: Annotated[str, typer.Argument(help="The participant's root key, as `node id show` prints it there.")],
    *,
    reason: Annotated[str, typer.Option(help="The reason, public.")] = "",
) -> Answered:
    """Withdraw what this attestor attested of a participant.

    Its mailbox is refused until you allow it again. Records that were published before still count.
    """
    from autoresearch.ask.people.participants import WithdrawRequest
    from autoresearch.trust.manifest import parse_key

    answer = home.client().ask(
        Node.withdraw_attestation, WithdrawRequest(participant=parse_key(key).hex(), reason=reason)
    )
    yield answer
    say("withdrawn: it does not count any more, once other nodes have the record")
    say(f"→ to attest that mailbox again: autoresearch network attestor allow {key}")


@app.command(
    "allow",
    ("autoresearch network attestor allow KEY", "attest that participant's mailbox again, when it asks"),
    (
        "autoresearch network attestor log --json | jq '.acts[] | select(.what == \"withdrawn\")'",
        "what it withdrew",
    ),
    ("autoresearch network attestor allow KEY --json", "the same for a program"),
    see="node id attest",
)
def allow(
    key: Annotated[str, typer.Argument(help="The root key that `network attestor withdraw` was given.")],
) -> Answered:
    """Allow a mailbox again after `network attestor withdraw`. Its owner has to ask for a new attestation."""
    from autoresearch.ask.people.participants import AllowRequest
    from autoresearch.trust.manifest import parse_key

    answer = home.client().ask(Node.allow, AllowRequest(participant=parse_key(key).hex()))
    yield answer
    say("allowed; the participant has to ask again → there: autoresearch node id attest ADDRESS")
