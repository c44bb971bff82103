"""Evidence against authors of records: a row each, or one step by step."""

from __future__ import annotations

from collections.abc import Iterable

from autoresearch.api import EvidenceAnswer, EvidenceListAnswer, EvidenceView, MarkView
from autoresearch.figures import counted, lately, moment
from autoresearch.words import EvidenceKind, Mark
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.names import person
from autoresearch_cli.rendering.output import is_rich, print_line, print_rows, print_table

KEY_CHARACTERS = 8
# Digests and seeds are told apart by fewer; a program gets all.
SHOWN_CHARACTERS = 24
DAY_CHARACTERS = 10
SIGNS = {True: "✓", False: "✗", None: ""}
WORDS = {True: "agrees", False: "differs", None: ""}


def print_evidence_list(answer: EvidenceListAnswer, *, now_ms: int) -> None:
    """All, the newest first."""
    if not is_rich():
        print_rows(
            (
                *(one.kind, one.id, one.participant.key, one.device, moment(one.time_ms), one.follows),
                *("" if one.until_ms is None else moment(one.until_ms), " ".join(one.records)),
                one.participant.name,
            )
            for one in answer.evidence
        )
        return
    rows = [
        (
            one.kind,
            short(one.id),
            lately(one.time_ms, now_ms),
            one.device[:KEY_CHARACTERS],
            person(one.participant),
            follows(one, now_ms),
        )
        for one in answer.evidence
    ]
    print_table(("kind", "id", "when", "device", "author", "consequence"), rows, optional=("device", "when"))


def follows(one: EvidenceView, now_ms: int) -> str:
    """What follows from the evidence, in a few words."""
    if one.until_ms is None:
        return one.reason.partition(": ")[2]
    return f"{'was ' if one.until_ms <= now_ms else ''}{one.follows} until {moment(one.until_ms)[:DAY_CHARACTERS]}"


def print_evidence(answer: EvidenceAnswer, *, now_ms: int) -> None:
    """Each step with what the record says and what was found here, then what it comes to."""
    if is_rich():
        rows = [(SIGNS[step.agrees], step.what, _shown(step.stated), _shown(step.found)) for step in answer.steps]
        print_table(("", answer.kind, "the record", "here"), rows)
    else:
        print_rows((WORDS[step.agrees], step.what, step.stated, step.found) for step in answer.steps)
    if answer.evidence and answer.holds:
        print_line(f"consequence for {person(answer.evidence.participant)}: {follows(answer.evidence, now_ms)}")
    if answer.holds is not None:
        print_line(f"{_verdict(answer)}{', ' if answer.nothing_found else ': '}{answer.reason}")


def _verdict(answer: EvidenceAnswer) -> str:
    if answer.nothing_found:
        agreeing = sum(step.agrees is True for step in answer.steps)
        return f"no misbehaviour found in {short(answer.id)}: {counted(agreeing, 'check')} agree"
    what = "the value" if answer.kind == EvidenceKind.VALUE else "the evidence"
    return f"{what} {'holds' if answer.holds else 'does not hold'}"


def how_to_check(marks: Iterable[MarkView]) -> str:
    """The command that checks the evidence for the first of these marks; empty when there is none."""
    found = next((mark for mark in marks if mark.mark != Mark.COPIER), None)
    return f"autoresearch evidence {short(found.record)} checks the mark “{found.mark}” here" if found else ""


def _shown(text: str) -> str:
    """Text for a person; of ids, keys and digests as much as tells them apart."""
    return " ".join(
        word if len(word) <= SHOWN_CHARACTERS else f"{short(word)[:SHOWN_CHARACTERS]}…" for word in text.split()
    )
