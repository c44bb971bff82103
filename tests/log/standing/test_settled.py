"""Verdicts that are kept as rows are those of a judge who reads all records, whatever comes and whoever is trusted."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from autoresearch.judging.states import Judgement
from autoresearch.log.derive.driver import settle
from autoresearch.log.derive.people import is_weighed
from autoresearch.log.log import Log
from autoresearch.log.standing.context import trust_context, whose
from autoresearch.log.standing.verification import (
    judge_now,
    judgement,
)
from autoresearch.record.kinds import Attestation, Identity, Run, Verification
from autoresearch.record.record import Network, Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import UPHELD, RunState
from tests.log.standing.copying import models, pairs_by_rule, pairs_in_rows
from tests.log.standing.stories import ACTS, HOUR_MS, HOURS_BACK
from tests.log.standing.village import ANN, BEN, CEM, DOT, PEOPLE, ROOTS, STRANGER, Village
from tests.log.standing.village import TRUST as VILLAGERS
from tests.log.universe import DEVICES, ROOT, SMALL, WITNESSES, records
from tests.record.making import NETWORK, NOW_MS, pairs, run_body, sealed

ATTESTORS = ROOTS[:2]
BY_MAIL = Trust(attestors=frozenset(root.public for root in ATTESTORS), needed=1)
SOME = Trust(participants=frozenset(root.public for root in ROOTS[:4]))
TRUSTS = [VILLAGERS, BY_MAIL, SOME, Trust()]
YOUNG = Network(name="settled", verify_age_ms=HOUR_MS)


class Attest(NamedTuple):
    """An attestor saw somebody's mailbox."""

    attestor: KeyPair
    who: KeyPair
    days: int

    def act(self, village: Village, _: list[Record]) -> None:
        issued = village.now_ms
        body = Attestation(
            subject=self.who.public,
            tag=self.who.public,
            method="code",
            domain="small",
            issued=issued,
            expires=issued + self.days * 24 * HOUR_MS,
        )
        village.append(self.attestor, "attestation", body)


class Revoke(NamedTuple):
    """A root key ends what its device may say for it."""

    place: int

    def act(self, village: Village, _: list[Record]) -> None:
        root, device = ROOTS[self.place], PEOPLE[self.place]
        village.append(root, "identity", Identity(action="revoke", root=root.public, device=device.public))


class Delegate(NamedTuple):
    """A root key lets a device speak for it, again or for the first time."""

    place: int
    device: KeyPair

    def act(self, village: Village, _: list[Record]) -> None:
        root, device = ROOTS[self.place], self.device
        village.append(device, "identity", Identity(action="profile", root=root.public))
        village.append(root, "identity", Identity(action="delegate", root=root.public, device=device.public))


PLACES = st.integers(0, len(PEOPLE) - 1)
OF_PEOPLE = st.one_of(
    st.builds(Attest, st.sampled_from(PEOPLE[:2]), st.sampled_from(ROOTS), st.integers(0, 3)),
    st.builds(Revoke, PLACES),
    st.builds(Delegate, PLACES, st.sampled_from([*PEOPLE, STRANGER])),
)


def judged_anew(log: Log) -> dict[bytes, Judgement]:
    """What is judged of all runs from the records alone."""
    return {run.id: judge_now(log, run) for run in runs_of(log)}


def verdicts(log: Log) -> dict[bytes, Judgement]:
    return {run.id: judgement(log, run.id) for run in runs_of(log)}


def is_settled(log: Log) -> bool:
    """Whether nothing is to be judged again."""
    return is_weighed(log) and not log.todo.count()


def runs_of(log: Log) -> list[Record]:
    return [record for record in log.records.newest(limit=1000) if isinstance(record.body, Run)]


def placed(log: Log) -> dict[bytes, tuple[bool, bool]]:
    """Of each run whether its author was attested, and whether its value may be compared, by what the records say."""
    context, copied, suspects = (
        trust_context(log),
        models(log),
        dict(log.reader.rows("SELECT author, seq FROM suspect")),
    )
    run_ids = {run for (run,) in log.reader.read("SELECT id FROM run", ())}

    def is_compared(run: Record) -> bool:
        body, rules = run.body, log.tasks.rules(run.body.task)
        doubted = run.seq >= suspects.get(run.author, run.seq + 1) and judge_now(log, run).state not in UPHELD
        valued = run.id in run_ids and body.status == "ok" and body.value is not None
        return valued and rules is not None and rules.ranks(body.budget) and run.id not in copied and not doubted

    return {run.id: (whose(run.author, run.time, context).attested, is_compared(run)) for run in runs_of(log)}


def in_rows(log: Log) -> dict[bytes, tuple[bool, bool]]:
    """The same by the rows, of the runs that are settled."""
    query = """
    SELECT record.id, attested, compared FROM standing JOIN record ON record.n = standing.n
    WHERE standing.n NOT IN (SELECT key FROM todo WHERE step = 'verdicts')
    """
    return {run: (bool(attested), bool(compared)) for run, attested, compared in log.reader.read(query, ())}


def rows(log: Log) -> dict[bytes, Judgement]:
    """What a reader finds settled that has just come."""
    with Log.open(log.path, log.network, read_only=True, trust=log.trust) as reader:
        return reader.standings.of([run.id for run in runs_of(reader)])


def holds(log: Log) -> None:
    """Whether what is settled follows from the records; each run has a row, settled or not."""
    truth, placements, settled = judged_anew(log), placed(log), in_rows(log)
    (numbers,) = log.reader.read("SELECT count(*) FROM standing", ())
    assert numbers == (len(placements),)
    if is_weighed(log):
        assert settled == {run: placements[run] for run in settled}
        with Log.open(log.path, log.network, read_only=True, trust=log.trust) as reader:
            stored_verdicts = verdicts(reader)
        assert {run: stored_verdicts[run] for run in settled} == {run: truth[run] for run in settled}
        if is_weighed(log) and not log.todo.count():
            assert settled.keys() == truth.keys()


STORY = st.lists(st.tuples(st.one_of(ACTS, ACTS, OF_PEOPLE), HOURS_BACK), min_size=4, max_size=14)


@pytest.mark.slow
@given(STORY, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_a_settled_verdict_is_what_the_records_say(tmp_path_factory, story, dice: random.Random) -> None:
    folder = tmp_path_factory.mktemp("log")
    with Log.open(folder / "log.sqlite", YOUNG, trust=dice.choice(TRUSTS)) as log:
        village = Village(log)
        village.now_ms += 24 * HOUR_MS
        assert village.baseline is not None
        runs = [village.baseline]
        for what, hours in story:
            with village.earlier(hours * HOUR_MS):
                what.act(village, runs)
            if dice.random() < 0.5:
                settle(log, seconds=dice.choice([0, 10]))
            if dice.random() < 0.1:
                log.trust = dice.choice(TRUSTS)
            if dice.random() < 0.3:
                holds(log)
        settle(log, seconds=10)
        assert is_weighed(log)
        assert not log.todo.count()
        holds(log)
        assert in_rows(log) == placed(log)
        before_rebuild = in_rows(log)
        log.writer.rebuild()
        settle(log, seconds=10)
        assert in_rows(log) == before_rebuild


@given(records(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_it_is_so_when_records_are_dropped_and_come_in_any_order(tmp_path_factory, made, dice: random.Random) -> None:
    folder = tmp_path_factory.mktemp("log")
    people = (ROOT, *DEVICES, *WITNESSES)
    everybody = Trust(participants=frozenset(person.public for person in people))
    with Log.open(folder / "log.sqlite", SMALL, trust=everybody) as log:
        for record in dice.sample(made, len(made)):
            log.writer.ingest(pairs([record]), now_ms=NOW_MS + 10)
            if dice.random() < 0.4:
                settle(log, seconds=10)
        settle(log, seconds=10)
        holds(log)
        assert in_rows(log) == placed(log)
        assert pairs_in_rows(log) == pairs_by_rule(log)


@pytest.mark.slow
def test_a_restart_judges_nothing_again_and_a_new_word_only_what_it_is_about(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        runs = [village.run(1.9 - place / 10, f"run {place}") for place in range(4)]
        for run in runs:
            village.confirm(run, 2.0, run.body.value)
        other = village.run(1.2, "other")
        assert settle(log, seconds=60) == 0
        confirmed = rows(log)
        assert [confirmed[run.id].state for run in runs] == [RunState.CONFIRMED] * 4
        assert confirmed[other.id].state is RunState.REPORTED, "nobody measured it"
        village.evaluate(runs[0], 9.0, DOT, number=1)
        assert log.todo.count() == 0
        assert rows(log)[runs[0].id].voters == confirmed[runs[0].id].voters + 1


def test_another_trust_list_changes_what_those_measured_of_whom_it_speaks(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        first, second = village.run(1.5, "first"), village.run(1.4, "second")
        village.evaluate(first, 1.5, ANN, BEN, CEM)
        settle(log, seconds=60)
        before = rows(log)[first.id]
        log.trust = SOME  # the number of voters is another one: all that was verified may be judged otherwise
        assert judgement(log, first.id) == before, "a reader takes no list in"
        village.run(1.3, "third")
        assert rows(log)[first.id] == before, "nor does a writer"
        assert log.todo.count() == 1
        assert settle(log, seconds=60) == 0
        assert rows(log)[first.id] == judge_now(log, first)
        log.trust = VILLAGERS
        settle(log, seconds=60)
        assert judgement(log, first.id) == before
        assert rows(log)[second.id].state is RunState.REPORTED


def test_settling_is_cut_into_pieces_and_goes_on(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        for place in range(5):
            run = village.run(1.9 - place / 10, f"run {place}")
            village.evaluate(run, run.body.value, ANN)
        log.trust = SOME
        left = [settle(log, seconds=0) for _ in range(8)]
        assert left == sorted(left, reverse=True)
        assert left[0] > left[-1] == 0


def settled_again(log: Log) -> dict[bytes, Judgement]:
    """All rows, after a look whether those hold that nothing touched."""
    holds(log)
    settle(log, seconds=60)
    return rows(log)


@pytest.mark.slow
def test_what_is_measured_of_a_run_unsettles_its_parent_and_its_children(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        parent = village.run(1.5, "P")
        child = village.run(1.4, "C", parent=parent)
        village.evaluate(parent, 1.5, BEN, CEM, DOT)
        village.evaluate(child, 1.4, BEN, CEM, DOT)
        settle(log, seconds=60)
        states = [verdicts(log)[run.id].state for run in (parent, child)]
        assert states == [RunState.PROVISIONAL] * 2
        for who in (BEN, CEM, DOT):  # in other worlds the parent is far worse than it says
            village.replicate(child, 3.0, 2.0, who)
            settled_again(log)
        assert rows(log)[parent.id].state is RunState.DISPUTED, "by what was measured of its child"
        before = rows(log)[child.id]
        for who in (BEN, CEM, DOT):  # and so is its number, from then on
            village.replicate(parent, 4.0, 3.0, who)
            settled_again(log)
        assert rows(log)[child.id] != before, "by what was measured of its parent"


def test_a_fraud_that_comes_late_unsettles_what_its_author_verified(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        run = village.run(1.5, "P")
        village.now_ms += HOUR_MS
        village.evaluate(run, 1.5, BEN, CEM, DOT)
        settle(log, seconds=60)
        assert rows(log)[run.id].state is RunState.PROVISIONAL
        with village.earlier(HOUR_MS // 2):
            village.run(1.0, "cheated", by=BEN, seed=7)
        assert settled_again(log)[run.id].state is RunState.REPORTED


def test_a_voter_who_comes_late_unsettles_runs_that_it_has_nothing_to_do_with(tmp_path) -> None:
    trust = Trust(attestors=frozenset({ATTESTORS[0].public}), needed=1)
    with Log.open(tmp_path / "log.sqlite", YOUNG, trust=trust) as log:
        village = Village(log)
        for root in ROOTS[1:3]:
            Attest(ROOTS[0], root, 9).act(village, [])
        village.now_ms += 9 * HOUR_MS
        run = village.run(1.5, "P")
        village.evaluate(run, 1.5, ANN)
        settle(log, seconds=60)
        assert rows(log)[run.id].state is RunState.PROVISIONAL, "two voters: one evaluation is a quorum"
        with village.earlier(8 * HOUR_MS):
            for root in ROOTS[3:]:
                Attest(ROOTS[0], root, 9).act(village, [])
        assert settled_again(log)[run.id].state is RunState.REPORTED


def test_a_run_that_was_dropped_leaves_no_row(tmp_path) -> None:
    everybody = Trust(participants=frozenset(each.public for each in (ROOT, *DEVICES, *WITNESSES)))
    with Log.open(tmp_path / "log.sqlite", SMALL, trust=everybody) as log:
        body = run_body(1.0)
        twins = sorted(
            (sealed(DEVICES[0], replace(body, title=f"{n}"), network=SMALL) for n in range(3)), key=lambda run: run.id
        )
        log.writer.ingest(pairs(twins[1:]), now_ms=NOW_MS)
        for run in twins[1:]:
            check = Verification(run=run.id, stage="evaluate", verdict="pass", value=1.0)
            log.writer.append(DEVICES[1], "verification", check, now_ms=NOW_MS)
        settle(log, seconds=60)
        assert len(rows(log)) == 2
        log.writer.ingest(pairs(twins[:1]), now_ms=NOW_MS)
        assert rows(log).keys() == {twin.id for twin in twins[:2]}, "of one number two are kept"
        count = log.reader.read("SELECT count(*) FROM standing", ())
        assert count == [(2,)]


def test_a_task_whose_rules_come_late_settles_its_runs_again(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        written = log.records.newest(kind="task")[0]
        runs = [village.run(1.5, "P")]
        village.evaluate(runs[0], 1.52, BEN, CEM, DOT)
        copied = pairs([run for run in log.records.newest(limit=1000) if run.id != written.id])
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=VILLAGERS) as other:
        other.writer.ingest(copied, now_ms=village.now_ms)
        settle(other, seconds=60)
        before = rows(other)[runs[0].id]
        other.writer.ingest(pairs([written]), now_ms=village.now_ms)
        assert settled_again(other)[runs[0].id] != before
