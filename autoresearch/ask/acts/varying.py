"""An experiment of several runs: a program with every combination of some values, on several seeds.

What came of it is read off the log by the programs' digests, so that nobody has to remember what was asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from autoresearch.errors import UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import Answer
from autoresearch.log.standing.verdicts import Spread, spread_of
from autoresearch.propose.mind.recall import run_before
from autoresearch.propose.program.edits import patches_of, repetitions
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.program.space import Parameter, Space, space_of
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Run
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import reseeded
from autoresearch.text import did_you_mean
from autoresearch.words import RunStatus

# So many runs one experiment may have: more is the search's work.
RUNS_MOST = 256
# Two-sided 95 % of the normal distribution.
_WIDE = 1.96
_SWITCHED = {"on": True, "off": False, "true": True, "false": False, "True": True, "False": False}


class Variant(NamedTuple):
    """A program of an experiment, with the values that were asked for."""

    settings: Mapping[str, Value]
    program: str
    digest: bytes

    def digest_of(self, number: int) -> bytes:
        """The digest of what is run as its replicate ``number``: with other seeds, where it fixes its own."""
        return source_digest(reseeded(self.program, number)) if number else self.digest


class VariantView(Answer, frozen=True, kw_only=True):
    """How a program did: the mean of its ``runs`` runs with a value. ``failed`` are how others ended.

    ``run`` is the short id of its first run, ``to_go`` how many of the seeds that were asked for were not run yet.
    """

    settings: dict[str, Value]
    runs: int = 0
    value: float | None = None
    failed: list[str] = []
    run: str = ""
    to_go: int = 0


class LevelView(Answer, frozen=True, kw_only=True):
    """What a value of a setting is worth: the mean over all programs with it that have a value.

    ``change`` is the mean difference to programs that have the setting's first value and are otherwise the same.
    ``margin`` is half of its 95 % interval by the noise over seeds.
    """

    setting: str
    value: Value
    mean: float | None = None
    runs: int = 0
    change: float | None = None
    margin: float | None = None


class InteractionView(Answer, frozen=True, kw_only=True):
    """By how much two settings together do more than the sum of each: last values against first ones.

    ``margin`` is half of its 95 % interval.
    """

    first: str
    second: str
    amount: float
    margin: float


class VaryAnswer(Answer, frozen=True, kw_only=True):
    """An experiment: its programs, what each value did, which settings depend on each other.

    ``noise`` is the standard deviation over seeds, ``proposed`` the names of the runs that were put into the queue now,
    ``to_go`` how many are not done, ``elsewhere`` how many of these other nodes run now, ``left_out`` how many
    combinations the program itself forbids.
    """

    schema: str = "autoresearch.vary/1"
    variants: list[VariantView]
    levels: list[LevelView] = []
    interactions: list[InteractionView] = []
    noise: float = 0.0
    proposed: list[str] = []
    to_go: int = 0
    elsewhere: int = 0
    left_out: int = 0


def read_values(words: Sequence[str]) -> dict[str, list[str]]:
    """``NAME=VALUE,VALUE`` for each setting. Raises UsageError."""
    settings: dict[str, list[str]] = {}
    for word in words:
        # A compiler's flag has one itself: -march=native=on
        name, equals, text = word.rpartition("=") if word.startswith("-") else word.partition("=")
        values = [part.strip() for part in text.split(",") if part.strip()]
        if name.strip() in settings:
            raise UsageError(f"{name.strip()} is set twice", hint="write all its values at once: LR=0.001,0.003")
        if not (name.strip() and equals and values):
            raise UsageError(
                f"{word!r} names no values of a setting", hint="write its values behind it: LR=0.001,0.003"
            )
        settings[name.strip()] = values
    return settings


def variants(task: Task, program: str, grid: Mapping[str, Sequence[object]], seeds: int) -> tuple[list[Variant], int]:
    """A program with every combination of values, the first setting slowest, and how many the program forbids.

    Raises:
        UsageError: there is no such setting, it can't have such a value, or these are too many runs.
    """
    space = space_of(program, patches_of(task))
    levels: dict[str, list[Value]] = {}
    for name, values in grid.items():
        if (parameter := space.parameters.get(name)) is None:
            raise no_setting(name, space, "this program")
        levels[name] = [admitted(parameter, value) for value in values]
    if not levels or math.prod(map(len, levels.values())) * seeds > RUNS_MOST:
        raise UsageError(f"an experiment has 1 to {RUNS_MOST} runs", hint="give fewer values or seeds")
    made: dict[bytes, Variant] = {}
    left_out = 0
    for combination in itertools.product(*levels.values()):
        settings = dict(zip(levels, combination, strict=True))
        genome = space.default() | settings
        built = space.build(genome) if space.allows(genome) else None
        if built is None:
            left_out += 1
        else:
            made.setdefault(source_digest(built), Variant(settings, built, source_digest(built)))
    return list(made.values()), left_out


def no_setting(name: str, space: Space, program: str) -> UsageError:
    """The error where the search turns no setting of a name in a program, which says why as far as it can be seen."""
    if sentence := repetitions(space.source).get(name):
        return UsageError(sentence, hint=f"give its second value another name than {name}")
    near = did_you_mean(name, space.parameters)
    names = f"there are: {', '.join(list(space.parameters)[:20])}" if space.parameters else "it has none"
    return UsageError(f"the search turns no setting {name} of {program}", hint=near or names)


def admitted(parameter: Parameter, raw: object) -> Value:
    """A value of a setting, from a text or as it is. Raises UsageError."""
    value: object = raw
    if isinstance(raw, str):
        value = _SWITCHED.get(raw, raw)
        if isinstance(parameter.default, int | float) and not isinstance(value, bool):
            try:
                value = float(raw)
            except ValueError:
                value = None
    admitted_value = parameter.admit(value)
    if admitted_value is None:
        if isinstance(parameter.default, bool | str):
            hint = f"it is {'on or off' if isinstance(parameter.default, bool) else parameter.range}"
        else:
            kind = "a whole number" if isinstance(parameter.default, int) else "a number"
            hint = (
                f"it is {kind}{' above 0' if parameter.range.kind == 'log' else ''}; the search takes {parameter.range}"
            )
        raise UsageError(f"{parameter.name} can't be {raw}", hint=hint)
    return admitted_value


def outcome_of(
    log: Log,
    task: Task,
    programs: Sequence[Variant],
    seeds: int,
    *,
    pending: Collection[tuple[bytes, int]],
    elsewhere: Collection[tuple[bytes, int]],
    me: bytes | None,
) -> tuple[VaryAnswer, list[tuple[Variant, int]]]:
    """What the log knows of an experiment, and which runs nobody has done or waits for: program and seed number.

    ``pending`` are programs and seed numbers that wait or are being run here, ``elsewhere`` those of other nodes.
    """
    views, missing, theirs, busy = [], [], 0, {*pending, *elsewhere}
    for variant in programs:
        row = log.programs.find(task.digest, variant.digest, float(task.budget.amount))
        free = [
            number
            for number in range(seeds)
            if run_before(log, task, variant.digest_of(number), replicate=number, me=me) is None
        ]
        missing += [(variant, number) for number in free if (variant.digest_of(number), number) not in busy]
        theirs += sum((variant.digest_of(number), number) in elsewhere for number in free)
        runs = log.runs.of_programs(task.digest, [variant.digest], any_seeds=True)
        bodies = [log.records.get(run).body for *_, run, _ in runs]
        views.append(
            VariantView(
                settings=dict(variant.settings),
                runs=row.runs if row else 0,
                value=row.mean if row else None,
                failed=[run.status for run in bodies if isinstance(run, Run) and run.status != RunStatus.OK],
                run=short_id(row.first) if row else "",
                to_go=len(free),
            )
        )
    spread = spread_of(log, task.digest, task.metric) or Spread(0.0, None)
    answer = VaryAnswer(
        variants=views,
        levels=levels_of(views, spread.wide),
        interactions=interactions_of(views, spread.wide),
        noise=spread.deviation,
        to_go=sum(view.to_go for view in views),
        elsewhere=theirs,
    )
    return answer, missing


def levels_of(views: Sequence[VariantView], noise: float) -> list[LevelView]:
    """What each value of each setting is worth; pure."""
    effects = []
    measured = {_key(view.settings): view for view in views if view.value is not None}
    for setting in views[0].settings if views else ():
        values = list(dict.fromkeys(view.settings[setting] for view in views))
        for value in values:
            having = [view for view in measured.values() if view.settings[setting] == value]
            pairs = [
                (view, partner)
                for view in having
                if value != values[0] and (partner := measured.get(_key(view.settings | {setting: values[0]})))
            ]
            level = LevelView(
                setting=setting,
                value=value,
                mean=_mean([view.value for view in having]),
                runs=sum(view.runs for view in having),
            )
            if pairs:
                spread = sum(1 / view.runs + 1 / partner.runs for view, partner in pairs)
                level = msgspec.structs.replace(
                    level,
                    change=_mean([(view.value or 0) - (partner.value or 0) for view, partner in pairs]),
                    margin=_WIDE * noise * math.sqrt(spread) / len(pairs),
                )
            effects.append(level)
    return effects


def interactions_of(views: Sequence[VariantView], noise: float) -> list[InteractionView]:
    """Which settings depend on each other, the largest first; pure. All others of a square of four are alike."""
    measured = {_key(view.settings): view for view in views if view.value is not None}
    names = list(views[0].settings) if views else []
    ends = {name: [view.settings[name] for view in (views[0], views[-1])] for name in names}
    interactions = []
    for first, second in itertools.combinations(names, 2):
        if any(ends[name][0] == ends[name][1] for name in (first, second)):
            continue
        squares = []
        for view in measured.values():
            corners = [
                _key(view.settings | {first: row, second: column}) for row in ends[first] for column in ends[second]
            ]
            if _key(view.settings) == corners[0] and all(corner in measured for corner in corners):
                squares.append([measured[corner] for corner in corners])
        if squares:
            values = [[corner.value or 0.0 for corner in square] for square in squares]
            # At (first, first), (first, last), (last, first), (last, last): what is not the sum of two steps.
            amounts = [both - right - up + low for low, right, up, both in values]
            spread = sum(1 / corner.runs for square in squares for corner in square)
            margin = _WIDE * noise * math.sqrt(spread) / len(squares)
            amount = sum(amounts) / len(amounts)
            interactions.append(InteractionView(first=first, second=second, amount=amount, margin=margin))
    return sorted(interactions, key=lambda interaction: -abs(interaction.amount))


def _key(settings: Mapping[str, Value]) -> tuple[Value, ...]:
    return tuple(settings.values())


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
