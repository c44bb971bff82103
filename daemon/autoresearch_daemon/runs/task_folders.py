"""Task folders as people name them, and the tasks that were read from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.log.local import Choice, chosen
from autoresearch.paths import typed_path
from autoresearch.run.bench import Ceiling
from autoresearch.run.experiment import Plan
from autoresearch.settings import Settings
from autoresearch.task.loading import default_task, load_task
from autoresearch.task.model import Task
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.inputs import OrderCancelled


class TaskFolders:
    """The tasks by their folders. ``choices`` is the file of what a person chose on this machine."""

    def __init__(self, settings: Callable[[], Settings], choices: Path) -> None:
        self._settings, self._choices = settings, choices
        self._tasks: dict[str, Task] = {}

    def load(self, folder: str) -> Task:
        """Read a task folder (empty: the default task) and remember it.

        Raises:
            UsageError: it is no task.
            Refused: the task asks for more than this machine allows.
        """
        task = self._tasks[folder] = load_task(typed_path(folder)) if folder else default_task()
        Ceiling.of(self._settings().work).check(task)
        return task

    def add(self, task: Task) -> None:
        """Remember a task as it was when a run of it began, unless its folder was read since."""
        self._tasks.setdefault(str(task.folder), task)

    def worked_on(self, folder: str) -> str:
        """The folder itself, or the one of the settings where none is named."""
        return folder or self._settings().work.task

    def find(self, folder: str) -> Task | None:
        """The task that was read from a folder (empty: the one of the settings)."""
        return self._tasks.get(self.worked_on(folder))

    def name_of(self, folder: str) -> str:
        """The name of a folder's task; of one that was not read its own."""
        task = self.find(folder)
        return task.name if task else Path(folder).name

    def task_with(self, digest: bytes) -> Task | None:
        """The task with this digest, of those whose folder was read; None: none is it."""
        return next((task for task in self._tasks.values() if task.digest == digest), None)

    def task_of(self, plan: Plan) -> Task:
        """The task of a plan. Raises NotFound."""
        if (task := self.task_with(plan.task)) is None:
            raise NotFound("the task's folder changed since the worker read it", hint="autoresearch work")
        return task

    def archived(self) -> frozenset[bytes]:
        """The tasks that a person archived on this machine."""
        return chosen(self._choices, Choice.ARCHIVED)

    def archived_orders(self, orders: Iterable[Order]) -> list[OrderCancelled]:
        """A task that a person archives while the node works on it is worked on no longer."""
        cancelled: list[OrderCancelled] = []
        archived = self.archived()
        for order in orders if archived else ():
            with suppress(AutoresearchError):  # whoever works on it meets the same error
                if (self.find(order.task) or self.load(self.worked_on(order.task))).digest in archived:
                    cancelled.append(OrderCancelled(order.number))
        return cancelled
