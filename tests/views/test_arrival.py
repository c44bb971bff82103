"""Whatever arrives first, and whatever was asked in between: the same words, numbers, places and track records."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from autoresearch.identity import KeyPair
from autoresearch.log import Log
from autoresearch.records import BlobRef, Commitment, Record, Run, Verification, Withdrawal
from autoresearch.views import (
    board,
    company,
    copies,
    credit,
    judgement,
    next_duty,
    preferred,
    proofs,
    same_models,
    statistics,
    track_records,
    vouched,
)
from tests.records.making import NETWORK, pairs
from tests.views.village import ANN, BEN, PEOPLE, STRANGER, TRUST, Village

HOUR_MS = 3_600_000
MODEL = BlobRef(sha256=b"m" * 32, size=5)


class Publish(NamedTuple):
    """Somebody publishes a run, of its own or another's program."""

    who: KeyPair
    name: str
    value: float
    above: int
    has_model: bool

    def act(self, village: Village, runs: list[Record]) -> None:
        model = MODEL if self.has_model else None
        parent = runs[self.above % len(runs)]
        runs.append(village.run(self.value, self.name, by=self.who, parent=parent, links=runs[-2:], checkpoint=model))


class Evaluate(NamedTuple):
    """Some come to a value, or to what the author says, in one round or the other."""

    run: int
    value: float | None
    people: list[KeyPair]
    number: int

    def act(self, village: Village, runs: list[Record]) -> None:
        run = runs[self.run % len(runs)]
        value = run.body.value if self.value is None else self.value
        village.evaluate(run, value, *self.people, number=self.number)


class Refute(NamedTuple):
    """Others come to another number, and so do those who are asked then."""

    run: int

    def act(self, village: Village, runs: list[Record]) -> None:
        village.refute(runs[self.run % len(runs)], 9.0)


class Replicate(NamedTuple):
    """Some run it beside its parent."""

    run: int
    before: float
    people: list[KeyPair]

    def act(self, village: Village, runs: list[Record]) -> None:
        run = runs[self.run % len(runs)]
        village.replicate(run, self.before, run.body.value, *self.people)


class Withdraw(NamedTuple):
    """A device takes back something that it said."""

    place: int

    def act(self, village: Village, runs: list[Record]) -> None:
        own = {who.public: who for who in (*PEOPLE, STRANGER)}
        said = [one for one in village.log.records(limit=1000) if isinstance(one.body, Run | Commitment | Verification)]
        one = said[self.place % len(said)]
        village.append(own[one.author], "withdrawal", Withdrawal(), [one.id])


PLACE, PERSON = st.integers(0, 9), st.sampled_from(PEOPLE)
SOME = st.lists(PERSON, min_size=1, max_size=5, unique_by=lambda who: who.public)
VALUE = st.sampled_from([1.9, 1.5, 0.1])
CLAIMED = st.none()
ACTS = st.one_of(
    st.builds(Publish, PERSON | st.just(STRANGER), st.sampled_from("abcd"), VALUE, PLACE, st.booleans()),
    st.builds(Evaluate, PLACE, CLAIMED, SOME, st.just(0)),
    st.builds(Evaluate, PLACE, CLAIMED | VALUE, SOME, st.integers(0, 1)),
    st.builds(Replicate, PLACE, st.sampled_from([2.0, 1.9, 9.0]), SOME),
    st.builds(Refute, PLACE),
    st.builds(Withdraw, st.integers(0, 99)),
)
HOURS_BACK = st.sampled_from([0, 0, 0, 1, 3])


def seen(log: Log, task: bytes):
    """Everything that follows from the records."""
    runs = sorted((one for one in log.records(limit=1000) if isinstance(one.body, Run)), key=lambda run: run.id)
    words = {run.id: judgement(log, run.id) for run in runs}
    here = company(log, ANN.public)
    ranked = board(log, task, here, limit=50), preferred(log, task, here), list(vouched(log, task, here))
    people = track_records(log), credit(log), proofs(log)
    return words, ranked, people, statistics(log, task), same_models(log), sorted(copies(log))


def duty_of(who: KeyPair, log: Log, task: bytes, now_ms: int):
    return next_duty(log, task, who.public, bytes(who.key), now_ms)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each example writes logs
)
@given(st.lists(st.tuples(ACTS, HOURS_BACK), min_size=4, max_size=16), st.randoms(use_true_random=False))
def test_whatever_arrives_first_the_same_is_seen(tmp_path_factory, story, order: random.Random) -> None:
    village = Village.at(tmp_path_factory.mktemp("log"))
    village.now_ms += 24 * HOUR_MS
    runs = [village.baseline]
    for what, hours in story:
        with village.earlier(hours * HOUR_MS):
            what.act(village, runs)
    now_ms, batch = village.now_ms + HOUR_MS, pairs(village.log.records(limit=1000))
    last = seen(village.log, village.task)
    village.log.close()
    order.shuffle(batch)
    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
        for start in range(0, len(batch), 6):
            log.ingest(batch[start : start + 6], now_ms=now_ms)
            between, duty = seen(log, village.task), duty_of(BEN, log, village.task, now_ms)
            with Log.open(log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
                assert seen(fresh, village.task) == between
                assert duty_of(BEN, fresh, village.task, now_ms) == duty  # it depends on what was heard first
        assert seen(log, village.task) == last
