"""What is asked of a node before it has tested its sandbox waits for that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from autoresearch_daemon.node import Node
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.inputs import WorkAsked

from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.kinds import Run
from autoresearch.settings import NetworkSection, Settings
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import RunStatus, Why, WorkState
from tests.daemon.daemons import wait_for
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow


def test_work_that_is_asked_for_while_the_node_starts_is_done_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))  # for the worker, a process of its own
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    paths.create()
    task = write_toy_task(tmp_path / "toy")

    asyncio.run(_ask_early(paths, task))

    with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
        runs = [record.body for record in log.records.newest(kind="run") if isinstance(record.body, Run)]
    assert [(run.status, run.sandbox > 0) for run in runs] == [(RunStatus.OK, True)]


async def _ask_early(paths: Paths, task: Path) -> None:
    node = Node(paths, Settings(network=NetworkSection(enabled=False)), ["cpu"])
    try:
        node.take(WorkAsked(Order(str(task), runs_left=1)))
        now = node.parts.service.status()
        assert (now.state, now.why) == (WorkState.WAITING, Why.TESTING_SANDBOX)
        await node.start()
        await asyncio.to_thread(wait_for, lambda: node.parts.service.status().state == WorkState.IDLE)
    finally:
        await node.stop()
