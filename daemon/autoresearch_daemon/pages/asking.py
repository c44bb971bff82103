"""What a page has at hand while it is answered: the request, the API's operations, the templates."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import msgspec
from aiohttp import web

from autoresearch.api import Answer, Operation, StatusAnswer, TaskStatus, Text, operations
from autoresearch.pages import Links, View, render
from autoresearch_daemon.api.guard import may_control
from autoresearch_daemon.api.readers import NODE, THREADS
from autoresearch_daemon.api.reading import READERS
from autoresearch_daemon.api.routes import ask, parameters, read
from autoresearch_daemon.clock import now_ms

A = TypeVar("A", bound="Answer | Text")
P = TypeVar("P", bound=msgspec.Struct)


@dataclass(slots=True)
class Asking:
    """One request for a page."""

    request: web.Request
    headers: dict[str, str] = field(default_factory=dict)  # of the answer
    is_task_known: bool = True

    def forget_task(self) -> None:
        """Show what stands around the page for the usual task: the one that the address names may not exist."""
        self.is_task_known = False

    @property
    def is_part(self) -> bool:
        """Whether htmx asks for a part of a page, and not a browser for the whole."""
        return self.request.headers.get("HX-Request") == "true"

    def parameters(self, model: type[P]) -> P:
        """The path and the query as a model. Raises UsageError."""
        return parameters(model, self.request)

    @property
    def task(self) -> str | None:
        """The task that the address names."""
        return (self.request.query.get("task") or None) if self.is_task_known else None

    async def ask(self, operation: Operation[A], asked: msgspec.Struct | None = None) -> A:
        """What the API answers to an operation. Raises what it raises."""
        given = operation.takes() if asked is None else asked
        if reading := READERS.get(operation):
            return cast("A", await read(self.request, reading, given))
        name = next(name for name, one in vars(operations).items() if one is operation).lower()
        return cast("A", await ask(self.request.app[NODE], name, given))

    def status(self) -> StatusAnswer:
        """The node's status."""
        return self.request.app[NODE].status()

    async def render(self, template: str, page: str, **values: object) -> web.Response:
        """A template as a response, filled in a thread: a long table takes tens of milliseconds."""
        view = await self._view(page)
        fill = partial(render, template, view, **values)
        text = await asyncio.get_running_loop().run_in_executor(self.request.app[THREADS], fill)
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=self.headers)

    async def _view(self, page: str) -> View:
        status, tasks = self.status(), (await self.ask(operations.TASKS)).tasks
        return View(
            page=page,
            links=Links(task=self.task or ""),
            now_ms=now_ms(),
            task=self._chosen(tasks, status),
            tasks=tasks,
            status=status,
            read_only=not may_control(self.request),
        )

    def _chosen(self, tasks: list[TaskStatus], status: StatusAnswer) -> TaskStatus | None:
        """The task that the page is about: the one that the address names, else the one worked on last."""
        wanted = self.task or (status.task.digest if status.task else "")
        named = [task for task in tasks if task.name == wanted or task.digest.startswith(wanted)]
        return named[0] if wanted and named else status.task
