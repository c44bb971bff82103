"""Answers as lines for a terminal or a pipe: notes, what the log says to a question, attestation, voters, invites.

Also which runs wait for verifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoresearch.ask.discussion import AskAnswer, NoteView, RunFound, TriedParameter, TriedValue
from autoresearch.ask.node import VoterView
from autoresearch.ask.people.participants import AttestAnswer, AttestorAnswer
from autoresearch.face.columns.column import COUNT, RECORD, VALUE, WORDS, Column, Columns, person, short
from autoresearch.face.columns.people import ACT_COLUMNS
from autoresearch.text import age, counted, duration, figure, lately, moment, one_line, sanitised, value
from autoresearch.words import Counts
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_line, print_list, print_rows, say

# The rest of a note stands in `show`.
TEXT_CHARACTERS = 240


def note_line(note: NoteView, now_ms: int) -> str:
    """One note in a line, below the run that is its evidence."""
    text = one_line(note.text, TEXT_CHARACTERS)
    return f"{short(note.id)} {note.topic}: {text}, by {person(note.participant)}, {lately(note.time_ms, now_ms)}"


def print_found(answer: AskAnswer) -> None:
    """The model's sentences first, then what they rest on; a line a record for a program."""
    if not is_rich():
        print_rows(_rows(answer))
        return
    if answer.text:
        print_line(sanitised(answer.text, lines=True))
        print_line("")
    for fact in answer.facts:
        ids = f" ({', '.join(map(short, fact.ids))})" if fact.ids else ""
        print_line(sanitised(f"{fact.sentence}{ids}"))
    if answer.facts:
        print_line("")
    for parameter in answer.parameters:
        _print_parameter(parameter)
    texts = [(note.id, note.topic, note.text) for note in answer.notes]
    texts += [(run.id, value(run.value), _words(run)) for run in answer.runs]
    texts += [(run.id, run.status.replace("_", " "), _words(run)) for run in answer.failures]
    print_list(_TEXT_COLUMNS, texts)


_TEXT_COLUMNS: Columns[tuple[str, str, str]] = (
    Column("id", lambda row: row[0], RECORD),
    Column("what", lambda row: row[1]),
    Column("text", lambda row: row[2], WORDS),
)
_TRIED_COLUMNS: Columns[TriedValue] = (
    Column("value", lambda row: figure(row.value) if isinstance(row.value, float) else one_line(str(row.value), 64)),
    Column("runs", lambda row: row.runs, COUNT),
    Column("failed", lambda row: row.failed, COUNT),
    Column("mean", lambda row: row.mean, VALUE),
    Column("best", lambda row: row.best, VALUE),
    Column("id", lambda row: row.id, RECORD),
)


def _print_parameter(parameter: TriedParameter) -> None:
    more = f", the best {len(parameter.values)}" if parameter.tried > len(parameter.values) else ""
    print_line(f"{one_line(parameter.name, 64)}: {parameter.tried} values tried{more}")
    print_list(_TRIED_COLUMNS, parameter.values)
    print_line("")


def _words(run: RunFound) -> str:
    parts = (run.title, run.hypothesis if run.value is not None else run.reason)
    return one_line("; ".join(dict.fromkeys(part for part in parts if part)), TEXT_CHARACTERS)


def _rows(answer: AskAnswer) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("answer", " ".join(answer.cited), answer.text)] if answer.text else []
    rows += [("fact", " ".join(fact.ids), fact.sentence) for fact in answer.facts]
    rows += [
        (each.name, row.id, row.value, row.runs, row.failed, figure(row.mean), figure(row.best))
        for each in answer.parameters
        for row in each.values
    ]
    rows += [("note", note.id, note.topic, note.text) for note in answer.notes]
    rows += [("run", run.id, figure(run.value), run.title, run.hypothesis) for run in answer.runs]
    rows += [("failure", run.id, run.status, run.title, run.reason) for run in answer.failures]
    return rows


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
        ("attestor", f"{attestation.attestor}  {attestation.method}, until {moment(attestation.until_ms)}")
        for attestation in answer.attestations
    ]
    lines += [
        ("awaited", f"the code of {code.attestor[:KEY_CHARACTERS]}…, for {duration(code.until_ms - now_ms)} more")
        for code in answer.awaited
    ]
    lines += [("refused", f"{refusal.attestor[:KEY_CHARACTERS]}…: {refusal.reason}") for refusal in answer.refused]
    print_labelled(lines)
    if answer.awaited:
        mails = counted(len(answer.awaited), "mail")
        say(f"{mails} on the way; look into the spam folder too → autoresearch node id confirm CODE")
    elif not answer.attested and not answer.refused and answer.attestors >= answer.needed:
        say("→ autoresearch node id attest you@example.org")


def print_acts(answer: AttestorAnswer, *, now_ms: int) -> None:
    """What this attestor did, the newest first."""
    print_list(ACT_COLUMNS, answer.acts, now_ms=now_ms)
    mails = counted(answer.mailed, "mail")
    say(f"{mails}, {counted(answer.attested, 'attestation')}, {counted(answer.refused, 'refusal')}")
    if not answer.trusted:
        say(f"this network does not trust this attestor yet → autoresearch network trust {answer.attestor}")


TOKEN_CHARACTERS = 8


def reason(voter: VoterView, now_ms: int) -> str:
    """Why a participant counts: founder, admitted by whom and when, named by hand, attested."""
    if voter.why != Counts.ADMITTED:
        return voter.why
    way = f", with invite {voter.token[:TOKEN_CHARACTERS]}" if voter.token else ""
    return f"{voter.why} by {person(voter.by)} {age(voter.since_ms, now_ms)}{way}"


def voter_lines(voters: Sequence[VoterView], note: str, way: str, now_ms: int) -> Iterator[tuple[str, str]]:
    """Who counts and why; then what this participant does so that it counts, else how many more it takes."""
    for voter in voters:
        yield "counts", f"{person(voter.participant)} · {reason(voter, now_ms)}{' · you' if voter.me else ''}"
    if way:
        yield "you", f"you do not count yet → {way}"
    elif note:
        yield "needed", note
