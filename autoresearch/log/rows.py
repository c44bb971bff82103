"""What the log answers: verdicts on what came in, heads, forks, and rows of its tables. Values only."""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import NamedTuple

from autoresearch.record.record import Record, Refusal


class State(StrEnum):
    """What became of bytes that were offered to the log."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    EARLY = "early"
    OVER_QUOTA = "over quota"


class IngestVerdict(NamedTuple):
    """``id`` is the SHA-256 of the bytes. ``record`` is there when it was stored, ``refusal`` when refused or early."""

    state: State
    id: bytes
    record: Record | None = None
    refusal: Refusal | None = None


class Head(NamedTuple):
    """An author's last record."""

    seq: int
    id: bytes


class Fork(NamedTuple):
    """Several records of one author with one sequence number: they are the proof. ``merged``: a root key ended it."""

    author: bytes
    seq: int
    ids: tuple[bytes, ...]
    merged: bool


class StoredRun(NamedTuple):
    """A run, and whether a fork of its author that no merge ended comes before it."""

    record: Record
    forked: bool


class PairRow(NamedTuple):
    """A run that raised a setting, or lowered it (-1), and how that changed the reported value: None where it failed.

    ``value`` and ``parent_value`` are what the two report, ``status`` is how the run ended.
    """

    time: int
    raised: int
    delta: float | None
    value: float | None
    parent_value: float
    status: str = ""


class SignedRun(NamedTuple):
    """A run's record: its id, device, time and number, and whether its author withdrew it."""

    id: bytes
    author: bytes
    time: int
    seq: int
    withdrawn: bool


class RunFacts(NamedTuple):
    """A run; ``n`` is the number of its record, ``device`` its hardware.

    ``valued``: it ended well with a value, and was not withdrawn; of another the value means nothing. ``copied``:
    another participant published its checkpoint before. ``forked``: after a fork that no merge ended. The last four
    are of its standing, where a question reads that: ``checkers`` attested participants measured it, as ``verified``.
    """

    n: int
    id: bytes
    author: bytes
    seq: int
    time: int
    task: bytes
    budget: float
    source_digest: bytes
    seedless: bytes
    value: float
    replicate: int
    device: str
    checkpoint: bytes | None
    valued: bool
    copied: bool
    forked: bool
    state: str = ""
    attested: bool = False
    checkers: int = 0
    verified: float | None = None


class HistoryRow(NamedTuple):
    """A run, compact. ``genome`` is JSON."""

    id: bytes
    source_digest: bytes
    genome: bytes
    value: float | None
    replicate: int
    parent: bytes | None
    base: bytes | None
    status: str
    author: bytes
    budget: float
    time: int
    forked: bool
    seq: int
    seedless: bytes


class LeaderRow(NamedTuple):
    """A run that led. Smaller values are better, whatever the metric's direction."""

    time: int
    id: bytes
    n: int
    value: float

    @property
    def place(self) -> tuple[int, bytes]:
        """Its place in the order of runs."""
        return self.time, self.id


class ClaimRow(NamedTuple):
    """Someone is trying this until ``until``, ms UTC."""

    id: bytes
    task: bytes
    source_digest: bytes
    replicate: int
    author: bytes
    time: int
    until: int
    title: str


class ProgramRow(NamedTuple):
    """All counted runs of one program with one budget, whatever its seeds are.

    ``first`` is the first run, ``source_digest`` names its source, ``rank`` orders, smallest first.

    ``device`` is the hardware of the first, and on a wall-clock task of all of them.
    """

    task: bytes
    source_digest: bytes
    budget: float
    runs: int
    mean: float
    first: bytes
    first_time: int
    rank: float | None
    author: bytes
    title: str
    parent: bytes | None
    device: str
    seedless: bytes


# Task, digest of the program without its seeds, and budget.
Program = tuple[bytes, bytes, float]


_DEVICE = struct.Struct(">32s32sd32s")


class EntryKey(NamedTuple):
    """A program at a budget, and a device that ran it."""

    task: bytes
    seedless: bytes
    budget: float
    author: bytes

    @property
    def key(self) -> bytes:
        """As it stands in the table ``todo``."""
        return _DEVICE.pack(*self)

    @classmethod
    def of_key(cls, key: bytes) -> EntryKey:
        """The device of a :attr:`key`."""
        return cls._make(_DEVICE.unpack(key))


class Entry(NamedTuple):
    """A program as one device ran it: a row of the table ``entry``, where its columns are explained."""

    task: bytes
    seedless: bytes
    budget: float
    author: bytes
    vouch: int
    hardware: str
    n: int
    time: int
    first: bytes
    runs: int
    mean: float
    rank: float | None
    copy: bool
    place: int


class EntryRow(NamedTuple):
    """What says which of several entries of a program was the first; it has the fields of a published run."""

    author: bytes
    vouch: int
    hardware: str
    time: int
    id: bytes
    place: int


class EntryPlace(NamedTuple):
    """The place of one of a program's entries."""

    author: bytes
    vouch: int
    hardware: str
    place: int


class TaskRow(NamedTuple):
    """A task as its publisher signed it. ``direction``, ``noise`` and ``budget`` are None without sensible rules."""

    id: bytes
    digest: bytes
    name: str
    author: bytes
    time: int
    direction: str | None
    noise: float | None
    budget: float | None


class CommitmentRow(NamedTuple):
    """Somebody measured a run and does not tell yet. ``n`` orders by arrival here, ``output`` is what the proof says.

    ``seq`` is the author's own order.
    """

    n: int
    id: bytes
    run: bytes
    stage: str
    round: int
    digest: bytes
    author: bytes
    seq: int
    time: int
    output: bytes | None


class VerificationRow(NamedTuple):
    """A measurement of a run by another participant; ``n`` and ``output`` as in a commitment."""

    id: bytes
    run: bytes
    stage: str
    verdict: str
    value: float | None
    author: bytes
    time: int
    round: int
    output: bytes | None
    n: int


class CountedVerification(NamedTuple):
    """A verification that counts, by the device ``author`` of a participant, ``voter``.

    ``passed``: it came to the reported value, or ran the pairs. ``decides``: by it the participant was right or wrong.
    ``spent_ms`` is how long it took; 0 where, by its statement, it began before the run was published.
    """

    time: int
    id: bytes
    author: bytes
    voter: bytes
    stage: str
    passed: bool
    decides: bool
    spent_ms: int


class FactRow(NamedTuple):
    """What a settled run says of one participant: of its author, or of a verifier.

    ``signed`` is the record of that participant, ``what`` the run's state or a word of VerificationKind. ``outcome`` is
    1 where the participant was right, -1 where it was wrong. ``ms`` is processor time of a run, or how long a
    verification took; ``work`` the share of the task's budget; ``gain`` the confirmed improvement.
    """

    signed: bytes
    root: bytes
    voter: bytes
    task: bytes
    what: str
    time: int
    outcome: int = 0
    ms: int = 0
    implausible: bool = False
    work: float = 0.0
    gain: float | None = None


class CreditRow(NamedTuple):
    """The sum of the facts of a root key on a task, of one kind; ``work`` and ``gain`` as in :class:`FactRow`."""

    voter: bytes
    root: bytes
    task: bytes
    what: str
    facts: int
    ms: int
    implausible: int
    work: float
    gain: float
    gains: int


class ReleaseRow(NamedTuple):
    """A release of a component. ``version_key`` sorts as versions do; equal ``content`` installs the same.

    The smaller ``distance`` is, the better it fits the words that were searched.
    """

    id: bytes
    author: bytes
    time: int
    type: str
    name: str
    version: str
    version_key: str
    content: bytes
    distance: float = 0.0


class YankRow(NamedTuple):
    """Somebody advises against the release ``target``; it counts when it is the release's own publisher."""

    id: bytes
    author: bytes
    time: int
    target: bytes


class Revision(NamedTuple):
    """How far a log has come: the record stored last, and how often something was taken out for the quota.

    ``settled`` counts how often something was settled without a record, ``people`` the changes of who is who, ``tasks``
    those of tasks, ``failures`` the transactions of this connection that were undone.
    """

    row: int
    drops: int
    settled: int = 0
    people: int = 0
    tasks: int = 0
    failures: int = 0


class FraudRow(NamedTuple):
    """A record that, alone or with the record that it names as its parent, proves that its author cheated."""

    id: bytes
    author: bytes
    seq: int
    time: int


class LikeRow(NamedTuple):
    """One of several runs with the same program or the same checkpoint, on one task; by time and id, as it sorts.

    ``changes``: it has a parent, and so says that it changes something. ``n`` is the number of its record.
    """

    time: int
    id: bytes
    author: bytes
    source_digest: bytes
    changes: bool
    n: int


class Shared(NamedTuple):
    """What several runs on a task share: the digest of their program, or the hash of their checkpoint."""

    task: bytes
    shared: bytes

    @property
    def key(self) -> bytes:
        """As it stands in the table ``todo``."""
        return self.task + self.shared

    @classmethod
    def of_key(cls, key: bytes) -> Shared:
        """What a :attr:`key` stands for."""
        return cls(key[:32], key[32:])


class CopyRow(NamedTuple):
    """A run whose program or checkpoint another participant published before: a row of the table ``copy``."""

    n: int
    model: bool
    task: bytes
    shared: bytes
    source_digest: bytes
    original: bytes
    voter: bytes
    marked: bool


class Copy(NamedTuple):
    """A run that was published as a discovery, the voter whose it is, and the run that it copies."""

    run: bytes
    voter: bytes
    time_ms: int
    original: bytes


class MentionRow(NamedTuple):
    """Somebody's record names ``run``, so that it was there: a measurement, or a run that links it or builds on it.

    ``built``: it says no more than that it builds on it. ``signed_ms`` is the earliest time at which its author can
    have signed it: that of a record of it before that one may be later than the stated ``time``.
    """

    run: bytes
    author: bytes
    seq: int
    time: int
    built: bool
    signed_ms: int
