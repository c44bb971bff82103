"""The daemon's own memory between starts: what was asked, what is in hand, what happened. Never synced to anybody."""

from __future__ import annotations

import msgspec

from autoresearch.ask.node import Event
from autoresearch.ask.people.participants import CodeView
from autoresearch.log.local import LocalFile
from autoresearch.record.kinds import RunOutcome, Verification
from autoresearch.run.experiment import Plan
from autoresearch_daemon.service.agenda import Agenda

# Enough to catch up with after a night; a reader that is further behind is told so.
EVENTS_KEPT = 10_000


class InHand(msgspec.Struct, frozen=True, kw_only=True):
    """A run that began. Its plan is all that is needed to close it as abandoned; the rest is there when it ended.

    ``order`` is the number of the order that it still has to be counted for; 0: none.
    """

    assignment: str
    order: int = 0
    started_ms: int
    plan: Plan
    outcome: RunOutcome | None = None
    folder: str = ""


class StoredProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A program that somebody proposed for a task folder (empty: the one that ships), and that waits for a worker.

    ``shared``: it is left to another node that runs it.
    """

    number: int = 0
    task: str
    plan: Plan
    proposed_ms: int
    shared: bool = False

    @property
    def name(self) -> str:
        """The name of its assignment."""
        return f"proposal-{self.number}"


class Unrevealed(msgspec.Struct, frozen=True, kw_only=True):
    """A verification that is measured and not published yet. ``salt``, 32 bytes, opens its commitment."""

    assignment: str
    salt: bytes
    body: Verification


class LocalState(LocalFile):
    """What the daemon has to go on with after a restart."""

    def agenda(self) -> Agenda:
        """What a person asked of the node when it last ran, as far as it is not done."""
        row = self.connection.execute("SELECT json FROM value WHERE name = 'agenda'").fetchone()
        return msgspec.json.decode(row[0], type=Agenda) if row else Agenda()

    def save_agenda(self, agenda: Agenda) -> None:
        """Keep what was asked of the node."""
        row = ("agenda", msgspec.json.encode(agenda))
        self.connection.execute("INSERT OR REPLACE INTO value(name, json) VALUES (?, ?)", row)

    def codes(self) -> list[CodeView]:
        """The codes that are awaited from attestors; no address is among it."""
        row = self.connection.execute("SELECT json FROM value WHERE name = 'codes'").fetchone()
        return msgspec.json.decode(row[0], type=list[CodeView]) if row else []

    def save_codes(self, codes: list[CodeView]) -> None:
        """Keep which codes are awaited."""
        row = ("codes", msgspec.json.encode(codes))
        self.connection.execute("INSERT OR REPLACE INTO value(name, json) VALUES (?, ?)", row)

    def carried(self) -> dict[str, str]:
        """The folders of the runs that executors have something of, each with its executor."""
        row = self.connection.execute("SELECT json FROM value WHERE name = 'carried'").fetchone()
        return msgspec.json.decode(row[0], type=dict[str, str]) if row else {}

    def save_carried(self, carried: dict[str, str]) -> None:
        """Keep what executors have."""
        row = ("carried", msgspec.json.encode(carried))
        self.connection.execute("INSERT OR REPLACE INTO value(name, json) VALUES (?, ?)", row)

    def keep(self, run: InHand) -> None:
        """A run began, or ended and is not recorded yet."""
        row = (run.assignment, msgspec.msgpack.encode(run))
        self.connection.execute("INSERT OR REPLACE INTO in_hand(assignment, run) VALUES (?, ?)", row)

    def end(self, assignment: str) -> None:
        """A run's record is in the log."""
        self.connection.execute("DELETE FROM in_hand WHERE assignment = ?", (assignment,))

    def in_hand(self) -> list[InHand]:
        """Runs that began and whose record is not known to be in the log."""
        rows = self.connection.execute("SELECT run FROM in_hand ORDER BY assignment")
        return [msgspec.msgpack.decode(row[0], type=InHand) for row in rows]

    def add_proposal(self, proposal: StoredProposal) -> StoredProposal:
        """Keep a proposal and give it the next number."""
        row = (msgspec.msgpack.encode(proposal),)
        number = self.connection.execute("INSERT INTO proposal(proposal) VALUES (?)", row).lastrowid or 0
        return msgspec.structs.replace(proposal, number=number)

    def end_proposal(self, number: int) -> None:
        """A proposal's run began, or nobody wants it any more."""
        self.connection.execute("DELETE FROM proposal WHERE number = ?", (number,))

    def proposals(self) -> list[StoredProposal]:
        """What waits for a worker, the oldest first."""
        rows = self.connection.execute("SELECT number, proposal FROM proposal ORDER BY number").fetchall()
        return [
            msgspec.structs.replace(msgspec.msgpack.decode(blob, type=StoredProposal), number=number)
            for number, blob in rows
        ]

    def keep_unrevealed(self, measured: Unrevealed) -> None:
        """A verification is measured."""
        row = (measured.salt, msgspec.msgpack.encode(measured))
        self.connection.execute("INSERT OR REPLACE INTO unrevealed(salt, measured) VALUES (?, ?)", row)

    def end_unrevealed(self, salt: bytes) -> None:
        """A verification is in the log."""
        self.connection.execute("DELETE FROM unrevealed WHERE salt = ?", (salt,))

    def unrevealed(self) -> list[Unrevealed]:
        """Verifications that are measured and not known to be in the log."""
        rows = self.connection.execute("SELECT measured FROM unrevealed ORDER BY salt")
        return [msgspec.msgpack.decode(row[0], type=Unrevealed) for row in rows]

    def add_event(self, kind: str, time_ms: int, text: str, data: dict[str, object]) -> Event:
        """Keep an event and give it the next id."""
        encoded = msgspec.json.encode(data)
        cursor = self.connection.execute(
            "INSERT INTO event(kind, time_ms, text, data) VALUES (?, ?, ?, ?)", (kind, time_ms, text, encoded)
        )
        number = cursor.lastrowid or 0
        if number % 1000 == 0:
            self.connection.execute("DELETE FROM event WHERE id <= ?", (number - EVENTS_KEPT,))
        return Event(id=number, kind=kind, time_ms=time_ms, text=text, data=data)

    def events_since(self, number: int) -> list[Event] | None:
        """Events after that id, oldest first; ``None`` when some are gone already. After 0 all that are kept."""
        low, high = self.connection.execute("SELECT min(id), max(id) FROM event").fetchone()
        if low is None or number >= high:
            return []
        if number and number + 1 < low:
            return None
        rows = self.connection.execute(
            "SELECT id, kind, time_ms, text, data FROM event WHERE id > ? ORDER BY id", (number,)
        )
        return [
            Event(id=row[0], kind=row[1], time_ms=row[2], text=row[3], data=msgspec.json.decode(row[4])) for row in rows
        ]
