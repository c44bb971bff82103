"""A small network in a log of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.log.standing.village import Village


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    made = Village.at(tmp_path)
    yield made
    made.log.close()
