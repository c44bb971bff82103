"""What ``doctor executor`` looks at: whether the cluster or the machine answers, and what it is."""

from __future__ import annotations

from collections.abc import Iterator

from autoresearch.ask.health import guarded, passed
from autoresearch.ask.node import Check
from autoresearch.run.executors import HERE, Executor, Machine, executor_name, executor_of
from autoresearch.run.sandbox.filters import LEAST_LANDLOCK
from autoresearch.run.sandbox.job import Level
from autoresearch.text import counted
from autoresearch.version import __version__
from autoresearch.words import Result
from autoresearch_cli import home


def executor_checks(host: str) -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    settings = home.settings().executor
    executor = executor_of(settings, executor_name(settings, "" if host or settings.name != HERE else "slurm", host))
    answers = guarded(executor.name, lambda: _answers(executor))
    yield answers
    if answers.result == Result.FAILED:
        return
    machine: Machine | None = None

    def ask() -> Check:
        nonlocal machine
        machine = executor.machine()
        return python(machine)

    yield guarded("python", ask)
    if machine is not None:
        yield from (torch(machine), sandbox(machine))


def _answers(executor: Executor) -> Check:
    detail = f"it answers and takes {counted(executor.capacity(), 'more run')}"
    return passed(executor.name, detail)


def python(machine: Machine) -> Check:
    """Whether the program there understands what this one asks."""
    detail = f"{machine.python} on {machine.name}, Linux {machine.kernel}"
    if machine.version == __version__:
        return passed("python", detail)
    detail += f"; it has version {machine.version} of this program, and here is {__version__}"
    return Check(name="python", result=Result.FAILED, detail=detail, fix=f"install {__version__} on {machine.name}")


def torch(machine: Machine) -> Check:
    """Whether the shipped task's programs find torch there."""
    if machine.torch:
        return passed("torch", machine.torch)
    fix = f"on {machine.name}: {machine.executable} -m pip install torch"
    return Check(name="torch", result=Result.FAILED, detail=f"{machine.name} has none", fix=fix)


def sandbox(machine: Machine) -> Check:
    """How well programs are walled in there."""
    level = Level(machine.level)
    if level >= Level.BUBBLEWRAP:
        return passed("sandbox", f"{level.label}: {level.sentence}")
    fix = f"on {machine.name}: {machine.remedy}"
    if level is Level.NONE:
        fix += (
            f"; or Apptainer; or a kernel with landlock {LEAST_LANDLOCK}, such as Linux 6.12 (it has {machine.kernel})"
        )
    return Check(
        name="sandbox", result=Result.WARNING, detail=f"{level.label}: {level.sentence}; {machine.obstacle}", fix=fix
    )
