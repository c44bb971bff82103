"""A record in a line. What strangers wrote is kept to that line: no control characters, no end. Pure."""

from __future__ import annotations

from autoresearch.records import (
    Admission,
    Attestation,
    Body,
    Claim,
    Commitment,
    Identity,
    Join,
    Merge,
    Note,
    Release,
    Run,
    Task,
    Verification,
    Withdrawal,
    Yank,
    short_id,
)
from autoresearch.sanitise import one_line
from autoresearch.words import RunStatus

SUMMARY_CHARACTERS = 120


def summary(body: Body | dict[str, object]) -> str:
    """What a record says, in a line; empty for kinds that this version doesn't know."""
    return one_line(_sentence(body), SUMMARY_CHARACTERS)


def _sentence(body: Body | dict[str, object]) -> str:
    match body:
        case Run(title=title, status=status, value=value):
            end = one_line(f"{value:.6g}" if status == RunStatus.OK and value is not None else status)
            return f"{one_line(title or 'run', SUMMARY_CHARACTERS - len(end) - 2)}: {end}"
        case Task(name=name, summary=words):
            return f"{name}: {words}" if words else name
        case Claim(title=title):
            return f"trying: {title}" if title else "trying a change"
        case Note(topic=topic, text=text):
            return f"{topic}: {text}"
        case Verification(verdict=verdict, stage=stage, run=run, value=value):
            measured = "" if value is None else f", measured {value:.6g}"
            return f"{stage} of {short_id(run)}: {verdict}{measured}"
        case Identity() | Attestation() | Admission() | Join():
            return _about_a_participant(body)
        case Release(name=name, version=version):
            return f"{name} {version}"
        case Yank(release=release, reason=reason):
            return f"{short_id(release)}: {reason}"
        case Merge(device=device):
            return f"ends the fork of {device.hex()[:8]}"
        case Commitment(stage=stage, run=run):
            return f"{stage} of {short_id(run)}: measured; what came out follows"
        case _:
            return body.reason if isinstance(body, Withdrawal) else ""


def _about_a_participant(body: Identity | Attestation | Admission | Join) -> str:
    match body:
        case Identity(action=action, device=device, name=name):
            return f"{action} {device.hex()[:8] if device else ''} {name}"
        case Attestation(subject=subject, method=method):
            return f"{method} shown by {subject.hex()[:8]}"
        case Admission(action=action, participant=participant, reason=reason):
            return f"{action} {participant.hex()[:8]}{f': {reason}' if reason else ''}"
        case Join(participant=participant, token=token):
            return f"{participant.hex()[:8]} joined with invite {token.hex()[:8]}"
