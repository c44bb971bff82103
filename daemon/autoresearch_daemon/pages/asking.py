"""What a page has at hand while it is answered: the request, the API's operations, the templates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import msgspec
from aiohttp import web

from autoresearch.api import Answer, Operation, StatusAnswer, TasksOf, TaskStatus, Text, operations
from autoresearch.errors import NotFound
from autoresearch.pages import Links, View, render
from autoresearch_daemon.api.guard import may_control
from autoresearch_daemon.api.readers import NODE, THREADS
from autoresearch_daemon.api.reading import READERS
from autoresearch_daemon.api.routes import ask, parameters, read
from autoresearch_daemon.clock import now_ms

A = TypeVar("A", bound="Answer | Text")
P = TypeVar("P", bound=msgspec.Struct)
R = TypeVar("R")
# So much of a task's digest stands in the addresses of its pages.
TASK_CHARACTERS = 16


@dataclass(slots=True)
class Asking:
    """One request for a page."""

    request: web.Request
    headers: dict[str, str] = field(default_factory=dict)  # of the answer
    is_task_known: bool = True
    about: str = ""  # the digest of the task that the page is about, where its address does not say

    def about_task(self, digest: str) -> None:
        """Show what stands around the page for this task: that of the run which the address names."""
        self.about = digest

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

    async def found(self, operation: Operation[A], asked: msgspec.Struct | None = None) -> A | None:
        """What the API answers, or None where it knows no such thing."""
        try:
            return await self.ask(operation, asked)
        except NotFound:
            return None

    def status(self) -> StatusAnswer:
        """The node's status."""
        return self.request.app[NODE].status()

    async def render(self, template: str, page: str, **values: object) -> web.Response:
        """A template as a response, filled in a thread: a long table takes tens of milliseconds."""
        view = await self._view(page)
        fill = partial(render, template, view, **values)
        text = await asyncio.get_running_loop().run_in_executor(self.request.app[THREADS], fill)
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=self.headers)

    async def render_part(self, template: str, page: str, **values: object) -> web.Response:
        """A template that htmx puts into a page, and that a browser without it opens as a page of its own."""
        return await self.render(template, page, layout="part.html" if self.is_part else "base.html", **values)

    async def in_thread(self, work: Callable[[], R]) -> R:
        """What ``work`` returns, computed away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.request.app[THREADS], work)

    async def task_status(self) -> TaskStatus | None:
        """The task that the page is about: that of its run or the one that the address names, else the usual one."""
        status = self.status()
        wanted = self.about or self.task or (status.task.digest if status.task else "")
        tasks = (await self.ask(operations.TASKS, TasksOf(archived=True))).tasks if wanted else []
        named = [task for task in tasks if task.name == wanted or task.digest.startswith(wanted)]
        return named[0] if named else status.task

    async def _view(self, page: str) -> View:
        status, tasks, task = self.status(), (await self.ask(operations.TASKS)).tasks, await self.task_status()
        is_other = bool(self.about) and (status.task is None or status.task.digest != self.about)
        return View(
            page=page,
            links=Links(task=self.about[:TASK_CHARACTERS] if is_other else self.task or ""),
            now_ms=now_ms(),
            task=task,
            tasks=tasks,
            status=status,
            read_only=not may_control(self.request),
        )
