"""Trials: of a long history the search reads what says the most, and nobody pushes that out."""

from hypothesis import HealthCheck, given, settings

from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.trials import Extent, trials
from tests.log.standing.stories import STORIES, play
from tests.log.standing.village import ANN, BEN, CEM, DOT, STRANGER, Village


def few(village, *, best=2, newest=2, sample=0, always=()):
    context, digests = trust_context(village.log, BEN.public), [run.body.source_digest for run in always]
    extent = Extent(best, newest, sample)
    return trials(village.log, village.task, context, device=BEN.public, always=digests, extent=extent)


def ids(result):
    return {trial.row.id for trial in result}


def test_of_many_runs_the_best_the_newest_and_the_verified_ones_are_read(village):
    middle = [village.run(1.5 + number / 100, f"middle {number}", by=ANN) for number in range(12)]
    good, false = village.run(1.9, "good"), village.run(1.95, "false", by=CEM)
    village.confirm(good, 2.0, 1.9)
    village.refute(false, 1.99)
    best = [village.run(value, f"best {value}", by=DOT) for value in (1.1, 1.2)]
    village.run(1.8, "old", by=DOT)
    newest = [village.run(1.97, "new"), village.run(None, "failed", status="crashed")]
    result = few(village, always=[village.baseline])
    expected = {run.id for run in (*best, *newest, good, false, village.baseline)}
    assert ids(result) == expected
    assert not ids(result) & {run.id for run in middle}
    assert preferred(village.log, village.task, trust_context(village.log, BEN.public)).row.first == good.id
    assert next(trial for trial in result if trial.row.id == good.id).preferred is not None


def test_a_stranger_and_a_proven_cheat_take_no_places(village):
    runs = [village.run(value, f"said {value}", by=ANN) for value in (1.5, 1.6, 1.7)]
    village.run(1.0, "cheated", by=CEM, seed=7)
    for number in range(10):
        village.run(1.01 + number / 100, f"stranger {number}", by=STRANGER)
        village.run(1.01 + number / 100, f"fake {number}", by=CEM)
    assert {run.id for run in runs[:2]} <= ids(few(village))


def test_a_sample_of_the_rest_is_read(village):
    runs = [village.run(1.5 + number / 100, f"said {number}", by=ANN) for number in range(12)]
    strange = [village.run(1.5, f"stranger {number}", by=STRANGER) for number in range(12)]
    extra = ids(few(village, best=1, newest=1, sample=3)) - ids(few(village, best=1, newest=1))
    assert 1 <= len(extra) <= 3
    assert extra <= {run.id for run in (village.baseline, *runs)}
    assert not extra & {run.id for run in strange}


def test_all_seeds_of_a_program_are_known_and_the_base_that_it_changes(village):
    base = village.run(1.9, "base", by=ANN)
    seeds = [
        village.run(1.1, "best", by=who, replicate=number, base=base.body.source_digest)
        for number, who in enumerate((ANN, BEN, ANN, DOT))
    ]
    for number in range(9):
        village.run(1.5 + number / 100, f"other {number}", by=ANN)
        village.run(1.1, "best", by=STRANGER, replicate=0)
    result = few(village, best=1, newest=1)
    assert {run.id for run in (*seeds, base)} <= ids(result)
    assert len([trial for trial in result if trial.row.source_digest == seeds[0].body.source_digest]) < 9


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STORIES)
def test_what_is_read_is_part_of_all_and_has_the_preferred_run(tmp_path_factory, story):
    village = play(Village.at(tmp_path_factory.mktemp("log")), story)
    context = trust_context(village.log, BEN.public)
    some, every = few(village, best=1, newest=1), few(village, best=100, newest=100)
    leads = preferred(village.log, village.task, context)
    village.log.close()
    assert [trial for trial in every if trial in some] == some
    assert leads is None or leads.row.first in ids(some)
