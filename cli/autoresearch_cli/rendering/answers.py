"""Answers as lines for a terminal or a pipe: notes, what the log says to a question, attestation, voters, invites.

Also which runs wait for verifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoresearch.ask.ideas import AskAnswer, ClaimsAnswer, NotesAnswer, NoteView, RunFound, TriedParameter, TriedValue
from autoresearch.ask.node import CandidateView, VoterView
from autoresearch.ask.people.participants import AttestAnswer, AttestorAnswer, AwaitedView, VerificationsAnswer
from autoresearch.text import age, counted, duration, figure, lately, moment, one_line, sanitised, value
from autoresearch.words import STAGE_NAMES, Counts
from autoresearch_cli.models import InvitationRow
from autoresearch_cli.rendering.layout import person, short
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_line, print_rows, print_table, say

# The rest of a note stands in `show`.
TEXT_CHARACTERS = 240


def print_notes(answer: NotesAnswer, *, now_ms: int) -> None:
    """Notes, newest first; whole for a program."""
    if not is_rich():
        print_rows(_note_cells(note) for note in answer.notes)
        return
    rows = [
        (
            short(note.id),
            note.topic,
            lately(note.time_ms, now_ms),
            person(note.participant),
            " ".join(map(short, note.evidence)),
            cited(note),
            one_line(note.text, TEXT_CHARACTERS),
        )
        for note in answer.notes
    ]
    print_table(("id", "topic", "when", "by", "evidence", "cited", "text"), rows, optional=("by", "cited"))


def print_claims(answer: ClaimsAnswer, *, now_ms: int) -> None:
    """Claims, those that end first at the top; whole for a program."""
    if not is_rich():
        print_rows(
            (one.id, one.title, moment(one.until_ms), one.author, one.replicate, one.source_digest, one.participant.key)
            for one in answer.claims
        )
        return
    rows = [
        (
            short(one.id),
            f"{duration(one.until_ms - now_ms)} left",
            "this node" if one.is_own else person(one.participant),
            one_line(one.title, TEXT_CHARACTERS) or "a change without a title",
        )
        for one in answer.claims
    ]
    print_table(("id", "until", "by", "title"), rows)


def note_line(note: NoteView, now_ms: int) -> str:
    """One note in a line, below the run that is its evidence."""
    text = one_line(note.text, TEXT_CHARACTERS)
    return f"{short(note.id)} {note.topic}: {text}, by {person(note.participant)}, {lately(note.time_ms, now_ms)}"


def cited(note: NoteView) -> str:
    """What became of the runs that cite a note; empty where none does."""
    return f"{note.better} better, {note.worse} not" if note.better or note.worse else ""


def _note_cells(note: NoteView) -> tuple[object, ...]:
    said = (note.id, note.topic, moment(note.time_ms), note.author, " ".join(note.evidence), note.text)
    return (*said, note.status, note.participant.key, note.participant.name, note.better, note.worse)


def print_found(answer: AskAnswer) -> None:
    """The model's sentences first, then what they rest on; a line a record for a program."""
    if not is_rich():
        print_rows(_rows(answer))
        return
    if answer.text:
        print_line(sanitised(answer.text, lines=True))
        print_line("")
    for parameter in answer.parameters:
        _print_parameter(parameter)
    texts = [(short(note.id), note.topic, one_line(note.text, TEXT_CHARACTERS)) for note in answer.notes]
    texts += [(short(run.id), value(run.value), _words(run)) for run in answer.runs]
    texts += [(short(run.id), run.status, _words(run)) for run in answer.failures]
    if texts:
        print_table(("id", "what", "text"), texts)


def _print_parameter(parameter: TriedParameter) -> None:
    more = f", the best {len(parameter.values)}" if parameter.tried > len(parameter.values) else ""
    print_line(f"{one_line(parameter.name, 64)}: {parameter.tried} values tried{more}")
    rows = [
        (_shown(one), str(one.runs), str(one.failed or ""), value(one.mean), value(one.best), short(one.id))
        for one in parameter.values
    ]
    print_table(("value", "runs", "failed", "mean", "best", "id"), rows)
    print_line("")


def _shown(one: TriedValue) -> str:
    return figure(one.value) if isinstance(one.value, float) else one_line(str(one.value), 64)


def _words(run: RunFound) -> str:
    parts = (run.title, run.hypothesis if run.value is not None else run.reason)
    return one_line("; ".join(dict.fromkeys(part for part in parts if part)), TEXT_CHARACTERS)


def _rows(answer: AskAnswer) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("answer", " ".join(answer.cited), answer.text)] if answer.text else []
    rows += [
        (each.name, one.id, one.value, one.runs, one.failed, figure(one.mean), figure(one.best))
        for each in answer.parameters
        for one in each.values
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
        say(f"{mails} on the way; look into the spam folder too → autoresearch node id confirm CODE")
    elif not answer.attested and not answer.refused and answer.attestors >= answer.needed:
        say("→ autoresearch node id attest you@example.org")


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


TITLE_CHARACTERS = 80


def print_awaited(answer: VerificationsAnswer, *, now_ms: int) -> None:
    """The runs that wait for verifiers, the most urgent first; whole for a program."""
    if not is_rich():
        print_rows(_verification_cells(one) for one in answer.waiting)
        return
    rows = [
        (
            short(one.run),
            value(one.value),
            one.state,
            stage(one),
            verifiers(one),
            one.part.replace("_", " "),
            lately(one.time_ms, now_ms),
            person(one.participant),
            one_line(one.title, TITLE_CHARACTERS),
        )
        for one in answer.waiting
    ]
    columns = ("id", "reported", "state", "stage", "verifiers", "this node", "when", "by", "title")
    print_table(columns, rows, right=("reported",), optional=("when", "by"))


def stage(one: AwaitedView) -> str:
    """What verifiers measure, and in which round."""
    name = STAGE_NAMES.get(one.stage, one.stage)
    return f"{name}, round {one.round + 1}" if one.round else name


def verifiers(one: AwaitedView) -> str:
    """How many verifiers measured a run, and how many it takes before they reveal."""
    of = f" of {one.needed}" if one.measured < one.needed else ""
    more = f", {one.committed} committed" if one.committed else ""
    return f"{one.measured}{of}{more}"


def _verification_cells(one: AwaitedView) -> tuple[object, ...]:
    said = (one.run, figure(one.value), one.state, one.stage, one.round, one.measured, one.committed, one.needed)
    return (*said, one.part, moment(one.time_ms), one.participant.key, one.participant.name, one.title)


TOKEN_CHARACTERS = 8


def reason(voter: VoterView, now_ms: int) -> str:
    """Why a participant counts: founder, admitted by whom and when, named by hand, attested."""
    if voter.why != Counts.ADMITTED:
        return voter.why
    way = f", with invite {voter.token[:TOKEN_CHARACTERS]}" if voter.token else ""
    return f"{voter.why} by {person(voter.by)} {age(voter.since_ms, now_ms)}{way}"


def voter_lines(voters: Sequence[VoterView], note: str, way: str, now_ms: int) -> Iterator[tuple[str, str]]:
    """Who counts and why, how many more it takes, and what this participant does so that it counts."""
    for voter in voters:
        yield "counts", f"{person(voter.participant)} · {reason(voter, now_ms)}{' · you' if voter.me else ''}"
    if way:
        yield "you", f"you do not count yet → {way}"
    if note:
        yield "needed", note


def candidate(row: CandidateView, now_ms: int) -> tuple[str, str]:
    """A participant that does not count, as a line."""
    parts = ["you"] if row.me else []
    parts += [f"joined with an invite {age(row.joined_ms, now_ms)}"] if row.joined_ms else []
    parts += [f"dismissed {age(row.dismissed_ms, now_ms)}"] if row.dismissed_ms else []
    return person(row.participant), ", ".join(parts) or "does not count"


def invitation(row: InvitationRow, now_ms: int) -> tuple[str, str]:
    """An invite that admits, as a line."""
    left = f"until {moment(row.expires_ms)}" if row.state == "open" else row.state
    return row.token[:TOKEN_CHARACTERS], (
        f"{left} · admitted {len(row.admitted)} of {counted(row.uses, 'participant')} · made {age(row.made_ms, now_ms)}"
    )
