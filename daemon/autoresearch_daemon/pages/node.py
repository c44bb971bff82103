"""The pages about this node and its network, and what each has at hand: request, operations, templates.

What the node does now and next and why, verification as it goes on, participants, peers, tables of what waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar, cast

import msgspec
from aiohttp import web

from autoresearch.ask import questions, requests
from autoresearch.ask.node import StatusAnswer, TaskStatus, VotersAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.operation import Text, operation_of
from autoresearch.errors import NotFound
from autoresearch.face.columns.node import search_lists
from autoresearch.face.columns.people import verifications
from autoresearch.face.pages.boards import by_credit
from autoresearch.face.pages.rendering import Links, View, render
from autoresearch.log.standing.answers import Answer, CreditView, ParticipantView
from autoresearch_daemon.api.listen import may_control
from autoresearch_daemon.api.port import NODE, THREADS
from autoresearch_daemon.api.reading import ask, parameters
from autoresearch_daemon.events import now_ms

A = TypeVar("A", bound="Answer | Text")
P = TypeVar("P", bound=msgspec.Struct)
R = TypeVar("R")
# So much of a task's digest stands in the addresses of its pages.
TASK_CHARACTERS = 16

# Only what the pages ship with runs or is loaded; nothing frames them.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(slots=True)
class Asking:
    """One request for a page."""

    request: web.Request
    headers: dict[str, str] = field(default_factory=dict)  # of the answer
    is_task_known: bool = True
    about: str = ""  # the digest of the task that the page is about, where its address does not say
    _status: StatusAnswer | None = None

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

    async def ask(self, question: Callable[..., A], request: msgspec.Struct | None = None) -> A:
        """What the API answers; where no task is named, about the one of the node's status. Raises what it raises."""
        parameters = operation_of(question).takes() if request is None else request
        task = self.status().task
        return cast("A", await ask(self.request, question, parameters, named=task.digest if task else ""))

    async def ask_or_none(self, question: Callable[..., A], request: msgspec.Struct | None = None) -> A | None:
        """What the API answers, or None where it knows no such thing."""
        try:
            return await self.ask(question, request)
        except NotFound:
            return None

    def status(self) -> StatusAnswer:
        """The node's status, the same for all parts of the page."""
        if self._status is None:
            self._status = self.request.app[NODE].status()
        return self._status

    async def render(self, template: str, page: str, **values: object) -> web.Response:
        """A template as a response, filled in a thread: a long table takes tens of milliseconds."""
        view = await self._view(page)
        fill = partial(render, template, view, **values)
        text = await asyncio.get_running_loop().run_in_executor(self.request.app[THREADS], fill)
        response = web.Response(text=text, content_type="text/html", charset="utf-8", headers=self.headers)
        response.enable_compression()
        return response

    async def render_part(self, template: str, page: str, **values: object) -> web.Response:
        """A template that htmx puts into a page, and that a browser without it opens as a page of its own."""
        return await self.render(template, page, layout="part.html" if self.is_part else "base.html", **values)

    async def in_thread(self, work: Callable[[], R]) -> R:
        """What ``work`` returns, computed away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.request.app[THREADS], work)

    async def begin(self, response: web.StreamResponse) -> None:
        """Send the head of an answer that is written piece by piece."""
        response.headers.update(HEADERS)
        await response.prepare(self.request)

    async def digest(self) -> str | None:
        """The digest of that task; where no task is here, what the address names."""
        task = await self.task_status()
        return task.digest if task else self.task

    async def task_status(self) -> TaskStatus | None:
        """The task that the page is about: that of its run or the one that the address names, else the usual one."""
        status = self.status()
        reference = self.about or self.task or (status.task.digest if status.task else "")
        tasks = (await self.ask(questions.tasks, requests.TasksOf(archived=True))).tasks if reference else []
        named = [task for task in tasks if task.name == reference or task.digest.startswith(reference)]
        return named[0] if named else status.task

    async def _view(self, page: str) -> View:
        status, tasks, task = self.status(), (await self.ask(questions.tasks)).tasks, await self.task_status()
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


RUNS_SHOWN = 8


async def node_page(asking: Asking) -> web.Response:
    """The page of this node."""
    mine = requests.RunsOfParticipant(participant=asking.status().participant.key or "me", limit=RUNS_SHOWN)
    return await asking.render("node.html", "node", recent=(await asking.ask(questions.participant_runs, mine)).newest)


# So many of each kind are found at once, fewer while words are typed.
FOUND_MOST, FOUND_IN_PART = 50, 6


class OneParticipant(requests.OfTask, frozen=True, kw_only=True):
    """Whose page: a beginning of its root key."""

    key: str


async def participants_page(asking: Asking) -> web.Response:
    """Who takes part: credit, and whose verifications count."""
    credit = await asking.ask(questions.credit, requests.OfTaskAndParticipant())
    voters = await asking.ask(Node.voters)
    task = await asking.task_status()
    digest = task.digest if task else ""
    return await asking.render(
        "participants.html",
        "participants",
        credit=credit,
        rows=by_credit(credit.participants, digest),
        voters=voters,
    )


async def participant_page(asking: Asking) -> web.Response:
    """One participant: what it has done that others can count."""
    query = asking.parameters(OneParticipant)
    voters = await asking.ask(Node.voters)
    everywhere = await asking.ask_or_none(questions.credit, requests.OfTaskAndParticipant(participant=query.key))
    credit = everywhere.participants[0] if everywhere and everywhere.participants else None
    who = _named(query.key, credit, voters)
    keys = {who.key, *(credit.keys if credit else ())}
    runs = await asking.ask(
        questions.participant_runs, requests.RunsOfParticipant(participant=who.key, limit=RUNS_SHOWN)
    )
    evidence = await asking.ask_or_none(questions.evidence_list, requests.EvidenceOf(participant=who.key))
    status = asking.status()
    return await asking.render(
        "participant.html",
        "participants",
        who=who,
        credit=credit,
        verified=verifications(credit) if credit else 0,
        tasks={task.digest: task for task in everywhere.tasks} if everywhere else {},
        voters=voters,
        voter=next((voter for voter in voters.voters if voter.participant.key in keys), None),
        candidate=next((candidate for candidate in voters.candidates if candidate.participant.key in keys), None),
        is_me=status.participant.key in keys,
        hidden=(await asking.ask(questions.hidden, requests.HiddenOf(what=who.key))).hidden,
        newest=runs.newest,
        best=runs.best,
        total=runs.total,
        evidence=evidence.evidence if evidence else [],
        devices=runs.devices,
    )


def _named(key: str, credit: CreditView | None, voters: VotersAnswer) -> ParticipantView:
    """The participant whose key begins so. Raises NotFound."""
    participants = [voter.participant for voter in voters.voters] + [row.participant for row in voters.candidates]
    if credit is not None:
        participants = [*credit.known_as, *(ParticipantView(key=key, short=key[:8]) for key in credit.keys)]
    matching = [participant for participant in participants if participant.key.startswith(key)] or (
        participants if credit is not None else []
    )
    if not matching:
        raise NotFound("No participant of this log has such a key.", hint="autoresearch network credit")
    return matching[0]


async def queue_page(asking: Asking) -> web.Response:
    """Proposals that wait for a worker, runs in hand here, and what other nodes claimed."""
    try:
        claims = (await asking.ask(questions.claims, requests.OfTask(task=asking.task))).claims
    except NotFound:
        if asking.task:
            raise
        claims = []  # no task is here yet
    return await asking.render("queue.html", "queue", claims=claims)


async def peers_page(asking: Asking) -> web.Response:
    """The nodes that this one is connected to, or was."""
    return await asking.render("peers.html", "peers", answer=await asking.ask(Node.peers))


async def tasks_page(asking: Asking) -> web.Response:
    """The tasks of the log."""
    return await asking.render("tasks.html", "tasks", answer=await asking.ask(questions.tasks))


class FoundBy(requests.OfTask, frozen=True, kw_only=True):
    """What is looked for."""

    q: Annotated[str, msgspec.Meta(max_length=500)] = ""


async def find_page(asking: Asking) -> web.Response:
    """What has some words, whatever it is; while they are typed the part without a frame."""
    query = asking.parameters(FoundBy)
    most = FOUND_IN_PART if asking.is_part else FOUND_MOST
    answer = await asking.ask(questions.search, requests.SearchOf(query=query.q, task=query.task, limit=most))
    return await asking.render_part("find.html", "find", answer=answer, lists=search_lists(answer))


async def verifications_page(asking: Asking) -> web.Response:
    """The verification queue of a task."""
    answer = await asking.ask_or_none(questions.verifications, requests.OfTask(task=asking.task))
    if answer is None and asking.task:
        raise NotFound(f"There is no task {asking.task} here.", hint="autoresearch task list")
    return await asking.render("verifications.html", "verifications", answer=answer)
