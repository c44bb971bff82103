"""How a participant stands with the attestors, and what an attestor did, for people."""

from __future__ import annotations

from autoresearch.api import AttestAnswer, AttestorAnswer
from autoresearch.figures import counted, duration, lately, moment
from autoresearch_cli.rendering.output import print_labelled, print_table, say

KEY_CHARACTERS = 16


def print_standing(answer: AttestAnswer, *, now_ms: int) -> None:
    """Whether the participant is attested, by whom, and what is missing."""
    lines = [
        ("participant", answer.participant),
        ("attested", f"{'yes' if answer.attested else 'no'}: {answer.reason}"),
    ]
    if answer.until_ms:
        lines.append(("until", moment(answer.until_ms)))
    lines += [
        ("attestor", f"{one.attestor}  {one.method}, until {moment(one.until_ms)}") for one in answer.attestations
    ]
    lines += [
        ("awaited", f"the code of {code.attestor[:KEY_CHARACTERS]}…, for {duration(code.until_ms - now_ms)} more")
        for code in answer.awaited
    ]
    lines += [("refused", f"{one.attestor[:KEY_CHARACTERS]}…: {one.reason}") for one in answer.refused]
    print_labelled(lines)
    if answer.awaited:
        mails = counted(len(answer.awaited), "mail")
        say(f"{mails} on the way; look into the spam folder too → autoresearch id confirm CODE")
    elif not answer.attested and not answer.refused and answer.attestors >= answer.needed:
        say("→ autoresearch id attest you@example.org")


def print_acts(answer: AttestorAnswer, *, now_ms: int) -> None:
    """What this attestor did, the newest first."""
    rows = [
        (lately(act.time_ms, now_ms), act.what, act.participant[:KEY_CHARACTERS], act.tag[:KEY_CHARACTERS], act.reason)
        for act in answer.acts
    ]
    print_table(("when", "what", "participant", "mailbox tag", "reason"), rows)
    mails = counted(answer.mailed, "mail")
    say(f"{mails}, {counted(answer.attested, 'attestation')}, {counted(answer.refused, 'refusal')}")
    if not answer.trusted:
        say(f"this network does not trust this attestor yet → autoresearch network trust {answer.attestor}")
