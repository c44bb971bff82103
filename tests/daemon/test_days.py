"""Random days of a node: every order ends or says why not, counts are exact, what a person waits for goes first."""

from __future__ import annotations

import pytest

from tests.daemon.days import day


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10])
def test_some_days(first: int) -> None:
    for seed in range(first, first + 10):
        day(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 200, 60))
def test_many_days(first: int) -> None:
    for seed in range(first, first + 60):
        day(seed)
