"""What this node measured of others' runs, from the commitment to the reveal. A measurement is never lost."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.own_verification import Untold
from autoresearch.errors import AutoresearchError
from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import SALT_BYTES, commitment_digest
from autoresearch.log.rows import CommitmentRow
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.verification import committed, needed
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Commitment, Verification
from autoresearch.record.record import Record
from autoresearch_daemon.local_state import LocalState, Unrevealed

logger = structlog.get_logger()

# A record has 32 links: the run, the own commitment, and those of others.
LINKED_MAX = 30


class Told(NamedTuple):
    """What was published: that a run is measured, or with ``revealed`` what came out."""

    assignment: str
    record: Record
    body: Verification
    revealed: bool


class Reveals:
    """Measurements on their way into the log. They wait on the disk: a daemon that is killed goes on with them.

    ``draw(n)`` gives n random bytes that nobody can guess.
    """

    def __init__(
        self, notebook: Notebook, local: LocalState, *, draw: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._draw = draw
        self._notebook = notebook
        self._local = local
        self._waiting = {measured.salt: measured for measured in local.unrevealed()}

    def add(self, assignment: str, body: Verification) -> None:
        """Take over what was measured, unless this node has measured the same before: a second word counts nothing."""
        if self._has_measured(body):
            logger.info("measured once more, and told once", run=short_id(body.run), stage=body.stage)
            return
        measured = Unrevealed(assignment=assignment, salt=self._draw(SALT_BYTES), body=body)
        self._waiting[measured.salt] = measured
        try:
            self._local.keep_unrevealed(measured)
        except sqlite3.Error as error:
            logger.warning("the daemon's own memory cannot be written", reason=str(error))

    def _has_measured(self, body: Verification) -> bool:
        question, author = (body.run, body.stage, body.round), self._notebook.author
        verifications = self._notebook.log.verifications.of(body.run)
        return any(question == (waiting.run, waiting.stage, waiting.round) for waiting in self.waiting()) or any(
            question == (row.run, row.stage, row.round) and row.author == author and row.verdict in ("pass", "fail")
            for row in verifications
        )

    def waiting(self) -> list[Untold]:
        """What is measured and not told yet."""
        bodies = [measured.body for measured in self._waiting.values()]
        return [Untold(body.run, body.stage, body.round, body) for body in bodies]

    def work(self, now_ms: int) -> tuple[list[Told], AutoresearchError | None]:
        """Commit to what is new and reveal what may be revealed; what could not be recorded waits, and why."""
        published: list[Told] = []
        failed: AutoresearchError | None = None
        for measured in list(self._waiting.values()):
            try:
                published += self._go_on(measured, now_ms)
            except AutoresearchError as error:
                logger.info("a verification waits to be recorded", reason=str(error))
                failed = failed or error
        return published, failed

    def _go_on(self, measured: Unrevealed, now_ms: int) -> list[Told]:
        author, body = self._notebook.author, measured.body
        rows = self._notebook.log.verifications.commitments(body.run)
        digest = commitment_digest(author, measured.salt, fields(body))
        own = next((row.id for row in rows if (row.author, row.digest) == (author, digest)), None)
        records: list[Told] = []
        if own is None:
            commitment = Commitment(run=body.run, stage=body.stage, round=body.round, proof=body.proof, digest=digest)
            record = self._notebook.publish_commitment(commitment, now_ms)
            records, own = [Told(measured.assignment, record, body, revealed=False)], record.id
        elif self._is_revealed(measured):
            self._end(measured)
            return []
        others = self._waited_for(body, own, now_ms)
        if others is None:
            return records
        opened = msgspec.structs.replace(body, salt=measured.salt)
        record = self._notebook.publish_verification(opened, now_ms, commitments=[own, *others])
        self._end(measured)
        return [Told(measured.assignment, record, body, revealed=True)]

    def _waited_for(self, body: Verification, own: bytes, now_ms: int) -> list[bytes] | None:
        """The commitments of others that were here before any reveal; None when it is too early to tell.

        There is nothing to wait for when nobody counts what this node says.
        """
        log = self._notebook.log
        run, voter = log.records.get(body.run), roster_of(log).voter
        rows = committed(log, run, body.stage, body.round)
        mine = next((row for row in rows if row.id == own), None)
        if mine is None:
            return []
        voters = {voter(row.author, row.time).voter for row in rows}
        patient = now_ms - mine.time < network_rules(log.network).patience_ms
        if patient and len(voters) < needed(log, run, body.stage):
            return None
        return self._before_reveals(body, [row for row in rows if row.id != own])

    def _before_reveals(self, body: Verification, others: list[CommitmentRow]) -> list[bytes]:
        """Those of the commitments that nobody can have made after reading what somebody revealed.

        What a stranger says reveals nothing, or anybody could keep those who measured from being vouched for.
        """
        voter = roster_of(self._notebook.log).voter
        revealed = [
            row.n
            for row in self._notebook.log.verifications.of(body.run)
            if (row.stage, row.round) == (body.stage, body.round)
            and row.verdict in ("pass", "fail")
            and voter(row.author, row.time).attested
        ]
        return [row.id for row in others if not revealed or row.n < min(revealed)][:LINKED_MAX]

    def _is_revealed(self, measured: Unrevealed) -> bool:
        author, log = self._notebook.author, self._notebook.log
        rows = [row for row in log.verifications.of(measured.body.run) if row.author == author]
        bodies = [log.records.get(row.id).body for row in rows]
        return any(isinstance(body, Verification) and body.salt == measured.salt for body in bodies)

    def _end(self, measured: Unrevealed) -> None:
        del self._waiting[measured.salt]
        try:
            self._local.end_unrevealed(measured.salt)
        except sqlite3.Error as error:  # the next start sees that it is in the log
            logger.warning("the daemon's own memory cannot be written", reason=str(error))


def fields(body: Verification) -> dict[str, object]:
    """The body as it will stand in the record."""
    values: dict[str, object] = msgspec.to_builtins(body, builtin_types=(bytes,))
    return values
