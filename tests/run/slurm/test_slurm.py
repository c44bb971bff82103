"""Runs on a real Slurm cluster of this machine: Debian's packages, in namespaces of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.chaos import CHAOS_SECONDS
from tests.run.slurm.cluster import missing, run_in_cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(CHAOS_SECONDS + 600),
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is a cluster"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="slurm-"))  # a socket's path is short
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("scene", ["one_run", "doctor", "no_controller", "requeued", "chaos"])
def test_on_a_cluster(folder: Path, scene: str) -> None:
    seconds = CHAOS_SECONDS + 500
    words = (scene, str(folder / "place"), str(seconds - 20))
    print(run_in_cluster(folder, "tests.run.slurm.scenes", *words, seconds=seconds))
