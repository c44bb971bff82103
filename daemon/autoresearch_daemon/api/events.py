"""Events as they happen, as server-sent events with ids, replay after a gap and a cap on listeners.

Also the node in numbers, for Prometheus, read when asked. A listener that was away sends the last id it saw
(``Last-Event-ID``, which browsers do by themselves, or ``?since=``) and gets what it missed. When some of that is no
longer kept it gets an event ``stale`` first: read the state again. Events with id 0 (progress) are shown once and not
replayed. Formats: https://html.spec.whatwg.org/multipage/server-sent-events.html,
https://prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

from aiohttp import web
from aiohttp_sse import EventSourceResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from autoresearch.ask.node import Event, Health, StatusAnswer, TaskStatus
from autoresearch.ask.operation import METRICS
from autoresearch.ask.requests import EventsSince
from autoresearch.errors import Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import Failure
from autoresearch.log.standing.queries import statistics
from autoresearch.text import json_text, one_line
from autoresearch.words import RunStatus, WorkState
from autoresearch_daemon.api.listen import is_cross_site, is_from_owner
from autoresearch_daemon.api.port import DESK, NODE, THREADS, answer
from autoresearch_daemon.api.reading import parameters, taken
from autoresearch_daemon.handlers import ApiHandlers

STALE = "stale"
PING_SECONDS = 15.0
# A listener that takes nothing for this long is cut off; the kernel's buffer holds hundreds of events before that.
SEND_TIMEOUT_SECONDS = 30.0
# Each listener holds a connection and a queue; more than a few are a mistake.
MAXIMUM_LISTENERS = 32
# So many of these places are for who has the token or came over the Unix socket: others can't take them.
RESERVED_LISTENERS = 8
LAST_EVENT_ID = "Last-Event-ID"
# One future for each listener, whose result ends the stream; and whether it is the owner's.
ENDINGS = web.AppKey("endings", dict[asyncio.Future[None], bool])


async def stream_events(request: web.Request) -> web.StreamResponse:
    """Events as they happen, as server-sent events; after a gap, first those that were missed."""
    query = parameters(EventsSince, request)
    cursor = header_cursor(request.headers.get(LAST_EVENT_ID), query.since)
    node = request.app[NODE]
    endings = request.app[ENDINGS]
    is_owners, count = is_from_owner(request), len(endings)
    if not is_owners and is_cross_site(request):
        refusal = Failure(error="the events are not for pages of other sites", exit_status=Refused.exit_status)
        return answer(refusal, status=403)
    guests = count - sum(endings.values())
    if count >= MAXIMUM_LISTENERS or (not is_owners and guests >= MAXIMUM_LISTENERS - RESERVED_LISTENERS):
        refusal = Failure(error=f"{count} listeners follow the events already", exit_status=Refused.exit_status)
        return answer(refusal, status=503)
    ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    endings[ending] = is_owners
    stream = EventSourceResponse(ping_interval=PING_SECONDS, send_timeout=SEND_TIMEOUT_SECONDS)
    try:
        await stream.prepare(request)
        async with stream:
            await follow(node, stream, cursor, ending)
    except (ConnectionResetError, TimeoutError):
        pass  # the listener left, or takes nothing: the stream has ended either way
    finally:
        del endings[ending]
    return stream


async def follow(
    node: ApiHandlers, stream: EventSourceResponse, cursor: int | None, ending: asyncio.Future[None]
) -> None:
    """Send what the cursor missed, then what happens, until the daemon stops or the listener falls behind.

    That it stops is the last that is sent. A listener that leaves cancels the handler.
    """
    with node.subscribe() as queue:
        # Subscribed before the replay is read: an event between the two comes twice and is dropped once, never lost.
        replayed = 0
        for event in missed(node, cursor):
            await send(stream, event)
            replayed = event.id
        while not (ending.done() and queue.empty()):
            if queue.empty():
                coming = asyncio.ensure_future(queue.get())
                try:
                    await asyncio.wait((coming, ending), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    coming.cancel()
                if not coming.done():
                    continue
                event = coming.result()
            else:
                event = queue.get_nowait()
            if event.kind == STALE:
                return await send(stream, event)
            if event.id == 0 or event.id > replayed:
                await send(stream, event)
    return None


def missed(node: ApiHandlers, cursor: int | None) -> list[Event]:
    """What happened since the cursor; one ``stale`` event when that is no longer known."""
    if cursor is None:
        return []
    events = node.events_since(cursor)
    if events is None:
        text = "some events since then are no longer kept: read the state again"
        return [Event(id=0, kind=STALE, time_ms=time.time_ns() // 1_000_000, text=text)]
    return events


async def send(stream: EventSourceResponse, event: Event) -> None:
    """Write one event; an id goes with those alone that a replay gives again: it moves the listener's cursor."""
    text = json_text(event)
    is_replayed = event.id and event.kind != STALE
    await stream.send(text, id=str(event.id) if is_replayed else None, event=event.kind)


def header_cursor(header: str | None, since: int | None) -> int | None:
    """The id after which to go on, or None: from now on.

    Raises:
        UsageError: the header is not an event's id.
    """
    if header is None:
        return since
    if not (header.isascii() and header.isdigit() and len(header) <= 16):
        raise UsageError(f"the header {LAST_EVENT_ID} holds an event's number")
    return int(header)


async def end_streams(app: web.Application) -> None:
    """End all streams, so that a stopping daemon need not wait for its listeners."""
    for ending in app[ENDINGS]:
        if not ending.done():
            ending.set_result(None)


PREFIX = "autoresearch_"


async def write_metrics(request: web.Request) -> web.StreamResponse:
    """The node in numbers."""
    await taken(METRICS, request)
    node = request.app[NODE]
    collector = NodeCollector(node.status(), node.ready(), request.app[DESK].log)
    loop = asyncio.get_running_loop()
    text = await loop.run_in_executor(request.app[THREADS], exposition, collector)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def exposition(node: NodeCollector) -> bytes:
    """All metrics in the text format: of the node, and of its process (memory, CPU, open files, start time)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(node)
    return generate_latest(registry)


class NodeCollector(Collector):
    """The node at the moment of asking. Counts in the log, so it is for a thread."""

    def __init__(self, status: StatusAnswer, health: Health, log: Log) -> None:
        self.status = status
        self.health = health
        self.log = log

    def collect(self) -> Iterator[Metric]:
        """Every metric of the node."""
        status = self.status
        yield InfoMetricFamily(PREFIX + "build", "The version that runs", {"version": status.version})
        yield GaugeMetricFamily(PREFIX + "records", "Records in the log here", status.records)
        yield GaugeMetricFamily(PREFIX + "records_mine", "Records of this participant", status.mine)
        yield GaugeMetricFamily(PREFIX + "ready", "Whether the node is ready", self.health.status == "ready")
        yield from work_metrics(status)
        yield from machine_metrics(status)
        if status.task:
            numbers = statistics(self.log, bytes.fromhex(status.task.digest))
            yield from task_metrics(status.task, numbers.statuses)


def work_metrics(status: StatusAnswer) -> Iterator[Metric]:
    """The state of the node and of its workers."""
    state = GaugeMetricFamily(PREFIX + "work_state", "1 for the state that the node is in", labels=["state"])
    for word in WorkState:
        state.add_metric([word], status.state == word)
    yield state
    workers = GaugeMetricFamily(PREFIX + "worker", "1 for what each worker does", labels=["worker", "device", "why"])
    progress = GaugeMetricFamily(PREFIX + "run_fraction", "Share of the run in hand that is done", labels=["worker"])
    for worker in status.workers:
        workers.add_metric([worker.name, worker.device, worker.why], 1)
        if worker.run:
            progress.add_metric([worker.name], worker.run.fraction)
    yield workers
    yield progress


def machine_metrics(status: StatusAnswer) -> Iterator[Metric]:
    """What the node moves and keeps, and what the whole machine is busy with, as far as that is known."""
    net, machine, storage = status.net, status.machine, status.storage
    numbers: dict[str, tuple[str, float]] = {
        "proposals": ("Proposed programs that wait for a worker", len(status.queue))
    }
    if net:
        numbers["peers"] = ("Connected peers", net.connected)
        numbers["network_today_bytes"] = ("Bytes that the network moved since midnight UTC", net.bytes_today)
    if storage:
        numbers["blobs_bytes"] = ("Sources, logs and checkpoints that are kept here", storage.blobs_bytes)
    if machine:
        numbers["machine_busy_ratio"] = ("Share of the machine's processors that is busy", machine.busy)
        numbers["machine_memory_bytes"] = ("Memory of the machine that is used", machine.memory_bytes)
    for name, (documentation, value) in numbers.items():
        yield GaugeMetricFamily(PREFIX + name, documentation, value)
    for name, documentation in (
        ("celsius", "Temperature of a graphics card"),
        ("watts", "Power of a graphics card"),
        ("memory_bytes", "Memory of a graphics card that is used"),
    ):
        family = GaugeMetricFamily(PREFIX + f"card_{name}", documentation, labels=["card"])
        for number, card in enumerate(machine.cards if machine else ()):
            if (value := getattr(card, name)) is not None:
                family.add_metric([f"{number} {one_line(card.name)}"], value)
        yield family


def task_metrics(task: TaskStatus, statuses: Mapping[str, int]) -> Iterator[Metric]:
    """How far the network has come with the task."""
    labels = ["task", "metric", "direction"]
    name = one_line(task.name)
    values = [name, one_line(task.metric), one_line(task.direction)]
    runs = GaugeMetricFamily(PREFIX + "runs", "Runs of the task in the log here", labels=["task", "status"])
    for word in RunStatus:
        runs.add_metric([name, word], statuses.get(word, 0))
    yield runs
    figures = {
        "best_verified": ("What verifiers measured of the best program", task.best.verified if task.best else None),
        "best_reported": ("What the author of the best program reports", task.best.reported if task.best else None),
        "baseline_reported": ("The reported value of the task's baseline", task.baseline),
        "closed_ratio": ("Share of the way from the baseline to the floor", task.closed),
    }
    for figure, (documentation, value) in figures.items():
        if value is not None:
            family = GaugeMetricFamily(PREFIX + figure, documentation, labels=labels)
            family.add_metric(values, value)
            yield family
