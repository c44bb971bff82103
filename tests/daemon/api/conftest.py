"""A served API: real log, blobs, events, Unix socket; the node around them does no work."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from shutil import copytree

import aiohttp
import pytest
from autoresearch_daemon.api.app import make_app
from autoresearch_daemon.api.listen import Tcp, serve
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.local_state import LocalState

from autoresearch.ask.acts.settings import change_setting
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.discussion import ClaimAnswer, OpenClaim
from autoresearch.ask.lookup import find_task
from autoresearch.ask.node import (
    Health,
    JoinedAnswer,
    NetworkStatus,
    NewTaskAnswer,
    PeersAnswer,
    ProposedAnswer,
    QueueAnswer,
    QueuedRun,
    RunAccepted,
    ServicesAnswer,
    StatusAnswer,
    TrustAnswer,
    VotersAnswer,
)
from autoresearch.ask.people.attestation import attest_answer
from autoresearch.ask.people.participants import AttestorAnswer
from autoresearch.ask.registry.releases import prepared_for, release_answer
from autoresearch.ask.runs.boards import task_status
from autoresearch.errors import NotFound, Refused
from autoresearch.record.kinds import Withdrawal
from autoresearch.services import Service
from tests.ask.notebook import Notebook, tell


class Signing:
    """What publications need of a node's notebook, with the keys of the story."""

    def __init__(self, notebook):
        self._notebook = notebook
        self.log, self.blobs, self.author = notebook.log, notebook.blobs, notebook.mine.public

    def now_ms(self):
        return self._notebook.now_ms

    def archived(self):
        return frozenset()

    def publish_note(self, body, now_ms, *, links=()):
        return self.log.records.get(self._notebook.append("note", body, links=links))

    def publish_history(self, notes, now_ms):
        return len([self._notebook.append("note", body) for body in notes])

    def withdraw(self, record, now_ms, *, reason=""):
        body = Withdrawal(reason=reason)
        return self.log.records.get(self._notebook.append("withdrawal", body, links=(record.id,)))


class SmallNode:
    """A node without workers: it notes what it is asked, and its state is what was asked last."""

    def __init__(self, notebook, local):
        self.notebook = notebook
        self.log, self.blobs = notebook.log, notebook.blobs
        self.local = LocalState(local)
        self.choices = local
        self.events = Events(self.local)
        self.requests = []
        self.state = "idle"
        self.front = None  # the task of the order in front, by name
        self.readiness = Health(status="ready")
        self.listeners = 0
        self.changed = asyncio.Event()

    async def publish(self, work):
        return work(Signing(self.notebook))

    def now_ms(self):
        return self.notebook.now_ms

    def device(self):
        return self.notebook.mine

    def author(self):
        return self.notebook.mine.public

    def status(self):
        try:
            task = task_status(self.log, find_task(self.log, self.front))
        except NotFound:
            task = None
        return StatusAnswer(
            state=self.state, why="asked", reason="because", records=self.log.records.count(), task=task, version="0"
        )

    def ready(self):
        return self.readiness

    async def peers(self):
        return PeersAnswer(network=NetworkStatus(state="off"))

    async def dial(self, request):
        self.requests.append(("dial", request))
        return await self.peers()

    async def verify(self, request):
        self.requests.append(("verify", request))
        return RunAccepted(assignment="check-1")

    def health(self):
        return Health(status="alive")

    def attestation(self):
        return attest_answer(self.log, self.author(), now_ms=self.notebook.now_ms)

    async def attest(self, request):
        self.requests.append(("attest", request))
        return self.attestation()

    async def confirm(self, request):
        self.requests.append(("confirm", request))
        return self.attestation()

    def attestor(self):
        return AttestorAnswer(attestor="0" * 64, trusted=False, mailed=0, attested=0, refused=0, acts=[])

    def withdraw_attestation(self, request):
        self.requests.append(("withdraw", request))
        return self.attestor()

    def allow(self, request):
        self.requests.append(("allow", request))
        return self.attestor()

    async def check_evidence(self, request):
        self.requests.append(("check evidence", request))
        return RunAccepted(assignment="evidence-1")

    async def block(self, request):
        self.requests.append(("block", request))
        return await self.peers()

    async def fetch(self, request):
        self.requests.append(("fetch", request))
        return Health(status="here")

    async def fetch_blob(self, blob, seconds):
        self.requests.append(("fetch", blob))

    def publish_release(self, request):
        prepared = prepared_for(request)
        release = self.notebook.append("release", prepared.body(self.blobs.put(prepared.bundle)))
        return release_answer(self.log, release, me=self.author(), notes=prepared.notes)

    def claim(self, request):
        self.requests.append(("claim", request))
        return ClaimAnswer(
            claim=OpenClaim(
                id="bafy",
                title="x = 1",
                source_digest="00",
                replicate=0,
                time_ms=0,
                until_ms=1,
                author=self.author().hex(),
            )
        )

    def ask(self, request):
        task = find_task(self.log, request.task or None, author=self.author())
        return ask_answer(self.log, self.blobs, task, request.question, now_ms=now_ms(), me=self.author())

    def set_name(self, request):
        return self._note("named", request)

    def set_setting(self, request):
        self.requests.append(("set", request))
        return change_setting(self.choices.with_name("config.toml"), {}, request)

    def join_network(self, request):
        self.requests.append(("join", request))
        return JoinedAnswer(network="tea", network_id="00", restarts=True, note="This node is in the network tea now.")

    def new_task(self, request):
        self.requests.append(("new task", request))
        about = {"folder": request.folder, "name": "mine", "metric": "loss", "direction": "minimize"}
        return NewTaskAnswer(**about, note=f"{request.folder} is a task now: loss, minimize")

    def voters(self):
        return VotersAnswer(network="00" * 16, named=False, founder=False, voters=[], least=4)

    def admit(self, request):
        self.requests.append(("admit", request))
        return self.voters()

    def services(self):
        place = {"address": "127.0.0.1", "port": 5546, "public_key": "ab" * 32}
        about = {"name": "hall", "kind": "env", "component": "environment.corridor", "project": "/hall"}
        return ServicesAnswer(services=[Service(**about, **place, pid=1, since_ms=2, requests=3)])

    def trust(self):
        self.requests.append(("trust", None))
        return TrustAnswer(changed=False, attestors=[], needed=2, participants=[])

    def _note(self, state, request=None):
        self.requests.append((state, request))
        self.state = state
        return self.status()

    def work(self, request):
        if request.task == "refused":
            raise Refused("the disk is full", hint="free some")
        if request.task == "broken":
            raise RuntimeError("a defect with secret insides")
        return self._note("working", request)

    def cancel_order(self, request):
        return self._note("cancelled", request)

    def pause(self, request):
        return self._note("paused", request)

    def resume(self):
        return self._note("idle")

    def finish(self):
        return self._note("finishing")

    async def propose(self, request):
        self._note("proposed", request)
        return ProposedAnswer(proposed=["proposal-1"], title="x = 1")

    def proposals(self):
        return QueueAnswer(queue=[QueuedRun(name="proposal-1", title="x = 1", task="00", proposed_ms=0)])

    def drop_proposal(self, request):
        self._note("dropped", request.name)
        return QueueAnswer(queue=[])

    def restart(self):
        self._note("restarting")
        return Health(status="restarting")

    def stop(self):
        self._note("stopping")
        return Health(status="stopping")

    def events_since(self, number):
        return self.events.since(number)

    @contextmanager
    def subscribe(self):
        with self.events.subscribe() as queue:
            self._count(1)
            try:
                yield queue
            finally:
                self._count(-1)

    def _count(self, more):
        self.listeners += more
        self.changed.set()

    async def listened_by(self, count):
        """Wait until so many listen."""
        while self.listeners != count:
            self.changed.clear()
            await self.changed.wait()


class Client:
    """What a program does with the socket."""

    def __init__(self, session, base):
        self.session = session
        self.base = base

    async def ask(self, method, path, expected=200, **options):
        async with self.session.request(method, self.base + path, **options) as response:
            body = await response.text()
            assert response.status == expected, body
            return json.loads(body) if response.content_type == "application/json" else body

    async def get(self, path, expected=200, **options):
        return await self.ask("GET", path, expected, **options)

    async def post(self, path, body=None, expected=200):
        return await self.ask("POST", path, expected, data=None if body is None else json.dumps(body))


@asynccontextmanager
async def served(node, path, *, port=0, token=None):
    """A client of the API of ``node``."""
    connector = aiohttp.UnixConnector(str(path), limit=0)
    serving = serve(make_app(node), socket=path, tcp=Tcp(port, token) if port else None)
    async with serving, aiohttp.ClientSession(connector=connector) as session:
        yield Client(session, "http://localhost")


@pytest.fixture(scope="session")
def written_log(tmp_path_factory):
    """A log with a story in it, written once: every record waits for the disk."""
    folder = tmp_path_factory.mktemp("told")
    with Notebook.at(folder) as notebook:
        return folder, tell(notebook)


@pytest.fixture
def story(written_log, tmp_path):
    folder, written = written_log
    copytree(folder, tmp_path / "copy")
    keys = {"mine": written.notebook.mine, "other": written.notebook.other, "now_ms": written.notebook.now_ms}
    with Notebook.at(tmp_path / "copy", **keys) as notebook:
        yield replace(written, notebook=notebook)


@pytest.fixture
def node(story, tmp_path):
    made = SmallNode(story.notebook, tmp_path / "local.sqlite")
    yield made
    made.local.close()


@pytest.fixture
async def client(node, tmp_path):
    async with served(node, tmp_path / "run" / "api.sock") as made:
        yield made
