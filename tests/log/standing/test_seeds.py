"""Programs that differ in their seeds alone are one program in all that is computed from the records."""

from __future__ import annotations

import pytest

from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.queries import board, leaderboard
from autoresearch.log.standing.verdicts import decimals_of, learnt_noise, spread_of
from autoresearch.record.encoding import format_id
from autoresearch.task.model import Metric
from tests.log.standing.village import BEN, Village
from tests.record.making import DEFINITION

SEEDLESS = b"s" * 32


def test_seeds_of_one_program_have_one_row_one_mean_and_teach_the_noise(village: Village) -> None:
    first = village.run(1.5, "SEED = 1", seedless=SEEDLESS)
    second = village.run(1.3, "SEED = 2", seedless=SEEDLESS, replicate=1)
    other = village.run(1.45, "LR = 2")
    rows = {row.id: row for row in board(village.log, village.task, trust_context(village.log), limit=20)}
    assert format_id(second.id) not in rows
    ours = rows[format_id(first.id)]
    assert (ours.reported_runs, ours.reported) == (2, pytest.approx(1.4))
    assert format_id(other.id) in rows
    for digest in (first.body.source_digest, second.body.source_digest, SEEDLESS):
        row = village.log.programs.find(village.task, digest, first.body.budget)
        assert row is not None
        assert (row.first, row.source_digest, row.runs) == (first.id, first.body.source_digest, 2)
    learnt = learnt_noise(village.log, village.task)
    assert learnt is not None
    assert (learnt.deviation, learnt.runs, learnt.freedom) == (pytest.approx(0.1414, abs=1e-3), 2, 1)


def test_equal_values_of_a_source_that_fixes_its_seed_teach_nothing(village: Village) -> None:
    for number in range(3):
        village.run(1.5, "SEED = 1", seedless=SEEDLESS, replicate=number)
    assert learnt_noise(village.log, village.task) is None
    for number in range(2):
        village.run(1.4, "no seed", replicate=number)
    learnt = learnt_noise(village.log, village.task)
    assert learnt is not None
    assert (learnt.deviation, learnt.runs) == (0.0, 2)


def test_a_child_that_differs_in_its_seed_alone_has_no_gain(village: Village) -> None:
    parent = village.run(1.5, "SEED = 1", seedless=SEEDLESS)
    child = village.run(1.2, "SEED = 2", seedless=SEEDLESS, by=BEN, parent=parent)
    real = village.run(1.2, "LR = 2", by=BEN, parent=parent)
    rows = village.log.reader.read("SELECT run.id, delta FROM listing JOIN run ON run.n = listing.n", ())
    deltas = dict(rows)
    assert deltas[child.id] is None
    assert deltas[real.id] == pytest.approx(-0.3)
    assert leaderboard(village.log, village.task, 10)


def test_a_noise_from_two_runs_has_the_interval_of_two_runs(village: Village) -> None:
    def margin(noise: float | None, runs: int | None = None) -> float | None:
        metric = Metric(name="val_bpb", direction="minimize", noise=noise, noise_runs=runs)
        spread = spread_of(village.log, village.task, metric)
        return None if spread is None else spread.margin(1, 1) / 2**0.5

    assert margin(None) is None
    assert margin(0.1) == pytest.approx(0.196)
    assert margin(0.1, 2) == pytest.approx(1.27, abs=0.01)
    assert margin(0.1, 5) == pytest.approx(0.278, abs=0.001)
    for number, value in enumerate((1.5, 1.6, 1.4, 1.55, 1.45)):
        village.run(value, "LR = 2", replicate=number)
    # one degree of freedom of the task's two runs, four of the five replicates
    assert margin(0.1, 2) == pytest.approx(2.571 * ((0.1**2 + 0.025) / 5) ** 0.5, abs=1e-3)
    assert margin(None) == pytest.approx(2.776 * (0.025 / 4) ** 0.5, abs=1e-3)


def test_as_many_decimals_are_shown_as_tell_its_values_apart(village: Village) -> None:
    metric = {"name": "val_bpb", "direction": "minimize"}
    place = Village(village.log, DEFINITION | {"name": "without a stated noise", "metric": metric})
    assert decimals_of(place.log, place.task) is None
    first = place.run(1.5, "LR = 1")
    place.run(1.50002, "LR = 2")
    assert decimals_of(place.log, place.task) == 5
    (row,) = (row for row in leaderboard(place.log, place.task, 10) if row.id == format_id(first.id))
    assert row.decimals == 5
    for number, value in enumerate((1.60001, 1.60004)):
        place.run(value, "LR = 3", replicate=number)
    assert decimals_of(place.log, place.task) == 6


def test_a_lucky_seed_does_not_lead(village: Village) -> None:
    first = village.run(1.5, "SEED = 1", seedless=SEEDLESS)
    village.run(1.2, "SEED = 2", seedless=SEEDLESS, replicate=1)
    real = village.run(1.4, "LR = 2")
    query = "SELECT DISTINCT frontier.id FROM frontier WHERE NOT sure ORDER BY time"
    leaders = [run for (run,) in village.log.reader.read(query, ())]
    assert leaders[-2:] == [first.id, real.id]
