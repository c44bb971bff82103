"""A log with blobs in a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from tests.record.making import NETWORK
from tests.run.packages.wheels import write_wheel


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log.sqlite", NETWORK) as opened:
        yield opened


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[BlobStore]:
    with BlobStore(tmp_path / "blobs") as opened:
        yield opened


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip takes packages from; ``tiny_a`` needs ``tiny_b`` below 2."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "wheels"
    write_wheel(folder, "tiny_a", "1.0", "VALUE = 7\n", "tiny_b<2")
    write_wheel(folder, "tiny_b", "1.2", "VALUE = 1\n")
    write_wheel(folder, "tiny_b", "2.0", "VALUE = 2\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder
