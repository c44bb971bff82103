"""What the values of a task's programs say: how two differ, what a change brought, how long ago the best was found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from autoresearch.ask.comparing import (
    MeasuredProgram,
    RankedPrograms,
    comparison,
    named_programs,
    programs_of,
    seeds_to_tell,
)
from autoresearch.ask.discussion import Fact
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.runs.diffs import diff_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.context import TrustContext
from autoresearch.log.standing.trials import Trial
from autoresearch.propose.mind.brief import PLATEAU
from autoresearch.propose.program.known_names import named_in
from autoresearch.propose.program.ranges import Value
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run
from autoresearch.text import brief, counted, one_line, percent, value

# So many runs are read whole for what stands in records alone, the newest; so many rows are in an answer.
READ, NAMED = 300, 5
# So many of the best values of a setting are looked at for two programs that differ in it alone.
LEVELS = 6
_TYPED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]|\.\d)")


@dataclass(frozen=True)
class Question:
    """A question to a task. ``ended`` are runs that count: all of a task with few, else the best, the newest, a sample.

    ``baseline`` is the task's own program as text, empty where it is not here.
    """

    log: Log
    task: FoundTask
    text: str
    ended: Sequence[Trial]
    trust: TrustContext
    me: bytes | None
    baseline: str = ""
    now_ms: int = 0
    blobs: BlobStore | None = None
    settings: Mapping[bytes, Mapping[str, Value]] = field(default_factory=dict)
    """The constants of each run."""

    @cached_property
    def programs(self) -> RankedPrograms:
        """What was measured, program by program."""
        return programs_of(self.log, self.task, self.ended)

    def named_programs(self, programs: RankedPrograms) -> list[MeasuredProgram]:
        """The programs that it speaks of; with the value of a setting, such as “HIDDEN 24”, the best that has it."""
        typed = {float(number) for number in _TYPED.findall(self.text)}
        by_setting = [
            program
            for name in self.named_settings
            for program in programs.ranked
            if isinstance(level := self.settings.get(program.id, {}).get(name), int | float) and float(level) in typed
        ]
        return list(dict.fromkeys([*by_setting[:1], *named_programs(self.text, programs)]))

    @cached_property
    def named_settings(self) -> list[str]:
        """The settings that it speaks of."""
        return named_in(self.text, {name for values in self.settings.values() for name in values})

    def bodies(self) -> Iterator[tuple[bytes, Run]]:
        """The newest runs, whole."""
        for trial in sorted(self.ended, key=lambda trial: -trial.row.time)[:READ]:
            body = self.log.records.get(trial.row.id).body_as(Run)
            yield trial.row.id, body


def levels_beside_each_other(question: Question, programs: RankedPrograms, name: str) -> Iterator[Fact]:
    """Two programs with other values of a setting: those values that are asked for, else the best one and the next.

    Where there are two that differ in this setting alone, it is these.
    """
    levels: dict[Value, dict[MeasuredProgram, Mapping[str, Value]]] = {}
    for run, values in question.settings.items():
        if name in values and (program := programs.values.get(run)) is not None:
            levels.setdefault(values[name], {})[program] = {key: each for key, each in values.items() if key != name}
    best = {level: min(rows, key=lambda program: programs.sign * program.value) for level, rows in levels.items()}
    typed = {float(number) for number in _TYPED.findall(question.text)}
    chosen: list[Value] = [level for level in best if not isinstance(level, str) and float(level) in typed]
    chosen = chosen if len(chosen) > 1 else sorted(best, key=lambda level: programs.sign * best[level].value)[:LEVELS]
    pairs = [
        (programs.sign * program.value, programs.sign * other.value, program, other)
        for first, second in combinations(chosen, 2)
        for program, same in levels[first].items()
        for other, others in levels[second].items()
        if same == others
    ]
    if pairs:
        *_, program, other = min(pairs)
        program, other = (program, other) if programs.worse(program, other) <= 0 else (other, program)
        remark = ""
    elif len(chosen) > 1:
        program, other = sorted((best[chosen[0]], best[chosen[1]]), key=lambda program: programs.sign * program.value)
        remark = "; they differ in more than this setting"
    else:
        return
    level_of = {program: level for level, rows in levels.items() for program in rows}
    compared = comparison(program, other, programs)
    sentence = f"{one_line(name, 64)} {level_of[program]} beside {level_of[other]}: {compared.sentence}{remark}"
    yield Fact(sentence=sentence, ids=compared.ids)


def gain_of(program: MeasuredProgram, programs: RankedPrograms) -> Iterator[Fact]:
    """What a program brought: how it differs from its parent."""
    parent = programs.parent(program)
    if parent is None:
        sentence = (
            f"{program.named} gave {value(program.value)} ({counted(program.runs, 'run')}); it has no parent here"
        )
        yield Fact(sentence=sentence, ids=[format_id(program.id)])
    else:
        yield comparison(program, parent, programs, "its parent")


def gains_of_named(question: Question) -> Iterator[Fact]:
    """What the programs brought that a question names."""
    programs = question.programs
    for program in question.named_programs(programs)[:NAMED]:
        yield from gain_of(program, programs)


def two_programs(question: Question) -> Iterator[Fact]:
    """Two programs beside each other; of one, it and the best; of none, the best and its parent."""
    programs = question.programs
    if not programs.ranked:
        yield Fact(sentence="no run has a value yet")
        return
    named, best = question.named_programs(programs), programs.ranked[0]
    if len(set(_TYPED.findall(question.text))) > 1 and question.named_settings:
        for name in question.named_settings[:NAMED]:
            yield from levels_beside_each_other(question, programs, name)
        return
    if unknown := _unknown_values(question, programs):
        yield Fact(sentence=f"no program has the value {' or '.join(unknown)}")
        return
    program = named[0] if named else best
    other = named[1] if len(named) > 1 else best if program is not best else programs.parent(best)
    if other is None or other is program:
        yield Fact(
            sentence=f"nothing has a value that {program.named} could be compared with", ids=[format_id(program.id)]
        )
        return
    yield comparison(program, other, programs)
    if seeds := seeds_to_tell(program, other, programs):
        yield Fact(sentence=seeds)


def _unknown_values(question: Question, programs: RankedPrograms) -> list[str]:
    """The numbers of a question with decimals that are no program's value, where it speaks of no setting."""
    if question.named_settings:
        return []
    typed = [number for number in dict.fromkeys(_TYPED.findall(question.text)) if "." in number and "e" not in number]
    places = {len(number.partition(".")[2]) for number in typed}
    values = {f"{each.value:.{decimals}f}" for each in programs.values.values() for decimals in places}
    return [number for number in typed if number not in values]


def changes_between(question: Question) -> Iterator[Fact]:
    """What changed from one program to another, in settings and lines; without two, from the best one's parent."""
    programs = question.programs
    named = question.named_programs(programs)
    if not named or question.blobs is None:
        return
    old, new = named[:2] if len(named) > 1 else (programs.parent(named[0]), named[0])
    if old is None or old is new:
        return
    diff = diff_answer(question.log, question.blobs, old.id, new.id)
    settings = ", ".join(_setting_change(name, before, after) for name, (before, after) in diff.change.items())
    lines = [line for line in diff.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    change = f"{settings or 'no setting that is read'}; {counted(len(lines), 'line')} differ"
    yield Fact(sentence=f"from {old.named} to {new.named}: {change}", ids=[format_id(old.id), format_id(new.id)])
    yield comparison(new, old, programs)


def _setting_change(name: str, before: object, after: object) -> str:
    named = one_line(name, 64)
    if after is None:
        return f"{named} is no setting any more"
    return f"{named} {before} -> {after}" if before is not None else f"{named} {after} is new"


def best_and_worst(question: Question) -> Iterator[Fact]:
    """The best programs, or the worst ones."""
    ranked = question.programs.ranked
    is_worst = re.search(r"\b(worst|poorest|schlechtest\w*)\b", question.text.casefold()) is not None
    chosen = list(reversed(ranked))[:NAMED] if is_worst else ranked[:NAMED]
    rows = ", ".join(f"{program.named} {value(program.value)} ({counted(program.runs, 'run')})" for program in chosen)
    which = "worst" if is_worst else "best"
    yield Fact(
        sentence=f"the {which} programs with a value: {rows or 'none'}",
        ids=[format_id(program.id) for program in chosen],
    )


def largest_steps(question: Question) -> Iterator[Fact]:
    """The changes that brought the most beside their parents."""
    programs = question.programs
    steps = [
        (programs.worse(program, parent), program)
        for program in programs.ranked
        if (parent := programs.parent(program))
    ]
    gains = sorted((worse, program.time_ms, program) for worse, program in steps if worse < 0)
    if not gains:
        yield Fact(sentence="no run was better than its parent yet")
    for _, _, program in gains[:NAMED]:
        yield from gain_of(program, programs)


def runs_since_best(question: Question) -> Iterator[Fact]:
    """How long ago the best was found."""
    programs = question.programs
    if not programs.ranked:
        yield Fact(sentence="no run has a value yet")
        return
    best = programs.ranked[0]
    since = sum(trial.row.time > best.time_ms for trial in question.ended)
    sentence = f"{counted(since, 'run')} since the best one, {best.named} {value(best.value)}"
    if since >= PLATEAU:
        sentence += ": a change of structure is due, not of a number"
    yield Fact(sentence=sentence, ids=[format_id(best.id)])


def last_program(question: Question) -> Iterator[Fact]:
    """The newest program with a value, and what it brought."""
    programs = question.programs
    newest = max(programs.ranked, key=lambda program: program.time_ms, default=None)
    if newest is not None:
        yield from gain_of(newest, programs)


def distance_to_floor(question: Question) -> Iterator[Fact]:
    """How far the best is from the floor, or that there is none."""
    floor, programs = question.task.floor, question.programs
    if floor is None:
        yield Fact(sentence="there is no floor: the task states none, so nobody knows how far the best is from it")
        return
    if not programs.ranked:
        yield Fact(sentence=f"the floor is {value(floor)}; no run has a value yet")
        return
    best, first = programs.ranked[0], programs.values.get(programs.baseline or b"")
    left = f"{brief(abs(best.value - floor))} from the floor {value(floor)}"
    share = (first.value - best.value) / (first.value - floor) if first and first.value != floor else None
    way = f", {percent(share)} of the way from the baseline {value(first.value)}" if first and share is not None else ""
    yield Fact(sentence=f"the best, {value(best.value)}, is {left}{way}", ids=[format_id(best.id)])
