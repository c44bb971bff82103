"""Whatever arrives first, and whatever was asked in between: the same words, numbers, places and track records."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.bases import checked, contenders, preferred, vouched
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.credit import all_evidence, credit
from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.participants import track_record, track_records
from autoresearch.log.standing.queries import board, statistics
from autoresearch.log.standing.trials import Extent, trials
from autoresearch.log.standing.verification import judgement
from autoresearch.log.tables.runs import KINDS
from autoresearch.record.kinds import Run
from autoresearch.trust.keys import KeyPair
from tests.log.standing.copying import copies, models
from tests.log.standing.stories import HOUR_MS, STORIES, play
from tests.log.standing.village import ANN, BEN, TRUST, Village, settled
from tests.record.making import NETWORK, pairs


def seen(log: Log, task: bytes):
    """Everything that follows from the records."""
    runs = sorted(
        (each for each in log.records.newest(limit=1000) if isinstance(each.body, Run)), key=lambda run: run.id
    )
    words = {run.id: judgement(log, run.id) for run in runs}
    context = trust_context(log, ANN.public)
    ranked = board(log, task, context, limit=50), preferred(log, task, context), list(vouched(log, task, context))
    people = track_records(log), credit(log), all_evidence(log)
    assert all(track_record(log, voter) == person for voter, person in people[0].items())
    ranked += (
        trials(log, task, context, device=ANN.public),
        trials(log, task, context, device=ANN.public, extent=Extent(best=2, newest=1)),
    )
    ranked += (
        *(list(checked(log, task, context, {*kinds.values()})) for kinds in KINDS),
        contenders(log, task, context, limit=9),
    )
    return words, ranked, people, statistics(log, task), models(log), copies(log)


def job_of(who: KeyPair, log: Log, task: bytes, now_ms: int):
    return next_job(log, task, who.public, bytes(who.key), now_ms)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STORIES, st.randoms(use_true_random=False))
def test_whatever_arrives_first_the_same_is_seen(tmp_path_factory, story, order: random.Random) -> None:
    village = play(Village.at(tmp_path_factory.mktemp("log")), story)
    now_ms, batch = village.now_ms + HOUR_MS, pairs(village.log.records.newest(limit=1000))
    last = seen(settled(village.log), village.task)
    village.log.close()
    order.shuffle(batch)
    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
        for start in range(0, len(batch), 6):
            log.writer.ingest(batch[start : start + 6], now_ms=now_ms)
            between, job = seen(settled(log), village.task), job_of(BEN, log, village.task, now_ms)
            with Log.open(log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
                assert seen(fresh, village.task) == between
                assert job_of(BEN, fresh, village.task, now_ms) == job  # it depends on what was heard first
        assert seen(log, village.task) == last
