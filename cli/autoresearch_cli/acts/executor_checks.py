"""What ``doctor executor`` looks at: whether the cluster answers, and what one of its machines is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from functools import partial

from autoresearch.run.executors import Machine
from autoresearch.run.sandbox.job import Level
from autoresearch.run.slurm import Slurm
from autoresearch.text import counted
from autoresearch_cli import here
from autoresearch_cli.acts.checks import FAILED, OK, WARNING, guarded
from autoresearch_cli.models import Check


def executor_checks() -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    settings = here.settings().executor
    slurm = Slurm(settings.at_most, tuple(shlex.split(settings.options)))
    engine = guarded("slurm", partial(_engine, slurm))
    yield engine
    if engine.result == FAILED:
        return
    machine: Machine | None = None

    def ask() -> Check:
        nonlocal machine
        machine = slurm.machine()
        return Check(name="python", result=OK, detail=f"{machine.python} on {machine.name}, Linux {machine.kernel}")

    yield guarded("python", ask)
    if machine is not None:
        yield from (torch(machine), sandbox(machine))


def _engine(slurm: Slurm) -> Check:
    return Check(name="slurm", result=OK, detail=f"it answers and takes {counted(slurm.capacity(), 'more job')}")


def torch(machine: Machine) -> Check:
    """Whether the shipped task's programs find torch there."""
    if machine.torch:
        return Check(name="torch", result=OK, detail=machine.torch)
    fix = f"{sys.executable} -m pip install torch, on a file system that {machine.name} sees"
    return Check(name="torch", result=FAILED, detail=f"{machine.name} has none", fix=fix)


def sandbox(machine: Machine) -> Check:
    """How well programs are walled in there."""
    level = Level(machine.level)
    if level is Level.BUBBLEWRAP:
        return Check(name="sandbox", result=OK, detail=f"{level.label}: {level.sentence}")
    fix = "ask who runs the cluster to allow user namespaces (sysctl user.max_user_namespaces)"
    if not machine.has_bubblewrap:
        fix = f"have bubblewrap installed on {machine.name}"
    return Check(name="sandbox", result=WARNING, detail=f"{level.label}: {level.sentence}", fix=fix)
