"""A folder with a program becomes a task: guess, run it in the sandbox, ask a person, write task.toml."""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autoresearch.ask.acts import trial_runs
from autoresearch.ask.acts.new_evaluators import say_marked_places, with_evaluator
from autoresearch.ask.node import NewTaskAnswer
from autoresearch.ask.requests import NewTaskRequest
from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import typed_path
from autoresearch.run.sandbox.capture import last_lines
from autoresearch.task import needs
from autoresearch.task.bounds import bound_of
from autoresearch.task.folder_state import STATE_FOLDER, create_file
from autoresearch.task.folders import write_task
from autoresearch.task.guessing import FLAGS, guess_recipe
from autoresearch.task.loading import MANIFEST, load_task, program_in
from autoresearch.task.metric_names import DataPart, Kind, direction_of, is_of_test_data, meaning_of
from autoresearch.task.model import Recipe, possible_value
from autoresearch.task.needed import PREPARE, describe_needed, needed_files
from autoresearch.task.notebook import notebook_as_program
from autoresearch.task.printed import Guess, guess_metric, numbers_in, read_metric
from autoresearch.task.program import ENTRY, split_program
from autoresearch.task.seeds import fixes_seed, hides_seed
from autoresearch.text import MAXIMIZE, MINIMIZE, sign_of, size, value

PRINT_HINT = "have it print a line such as accuracy: 0.93"
# So many other numbers of a program are named in a sentence.
_OTHERS = 8

# Values that differ by less of themselves are those of one seed, with the rounding of another order of sums.
_SAME = 1e-4
_KARPATHY = "val_bpb"
_TOY = '"""Trains a model. This file may change."""\n'
_TOY_SECONDS = 20.0
_OUTSIDE = "docs/how-to/evaluate-outside-the-program.md"


def make_task(request: NewTaskRequest, context: trial_runs.NewTaskContext) -> NewTaskAnswer:
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
    if not os.path.lexists(place / MANIFEST):
        describe_program(
            place, trial_runs.TaskOptions(request.metric, request.direction or None, request.seconds), context
        )
        note = "is a task now"
    task = load_task(place)
    return NewTaskAnswer(
        folder=str(place),
        name=task.name,
        metric=task.metric.name,
        direction=task.metric.direction,
        note=f"{place} {note}: {task.metric.name}, {task.metric.direction}",
    )


def describe_program(place: Path, options: trial_runs.TaskOptions, context: trial_runs.NewTaskContext) -> None:
    """Write task.toml for the program in a folder. A person is asked what could not be known.

    A notebook's code is written beside it, as a Python file. Where it fails, the folder is left as it was.

    Raises:
        UsageError: there is no program, it stops with an error, or it prints no number.
        Refused: task.toml is there, or a file with the name of a notebook's program.
    """
    if not os.access(place, os.W_OK | os.X_OK):
        sentence = f"{place} is closed to you or read only, and task.toml is written there"
        raise UsageError(sentence, hint="let it be written, or give a copy of it")
    own = [place / name for name in (FLAGS, STATE_FOLDER) if not os.path.lexists(place / name)]
    try:
        with notebook_as_program(place, options.command, options.edit) as (edit, sentences):
            for sentence in sentences:
                context.say(sentence)
            _describe(place, replace(options, edit=edit), context)
    except BaseException:  # Ctrl-C too
        for path in () if (place / MANIFEST).exists() else own:  # another command may have made it a task meanwhile
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        raise


def make_toy(place: Path, options: trial_runs.TaskOptions, context: trial_runs.NewTaskContext) -> None:
    """Make a folder with a toy program and an evaluator that measures it, and a task of both.

    Raises what :func:`describe_program` raises; then the folder is as it was.
    """
    options = replace(
        options,
        metric=options.metric or "accuracy",
        direction="maximize" if not options.metric else options.direction,
        seconds=options.seconds or _TOY_SECONDS,
    )
    is_new = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    create_file(place, ENTRY, _TOY)
    try:
        describe_program(place, options, replace(context, person=None))
    except BaseException:  # Ctrl-C too
        (place / ENTRY).unlink(missing_ok=True)
        if is_new:
            place.rmdir()
        raise


def _describe(place: Path, options: trial_runs.TaskOptions, context: trial_runs.NewTaskContext) -> None:
    """The same for a program in files."""
    from autoresearch.run.bench import Ceiling
    from autoresearch.run.consent import allow_reaches, reaches_of

    recipe = guess_recipe(place, command=options.command, build=options.build, edit=options.edit)
    say, person = context.say, context.person
    if person and not options.command:
        recipe = _asked_command(place, options, recipe, person)
    program = split_program(program_in(place, recipe).decode())
    needed = needed_files(place, recipe, tuple(options.mounts))
    fixed = {name: text.decode("utf-8-sig", "replace") for name, text in needed.fixed.items()}
    say(f"the program is {' and '.join(recipe.edit)}, started by: {recipe.command}")
    if fixed:
        say(f"fixed beside it: {', '.join(fixed)}")
        if (code := [name for name in fixed if name.endswith(".py") and name != PREPARE]) and not options.edit:
            largest = max(code, key=lambda name: len(fixed[name]))
            say(f"to let more of it change: {' '.join(f'--edit {name}' for name in (*recipe.edit, largest))}")
    for sentence in describe_needed(needed):
        say(sentence)
    sources = {**program, **fixed}
    stated = needs.stated_seconds(sources.values())
    if stated is None and _is_karpathy(place, recipe):
        stated = trial_runs.USUAL_SECONDS
    named = set[str]().union(*(needs.named_in_home(name, source) for name, source in sources.items()))
    mounts = trial_runs.agreed_mounts(context, needs.folders_to_mount(named, Path.home()), tuple(options.mounts))
    if mounts != tuple(options.mounts):
        needed = needed_files(place, recipe, mounts)
    look = trial_runs.Look(
        context, place, recipe, needed, options.venv, mounts, stated, options.seconds or trial_runs.USUAL_SECONDS
    )
    seen = trial_runs.TrialRuns()
    if not (options.metric and options.seconds):
        look, seen = trial_runs.try_program(look, options)
    metric, direction, is_guess = _judged(look, options, seen, _KARPATHY if _is_karpathy(place, recipe) else "")
    seconds = options.seconds or seen.seconds()
    if person and options.seconds is None:
        seconds = person.number("Seconds that a run may take", seconds)
        if not 1 <= seconds <= 86_400:
            raise UsageError(f"a run can't take {seconds:g} seconds", hint="between 1 and 86400")
    floor = _floor(context, metric, direction, seen.values(metric))
    if options.artifact is None:
        say(
            f"the program measures itself: an edit of it can print any {metric}, so a jump is not believed. To have it "
            f"measured outside: --referee predictions; {_OUTSIDE}"
        )
    most = Ceiling.of(context.work).memory_mib
    noise = None if options.artifact else _noise(say, metric, seen.values(metric), _fixed_seed(program, fixed))
    with with_evaluator(look, options.artifact, metric, direction, floor) as evaluated:
        write_task(
            place,
            recipe=evaluated.recipe,
            metric=metric,
            direction=direction,
            is_guess=is_guess,
            seconds=seconds,
            most_memory_mib=seen.memory_mib(most),
            floor=evaluated.floor,
            noise=noise,
            venv=options.venv,
            needed=evaluated.needed,
            evaluator=evaluated.evaluator,
        )
    allow_reaches(place, reaches_of(load_task(place)), context.paths)
    if options.artifact is not None:
        say_marked_places(look, options.artifact)


def _asked_command(place: Path, options: trial_runs.TaskOptions, guess: Recipe, person: trial_runs.Person) -> Recipe:
    line = person.line("Command that runs the program", guess.command)
    if line == guess.command:
        return guess
    return guess_recipe(place, command=line, build=options.build, edit=options.edit)


def _is_karpathy(place: Path, recipe: Recipe) -> bool:
    """Whether a folder has the shape of karpathy/autoresearch, where a run takes minutes and the number is known."""
    return recipe == Recipe() and (place / PREPARE).is_file() and _KARPATHY.encode() in program_in(place, recipe)


def _judged(
    look: trial_runs.Look, options: trial_runs.TaskOptions, seen: trial_runs.TrialRuns, usual: str
) -> tuple[str, str, bool]:
    """The number by which runs are compared, which of its values are better, and whether that is a guess by the name.

    ``usual`` is a number that is known.
    """
    say, person = look.context.say, look.context.person
    text = seen.runs[0].text if seen.runs else ""
    guess = guess_metric(text)
    metric = options.metric or usual or (guess.name if guess else "")
    taken = None if options.metric or usual else guess
    if taken and taken.others and meaning_of(metric).kind is Kind.OTHER and not person:
        raise _unnamed(look, taken, text)
    if person and not options.metric:
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
    if values and not options.metric and (sentence := _about_data(metric, text)):
        say(sentence)
    return metric, *_direction(metric, options, person)


def _about_data(metric: str, text: str) -> str:
    """What is wrong with choosing programs by a metric of the training or the test data; empty where nothing is."""
    is_of_test = is_of_test_data(metric)
    if not is_of_test and meaning_of(metric).part is not DataPart.TRAINING:
        return ""
    held_out = [
        name
        for name in numbers_in(text)
        if meaning_of(name)[:2] == (Kind.RESULT, DataPart.HELD_OUT) and not is_of_test_data(name)
    ]
    worth = meaning_of(metric).worth  # rather of the same kind
    held_out.sort(key=lambda name: meaning_of(name).worth != worth)
    better = f"--metric {shlex.quote(held_out[0])}" if held_out else "have it print a number of validation data"
    if is_of_test:
        return f"{metric} is of the test data: once programs are chosen by it, it says little of new data; {better}"
    return f"{metric} is of the training data: a program can get better at it by learning them by heart; {better}"


def _direction(metric: str, options: trial_runs.TaskOptions, person: trial_runs.Person | None) -> tuple[str, bool]:
    """Which values of a metric are better, and whether that is a guess by its name."""
    if options.direction is not None:
        return options.direction, False
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


def _unnamed(look: trial_runs.Look, guess: Guess, text: str) -> UsageError:
    """The error where a program printed nothing that is a result by its name."""
    names = f"--metric {guess.name} --direction {direction_of(guess.name)}"
    numbers = ", ".join(filter(None, (f"{guess.name} {value(guess.value or 0.0)}", _others(text, guess.name))))
    return UsageError(f"{look.names} printed only speeds, times or sizes: {numbers}", hint=f"name one: {names}")


def _floor(context: trial_runs.NewTaskContext, metric: str, direction: str, values: Sequence[float]) -> float | None:
    """The bound of the metric by its name, as a person corrects it; None where it has none."""
    bound = bound_of(metric, direction, values)
    if bound is None:
        return None
    if not context.person:
        context.say(f"no {metric} passes {bound.value:g}: metric.floor in task.toml, correct it where that is wrong")
        return bound.value
    line = context.person.line(f"Bound that no {metric} passes, or none", f"{bound.value:g}").strip()
    try:
        floor = None if line in ("none", "-") else float(line)
    except ValueError:
        raise UsageError(f"{line!r} is no number", hint="a number, or none") from None
    if floor is not None and not all(
        possible_value(number, sign=sign_of(direction), floor=floor) == number for number in values
    ):
        raise UsageError(f"{metric} was {value(values[0])} already, past the bound {floor:g}", hint="or: none")
    return floor


def _no_number(look: trial_runs.Look, seen: trial_runs.TrialRuns, metric: str) -> UsageError:
    text = seen.runs[0].text
    if metric and (reading := read_metric(text, metric)).diverged:
        sentence = f"{look.names} diverged: {reading.divergence(metric)}"
        return UsageError(sentence, hint="begin with settings with which it ends well")
    if seen.is_part():
        return UsageError(
            f"{look.names} printed no number in its first {trial_runs.PART_SECONDS:g} s", hint="name it: --metric NAME"
        )
    what = f"printed no number {metric[:100]}" if metric else "printed no result with a name"
    if others := _others(text, metric):
        name = next(name for name in numbers_in(text) if name != metric)
        way = "" if direction_of(name) else f" --direction {MINIMIZE}"
        return UsageError(
            f"{look.names} {what}; it printed {others}",
            hint=f"name one: --metric {shlex.quote(name)}{way}; or {PRINT_HINT}",
        )
    last = last_lines(text)[-1:]
    end = f"; its last line was “{last[0]}”" if last else "; it printed nothing at all"
    return UsageError(f"{look.names} {what}{end}", hint=PRINT_HINT)


def _fixed_seed(program: Mapping[str, str], fixed: Mapping[str, str]) -> str:
    """The file that fixes a seed which the second run could not change; empty where there is none."""
    hidden = (name for name, text in (*program.items(), *fixed.items()) if hides_seed(name, text))
    return next((name for name, text in fixed.items() if fixes_seed(name, text)), "") or next(hidden, "")


def _noise(say: Callable[[str], None], metric: str, values: Sequence[float], fixed: str) -> float | None:
    """The standard deviation by two runs; None where they say nothing. ``fixed`` is a file that fixes the seed."""
    if len(values) < 2:
        return None
    if fixed and math.isclose(values[0], values[1], rel_tol=_SAME):
        say(f"both runs gave the same {metric}, but {fixed} fixes the seed: the noise is unknown")
        return None
    if values[0] == values[1]:
        say(f"both runs gave the same {metric}: metric.noise = 0, so no program is run with a second seed")
        return 0.0
    noise = abs(values[0] - values[1]) / math.sqrt(2)
    gave = " and ".join(map(value, values))
    say(f"two runs with different seeds gave {gave}: metric.noise = {noise:.2g}, a rough guess from so few runs")
    return noise
