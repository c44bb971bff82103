"""Whether a machine can run a task at all: the baseline's imports and first step, before anything is claimed.

All missing modules are found at once, without running the programs. What fails here is the machine's fault, never the
fault of an idea: no graphics card, a missing package, no data.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from autoresearch.errors import CannotRunHere
from autoresearch.run.bench import Bench, device_name, job_limits, missing_command, program_files
from autoresearch.run.evaluating import evaluate
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.failures import way_out
from autoresearch.run.lacking import lacking_in_list, packages_of
from autoresearch.run.proving import left_card
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.cards import card_of, cards
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobOutcome
from autoresearch.task.declared import package_of
from autoresearch.task.inputs import sources
from autoresearch.task.loading import shipped_tasks
from autoresearch.task.model import Task
from autoresearch.task.needs import printed_folders
from autoresearch.task.source import parse_python
from autoresearch.words import STARTED, RunStatus

BASE_TOO = "or base = true under [python] of its task.toml: the node's own packages are there too"
_SECONDS = 60
_ENTRY = "imports.py"
# It finds modules and imports none; names come on the command line, the missing ones leave on standard output.
_PROGRAM = b"""\
import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
"""


def missing_imports(task: Task, bench: Bench) -> list[str]:
    """The packages that the baseline and the harness import and that their Python lacks here, sorted.

    Counted are imports at the top of a file: what stands in a function or in a ``try`` may be optional.

    Raises:
        Refused: the task asks for more than this machine allows, or there is no sandbox for it.
    """
    files = {**program_files(task.baseline.decode()), **task.harness}
    sources = [text for name, text in files.items() if name.endswith(".py")]
    own = {part.removesuffix(".py") for name in (*files, *task.inputs) for part in name.split("/")}
    names = sorted(set().union(*map(_imported, sources)) - own)
    limits = job_limits(task, bench.ceiling)
    job = Job(
        {_ENTRY: _PROGRAM},
        foreign=bench.foreign,
        entry=_ENTRY,
        arguments=tuple(names),
        limits=replace(limits, seconds=min(limits.seconds, _SECONDS)),
        metric_source="stdout",
        python=bench.python,
    )
    outcome = execute(job, level=bench.level)
    return outcome.log.decode().split() if outcome.status is RunStatus.OK else []


def _imported(source: bytes) -> set[str]:
    modules: set[str] = set()
    for node in parse_python(source).body:
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules.add(node.module.partition(".")[0])
    return modules


# A baseline that runs for so long has its imports and its first step behind it.
LONG_ENOUGH_SECONDS = 30
# So long what was found holds: a driver or a package may go.
HOLDS_SECONDS = 24 * 3600


def preflight(
    task: Task,
    bench: Bench,
    *,
    seconds: float = LONG_ENOUGH_SECONDS,
) -> JobOutcome | None:
    """Run the baseline until its first step, or for so many seconds, unless it ran here within a day.

    Returns the outcome where it came so far without a step that was reported, as a program does that only prints.

    Raises:
        CannotRunHere: it does not run on this machine, or its data is not here; the error says why.
        Refused: the task asks for more than this machine allows.
    """
    check_card(task, [bench.device])
    sources(task)  # before anything is claimed: is the task's data here, and is it that of the task?
    evaluator = (task.evaluator.command, task.evaluator.answers) if task.evaluator else ()
    if (name := missing_command(task.recipe.build, task.recipe.command, *evaluator)) is not None:
        raise CannotRunHere(
            f"{name} is not on this machine", hint=f"install {name}, then: autoresearch node doctor task"
        )
    if _is_known(task, bench):
        return None
    began = False

    def on_progress(progress: RunProgress) -> None:
        nonlocal began
        began = began or progress.step > 0 or progress.fraction > 0  # else it has only printed something

    def stopped() -> bool:
        return began or bench.cancelled()

    limits = job_limits(task, bench.ceiling)
    limits = replace(limits, seconds=min(limits.seconds, seconds))
    plan = plan_as_it_stands(task, task.baseline.decode())
    own_bench = replace(bench.beside("preflight"), cancelled=stopped)
    outcome = Experiment(task, plan, own_bench, on_progress=on_progress).train(limits)
    if task.evaluator is not None and outcome.status is RunStatus.OK and outcome.checkpoint is not None:
        outcome = evaluate(task, plan.source, outcome.checkpoint, bench, 0)
    if began and (reason := left_card(bench.device, (task.baseline, *task.harness.values()), outcome)):
        outcome, began = msgspec.structs.replace(outcome, status=RunStatus.COULD_NOT_RUN, reason=reason), False
    if began or outcome.status in STARTED:
        remember_run(task, bench)
    elif outcome.status is not RunStatus.CANCELLED:
        sentence = f"the baseline of {task.name} does not run on this machine: {outcome.reason}"
        raise CannotRunHere(sentence, hint=_way(task, outcome, bench))
    return None if began else outcome


def check_card(task: Task, devices: Iterable[str]) -> None:
    """Refuse with CannotRunHere a task for graphics cards where no device is one, or a card that is not there."""
    if not any(card_of(device) for device in devices) and task.limits.card:
        small = next((other.name for other in shipped_tasks() if other.name == f"{task.name}-smoke"), "")
        ways = ["autoresearch node config set work.device cuda"] if cards() else []
        ways += [f"on a processor: autoresearch work {small}"] if small else []
        raise CannotRunHere(
            f"{task.name} is for graphics cards, and this node computes on the processor", hint="; ".join(ways)
        )


def remember_run(task: Task, bench: Bench) -> None:
    """Note that a program of the task ran here."""
    file = _file(task, bench)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def forget_runs(task: Task, bench: Bench) -> None:
    """Have the baseline run once more before the next program: something on this machine may have changed."""
    _file(task, bench).unlink(missing_ok=True)


def _is_known(task: Task, bench: Bench) -> bool:
    try:
        return 0 <= time.time() - _file(task, bench).stat().st_mtime < HOLDS_SECONDS
    except OSError:
        return False


def _file(task: Task, bench: Bench) -> Path:
    """The mark of a task that runs here; it is another one after an update of Python, torch or the card's driver."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    where = (device_name(bench.device), bench.device, int(bench.level), sys.version, torch, os.uname().release)
    own = () if bench.python is None else (str(bench.python.executable), bench.python.version)
    digest = hashlib.sha256(repr((*where, *own)).encode()).hexdigest()
    return bench.data_cache / "preflight" / f"{task.digest.hex()}-{digest[:16]}"


def _way(task: Task, outcome: JobOutcome, bench: Bench) -> str:
    """What to do about a cause that is recognised."""
    if missing := re.search(r"No module named '([^'.]+)", outcome.reason):
        return way_to_packages(task, {missing[1], *missing_imports(task, bench)})
    text = outcome.log.decode(errors="replace")
    if way := way_out(text, bench.level):
        return way
    mounts = [Path(mount).expanduser() for mount in task.mounts.values()]
    hidden = (Path(folder) for folder in printed_folders(text, Path.home()))
    if folder := next((each for each in hidden if not any(each.is_relative_to(mount) for mount in mounts)), None):
        return f"a run does not see {folder}: name it under [mounts] in {task.folder / 'task.toml'}"
    if "CUDA" in outcome.reason or "NVIDIA" in outcome.reason:
        return "nvidia-smi shows whether the card works; or: autoresearch node config set work.device cpu"
    return "mend it, then: autoresearch node doctor task"


def way_to_packages(task: Task, modules: Collection[str]) -> str:
    """How a task gets the Python packages of modules that its programs lack here, all of them at once."""
    names, folder = " ".join(sorted(map(package_of, modules))), shlex.quote(str(task.folder))
    if task.python is not None and task.python.venv:
        return (
            f"{Path(task.python.venv) / 'bin' / 'python'} -m pip install {names}, then: autoresearch node doctor task"
        )
    if task.folder.name == task.digest.hex():  # somebody else's, as it was published: with a list it would be another
        return (
            f"its author can list what it needs (autoresearch task lock); here: {sys.executable} -m pip install {names}"
            ", then: autoresearch node doctor task"
        )
    if task.packages:
        names = " ".join(sorted({*map(package_of, modules), *lacking_in_list(task)}))
        return f"add {names} to its list of packages, then: autoresearch task lock {folder}; {BASE_TOO}"
    return (
        f"list {' '.join(packages_of(task, modules))} in {task.folder / 'requirements.in'}, one a line, then: "
        f"autoresearch task lock {folder}; "
        'or name an environment of yours in task.toml: [python] venv = "~/project/.venv"'
    )
