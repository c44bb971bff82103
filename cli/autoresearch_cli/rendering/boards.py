"""The best, the leaderboard, the lineage, and the runs of a task as a table."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.ask.node import TaskStatus
from autoresearch.ask.runs.answers import BestAnswer, LineageAnswer, RunRow, RunsAnswer, TasksAnswer, TopAnswer
from autoresearch.log.standing.answers import LineageStep, ProgramView, RunView
from autoresearch.text import counted, figure, interval, lately, moment, one_line, signed, value
from autoresearch.words import (
    BOARD_SECTION_SENTENCES,
    COPY,
    COPY_SENTENCE,
    MARK_SENTENCES,
    RETEST,
    RETEST_SENTENCE,
    RUN_STATUS_SENTENCES,
    BoardSection,
    Mark,
    RunMark,
    RunStatus,
)
from autoresearch_cli.rendering.layout import person, reproach, short, told
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_rows, print_table, print_text
from autoresearch_cli.rendering.status import best_so_far, program_value

# The rest of an idea stands in `show`: the best fits on one screen.
IDEA_CHARACTERS = 140
# Of so many participants with marks the command is named that shows the records.
CREDITS_SHOWN = 3
TASKS_SHOWN = 5


def print_best(answer: BestAnswer, *, now_ms: int) -> None:
    """The best program, and where that is between baseline and floor."""
    lines = [
        ("task", f"{answer.task.name}, {answer.task.metric}"),
        ("best", best_so_far(answer.task)),
    ]
    known = (("confirmed", answer.confirmed), ("provisional", answer.provisional), ("reported", answer.reported))
    lines += [(label, program_line(program, now_ms)) for label, program in known if program]
    best = answer.task.best
    if best and best.id not in {program.id for _, program in known if program}:
        lines.append(("yours", program_line(best, now_ms)))
    if answer.demoted and answer.demoted.confirmed_until_ms:
        until = f"{answer.demoted.state} now, was confirmed until {moment(answer.demoted.confirmed_until_ms)}"
        lines.append(("!", f"{short(answer.demoted.id)} “{told(answer.demoted)}” is {until}"))
    if answer.run and answer.run.hypothesis not in ("", answer.run.title):
        lines.append(("idea", one_line(answer.run.hypothesis, IDEA_CHARACTERS) if is_rich() else answer.run.hypothesis))
    if answer.note:
        lines.append(("!", answer.note))
    print_labelled(lines)


def program_line(program: ProgramView, now_ms: int) -> str:
    """One program: value, id, how often it was run, title, author and age."""
    parts = [value(program.mean), short(program.id), counted(program.runs, "run")]
    if program.value is not None:
        runs = counted(program.others, "verification run")
        parts = [interval(program.value, program.margin), short(program.id), runs]
    if program.voters:
        parts.append(counted(program.voters, "verifier"))
    parts += [*_doubts(program), *([f"“{told(program)}”"] if told(program) else [])]
    wrong = _author(program, now_ms)
    author = f"by {person(program.participant)}{f' ({wrong})' if wrong else ''}"
    return " · ".join([*parts, author, lately(program.time_ms, now_ms)])


def print_top(answer: TopAnswer, *, now_ms: int) -> None:
    """The leaderboard, section by section."""
    if not is_rich():
        print_rows(_cells(program, now_ms) for program in answer.programs)
        return
    metric = answer.task.metric
    sections = dict.fromkeys(program.section for program in answer.programs)
    for number, name in enumerate(sections):
        rows = [program for program in answer.programs if program.section == name]
        if not name:
            _print_alike(rows, metric, now_ms)
            continue
        print_text(("\n" if number else "") + BOARD_SECTION_SENTENCES[BoardSection(name)])
        show = _print_confirmed if name == BoardSection.CONFIRMED else _print_claimed
        show(rows, metric, now_ms)


def _cells(s: ProgramView, now_ms: int) -> tuple[object, ...]:
    said = (s.position, s.id, figure(s.mean), figure(s.score), s.runs, s.state, s.author, moment(s.time_ms), told(s))
    measured = (figure(s.value), figure(s.margin), s.others, s.voters, s.section, RETEST if s.retest else "")
    return (*said, *measured, s.participant.key, s.participant.name, _author(s, now_ms), s.copy_of or "")


def explained(programs: Sequence[ProgramView]) -> list[str]:
    """What the words that stand beside these runs and their authors mean, each once, and where the records are."""
    marks = dict.fromkeys(Mark(mark.mark) for program in programs for mark in program.marks or ())
    lines = [f"{mark}: {MARK_SENTENCES[mark]}" for mark in marks]
    lines += [f"{COPY}: {COPY_SENTENCE}"] if any(program.copy_of for program in programs) else []
    lines += [f"{RETEST}: {RETEST_SENTENCE}"] if any(program.retest for program in programs) else []
    marked = [
        f"autoresearch network credit {who}" for who in dict.fromkeys(s.participant.short for s in programs if s.marks)
    ]
    more = " …" if len(marked) > CREDITS_SHOWN else ""
    return [*lines, *([f"the records: {', '.join(marked[:CREDITS_SHOWN])}{more}"] if marked else [])]


def other_tasks(names: Sequence[str]) -> str:
    """Which tasks there are besides, in a line; empty where there is none."""
    more = f" and {len(names) - TASKS_SHOWN} more" if len(names) > TASKS_SHOWN else ""
    return f"other tasks: {', '.join(names[:TASKS_SHOWN])}{more} (--task NAME)" if names else ""


def _print_confirmed(rows: list[ProgramView], metric: str, now_ms: int) -> None:
    """What others measured: the value, half of its 95 % interval, how many runs, by how many participants."""
    columns = ("#", metric, "± 95 %", "runs", "verifiers", "id", "when", "by", "title")
    cells = [
        (
            s.position,
            value(s.value),
            value(s.margin),
            s.others,
            s.voters,
            short(s.id),
            lately(s.time_ms, now_ms),
            person(s.participant),
            _title(s),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=columns[:5])


def _print_claimed(rows: list[ProgramView], metric: str, now_ms: int) -> None:
    """What authors report; behind the state, how many verifiers there were."""
    ranked = ("#",) if any(s.position for s in rows) else ()
    columns = (*ranked, metric, "runs", "id", "state", "when", "by", "title")
    cells = [
        (
            *(s.position for _ in ranked),
            value(s.mean),
            s.runs,
            short(s.id),
            f"{s.state} ({s.voters})" if s.voters else s.state,
            lately(s.time_ms, now_ms),
            person(s.participant),
            _title(s),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=("#", metric, "runs"))


def _print_alike(rows: list[ProgramView], metric: str, now_ms: int) -> None:
    """Where the network attests nobody: all in one, ranked by what their authors report; of one author without it."""
    columns = ("#", metric, "score", "runs", "id", "state", "when", "by", "title")
    alone = len({s.participant.key for s in rows}) == 1
    cells = [
        (
            *(s.position, value(s.mean), value(s.score), s.runs, short(s.id)),
            *(s.state, lately(s.time_ms, now_ms), "" if alone else person(s.participant), _title(s)),
        )
        for s in rows
    ]
    _print_marked(columns, cells, rows, now_ms, right=columns[:4])


def _print_marked(
    columns: Sequence[str],
    cells: Sequence[Sequence[object]],
    rows: Sequence[ProgramView],
    now_ms: int,
    *,
    right: Sequence[str],
) -> None:
    """A table of programs; before the title what the log holds against their authors, where there is anything."""
    wrong = [_author(program, now_ms) for program in rows]
    if any(wrong):
        columns = (*columns[:-1], "marks", columns[-1])
        cells = [(*row[:-1], words, row[-1]) for row, words in zip(cells, wrong, strict=True)]
    print_table(columns, cells, right=right, optional=("score", "when"))


def _title(program: ProgramView) -> str:
    return ": ".join([*filter(None, [", ".join(_doubts(program))]), told(program)])


def _doubts(program: ProgramView) -> list[str]:
    """What is said of a run by those before it: that it is a copy, that it has to be compared again."""
    return [COPY] * bool(program.copy_of) + [RETEST] * program.retest


def _author(program: ProgramView, now_ms: int) -> str:
    """What the log holds against who published a run."""
    return reproach(program.marks or (), program.banned_until_ms, now_ms)


def print_tasks(answer: TasksAnswer) -> None:
    """All tasks: name, digest, metric, how many runs, the best so far."""
    if not is_rich():
        print_rows(
            (t.name, t.digest, t.metric, t.direction, t.runs, figure(program_value(t)), _put_away(t))
            for t in answer.tasks
        )
        return
    rows = [
        (
            t.name,
            t.digest[:12],
            t.metric,
            t.direction,
            t.runs,
            value(program_value(t)) if t.best else "",
            _put_away(t),
        )
        for t in answer.tasks
    ]
    print_table(("task", "digest", "metric", "direction", "runs", "best", ""), rows, right=("runs", "best"))


def _put_away(task: TaskStatus) -> str:
    return "archived" if task.archived else ""


def print_lineage(answer: LineageAnswer) -> None:
    """The steps from the baseline to a run, each with its change: as others measured it, where they did."""
    if not is_rich():
        print_rows(_step_cells(step, step.run) for step in answer.steps)
        return
    alone = len({step.run.participant.key for step in answer.steps}) == 1
    rows = [
        (
            short(step.run.id),
            interval(step.mean if step.value is None else step.value, step.margin),
            signed(step.delta if step.gain is None else step.gain),
            step.others or "",
            step.voters or "",
            step.run.state,
            "" if alone else person(step.run.participant),
            f"{RETEST}: {told(step.run)}" if step.retest else told(step.run),
        )
        for step in answer.steps
    ]
    columns = ("id", "value", "change", "runs", "verifiers", "state", "by", "title")
    print_table(columns, rows, right=columns[1:5])


def _step_cells(step: LineageStep, run: RunView) -> tuple[object, ...]:
    said = (run.id, figure(step.mean), figure(step.delta), step.runs, run.status, told(run), run.state, _mark(step))
    measured = (figure(step.value), figure(step.margin), figure(step.gain), step.others, step.voters)
    return (*said, *measured, run.participant.key, run.participant.name)


def _mark(step: LineageStep) -> str:
    return RETEST if step.retest else ""


# Before a change that the noise over seeds could be.
ABOUT = "≈"
# Before a value that does not count: refuted, fraud, banned.
DOUBT = "×"


def print_runs(answer: RunsAnswer, *, now_ms: int) -> None:
    """Runs in the order asked for: short and aligned for a person; whole ids, times and numbers for a program."""
    if not is_rich():
        print_rows(_run_cells(row) for row in answer.runs)
        return
    metric = answer.task.metric
    alone = len({row.participant.key for row in answer.runs}) == 1
    rows = [
        (
            short(row.id),
            _value(row),
            _change(row),
            _state(row),
            lately(row.time_ms, now_ms),
            "" if alone else person(row.participant),
            row.headline,
        )
        for row in answer.runs
    ]
    print_table(("id", metric, "change", "state", "when", "by", "what"), rows, right=(metric, "change"))


def row_words(rows: Sequence[RunRow]) -> list[str]:
    """What signs and words in these rows mean, each once."""
    lines = [f"{ABOUT}: the noise over seeds can make such a change"] if any(row.within_noise for row in rows) else []
    lines += (
        [f"{DOUBT}: this value does not count"] if any(row.in_doubt and row.value is not None for row in rows) else []
    )
    lines += [f"{RETEST}: {RETEST_SENTENCE}"] if any(row.retest for row in rows) else []
    statuses = dict.fromkeys(row.status for row in rows if row.mark == RunMark.FAILED)
    return lines + [f"{status}: {RUN_STATUS_SENTENCES[RunStatus(status)]}" for status in statuses]


def _value(row: RunRow) -> str:
    shown = interval(row.value, row.margin) if row.margin is not None else value(row.value)
    return f"{DOUBT} {shown}" if row.in_doubt and row.value is not None else shown


def _change(row: RunRow) -> str:
    if row.delta is None:
        return ""
    return f"{ABOUT} {signed(row.delta)}" if row.within_noise else signed(row.delta)


def _state(row: RunRow) -> str:
    word = row.status if row.mark == RunMark.FAILED else row.mark
    return f"{word}, {RETEST}" if row.retest else word


def _run_cells(row: RunRow) -> tuple[object, ...]:
    told = " ".join(change.text for change in row.change)
    numbers = (figure(row.reported), figure(row.value), figure(row.margin), figure(row.delta))
    who = (row.participant.key, row.participant.name, row.device)
    retest = RETEST if row.retest else ""
    said = (row.number, row.id, row.mark, row.state, row.status, *numbers, moment(row.time_ms), row.cpu_ms, *who)
    return (*said, row.parent or "", row.headline, told, row.because, retest)
