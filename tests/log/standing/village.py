"""A log of several attested participants who run and verify, and of one whom nobody attested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.record.kinds import Identity, Merge, Run, Verification
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from tests.record.making import (
    DEFINITION,
    NETWORK,
    NOW_MS,
    commitment,
    digest_of,
    key,
    opened,
    pairs,
    run_body,
    sealed,
    task_body,
)

PEOPLE = [key(number) for number in range(1, 7)]
ROOTS = [key(100 + number) for number in range(6)]
AUTHOR, ANN, BEN, CEM, DOT, EVE = PEOPLE
STRANGER = key(50)
TRUST = Trust(participants=frozenset(root.public for root in ROOTS))


def settled(log: Log) -> Log:
    """The same log once nothing is to be judged any more."""
    assert settle(log, seconds=60) == 0
    return log


class Village:
    """Records in a log, each a second after the one before, about the task of the tests or another one."""

    def __init__(self, log: Log, definition: dict[str, object] | None = None) -> None:
        self.log, self.now_ms, self.definition = log, NOW_MS, definition or DEFINITION
        for device, root in zip(PEOPLE, ROOTS, strict=True):
            self.append(root, "identity", Identity(action="delegate", root=root.public, device=device.public))
            self.append(device, "identity", Identity(action="profile", root=root.public))
        self.append(AUTHOR, "task", task_body(self.definition))
        self.baseline: Record | None = None
        self.baseline = self.run(2.0, "baseline")

    @classmethod
    def at(cls, folder: Path, trust: Trust = TRUST, definition: dict[str, object] | None = None) -> Village:
        """A village in a new log; close the log afterwards."""
        return cls(Log.open(folder / "log.sqlite", NETWORK, trust=trust), definition)

    @property
    def task(self) -> bytes:
        """The task's digest."""
        return digest_of(self.definition)

    def append(self, author: KeyPair, kind: str, body: object, links: Sequence[bytes] = ()) -> Record:
        """The next record."""
        self.now_ms += 1000
        return self.log.writer.append(author, kind, body, now_ms=self.now_ms, links=links)

    def run(
        self,
        value: float | None,
        name: str,
        *,
        by: KeyPair = AUTHOR,
        parent: Record | None = None,
        links: Sequence[Record] = (),
        **fields: object,
    ) -> Record:
        """Publish a run, a child of the baseline if none is named; ``links`` are what its author had seen besides."""
        above = parent or self.baseline
        body = self._body(value, name, above, fields)
        return self.append(by, "run", body, [*([above.id] if above else []), *(run.id for run in links)])

    def _body(self, value: float | None, name: str, above: Record | None, fields: dict[str, object]) -> Run:
        arguments = {"task": self.task, "budget": self.definition["budget"]["amount"]} | fields  # type: ignore[index]
        return run_body(value, source=name.encode(), title=name, parent=above.id if above else None, **arguments)

    def fork(self, who: KeyPair, value: float, name: str) -> Record:
        """A device whose old copy was put back signs another run with the number of its last record."""
        head = self.log.devices.head(who.public)
        assert head is not None
        self.now_ms += 1000
        other = sealed(who, self._body(value, name, self.baseline, {}), seq=head.seq, time_ms=self.now_ms)
        self.log.writer.ingest(pairs([other]), now_ms=self.now_ms)
        return other

    def merge(self, who: KeyPair) -> Record:
        """The root key of a device ends its forks up to its last record."""
        head = self.log.devices.head(who.public)
        assert head is not None
        return self.append(ROOTS[PEOPLE.index(who)], "merge", Merge(device=who.public, heads=[head.id]))

    @contextmanager
    def earlier(self, ms: int) -> Iterator[None]:
        """What is published meanwhile names a time that is so much earlier."""
        self.now_ms -= ms
        yield
        self.now_ms += ms

    def verify(self, who: KeyPair, body: Verification) -> Record:
        """Commit to what was measured, and reveal it."""
        fixed = self.append(who, "commitment", commitment(who, body), [body.run])
        return self.append(who, "verification", opened(body), [body.run, fixed.id])

    def commit(self, who: KeyPair, run: Record) -> None:
        """They evaluated it, and do not reveal yet."""
        proof, value = ecvrf.prove(bytes(who.key), question(run.id, EVALUATE, 0)), run.body_as(Run).value
        body = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=value, proof=proof)
        self.append(who, "commitment", commitment(who, body), [run.id])

    def evaluate(
        self, run: Record, value: float, *people: KeyPair, number: int = 0, error: float | None = None, **more: float
    ) -> list[Record]:
        """These people run it once more and come to a value; the task's evaluator states ``error`` and ``more``."""
        metrics = more if error is None else {"evaluated": 1.0, "standard_error": error, **more}
        done = []
        for who in people:
            proof = ecvrf.prove(bytes(who.key), question(run.id, EVALUATE, number))
            body = Verification(
                run=run.id,
                stage=EVALUATE,
                round=number,
                verdict="pass",
                value=value,
                metrics=metrics,
                proof=proof,
                duration_ms=60_000,
            )
            done.append(self.verify(who, body))
        return done

    def fails(self, run: Record, verdict: str, *people: KeyPair, stage: str = EVALUATE, number: int = 0) -> None:
        """These people could not measure it: “error”, or “unavailable” where they could not get its files."""
        for who in people:
            proof = ecvrf.prove(bytes(who.key), question(run.id, stage, number))
            body = Verification(run=run.id, stage=stage, round=number, verdict=verdict, proof=proof)
            self.append(who, "verification", body, [run.id])

    def replicate(
        self, run: Record, before: float, after: float, *people: KeyPair, beside: Sequence[float] = ()
    ) -> list[Record]:
        """These people run it beside its parent, twice each; ``beside`` is what the task's baseline comes to there."""
        done = []
        for who in people:
            proof = ecvrf.prove(bytes(who.key), question(run.id, REPLICATE, 0))
            drawn = seeds(ecvrf.output(proof), 2)
            body = Verification(
                run=run.id,
                stage=REPLICATE,
                verdict="pass",
                proof=proof,
                seeds=drawn,
                values=[after, after + 0.01],
                parent_values=[before, before + 0.01],
                baseline_values=list(beside),
                duration_ms=240_000,
            )
            done.append(self.verify(who, body))
        return done

    def confirm(self, run: Record, before: float, after: float) -> list[Record]:
        """All that it takes."""
        others = [who for who in PEOPLE if who.public != run.author]
        value = run.body.value  # type: ignore[union-attr]
        return self.evaluate(run, value, *others[:3]) + self.replicate(run, before, after, *others[:2])

    def refute(self, run: Record, value: float) -> list[Record]:
        """Others come to another number, and so does the larger committee."""
        others = [who for who in PEOPLE if who.public != run.author]
        return self.evaluate(run, value, others[0]) + self.evaluate(run, value, *others[1:5], number=1)
