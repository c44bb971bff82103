"""Temporary folders of killed processes are taken away, those of the living never."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autoresearch.run.sandbox.scratch import scratch_folder, sweep

_KILLED = """
import os, sys
from pathlib import Path
from autoresearch.run.sandbox.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as scratch:
    (scratch.folder / "closed").mkdir()
    (scratch.folder / "closed" / "file").write_text("x")
    (scratch.folder / "closed").chmod(0)
    os.kill(os.getpid(), 9)
"""


def test_a_folder_is_gone_after_its_use(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as scratch:
        assert scratch.folder.parent == tmp_path
        (scratch.folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=Path(__file__).parents[3], check=False)
    [left] = tmp_path.iterdir()
    (tmp_path / "another").mkdir()
    (tmp_path / f"{left.name}-link").symlink_to(tmp_path / "another")
    with scratch_folder(tmp_path) as scratch:
        assert sweep(tmp_path) == 1
        assert sorted(tmp_path.iterdir()) == sorted(
            [scratch.folder, tmp_path / "another", tmp_path / f"{left.name}-link"]
        )
    assert sweep(tmp_path) == 0


def test_who_inherits_the_lock_keeps_the_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as scratch:
        heir = os.dup(scratch.lock)
        scratch.folder.rename(tmp_path / "kept")  # as if this process had no time to remove it
    (tmp_path / "kept").rename(scratch.folder)
    assert sweep(tmp_path) == 0
    os.close(heir)
    assert sweep(tmp_path) == 1


def test_no_sweep_takes_a_folder_that_is_being_made(tmp_path: Path) -> None:
    def make() -> bool:
        with scratch_folder(tmp_path) as scratch:
            (scratch.folder / "file").write_text("x")
            return (scratch.folder / "file").exists()

    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(make) for _ in range(200)]
        while not all(future.done() for future in made):
            sweep(tmp_path)
    assert all(future.result() for future in made)


def test_a_folder_that_does_not_exist_is_no_error(tmp_path: Path) -> None:
    assert sweep(tmp_path / "missing") == 0
