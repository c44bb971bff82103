"""Which gains are shown as more than noise: verifiers' pairs and the author's word have bounds of their own."""

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.requests import RunsOf
from autoresearch.ask.runs.rows import runs_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.record.encoding import format_id
from tests.log.standing.village import ANN, BEN, CEM, DOT, Village
from tests.record.making import DEFINITION

NOISE = DEFINITION["metric"]["noise"]


@pytest.fixture
def row_of(tmp_path, village: Village):
    def find(run):
        with BlobStore(tmp_path / "blobs") as blobs:
            answer = runs_answer(village.log, blobs, find_task(village.log), RunsOf(size=200))
        return next(row for row in answer.runs if row.id == format_id(run.id))

    return find


@pytest.mark.parametrize(
    ("noises", "better"), [(1.9, None), (2.1, True), (-1.9, None), (-2.1, False), (0.0, None), (1.2, None)]
)
def test_a_reported_gain_counts_from_twice_the_noise_on(village: Village, row_of, noises: float, better: bool | None):
    row = row_of(village.run(2.0 - noises * NOISE, "child"))
    assert row.gain_reported == pytest.approx(noises * NOISE)
    assert (row.better, row.within_noise) == (better, better is None)


@pytest.mark.parametrize(
    ("noises", "better"), [(0.9, None), (1.1, True), (1.9, True), (-0.9, None), (-1.1, False), (-1.9, False)]
)
def test_a_verified_gain_counts_from_the_noise_on(village: Village, row_of, noises: float, better: bool | None):
    """Whatever its author reports: here a gain of a hundred times the noise."""
    run = village.run(2.0 - 100 * NOISE, "child")
    village.evaluate(run, 2.0 - 100 * NOISE, ANN, BEN, CEM)
    village.replicate(run, 1.0, 1.0 - noises * NOISE, ANN, BEN, CEM, DOT)
    row = row_of(run)
    assert row.gain == pytest.approx(noises * NOISE)
    assert (row.better, row.within_noise) == (better, better is None)
