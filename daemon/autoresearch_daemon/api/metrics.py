"""The node in numbers, for Prometheus. Read when asked: nothing is counted twice.

Format: https://prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from autoresearch.api import Health, StatusAnswer, TaskStatus, best_value, operations
from autoresearch.log import Log
from autoresearch.sanitise import one_line
from autoresearch.views import statistics
from autoresearch.words import RunStatus, WorkState
from autoresearch_daemon.api.readers import NODE, SHELF, THREADS
from autoresearch_daemon.api.routes import taken

PREFIX = "autoresearch_"


async def write_metrics(request: web.Request) -> web.StreamResponse:
    """The node in numbers."""
    await taken(operations.METRICS, request)
    node = request.app[NODE]
    collector = NodeCollector(node.status(), node.ready(), request.app[SHELF].log)
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


def task_metrics(task: TaskStatus, statuses: Mapping[str, int]) -> Iterator[Metric]:
    """How far the network has come with the task."""
    labels = ["task", "metric", "direction"]
    name = one_line(task.name)
    values = [name, one_line(task.metric), one_line(task.direction)]
    runs = GaugeMetricFamily(PREFIX + "runs", "Runs of the task in the log here", labels=["task", "status"])
    for word in RunStatus:
        runs.add_metric([name, word], statuses.get(word, 0))
    yield runs
    best = best_value(task.best) if task.best else None
    figures = {
        "best_value": ("The best value of the task's metric, confirmed or else reported", best),
        "baseline_value": ("The value of the task's baseline", task.baseline),
        "closed_ratio": ("Share of the way from the baseline to the floor", task.closed),
    }
    for figure, (documentation, value) in figures.items():
        if value is not None:
            family = GaugeMetricFamily(PREFIX + figure, documentation, labels=labels)
            family.add_metric(values, value)
            yield family
