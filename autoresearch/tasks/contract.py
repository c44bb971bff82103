"""Which tasks have the harness that ships, and so its contract with ``train.py``."""

from __future__ import annotations

from autoresearch.tasks.guessing import PREPARE
from autoresearch.tasks.loading import shipped_task
from autoresearch.tasks.model import Task


def has_shipped_harness(task: Task) -> bool:
    """Whether a task is measured by the ``prepare.py`` of the task that ships."""
    return PREPARE in task.harness and task.harness[PREPARE] == shipped_task().harness[PREPARE]
