"""Follows what decides who counts: the manifest in the data folder, and the founders' admissions.

A changed manifest counts at once. The node publishes its own join, and as a founder's admits who joins with an invite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import TrustAnswer
from autoresearch.errors import AutoresearchError
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.context import participant_with_key
from autoresearch.log.standing.participants import invited
from autoresearch.record.kinds import Join
from autoresearch.record.record import Record
from autoresearch.trust.invite import Invitations
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.log_thread import LogExecutor

logger = structlog.get_logger()

Stamp = tuple[int, int, int]


class ManifestWatch:
    """Whom this node trusts. ``changed()`` is called when that is not who it was."""

    def __init__(self, notebook: Notebook, events: Events, file: Path, *, changed: Callable[[], None]) -> None:
        self._notebook = notebook
        self._events = events
        self._file = file
        self._changed = changed
        self._seen = stamp(file)
        self.problem = ""  # why the file is not followed, for people

    def look(self) -> None:
        """Notice that somebody edited the file; quick when nobody did."""
        if stamp(self._file) != self._seen:
            with suppress(AutoresearchError):  # a warning says so
                self.take()

    def take(self) -> TrustAnswer:
        """Trust whom the file trusts. Raises UsageError when it is damaged, Refused when it is another network's."""
        self._seen = stamp(self._file)
        try:
            changed = self._notebook.take_trust()
        except AutoresearchError as error:
            logger.warning("the network's file is not followed", reason=str(error))
            self.problem = f"the network's file is not followed: {error}"
            raise
        self.problem = ""
        trust = self._notebook.log.trust
        answer = TrustAnswer(
            changed=changed,
            attestors=sorted(key.hex() for key in trust.attestors),
            needed=trust.needed,
            participants=sorted(key.hex() for key in trust.participants),
            founders=sorted(key.hex() for key in trust.founders),
        )
        if changed:
            counts = {"attestors": trust.attestors, "founders": trust.founders, "participants": trust.participants}
            named = ", ".join(f"{name} {len(keys)}" for name, keys in counts.items())
            self._events.tell("trust", f"this node trusts others than before: {named}", now_ms())
            self._changed()
        return answer


def stamp(file: Path) -> Stamp | None:
    """What tells one state of a file from another; None when there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class AdmissionWatch:
    """``changed()`` is called when others are admitted than before."""

    def __init__(
        self, notebook: Notebook, asking: LogExecutor, events: Events, manifest: Path, *, changed: Callable[[], None]
    ) -> None:
        self._notebook = notebook
        self._asking = asking
        self._events = events
        self._invitations = Invitations(manifest, notebook.log.network)
        self._changed = changed
        self._admitted = roster_of(notebook.log).admitted
        self._seen: object = None  # the state of the files that was looked at
        self._due = False
        self._looking = False
        self.problem = ""  # why nobody is admitted, for people

    def note(self, records: Sequence[Record]) -> bool:
        """Take notice of records of others; whether :meth:`look` has something to do."""
        self._due = self._due or any(record.kind in ("join", "admission", "withdrawal") for record in records)
        return self._due

    async def look(self) -> None:
        """Publish and admit what is due; quick when no record and no invite came since."""
        stamp = self._invitations.stamp()
        if self._looking or (stamp == self._seen and not self._due):
            return
        self._looking, self._due, self._seen = True, False, stamp
        try:
            self._publish_join()
            await self._admit()
            self.problem = ""
        except AutoresearchError as error:
            if str(error) not in self.problem:
                logger.warning("an invite is not followed", reason=str(error))
            self.problem, self._due = f"an invite is not followed: {error}", True
        finally:
            self._looking = False
        self.notice()

    def notice(self) -> None:
        """Tell when others are admitted than before."""
        admitted, before = roster_of(self._notebook.log).admitted, self._admitted
        if admitted == before:
            return
        self._admitted = admitted
        came, went = (self._names(roots) for roots in (admitted - before, before - admitted))
        text = "; ".join(filter(None, (came and f"a founder admitted {came}", went and f"a founder dismissed {went}")))
        self._events.tell("trust", text, now_ms())
        self._changed()

    def _names(self, roots: frozenset[bytes]) -> str:
        return ", ".join(sorted(participant_with_key(self._notebook.log, root).short for root in roots))

    def _publish_join(self) -> None:
        """Say that this participant joined with an invite, unless that was said or it counts already."""
        join, log = self._invitations.kept_join(), self._notebook.log
        root = self._notebook.identity.root.public
        if join is None or join.participant != root or root in roster_of(log).participants:
            return
        joins = log.records.newest(kind="join", author=self._notebook.author)
        if not any(isinstance(record.body, Join) and record.body.token == join.token for record in joins):
            self._notebook.publish_join(join, now_ms())

    async def _admit(self) -> None:
        """As a founder, admit those who joined with an invite of this machine."""
        if not self._notebook.is_founder:
            return
        at_ms, root = now_ms(), self._notebook.identity.root.public
        invites = [invite for invite in self._invitations.all() if invite.is_open(at_ms)]
        if not invites:
            return
        for join in await self._asking.run(lambda log: invited(log, invites, root)):
            self._notebook.publish_admission(join.participant, now_ms(), token=join.token)
