"""What is kept of participants as sums is what all records say, whatever comes and whoever is trusted."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.credit import all_evidence, credit
from autoresearch.log.standing.participants import TrackRecord, track_records
from autoresearch.log.standing.precedence import bans
from autoresearch.log.standing.verification import count_verifications, judge_now
from autoresearch.log.tables.standings import fixed_point, plain_number
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Attestation, Note, Run, Verification
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import UPHELD, EvidenceKind, Mark, RunState
from tests.log.standing.copying import copies
from tests.log.standing.stories import ACTS, HOUR_MS, HOURS_BACK, PERSON, PLACE
from tests.log.standing.test_credit import COST
from tests.log.standing.test_settled import OF_PEOPLE, TRUSTS, YOUNG, runs_of
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, Village, settled
from tests.log.universe import DEVICES, ROOT, SMALL, WITNESSES, records
from tests.record.making import NOW_MS, pairs, run_body, sealed

FULL = 1e12
# Each example writes logs.


class Spend(NamedTuple):
    """A run that says what it spent, on a part of the budget, is verified and in part compared."""

    who: KeyPair
    above: int
    cpu_ms: int
    budget: float
    after: float

    def act(self, village: Village, runs: list[Record]) -> None:
        above = runs[self.above % len(runs)]
        spent = {"cpu_ms": self.cpu_ms, "duration_ms": 1000, "budget": self.budget}
        run = village.run(self.after, f"spent {len(runs)}", by=self.who, parent=above, **spent)
        runs.append(run)
        village.confirm(run, 2.0, self.after)


SPENT = st.builds(
    Spend, PERSON, PLACE, st.sampled_from([0, 900, 1_024_001]), st.sampled_from([FULL, FULL / 4]), st.floats(0.1, 1.9)
)
STORY = st.lists(st.tuples(st.one_of(ACTS, SPENT, OF_PEOPLE), HOURS_BACK), min_size=4, max_size=14)


class Fact(NamedTuple):
    """What a record says of the participant that signed it."""

    time: int
    id: bytes
    root: bytes
    voter: bytes
    what: str
    right: bool | None
    ms: int = 0
    work: float = 0.0
    gain: float | None = None
    implausible: bool = False
    marked: bool = False


def facts(log: Log) -> Iterator[Fact]:
    """Everything that verifications say, by the judgement of each run."""
    voter = roster_of(log).voter
    for run in runs_of(log):
        body, result = run.body, judge_now(log, run)
        assert isinstance(body, Run)
        if not log.verifications.of(run.id):
            continue
        spoken, state = voter(run.author, run.time), result.state
        own = Fact(run.time, run.id, spoken.root, spoken.voter, state.value, None)
        if state in UPHELD and body.cpu_ms > 1024 * body.duration_ms:
            own = own._replace(implausible=True)
        elif state in UPHELD:
            rules = log.tasks.rules(body.task)
            own = own._replace(ms=body.cpu_ms, work=body.budget if rules else 0.0)
        if state is RunState.CONFIRMED:
            own = own._replace(right=True, gain=result.improvement)
        yield own._replace(right=False, marked=True) if state is RunState.REFUTED else own
        for verification in count_verifications(log, run, state):
            participant = voter(verification.author, verification.time)
            right = verification.passed == (state in UPHELD) if verification.decides else None
            stamp = verification.stage == "evaluate" and verification.passed and state is RunState.REFUTED
            what = "replication" if verification.stage == "replicate" else "pass" if verification.passed else "fail"
            if state is RunState.REFUTED and what == "fail":
                what = "refutation"
            yield Fact(
                verification.time,
                verification.id,
                participant.root,
                participant.voter,
                what,
                right,
                verification.spent_ms,
                marked=stamp,
            )


KINDS = {
    "provisional": ["provisional"],
    "confirmed": ["confirmed"],
    "not_replicated": ["not replicated"],
    "refuted": ["refuted", "fraud"],
    "passes": ["pass"],
    "fails": ["fail", "refutation"],
    "replications": ["replication"],
    "refutations": ["refutation"],
}
CHECKS = {"pass", "fail", "replication", "refutation"}


def did_more(facts: dict[str, object]) -> bool:
    """Whether a participant did anything besides publishing."""
    return any(number not in ((0, []), 0) for number in facts.values())


def accounts(log: Log) -> dict[str, dict[str, object]]:
    """What each participant did, from nothing but the records."""
    roster, now_ms = roster_of(log), log.records.newest_ms()
    by_whom: defaultdict[bytes, list[Fact]] = defaultdict(list)
    for fact in sorted(facts(log), reverse=True):
        by_whom[roster.voter(fact.root, now_ms).voter].append(fact)
    by_name: dict[str, dict[str, object]] = {}
    for who, its in by_whom.items():
        own, checks = ([fact for fact in its if (fact.what in CHECKS) is kind] for kind in (False, True))
        listed = {name: [fact.id for fact in its if fact.what in what] for name, what in KINDS.items()}
        listed["implausible"] = [fact.id for fact in own if fact.implausible]
        by_name[who.hex()] = {name: (len(ids), [format_id(id_) for id_ in ids]) for name, ids in listed.items()} | {
            "cpu_ms": sum(fact.ms for fact in own),
            "verifying_ms": sum(fact.ms for fact in checks),
            "work": pytest.approx(sum(fact.work for fact in own), rel=1e-6),
            "gain": pytest.approx(sum(fact.gain or 0.0 for fact in own), rel=1e-6, abs=1e-9),
            "gains": sum(fact.gain is not None for fact in own),
        }
    return {who: facts for who, facts in by_name.items() if did_more(facts)}


def credit_facts(log: Log) -> dict[str, dict[str, object]]:
    """The same from the sums."""
    by_name: dict[str, dict[str, object]] = {}
    for view in credit(log):
        (row,) = credit(log, roots=[bytes.fromhex(view.keys[0])])
        listed = {name: getattr(row, name) for name in (*KINDS, "implausible")}
        assert {name: getattr(view, name).count for name in listed} == {
            name: each.count for name, each in listed.items()
        }
        by_name[row.participant] = {name: (each.count, each.newest) for name, each in listed.items()} | {
            "cpu_ms": row.cpu_ms,
            "verifying_ms": row.verifying_ms,
            "work": row.work,
            "gain": sum(gain.total for gain in row.improvements),
            "gains": sum(gain.runs for gain in row.improvements),
        }
    return {who: facts for who, facts in by_name.items() if did_more(facts)}


def records_of(log: Log) -> dict[bytes, TrackRecord]:
    """The track records without their marks, from nothing but the records."""
    by_voter: defaultdict[bytes, list[Fact]] = defaultdict(list)
    for fact in facts(log):
        if fact.right is not None:
            by_voter[fact.voter].append(fact)
    bad: defaultdict[bytes, list[int]] = defaultdict(list)
    for copy in copies(log):
        bad[copy.voter].append(copy.time_ms)
    for voter, banned in bans(log).by_key.items():
        own = [ban for ban in banned if roster_of(log).voter(ban.device, ban.start_ms).voter == voter]
        if own:
            bad[voter] += [ban.start_ms for ban in own]
    by_name: dict[bytes, TrackRecord] = {}
    for voter in {*by_voter, *bad}:
        its = by_voter[voter]
        last_ms = max([*bad[voter], *(fact.time for fact in its if not fact.right)], default=-1)
        by_name[voter] = TrackRecord(
            voter,
            consecutive_valid=sum(fact.right and fact.time > last_ms for fact in its),
            confirmed=sum(bool(fact.right) for fact in its if fact.what not in CHECKS),
            refuted=sum(not fact.right for fact in its if fact.what not in CHECKS),
            upheld=sum(bool(fact.right) for fact in its if fact.what in CHECKS),
            overruled=sum(not fact.right for fact in its if fact.what in CHECKS),
            banned_until_ms=max((ban.end_ms for ban in bans(log).by_key.get(voter, ())), default=None),
        )
    return by_name


def tables(log: Log) -> tuple[list[object], ...]:
    """The rows, without the numbers of records."""
    query = """
    SELECT run.id, said.id, fact.* FROM fact JOIN record AS run ON run.n = fact.n JOIN record AS said ON said.n = said
    """
    rows = [(*row[:2], *row[4:]) for row in log.reader.read(query, ())]
    return sorted(rows), log.reader.read("SELECT * FROM credit", ()), log.reader.read("SELECT * FROM tally", ())


def holds(log: Log) -> None:
    assert credit_facts(settled(log)) == accounts(log)
    tracks = track_records(log)
    assert {who: each._replace(marks=()) for who, each in tracks.items()} == records_of(log)
    marks = {
        mark.record for each in tracks.values() for mark in each.marks if mark.mark not in (Mark.FRAUD, Mark.COPIER)
    }
    assert marks == {fact.id for fact in facts(log) if fact.marked}
    doubted = {each.id for each in runs_of(log) if judge_now(log, each).state in ("disputed", "refuted")}
    doubted = {run for run in doubted if log.verifications.of(run)}
    assert {each.records[0] for each in all_evidence(log) if each.kind is EvidenceKind.VALUE} == doubted


@pytest.mark.slow
@given(STORY, st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_the_sums_are_what_the_records_say(tmp_path_factory, story, dice: random.Random) -> None:
    folder = tmp_path_factory.mktemp("log")
    with Log.open(folder / "log.sqlite", YOUNG, trust=dice.choice(TRUSTS)) as log:
        village = Village(log)
        village.now_ms += 24 * HOUR_MS
        assert village.baseline is not None
        runs = [village.baseline]
        for what, hours in story:
            with village.earlier(hours * HOUR_MS):
                what.act(village, runs)
            if dice.random() < 0.1:
                log.trust = dice.choice(TRUSTS)
            if dice.random() < 0.4:
                settled(log)
            if dice.random() < 0.2:
                holds(log)
        holds(log)
        before = tables(log)
        log.writer.rebuild()
        assert tables(settled(log)) == before
        batch = pairs(log.records.newest(limit=1000))
        trust, now_ms = log.trust, village.now_ms + 24 * HOUR_MS
    dice.shuffle(batch)
    with Log.open(folder / "other.sqlite", YOUNG, trust=trust) as other:
        for start in range(0, len(batch), 9):
            other.writer.ingest(batch[start : start + 9], now_ms=now_ms)
            if dice.random() < 0.2:
                settled(other)
        assert tables(settled(other)) == before


@given(records(), st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None)
def test_it_is_so_when_records_are_dropped_and_come_in_any_order(tmp_path_factory, made, dice: random.Random) -> None:
    folder = tmp_path_factory.mktemp("log")
    everybody = Trust(participants=frozenset(each.public for each in (ROOT, *DEVICES, *WITNESSES)))
    with Log.open(folder / "log.sqlite", SMALL, trust=everybody) as log:
        for record in dice.sample(made, len(made)):
            log.writer.ingest(pairs([record]), now_ms=NOW_MS + 10)
            if dice.random() < 0.3:
                settled(log)
        holds(log)
        before = tables(log)
        log.writer.rebuild()
        assert tables(settled(log)) == before


def test_a_run_that_lost_its_verifications_says_nothing_any_more(tmp_path) -> None:
    everybody = Trust(participants=frozenset(each.public for each in (ROOT, *DEVICES, *WITNESSES)))
    with Log.open(tmp_path / "log.sqlite", SMALL, trust=everybody) as log:
        run = log.writer.append(DEVICES[0], "run", run_body(1.0, seed=7), now_ms=NOW_MS)  # a seed of its own choice
        check = Verification(run=run.id, stage="evaluate", verdict="pass", value=1.0)
        record = log.writer.append(DEVICES[1], "verification", check, now_ms=NOW_MS)
        (author,) = credit(settled(log), roots=[DEVICES[0].public])
        assert author.refuted.count == 1
        twins = [
            sealed(DEVICES[1], Note(topic="insight", text=f"{n}"), kind="note", seq=record.seq, network=SMALL)
            for n in range(60)
        ]
        log.writer.ingest(pairs([twin for twin in twins if twin.id < record.id][:2]), now_ms=NOW_MS)
        assert not log.records.has([record.id]), "of one number the two with the smallest ids are kept"
        (author,) = credit(settled(log), roots=[DEVICES[0].public])
        assert (author.runs, author.refuted.count) == (1, 0)


def test_of_one_participant_the_newest_records_are_named(village: Village, monkeypatch) -> None:
    runs = [village.run(1.9 - place / 10, f"{place}", by=ANN) for place in range(3)]
    for run in runs:
        village.evaluate(run, run.body.value, BEN, CEM, EVE)
    monkeypatch.setattr("autoresearch.log.standing.credit.NEWEST_MAX", 2)
    (row,) = credit(settled(village.log), roots=[ROOTS[PEOPLE.index(ANN)].public])
    assert (row.provisional.count, row.provisional.newest) == (3, [format_id(run.id) for run in reversed(runs[1:])])


@pytest.mark.slow
def test_of_the_marks_of_one_participant_the_newest_are_told(village: Village, monkeypatch) -> None:
    runs = [village.run(1.9 - place / 10, f"{place}", by=ANN) for place in range(3)]
    for run in runs:
        village.refute(run, 9.0)
    monkeypatch.setattr("autoresearch.log.standing.participants.MARKS_MAX", 2)
    tracks = track_records(settled(village.log))[ROOTS[PEOPLE.index(ANN)].public]
    assert tracks.refuted == 3
    assert [mark.record for mark in tracks.marks] == [run.id for run in runs[1:]]


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=30))
def test_numbers_of_one_scale_are_summed_without_an_error(numbers: list[float]) -> None:
    sums: defaultdict[int, int] = defaultdict(int)
    for number in numbers:
        whole, scale = fixed_point(number)
        assert abs(whole) <= 2**44
        assert plain_number(whole, scale) == pytest.approx(number, rel=2**-28)
        sums[scale] += whole
    total = sum(plain_number(whole, scale) for scale, whole in sums.items())
    assert total == pytest.approx(math.fsum(numbers), rel=1e-9, abs=1e-8 * max(map(abs, numbers)))


@pytest.mark.slow
def test_a_verdict_that_changes_takes_back_what_it_said(village: Village, tmp_path: Path) -> None:
    other, run = village.run(1.3, "also good", by=ANN, **COST), village.run(1.2, "good", by=ANN, **COST)
    village.confirm(other, 2.0, 1.3)
    village.confirm(run, 2.0, 1.2)
    holds(village.log)
    for more in (
        lambda: village.replicate(run, 2.0, 1.6, CEM, EVE),  # it gained less than that
        lambda: village.evaluate(run, 9.0, EVE),
        lambda: village.evaluate(run, 9.0, CEM, EVE, DOT, AUTHOR, number=1),
    ):
        more()
        holds(village.log)


def test_who_was_wrong_begins_anew(village: Village) -> None:
    runs = [village.run(1.9 - place / 10, f"{place}", by=ANN) for place in range(3)]
    for run in runs:
        village.evaluate(run, run.body.value, BEN)
        if run is runs[1]:
            village.evaluate(run, 9.0, CEM)
            village.evaluate(run, 9.0, CEM, EVE, DOT, AUTHOR, number=1)
        else:
            village.evaluate(run, run.body.value, CEM, EVE)
    ben = ROOTS[PEOPLE.index(BEN)].public
    assert credit(settled(village.log), roots=[ben])[0].keys == [ben.hex()]
    tracks = track_records(village.log)[ben]
    assert (tracks.consecutive_valid, tracks.upheld, tracks.overruled) == (1, 2, 1)
    assert [(mark.mark, mark.evidence) for mark in tracks.marks] == [(Mark.RUBBER_STAMP, (runs[1].id,))]


def test_a_run_that_was_dropped_says_nothing_any_more(tmp_path: Path) -> None:
    everybody = Trust(participants=frozenset(each.public for each in (ROOT, *DEVICES, *WITNESSES)))
    with Log.open(tmp_path / "log.sqlite", SMALL, trust=everybody) as log:
        run = log.writer.append(DEVICES[0], "run", run_body(1.0, seed=7), now_ms=NOW_MS)
        check = Verification(run=run.id, stage="evaluate", verdict="pass", value=1.0)
        log.writer.append(DEVICES[1], "verification", check, now_ms=NOW_MS)
        assert credit(settled(log), roots=[DEVICES[0].public])[0].refuted.count == 1
        twins = [sealed(DEVICES[0], run_body(2.0, title=f"{n}"), network=SMALL) for n in range(60)]
        log.writer.ingest(pairs([twin for twin in twins if twin.id < run.id][:2]), now_ms=NOW_MS)
        assert not log.records.has([run.id])
        (author,) = credit(settled(log), roots=[DEVICES[0].public])
        assert (author.runs, author.refuted.count) == (2, 0)


def test_a_fraud_that_nobody_measured_is_not_among_the_refuted_runs(village: Village) -> None:
    lucky = village.run(1.5, "lucky", by=ANN, seed=7)
    child = village.run(1.4, "child", parent=lucky)
    village.evaluate(child, 1.4, BEN, CEM, EVE)
    (author,) = credit(settled(village.log), roots=[ROOTS[PEOPLE.index(ANN)].public])
    assert author.refuted.count == 0
    village.evaluate(lucky, 1.5, BEN)
    (author,) = credit(settled(village.log), roots=[ROOTS[PEOPLE.index(ANN)].public])
    assert author.refuted.newest == [format_id(lucky.id)]


def test_root_keys_with_one_mailbox_are_one_participant(tmp_path: Path) -> None:
    village = Village.at(tmp_path, Trust(attestors=frozenset({ROOTS[0].public}), needed=1))
    for root in ROOTS[1:3]:
        issued = village.now_ms
        body = Attestation(
            subject=root.public, tag=b"t" * 32, method="code", domain="small", issued=issued, expires=issued + 10**9
        )
        village.append(ROOTS[0], "attestation", body)
    village.run(1.5, "one", by=PEOPLE[1])
    village.run(1.4, "other", by=PEOPLE[2])
    with village.log as log:
        (row,) = credit(settled(log), roots=[ROOTS[1].public])
        assert (row.participant, row.runs) == ((b"t" * 32).hex(), 2)
        assert row.keys == sorted(root.public.hex() for root in ROOTS[1:3])
