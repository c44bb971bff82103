"""Whoever copies a fresh run and dates the copy back takes nothing, as soon as two others name the run."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.bases import preferred, vouched
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.participants import track_record, track_records
from autoresearch.log.standing.queries import board
from autoresearch.log.standing.verification import judgement
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Claim, Identity, Merge, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.words import Mark, RunState
from tests.log.standing.copying import copies, models
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, STRANGER, TRUST, Village, settled
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed

HOUR_MS = 3_600_000
MODEL = BlobRef(sha256=b"m" * 32, size=5)


@pytest.fixture
def village(village):
    village.now_ms += 10 * HOUR_MS
    return village


def marks(village: Village, who: KeyPair) -> list[tuple[Mark, bytes]]:
    """The marks of a participant, each with the record that it earned it with."""
    root = ROOTS[PEOPLE.index(who)].public
    return [(marked.mark, marked.record) for marked in track_record(settled(village.log), root).marks]


def claim(village: Village, who: KeyPair, name: str) -> Record:
    digest = run_body(source=name.encode()).source_digest
    return village.append(who, "claim", Claim(task=village.task, source_digest=digest, until=village.now_ms + HOUR_MS))


def copied(village: Village, name: str = "great", *, by: KeyPair = EVE, ms: int = HOUR_MS, **fields: object) -> Record:
    """Somebody publishes another's program under its own name and an earlier time."""
    with village.earlier(ms):
        return village.run(1.2, name, by=by, **fields)


def standing(village: Village, name: str = "great") -> bytes:
    """The run that stands for a program."""
    rows = vouched(village.log, village.task, trust_context(village.log))
    return next(row.first for row in rows if row.source_digest == run_body(source=name.encode()).source_digest)


def test_a_copy_that_is_dated_back_takes_neither_name_nor_place_although_nobody_measured_anything(village):
    claim(village, ANN, "great")
    honest = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    copy = copied(village, checkpoint=MODEL)
    assert standing(village) == copy.id, "as long as nobody says anything else"
    village.run(1.9, "ben's", by=BEN, links=[honest])
    assert standing(village) == copy.id, "one alone says nothing"
    village.run(1.9, "cem's", by=CEM, links=[copy, honest])

    context = trust_context(village.log)
    assert standing(village) == honest.id
    assert board(village.log, village.task, context, limit=9)[0].id == format_id(honest.id)
    assert preferred(village.log, village.task, context).row.first == honest.id
    assert (marks(village, ANN), marks(village, EVE)) == ([], [(Mark.COPIER, copy.id)])
    assert models(village.log) == {copy.id: honest.id}
    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert job is not None
    assert job.run == honest.id


def test_another_program_with_the_same_checkpoint_that_is_dated_back_ranks_nowhere(village):
    honest = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    copy = copied(village, "rewritten", checkpoint=MODEL)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[honest])
    ids = [row.id for row in board(village.log, village.task, trust_context(village.log), limit=9)]
    assert format_id(honest.id) in ids
    assert format_id(copy.id) not in ids
    assert (marks(village, ANN), marks(village, EVE)) == ([], [(Mark.COPIER, copy.id)])


def test_one_friend_alone_changes_nothing(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = village.run(1.2, "great", by=EVE)
    for number in range(3):  # one voter however often it says so
        village.run(1.9, f"friend's {number}", by=DOT, links=[copy])
    village.run(1.9, "its own", by=EVE, links=[copy])
    assert standing(village) == honest.id
    assert (marks(village, ANN), marks(village, EVE)) == ([], [(Mark.COPIER, copy.id)])


def test_one_friend_alone_takes_nothing_from_a_run_that_two_others_had_seen(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    with village.earlier(HOUR_MS // 2):
        village.run(1.9, "friend's", by=DOT, links=[copy])
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[honest])
    assert standing(village) == honest.id
    assert marks(village, EVE) == [(Mark.COPIER, copy.id)]


def test_a_device_saw_nothing_before_the_time_of_its_records_before(village):
    honest = village.run(1.2, "great", by=ANN)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[honest])
    for friend in (AUTHOR, DOT):
        village.run(1.9, f"{PEOPLE.index(friend)} spoke", by=friend)
    copy = copied(village)
    with village.earlier(HOUR_MS - 60_000):
        for friend in (AUTHOR, DOT):
            village.run(1.9, f"{PEOPLE.index(friend)} lies", by=friend, links=[copy])
    assert standing(village) == honest.id
    assert marks(village, EVE) == [(Mark.COPIER, copy.id)]


def test_a_record_that_arrives_late_says_how_early_its_device_may_have_spoken(village):
    honest = village.run(1.2, "great", by=ANN)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[honest])
    copy = copied(village)
    spoke, lies = [], []
    for friend in (AUTHOR, DOT):
        head = village.log.devices.head(friend.public)
        seq = head.seq if head else 0
        body = run_body(1.9, source=friend.public)
        spoke.append(sealed(friend, body, seq=seq + 1, time_ms=village.now_ms))
        dated_ms = village.now_ms - HOUR_MS + 60_000
        lies.append(sealed(friend, body, seq=seq + 2, time_ms=dated_ms, links=[copy.id]))
    village.log.writer.ingest(pairs(lies), now_ms=village.now_ms)
    assert standing(village) == copy.id, "two friends who never spoke before can lie"
    village.log.writer.ingest(pairs(spoke), now_ms=village.now_ms)
    assert standing(village) == honest.id


def test_what_strangers_link_moves_nothing(village):
    honest = village.run(1.2, "great", by=ANN)
    later = village.run(1.2, "great", by=EVE)
    for number in range(60, 70):
        village.run(1.9, f"stranger's {number}", by=key(number), links=[later])
    assert standing(village) == honest.id
    assert (marks(village, ANN), marks(village, EVE)) == ([], [(Mark.COPIER, later.id)])


def test_a_stranger_who_was_there_before_is_accused_by_nobody_and_one_who_dates_back_takes_nothing(village):
    before = village.run(1.2, "great", by=STRANGER, checkpoint=MODEL)
    run = village.run(1.2, "great", by=ANN, checkpoint=MODEL)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[run])
    assert standing(village) == run.id
    assert copies(village.log) == []
    assert before.id not in models(village.log)


def test_who_claimed_a_program_and_published_it_late_is_no_copier(village):
    claim(village, ANN, "great")
    unseen = village.run(1.2, "great", by=ANN)  # which nobody hears of
    village.now_ms += HOUR_MS
    public = village.run(1.2, "great", by=BEN)
    for who, name in ((CEM, "cem's"), (DOT, "dot's")):
        village.run(1.9, name, by=who, links=[public])
    assert standing(village) == public.id
    assert unseen.time < public.time
    assert (marks(village, ANN), marks(village, BEN)) == ([], [])


def test_who_builds_on_a_copy_and_links_the_run_says_which_was_first(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.1, name, by=who, parent=copy, links=[honest])
    assert standing(village) == honest.id


def test_who_builds_on_a_run_has_seen_it(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.1, name, by=who, parent=honest)
    assert standing(village) == honest.id
    assert marks(village, EVE) == [(Mark.COPIER, copy.id)]


def test_what_somebody_saw_can_not_be_taken_back(village):
    honest = village.run(1.2, "great", by=ANN)
    copied(village)
    evaluations = [village.run(1.9, name, by=who, links=[honest]) for who, name in ((BEN, "ben's"), (CEM, "cem's"))]
    for who, record in zip((BEN, CEM), evaluations, strict=True):
        village.append(who, "withdrawal", Withdrawal(), [record.id])
    assert standing(village) == honest.id


def test_a_run_that_is_taken_back_stands_no_more(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[honest])
    assert standing(village) == honest.id
    village.append(ANN, "withdrawal", Withdrawal(), [honest.id])
    assert standing(village) == copy.id
    assert marks(village, EVE) == []


def test_no_more_than_eight_links_of_a_run_count(village):
    others = [village.run(1.5, f"other {number}", by=DOT) for number in range(8)]
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    for who, name in ((BEN, "ben's"), (CEM, "cem's")):
        village.run(1.9, name, by=who, links=[*others, honest])
    assert standing(village) == copy.id
    for who, name in ((BEN, "ben's, too"), (CEM, "cem's, too")):
        village.run(1.9, name, by=who, links=[*others[1:], *others[1:], honest])
    assert standing(village) == honest.id


def test_who_cheated_for_all_to_see_or_has_forked_is_no_witness(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    village.run(1.5, "lucky", by=BEN, seed=7)
    for who in (BEN, CEM):
        village.run(1.9, f"{PEOPLE.index(who)}", by=who, links=[honest])
    assert standing(village) == copy.id, "one of the two is banned"
    last = village.run(1.9, "dot's", by=DOT, links=[honest])
    assert standing(village) == honest.id
    branch = sealed(
        DOT, run_body(1.7, source=b"branch"), seq=last.seq - 1, prev=b"" if last.seq == 2 else b"p" * 32, time_ms=NOW_MS
    )
    village.log.writer.ingest(pairs([branch]), now_ms=village.now_ms)
    assert standing(village) == copy.id, "what a forked device says has no order"
    village.append(ROOTS[PEOPLE.index(DOT)], "merge", Merge(device=DOT.public, heads=[last.id, branch.id]))
    assert standing(village) == honest.id


def test_what_others_measured_and_what_they_link_count_alike(village):
    honest = village.run(1.2, "great", by=ANN)
    copy = copied(village)
    village.run(1.9, "ben's", by=BEN, links=[honest])
    village.evaluate(honest, 1.2, CEM)
    assert standing(village) == honest.id
    assert marks(village, EVE) == [(Mark.COPIER, copy.id)]


def test_a_confirmed_run_stands_for_its_program_although_an_earlier_one_was_measured_later(village):
    honest = village.run(1.2, "great", by=ANN)
    village.confirm(honest, 2.0, 1.2)
    copy = copied(village)
    village.evaluate(copy, 1.2, BEN, CEM, DOT)
    program = preferred(village.log, village.task, trust_context(village.log))
    assert (program.row.first, program.judgement.state) == (honest.id, RunState.CONFIRMED)
    assert judgement(village.log, copy.id).state is RunState.PROVISIONAL


def test_two_devices_of_one_participant_are_one_voice(village):
    second = key(200)
    root = ROOTS[PEOPLE.index(DOT)]
    village.append(root, "identity", Identity(action="delegate", root=root.public, device=second.public))
    village.append(second, "identity", Identity(action="profile", root=root.public))
    honest = village.run(1.2, "great", by=ANN)
    later = village.run(1.2, "great", by=EVE)
    for device in (DOT, second):
        village.run(1.9, f"friend's {device.public[0]}", by=device, links=[later])
    assert standing(village) == honest.id


def everything(log: Log, task: bytes):
    rows = list(vouched(log, task, trust_context(log)))
    return (
        rows,
        board(log, task, trust_context(log), limit=50),
        copies(log),
        models(log),
        track_records(log),
    )


MOMENTS = st.integers(0, 4)
LINKS = st.lists(st.integers(0, 60), max_size=4)
WRITTEN = st.tuples(
    st.sampled_from([*PEOPLE, STRANGER]), st.sampled_from(["a", "b", "c"]), MOMENTS, LINKS, st.booleans()
)


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(WRITTEN, min_size=4, max_size=24), st.randoms(use_true_random=False))
def test_whatever_arrives_first_the_same_was_there_first(tmp_path_factory, written, order: random.Random):
    village = Village.at(tmp_path_factory.mktemp("log"))
    start_ms, made = village.now_ms, []
    for who, name, moment, linked, built in written:
        village.now_ms = start_ms + 1000 * moment
        named = [made[number % len(made)] for number in linked] if made else []
        above = named[0] if named and built else None
        made.append(
            village.run(
                1.0 + moment / 100, name, by=who, parent=above, links=named, checkpoint=MODEL if built else None
            )
        )
    now_ms, batch = village.now_ms + HOUR_MS, pairs(village.log.records.newest(limit=1000))
    seen = everything(settled(village.log), village.task)
    village.log.close()
    order.shuffle(batch)
    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
        for start in range(0, len(batch), 5):  # links come before what they name
            log.writer.ingest(batch[start : start + 5], now_ms=now_ms)
            everything(settled(log), village.task)
        assert everything(log, village.task) == seen
        log.writer.rebuild()
        settled(log)
    with Log.open(log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
        assert everything(fresh, village.task) == seen
