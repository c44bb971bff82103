"""The best, the leaderboard, the lineage, and the runs of a task as a table."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch import words
from autoresearch.ask.runs.answers import BestAnswer, RunRow, TopAnswer
from autoresearch.face.columns.column import person, reproach, short
from autoresearch.face.columns.runs import ABOUT, DOUBT, doubts, number_words, program_columns, run_title, size_line
from autoresearch.log.standing.answers import ProgramView
from autoresearch.text import lately, moment, one_line
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_line, print_list
from autoresearch_cli.rendering.status import best_so_far

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
    programs = (("confirmed", answer.confirmed), ("provisional", answer.provisional), ("reported", answer.reported))
    lines += [(label, program_line(program, now_ms)) for label, program in programs if program]
    best = answer.task.best
    if best and best.id not in {program.id for _, program in programs if program}:
        lines.append(("yours", program_line(best, now_ms)))
    if answer.demoted and answer.demoted.confirmed_until_ms:
        until = f"{answer.demoted.state} now, was confirmed until {moment(answer.demoted.confirmed_until_ms)}"
        lines.append(("!", f"{short(answer.demoted.id)} “{run_title(answer.demoted)}” is {until}"))
    lines += [("size", size_line(size)) for size in answer.sizes]
    idea = answer.run.run.hypothesis if answer.run else ""
    if answer.run and idea not in ("", answer.run.run.title):
        lines.append(("idea", one_line(idea, IDEA_CHARACTERS) if is_rich() else idea))
    if answer.note:
        lines.append(("!", answer.note))
    print_labelled(lines)


def program_line(program: ProgramView, now_ms: int) -> str:
    """One program: its numbers, id, title, author and age."""
    parts = [short(program.id), *(f"{word} {text}" for word, text in number_words(program))]
    if program.verdict:
        parts.append(program.verdict)
    parts += [*doubts(program), *([f"“{run_title(program)}”"] if run_title(program) else [])]
    wrong = reproach(program.marks or (), program.banned_until_ms, now_ms)
    author = f"by {person(program.participant)}{f' ({wrong})' if wrong else ''}"
    return " · ".join([*parts, author, lately(program.time_ms, now_ms)])


def print_top(answer: TopAnswer, *, now_ms: int) -> None:
    """The leaderboard; for people section by section."""
    sections = dict.fromkeys(program.section for program in answer.programs)
    columns = program_columns(now_ms, sections=any(sections))
    if not is_rich():
        print_list(columns, answer.programs)
        return
    for number, name in enumerate(sections):
        if name:
            print_line(words.BOARD_SECTION_SENTENCES[words.BoardSection(name)], gap=number > 0)
        print_list(columns, [program for program in answer.programs if program.section == name], now_ms=now_ms)


def explained(programs: Sequence[ProgramView]) -> list[str]:
    """What the words that stand beside these runs and their authors mean, each once, and where the records are."""
    marks = dict.fromkeys(words.Mark(mark.mark) for program in programs for mark in program.marks or ())
    lines = [f"{mark}: {words.MARK_SENTENCES[mark]}" for mark in marks]
    lines += [f"{words.COPY}: {words.COPY_SENTENCE}"] if any(program.copy_of for program in programs) else []
    lines += [f"{words.RETEST}: {words.RETEST_SENTENCE}"] if any(program.retest for program in programs) else []
    marked = [
        f"autoresearch network credit {who}" for who in dict.fromkeys(s.participant.short for s in programs if s.marks)
    ]
    more = " …" if len(marked) > CREDITS_SHOWN else ""
    return [*lines, *([f"the records: {', '.join(marked[:CREDITS_SHOWN])}{more}"] if marked else [])]


def other_tasks(names: Sequence[str]) -> str:
    """Which tasks there are besides, in a line; empty where there is none."""
    more = f" and {len(names) - TASKS_SHOWN} more" if len(names) > TASKS_SHOWN else ""
    return f"other tasks: {', '.join(names[:TASKS_SHOWN])}{more} (--task NAME)" if names else ""


def row_words(rows: Sequence[RunRow]) -> list[str]:
    """What signs and words in these rows mean, each once."""
    lines = [f"{ABOUT}: the noise over seeds can make such a change"] if any(row.within_noise for row in rows) else []
    lines += (
        [f"{DOUBT}: this value does not count"]
        if any(row.in_doubt and row.reported is not None for row in rows)
        else []
    )
    lines += [f"{words.RETEST}: {words.RETEST_SENTENCE}"] if any(row.retest for row in rows) else []
    statuses = dict.fromkeys(row.status for row in rows if row.mark == words.RunMark.FAILED)
    return lines + [
        f"{status.replace('_', ' ')}: {words.RUN_STATUS_SENTENCES[words.RunStatus(status)]}" for status in statuses
    ]
