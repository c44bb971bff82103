"""Records as lines: one whole, or many in a table; components and releases."""

from __future__ import annotations

from itertools import pairwise

from autoresearch.ask.records import RecordView, ShowAnswer, VerificationStateView
from autoresearch.face.columns import runs
from autoresearch.face.columns.column import person, short, shortened
from autoresearch.face.columns.node import release_lines, used_component_words
from autoresearch.face.columns.people import hidden_words, unhiding
from autoresearch.log.standing.answers import ParticipantView, RunView
from autoresearch.text import age, duration, moment, one_line, size, value
from autoresearch.words import (
    COPY,
    COPY_SENTENCE,
    MARK_SENTENCES,
    MEASURED_BY,
    RETEST,
    RETEST_SENTENCE,
    RUN_MODES,
    Mark,
    RunState,
)
from autoresearch_cli.rendering.answers import note_line
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_list

# Fields of a body that name times.
TIME_FIELDS = ("issued", "expires", "until")
# `network credit` lists all of them.
MARKS_SHOWN = 3
# `note list` finds all of them.
NOTES_SHOWN = 5


def print_record(answer: ShowAnswer, *, now_ms: int) -> None:
    """One record, as label and text."""
    lines = record_lines(answer.record, now_ms)
    if answer.release:
        lines += release_lines(answer.release)
        lines += [("used by", f"{short(row.id)} {runs.leading_words(row)}, {row.title}") for row in answer.used_by]
    else:
        lines += run_lines(answer.run, answer) if answer.run else body_lines(answer.body)
    if answer.measured_by:
        lines.append(("measured", f"by {MEASURED_BY[answer.measured_by]}"))
    lines += [("link", link) for link in answer.links]
    if is_rich():
        lines = for_people(lines)
    lines += [("!", f"{hidden_words(hiding)} → {unhiding(hiding)}") for hiding in answer.hidden_by]
    if answer.withdrawn:
        when = f", {age(answer.withdrawn_ms, now_ms)}" if answer.withdrawn_ms is not None else ""
        why = f": “{answer.withdrawn_reason}”" if answer.withdrawn_reason else ""
        lines.append(("!", f"its author withdrew it{when}{why}; it does not rank, and is not verified"))
    if answer.forked:
        lines.append(("!", "its author signed two records with one number: it counts only once others verified it"))
    if answer.verification:
        lines.append(("state", f"{answer.verification.state}: {answer.verification.reason}"))
        if answer.verification.noise:
            lines.append(("noise", answer.verification.noise))
        if answer.run and answer.run.standing.verifiers:
            lines.append(("verifiers", f"{answer.run.standing.verifiers}, below"))
        lines += verification_lines(answer.verification, answer.record.participant, now_ms)
    lines += [("note", note_line(note, now_ms)) for note in answer.notes[:NOTES_SHOWN]]
    print_labelled(lines)
    if answer.verification and answer.verification.measured:
        print_verifications(answer)


def body_lines(body: dict[str, object]) -> list[tuple[str, str]]:
    """The fields of a record that is not a run and has them: records by their ids, times as people read them."""
    fields = ((name, item) for name, item in body.items() if item not in (None, "", [], {}))
    return [(name.removesuffix("_ms"), _field(name, item)) for name, item in fields]


def _field(name: str, item: object) -> str:
    if name in TIME_FIELDS and isinstance(item, int) and item >= 0:
        return moment(item)
    return duration(item) if name == "duration_ms" and isinstance(item, int) else _plain(item)


def for_people(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines with short ids, without links that a line before has."""
    short_lines = [(label, text if label == "id" else shortened(text)) for label, text in lines]
    words = {word for label, text in short_lines if label != "link" for word in text.split(", ")}
    return [(label, text) for label, text in short_lines if label != "link" or text not in words]


def verification_lines(
    verification: VerificationStateView, author: ParticipantView, now_ms: int
) -> list[tuple[str, str]]:
    """Who verified it, which states it had, what is wrong with it or its author."""
    lines = []
    if len(verification.changes) > 1:
        words = " → ".join(change.state for change in verification.changes)
        lines.append(("was", f"{words}, {age(verification.changes[-1].time_ms, now_ms)}"))
    for before, after in pairwise(verification.changes):
        if before.state == RunState.CONFIRMED:
            lines.append(("!", f"was confirmed until {moment(after.time_ms)}: {short(after.id)}"))
    if verification.copy_of:
        lines.append(("!", f"{COPY} of {short(verification.copy_of)}: {COPY_SENTENCE}"))
    if verification.retest:
        lines.append(("!", f"{RETEST}: {RETEST_SENTENCE}"))
    if not verification.attested:
        lines.append(("!", "its author is unattested: it is listed apart and does not rank"))
    lines += [
        ("!", f"its author: {mark.mark}, {MARK_SENTENCES[Mark(mark.mark)]} ({short(mark.record)})")
        for mark in verification.marks[:MARKS_SHOWN]
    ]
    if verification.marks:
        lines.append(("!", f"what its author did, with the records: autoresearch network credit {author.short}"))
    return lines


def record_lines(record: RecordView, now_ms: int) -> list[tuple[str, str]]:
    """What every record has."""
    return [
        ("id", record.id),
        ("kind", record.kind),
        *([("what", record.summary)] if record.kind != "run" else []),
        ("when", f"{moment(record.time_ms)}, {age(record.time_ms, now_ms)}"),
        ("author", person(record.participant)),
        ("device", f"{record.author}, record {record.seq}"),
        *([(runs.STARRED, "on this machine")] if record.starred else []),
    ]


def run_lines(view: RunView, answer: ShowAnswer) -> list[tuple[str, str]]:
    """What a run has; nothing where it has nothing."""
    run = view.run
    is_said = one_line(run.hypothesis).startswith(answer.because.removesuffix("…"))
    lines = [
        ("title", runs.run_title(view)),
        ("change", view.standing.headline if answer.changes else ""),
        ("why", "" if is_said else answer.because),
        ("idea", "" if run.hypothesis == run.title else run.hypothesis),
        ("mode", RUN_MODES.get(run.mode, "")),
        ("status", f"{run.status.replace('_', ' ')}, {view.standing.state}"),
        ("reason", run.reason),
        *runs.number_words(view.standing),
        ("expected", value(run.expected) if run.expected is not None else ""),
        ("parent", run.parent or ""),
        ("brought", f"from another network, where it is {run.origin}" if run.origin else ""),
        ("seed", f"{run.seed}, replicate {run.replicate}"),
        ("budget", runs.budget_words(run.budget, answer.budget_unit)),
        (
            "its author states",
            ", ".join(f"{name} {n if isinstance(n, int) else f'{n:.6g}'}" for name, n in run.metrics.items()),
        ),
        ("components", ", ".join(map(used_component_words, answer.components))),
        ("genome", ", ".join(map(setting, sorted(run.genome.items())))),
        ("took", ", ".join(runs.used_words(run))),
        ("where", ", ".join(filter(None, (run.device, f"sandbox {run.sandbox}" if run.sandbox else "no sandbox")))),
        ("with", ", ".join(f"{name} {text}" for name, text in run.environment.items())),
        ("by", run.proposed_by),
        ("source", f"{run.source.sha256}, {size(run.source.size)}"),
    ]
    return [(label, text) for label, text in lines if text]


def setting(item: tuple[str, int | float | str | bool]) -> str:
    """A constant with its value; of a patch whether it is in the program: ``+muon`` or ``-muon``."""
    name, value = item
    if name.startswith("+") and isinstance(value, bool):
        return name if value else f"-{name[1:]}"
    return f"{name}={value}"


def print_verifications(answer: ShowAnswer) -> None:
    """What the author reported and what verifiers measured, side by side."""
    if answer.run is not None and answer.verification is not None:
        rows = [runs.reported_by_author(answer.run), *answer.verification.measured]
        print_list(runs.measured_columns(answer.verification.tolerance), rows)


def _plain(item: object) -> str:
    """A field of a record as text: of a list its items, of a table its names with their values."""
    if isinstance(item, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in item.items())
    if isinstance(item, list):
        return ", ".join(map(_plain, item))
    return f"{item:.10g}" if isinstance(item, float) else str(item)
