"""Which modules a task's programs import that are not here: all of them at once, without running the programs."""

from __future__ import annotations

import ast
from dataclasses import replace

from autoresearch.research.bench import Bench, job_limits, program_files
from autoresearch.running import Job, execute
from autoresearch.tasks import Task
from autoresearch.words import RunStatus

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
    own = {name.removesuffix(".py") for name in files}
    names = sorted(set().union(*map(_imported, sources)) - own)
    limits = job_limits(task, bench.ceiling)
    job = Job(
        {_ENTRY: _PROGRAM},
        foreign=bench.foreign,
        entry=_ENTRY,
        arguments=tuple(names),
        limits=replace(limits, seconds=min(limits.seconds, _SECONDS)),
        metric_source="stdout",
        parse=lambda _: {},
        python=bench.python,
    )
    outcome = execute(job, level=bench.level)
    return outcome.log.decode().split() if outcome.status is RunStatus.OK else []


def _imported(source: bytes) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found
