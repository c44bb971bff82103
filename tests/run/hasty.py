"""The daemon, in a hurry: it looks after runs elsewhere each second, and gives them up after seconds, not minutes."""

from __future__ import annotations

import sys
from functools import partial

from autoresearch_daemon import main
from autoresearch_daemon.runs import assignments, executor_runs

from autoresearch.run.executors import Executor, executor_of
from autoresearch.settings import ExecutorSection

ABSENT_SECONDS = 8.0


def hasty(settings: ExecutorSection, name: str) -> Executor:
    made = executor_of(settings, name)
    made.absences.seconds = ABSENT_SECONDS
    return made


if __name__ == "__main__":
    assignments.executor_of = hasty
    assignments.ExecutorRuns = partial(assignments.ExecutorRuns, look_seconds=1.0)
    executor_runs.LEFT_SECONDS = 1.0
    sys.exit(main.main())
