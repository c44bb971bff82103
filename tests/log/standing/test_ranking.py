"""What ranks before anybody verified it: the word of attested participants, each program's first; nobody else's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autoresearch.judging.statistics import mean, rank
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.log.standing.bases import best_of, preferred, program_as_reported, vouched
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.context import board_hardware, trust_context
from autoresearch.log.standing.jobs import next_job
from autoresearch.log.standing.queries import board, lineage
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Attestation, Identity
from autoresearch.record.record import DAY_MS, Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import BoardSection
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, PEOPLE, ROOTS, STRANGER, TRUST, Village
from tests.record.making import NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed, task_body

SECOND = key(200)  # another device of the first participant
BUDGET = 1e12


def flood(village: Village, values: Sequence[float], *, source: bytes | None = None, time_ms: int = NOW_MS) -> None:
    """As many runs of keys that were made for it, each run a program of its own or all the same one."""
    made: dict[int, list[Record]] = {}
    for number, value in enumerate(values):
        chain = made.setdefault(number // 100, [])
        name = b"flood %d" % number if source is None else source
        body = run_body(value, source=name, title="flood", replicate=number % 3 if source else 0)
        before = chain[-1].id if chain else None
        chain.append(sealed(key(10_000 + number // 100), body, seq=len(chain) + 1, prev=before, time_ms=time_ms))
    records = [record for chain in made.values() for record in chain]
    verdicts = village.log.writer.ingest(pairs(records), now_ms=village.now_ms)
    assert {verdict.state for verdict in verdicts} == {State.STORED}


def seen(village: Village, me: KeyPair | None = None) -> object:
    """All that attested participants see of each other's runs."""
    log, context = village.log, trust_context(village.log, me.public if me else None)
    rows = board(log, village.task, context, limit=100)
    best = preferred(log, village.task, context)
    jobs = [next_job(log, village.task, who.public, bytes(who.key), village.now_ms) for who in PEOPLE]
    return [row for row in rows if row.section != BoardSection.UNATTESTED], best, jobs


@pytest.mark.parametrize("value", [1e6, -1e6, 1e100, 1.0])
@pytest.mark.parametrize("earlier_ms", [-DAY_MS, 0])
def test_no_repetition_by_strangers_buries_or_lifts_a_run(village, value, earlier_ms):
    village.run(1.5, "good", by=ANN)
    village.run(1.6, "worse", by=BEN)
    village.evaluate(village.run(1.7, "checked", by=CEM), 1.7, ANN, BEN)
    before = seen(village)
    for source in (b"good", b"worse", b"checked", b"baseline"):
        flood(village, [value] * 50, source=source, time_ms=village.now_ms + earlier_ms)
    assert seen(village) == before
    job = next_job(village.log, village.task, CEM.public, bytes(CEM.key), village.now_ms)
    assert job is not None


@pytest.mark.slow
def test_thousands_of_strangers_runs_hide_no_honest_run(village):
    honest = village.run(1.5, "honest", by=ANN)
    before = seen(village)
    flood(village, [0.1 + number / 1e5 for number in range(3000)])
    assert seen(village) == before
    context = trust_context(village.log)
    assert preferred(village.log, village.task, context).row.first == honest.id
    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert (job.run if job else None) == honest.id
    rows = board(village.log, village.task, context, limit=20)
    assert [row.title for row in rows if row.section == BoardSection.OPEN] == ["honest", "baseline"]
    assert sum(row.section == BoardSection.UNATTESTED for row in rows) == 18
    assert best_of(village.log, village.task, ANN.public, context).first == honest.id


def test_strangers_push_nothing_out_of_the_audit(village, monkeypatch):
    monkeypatch.setattr("autoresearch.log.standing.jobs.is_audited", lambda *_, **__: True)
    monkeypatch.setattr("autoresearch.log.standing.jobs.CHECKED_ROWS", 0)
    monkeypatch.setattr("autoresearch.log.standing.jobs.AUDITED_MAX", 3)
    newest = village.run(1.5, "honest", by=ANN)
    flood(village, [1.0] * 10, time_ms=village.now_ms + 1)
    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert job is not None
    assert job.run == newest.id


def test_strangers_measurements_of_their_own_runs_hide_no_dispute(village, monkeypatch):
    monkeypatch.setattr("autoresearch.log.standing.bases.CHECKED_MOST", 2)
    monkeypatch.setattr("autoresearch.log.standing.jobs.CHECKED_ROWS", 0)
    disputed = village.run(1.9, "disputed", by=ANN)
    village.evaluate(disputed, 2.5, BEN)
    for number in range(3):
        village.evaluate(village.run(0.5, f"stranger {number}", by=STRANGER), 0.5, key(60))
    job = next_job(village.log, village.task, CEM.public, bytes(CEM.key), village.now_ms)
    assert job is not None
    assert (job.run, job.round) == (disputed.id, 1)


def test_a_repetition_by_an_attested_participant_moves_nothing_and_earns_no_place(village):
    first = village.run(1.5, "good", by=ANN)
    for value, who in ((0.1, BEN), (9.0, CEM)):
        village.run(value, "good", by=who, replicate=1)
    rows = list(vouched(village.log, village.task, trust_context(village.log)))
    assert [(row.title, row.mean, row.runs) for row in rows] == [("good", 1.5, 1), ("baseline", 2.0, 1)]
    assert rows[0].first == first.id
    assert best_of(village.log, village.task, BEN.public, trust_context(village.log)).mean == 0.1


def test_its_own_seeds_make_a_program_more_certain(village):
    village.run(1.500, "lucky", by=ANN)
    for replicate in range(3):
        village.run(1.505, "steady", by=BEN, replicate=replicate)
    rows = list(vouched(village.log, village.task, trust_context(village.log)))
    assert [(row.title, row.runs) for row in rows] == [("steady", 3), ("lucky", 1), ("baseline", 1)]


def test_ones_own_unattested_run_counts_for_oneself_alone(village):
    village.run(1.5, "theirs", by=ANN)
    flood(village, [0.1] * 300)
    mine = village.run(1.7, "mine", by=STRANGER)
    context = trust_context(village.log, STRANGER.public)
    assert preferred(village.log, village.task, context).row.first == mine.id
    assert preferred(village.log, village.task, trust_context(village.log, BEN.public)).row.title == "theirs"
    assert best_of(village.log, village.task, STRANGER.public, context).first == mine.id
    titles = [row.title for row in vouched(village.log, village.task, context, own=True)]
    assert titles == ["theirs", "mine", "baseline"]


def test_where_nobody_attested_has_a_run_the_best_of_the_others_is_built_upon(tmp_path):
    village = Village.at(tmp_path, Trust(participants=frozenset({key(999).public})))
    village.run(1.5, "good", by=ANN)
    assert preferred(village.log, village.task, trust_context(village.log)).row.title == "good"
    village.log.close()


def test_who_was_attested_later_or_no_longer_counts_for_the_time_between(village):
    early = village.run(1.0, "same", by=SECOND, replicate=0)
    for who, body in (
        (ROOTS[0], Identity(action="delegate", root=ROOTS[0].public, device=SECOND.public)),
        (SECOND, Identity(action="profile", root=ROOTS[0].public)),
    ):
        village.append(who, "identity", body)
    counted = village.run(1.4, "same", by=SECOND, replicate=1)
    village.append(ROOTS[0], "identity", Identity(action="revoke", root=ROOTS[0].public, device=SECOND.public))
    village.run(0.5, "same", by=SECOND, replicate=2)
    village.run(1.3, "other", by=ANN)
    rows = list(vouched(village.log, village.task, trust_context(village.log)))
    assert [(row.title, row.first, row.mean, row.runs) for row in rows[:2]][1] == ("same", counted.id, 1.4, 1)
    assert rows[0].title == "other"
    assert not any(row.first == early.id for row in rows)


def test_what_is_shown_of_a_parent_or_of_the_baseline_is_no_strangers_word(village):
    child = village.run(1.5, "child", by=ANN)
    flood(village, [50.0] * 20, source=b"baseline")
    flood(village, [-50.0] * 20, source=b"child")
    steps = lineage(village.log, child.id)
    assert [step.run.standing.reported for step in steps] == [2.0, 1.5]
    assert steps[1].run.standing.gain_reported == pytest.approx(0.5)
    program = (village.task, run_body(source=b"baseline").source_digest, BUDGET)
    assert program_as_reported(village.log, program, trust_context(village.log)).mean == 2.0


def test_strangers_say_nothing_of_the_hardware_of_the_board(tmp_path):
    definition = {"name": "clocked", "metric": {"name": "x", "direction": "minimize", "noise": 0.01}}
    definition |= {"budget": {"unit": "seconds", "amount": 300}}
    task = digest_of(definition)
    village = Village.at(tmp_path)
    village.append(AUTHOR, "task", task_body(definition))

    def publish(value: float, name: str, who: KeyPair, device: str, **fields: object) -> Record:
        arguments = {"task": task, "budget": 300.0, "device": device, "title": name}
        return village.append(who, "run", run_body(value, source=name.encode(), **arguments, **fields))

    publish(1.0, "cluster", STRANGER, "cluster")
    for name in ("ann", "ben"):  # who writes the same first on other hardware takes nobody's vote
        publish(1.0, name, STRANGER, "cluster")
    publish(1.2, "ann", ANN, "laptop")
    publish(1.3, "ann", ANN, "desktop", replicate=1)
    publish(1.1, "ben", BEN, "laptop")
    for number in range(5):
        publish(0.5, f"fast {number}", CEM, "cluster")
    rows = list(vouched(village.log, task, trust_context(village.log)))
    assert [(row.title, row.mean, row.runs, row.device) for row in rows] == [
        ("ben", 1.1, 1, "laptop"),
        ("ann", 1.2, 1, "laptop"),
    ]
    village.log.close()


NAMES = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
VALUES = st.sampled_from([1.0, 1.01, 1.02, 1.03, 1.3, 0.7, 1e100, -1e100])
WRITERS, MACHINES = st.sampled_from([*PEOPLE[:3], SECOND, STRANGER]), st.sampled_from(["laptop", "desktop"])
RUNS = st.tuples(WRITERS, NAMES, VALUES, st.integers(0, 4), st.integers(0, 9), MACHINES)


def by_hand(log: Log, task: bytes) -> list[tuple[bytes, int, float]]:
    """The ranking as it is said in words, from all runs."""
    rules, roster = log.tasks.rules(task), roster_of(log)
    runs = [stored.record for stored in log.runs.newest(task, limit=1000) if not stored.forked]
    runs = [run for run in runs if roster.voter(run.author, run.time).attested]
    runs.sort(key=lambda run: (run.time, run.id))
    results = []
    for program in {run.body.source_digest for run in runs}:
        same = [run for run in runs if run.body.source_digest == program]
        values: dict[int, Record] = {}
        for run in same:
            if run.author == same[0].author:
                values.setdefault(run.body.replicate, run)
        hardware = same[0].body.device
        counted = [run.body.value for run in values.values() if not rules.clocked or run.body.device == hardware]
        ranked = rank(mean(counted), len(counted), rules)
        if ranked is not None and board_hardware(log, task) in (None, hardware):
            results.append((ranked, same[0].time, same[0].id, len(counted), mean(counted)))
    return [row[2:] for row in sorted(results)]


# When a stranger writes, one device is no longer attested: that is no matter of the runs it made before.
@pytest.mark.slow
@example(
    [
        (PEOPLE[0], b"a", 1.0, 0, 0, "laptop"),
        (SECOND, b"b", 1.0, 0, 3, "desktop"),
        (STRANGER, b"c", 1.0, 0, 9, "desktop"),
    ],
    "minimize",
    "seconds",
    0,
)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(RUNS, max_size=40),
    st.sampled_from(["minimize", "maximize"]),
    st.sampled_from(["work", "seconds"]),
    st.integers(0, 2**32),
)
def test_the_order_is_that_of_the_rule_however_records_arrive(tmp_path_factory, made, direction, unit, seed):
    """One device is attested from the third to the sixth moment only; some may have forked."""
    definition = {"name": "x", "metric": {"name": "x", "direction": direction, "noise": 0.02}}
    definition |= {"budget": {"unit": unit, "amount": BUDGET}}
    task = digest_of(definition)
    records = [sealed(ROOTS[0], task_body(definition), kind="task")]
    delegations = [*zip(PEOPLE[:3], ROOTS[:3], strict=True), (SECOND, ROOTS[0])]
    for number, (device, root) in enumerate(delegations, start=1):
        start_ms = NOW_MS + (3 if device is SECOND else 0)
        says = Identity(
            action="delegate",
            root=root.public,
            device=device.public,
            expires=NOW_MS + 6 if device is SECOND else None,
        )
        records.append(sealed(root, says, kind="identity", seq=number + 1, time_ms=start_ms))
        agrees = Identity(action="profile", root=root.public)
        records.append(sealed(device, agrees, kind="identity", seq=1, time_ms=start_ms))
    for number, (who, name, value, replicate, moment, machine) in enumerate(made):
        body = run_body(value, source=name, replicate=replicate, task=task, budget=BUDGET, device=machine)
        records.append(sealed(who, body, seq=number + 2, time_ms=NOW_MS + moment))
    strangers = [record for record in records if record.author == STRANGER.public]
    dice = random.Random(seed)
    answers = []
    for drawn in (records, [record for record in records if record not in strangers]):
        dice.shuffle(drawn := list(drawn))
        with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
            for start in range(0, len(drawn), 7):
                log.writer.ingest(pairs(drawn[start : start + 7]), now_ms=NOW_MS + DAY_MS)
                list(islice(vouched(log, task, trust_context(log)), 3))  # what is asked between changes nothing
            rows = list(vouched(log, task, trust_context(log)))
            assert [(row.first, row.runs, row.mean) for row in rows] == by_hand(log, task)
            log.writer.rebuild()
            assert list(vouched(log, task, trust_context(log))) == rows
            with Log.open(log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
                assert list(vouched(fresh, task, trust_context(fresh))) == rows
            answers.append(rows)
    assert answers[0] == answers[1], "with the stranger's records and without"


def test_a_program_repeated_by_more_strangers_than_there_are_participants_is_told_apart(village):
    first = village.run(1.5, "good", by=ANN)
    village.run(0.9, "good", by=BEN, replicate=1)
    for number in range(30):
        body = run_body(0.2, source=b"good", title="flood")
        village.log.writer.ingest(pairs([sealed(key(300 + number), body, time_ms=NOW_MS)]), now_ms=village.now_ms)
    rows = board(village.log, village.task, trust_context(village.log), limit=20)
    assert [(row.id, row.reported) for row in rows] == [
        (format_id(first.id), 1.5),
        (format_id(village.baseline.id), 2.0),
    ]


def test_a_participant_who_cheated_for_all_to_see_hides_nobody_however_much_it_writes(village, monkeypatch):
    monkeypatch.setattr("autoresearch.log.standing.bases.JUDGED_ROWS", 5)
    honest = village.run(1.5, "honest", by=ANN)
    for number in range(20):
        village.run(0.5 + number / 100, f"cheated {number}", by=CEM, seed=7)
    context = trust_context(village.log)
    job = next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms)
    assert (job.run if job else None) == honest.id
    assert preferred(village.log, village.task, context).row.first == honest.id
    rows = board(village.log, village.task, context, limit=10)
    assert [row.title for row in rows if row.section == BoardSection.OPEN] == ["honest", "baseline"]


def test_what_one_participant_alone_says_hides_nothing_however_much_it_is(village, monkeypatch):
    monkeypatch.setattr("autoresearch.log.standing.bases.BOARD_ROWS", 10)
    monkeypatch.setattr("autoresearch.log.standing.jobs.CHECKED_ROWS", 4)
    honest = village.run(1.5, "honest", by=ANN)
    for number in range(30):
        village.run(0.5 + number / 100, f"said {number}", by=CEM)
    skip = set()
    while (job := next_job(village.log, village.task, BEN.public, bytes(BEN.key), village.now_ms, skip=skip)) and (
        job.run != honest.id
    ):
        skip.add((job.run, job.stage, job.round))
    assert job is not None
    assert len(skip) == 3


def test_an_attestation_that_arrives_late_counts_from_the_time_that_it_states(tmp_path):
    attestors = [key(70), key(71)]
    trust = Trust(attestors=frozenset(attestor.public for attestor in attestors), needed=2)
    village = Village.at(tmp_path, trust)
    early = village.run(1.2, "early", by=ANN)
    issued_ms = village.now_ms + 1
    later = village.run(1.5, "later", by=ANN)
    flood(village, [0.1] * 50)
    assert list(vouched(village.log, village.task, trust_context(village.log))) == []
    root = ROOTS[PEOPLE.index(ANN)].public
    for attestor in attestors:
        body = Attestation(
            subject=root, tag=b"t" * 32, method="code", domain="big", issued=issued_ms, expires=issued_ms + DAY_MS
        )
        record = sealed(attestor, body, kind="attestation", time_ms=issued_ms)
        village.log.writer.ingest(pairs([record]), now_ms=village.now_ms)
    rows = list(vouched(village.log, village.task, trust_context(village.log)))
    assert [row.first for row in rows] == [later.id]
    assert preferred(village.log, village.task, trust_context(village.log)).row.first == later.id
    assert early.id not in {row.first for row in rows}
    village.log.close()
