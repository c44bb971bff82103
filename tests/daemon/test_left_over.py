"""What a dead daemon left: runs with an outcome are recorded as they ended, others go on elsewhere or are abandoned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.events import Events
from autoresearch_daemon.local_state import InHand
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.runs.in_hand import RunRecorder

from autoresearch.errors import AutoresearchError
from autoresearch.record.kinds import Run, RunOutcome
from autoresearch.run.folder import LOG, OUTCOME, Fault, RunReply, RunRequest, write_outcome
from autoresearch.run.sandbox.scratch import scratch_folder
from tests.daemon.test_reveals import LATER_MS, Place
from tests.run.test_folder import written


class Left:
    """A spool with the folder of a run that is noted as in hand, and the daemon that comes next."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder / "home")
        self.place.paths.spool.mkdir(parents=True, exist_ok=True)
        self.folder, self.request = self.written(folder)
        assert self.request.plan is not None
        self.place.notebook.publish_task(self.request.task, LATER_MS)
        begun = InHand(assignment="search-1", order=7, started_ms=LATER_MS, plan=self.request.plan)
        run = msgspec.structs.replace(begun, folder=str(self.folder))
        self.place.local.keep(run)

    def written(self, folder: Path) -> tuple[Path, RunRequest]:
        made, request = written(folder)
        return made.rename(self.place.paths.spool / made.name), request

    def begin(self, *, goes_on: bool = False) -> RunRecorder:
        place, thread = self.place, LogThread(self.place.notebook.log)
        runs = RunRecorder(
            place.notebook, thread, place.local, Events(place.local), place.paths.spool, keep_checkpoints=False
        )
        runs.sweep()
        self.counted: list[tuple[int, str]] = []

        def count(run: InHand) -> None:
            assert run.outcome is not None
            self.counted.append((run.order, run.outcome.status))

        counting = runs.close_left_over(lambda _: goes_on, count)
        assert asyncio.run(counting) is None
        thread.close()
        return runs

    def recorded(self) -> list[Run]:
        notebook = self.place.notebook
        return [record.body for record in notebook.log.records.newest(kind="run", author=notebook.author, limit=9)]


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Left]:
    made = Left(tmp_path)
    yield made
    made.place.local.close()
    made.place.notebook.close()


def test_an_outcome_that_nobody_read_is_recorded(left: Left) -> None:
    (left.folder / LOG).write_bytes(b"hello")
    write_outcome(left.folder, RunReply(run=left.folder.name, level=2, outcome=RunOutcome(status="ok", value=0.5)))
    left.begin(goes_on=True)
    (run,) = left.recorded()
    assert (run.status, run.value) == ("ok", 0.5)
    assert run.log is not None
    assert left.place.notebook.blobs.get(run.log.sha256) == b"hello"
    assert left.counted == [(7, "ok")]
    assert left.place.local.in_hand() == []
    assert not left.folder.exists()


def test_a_run_is_counted_once_wherever_the_daemon_is_killed(left: Left) -> None:
    write_outcome(left.folder, RunReply(run=left.folder.name, level=2, outcome=RunOutcome(status="ok", value=0.5)))
    runs, killed = left.begin(goes_on=True), RuntimeError("killed")

    def die() -> None:
        raise killed

    assert left.request.plan is not None
    left.place.local.keep(InHand(assignment="search-1", order=7, started_ms=LATER_MS, plan=left.request.plan))
    with pytest.raises(RuntimeError):  # recorded, and killed while it is counted
        runs.count("search-1", die)
    left.begin()
    assert left.counted == [(7, "abandoned")]
    left.begin()
    assert left.counted == []


def test_a_folder_of_a_process_that_lives_is_left_to_it(left: Left) -> None:
    spool = left.place.paths.spool
    (spool / "autoresearch-scratch-dead").mkdir()
    (spool / "run-of-nobody").mkdir()
    with scratch_folder(spool) as scratch:
        (scratch.folder / "run-1").mkdir()
        left.begin()
        assert (scratch.folder / "run-1").is_dir()
        assert [path for path in spool.iterdir() if path != left.folder] == [scratch.folder]


def test_a_fault_is_the_machines(left: Left) -> None:
    write_outcome(left.folder, RunReply(run=left.folder.name, level=0, fault=Fault(sentence="no torch")))
    left.begin()
    assert [(run.status, run.reason) for run in left.recorded()] == [("could_not_run", "no torch")]


def test_what_is_no_outcome_of_it_is_not_believed(left: Left) -> None:
    other = RunReply(run="search-1-of-another", outcome=RunOutcome(status="ok", value=0.0))
    (left.folder / OUTCOME).write_bytes(msgspec.msgpack.encode(other))
    left.begin()
    assert [(run.status, run.reason) for run in left.recorded()] == [
        ("abandoned", "its outcome is that of another run")
    ]


@pytest.mark.parametrize("goes_on", [True, False])
def test_without_an_outcome_it_goes_on_or_is_abandoned(left: Left, goes_on: bool) -> None:
    runs = left.begin(goes_on=goes_on)
    assert [run.status for run in left.recorded()] == ([] if goes_on else ["abandoned"])
    assert left.folder.exists() is goes_on
    assert (runs.plan("search-1") is not None) is goes_on


def test_the_folder_of_a_run_that_nobody_waits_for_is_removed(left: Left, tmp_path: Path) -> None:
    stray, _ = left.written(tmp_path / "stray")
    left.begin(goes_on=True)
    assert not stray.exists()
    assert left.folder.exists()


def test_a_run_is_counted_though_nothing_can_be_written(left: Left) -> None:
    runs, counted = left.begin(), list[str]()
    connection = left.place.local.connection
    connection.execute("BEGIN")  # whoever holds the file keeps others from it
    with pytest.raises(AutoresearchError):
        runs.count("search-1", lambda: counted.append("search-1"))
    connection.execute("ROLLBACK")
    assert counted == ["search-1"]
