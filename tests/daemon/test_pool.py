"""Worker processes on a real link: what is in hand is ended before a worker goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.pool import Pool

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.folder import read_outcome
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.daemon.toy import SLOW_TRAIN, TRAIN, write_toy_task
from tests.walls import best_level

pytestmark = pytest.mark.slow


def test_what_is_cancelled_right_after_it_was_approved_is_a_run_that_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = protocol.Approve(assignment="a"), protocol.Cancel(assignment="a")
    messages = asyncio.run(scene(tmp_path, monkeypatch, *answers, train=SLOW_TRAIN))
    assert outcome(messages) == RunStatus.CANCELLED


def test_a_worker_that_is_told_to_go_still_hears_the_answer_to_its_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = asyncio.run(scene(tmp_path, monkeypatch, protocol.Approve(assignment="a")))
    assert outcome(messages) == RunStatus.OK


def outcome(messages: list[protocol.FromWorker]) -> str:
    """The status in the folder that the worker names last."""
    assert isinstance(messages[-1], protocol.Ended)
    ended = read_outcome(Path(messages[-1].folder))
    assert ended is not None
    assert ended.outcome is not None
    return ended.outcome.status


async def scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: protocol.FromDaemon, train: str = TRAIN
) -> list[protocol.FromWorker]:
    """What a worker says that is told to go when it has proposed something, and answered so."""
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    with Notebook(paths) as notebook:
        author = notebook.author
    task = write_toy_task(tmp_path / "task", train)
    plan = plan_as_it_stands(load_task(task), train)
    level = best_level()
    messages: list[protocol.FromWorker] = []
    gone = asyncio.Event()

    async def on_lost(_: str) -> None:
        gone.set()

    async def on_message(worker: str, message: protocol.FromWorker) -> None:
        messages.append(message)
        if isinstance(message, protocol.Ready):
            work = protocol.AssignWork(
                assignment="a", run="a-1", task=str(task), plan=plan, level=int(level), author=author
            )
            pool.send(worker, work)
        elif isinstance(message, protocol.Proposal):
            pool.want(0)
            for answer in answers:
                pool.send(worker, answer)

    pool = Pool(["cpu"], on_message=on_message, on_leaving=lambda _: None, on_lost=on_lost)
    pool.want(1)
    async with asyncio.timeout(250):
        await gone.wait()
    await pool.stop()
    return messages
