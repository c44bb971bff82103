"""Figures that cannot be are found, whatever benchmark prints them."""

from __future__ import annotations

import math

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.plausible import BOUNDS, impossible


@pytest.mark.parametrize(
    ("name", "figure", "value"),
    [
        ("catchup", "records_per_second_10000", -708_215.0),
        ("catchup", "records_per_second", 0.0),
        ("catchup", "cpu_seconds_sender", math.nan),
        ("ingest", "records_per_cpu_second", math.inf),
        ("standing", "top_first_ms", -1.0),
        ("gossip", "delivered_10", 1.1),
        ("gossip", "delivered", 0.0),
        ("null", "confirmed_share_2_sd", 1.5),
        ("contamination", "grammar: gap", math.nan),
        ("proposer", "ours", 0.0),
    ],
)
def test_a_figure_that_cannot_be_is_named(name: str, figure: str, value: float) -> None:
    (sentence,) = impossible(name, {figure: value, "rss_mb": 80.0} if name != "proposer" else {figure: value})
    assert sentence.startswith(f"{figure} = ")


@pytest.mark.parametrize(
    ("name", "figure", "value"),
    [
        ("catchup", "records_per_second", 5000.0),
        ("gossip", "delivered", 1.0),
        ("null", "confirmed", 2.5),
        ("contamination", "grammar: gap", -12.2),
        ("overhead", "start_ms", -3.0),
        ("idle", "cpu_percent", 0.0),
    ],
)
def test_a_figure_that_can_be_passes(name: str, figure: str, value: float) -> None:
    assert impossible(name, {figure: value}) == []


def test_who_measured_nothing_says_so_and_no_bound_is_of_a_benchmark_that_is_not_there() -> None:
    assert impossible("idle", {}) == ["it measured nothing"]
    assert {begin.partition("/")[0] for begin in BOUNDS} <= set(BENCHMARKS)
