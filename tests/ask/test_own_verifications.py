"""A node's own part: what it verified in a day, and the share of its computing time."""

import pytest

from autoresearch.ask.people.verification import verifying_status
from autoresearch.record.record import DAY_MS
from tests.log.standing.village import ANN, BEN


def test_only_one_s_own_records_of_the_day_count(village):
    run = village.run(1.2, "good", by=BEN, duration_ms=999_000)
    village.run(1.3, "mine", by=ANN, duration_ms=180_000)
    village.evaluate(run, 1.2, ANN)
    part = verifying_status(village.log, ANN.public, village.now_ms)
    assert (part.today, part.spent_ms, part.runs_today) == (1, 60_000, 1)
    assert part.share == pytest.approx(0.25)
    tomorrow = verifying_status(village.log, ANN.public, village.now_ms + DAY_MS)
    assert (tomorrow.today, tomorrow.share, tomorrow.runs_today) == (0, 0.0, 0)


def test_a_new_record_changes_the_answer(village):
    assert verifying_status(village.log, ANN.public, village.now_ms).today == 0
    village.evaluate(village.run(1.2, "good", by=BEN), 1.2, ANN)
    assert verifying_status(village.log, ANN.public, village.now_ms).today == 1
