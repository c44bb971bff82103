"""Every metric is on its page, and the dashboard asks for none that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from autoresearch_daemon.api.events import machine_metrics, task_metrics, work_metrics
from prometheus_client.core import Metric

from autoresearch.ask.node import (
    CardStatus,
    MachineStatus,
    NetworkStatus,
    RunInHand,
    StatusAnswer,
    StorageStatus,
    TaskStatus,
    WorkerStatus,
)
from autoresearch.log.standing.answers import ProgramView

DOCS = Path(__file__).parents[2] / "docs"
OF_THE_NODE = {"build_info", "ready", "records", "records_mine"}
OF_THE_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def names() -> set[str]:
    """The names of the metrics of a node that knows everything."""
    card = CardStatus(name="a card", memory_bytes=1, memory_total_bytes=2, watts=3.0, celsius=4.0)
    status = StatusAnswer(
        state="working",
        why="asked",
        reason="",
        net=NetworkStatus(state="running"),
        storage=StorageStatus(blobs_bytes=1, quota_bytes=2),
        machine=MachineStatus(processors=1, busy=0.5, memory_bytes=1, memory_total_bytes=2, cards=[card]),
        workers=[WorkerStatus(name="w1", device="cpu", why="running", reason="", run=RunInHand(title="x"))],
    )
    best = ProgramView(
        position=1,
        id="b",
        source_digest="",
        score=1.0,
        state="confirmed",
        title="",
        author="",
        parent=None,
        time_ms=0,
        reported=1.0,
        verified=1.0,
    )
    task = TaskStatus(name="t", digest="", metric="m", direction="minimize", baseline=2.0, best=best, closed=0.5)
    metrics: list[Metric] = [*work_metrics(status), *machine_metrics(status), *task_metrics(task, {})]
    assert all(metric.samples for metric in metrics), [metric.name for metric in metrics if not metric.samples]
    return {metric.name for metric in metrics} | {f"autoresearch_{name}" for name in OF_THE_NODE}


def test_every_metric_is_on_its_page() -> None:
    page = (DOCS / "reference/api.md").read_text()
    assert set(re.findall(r"`(autoresearch_\w+)`", page)) == names()


def test_the_dashboard_asks_for_metrics_that_are_there() -> None:
    board = json.loads((DOCS / "grafana.json").read_text())
    expressions = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    used = {name for expression in expressions for name in re.findall(r"(?:autoresearch|process)_\w+", expression)}
    left = {f"autoresearch_{name}" for name in ("worker", "build_info")}
    assert used == (names() - left) | OF_THE_PROCESS
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert board["templating"]["list"][1]["query"] == "label_values(autoresearch_build_info, instance)"
