"""A program that is to become a task is run in the sandbox: what it prints, takes and lacks; what to do about it."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from autoresearch.errors import UsageError
from autoresearch.paths import Paths
from autoresearch.run.failures import SCRATCH_FOLDER, way_out
from autoresearch.run.sandbox.capture import last_lines
from autoresearch.run.sandbox.cards import named_devices
from autoresearch.settings import Work
from autoresearch.task import needs
from autoresearch.task.evaluator_template import Artifact
from autoresearch.task.folders import MEMORY_MIB, draft_task
from autoresearch.task.loading import load_task, read_file
from autoresearch.task.model import Recipe, Task
from autoresearch.task.needed import Needed, describe_needed, missed_files, needed_files
from autoresearch.task.printed import read_metric
from autoresearch.task.program import is_tool_file
from autoresearch.task.seeds import reseeded_line
from autoresearch.text import one_line

if TYPE_CHECKING:
    from autoresearch.record.kinds import RunOutcome
    from autoresearch.run.bench import Ceiling
    from autoresearch.run.experiment import Plan
    from autoresearch.run.sandbox.job import Level

MORE_SECONDS_HINT = (
    "where it ends by itself: --seconds N, longer than that; or it is not run now: --metric NAME --seconds N"
)
# An option that says how much a program does.
_AMOUNT_OPTION = re.compile(r"[\"'](--[\w-]*(?:steps|iters|iterations|epochs|episodes|rounds))[\"']")
_WANTS_ARGUMENTS = re.compile(r"arguments? (?:is|are) required|missing (?:command|argument|option)|usage: ", re.I)
# Files that say how a program is started, and such a line without what a shell puts into it.
_STARTING_FILES = "*.sh", "*akefile", "*.mk", "justfile", "README*"
_STARTING_LINE = re.compile(
    r"(?:^|[\s`@])(python3? (?:-m ([\w.]+)|([\w./-]+\.py))\b[^\n`$|&;<>\\{}#]*)(?:$|[`#|;&>])", re.M
)
# A variable of a script or a makefile, and where one stands for its value: $NAME, ${NAME}, $(NAME), ${NAME:-VALUE}.
_VARIABLE = re.compile(r"^[ \t]*(?:export +)?(\w+)[ \t]*[:?]?=[ \t]*([^#\n]*)", re.M)
_USE = re.compile(r"\$(?:(\w+)|\((\w+)\)|\{(\w+)(?::?-([^}$]*))?\})")
_LINE_CHARACTERS = 200
_OF_A_SHELL = frozenset({"&&", "||", ";", "|", ">", ">>", "<", "2>&1", "&"})
# A file beside the task's folder that a program did not find.
_OUTSIDE = re.compile(r"No such file or directory: ['\"](\.\./[^'\"\n]{1,200})['\"]")
# So often a person who waits for a program is told that it still runs.
SILENT_SECONDS = 20.0
# So many lines of a program that did not end are quoted.
LINES_QUOTED = 3

# Of a program whose time nobody measured.
USUAL_SECONDS = 300.0
# A program that says of itself that it takes longer is run for a first part only.
WHOLE_SECONDS, PART_SECONDS = 60.0, 30.0
# Of a program that was run, what a run may use beside what it used, in MiB.
LEAST_MEMORY_MIB = 1024
TIMES_MEMORY = 4


@dataclass(frozen=True, slots=True)
class TaskOptions:
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
    artifact: Artifact | None = None
    """What the program is to leave to an evaluator; None: it prints its number."""


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
class NewTaskContext:
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
class Look:
    """A program that is to be looked at, and how long its runs take by its own word."""

    context: NewTaskContext
    place: Path
    recipe: Recipe
    needed: Needed
    venv: str
    mounts: tuple[str, ...] = ()
    stated: float | None = None
    most: float = USUAL_SECONDS

    @property
    def names(self) -> str:
        """The files that may change, as a sentence names them."""
        return " and ".join(str(self.place / name) for name in self.recipe.edit)

    @property
    def is_long(self) -> bool:
        """Whether a run takes too long to be tried as a whole."""
        return self.stated is not None and self.stated > WHOLE_SECONDS


@dataclass(frozen=True, slots=True)
class TrialRuns:
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


def printed_once(look: Look, learnt: Path, *, seconds: float, seed: int = 0) -> Printed:
    """What a program prints when it is run once in the sandbox, and its fault where it stops with an error.

    With another ``seed`` than 0 the program, and its command, have other seeds in place of those that they fix.
    ``learnt`` is a folder for what one run of the draft tells the next, such as its cost.

    Raises:
        UsageError: it is no program, what starts it is not on this machine, or there is no sandbox.
        CannotRunHere: ``venv`` is no Python environment.
        Refused: nobody can have runs read one of ``mounts``.
    """
    from autoresearch.run.bench import Ceiling, missing_command
    from autoresearch.run.consent import allow_reaches, reaches_of
    from autoresearch.run.experiment import again, plan_as_it_stands
    from autoresearch.run.lacking import lacks_packages
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
    work, paths = look.context.work, look.context.paths
    memory = Ceiling.of(work).memory_mib
    task = draft_task(look.place, recipe, look.needed, seconds=seconds, memory_mib=memory, venv=look.venv)
    allow_reaches(look.place, reaches_of(task), paths)  # a draft has what a person named, and nothing of the folder
    limits = task.limits
    ceiling = Ceiling(seconds, memory, limits.disk_mib, limits.processes, limits.output_kib)
    plan = again(plan_as_it_stands(task, task.program.decode()), seed)
    outcome, text = _carried_out(look.context, task, plan, ceiling, level, learnt)
    printed = Printed(text, outcome.duration_ms / 1000, outcome.peak_memory_bytes)
    if outcome.status == RunStatus.TIMED_OUT:
        lines = " / ".join(f"“{line}”" for line in last_lines(text)[-LINES_QUOTED:]) or "nothing"
        sentence = f"{names} ran for {seconds:g} s without an end; it printed last: {lines}"
        fault = UsageError(sentence, hint=way_out(text, level) or _end_hint(task, recipe.command))
        return replace(printed, is_part=True, fault=fault)
    if outcome.status == RunStatus.OK:
        return printed
    if module := re.search(r"No module named '([^'.]+)", outcome.reason):
        return replace(printed, fault=lacks_packages(task, names, module[1]))
    hint = _way_on(look, recipe.command, outcome.reason, text, level)
    hint = hint or "mend it, or look at what it prints: " + recipe.command
    return replace(printed, fault=UsageError(f"{names} stopped with an error: {outcome.reason}", hint=hint))


def _way_on(look: Look, command: str, reason: str, text: str, level: Level) -> str:
    """What to do about a program that stopped with an error; empty where only its author can know."""
    if outside := _OUTSIDE.search(text):
        return (
            f"its runs see the task's folder and no {outside[1]}: copy that into the folder, and name it there; "
            "or have the program name its whole path, and --mount its folder"
        )
    if folders := _missed(text, look.mounts):
        return f"to show it to its runs, to read: {' '.join(map(_mount_option, folders))}"
    if way := way_out(text, level):
        return way
    if left_out := next((why for name, why in look.needed.left_out.items() if f"'{name}" in reason), ""):
        return f"its runs don't see that: {left_out}"
    if operator := next((word for word in shlex.split(command) if word in _OF_A_SHELL), ""):
        in_a_shell = f"bash -c {shlex.quote(command)}"
        typed = shlex.quote(in_a_shell) if re.search(r"[\"$`\\!]", in_a_shell) else f'"{in_a_shell}"'
        return f"no shell reads the line, so {operator} is a word of it: --command {typed}"
    if start := _other_start(look.place, command):
        mend = f"mend it, or look at what it prints: {command}"
        return f"if {start.file} starts it as it should be: --command {shlex.quote(start.line)}; or {mend}"
    if _WANTS_ARGUMENTS.search(reason):
        return f"give it what it wants: --command {shlex.quote(f'{command} …')}"
    return ""


class _Start(NamedTuple):
    """A line of a file that starts a program."""

    file: str
    line: str


def _other_start(place: Path, command: str) -> _Start | None:
    """How a script, a makefile or a README of the folder starts its program, where that is not how it was started."""
    for path in chain.from_iterable(sorted(place.glob(pattern)) for pattern in _STARTING_FILES):
        try:
            text = _with_values(read_file(place, path.name).decode("utf-8", "replace"))
        except UsageError:
            continue
        for match in _STARTING_LINE.finditer(text):
            line, file = one_line(match[1], _LINE_CHARACTERS), match[3] or match[2].replace(".", "/")
            # pip, pytest and setup.py stand in many a README.
            is_here = (place / file).exists() or (place / f"{file}.py").exists()
            is_tools = match[3] and is_tool_file(file)
            if is_here and not is_tools and line != command and not line.endswith("…"):
                return _Start(path.name, line)
    return None


def _with_values(text: str) -> str:
    """A script or a makefile with values in place of the variables that it sets, or that have a default."""
    values: dict[str, str] = {name: value.strip().strip("\"'") for name, value in _VARIABLE.findall(text)}

    def value(use: re.Match[str]) -> str:
        name = str(use[1] or use[2] or use[3])
        return values[name] if name in values else str(use[4] or use[0])

    return _USE.sub(value, text)


def _end_hint(task: Task, command: str) -> str:
    """What to do about a program that did not end in the time that it had."""
    text = task.program.decode()
    options = [option for option in _AMOUNT_OPTION.findall(text) if option not in command]
    if not options:
        return MORE_SECONDS_HINT
    return f"to have it do less: --command {shlex.quote(f'{command} {options[0]} N')}; {MORE_SECONDS_HINT}"


def measured_once(context: NewTaskContext, place: Path) -> RunOutcome | None:
    """How one run of a new task ends, its evaluator's number with it; None where there is no sandbox.

    Raises what :func:`autoresearch.run.runner.make_bench` raises.
    """
    from autoresearch.run.bench import Ceiling
    from autoresearch.run.experiment import plan_as_it_stands
    from autoresearch.run.sandbox.job import Level
    from autoresearch.run.sandbox.probes import detect_level

    if (level := detect_level()[0]) < Level.LANDLOCK:
        return None
    task = load_task(place)
    plan = plan_as_it_stands(task, task.program.decode())
    with tempfile.TemporaryDirectory() as learnt:
        return _carried_out(context, task, plan, Ceiling.of(context.work), level, Path(learnt))[0]


def _carried_out(
    context: NewTaskContext, task: Task, plan: Plan, ceiling: Ceiling, level: Level, learnt: Path
) -> tuple[RunOutcome, str]:
    """How a plan of a task ended here, and what its run printed."""
    from autoresearch.run.folder import Conditions, RunRequest, log_of, new_run
    from autoresearch.run.runner import RunSite, make_bench, outcome_of, run_here

    work, paths = context.work, context.paths
    conditions = Conditions(ceiling=ceiling, threads=work.threads, device=named_devices(work.device)[0])
    place = RunSite(level, learnt, paths.environments, paths.allowed)
    ready = partial(make_bench, cancelled=_saying_so(context))
    request = RunRequest(run=new_run("run"), task=task, conditions=conditions, plan=plan)
    with run_here(request, place, paths.spool, ready=ready) as (folder, ended):
        return outcome_of(ended), log_of(folder).decode("utf-8", "replace")


def _saying_so(context: NewTaskContext) -> Callable[[], bool]:
    """Whether nobody waits any more; whoever waits for long is told that the program still runs."""
    begun = last = time.monotonic()

    def cancelled() -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last > SILENT_SECONDS:
            last = now
            context.say(f"it still runs, after {now - begun:.0f} s: Ctrl-C ends it")
        return context.cancelled()

    return cancelled


def try_program(look: Look, options: TaskOptions) -> tuple[Look, TrialRuns]:
    """What the program prints: in two runs with different seeds, or of one that takes minutes in a first part.

    Where it fails for a folder of the home that it did not find, that is offered, and it is run once more. So it is
    where it did not find a file of its own folder: its runs see that, and what lies beside it.

    Raises UsageError where it stops with an error, or takes too long.
    """
    with tempfile.TemporaryDirectory() as learnt:  # of no use to the task, which is another than its draft
        return _tried(look, options, Path(learnt))


def _tried(look: Look, options: TaskOptions, learnt: Path) -> tuple[Look, TrialRuns]:
    names, say = " and ".join(look.recipe.edit), look.context.say
    is_part = look.is_long and options.seconds is None
    seconds = PART_SECONDS if is_part else look.most
    if is_part:
        say(f"running {names} for {PART_SECONDS:g} s of the {look.stated:g} s that a run takes by its own word")
    else:
        say(f"running {names} {'once' if options.once else 'twice'} to find its number")
    first = printed_once(look, learnt, seconds=seconds)
    if first.fault and not first.is_part:
        mounts = agreed_mounts(look.context, _missed(first.text, look.mounts), look.mounts)
        also = missed_files(look.place, first.text)
        if mounts != look.mounts or also:
            needed = needed_files(look.place, look.recipe, mounts, also)
            for sentence in describe_needed(needed, besides=look.needed):
                say(sentence)
            look = replace(look, mounts=mounts, needed=needed)
            first = printed_once(look, learnt, seconds=seconds)
    if first.fault and not (is_part and first.is_part):
        raise first.fault
    if is_part or options.once:
        return look, TrialRuns([first], look.stated)
    second = printed_once(look, learnt, seconds=seconds, seed=1)
    if second.fault:
        say(f"the second run did not end as the first: {second.fault}")
        return look, TrialRuns([first], look.stated)
    return look, TrialRuns([first, second], look.stated)


def _missed(text: str, mounts: Sequence[str]) -> list[str]:
    """The folders of this machine that a run named when it failed, and that it could not see."""
    from autoresearch.run.sandbox.command import HOME

    home, text = Path.home(), SCRATCH_FOLDER.sub(HOME, text[-needs.END_CHARACTERS :])
    folders = needs.folders_to_mount(needs.printed_in_home(text, [home, Path(HOME)]), home) + needs.printed_folders(
        text, home
    )
    return [folder for folder in folders if folder not in mounts]


def agreed_mounts(context: NewTaskContext, offered: Sequence[str], mounts: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a run may read: with ``offered`` ones, where a person agrees.

    Hidden ones of the home are not offered: a cache may hold keys, so a person names it.
    """
    for folder in offered:
        if any(Path(folder).expanduser().is_relative_to(Path(mount).expanduser()) for mount in mounts):
            continue
        question = f"The program reads {folder}. May its runs read it?"
        if context.person and not folder.startswith("~/.") and context.person.agrees(question):
            mounts = (*mounts, folder)
            context.say(f"its runs may read {folder}: [mounts] in task.toml")
        else:
            context.say(
                f"it names {folder}, which its runs don't see; to show it to them, to read: {_mount_option(folder)}"
            )
    return mounts


def _mount_option(folder: str) -> str:
    """The option that mounts a folder, as a shell reads it."""
    home = "~/" if folder.startswith("~/") else ""
    return f"--mount {home}{shlex.quote(folder.removeprefix(home))}"
