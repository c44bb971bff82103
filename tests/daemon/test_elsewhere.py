"""Runs that an executor carries out: started, watched, stopped, brought home; with an engine in memory."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.runs import executor_runs
from autoresearch_daemon.runs.executor_runs import ExecutorRuns, order_of
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.inputs import Located
from autoresearch_daemon.workers import protocol

from autoresearch.errors import AutoresearchError, Refused, TimedOut, UsageError
from autoresearch.record.kinds import RunOutcome
from autoresearch.run import executors
from autoresearch.run.executors import EngineJob, Executor, executor_of
from autoresearch.run.folder import EventFile, RunReply, read_outcome, write_outcome
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.settings import ExecutorSection
from autoresearch.words import Why


class Memory(Executor):
    """An engine in memory: what it lists, whether it answers. It asks no clock but ``now``."""

    kind, unit = "memory", "job"

    def __init__(self) -> None:
        super().__init__(ExecutorSection(at_most=9))
        self.jobs: dict[str, EngineJob] = {}
        self.fault: AutoresearchError | None = None
        self.now = 0.0
        self.submitted: list[str] = []

    def listed(self) -> Mapping[str, EngineJob]:
        if self.fault:
            raise self.fault
        return self.jobs

    def start(self, folder: Path) -> None:
        if folder.name not in self.listed():
            self.submitted.append(folder.name)
            self.jobs[folder.name] = EngineJob(native=str(len(self.submitted)), state="queued")

    def cancel(self, folder: Path) -> None:
        if folder.name in self.listed():
            del self.jobs[folder.name]

    def printed_machine(self) -> str:
        raise Refused("it is no machine")


class Scene:
    """An engine, what the state machine hears, and what was brought home."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.messages, self.home = Memory(), list[object](), list[tuple[str, str]]()
        self.folder = folder / "search-1-ab"
        self.folder.mkdir()
        self.local = LocalState(folder / "local.sqlite")
        self.elsewhere = self.daemon()

    def daemon(self) -> ExecutorRuns:
        return ExecutorRuns(self.local, lambda _: self.engine, take=self.messages.append, ended=self.took)

    async def took(self, place: str, folder: Path) -> None:
        ended = read_outcome(folder)
        assert ended is not None
        part = ended.outcome or ended.fault
        assert part is not None
        word = f"{part.status}: {part.reason}" if isinstance(part, RunOutcome) else f"fault: {part.sentence}"
        self.home.append((place, word))

    def play(self, *acts: Callable[[], object]) -> None:
        async def scene() -> None:
            for act in acts:
                act()
                await self.elsewhere.look()

        asyncio.run(scene())

    def carry(self) -> None:
        self.elsewhere.carry("search-1", self.folder, "memory")

    def ends(self) -> None:
        write_outcome(self.folder, RunReply(run=self.folder.name, level=2, outcome=RunOutcome(status="ok", value=1.0)))

    def state(self, state: str) -> None:
        self.engine.jobs[self.folder.name] = EngineJob(native="1", state=state)

    def later(self, seconds: float) -> None:
        self.engine.now += seconds


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.setattr(executors.time, "monotonic", lambda: made.engine.now)
    return made


def test_a_run_is_queued_runs_and_comes_home(scene: Scene) -> None:
    def runs() -> None:
        scene.state("running")
        events = EventFile(scene.folder)
        events.progress(RunProgress(fraction=0.5, step=3, loss=1.5))
        events.close()

    scene.play(scene.carry, runs, scene.ends)
    assert scene.messages == [
        Located("search-1", "memory job 1", Why.QUEUED),
        protocol.Progress(assignment="search-1", fraction=0.5, step=3, loss=1.5),
        Located("search-1", "memory job 1", Why.RUNNING),
    ]
    assert scene.home == [("search-1", "ok: ")]
    assert scene.engine.jobs == {}, "copies that somebody requeued are ended"
    assert "search-1" not in scene.elsewhere
    assert scene.elsewhere.levels == {"memory": 2}


def test_while_the_engine_is_away_a_run_waits_to_be_submitted(scene: Scene) -> None:
    scene.engine.fault = TimedOut("no controller")
    scene.play(scene.carry, lambda: None)
    assert scene.messages == 2 * [Located("search-1", "memory: no controller", Why.QUEUED)]
    scene.engine.fault = None
    scene.play(lambda: None, lambda: None)
    assert scene.engine.submitted == [scene.folder.name]


def test_what_the_engine_refuses_has_an_outcome(scene: Scene) -> None:
    scene.engine.fault = Refused("invalid partition", hint="correct it")
    scene.play(scene.carry)
    assert scene.home == [("search-1", "fault: invalid partition → correct it")]


def test_a_lost_run_is_abandoned_with_its_reason_and_stays_so(scene: Scene) -> None:
    scene.play(scene.carry, scene.engine.jobs.clear, lambda: scene.later(299))
    assert scene.home == []
    scene.play(lambda: scene.later(1))
    assert scene.home == [("search-1", "abandoned: it never began, and the engine does not list it")]
    assert scene.elsewhere.levels == {}
    scene.ends()
    ended = read_outcome(scene.folder)
    assert ended is not None
    assert ended.outcome is not None
    assert ended.outcome.status == "abandoned", "an outcome that comes later is none"


def test_a_silent_engine_ends_no_run(scene: Scene) -> None:
    def falls_silent() -> None:
        scene.engine.fault = TimedOut("no controller")

    scene.play(scene.carry, falls_silent, *[lambda: scene.later(1000)] * 5)
    assert scene.home == []
    scene.play(scene.ends)
    assert scene.home == [("search-1", "ok: ")]


def test_what_could_not_be_removed_is_removed_when_the_place_answers(scene: Scene) -> None:
    def goes_away() -> None:
        scene.ends()
        scene.engine.fault = TimedOut("no route")

    def answers() -> None:
        scene.engine.fault = None

    scene.play(scene.carry, goes_away)
    assert scene.home == [("search-1", "ok: ")]
    scene.play(answers)
    assert scene.engine.jobs.keys() == {scene.folder.name}, "its record waits: it has a folder here"
    shutil.rmtree(scene.folder)
    scene.play(lambda: None)
    assert (scene.engine.jobs, scene.local.carried()) == ({}, {})


def test_what_a_dead_daemon_left_there_is_removed_by_the_next(scene: Scene) -> None:
    scene.play(scene.carry)
    scene.elsewhere = scene.daemon()
    scene.play(lambda: None)
    assert scene.engine.jobs, "it has a folder here: somebody may wait for it"
    shutil.rmtree(scene.folder)
    scene.engine.fault = Refused("the account is closed")
    scene.elsewhere = scene.daemon()
    scene.play(lambda: None)
    assert scene.local.carried() == {}, "a place that says no is asked once"


def test_a_place_that_is_away_delays_no_other(scene: Scene) -> None:
    absent, gone = Memory(), [scene.folder.with_name(name) for name in ("a", "b", "c")]
    absent.fault = TimedOut("no route")
    scene.local.save_carried(dict(zip(map(str, gone), ("away", "away", "memory"), strict=True)))
    scene.engine.jobs["c"] = EngineJob(native="1", state="running")
    scene.elsewhere = ExecutorRuns(
        scene.local, {"away": absent, "memory": scene.engine}.__getitem__, take=scene.messages.append, ended=scene.took
    )
    scene.play(lambda: None)
    assert scene.engine.jobs == {}
    assert scene.local.carried() == {str(folder): "away" for folder in gone[:2]}


def test_another_daemon_finds_a_run_by_its_folder(scene: Scene) -> None:
    scene.play(scene.carry)
    scene.elsewhere = scene.daemon()
    scene.play(lambda: scene.elsewhere.carry("search-1", scene.folder, "memory", is_started=True), scene.ends)
    assert scene.engine.submitted == [scene.folder.name]
    assert scene.home == [("search-1", "ok: ")]


def test_what_is_stopped_before_it_is_submitted_is_never_submitted(scene: Scene) -> None:
    def carry_and_stop() -> None:
        scene.carry()
        scene.elsewhere.cancel("search-1")

    scene.play(carry_and_stop)
    assert (scene.engine.submitted, scene.home) == ([], [("search-1", "cancelled: it was stopped before it began")])


def test_a_stopped_run_has_a_while_for_its_outcome(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.play(scene.carry, lambda: scene.elsewhere.cancel("search-1"))
    assert (scene.engine.jobs, scene.home) == ({}, [])
    monkeypatch.setattr(executor_runs, "STOPPED_SECONDS", -1.0)
    scene.play(lambda: None)
    assert scene.home == [("search-1", "cancelled: it was stopped")]


def test_settings_say_where_runs_go_and_a_person_says_otherwise() -> None:
    slurm = ExecutorSection(name="slurm", at_most=64, options="--account='my lab'")
    assert order_of(ExecutorSection()) == Order(executor="", at_most=8)
    assert order_of(slurm) == Order(executor="slurm", at_most=64)
    assert order_of(slurm, "here") == Order(executor="", at_most=64)
    assert order_of(ExecutorSection(), "slurm", at_most=3) == Order(executor="slurm", at_most=3)
    assert executor_of(slurm, "slurm").options == ("--account=my lab",)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"options can.t be read"):
        executor_of(ExecutorSection(options="'"), "slurm")
