"""Tables of what participants have done, of evidence against authors of records, of what each setting did.

Of a participant a row, or the whole with the records behind each fact; of evidence a row, or each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoresearch.ask.people.participants import EvidenceAnswer, EvidenceListAnswer, EvidenceView
from autoresearch.ask.runs.answers import EffectsAnswer
from autoresearch.log.standing.answers import CreditAnswer, CreditView, MarkView
from autoresearch.text import counted, duration, figure, lately, moment, signed, value
from autoresearch.words import BOARD_SECTION_SENTENCES, MARK_SENTENCES, BoardSection, EvidenceKind, Mark
from autoresearch_cli.rendering.layout import mark_words, person, persons, short
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_line, print_rows, print_table, print_text

# So many records are named on a line; a program gets all with --json.
SHOWN_RECORDS = 6
COLUMNS = ("participant", "confirmed", "compute", "gain", "verified", "refuted", "time", "marks")


def print_credit(answer: CreditAnswer) -> None:
    """All participants: the attested first, where the network trusts attestors."""
    if not is_rich():
        print_rows(_cells(row, answer) for row in answer.participants)
        return
    attested = [row for row in answer.participants if row.attested or not answer.trust]
    apart = [row for row in answer.participants if row not in attested]
    _print_rows(attested, answer)
    if apart:
        print_text(("\n" if attested else "") + BOARD_SECTION_SENTENCES[BoardSection.UNATTESTED])
        _print_rows(apart, answer)


def print_participant(answer: CreditAnswer) -> None:
    """One participant: every fact with the records that show it."""
    for row in answer.participants:
        print_labelled(_lines(row, answer))


def _print_rows(rows: Sequence[CreditView], answer: CreditAnswer) -> None:
    cells = [
        (
            persons(row.known_as),
            f"{len(row.confirmed)} of {row.runs}",
            duration(row.cpu_ms) if row.cpu_ms else "",
            improved(row, answer, named=len(answer.tasks) > 1),
            len(row.passes) + len(row.fails) + len(row.replications) or "",
            len(row.refutations) or "",
            duration(row.verifying_ms) if row.verifying_ms else "",
            marks(row),
        )
        for row in rows
    ]
    print_table(COLUMNS, cells, right=COLUMNS[1:-1], optional=("time", "refuted", "compute"))


def _cells(row: CreditView, answer: CreditAnswer) -> tuple[object, ...]:
    said = (row.participant, "attested" if row.attested else "not attested", row.runs, row.finished)
    states = (len(row.confirmed), len(row.provisional), len(row.not_replicated), len(row.refuted))
    spent = (row.cpu_ms // 1000, figure(row.work), figure(row.flops))
    checks = (len(row.passes), len(row.fails), len(row.replications), len(row.refutations), row.verifying_ms // 1000)
    return (*said, *states, *spent, *checks, row.consecutive_valid, improved(row, answer), marks(row), *_known_as(row))


def _known_as(row: CreditView) -> tuple[str, str]:
    """All its root keys and names, between commas."""
    return ",".join(row.keys), ", ".join(who.name for who in row.known_as if who.name)


def _lines(row: CreditView, answer: CreditAnswer) -> list[tuple[str, str]]:
    """Every fact of one participant; nothing where there is nothing."""
    checks = row.passes + row.fails + row.replications
    known = [
        ("known as", persons(row.known_as)),
        ("participant", f"{row.participant}{'' if row.attested or not answer.trust else ', unattested'}"),
        ("keys", ", ".join(key for key in row.keys if key != row.participant)),
        ("runs", f"{row.runs}, of which {row.finished} finished"),
        ("confirmed", _records(row.confirmed)),
        ("improved", improved(row, answer)),
        ("provisional", _records(row.provisional)),
        ("no better", _records(row.not_replicated)),
        ("refuted", _records(row.refuted)),
        ("compute", _compute(row)),
        ("implausible", _records(row.implausible)),
        ("verifications", _checks(row) if checks else ""),
        ("passes", _records(row.passes)),
        ("fails", _records(row.fails)),
        ("replications", _records(row.replications)),
        ("refutations", _records(row.refutations)),
        ("in a row", f"{counted(row.consecutive_valid, 'verification')} right" if row.consecutive_valid else ""),
    ]
    known += [
        ("!", f"{mark.mark}: {MARK_SENTENCES[Mark(mark.mark)]}; {short(mark.record)}, {moment(mark.time_ms)}")
        for mark in row.marks
    ]
    if row.banned_until_ms:
        known.append(("!", f"it does not count until {moment(row.banned_until_ms)}"))
    return [(label, text) for label, text in known if text]


def improved(row: CreditView, answer: CreditAnswer, *, named: bool = True) -> str:
    """How much better its confirmed runs made each metric, by what others measured."""
    if not named:
        return ", ".join(value(gain.total) for gain in row.improvements)
    names = {task.digest: task.metric for task in answer.tasks}
    return ", ".join(f"{names.get(gain.task, gain.task[:8])} {value(gain.total)}" for gain in row.improvements)


def marks(row: CreditView) -> str:
    """The marks in words, each once with how often."""
    return mark_words(row.marks)


def _compute(row: CreditView) -> str:
    """The compute of runs to whose number others came."""
    if not row.cpu_ms and not row.work and not row.flops:
        return ""
    parts = [f"{duration(row.cpu_ms)} of processor"]
    parts += [f"{row.work:.3g} units of work"] if row.work else []
    parts += [f"{row.flops:.3g} FLOPs"] if row.flops else []
    return ", ".join(parts)


def _checks(row: CreditView) -> str:
    return f"{len(row.passes + row.fails + row.replications)} that count, {duration(row.verifying_ms)}"


def _records(ids: list[str]) -> str:
    """How many records, and the newest of them."""
    if not ids:
        return ""
    newest = [short(text) for text in ids[: -SHOWN_RECORDS - 1 : -1]]
    return f"{len(ids)}: {' '.join(newest)}{' …' if len(ids) > SHOWN_RECORDS else ''}"


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
    return f"autoresearch run evidence {short(found.record)} checks the mark “{found.mark}” here" if found else ""


def _shown(text: str) -> str:
    """Text for a person; of ids, keys and digests as much as tells them apart."""
    return " ".join(
        word if len(word) <= SHOWN_CHARACTERS else f"{short(word)[:SHOWN_CHARACTERS]}…" for word in text.split()
    )


def print_effects(answer: EffectsAnswer, metric: str) -> None:
    """Settings with the mean change of the metric, its 95 % interval, and in how many pairs they helped."""
    if not is_rich():
        print_rows((e.name, e.pairs, e.better, figure(e.mean), figure(e.low), figure(e.high)) for e in answer.effects)
        return
    rows = [
        (e.name, signed(e.mean), "" if e.low is None else f"{signed(e.low)} .. {signed(e.high)}", e.better, e.pairs)
        for e in answer.effects
    ]
    print_table(("setting", metric, "95 % interval", "helped", "of pairs"), rows, right=(metric, "helped", "of pairs"))
