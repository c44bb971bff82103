"""The story in a log of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.propose.prompts.story import Story


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    made = Story.at(tmp_path)
    yield made
    made.close()
