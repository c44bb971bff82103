from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from autoresearch.settings import ExecutorSection
from tests.run.ssh.sshd import MISSING, Sshd

if TYPE_CHECKING:
    from autoresearch_executors.ssh import Ssh


@pytest.fixture
def sshd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A server that listens; this process is at home where ``ssh lab`` reaches it."""
    if MISSING:
        pytest.skip(MISSING)
    with tempfile.TemporaryDirectory(prefix="ssh-", dir="/tmp") as folder:
        made = Sshd(Path(folder)).start()
        monkeypatch.setenv("HOME", str(made.home))
        yield made
        made.kill()


@pytest.fixture
def lab(sshd: Sshd) -> Iterator[Ssh]:
    """The executor for that server."""
    from autoresearch_executors.ssh import Ssh  # of an extra

    made = Ssh(ExecutorSection(at_most=4, python=sys.executable, folder=str(sshd.remote_home / "runs")), "lab")
    yield made
    made.close()
