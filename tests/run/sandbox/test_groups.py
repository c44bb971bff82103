"""The control group of a run: where one can be had, how it ends, and what the kernel counts and bounds there."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from autoresearch.run.sandbox import groups, process
from autoresearch.run.sandbox.groups import candidates, parent_of_groups
from autoresearch.run.sandbox.job import Level
from autoresearch.words import RunStatus
from tests.run.sandbox.support import SMALL, job, run


def _hierarchy(root: Path, *folders: str) -> tuple[Path, ...]:
    (root / "cgroup.controllers").write_text("cpu memory pids")
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    return (root,)


def test_the_nearest_group_that_hands_its_controllers_down_comes_first(tmp_path: Path) -> None:
    mounts = _hierarchy(tmp_path, "user/app/terminal")
    for folder, text in (("", "cpu memory pids"), ("user", "cpu memory pids"), ("user/app", "memory pids")):
        (tmp_path / folder / "cgroup.subtree_control").write_text(text)
    candidate_groups = candidates("3:cpu:/\n0::/user/app/terminal\n", mounts)
    assert candidate_groups == [tmp_path / "user/app", tmp_path / "user", tmp_path, tmp_path / "user/app/terminal"]


@pytest.mark.parametrize(("file", "text"), [("memory.max", "1048576"), ("cpu.max", "50000 100000")])
def test_a_group_that_is_bound_is_not_left(tmp_path: Path, file: str, text: str) -> None:
    mounts = _hierarchy(tmp_path, "system/daemon")
    (tmp_path / "system/daemon" / file).write_text(text)
    assert candidates("0::/system/daemon", mounts) == [tmp_path / "system/daemon"]
    (tmp_path / "system/daemon" / file).write_text("max 100000")
    assert len(candidates("0::/system/daemon", mounts)) == 3


def test_without_version_2_there_is_none(tmp_path: Path) -> None:
    assert candidates("0::/x", (tmp_path,)) == []
    assert candidates("4:memory:/x", _hierarchy(tmp_path)) == []


@pytest.fixture
def parent() -> Path:
    """Where this machine lends groups."""
    group = parent_of_groups()
    if group is None:
        pytest.skip("no control group can be made here")
    return group


def test_a_run_is_in_a_group_that_counts_it_and_goes_with_it(level: Level, parent: Path) -> None:
    with process.started(job("while True: pass"), level) as running:
        group = running.group
        assert group is not None
        assert group.folder.parent == parent
        while group.cpu_ms() < 100:
            time.sleep(0.01)
        assert running.end().used.cpu_ms >= 100
    assert not group.folder.exists()


def test_what_the_end_of_a_group_leaves_is_nothing(level: Level, parent: Path) -> None:
    with process.started(job("while True: time.sleep(1)"), level) as running:
        group = running.group
        assert group is not None
        assert parent in group.folder.parents
        group.end()
        assert running.end().exit_status == 137


def test_where_there_is_none_runs_are_as_they_are(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "parent_of_groups", lambda: None)
    assert run("succeed()", level).status is RunStatus.OK


def test_the_kernel_keeps_memory_within_the_group(level: Level, parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the run meanwhile: the kernel alone has to end it."""
    if "memory" not in (parent / "cgroup.subtree_control").read_text():
        pytest.skip("the control groups here have no memory controller")
    monkeypatch.setattr("autoresearch.run.sandbox.supervise._LOOK_SECONDS", 60.0)
    monkeypatch.setattr("autoresearch.run.sandbox.supervise._EARLY_LOOK_SECONDS", 60.0)
    source = "held = []\nwhile True: held.append(b'x' * (1 << 20))"
    outcome = run(source, level, limits=replace(SMALL, memory_bytes=1 << 26, disk_bytes=1 << 20))
    assert outcome.status is RunStatus.OUT_OF_MEMORY
