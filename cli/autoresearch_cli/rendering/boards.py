"""The best, the leaderboard, the lineage."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.answers import BestAnswer, LineageAnswer, TasksAnswer, TopAnswer
from autoresearch.views import LineageStep, RunView, SubjectView
from autoresearch.words import (
    BOARD_SECTION_SENTENCES,
    COPY,
    COPY_SENTENCE,
    MARK_SENTENCES,
    RETEST,
    RETEST_SENTENCE,
    BoardSection,
    Mark,
)
from autoresearch_cli.rendering.figures import age, counted, figure, interval, lately, moment, one_line, signed, value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_rows, print_table, print_text
from autoresearch_cli.rendering.people import person, reproach
from autoresearch_cli.rendering.status import best_so_far, subject_value

# Of so many participants with marks the command is named that shows the records.
CREDITS_SHOWN = 3


def print_best(answer: BestAnswer, *, now_ms: int) -> None:
    """The best subject, and where that is between baseline and floor."""
    lines = [
        ("task", f"{one_line(answer.task.name)}, {one_line(answer.task.metric)}"),
        ("best", best_so_far(answer.task)),
    ]
    known = (("confirmed", answer.confirmed), ("provisional", answer.provisional), ("reported", answer.reported))
    lines += [(label, subject_line(subject, now_ms)) for label, subject in known if subject]
    best = answer.task.best
    if best and best.id not in {subject.id for _, subject in known if subject}:
        lines.append(("yours", subject_line(best, now_ms)))
    if answer.demoted and answer.demoted.confirmed_until_ms:
        until = f"{answer.demoted.state} now, was confirmed until {moment(answer.demoted.confirmed_until_ms)}"
        lines.append(("!", f"{short(answer.demoted.id)} “{one_line(answer.demoted.title)}” is {until}"))
    if answer.run and answer.run.hypothesis:
        lines.append(("idea", one_line(answer.run.hypothesis)))
    if answer.note:
        lines.append(("!", one_line(answer.note)))
    print_labelled(lines)


def subject_line(subject: SubjectView, now_ms: int) -> str:
    """One subject: value, how often it was run, id, title, who and when."""
    times = "once" if subject.runs == 1 else f"{subject.runs} times"
    parts = [value(subject.mean), f"run {times}"]
    if subject.value is not None:
        parts = [interval(subject.value, subject.margin), counted(subject.others, "run") + " of others"]
    if subject.voices:
        parts.append(f"checked by {subject.voices}")
    parts += _doubts(subject)
    parts += [short(subject.id), f"“{one_line(subject.title)}”"]
    wrong = _author(subject, now_ms)
    author = f"by {person(subject.who)}{f' ({wrong})' if wrong else ''}"
    return " · ".join([*parts, author, age(subject.time_ms, now_ms)])


def print_top(answer: TopAnswer, *, now_ms: int) -> None:
    """The leaderboard, section by section."""
    if not is_rich():
        print_rows(_cells(subject, now_ms) for subject in answer.subjects)
        return
    metric = one_line(answer.task.metric)
    sections = dict.fromkeys(subject.section for subject in answer.subjects)
    for number, name in enumerate(sections):
        rows = [subject for subject in answer.subjects if subject.section == name]
        if not name:
            _print_alike(rows, metric, now_ms)
            continue
        print_text(("\n" if number else "") + BOARD_SECTION_SENTENCES[BoardSection(name)])
        show = _print_confirmed if name == BoardSection.CONFIRMED else _print_claimed
        show(rows, metric, now_ms)


def _cells(s: SubjectView, now_ms: int) -> tuple[object, ...]:
    said = (s.position, s.id, figure(s.mean), figure(s.score), s.runs, s.state, s.author, moment(s.time_ms), s.title)
    measured = (figure(s.value), figure(s.margin), s.others, s.voices, s.section, RETEST if s.retest else "")
    return (*said, *measured, s.who.participant, s.who.name, _author(s, now_ms), s.copy_of or "")


def explained(subjects: Sequence[SubjectView]) -> list[str]:
    """What the words that stand beside these runs and their authors mean, each once, and where the records are."""
    marks = dict.fromkeys(Mark(mark.mark) for subject in subjects for mark in subject.marks or ())
    lines = [f"{mark}: {MARK_SENTENCES[mark]}" for mark in marks]
    lines += [f"{COPY}: {COPY_SENTENCE}"] if any(subject.copy_of for subject in subjects) else []
    lines += [f"{RETEST}: {RETEST_SENTENCE}"] if any(subject.retest for subject in subjects) else []
    marked = [f"autoresearch credit {who}" for who in dict.fromkeys(s.who.short for s in subjects if s.marks)]
    more = " …" if len(marked) > CREDITS_SHOWN else ""
    return [*lines, *([f"→ the records: {', '.join(marked[:CREDITS_SHOWN])}{more}"] if marked else [])]


def _print_confirmed(rows: list[SubjectView], metric: str, now_ms: int) -> None:
    """What others measured: the value, half of its 95 % interval, how many runs, by how many participants."""
    columns = ("#", metric, "± 95 %", "n", "others", "id", "by", "when", "title")
    cells = [
        (
            s.position,
            value(s.value),
            value(s.margin),
            s.others,
            s.voices,
            short(s.id),
            person(s.who),
            lately(s.time_ms, now_ms),
            _title(s),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=columns[:5])


def _print_claimed(rows: list[SubjectView], metric: str, now_ms: int) -> None:
    """What authors say; behind the state, how many others looked at it."""
    ranked = ("#",) if any(s.position for s in rows) else ()
    columns = (*ranked, metric, "runs", "id", "by", "state", "when", "title")
    cells = [
        (
            *(s.position for _ in ranked),
            value(s.mean),
            s.runs,
            short(s.id),
            person(s.who),
            f"{s.state} ({s.voices})" if s.voices else s.state,
            lately(s.time_ms, now_ms),
            _title(s),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=("#", metric, "runs"))


def _print_alike(rows: list[SubjectView], metric: str, now_ms: int) -> None:
    """Where nobody's word counts more than another's: all in one, ranked by what their authors say."""
    columns = ("#", metric, "score", "runs", "id", "by", "state", "when", "title")
    cells = [
        (
            *(s.position, value(s.mean), value(s.score), s.runs, short(s.id), person(s.who)),
            *(s.state, lately(s.time_ms, now_ms), _title(s)),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=columns[:4])


def _print_marked(
    columns: Sequence[str],
    cells: Sequence[Sequence[object]],
    rows: Sequence[SubjectView],
    now_ms: int,
    *,
    right: Sequence[str],
) -> None:
    """A table of subjects; before the title what the log holds against their authors, where there is anything."""
    wrong = [_author(subject, now_ms) for subject in rows]
    if any(wrong):
        columns = (*columns[:-1], "marks", columns[-1])
        cells = [(*row[:-1], words, row[-1]) for row, words in zip(cells, wrong, strict=True)]
    print_table(columns, cells, right=right)


def _title(subject: SubjectView) -> str:
    return ": ".join([*filter(None, [", ".join(_doubts(subject))]), subject.title])


def _doubts(subject: SubjectView) -> list[str]:
    """What is said of a run by those before it: that it is a copy, that it has to be compared again."""
    return [COPY] * bool(subject.copy_of) + [RETEST] * subject.retest


def _author(subject: SubjectView, now_ms: int) -> str:
    """What the log holds against who published a run."""
    return reproach(subject.marks or (), subject.banned_until_ms, now_ms)


def print_tasks(answer: TasksAnswer) -> None:
    """All tasks: name, digest, metric, how many runs, the best so far."""
    if not is_rich():
        print_rows((t.name, t.digest, t.metric, t.direction, t.runs, figure(subject_value(t))) for t in answer.tasks)
        return
    rows = [
        (
            one_line(t.name),
            t.digest[:12],
            one_line(t.metric),
            t.direction,
            t.runs,
            value(subject_value(t)) if t.best else "",
        )
        for t in answer.tasks
    ]
    print_table(("task", "digest", "metric", "direction", "runs", "best"), rows, right=("runs", "best"))


def print_lineage(answer: LineageAnswer) -> None:
    """The steps from the baseline to a run, each with its change: as others measured it, where they did."""
    if not is_rich():
        print_rows(_step_cells(step, step.run) for step in answer.steps)
        return
    rows = [
        (
            short(step.run.id),
            interval(step.mean if step.value is None else step.value, step.margin),
            signed(step.delta if step.gain is None else step.gain),
            step.others or "",
            step.voices or "",
            person(step.run.who),
            step.run.state,
            f"{RETEST}: {step.run.title}" if step.retest else step.run.title,
        )
        for step in answer.steps
    ]
    columns = ("id", "value", "change", "n", "others", "by", "state", "title")
    print_table(columns, rows, right=columns[1:5])


def _step_cells(step: LineageStep, run: RunView) -> tuple[object, ...]:
    said = (run.id, figure(step.mean), figure(step.delta), step.runs, run.status, run.title, run.state, _mark(step))
    measured = (figure(step.value), figure(step.margin), figure(step.gain), step.others, step.voices)
    return (*said, *measured, run.who.participant, run.who.name)


def _mark(step: LineageStep) -> str:
    return RETEST if step.retest else ""
