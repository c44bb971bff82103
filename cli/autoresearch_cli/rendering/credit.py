"""Tables of what participants have done, of evidence against authors of records, of what each setting did.

Of a participant a row, or the whole with the records behind each fact; of evidence a row, or each step.
"""

from __future__ import annotations

from collections.abc import Iterable

from autoresearch.ask.people.participants import EvidenceAnswer
from autoresearch.face.columns.column import person, persons, short
from autoresearch.face.columns.people import consequence, credit_columns, improvements, step_columns, verifications
from autoresearch.log.standing.answers import CreditAnswer, CreditView, MarkView, RecordsView
from autoresearch.text import counted, duration, moment
from autoresearch.words import BOARD_SECTION_SENTENCES, MARK_SENTENCES, BoardSection, EvidenceKind, Mark
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_line, print_list

# So many records are named on a line; a program gets up to 100 with --json.
SHOWN_RECORDS = 6


def print_credit(answer: CreditAnswer) -> None:
    """All participants; for people the attested first, where the network trusts attestors."""
    columns = credit_columns(answer)
    if not is_rich():
        print_list(columns, answer.participants)
        return
    attested = [row for row in answer.participants if row.attested or not answer.trust]
    apart = [row for row in answer.participants if row not in attested]
    print_list(columns, attested)
    if apart:
        print_line(BOARD_SECTION_SENTENCES[BoardSection.UNATTESTED], gap=bool(attested))
        print_list(columns, apart)


def print_participant(answer: CreditAnswer) -> None:
    """One participant: every fact with the records that show it."""
    for row in answer.participants:
        print_labelled(_lines(row, answer))


def _lines(row: CreditView, answer: CreditAnswer) -> list[tuple[str, str]]:
    """Every fact of one participant; nothing where there is nothing."""
    lines = [
        ("known as", persons(row.known_as)),
        ("participant", f"{row.participant}{'' if row.attested or not answer.trust else ', unattested'}"),
        ("keys", ", ".join(key for key in row.keys if key != row.participant)),
        ("runs", f"{row.runs}, of which {row.finished} finished"),
        ("confirmed", _records(row.confirmed)),
        ("sum of gains", improvements(row, answer)),
        ("provisional", _records(row.provisional)),
        ("no better", _records(row.not_replicated)),
        ("refuted", _records(row.refuted)),
        ("compute", _compute(row)),
        ("implausible", _records(row.implausible)),
        ("verifications", _checks(row)),
        ("passes", _records(row.passes)),
        ("fails", _records(row.fails)),
        ("replications", _records(row.replications)),
        ("refutations", _records(row.refutations)),
        ("in a row", f"{counted(row.consecutive_valid, 'verification')} right" if row.consecutive_valid else ""),
    ]
    lines += [
        ("!", f"{mark.mark}: {MARK_SENTENCES[Mark(mark.mark)]}; {short(mark.record)}, {moment(mark.time_ms)}")
        for mark in row.marks
    ]
    if row.banned_until_ms:
        lines.append(("!", f"it does not count until {moment(row.banned_until_ms)}"))
    return [(label, text) for label, text in lines if text]


def _compute(row: CreditView) -> str:
    """The compute of runs to whose number others came."""
    if not row.cpu_ms and not row.work:
        return ""
    parts = [f"{duration(row.cpu_ms)} of processor"]
    parts += [f"{row.work:.3g} units of work"] if row.work else []
    return ", ".join(parts)


def _checks(row: CreditView) -> str:
    checks = verifications(row)
    return f"{checks} that count, {duration(row.verifying_ms)}" if checks else ""


def _records(records: RecordsView) -> str:
    """How many records, and the newest of them."""
    if not records.count:
        return ""
    newest = [short(text) for text in records.newest[:SHOWN_RECORDS]]
    return f"{records.count}: {' '.join(newest)}{' …' if records.count > len(newest) else ''}"


def print_evidence(answer: EvidenceAnswer, *, now_ms: int) -> None:
    """Each step with what the record says and what was found here, then what it comes to."""
    print_list(step_columns(answer.kind), answer.steps)
    if answer.evidence and answer.holds:
        print_line(f"consequence for {person(answer.evidence.participant)}: {consequence(answer.evidence, now_ms)}")
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
    first = next((mark for mark in marks if mark.mark != Mark.COPIER), None)
    return f"autoresearch run evidence {short(first.record)} checks the mark “{first.mark}” here" if first else ""
