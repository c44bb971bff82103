"""This node's log, blobs and keys together: what is published, and when. The only place that signs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from autoresearch.ask.people.voters import check_participant
from autoresearch.ask.registry.preparing import PreparedRelease
from autoresearch.errors import Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import lock_device, refuse_unread_changes
from autoresearch.log.local import Choice, bring_home, chosen
from autoresearch.log.log import Log
from autoresearch.log.rows import ClaimRow
from autoresearch.log.standing.bases import Placed, contenders, preferred
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.context import participant_with_key, trust_context
from autoresearch.log.standing.credit import is_heard, runs_named_in
from autoresearch.log.standing.metrics import note_sources, read_sources
from autoresearch.log.standing.precedence import to_link
from autoresearch.paths import Paths
from autoresearch.record import kinds
from autoresearch.record.encoding import format_id
from autoresearch.record.record import Record
from autoresearch.run.experiment import Plan, run_body
from autoresearch.task.model import Task
from autoresearch.text import NAME_CHARACTERS, NOTE_CHARACTERS, one_line, plain_name
from autoresearch.trust import identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.trust.roster import ADMITTED_MAX, is_admission
from autoresearch.words import RUN_STATUS_SENTENCES, RunStatus

# More records than this no honest root or device key has about itself.
IDENTITY_RECORDS = 1000
_ALL = 1_000_000
# Of one record.
_LINKS = 32
_HEADS = 16
# A profile without a name says nothing of it; of one that is nothing but a space no reader shows anything.
NO_NAME = " "
# A claim outlives the run's own limit by this much, so that a slow disk at its end does not open it to others.
CLAIM_MARGIN_SECONDS = 60
# Of two claims the later heard may win so long after ours: gossip is slower than a moment, and a run has just begun.
CROSSING_MS = 30_000
# So many of a task's best are evaluated by others, who need their checkpoints.
KEPT_ROWS = 10
# A model that says the same again says nothing new: so many of the last notes are compared.
INSIGHTS_COMPARED = 100


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run whose record is in the log: the line for people, whether it leads now, and its numbers."""

    record: Record
    status: RunStatus
    text: str
    is_best: bool
    data: dict[str, object]


def clock_ms() -> int:
    """Unix milliseconds now."""
    return time.time_ns() // 1_000_000


class Notebook:
    """Opens the log, the blobs and the keys of a node, making them when they are missing; a context manager.

    Holds the device key for this process: a second one is refused (Locked).
    """

    def __init__(self, paths: Paths, now_ms: Callable[[], int] = clock_ms) -> None:
        paths.create()
        self.paths, self.now_ms = paths, now_ms
        with ExitStack() as opened:
            opened.enter_context(lock_device(paths.keys / "device.key"))
            refuse_unread_changes(paths.log)  # before anything opens it to write
            bring_home(paths)
            self.identity = identity.make_identity(paths.keys)
            # The network that this data folder belongs to, and whom it trusts.
            self._manifest_file = paths.manifest
            self.manifest = load_manifest(paths.manifest)
            # Called with each record of this node, once it is on the disk: tell others now.
            self.announce: Callable[[Record], None] = lambda _: None
            self.log = opened.enter_context(Log.open(paths.log, self.manifest.network, trust=self.manifest.trust))
            self.blobs = opened.enter_context(BlobStore(paths.blobs))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let go of the key."""
        self._opened.close()

    def beside(self, log: Log, announce: Callable[[Record], None]) -> Notebook:
        """The same over another connection to its log, for another thread, where ``announce`` is called."""
        other = copy(self)
        other.log, other.announce = log, announce
        return other

    def take_trust(self) -> bool:
        """Trust whom the manifest's file trusts by now; whether that are others than before.

        Raises:
            UsageError: the file is damaged; everything stays as it was.
            Refused: it is another network's.
        """
        manifest = load_manifest(self._manifest_file)
        if manifest.network != self.manifest.network:
            raise Refused(
                f"{self._manifest_file} is another network's than when the daemon started",
                hint="autoresearch down && autoresearch up",
            )
        changed = manifest.trust != self.manifest.trust
        self.manifest = manifest
        self.log.trust = manifest.trust
        return changed

    @property
    def author(self) -> bytes:
        """The device key that signs here."""
        return self.identity.device.public

    def archived(self) -> frozenset[bytes]:
        """The tasks that a person archived on this machine."""
        return chosen(self.paths.home_local, Choice.ARCHIVED)

    def accept_fork(self, now_ms: int) -> Record:
        """Go on although this device signed later records than the log has: the history forks here, for all to see."""
        signed = self.log.writer.missing_own(self.author)
        if signed is None:
            raise Refused("there is nothing to accept: the log has all of this device", hint="autoresearch up")
        text = f"An older copy of the log was put back: the history of this device forks before record {signed.seq}."
        note = kinds.Note(topic="history", text=text)
        return self._append("note", note, now_ms, accept_fork=True)

    def publish_identity(self, now_ms: int) -> None:
        """Say that the root key lets this device speak for it, and that the device belongs to that root key.

        Said once, and the first again before it expires, as far as the root key lies here in the clear.
        """
        root = self.identity.root
        if isinstance(root, KeyPair) and identity.is_due(self.device(now_ms), now_ms):
            self.delegate(root, now_ms)
        profiles = self.log.records.newest(kind="identity", author=self.author, limit=IDENTITY_RECORDS)
        if not any(isinstance(r.body, kinds.Identity) and r.body.root == root.public for r in profiles):
            self._append("identity", kinds.Identity(action="profile", root=root.public), now_ms)

    def publish_name(self, name: str, now_ms: int) -> Record | None:
        """Say what this participant calls itself, for all to read; the last word counts, the log keeps the others.

        Empty: that it has no name any more; None where it has none.

        Raises:
            UsageError: it can't stand in a line beside a key.
            Refused: no root key speaks for this device, so that it would be nobody's name.
        """
        root = self.identity.root.public
        if not name and not participant_with_key(self.log, root).name:
            return None
        check_name(name)
        self.speak_for_root(now_ms)
        before = roster_of(self.log).naming(root)
        body = kinds.Identity(action="profile", root=root, name=name or NO_NAME)
        return self._append("identity", body, now_ms, links=[before.id] if before else [])

    def speak_for_root(self, now_ms: int) -> None:
        """Publish whom this device speaks for. Raises Refused when that is no root key: it is a stranger's then."""
        self.publish_identity(now_ms)
        device = self.device(now_ms)
        if device is None or device.state is not identity.DeviceState.ACTIVE:
            hint = "autoresearch down && autoresearch node id renew, then again"
            raise Refused("no root key speaks for this device in this network yet", hint=hint)

    @property
    def is_founder(self) -> bool:
        """Whether this participant is a founder of the network, as the manifest here has it."""
        return self.identity.root.public in self.manifest.trust.founders

    def publish_join(self, join: kinds.Join, now_ms: int) -> Record:
        """Say that this participant joined with an invite: it asks the founder for an admission."""
        return self._append("join", join, now_ms)

    def publish_admission(
        self, participant: bytes, now_ms: int, *, admits: bool = True, reason: str = "", token: bytes | None = None
    ) -> Record | None:
        """As a founder, count a participant from now on, or no longer; None where that was decided before.

        Raises:
            Refused: this participant is no founder, its device speaks for nobody, too many are admitted, or the key is
                a device's or one that no record names.
        """
        roster, name = roster_of(self.log), participant_with_key(self.log, participant).short
        self._check_founder(now_ms, "decides who counts")
        if participant in self.manifest.trust.founders:
            hint = f"to remove it on this machine: autoresearch network distrust {participant.hex()} --founder"
            raise Refused(f"{name} is a founder: it counts without an admission", hint=hint)
        before = roster.decisions.get(participant)
        if admits or before is None:  # an admission that stands can be ended, whatever it names
            check_participant(self.log, participant)
        if (before is not None and is_admission(before)) == admits:
            return None
        if admits and len(roster.admitted) >= ADMITTED_MAX:
            sentence = f"{ADMITTED_MAX} participants are admitted, which is the most that count"
            raise Refused(sentence, hint="dismiss one first: autoresearch network dismiss WHO")
        body = kinds.Admission(
            action="admit" if admits else "remove", participant=participant, reason=reason, token=token
        )
        return self._append("admission", body, now_ms, links=[before.id] if before else [])

    def publish_challenge(self, body: kinds.Contest, now_ms: int, *, links: Sequence[bytes] = ()) -> Record:
        """As a founder, hold a contest, or another end for it. Raises Refused where this participant is no founder."""
        self._check_founder(now_ms, "says when a contest ends")
        return self._append("challenge", body, now_ms, links=links)

    def _check_founder(self, now_ms: int, decides: str) -> None:
        """Raises Refused where nobody would heed what this device decides."""
        founders = self.manifest.trust.founders
        if not founders:
            raise Refused(
                f"the network {self.manifest.network.name} names no founder",
                hint="on every machine: autoresearch network trust KEY --founder",
            )
        if not self.is_founder:
            named = ", ".join(sorted(participant_with_key(self.log, founder).short for founder in founders))
            raise Refused(f"only a founder {decides}; this network's: {named}",
                          hint="ask one of them to type the same")  # fmt: skip
        self.speak_for_root(now_ms)

    def delegate(self, root: KeyPair, now_ms: int, *, device: bytes | None = None) -> Record:
        """Let a device, this one if none is named, speak for the root key for a while from now on."""
        body = identity.delegation(self.identity, device=device, expires_ms=now_ms + identity.DELEGATION_MS)
        return self._append("identity", body, now_ms, signer=root)

    def revoke(self, root: KeyPair, device: bytes, now_ms: int, *, reason: str = "") -> Record:
        """Revoke a device: what it signs from now on counts for no participant."""
        body = kinds.Identity(action="revoke", root=root.public, device=device, reason=reason)
        return self._append("identity", body, now_ms, signer=root)

    def device(self, now_ms: int) -> identity.Device | None:
        """How this device stands with its root key, or None when it was never named."""
        return next(
            (row for row in own_devices(self.log, self.identity.root.public, now_ms) if row.key == self.author), None
        )

    def publish_task(self, task: Task, now_ms: int) -> None:
        """Publish a task unless the log has it, with its harness and baseline as blobs."""
        if self.log.tasks.find(task.digest) is not None:
            return
        body = kinds.Task(
            digest=task.digest,
            name=task.name,
            summary=task.summary,
            definition=task.definition(),
            baseline=self.blobs.put(task.baseline),
            harness={name: self.blobs.put(content) for name, content in task.harness.items()},
        )
        self.publish_task_body(body, now_ms)

    def publish_task_body(self, body: kinds.Task, now_ms: int) -> None:
        """Publish a task whose files are blobs here."""
        self._append("task", body, now_ms)

    def publish_claim(self, plan: Plan, now_ms: int, *, seconds: int) -> Record:
        """Say that this device tries the plan, for as long as it may take; a claim of its own that lasts so long stays.

        Returns the claim that holds.
        """
        until = now_ms + (seconds + CLAIM_MARGIN_SECONDS) * 1000
        held = next((row.id for row in self._own_claims(plan, now_ms) if row.until >= until), None)
        if held is not None:
            return self.log.records.get(held)
        body = kinds.Claim(
            task=plan.task,
            source_digest=plan.source_digest,
            replicate=plan.replicate,
            parent=plan.parent,
            # A program that is its own base changes no settings: nobody need avoid a program with the same ones.
            genome={} if plan.base == plan.source_digest else plan.genome,
            title=plan.title,
            until=until,
        )
        return self._append("claim", body, now_ms)

    def publish_run(
        self,
        plan: Plan,
        outcome: kinds.RunOutcome,
        now_ms: int,
        *,
        log: bytes = b"",
        checkpoint: Path | None = None,
        keep_all: bool = False,
    ) -> PublishedRun:
        """Keep the run's files and append its record. Its checkpoint too, if it is among the best, or ``keep_all``."""
        read_sources(self.log, self.blobs, [plan.task])
        note_sources(self.log, plan.task, {plan.source_digest: plan.source})
        leader = self.leader(plan.task)
        body = run_body(
            plan,
            outcome,
            source=self.blobs.put(plan.source.encode()),
            log=self.blobs.put(log) if log else None,
            checkpoint=self._kept_checkpoint(plan, outcome, checkpoint, keep_all=keep_all),
        )
        record = self.publish_run_body(body, now_ms)
        # Publish what the plan's proposer says that runs show, where it names some that are here, and only once. The
        # run is published already: where there is no more room for a note, there is none.
        text = plan.insight[:NOTE_CHARACTERS]
        evidence = runs_named_in(self.log, plan.task, text)
        notes = self.log.records.newest(kind="note", author=self.author, limit=INSIGHTS_COMPARED)
        if evidence and not any(isinstance(record.body, kinds.Note) and record.body.text == text for record in notes):
            with suppress(Refused):
                self.publish_note(kinds.Note(topic="insight", text=text, task=plan.task), now_ms, links=evidence)
        return self._published(record, body, leader)

    def publish_run_body(self, body: kinds.Run, now_ms: int) -> Record:
        """Append a run whose files are blobs here. It links its parent, and runs of others seen so far."""
        seen = to_link(self.log, body.task, self.author, now_ms, parent=body.parent)
        return self._append("run", body, now_ms, links=[*([body.parent] if body.parent else []), *seen])

    def publish_commitment(self, body: kinds.Commitment, now_ms: int) -> Record:
        """Append that this node measured somebody else's run, without telling what."""
        return self._append("commitment", body, now_ms, links=[body.run])

    def publish_verification(
        self, body: kinds.Verification, now_ms: int, *, commitments: Sequence[bytes] = ()
    ) -> Record:
        """Append what this node measured of somebody else's run; its commitment and those that it waited for."""
        return self._append("verification", body, now_ms, links=[body.run, *commitments])

    def publish_attestation(self, body: kinds.Attestation, now_ms: int) -> Record:
        """Say as an attestor that a participant showed a mailbox."""
        return self._append("attestation", body, now_ms)

    def withdraw_attestations(self, subject: bytes, now_ms: int, *, reason: str = "") -> list[kinds.Attestation]:
        """Take back what this attestor said of a root key, with any of its devices; returns what that was."""
        root = self.identity.root.public
        devices = {row.key for row in own_devices(self.log, root, now_ms)} | {self.author}
        attestations = [
            (record.id, record.body)
            for device in sorted(devices)
            for record in self.log.records.newest(kind="attestation", author=device, limit=_ALL)
            if isinstance(record.body, kinds.Attestation)
            and record.body.subject == subject
            and record.body.expires > now_ms
        ]
        for start in range(0, len(attestations), _LINKS):
            links = [record_id for record_id, _ in attestations[start : start + _LINKS]]
            self._append("withdrawal", kinds.Withdrawal(reason=reason), now_ms, links=links)
        return [body for _, body in attestations]

    def withdraw(self, record: Record, now_ms: int, *, reason: str = "") -> Record:
        """Withdraw a record of this device: it stays in the log and leaves the views."""
        return self._append("withdrawal", kinds.Withdrawal(reason=reason), now_ms, links=[record.id])

    def merge(self, root: KeyPair, device: bytes, now_ms: int) -> Record:
        """End the forks of a device: both branches count from then on.

        Raises:
            Refused: the root key never named the device here, or the log has no fork of it that is not merged.
        """
        if device not in {row.key for row in own_devices(self.log, root.public, now_ms)}:
            raise Refused("the root key speaks for no such device in this network", hint="autoresearch node id renew")
        open_at = [fork.seq for fork in self.log.devices.forks(device) if not fork.merged]
        if not open_at:
            raise Refused(
                f"the log here has no fork of device {device.hex()[:16]}… that has to be merged",
                hint="it shows once both branches are here: autoresearch network peers, then autoresearch node doctor",
            )
        heads = [head.id for head in self.log.devices.branches(device, since_seq=min(open_at))[:_HEADS]]
        return self._append("merge", kinds.Merge(device=device, heads=heads), now_ms, signer=root)

    def publish_note(self, note: kinds.Note, now_ms: int, *, links: tuple[bytes, ...] = ()) -> Record:
        """Append a note."""
        return self._append("note", note, now_ms, links=links)

    def publish_release(self, prepared: PreparedRelease, now_ms: int) -> Record:
        """Keep the files of a component and append its release."""
        self.publish_identity(now_ms)
        return self._append("release", prepared.body(self.blobs.put(prepared.bundle)), now_ms)

    def yank(self, release: Record, now_ms: int, *, reason: str = "") -> Record:
        """Advise against an own release: it stays, and is no default any more."""
        return self._append("yank", kinds.Yank(release=release.id, reason=reason), now_ms, links=[release.id])

    def publish_history(self, notes: Sequence[kinds.Note], now_ms: int) -> int:
        """Append notes about past work, but none whose ``origin`` this device published before; how many were new."""
        self.publish_identity(now_ms)
        mine = self.log.records.newest(kind="note", author=self.author, limit=_ALL)
        origins = {record.body.origin for record in mine if isinstance(record.body, kinds.Note)}
        fresh = list({note.origin: note for note in notes if note.origin not in origins}.values())
        for note in fresh:
            self.publish_note(note, now_ms)
        return len(fresh)

    def has_run_since(self, plan: Plan, since_ms: int) -> bool:
        """Whether this device published a run of the plan at or after a time."""
        return any(
            row.author == self.author
            and row.source_digest == plan.source_digest
            and row.replicate == plan.replicate
            and row.time >= since_ms
            for row in self.log.runs.history(plan.task)
        )

    def is_tried_elsewhere(self, plan: Plan, now_ms: int) -> bool:
        """Whether another device that is vouched for runs the plan now, or has run it to its end."""
        tried = self.log.claims.tried_by(plan.task, plan.source_digest, plan.replicate, now_ms=now_ms)
        return any(self._binds(author, now_ms) for author in tried)

    def is_outrun(self, record: Record, now_ms: int) -> bool:
        """Whether this device's claim on the same gives way to a claim that it just heard.

        What was heard first counts, whatever time a record states. Of claims that cross each other that with the
        smallest id wins.
        """
        claim = record.body_as(kinds.Claim)
        own = self._own_claims(claim, now_ms)
        crossed = bool(own) and now_ms - own[0].time < CROSSING_MS and record.id < own[0].id
        return crossed and self._binds(record.author, now_ms)

    # --- parts ---

    def _binds(self, author: bytes, now_ms: int) -> bool:
        """Whether this device leaves alone what ``author``, another one, tries: only where somebody vouches for it."""
        return author != self.author and is_heard(author, now_ms, trust_context(self.log, self.author), self.author)

    def _own_claims(self, on: Plan | kinds.Claim, now_ms: int) -> list[ClaimRow]:
        """This device's claims on a program with a seed that hold now, the oldest first."""
        return [
            row
            for row in self.log.claims.open(on.task, now_ms=now_ms)
            if row.author == self.author and (row.source_digest, row.replicate) == (on.source_digest, on.replicate)
        ]

    def _append(
        self,
        kind: str,
        body: kinds.Body,
        now_ms: int,
        *,
        links: Sequence[bytes] = (),
        signer: KeyPair | None = None,
        accept_fork: bool = False,
    ) -> Record:
        author = signer or self.identity.device
        record = self.log.writer.append(author, kind, body, links=links, now_ms=now_ms, accept_fork=accept_fork)
        self.announce(record)
        return record

    def leader(self, task: bytes) -> Placed | None:
        """What the next change would build upon."""
        return preferred(self.log, task, trust_context(self.log, self.author))

    def _kept_checkpoint(
        self, plan: Plan, outcome: kinds.RunOutcome, checkpoint: Path | None, *, keep_all: bool
    ) -> kinds.BlobRef | None:
        """What others evaluate a run by: kept where it may come among the best."""
        if checkpoint is None or outcome.value is None:
            return None
        best = contenders(self.log, plan.task, trust_context(self.log, self.author), limit=KEPT_ROWS)
        sign = self.log.tasks.sign(plan.task)
        is_among = len(best) < KEPT_ROWS or sign * outcome.value < sign * best[-1].row.mean
        return self.blobs.put_file(checkpoint) if keep_all or is_among else None

    def _published(self, record: Record, body: kinds.Run, before: Placed | None) -> PublishedRun:
        status = RunStatus(body.status)
        after = self.leader(body.task)
        is_best = after is not None and after.row.source_digest == body.source_digest and before != after
        data = {
            **outcome(self.log, record),
            "best_id": None if after is None else format_id(after.row.first),
            "is_best": is_best,
        }
        sentence = body.title or RUN_STATUS_SENTENCES[status]
        return PublishedRun(record, status, sentence, is_best, data)


def check_name(name: str) -> None:
    """Raises UsageError when a name of a participant can't stand in a line beside a key."""
    hint = f"1 to {NAME_CHARACTERS} characters, without quotes and control characters"
    if len(name) > NAME_CHARACTERS:
        raise UsageError(f"the name “{one_line(name, 40)}” has {len(name)} characters", hint=hint)
    if plain_name(name) != name:
        raise UsageError(f"“{one_line(name, 80)}” is no name that can stand in a line beside a key", hint=hint)


def outcome(log: Log, record: Record) -> dict[str, object]:
    """What came of a run, as the data of an event: its task's name, and what its author reports."""
    body = record.body_as(kinds.Run)
    task, reported = log.tasks.find(body.task), body.value
    before = log.runs.values(body.task, [body.parent]).get(body.parent) if body.parent else None
    return {
        "id": format_id(record.id),
        "task": task.name if task else "",
        "status": body.status,
        "reason": body.reason,
        "reported": reported,
        "parent": format_id(body.parent) if body.parent else None,
        "gain_reported": None
        if reported is None or before is None
        else log.tasks.sign(body.task) * (before - reported),
        "title": body.title,
        "replicate": body.replicate,
        "duration_ms": body.duration_ms,
    }


def own_devices(log: Log, root: bytes, now_ms: int) -> list[identity.Device]:
    """The devices of a root key as the log has them."""
    records = log.records.newest(kind="identity", author=root, limit=IDENTITY_RECORDS)
    named = {record.body.device for record in records if isinstance(record.body, kinds.Identity) and record.body.device}
    for device in named:
        records += log.records.newest(kind="identity", author=device, limit=IDENTITY_RECORDS)
    return identity.devices_of(records, root, now_ms)
