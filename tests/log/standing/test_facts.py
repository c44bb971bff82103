"""What is kept of participants as sums is what all records say, whatever comes and whoever is trusted."""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.credit import all_evidence, credit
from autoresearch.log.standing.participants import TrackRecord, track_records
from autoresearch.log.standing.precedence import bans, copies
from autoresearch.log.standing.verification import counted_verifications, judged
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.words import UPHELD, EvidenceKind, Mark, RunState
from tests.log.standing.stories import ACTS, HOUR_MS, HOURS_BACK, PERSON, PLACE
from tests.log.standing.test_settled import OF_PEOPLE, TRUSTS, YOUNG, runs_of
from tests.log.standing.village import Village, settled
from tests.record.making import pairs

FULL = 1e12
# Each example writes logs.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


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
        body, found = run.body, judged(log, run)
        assert isinstance(body, Run)
        if not log.verifications.of(run.id):
            continue
        spoken, state = voter(run.author, run.time), found.state
        own = Fact(run.time, run.id, spoken.root, spoken.voter, state.value, None)
        if state in UPHELD and body.cpu_ms > 1024 * body.duration_ms:
            own = own._replace(implausible=True)
        elif state in UPHELD:
            rules = log.tasks.rules(body.task)
            own = own._replace(ms=body.cpu_ms, work=body.budget if rules else 0.0)
        if state is RunState.CONFIRMED:
            own = own._replace(right=True, gain=found.improvement)
        yield own._replace(right=False, marked=True) if state is RunState.REFUTED else own
        for one in counted_verifications(log, run):
            said = voter(one.author, one.time)
            right = one.passed == (state in UPHELD) if one.decides else None
            stamp = one.stage == "evaluate" and one.passed and state is RunState.REFUTED
            what = "replication" if one.stage == "replicate" else "pass" if one.passed else "fail"
            if state is RunState.REFUTED and what == "fail":
                what = "refutation"
            yield Fact(one.time, one.id, said.root, said.voter, what, right, one.spent_ms, marked=stamp)


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
    found: dict[str, dict[str, object]] = {}
    for who, its in by_whom.items():
        own, checks = ([fact for fact in its if (fact.what in CHECKS) is kind] for kind in (False, True))
        listed = {name: [fact.id for fact in its if fact.what in what] for name, what in KINDS.items()}
        listed["implausible"] = [fact.id for fact in own if fact.implausible]
        found[who.hex()] = {name: (len(ids), [format_id(one) for one in ids]) for name, ids in listed.items()} | {
            "cpu_ms": sum(fact.ms for fact in own),
            "verifying_ms": sum(fact.ms for fact in checks),
            "work": pytest.approx(sum(fact.work for fact in own), rel=1e-6),
            "gain": pytest.approx(sum(fact.gain or 0.0 for fact in own), rel=1e-6, abs=1e-9),
            "gains": sum(fact.gain is not None for fact in own),
        }
    return {who: facts for who, facts in found.items() if did_more(facts)}


def shown(log: Log) -> dict[str, dict[str, object]]:
    """The same from the sums."""
    found: dict[str, dict[str, object]] = {}
    for view in credit(log):
        (row,) = credit(log, roots=[bytes.fromhex(view.keys[0])])
        listed = {name: getattr(row, name) for name in (*KINDS, "implausible")}
        assert {name: getattr(view, name).count for name in listed} == {name: one.count for name, one in listed.items()}
        found[row.participant] = {name: (one.count, one.newest) for name, one in listed.items()} | {
            "cpu_ms": row.cpu_ms,
            "verifying_ms": row.verifying_ms,
            "work": row.work,
            "gain": sum(gain.total for gain in row.improvements),
            "gains": sum(gain.runs for gain in row.improvements),
        }
    return {who: facts for who, facts in found.items() if did_more(facts)}


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
    found: dict[bytes, TrackRecord] = {}
    for voter in {*by_voter, *bad}:
        its = by_voter[voter]
        last_ms = max([*bad[voter], *(fact.time for fact in its if not fact.right)], default=-1)
        found[voter] = TrackRecord(
            voter,
            consecutive_valid=sum(fact.right and fact.time > last_ms for fact in its),
            confirmed=sum(bool(fact.right) for fact in its if fact.what not in CHECKS),
            refuted=sum(not fact.right for fact in its if fact.what not in CHECKS),
            upheld=sum(bool(fact.right) for fact in its if fact.what in CHECKS),
            overruled=sum(not fact.right for fact in its if fact.what in CHECKS),
            banned_until_ms=max((ban.end_ms for ban in bans(log).by_key.get(voter, ())), default=None),
        )
    return found


@contextmanager
def judged_anew(log: Log, folder: Path) -> Iterator[Log]:
    """The same records without anything that was settled."""
    path = folder / f"{random.randbytes(8).hex()}.sqlite"
    log.reader.connection.execute("VACUUM INTO ?", (str(path),))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM standing")
    connection.close()
    with Log.open(path, log.network, read_only=True, trust=log.trust) as other:
        yield other


def tables(log: Log) -> tuple[list[object], ...]:
    """The rows, without the numbers of records."""
    query = """
    SELECT run.id, said.id, fact.* FROM fact JOIN record AS run ON run.n = fact.n JOIN record AS said ON said.n = said
    """
    rows = [(*row[:2], *row[4:]) for row in log.reader.read(query, ())]
    return sorted(rows), log.reader.read("SELECT * FROM credit", ()), log.reader.read("SELECT * FROM run_count", ())


def holds(log: Log, folder: Path) -> None:
    with judged_anew(settled(log), folder) as other:
        expected, track = accounts(other), records_of(other)
        marked = {fact.id for fact in facts(other) if fact.marked}
        doubted = {one.id for one in runs_of(other) if judged(other, one).state in ("disputed", "refuted")}
        doubted = {run for run in doubted if other.verifications.of(run)}
    assert shown(log) == expected
    told = track_records(log)
    assert {who: one._replace(marks=()) for who, one in told.items()} == track
    marks = {mark.record for one in told.values() for mark in one.marks if mark.mark not in (Mark.FRAUD, Mark.COPIER)}
    assert marks == marked
    assert {one.records[0] for one in all_evidence(log) if one.kind is EvidenceKind.VALUE} == doubted


@given(STORY, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
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
                holds(log, folder)
        holds(log, folder)
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
