"""A folder with a program becomes a task: guess, run it in the sandbox, ask a person, write task.toml."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from autoresearch.ask.node import NewTaskAnswer
from autoresearch.ask.requests import NewTaskRequest
from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import Paths, typed_path
from autoresearch.run.failures import SCRATCH_FOLDER, way_out
from autoresearch.run.sandbox.capture import last_lines
from autoresearch.run.sandbox.cards import named_devices
from autoresearch.settings import Work
from autoresearch.task.bounds import bound_of
from autoresearch.task.folder_state import STATE_FOLDER
from autoresearch.task.folders import MEMORY_MIB, draft_task, write_task
from autoresearch.task.guessing import FLAGS, guess_recipe
from autoresearch.task.loading import MANIFEST, load_task, program_in
from autoresearch.task.metric_names import Kind, direction_of, meaning_of
from autoresearch.task.model import Recipe, possible_value
from autoresearch.task.needed import PREPARE, Needed, describe_needed, missed_files, needed_files
from autoresearch.task.needs import (
    CACHES,
    END_CHARACTERS,
    folders_to_mount,
    named_in_home,
    printed_folders,
    printed_in_home,
    stated_seconds,
)
from autoresearch.task.notebook import notebook_as_program
from autoresearch.task.printed import Guess, guess_metric, numbers_in, read_metric
from autoresearch.task.program import split_program
from autoresearch.task.seeds import fixes_seed, hides_seed, reseeded_line
from autoresearch.text import MAXIMIZE, MINIMIZE, sign_of, size, value

PRINT_HINT = "have it print a line such as accuracy: 0.93"
# So many other numbers of a program are named in a sentence.
_OTHERS = 8

MORE_SECONDS_HINT = (
    "where it ends by itself: --seconds N, longer than that; or it is not run now: --metric NAME --seconds N"
)

# So many lines of a program that did not end are quoted.
LINES_QUOTED = 3

# Of a program whose time nobody measured.
USUAL_SECONDS = 300.0
# A program that says of itself that it takes longer is run for a first part only.
WHOLE_SECONDS, PART_SECONDS = 60.0, 30.0
# Of a program that was run, what a run may use beside what it used, in MiB.
LEAST_MEMORY_MIB = 1024
TIMES_MEMORY = 4
_KARPATHY = "val_bpb"
_OUTSIDE = "docs/how-to/bring-your-own-task.md"


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says of a task; what is empty is guessed."""

    metric: str = ""
    direction: Literal["minimize", "maximize"] | None = None
    seconds: float | None = None
    command: str = ""
    build: str = ""
    edit: Sequence[str] = ()
    once: bool = False
    venv: str = ""
    """An absolute path, or empty: the node's own Python."""
    mounts: Sequence[str] = ()


class Person(Protocol):
    """Somebody who is asked what could not be known."""

    def line(self, question: str, default: str) -> str:
        """A line of text; empty: the default."""
        ...

    def number(self, question: str, default: float) -> float:
        """A number."""
        ...

    def agrees(self, question: str) -> bool:
        """Yes or no."""
        ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """Where a task is made: this node's folders and limits, who hears what is found, and whoever can be asked.

    ``cancelled`` says whether nobody waits for it any more.
    """

    paths: Paths
    work: Work
    say: Callable[[str], None]
    person: Person | None = None
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program printed, what its run took, and why it failed, if it did; ``is_part``: it did not end in time."""

    text: str
    seconds: float
    memory_bytes: int
    is_part: bool = False
    fault: UsageError | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """A program that is to be looked at, and how long its runs take by its own word."""

    occasion: Occasion
    place: Path
    recipe: Recipe
    needed: Needed
    venv: str
    mounts: tuple[str, ...] = ()
    stated: float | None = None
    most: float = USUAL_SECONDS

    @property
    def names(self) -> str:
        return " and ".join(str(self.place / name) for name in self.recipe.edit)

    @property
    def is_long(self) -> bool:
        return self.stated is not None and self.stated > WHOLE_SECONDS


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the program printed when it was run, and what that took."""

    runs: Sequence[Printed] = ()
    stated: float | None = None

    def values(self, metric: str) -> list[float]:
        """The value of a metric in each run that printed it."""
        values = (read_metric(run.text, metric).value for run in self.runs)
        return [number for number in values if number is not None]

    def is_part(self) -> bool:
        """Whether no run came to its end."""
        return any(run.is_part for run in self.runs)

    def seconds(self) -> float:
        """How long a run may take."""
        if not self.runs or self.is_part():
            return self.stated or USUAL_SECONDS
        return max(2.0, math.ceil(2 * max(run.seconds for run in self.runs)))

    def memory_mib(self, most: int) -> int:
        """How much memory a run may use: never all of a machine that nobody saw it need."""
        if not self.runs:
            return max(1, min(MEMORY_MIB, most // 2))
        used = max(run.memory_bytes for run in self.runs) >> 20
        return min(most, max(LEAST_MEMORY_MIB, TIMES_MEMORY * used))


def printed_once(look: _Look, *, seconds: float, seed: int = 0) -> Printed:
    """What a program prints when it is run once in the sandbox, and its fault where it stops with an error.

    With another ``seed`` than 0 the program, and its command, have other seeds in place of those that they fix.

    Raises:
        UsageError: it is no program, what starts it is not on this machine, or there is no sandbox.
        CannotRunHere: ``venv`` is no Python environment.
    """
    from autoresearch.run.bench import Ceiling, missing_command
    from autoresearch.run.experiment import again, plan_as_it_stands
    from autoresearch.run.folder import Conditions, log_of
    from autoresearch.run.lacking import lacks_packages
    from autoresearch.run.runner import Place, make_bench, outcome_of, run_here
    from autoresearch.run.sandbox.job import Level
    from autoresearch.run.sandbox.probes import detect_level
    from autoresearch.words import RunStatus

    recipe, names, hint = look.recipe, look.names, "name them: --metric NAME --seconds N"
    if seed:
        recipe = msgspec.structs.replace(recipe, command=reseeded_line(recipe.command, seed))
    if (missing := missing_command(recipe.build, recipe.command)) is not None:
        raise UsageError(f"{missing} is not on this machine", hint=f"install {missing}, or {hint}")
    if (level := detect_level()[0]) < Level.LANDLOCK:  # nobody knows yet who wrote it
        raise UsageError(f"there is no sandbox here, so {names} is not run to find its number and its time", hint=hint)
    work, paths = look.occasion.work, look.occasion.paths
    memory = Ceiling.of(work).memory_mib
    task = draft_task(look.place, recipe, look.needed, seconds=seconds, memory_mib=memory, venv=look.venv)
    limits = task.limits
    ceiling = Ceiling(seconds, memory, limits.disk_mib, limits.processes, limits.output_kib)
    plan = again(plan_as_it_stands(task, task.program.decode()), seed)
    conditions = Conditions(ceiling=ceiling, threads=work.threads, device=named_devices(work.device)[0])
    with tempfile.TemporaryDirectory() as known:  # what is learnt of a draft is of no use to a task
        place = Place(level, Path(known), paths.environments)
        cancelled = look.occasion.cancelled
        with run_here(plan, task, conditions, place, paths.spool, ready=make_bench, cancelled=cancelled) as (
            folder,
            ended,
        ):
            outcome, text = outcome_of(ended), log_of(folder).decode("utf-8", "replace")
    printed = Printed(text, outcome.duration_ms / 1000, outcome.peak_memory_bytes)
    if outcome.status == RunStatus.TIMED_OUT:
        lines = " / ".join(f"“{line}”" for line in last_lines(text)[-LINES_QUOTED:]) or "nothing"
        sentence = f"{names} ran for {seconds:g} s without an end; it printed last: {lines}"
        fault = UsageError(sentence, hint=way_out(text, level) or MORE_SECONDS_HINT)
        return replace(printed, is_part=True, fault=fault)
    if outcome.status == RunStatus.OK:
        return printed
    hint = "mend it, or look at what it prints: " + recipe.command
    if reason := next((why for name, why in look.needed.left_out.items() if f"'{name}" in outcome.reason), ""):
        hint = f"its runs don't see that: {reason}"
    if module := re.search(r"No module named '([^'.]+)", outcome.reason):
        return replace(printed, fault=lacks_packages(task, names, module[1]))
    if folders := _missed(text, look.mounts):
        hint = f"to show it to its runs, to read: {' '.join(map(_mount_option, folders))}"
    elif way := way_out(text, level):
        hint = way
    return replace(printed, fault=UsageError(f"{names} stopped with an error: {outcome.reason}", hint=hint))


def make_task(request: NewTaskRequest, occasion: Occasion) -> NewTaskAnswer:
    """Make the program in a folder a task; a folder that is one stays as it is.

    Raises:
        NotFound: there is no such folder.
        UsageError: it has no program, that stops with an error, or prints no number.
    """
    place = typed_path(request.folder)
    if not place.is_absolute():
        raise UsageError(f"{request.folder!r} is no whole path", hint="begin it with / or ~")
    if not place.is_dir():
        raise NotFound(f"there is no folder {place}", hint="give the folder that holds your program")
    note = "was a task already"
    if not (place / MANIFEST).exists():
        describe_program(place, Given(request.metric, request.direction or None, request.seconds), occasion)
        note = "is a task now"
    task = load_task(place)
    return NewTaskAnswer(
        folder=str(place),
        name=task.name,
        metric=task.metric.name,
        direction=task.metric.direction,
        note=f"{place} {note}: {task.metric.name}, {task.metric.direction}",
    )


def describe_program(place: Path, given: Given, occasion: Occasion) -> None:
    """Write task.toml for the program in a folder. A person is asked what could not be known.

    A notebook's code is written beside it, as a Python file. Where it fails, the folder is left as it was.

    Raises:
        UsageError: there is no program, it stops with an error, or it prints no number.
        Refused: task.toml is there, or a file with the name of a notebook's program.
    """
    own = [place / name for name in (FLAGS, STATE_FOLDER) if not (place / name).exists()]
    try:
        with notebook_as_program(place, given.command, given.edit) as (edit, sentences):
            for sentence in sentences:
                occasion.say(sentence)
            _describe(place, replace(given, edit=edit), occasion)
    except BaseException:  # Ctrl-C too
        for path in () if (place / MANIFEST).exists() else own:  # another command may have made it a task meanwhile
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        raise


def _describe(place: Path, given: Given, occasion: Occasion) -> None:
    """The same for a program in files."""
    from autoresearch.run.bench import Ceiling

    recipe = guess_recipe(place, command=given.command, build=given.build, edit=given.edit)
    say, person = occasion.say, occasion.person
    if person and not given.command:
        recipe = _asked_command(place, given, recipe, person)
    program = split_program(program_in(place, recipe).decode())
    needed = needed_files(place, recipe, tuple(given.mounts))
    fixed = {name: text.decode("utf-8-sig", "replace") for name, text in needed.fixed.items()}
    say(f"the program is {' and '.join(recipe.edit)}, started by: {recipe.command}")
    if fixed:
        say(f"fixed beside it: {', '.join(fixed)}")
        if (code := [name for name in fixed if name.endswith(".py") and name != PREPARE]) and not given.edit:
            largest = max(code, key=lambda name: len(fixed[name]))
            say(f"to let more of it change: {' '.join(f'--edit {name}' for name in (*recipe.edit, largest))}")
    for sentence in describe_needed(needed):
        say(sentence)
    sources = {**program, **fixed}
    stated = stated_seconds(sources.values())
    if stated is None and _is_karpathy(place, recipe):
        stated = USUAL_SECONDS
    named = set[str]().union(*(named_in_home(name, source) for name, source in sources.items()))
    mounts = _mounts(occasion, folders_to_mount(named, Path.home()), tuple(given.mounts))
    if mounts != tuple(given.mounts):
        needed = needed_files(place, recipe, mounts)
    look = _Look(occasion, place, recipe, needed, given.venv, mounts, stated, given.seconds or USUAL_SECONDS)
    seen = _Seen()
    if not (given.metric and given.seconds):
        look, seen = _looked(look, given)
    metric, direction, is_guess = _judged(look, given, seen, _KARPATHY if _is_karpathy(place, recipe) else "")
    seconds = given.seconds or seen.seconds()
    if person and given.seconds is None:
        seconds = person.number("Seconds that a run may take", seconds)
        if not 1 <= seconds <= 86_400:
            raise UsageError(f"a run can't take {seconds:g} seconds", hint="between 1 and 86400")
    floor = _floor(occasion, metric, direction, seen.values(metric))
    say(
        f"the program measures itself: an edit of it can print any {metric}, so a jump is not believed. To have it "
        f'measured outside, with source = "evaluator": {_OUTSIDE}'
    )
    most = Ceiling.of(occasion.work).memory_mib
    write_task(
        place,
        recipe=recipe,
        metric=metric,
        direction=direction,
        is_guess=is_guess,
        seconds=seconds,
        most_memory_mib=seen.memory_mib(most),
        floor=floor,
        noise=_noise(say, metric, seen.values(metric), _fixed_seed(program, fixed)),
        venv=given.venv,
        needed=look.needed,
    )


def _asked_command(place: Path, given: Given, guess: Recipe, person: Person) -> Recipe:
    line = person.line("Command that runs the program", guess.command)
    if line == guess.command:
        return guess
    return guess_recipe(place, command=line, build=given.build, edit=given.edit)


def _is_karpathy(place: Path, recipe: Recipe) -> bool:
    """Whether a folder has the shape of karpathy/autoresearch, where a run takes minutes and the number is known."""
    return recipe == Recipe() and (place / PREPARE).is_file() and _KARPATHY.encode() in program_in(place, recipe)


def _mounts(occasion: Occasion, offered: Sequence[str], mounts: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a run may read: with ``offered`` ones, where a person agrees, or they are caches."""
    for folder in offered:
        if any(Path(folder).expanduser().is_relative_to(Path(mount).expanduser()) for mount in mounts):
            continue
        if occasion.person:
            agreed = occasion.person.agrees(f"The program reads {folder}. May its runs read it?")
        else:
            agreed = folder.startswith(CACHES)
        if agreed:
            mounts = (*mounts, folder)
            occasion.say(f"its runs may read {folder}: [mounts] in task.toml")
        else:
            occasion.say(
                f"it names {folder}, which its runs don't see; to show it to them, to read: {_mount_option(folder)}"
            )
    return mounts


def _mount_option(folder: str) -> str:
    """The option that mounts a folder, as a shell reads it."""
    home = "~/" if folder.startswith("~/") else ""
    return f"--mount {home}{shlex.quote(folder.removeprefix(home))}"


def _looked(look: _Look, given: Given) -> tuple[_Look, _Seen]:
    """What the program prints: in two runs with different seeds, or of one that takes minutes in a first part.

    Where it fails for a folder of the home that it did not find, that is offered, and it is run once more. So it is
    where it did not find a file of its own folder: its runs see that, and what lies beside it.

    Raises UsageError where it stops with an error, or takes too long.
    """
    names, say = " and ".join(look.recipe.edit), look.occasion.say
    is_part = look.is_long and given.seconds is None
    seconds = PART_SECONDS if is_part else look.most
    if is_part:
        say(f"running {names} for {PART_SECONDS:g} s of the {look.stated:g} s that a run takes by its own word")
    else:
        say(f"running {names} {'once' if given.once else 'twice'} to find its number")
    first = printed_once(look, seconds=seconds)
    if first.fault and not first.is_part:
        mounts = _mounts(look.occasion, _missed(first.text, look.mounts), look.mounts)
        also = missed_files(look.place, first.text)
        if mounts != look.mounts or also:
            needed = needed_files(look.place, look.recipe, mounts, also)
            for sentence in describe_needed(needed, besides=look.needed):
                say(sentence)
            look = replace(look, mounts=mounts, needed=needed)
            first = printed_once(look, seconds=seconds)
    if first.fault and not (is_part and first.is_part):
        raise first.fault
    if is_part or given.once:
        return look, _Seen([first], look.stated)
    second = printed_once(look, seconds=seconds, seed=1)
    if second.fault:
        say(f"the second run did not end as the first: {second.fault}")
        return look, _Seen([first], look.stated)
    return look, _Seen([first, second], look.stated)


def _missed(text: str, mounts: Sequence[str]) -> list[str]:
    """The folders of this machine that a run named when it failed, and that it could not see."""
    from autoresearch.run.sandbox.command import HOME

    home, text = Path.home(), SCRATCH_FOLDER.sub(HOME, text[-END_CHARACTERS:])
    folders = folders_to_mount(printed_in_home(text, [home, Path(HOME)]), home) + printed_folders(text, home)
    return [folder for folder in folders if folder not in mounts]


def _judged(look: _Look, given: Given, seen: _Seen, usual: str) -> tuple[str, str, bool]:
    """The number by which runs are compared, which of its values are better, and whether that is a guess by the name.

    ``usual`` is a number that is known.
    """
    say, person = look.occasion.say, look.occasion.person
    text = seen.runs[0].text if seen.runs else ""
    guess = guess_metric(text)
    metric = given.metric or usual or (guess.name if guess else "")
    taken = None if given.metric or usual else guess
    if taken and taken.others and meaning_of(metric).kind is Kind.OTHER and not person:
        raise _unnamed(look, taken, text)
    if person and not given.metric:
        metric = person.line("Number to improve", metric)
    values = seen.values(metric)
    if seen.runs and not values and not (metric and seen.is_part()):
        raise _no_number(look, seen, metric)
    if seen.runs:
        used, took = max(run.memory_bytes for run in seen.runs), max(run.seconds for run in seen.runs)
        number = f"printed {metric}: {value(values[0])}, after" if values else "ran without an error for"
        say(f"it {number} {took:.1f} s, with {size(used)}")
    if values and taken and metric == taken.name:
        say(f"{metric} is taken because it is {taken.why}{'' if taken.is_sure else ': not sure'}")
    if values and (others := _others(text, metric)):
        say(f"it also printed {others}; to take another: --metric NAME")
    return metric, *_direction(metric, given, person)


def _direction(metric: str, given: Given, person: Person | None) -> tuple[str, bool]:
    """Which values of a metric are better, and whether that is a guess by its name."""
    if given.direction is not None:
        return given.direction, False
    direction = direction_of(metric)
    if person is None:
        if direction is None:
            hint = f"--metric {metric} --direction {MAXIMIZE}, or --direction {MINIMIZE}"
            raise UsageError(f"the name {metric} does not say whether more or less of it is better", hint=hint)
        return direction, True
    line = person.line("Which values are better, minimize or maximize", direction or "")
    if line not in (MINIMIZE, MAXIMIZE):
        raise UsageError(f"{line!r} is no direction", hint=f"{MINIMIZE} or {MAXIMIZE}")
    return line, False


def _others(text: str, metric: str) -> str:
    """The other numbers that a text has, as a sentence lists them."""
    numbers = [(name, number) for name, number in numbers_in(text).items() if name != metric]
    more = f" and {len(numbers) - _OTHERS} more" if len(numbers) > _OTHERS else ""
    return ", ".join(f"{name} {value(number)}" for name, number in numbers[:_OTHERS]) + more


def _unnamed(look: _Look, guess: Guess, text: str) -> UsageError:
    """The error where a program printed nothing that is a result by its name."""
    names = f"--metric {guess.name} --direction {direction_of(guess.name)}"
    numbers = ", ".join(filter(None, (f"{guess.name} {value(guess.value or 0.0)}", _others(text, guess.name))))
    return UsageError(f"{look.names} printed only speeds, times or sizes: {numbers}", hint=f"name one: {names}")


def _floor(occasion: Occasion, metric: str, direction: str, values: Sequence[float]) -> float | None:
    """The bound of the metric by its name, as a person corrects it; None where it has none."""
    bound = bound_of(metric, direction, values)
    if bound is None:
        return None
    if not occasion.person:
        occasion.say(f"no {metric} passes {bound.value:g}: metric.floor in task.toml, correct it where that is wrong")
        return bound.value
    line = occasion.person.line(f"Bound that no {metric} passes, or none", f"{bound.value:g}").strip()
    try:
        floor = None if line in ("none", "-") else float(line)
    except ValueError:
        raise UsageError(f"{line!r} is no number", hint="a number, or none") from None
    if floor is not None and not all(
        possible_value(one, sign=sign_of(direction), floor=floor) == one for one in values
    ):
        raise UsageError(f"{metric} was {value(values[0])} already, past the bound {floor:g}", hint="or: none")
    return floor


def _no_number(look: _Look, seen: _Seen, metric: str) -> UsageError:
    text = seen.runs[0].text
    if metric and (reading := read_metric(text, metric)).diverged:
        sentence = f"{look.names} diverged: the last it printed of {metric} is no finite number: “{reading.line}”"
        return UsageError(sentence, hint="begin with settings with which it ends well")
    if seen.is_part():
        return UsageError(
            f"{look.names} printed no number in its first {PART_SECONDS:g} s", hint="name it: --metric NAME"
        )
    what = f"printed no number {metric}" if metric else "printed no result with a name"
    if others := _others(text, metric):
        return UsageError(f"{look.names} {what}; it printed {others}", hint=f"name one: --metric NAME; or {PRINT_HINT}")
    last = last_lines(text)[-1:]
    end = f"; its last line was “{last[0]}”" if last else "; it printed nothing at all"
    return UsageError(f"{look.names} {what}{end}", hint=PRINT_HINT)


def _fixed_seed(program: Mapping[str, str], fixed: Mapping[str, str]) -> str:
    """The file that fixes a seed which the second run could not change; empty where there is none."""
    hidden = (name for name, text in (*program.items(), *fixed.items()) if hides_seed(name, text))
    return next(hidden, "") or next((name for name, text in fixed.items() if fixes_seed(name, text)), "")


def _noise(say: Callable[[str], None], metric: str, values: Sequence[float], fixed: str) -> float | None:
    """The standard deviation by two runs; None where they say nothing. ``fixed`` is a file that fixes the seed."""
    if len(values) < 2:
        return None
    if values[0] == values[1] and fixed:
        say(f"both runs gave the same {metric}, but {fixed} fixes the seed: the noise is unknown")
        return None
    if values[0] == values[1]:
        say(f"both runs gave the same {metric}: metric.noise = 0, so no program is run with a second seed")
        return 0.0
    noise = abs(values[0] - values[1]) / math.sqrt(2)
    gave = " and ".join(map(value, values))
    say(f"two runs gave {gave}: metric.noise = {noise:.2g}, a rough guess from so few runs")
    return noise
