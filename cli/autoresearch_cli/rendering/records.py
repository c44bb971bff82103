"""Records as lines: one whole, or many in a table."""

from __future__ import annotations

from itertools import pairwise

from autoresearch.answers import LogAnswer, Measured, RecordView, ShowAnswer, StandingView
from autoresearch.views import RunView, Who
from autoresearch.words import COPY, COPY_SENTENCE, MARK_SENTENCES, RETEST, RETEST_SENTENCE, Mark, RunState
from autoresearch_cli.rendering.figures import age, counted, duration, interval, lately, moment, one_line, size, value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_rows, print_table
from autoresearch_cli.rendering.people import person

# `credit` lists all of them.
MARKS_SHOWN = 3


def print_log(answer: LogAnswer, *, now_ms: int) -> None:
    """Records, newest first: short and aligned for a person; whole ids and times for a program."""
    if is_rich():
        rows = [(short(r.id), r.kind, person(r.who), lately(r.time_ms, now_ms), with_state(r)) for r in answer.records]
        print_table(("id", "kind", "by", "when", "what"), rows)
    else:
        print_rows(
            (r.id, r.kind, r.author, r.seq, moment(r.time_ms), r.summary, r.state, r.who.participant, r.who.name)
            for r in answer.records
        )


def with_state(record: RecordView) -> str:
    """What a record says; of a run also how far others stand behind it."""
    return f"{record.summary} · {record.state}" if record.state else record.summary


def print_record(answer: ShowAnswer, *, now_ms: int) -> None:
    """One record, as label and text."""
    lines = record_lines(answer.record, now_ms)
    lines += run_lines(answer.run) if answer.run else [(name, _plain(item)) for name, item in answer.body.items()]
    lines += [("link", link) for link in answer.links]
    if answer.withdrawn:
        lines.append(("!", "its author took it back: it ranks nowhere, and there is nothing to verify"))
    if answer.forked:
        lines.append(("!", "its author signed two records with one number: it counts only when others verify it"))
    if answer.standing:
        lines.append(("state", f"{answer.standing.state}: {answer.standing.reason}"))
        if answer.standing.value is not None:
            lines.append(("network", network_line(answer.standing)))
        lines += standing_lines(answer.standing, answer.record.who, now_ms)
    print_labelled(lines)
    if answer.standing and answer.standing.measured:
        print_verifications(answer)


def network_line(standing: StandingView) -> str:
    """What others measured: value, 95 % interval, how many runs and participants."""
    whole = "" if standing.margin is None else " (95 %)"
    runs = f"median of {standing.runs} runs of others with seeds that nobody chose"
    return f"{interval(standing.value, standing.margin)}{whole}, {runs}"


def standing_lines(standing: StandingView, author: Who, now_ms: int) -> list[tuple[str, str]]:
    """Who spoke, what became of it, what it stands on."""
    lines = []
    if standing.voices:
        lines.append(("checked", f"by {counted(standing.voices, 'other participant')}, below"))
    if len(standing.changes) > 1:
        words = " → ".join(change.state for change in standing.changes)
        lines.append(("was", f"{words}, {age(standing.changes[-1].time_ms, now_ms)}"))
    for before, after in pairwise(standing.changes):
        if before.state == RunState.CONFIRMED:
            lines.append(("!", f"was confirmed until {moment(after.time_ms)}: {short(after.id)}"))
    if standing.copy_of:
        lines.append(("!", f"{COPY} of {short(standing.copy_of)}: {COPY_SENTENCE}"))
    if standing.retest:
        lines.append(("!", f"{RETEST}: {RETEST_SENTENCE}"))
    if not standing.attested:
        lines.append(("!", "nobody attested its author: it is shown apart and does not rank"))
    lines += [
        ("!", f"its author: {mark.mark}, {MARK_SENTENCES[Mark(mark.mark)]} ({short(mark.record)})")
        for mark in standing.marks[:MARKS_SHOWN]
    ]
    if standing.marks:
        lines.append(("!", f"all that its author did, with the records: autoresearch credit {author.short}"))
    return lines


def record_lines(record: RecordView, now_ms: int) -> list[tuple[str, str]]:
    """What every record has."""
    return [
        ("id", record.id),
        ("kind", record.kind),
        ("what", one_line(record.summary)),
        ("when", f"{moment(record.time_ms)}, {age(record.time_ms, now_ms)}"),
        ("author", person(record.who)),
        ("device", f"{record.author}, record {record.seq}"),
    ]


def run_lines(run: RunView) -> list[tuple[str, str]]:
    """What a run has; nothing where it has nothing."""
    known = [
        ("title", one_line(run.title)),
        ("idea", one_line(run.hypothesis)),
        ("status", f"{run.status}, {run.state}"),
        ("reason", one_line(run.reason)),
        ("value", value(run.value) + (f", expected {value(run.expected)}" if run.expected is not None else "")),
        ("parent", run.parent or ""),
        ("seed", f"{run.seed}, replicate {run.replicate}"),
        ("budget", f"{run.budget:.4g}"),
        ("metrics", ", ".join(f"{one_line(name)} {number:.6g}" for name, number in run.metrics.items())),
        ("genome", ", ".join(f"{one_line(name)}={one_line(str(gene))}" for name, gene in run.genome.items())),
        ("took", f"{duration(run.duration_ms)}, {duration(run.cpu_ms)} of processor, {size(run.peak_memory_bytes)}"),
        ("where", f"{one_line(run.device)}, sandbox {run.sandbox}"),
        ("with", ", ".join(f"{one_line(name)} {one_line(text)}" for name, text in run.environment.items())),
        ("by", one_line(run.proposer)),
        ("source", run.source),
    ]
    return [(label, text) for label, text in known if text]


def print_verifications(answer: ShowAnswer) -> None:
    """What was claimed and what others measured, side by side."""
    if answer.run is None or answer.standing is None:
        return
    allowed = f"± {answer.standing.tolerance:.2g} allowed"
    rows = [("the claim", person(answer.run.who), value(answer.run.value), "", allowed)]
    rows += [
        (
            f"{found.stage}{f' {found.round + 1}' if found.round else ''}",
            person(found.who),
            value(found.value) if found.value is not None else pairs(found),
            found.verdict,
            "; ".join(
                filter(
                    None,
                    (
                        asked(found),
                        "" if found.counts else "does not count",
                        "" if found.told else "not told to others yet",
                    ),
                )
            ),
        )
        for found in answer.standing.measured
    ]
    print_table(("", "by", "measured", "verdict", ""), rows)


def pairs(found: Measured) -> str:
    """The pairs of a replication: the parent's value, then the run's."""
    both = zip(found.parent_values, found.values, strict=False)
    return ", ".join(f"{value(before)} → {value(after)}" for before, after in both)


def asked(found: Measured) -> str:
    """What the referee found of a checkpoint, in a few words; empty where the run was repeated."""
    metrics = found.metrics
    if "challenges" not in metrics:
        return ""
    gap = f", new text {metrics['gap']:+.1f} σ" if "gap" in metrics else ""
    return f"{metrics.get('mismatches', 0):.0f} of {metrics['challenges']:.0f} answers differ{gap}"


def _plain(item: object) -> str:
    return one_line(item if isinstance(item, str) else repr(item))
