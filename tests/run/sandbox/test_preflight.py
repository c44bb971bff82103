"""What a machine lacks is found before anything is claimed, and is no fault of a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autoresearch.ask.acts.edited_program import Idea, run_once
from autoresearch.errors import CannotRunHere
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.preflight import forget_runs, preflight
from autoresearch.settings import Work
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task, shipped_by_name
from autoresearch.task.model import Task
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import RunStatus
from tests.daemon.toy import TRAIN, write_toy_task
from tests.walls import best_level

MISSING = f"import a_package_that_is_not_here\n{TRAIN}"
KILLED = f"import os\n{TRAIN.replace('prepare.report', 'os.kill(os.getpid(), 9) or prepare.report')}"
GOES_ON = f"{TRAIN}\nimport time\ntime.sleep(600)\n"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    return Bench(best_level(), 1, "cpu", tmp_path / "cache", tmp_path / "scratch")


def toy(folder: Path, train: str) -> Task:
    return load_task(write_toy_task(folder / "toy", train))


def ran(task: Task, bench: Bench) -> bool:
    """Whether a preflight runs the baseline, and notes it anew, or knows that it ran."""

    def noted() -> set[int]:
        return {file.stat().st_mtime_ns for file in (bench.data_cache / "preflight").glob("*")}

    before = noted()
    preflight(task, bench)
    return noted() != before


@pytest.mark.slow
def test_a_missing_package_is_named_with_a_way_out(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(CannotRunHere, match="No module named 'a_package_that_is_not_here'") as refused:
        preflight(toy(tmp_path, MISSING), bench)
    assert "autoresearch task lock" in refused.value.hint
    assert "a_package_that_is_not_here" in refused.value.hint
    task = toy(tmp_path, MISSING)
    published = task.folder.rename(tmp_path / task.digest.hex())  # as a task of others lies here
    with pytest.raises(CannotRunHere) as refused:
        preflight(load_task(published), bench)
    assert "pip install a_package_that_is_not_here" in refused.value.hint
    assert "requirements.in" not in refused.value.hint, "with a list it would be another task"


def test_a_device_that_is_not_there_is_named(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(CannotRunHere, match="there is no cuda:77 on this machine"):
        preflight(toy(tmp_path, TRAIN), replace(bench, device="cuda:77"))


@pytest.mark.parametrize("train", [TRAIN, GOES_ON], ids=["ends", "goes on"])
def test_a_baseline_that_takes_its_first_step_is_run_once(bench: Bench, tmp_path: Path, train: str) -> None:
    task = toy(tmp_path, train)
    assert ran(task, bench)
    assert not ran(task, bench)
    forget_runs(task, bench)
    assert ran(task, bench)


def test_what_was_stopped_says_nothing(bench: Bench, tmp_path: Path) -> None:
    task = toy(tmp_path, "import time\ntime.sleep(60)\n")
    preflight(task, replace(bench, cancelled=lambda: True))
    assert not list((tmp_path / "cache").rglob("*-*")), "it does not count as run"


@pytest.mark.slow
def test_without_what_the_task_needs_no_run_is_published(tmp_path: Path) -> None:
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    task = toy(tmp_path, MISSING)
    with pytest.raises(CannotRunHere):
        run_once(Idea(task, TRAIN), paths, now_ms=lambda: 1_790_000_000_000, work=Work())
    with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
        assert [record.kind for record in log.records.newest(limit=10) if record.kind != "identity"] == []


@pytest.mark.parametrize(("own", "status"), [(True, RunStatus.COULD_NOT_RUN), (False, RunStatus.CRASHED)])
def test_ones_own_run_that_the_system_kills_is_no_evidence(
    bench: Bench, tmp_path: Path, own: bool, status: RunStatus
) -> None:
    task = toy(tmp_path, TRAIN)
    pin_baseline(task.folder)
    outcome = Experiment(task, plan_as_it_stands(task, KILLED), bench).measure(own=own)
    assert outcome.status is status
    assert "signal 9" in outcome.reason


def test_a_task_for_cards_is_refused_on_a_processor(bench: Bench) -> None:
    task = shipped_by_name("gpt-small")
    assert task is not None
    with pytest.raises(CannotRunHere, match="gpt-small is for graphics cards") as refused:
        preflight(task, bench)
    assert "autoresearch work gpt-small-smoke" in refused.value.hint
