"""``id attest`` and ``id confirm``: ask for codes, and answer them. The root key signs here, never in the daemon."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch_cli import here, roots
from autoresearch_cli.options import Json
from autoresearch_cli.rendering.output import print_json, say

if TYPE_CHECKING:
    from autoresearch.answers import AttestAnswer
    from autoresearch.identity import KeyPair

# A mail with all its headers is some kilobytes.
PASTED_CHARACTERS_MAX = 1 << 20
STATUS = "autoresearch id attest --status"


def attest(
    address: Annotated[str, typer.Argument(metavar="[ADDRESS]", help="Your mail address; only attestors see it.")] = "",
    *,
    status: Annotated[bool, typer.Option("--status", help="Only say how you stand, and what is missing.")] = False,
    json: Json = False,
) -> None:
    """Show that a mailbox is yours, so that your runs rank. Attestors write to it; nobody else learns the address."""
    answer = _asked(address) if address and not status else _standing()
    _report(answer, json=json)
    if address and not status and not json and answer.awaited and sys.stdin.isatty():
        _ask_for_codes(answer)


def confirm(
    code: Annotated[list[str] | None, typer.Argument(metavar="[CODE]", help="The code; else standard input.")] = None,
    *,
    json: Json = False,
) -> None:
    """Answer an attestor's code. Without one, paste the whole mail; the root key's passphrase is asked for."""
    text = " ".join(code) if code else _pasted()
    with here.client() as client:
        awaited = client.attest_standing()
    if not awaited.awaited:
        raise NotFound("no code is awaited here", hint="autoresearch id attest ADDRESS asks for one")
    _report(_confirmed(text, awaited, _root()), json=json)


def _asked(address: str) -> AttestAnswer:
    from autoresearch.answers import AttestRequest
    from autoresearch.identity import ADDRESS_MAX, mailbox

    mailbox(address)  # what is none is said before anybody is asked
    if len(address) > ADDRESS_MAX:
        raise UsageError("that is no mail address")
    say("asking attestors to write to you")
    with here.client() as client:
        return client.attest(AttestRequest(address=address))


def _standing() -> AttestAnswer:
    """From the daemon, or from the log when none runs."""
    try:
        with here.client() as client:
            return client.attest_standing()
    except DaemonNotRunning:
        from autoresearch.answers import attest_answer
        from autoresearch.log import Log

        manifest = here.manifest()
        with Log.open(here.paths().log, manifest.network, read_only=True, trust=manifest.trust) as log:
            return attest_answer(log, roots.loaded().root.public, now_ms=here.now_ms())


def _confirmed(text: str, awaited: AttestAnswer, root: KeyPair) -> AttestAnswer:
    """Answer all codes in a text. Raises UsageError when none of them is awaited."""
    from autoresearch.answers import confirmations

    device = roots.loaded().device.public
    found = confirmations(text, awaited.awaited, root, device, here.manifest().network.id)
    if not found:
        raise UsageError("that is none of the codes that are awaited", hint=f"type it again, or: {STATUS}")
    answer = awaited
    refused: AutoresearchError | None = None
    with here.client() as client:
        for request in found:
            try:
                answer = client.confirm(request)
            except Refused as error:
                refused = error  # the other codes may be good
    if refused:
        raise refused
    return answer


def _ask_for_codes(answer: AttestAnswer) -> None:
    """Ask for one code after the other until none is missing, or the person has had enough."""
    root: KeyPair | None = None
    while answer.awaited and not answer.attested:
        text = typer.prompt("Code from the mail (Enter: later)", default="", show_default=False, err=True)
        if not text.strip():
            say("→ autoresearch id confirm CODE, within half an hour")
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
    from autoresearch.identity import KeyPair

    root = roots.unlocked(roots.loaded()).root
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
    from autoresearch_cli.rendering.attesting import print_standing

    print_standing(answer, now_ms=here.now_ms())
