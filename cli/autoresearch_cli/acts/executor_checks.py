"""What ``doctor executor`` looks at: whether the cluster answers, and what one of its machines is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from functools import partial

from autoresearch.ask.health import guarded, passed
from autoresearch.ask.node import Check
from autoresearch.run.executors import Machine
from autoresearch.run.sandbox.job import Level
from autoresearch.run.slurm import Slurm
from autoresearch.text import counted
from autoresearch.words import Result
from autoresearch_cli import here


def executor_checks() -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    settings = here.settings().executor
    slurm = Slurm(settings.at_most, tuple(shlex.split(settings.options)))
    engine = guarded("slurm", partial(_engine, slurm))
    yield engine
    if engine.result == Result.FAILED:
        return
    machine: Machine | None = None

    def ask() -> Check:
        nonlocal machine
        machine = slurm.machine()
        return passed("python", f"{machine.python} on {machine.name}, Linux {machine.kernel}")

    yield guarded("python", ask)
    if machine is not None:
        yield from (torch(machine), sandbox(machine))


def _engine(slurm: Slurm) -> Check:
    return passed("slurm", f"it answers and takes {counted(slurm.capacity(), 'more job')}")


def torch(machine: Machine) -> Check:
    """Whether the shipped task's programs find torch there."""
    if machine.torch:
        return passed("torch", machine.torch)
    fix = f"{sys.executable} -m pip install torch, on a file system that {machine.name} sees"
    return Check(name="torch", result=Result.FAILED, detail=f"{machine.name} has none", fix=fix)


def sandbox(machine: Machine) -> Check:
    """How well programs are walled in there."""
    level = Level(machine.level)
    if level is Level.BUBBLEWRAP:
        return passed("sandbox", f"{level.label}: {level.sentence}")
    fix = "ask who runs the cluster to allow user namespaces (sysctl user.max_user_namespaces)"
    if not machine.has_bubblewrap:
        fix = f"have bubblewrap installed on {machine.name}"
    return Check(name="sandbox", result=Result.WARNING, detail=f"{level.label}: {level.sentence}", fix=fix)
