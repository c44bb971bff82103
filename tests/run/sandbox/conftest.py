"""Every sandbox test runs at both levels, where this machine has them."""

from __future__ import annotations

import functools

import pytest

from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import JobOutcome, Level
from tests.run.sandbox.support import job


@functools.cache
def _trial(level: Level) -> JobOutcome:
    return execute(job("succeed()"), level=level)


@pytest.fixture(params=[Level.BUBBLEWRAP, Level.LANDLOCK], ids=lambda level: level.name.lower())
def level(request: pytest.FixtureRequest) -> Level:
    """A level that works here; the test is skipped for one that doesn't."""
    sandbox_level = Level(request.param)
    if _trial(sandbox_level).status != "ok":
        pytest.skip(f"{sandbox_level.label} does not work on this machine: {_trial(sandbox_level).reason}")
    return sandbox_level
