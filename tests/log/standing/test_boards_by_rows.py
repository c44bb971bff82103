"""Boards that are read from rows are those that follow from all runs, in whatever order these came."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.judging.statistics import CountedRun, pool, rank
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.rows import ProgramRow
from autoresearch.log.standing.bases import checked, leading, unvouched, vouched
from autoresearch.log.standing.context import TrustContext, trust_context, whose
from autoresearch.log.standing.precedence import order_of
from autoresearch.log.standing.verification import checkers_of, judgement
from autoresearch.log.tables.runs import CONFIRMED, KINDS, OPEN, PROVISIONAL
from autoresearch.record.record import Record
from autoresearch.words import REOPENED, UNDECIDED, UPHELD, RunState
from tests.log.standing.copying import models, pairs_by_rule, pairs_in_rows
from tests.log.standing.stories import ACTS, HOUR_MS, HOURS_BACK, Publish
from tests.log.standing.test_settled import OF_PEOPLE, SOME, TRUSTS, YOUNG
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, PEOPLE, STRANGER, Village
from tests.log.standing.village import TRUST as VILLAGERS
from tests.record.making import NETWORK, NOW_MS, pairs, run_body, sealed

UNFINISHED = UNDECIDED | REOPENED
# What identifies a row of a board, and orders it.
Row = tuple[float, int, bytes, int, float, bytes]
AGAIN = st.builds(
    Publish,
    st.sampled_from([*PEOPLE, STRANGER]),
    st.sampled_from("ab"),
    st.sampled_from([1.9, 1.5]),
    st.just(0),
    st.booleans(),
)
STORY = st.lists(st.tuples(st.one_of(ACTS, AGAIN, AGAIN, OF_PEOPLE), HOURS_BACK), min_size=4, max_size=16)


class Truth:
    """The boards of a log, by its records."""

    def __init__(self, log: Log, task: bytes) -> None:
        self._log, self.context = log, trust_context(log)
        self._rules, self._models, suspects = (
            log.tasks.rules(task),
            models(log),
            dict(log.reader.rows("SELECT author, seq FROM suspect")),
        )
        run_ids = {run for (run,) in log.reader.read("SELECT id FROM run WHERE task = ?", (task,))}
        self.programs: defaultdict[tuple[bytes, float], list[Record]] = defaultdict(list)
        for run in log.records.newest(limit=1000):
            if run.id in run_ids and run.body.status == "ok" and run.body.value is not None:
                self.programs[run.body.idea, run.body.budget].append(run)
        self._forked = {
            run.id
            for runs in self.programs.values()
            for run in runs
            if run.seq >= suspects.get(run.author, run.seq + 1)
        }

    def attested(self, run: Record, *, doubted: bool = False) -> bool:
        """Whether a run counts as an attested participant's."""
        return whose(run.author, run.time, self.context).attested and (doubted or self._counts(run))

    def unattested(self, run: Record) -> bool:
        """Whether it counts as another's."""
        return not whose(run.author, run.time, self.context).attested and self._counts(run)

    def _counts(self, run: Record) -> bool:
        return run.id not in self._forked or judgement(self._log, run.id).state in UPHELD

    def firsts(self, counts: Callable[[Record], bool]) -> list[Row]:
        """Each program by the device that published it first, of the runs that count."""
        rows = []
        for runs in self.programs.values():
            by_device: defaultdict[bytes, list[Record]] = defaultdict(list)
            for run in filter(counts, runs):
                by_device[run.author].append(run)
            if by_device:
                earliest = [min(own, key=lambda run: (run.time, run.id)) for own in by_device.values()]
                rows += self.row(by_device[order_of(self._log, earliest).first(earliest).author])
        return sorted(rows)

    def row(self, runs: list[Record], first: Record | None = None) -> list[Row]:
        """Runs of one device as a row of a board, if they are on one."""
        bodies = ((run, run.body) for run in runs)
        pooled = pool(
            (
                CountedRun(run.time, run.id, body.value, run.author, body.replicate, "", body.source_digest)
                for run, body in bodies
            ),
            clocked=False,
        )
        body = runs[0].body
        if pooled is None or self._rules is None or not self._rules.ranks(body.budget):
            return []
        run, ranked = first or pooled.first, rank(pooled.mean, pooled.runs, self._rules)
        if ranked is None or pooled.first.id in self._models or run.id in self._models:
            return []
        return [(ranked, run.time, run.id, pooled.runs, pooled.mean, run.author)]

    def measured(self, voters: int) -> defaultdict[RunState, list[Row]]:
        """Each program by the first of its runs that so many attested participants measured; by the state of that."""
        rows = defaultdict[RunState, list[tuple[float, Row]]](list)
        for runs in self.programs.values():
            some: dict[bytes, tuple[Record, Row]] = {}
            for run in sorted(filter(self.attested, runs), key=lambda run: (run.time, run.id)):
                own = [each for each in runs if each.author == run.author and self.attested(each)]
                if len(checkers_of(self._log, run.id)) >= voters and (row := self.row(own, run)):
                    some.setdefault(run.author, (run, row[0]))
            if some:
                first = order_of(self._log, [run for run, _ in some.values()]).first([run for run, _ in some.values()])
                row, judged = some[first.author][1], judgement(self._log, first.id)
                value = row[4] if judged.value is None else judged.value
                order = self._rules.sign * value if judged.state is RunState.CONFIRMED else row[0]
                rows[judged.state].append((order, row))
        in_order = {state: sorted(some, key=lambda each: (each[0], *each[1][1:])) for state, some in rows.items()}
        return defaultdict(list, {state: [row for _, row in some] for state, some in in_order.items()})

    def vouched_for(self) -> set[bytes]:
        """The programs that attested participants have."""
        return {digest for (digest, _), runs in self.programs.items() if any(map(self.attested, runs))}


def as_row(row: ProgramRow) -> Row:
    assert row.rank is not None
    return row.rank, row.first_time, row.first, row.runs, row.mean, row.author


def checked_rows(log: Log, task: bytes, context: TrustContext, kinds: Collection[int]) -> list[Row]:
    return [as_row(program.row) for program in checked(log, task, context, kinds)]


def holds(log: Log, task: bytes) -> None:
    assert pairs_in_rows(log) == pairs_by_rule(log)
    truth, context = Truth(log, task), trust_context(log)
    if not context.naming:
        return
    assert list(map(as_row, vouched(log, task, context))) == truth.firsts(truth.attested)
    forked = list(map(as_row, vouched(log, task, context, forked=True)))
    assert forked == truth.firsts(partial(truth.attested, doubted=True))
    facts = truth.vouched_for()
    others = truth.firsts(lambda run: truth.unattested(run) and run.body.idea not in facts)
    assert list(map(as_row, unvouched(log, task, context))) == others
    for voters, by_state in enumerate(KINDS, start=1):
        rows, kinds = truth.measured(voters), {*by_state.values()}
        assert sorted(checked_rows(log, task, context, kinds)) == sorted(row for some in rows.values() for row in some)
        for kind in {OPEN, CONFIRMED, PROVISIONAL} & kinds:
            states = UNFINISHED if kind == OPEN else {RunState.CONFIRMED if kind == CONFIRMED else RunState.PROVISIONAL}
            expected = [row for state in states for row in rows[state]]
            assert checked_rows(log, task, context, [kind]) == (sorted(expected) if kind == OPEN else expected)
    confirmed = [
        judged.value
        for runs in truth.programs.values()
        for run in filter(truth.attested, runs)
        if (judged := judgement(log, run.id)).state is RunState.CONFIRMED and run.id not in models(log)
    ]
    assert leading(log, task) == min((value for value in confirmed if value is not None), default=None)


def entries(log: Log) -> list[tuple[object, ...]]:
    """All rows, but for the numbers in which records came."""
    query = """
    SELECT task, seedless, budget, author, vouch, hardware, time, first, runs, mean, rank, copy, place
    FROM entry ORDER BY 1, 2, 3, 4, 5, 6
    """
    return log.reader.read(query, ())


@pytest.mark.slow
@given(STORY, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_boards_are_what_the_records_say(tmp_path_factory, story, dice: random.Random) -> None:
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
            if dice.random() < 0.3:
                settle(log, seconds=10)
                holds(log, village.task)
        settle(log, seconds=10)
        holds(log, village.task)
        rows = entries(log)
        log.writer.rebuild()
        settle(log, seconds=10)
        assert entries(log) == rows
        shuffled = pairs(log.records.newest(limit=1000))
        dice.shuffle(shuffled)
        trust = log.trust
    with Log.open(folder / "other.sqlite", YOUNG, trust=trust) as other:
        while shuffled:
            batch = [shuffled.pop() for _ in range(min(len(shuffled), dice.choice([1, 2, 50])))]
            other.writer.ingest(batch, now_ms=NOW_MS + 100 * HOUR_MS)
            if dice.random() < 0.1:
                settle(other, seconds=10)
        settle(other, seconds=10)
        assert entries(other) == rows


def test_a_program_is_anothers_once_it_is_known_who_saw_which_run_first(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        village.now_ms += HOUR_MS
        later = village.run(1.5, "P", by=ANN)
        with village.earlier(HOUR_MS // 2):
            earlier = village.run(1.4, "P", by=BEN)
        context = trust_context(log)
        firsts = [next(vouched(log, village.task, context)).first]
        for number, who in enumerate((CEM, DOT)):
            village.run(1.9, f"by another {number}", by=who, links=[later])
            firsts.append(next(vouched(log, village.task, context)).first)
        assert firsts == [earlier.id, earlier.id, later.id]
        log.trust = SOME  # one of those who saw it counts no longer
        settle(log, seconds=60)
        assert next(vouched(log, village.task, trust_context(log))).first == earlier.id


def test_a_record_that_comes_late_says_that_its_device_saw_runs_later(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        runs = [village.run(1.5, "P", by=who) for who in (ANN, BEN)]
        head = log.devices.head(CEM.public)
        assert head is not None
        late = sealed(CEM, run_body(1.9), seq=head.seq + 1, prev=head.id, time_ms=village.now_ms + HOUR_MS)
        body = run_body(1.9, source=b"said")
        links = (runs[0].id,)
        record = sealed(CEM, body, seq=late.seq + 1, prev=late.id, time_ms=village.now_ms + 1000, links=links)
        log.writer.ingest(pairs([record]), now_ms=village.now_ms + HOUR_MS)
        for who, run in ((AUTHOR, runs[0]), (DOT, runs[1]), (EVE, runs[1])):
            village.run(1.9, f"by {who.public.hex()}", by=who, links=[run])
        context = trust_context(log)
        assert next(vouched(log, village.task, context)).first == runs[0].id
        log.writer.ingest(pairs([late]), now_ms=village.now_ms + HOUR_MS)
        assert next(vouched(log, village.task, context)).first == runs[1].id


def test_a_fork_takes_runs_off_the_board_that_had_come_before_it_and_a_merge_brings_them_back(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=VILLAGERS) as log:
        village = Village(log)
        run = village.run(1.5, "P", by=ANN)
        context = trust_context(log)
        assert next(vouched(log, village.task, context)).first == run.id
        village.fork(ANN, 1.4, "forked")
        assert next(vouched(log, village.task, context)).author == AUTHOR.public
        holds(log, village.task)
        village.merge(ANN)
        assert next(vouched(log, village.task, context)).author == ANN.public
        holds(log, village.task)
