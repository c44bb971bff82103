"""All that changes a log: own records are signed and appended, those of others admitted and stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from autoresearch.errors import LogBehind, Refused, UsageError
from autoresearch.log.connection import (
    Reader,
    appending,
    own_authors,
    read_head,
    store_by_halves,
    transaction,
    write_head,
)
from autoresearch.log.quota import ALL_DAYS, Shares, Stored, bucket
from autoresearch.log.rows import Head, IngestVerdict, Revision, State
from autoresearch.log.tables.records import Devices, Records
from autoresearch.record.encoding import EncodingError
from autoresearch.record.kinds import Body
from autoresearch.record.record import DAY_MS, Network, Record, Refusal, Signer, admit, seal
from autoresearch.trust.roster import Trust

# Answers may change although no record came.
_SETTLED = "INSERT INTO meta VALUES('settled', 1) ON CONFLICT DO UPDATE SET value = value + 1"
# Where a record stands in the order of reconciliation: its time, ms UTC, and its id.
Key = tuple[int, bytes]


class Derivation(Protocol):
    """What keeps the tables that follow from records: see :class:`autoresearch.log.derive.driver.Driver`."""

    def store(self, records: Sequence[Record]) -> tuple[list[Stored], list[Stored]]:
        """Store new records; returns them, and what went over quota."""

    def discard(self, over: list[Stored], last: int) -> None:
        """Take out what follows from dropped records; those after the row ``last`` came in the same transaction."""

    def arrive(self, after: int) -> None:
        """Compute what follows from the records after this number by the trust list."""

    def finish(self) -> None:
        """Do what comes last in a transaction."""

    def rebuild(self) -> None:
        """Make all tables anew from the records."""


class Writer:
    """Writes the log in the file ``path`` through the connection of ``reader``; processes take turns.

    ``trust`` says whose records are kept whatever strangers write; it may be set anew.
    ``derivation`` keeps what follows from records, in each transaction.
    ``on_change(came, went)`` is called after each commit here with the keys that came, and those that the quota took.
    """

    def __init__(
        self,
        reader: Reader,
        path: Path,
        network: Network,
        trust: Trust,
        *,
        derivation: Derivation,
        read_only: bool,
    ) -> None:
        self.trust = trust
        self.on_change: Callable[[list[Key], list[Key]], None] | None = None
        self._reader = reader
        self._records = Records(reader)
        self._devices = Devices(reader, self._records)
        self._path = path
        self._heads = path.parent / "heads"
        self._network = network
        self._read_only = read_only
        self._derivation = derivation
        self._shares: Shares | None = None

    def append(
        self,
        signer: Signer,
        kind: str,
        body: Body | dict[str, object],
        *,
        links: Sequence[bytes] = (),
        now_ms: int,
        accept_fork: bool = False,
    ) -> Record:
        """Sign the next record of ``signer``'s key and store it; it is on the disk when this returns.

        This is the only place that spends a sequence number. Raises LogBehind when the key has signed a later record
        than the log has (an old copy was put back), unless ``accept_fork``; Refused when the day's quota is used up or
        nothing can be written; UsageError when others would not admit the record.
        """
        self._refuse_read_only()
        author = signer.public
        with self._reader.lock, appending(self._heads, author):
            with self._writing(durable=True):
                head = self._devices.head(author)
                if not accept_fork:
                    self._refuse_behind(author, head)
                self._refuse_over_quota(author, now_ms)
                record = self._sealed(signer, kind, body, tuple(links), head, now_ms)
                dropped = self._take([record], own=frozenset({author}))
                if any(stored[1] == record.id for stored in dropped):
                    raise Refused(
                        "The devices of this participant have published as many records as peers keep.",
                        hint="go on after midnight UTC, or with another participant's key",
                    )
            write_head(self._heads, author, Head(record.seq, record.id))
        self._tell([record], dropped)
        return record

    def ingest(self, batch: Sequence[tuple[bytes, bytes]], *, now_ms: int) -> list[IngestVerdict]:
        """Admit and store records of others, given as bytes and signature, in one transaction. One verdict each."""
        self._refuse_read_only()
        ids = [hashlib.sha256(raw).digest() for raw, _ in batch]
        revision = self._reader.revision()
        present = self._records.has(ids)
        verdicts: list[IngestVerdict] = []
        fresh: dict[bytes, Record] = {}
        for record_id, (raw, signature) in zip(ids, batch, strict=True):
            if record_id in present or record_id in fresh:
                verdicts.append(IngestVerdict(State.DUPLICATE, record_id))
                continue
            record = self._admitted(raw, signature, now_ms)
            if isinstance(record, Refusal):
                state = State.EARLY if record.code == "early" else State.REFUSED
                verdicts.append(IngestVerdict(state, record_id, refusal=record))
            else:
                fresh[record_id] = record
                verdicts.append(IngestVerdict(State.STORED, record_id, record))
        lost: dict[bytes, IngestVerdict] = {}
        for record, error in store_by_halves([*fresh.values()], lambda some: lost.update(self._store(some, revision))):
            lost[record.id] = IngestVerdict(State.REFUSED, record.id, refusal=_unstorable(error))
        return [lost.get(verdict.id, verdict) if verdict.state is State.STORED else verdict for verdict in verdicts]

    def _admitted(self, raw: bytes, signature: bytes, now_ms: int) -> Record | Refusal:
        try:
            return admit(raw, signature, self._network, now_ms=now_ms)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            return _unstorable(error)

    def _store(self, fresh: Sequence[Record], missing_at: Revision) -> dict[bytes, IngestVerdict]:
        """Store what nobody has stored since a revision that had none of it; returns a verdict on what is no news."""
        with self._reader.lock, self._writing(durable=False):
            moved = self._reader.revision() != missing_at
            duplicates = self._records.has([record.id for record in fresh]) if moved else set()
            records = [record for record in fresh if record.id not in duplicates]
            dropped = self._take(records)
        self._tell(records, dropped)
        states = dict.fromkeys((stored[1] for stored in dropped), State.OVER_QUOTA)
        states |= dict.fromkeys(duplicates, State.DUPLICATE)
        return {record_id: IngestVerdict(state, record_id) for record_id, state in states.items()}

    @contextmanager
    def settling(self) -> Iterator[None]:
        """A snapshot in which what follows from records may be written. Other writers wait until it ends."""
        self._refuse_read_only()
        with self._reader.lock, self._writing(durable=False), self._reader.pin():
            yield
            self._reader.connection.execute(_SETTLED)

    @contextmanager
    def _writing(self, *, durable: bool) -> Iterator[None]:
        """A transaction; what is counted beside the file is counted anew after one that failed."""
        assert self._reader.pinned is None, "nothing is written in a snapshot"
        try:
            with transaction(self._reader.connection, durable=durable):
                yield
                self._derivation.finish()
        except BaseException:
            self._shares = None
            self._reader.failures += 1
            raise

    def _take(self, records: Sequence[Record], own: frozenset[bytes] = frozenset()) -> list[Stored]:
        """Store records that are not there yet, and return what is dropped for it. Runs inside a transaction."""
        last = self._records.last_row()
        came, went = self._derivation.store(records)
        went += self._over_quota(records, own, came, went, last)
        self._derivation.arrive(last)
        return went

    def _over_quota(
        self,
        records: Sequence[Record],
        own: frozenset[bytes],
        came: Sequence[Stored],
        went: Sequence[Stored],
        last: int,
    ) -> list[Stored]:
        """Drop what participants and authors that are not named have too much, and return it."""
        bounds, connection = self._network, self._reader.connection
        least = min(bounds.per_day, bounds.per_author, bounds.unattested)
        # Rows are numbered: there are no more than the last number.
        if self._records.last_row() <= (least if self.trust.names_anybody else bounds.per_author):
            self._shares = None
            return []
        shares = self._shares
        if shares is None or shares.is_stale(connection, self.trust, records):
            shares = Shares(connection, bounds, self.trust, own_authors(self._heads) | own)
        else:
            shares.change(came, went)
        if over := shares.drop_excess(connection):
            self._derivation.discard(over, last)
        self._shares = shares
        return over

    def _tell(self, records: Sequence[Record], dropped: Sequence[Stored]) -> None:
        """Tell whoever keeps an index beside the log which keys came, and which went for the quota."""
        if self.on_change:
            gone = {stored[1] for stored in dropped}
            came = [(record.time, record.id) for record in records if record.id not in gone]
            self.on_change(came, [(stored[4], stored[1]) for stored in dropped])

    def missing_own(self, author: bytes) -> Head | None:
        """The last record that this device key signed, when the log does not have it; else None."""
        signed = read_head(self._heads, author)
        return signed if signed and not self._records.has([signed.id]) else None

    def rebuild(self) -> None:
        """Compute all views anew from the records."""
        self._refuse_read_only()
        with self._reader.lock, self._writing(durable=False):
            self._derivation.rebuild()
            self._reader.connection.execute(_SETTLED)
            self._derivation.arrive(self._records.last_row())

    def _sealed(
        self,
        signer: Signer,
        kind: str,
        body: Body | dict[str, object],
        links: tuple[bytes, ...],
        head: Head | None,
        now_ms: int,
    ) -> Record:
        seq, prev = (head.seq + 1, head.id) if head else (1, b"")
        try:
            sealed = seal(signer, self._network, kind, body, seq=seq, prev=prev, time_ms=now_ms, links=links)
        except EncodingError as error:
            raise UsageError(f"This {kind} can't be recorded: {error}.") from error
        record = admit(sealed.raw, sealed.signature, self._network, now_ms=now_ms)
        if isinstance(record, Refusal):
            raise UsageError(f"This {kind} can't be recorded: {record.sentence}.")
        return record

    def _refuse_behind(self, author: bytes, head: Head | None) -> None:
        signed = self.missing_own(author)
        if signed is None:
            return
        end = f"ends at this device's record {head.seq}" if head else "has no record of this device"
        raise LogBehind(
            f"The log {end}, but the device has signed number {signed.seq} already: an older copy was put back.",
            hint="put the newest copy back, or accept that the history forks: autoresearch node doctor --accept-fork",
        )

    def _refuse_over_quota(self, author: bytes, now_ms: int) -> None:
        day = now_ms // DAY_MS
        if bucket(self._reader.connection, author, day) >= self._network.per_day:
            resumes = datetime.fromtimestamp((day + 1) * DAY_MS / 1000, UTC)
            raise Refused(
                f"This device has published {self._network.per_day} records today, which is the most that peers keep.",
                hint=f"it may go on at {resumes:%Y-%m-%d %H:%M} UTC",
            )
        if bucket(self._reader.connection, author, ALL_DAYS) >= self._network.per_author:
            raise Refused(
                f"This device has published {self._network.per_author} records, which is the most that peers keep.",
                hint="go on with a new device key",
            )

    def _refuse_read_only(self) -> None:
        if self._read_only:
            raise Refused(f"The log {self._path} was opened to read only.")


def _unstorable(error: Exception) -> Refusal:
    return Refusal("storing", f"it can't be stored: {type(error).__name__}: {str(error)[:200]}")
