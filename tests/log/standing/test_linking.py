"""What a new run links: what its author heard first, of as many participants as there are, once."""

from __future__ import annotations

import pytest

from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.precedence import to_link
from autoresearch.record.kinds import BlobRef, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from tests.log.standing.copying import copies
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, STRANGER, Village
from tests.record.making import NOW_MS, key, pairs, run_body, sealed

HOUR_MS = 3_600_000
MODEL = BlobRef(sha256=b"m" * 32, size=5)


@pytest.fixture
def village(village):
    village.now_ms += 10 * HOUR_MS
    return village


def linked(village: Village, who: KeyPair = ANN, parent: Record | None = None) -> list[bytes]:
    above = parent or village.baseline
    return to_link(village.log, village.task, who.public, village.now_ms, parent=above.id)


def test_a_run_links_what_others_published_since_its_authors_last_one_and_nothing_twice(village):
    before = village.run(1.9, "before", by=BEN)
    assert linked(village) == [before.id]
    village.run(1.8, "ann's own", by=ANN, links=[before])
    assert linked(village) == []
    ben, cem = village.run(1.7, "ben's", by=BEN), village.run(1.7, "cem's", by=CEM)
    village.run(1.7, "a stranger's", by=STRANGER)
    village.run(None, "failed", by=DOT, status="diverged")
    assert linked(village) == [cem.id, ben.id]
    assert linked(village, parent=ben) == [cem.id], "that it builds on it says so already"
    assert linked(village, STRANGER) == [], "whose word counts for nobody"


def test_each_participant_has_its_turn_however_much_one_publishes(village):
    runs = {who.public: [] for who in (BEN, CEM, DOT)}
    for who, count in ((CEM, 1), (DOT, 2), (BEN, 20)):
        for number in range(count):
            runs[who.public].append(village.run(1.9, f"{count} {number}", by=who).id)
    newest = {who.public: runs[who.public][::-1] for who in (BEN, CEM, DOT)}
    ben, cem, dot = (newest[who.public] for who in (BEN, CEM, DOT))
    assert linked(village) == [ben[0], dot[0], cem[0], ben[1], dot[1], *ben[2:5]]


@pytest.mark.slow
def test_strangers_push_nothing_out(village):
    ben = village.run(1.9, "ben's", by=BEN)
    flood = [
        sealed(key(300), run_body(0.5, source=b"%d" % number), seq=number + 1, time_ms=NOW_MS) for number in range(700)
    ]
    village.log.writer.ingest(pairs(flood), now_ms=village.now_ms)
    assert linked(village) == [ben.id]


def test_of_several_with_one_program_or_checkpoint_the_one_is_linked_that_was_heard_first(village):
    honest = village.run(1.2, "great", by=BEN, checkpoint=MODEL)
    with village.earlier(HOUR_MS):
        copy = village.run(1.2, "great", by=EVE, checkpoint=MODEL)
        rewritten = village.run(1.2, "rewritten", by=EVE, checkpoint=MODEL)
    assert linked(village) == [honest.id]
    for parent in (copy, rewritten):
        assert linked(village, parent=parent) == [honest.id, village.baseline.id]
    assert linked(village, BEN) == [], "its own was the first"
    village.run(1.5, "ann's", by=ANN, links=[honest])
    with village.earlier(HOUR_MS):
        village.run(1.2, "great", by=EVE, replicate=1)
    assert linked(village) == [], "it said already which was first"


def test_who_hears_of_a_run_and_its_copy_at_once_follows_who_saw_them(village):
    with village.earlier(HOUR_MS):
        copy = village.run(1.2, "great", by=EVE)
    honest = village.run(1.2, "great", by=BEN)
    assert linked(village) == [copy.id]
    ours = [village.run(1.9, name, by=who, links=[honest]) for who, name in ((CEM, "cem's"), (DOT, "dot's"))]
    assert set(linked(village)) == {honest.id, *(run.id for run in ours)}


def test_who_heard_of_a_run_before_its_copy_measures_the_run(village):
    honest = village.run(1.2, "great", by=BEN, checkpoint=MODEL)
    with village.earlier(HOUR_MS):
        village.run(1.2, "great", by=EVE, checkpoint=MODEL)
        village.run(1.2, "rewritten", by=EVE, checkpoint=MODEL)
    for who in (CEM, DOT):
        job = next_job(village.log, village.task, who.public, bytes(who.key), village.now_ms)
        assert job is not None
        assert job.run == honest.id
        village.evaluate(honest, 1.2, who)
    assert {copy.original for copy in copies(village.log)} == {honest.id}


def test_what_was_taken_back_is_not_linked(village):
    run = village.run(1.9, "ben's", by=BEN)
    village.append(BEN, "withdrawal", Withdrawal(), [run.id])
    assert linked(village) == []
    assert linked(village, CEM, parent=run) == [village.baseline.id]
