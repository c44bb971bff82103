"""What may happen to the log of a village, for properties: runs, verifications, fraud, forks, withdrawals, merges."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from autoresearch.record.kinds import BlobRef, Claim, Commitment, Run, Verification, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from tests.log.standing.village import PEOPLE, STRANGER, Village
from tests.record.making import run_body

HOUR_MS = 3_600_000
MODEL = BlobRef(sha256=b"m" * 32, size=5)


SEEDLESS = b"s" * 32


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
        # Every program but "b" has a seed in it; "a" and "c" differ in nothing else.
        seedless = None if self.name == "b" else SEEDLESS
        runs.append(
            village.run(
                self.value, self.name, by=self.who, parent=parent, links=runs[-2:], checkpoint=model, seedless=seedless
            )
        )


class Intend(NamedTuple):
    """Somebody announces that it tries a program."""

    who: KeyPair
    name: str

    def act(self, village: Village, _: list[Record]) -> None:
        digest = run_body(source=self.name.encode()).source_digest
        until_ms = village.now_ms + HOUR_MS
        village.append(self.who, "claim", Claim(task=village.task, source_digest=digest, until=until_ms))


class Cheat(NamedTuple):
    """Somebody publishes a run with a seed of its own choice: fraud for all to see."""

    who: KeyPair
    value: float

    def act(self, village: Village, runs: list[Record]) -> None:
        runs.append(village.run(self.value, "cheated", by=self.who, seed=7))


class Fork(NamedTuple):
    """An old copy of a device's log was put back: it signs another run with the number of its last record."""

    who: KeyPair
    value: float

    def act(self, village: Village, runs: list[Record]) -> None:
        runs.append(village.fork(self.who, self.value, "forked"))


class Merge(NamedTuple):
    """A root key ends the forks of its device."""

    who: KeyPair

    def act(self, village: Village, _: list[Record]) -> None:
        village.merge(self.who)


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
        records = [
            run
            for run in village.log.records.newest(limit=1000)
            if isinstance(run.body, Run | Claim | Commitment | Verification)
        ]
        record = records[self.place % len(records)]
        village.append(own[record.author], "withdrawal", Withdrawal(), [record.id])


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
    st.builds(Intend, PERSON, st.sampled_from("abcd")),
    st.builds(Cheat, PERSON, VALUE),
    st.builds(Fork, PERSON, VALUE),
    st.builds(Merge, PERSON),
)
HOURS_BACK = st.sampled_from([0, 0, 0, 1, 3])
STORIES = st.lists(st.tuples(ACTS, HOURS_BACK), min_size=4, max_size=16)


def play(village: Village, story: list[tuple[object, int]]) -> Village:
    """A village to which all this happened, a day after it began."""
    village.now_ms += 24 * HOUR_MS
    assert village.baseline is not None
    runs = [village.baseline]
    for what, hours in story:
        with village.earlier(hours * HOUR_MS):
            what.act(village, runs)  # type: ignore[attr-defined]
    return village
