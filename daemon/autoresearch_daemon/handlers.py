"""What the API asks of the node, and what it gets; acts of one subject stand beside their part."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import msgspec

from autoresearch.ask import requests
from autoresearch.ask.acts.joining import find_network, join, joined_answer
from autoresearch.ask.acts.new_tasks import make_task
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.acts.settings import AT_NEXT_START, FROM_NOW_ON, change_setting
from autoresearch.ask.acts.trial_runs import NewTaskContext
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.discussion import AskAnswer, CheatAnswer
from autoresearch.ask.lookup import find_task
from autoresearch.ask.node import Check, ConfigAnswer, Health, JoinedAnswer, NewTaskAnswer, StatusAnswer
from autoresearch.ask.registry.components import ReleaseAnswer
from autoresearch.ask.registry.releases import check_new_release, prepared_for, release_answer
from autoresearch.record.record import Record
from autoresearch.settings import parse_setting
from autoresearch.trust.keys import KeyPair
from autoresearch.words import Result
from autoresearch_daemon.acts import act, acts_of
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.minds.proposing import in_sentences, written_cheat
from autoresearch_daemon.node import Node
from autoresearch_daemon.peers.acts import PeerActs
from autoresearch_daemon.runs.acts import WorkActs
from autoresearch_daemon.service.effects import SeekLeaders
from autoresearch_daemon.status import status_answer

R = TypeVar("R")
# Whoever asks again and again whether the node is ready has the log read no more often than this.
READY_SECONDS = 1.0


class ApiHandlers:
    """A node as its API sees it: it has each act as the method of its name."""

    def __init__(self, node: Node) -> None:
        self._node, self._parts = node, node.parts
        self.log, self.blobs = node.parts.notebook.log, node.parts.notebook.blobs
        self.choices, self.fetch_blob = node.parts.paths.home_local, node.parts.fetch
        self.events_since, self.subscribe = node.parts.events.since, node.parts.events.subscribe
        self.pages = ""  # their address, while they are served
        self._turn = asyncio.Lock()
        self._conditions: list[Check] = []
        self._looks_again = 0.0
        self.orders, attesting = WorkActs(node.parts, self.status), node.parts.attesting
        vars(self).update(acts_of(self.orders, PeerActs(node.parts)))
        self.attestation, self.attest, self.confirm = attesting.standing, attesting.ask, attesting.confirm
        self.attestor, self.withdraw_attestation, self.allow = attesting.log, attesting.withdraw, attesting.allow

    def now_ms(self) -> int:
        """The clock."""
        return now_ms()

    def device(self) -> KeyPair:
        """The device key that signs here."""
        return self._parts.notebook.identity.device

    async def publish(self, work: Callable[[Notebook], R]) -> R:
        """What ``work`` returns, given the notebook on the thread that writes; then what leads may differ."""
        try:
            return await self._parts.thread.publish(self._parts.notebook, work)
        finally:
            self._parts.take(SeekLeaders())

    @act
    async def set_setting(self, request: requests.SettingRequest) -> ConfigAnswer:
        if request.name == "work.verify_share":
            share = parse_setting(request.name, request.value, float)
            for order in self._parts.service.queue.agenda.orders:
                self.orders.check_share(share, order.runs_left)
        async with self._turn:  # each change reads the file and writes it again
            answer = await asyncio.to_thread(change_setting, self._parts.paths.settings, os.environ, request)
        [changed] = answer.settings
        if changed.live and changed.origin != "environment":
            self._node.go_by(changed)
        note = answer.note or (FROM_NOW_ON if changed.live else AT_NEXT_START)
        return msgspec.structs.replace(answer, note=note)

    @act
    async def join_network(self, request: requests.JoinRequest) -> JoinedAnswer:
        """The answer still goes out before the node begins again."""
        paths, where = self._parts.paths, request.where.strip()
        joined = await asyncio.to_thread(lambda: join(paths, find_network(paths, where)))
        restarts = not joined.was_member or not self._parts.settings.network.enabled
        if restarts:
            self._node.end(again=True)
        return joined_answer(joined, restarts=restarts)

    @act
    async def new_task(self, request: requests.NewTaskRequest) -> NewTaskAnswer:
        node, notes, work = self._node, list[str](), self._parts.settings_of_file().work
        context = NewTaskContext(self._parts.paths, work, notes.append, cancelled=lambda: node.is_ending)
        answer = await asyncio.to_thread(make_task, request, context)
        if request.work:
            await self.orders.work(requests.WorkRequest(task=answer.folder))
            notes.append("this node works on it")
        return msgspec.structs.replace(answer, note=" · ".join([answer.note, *notes]))

    @act
    def set_name(self, request: requests.NameRequest) -> StatusAnswer:
        self._parts.notebook.publish_name(request.name, now_ms())
        return self.status()

    @act
    async def publish_release(self, request: requests.PublishRequest) -> ReleaseAnswer:
        """It is read or fetched beside the event loop, and stored there."""
        prepared = await asyncio.to_thread(prepared_for, request)
        author = self._parts.notebook.author

        def publish(notebook: Notebook) -> Record:
            check_new_release(notebook.log, prepared, author)
            return notebook.publish_release(prepared, now_ms())

        record = await self._parts.thread.publish(self._parts.notebook, publish)
        return release_answer(self.log, record.id, me=author, notes=prepared.notes)

    @act
    async def ask(self, request: requests.AskRequest) -> AskAnswer:
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: requests.AskRequest) -> AskAnswer:
        """A question reads many records, and a model thinks for minutes."""
        with self._parts.reading() as (log, blobs):
            me, archived = self._parts.notebook.author, self._parts.folders.archived()
            task = find_task(log, request.task or None, author=me, archived=archived)
            plain = ask_answer(log, blobs, task, request.question, now_ms=now_ms(), me=me)
        return in_sentences(plain, self._parts.settings_of_file(), self.choices) if request.model else plain

    @act
    async def cheat(self, request: requests.CheatRequest) -> CheatAnswer:
        spool = self._parts.paths.spool
        return await asyncio.to_thread(written_cheat, request, self._parts.settings_of_file(), self.choices, spool)

    @act
    def restart(self) -> Health:
        """The answer still goes out."""
        self._node.end(again=True)
        return Health(status="restarting")

    @act
    def stop(self) -> Health:
        """The answer still goes out."""
        self._node.end()
        return Health(status="stopping")

    @act
    def health(self) -> Health:
        return Health(status="alive")

    @act
    def ready(self) -> Health:
        """The log is read once for all who ask in a second."""
        if monotonic() >= self._looks_again:
            self.status()
        reasons = [sentence for _, sentence in self._parts.service.status().blocks]
        reasons += [check.sentence for check in self._conditions if check.result == Result.FAILED]
        status = "not ready" if reasons else "ready"
        return Health(status=status, reason=reasons[0] if reasons else "", conditions=self._conditions)

    @act
    def status(self) -> StatusAnswer:
        """Where the log can't be read, what ails the node."""
        answer = status_answer(self._parts, self._parts.conditions(), self.pages)
        self._conditions, self._looks_again = answer.conditions, monotonic() + READY_SECONDS
        return answer
