"""The trust context of a query: whether trust names anybody, who asks, and what follows from that.

That is: which hardware ranks on a wall-clock task, how participants are called, what only this participant wrote, which
commitment a verification reveals.

Names are chosen freely and prove nothing, so none is shown without the root key. The key is shortened as far as it
stays different from every other key in the log, so what is shown can be typed as input. A new key with the same
beginning makes both longer. What others wrote, by the log, never runs without a sandbox.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os.path import commonprefix
from typing import NamedTuple

from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import commitment_digest
from autoresearch.log.rows import CommitmentRow
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.record.record import Record, body_fields
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.text import plain_name
from autoresearch.trust.roster import Roster


@dataclass(frozen=True)
class TrustContext:
    """The trust that a query is answered with, by the records of a log.

    ``verifying``: there are enough voters to confirm runs. ``naming``: trust names anybody. ``me`` is
    the voter of the device that asks.
    """

    verifying: bool
    naming: bool
    me: bytes | None
    roster: Roster

    @cached_property
    def mine(self) -> frozenset[bytes]:
        """All keys of the participant that asks."""
        return self.roster.keys_of({self.me}) if self.me else frozenset()


class Whose(NamedTuple):
    """Whether a run's author is attested, and whether it is the participant that asks."""

    attested: bool
    own: bool


def trust_context(log: Tables, me: bytes | None = None) -> TrustContext:
    """The trust context at the time of the newest record. ``me`` is the device that asks, if it has a key."""
    naming = log.trust.names_anybody
    now_ms, roster = log.records.newest_ms() if naming else 0, roster_of(log)
    if not now_ms:
        return TrustContext(verifying=False, naming=naming, me=None, roster=roster)
    rules = network_rules(log.network)
    verifying = roster.count(now_ms - rules.age_ms) >= rules.least
    return TrustContext(verifying, naming, roster.voter(me, now_ms).voter if me else None, roster)


def whose(author: bytes, time_ms: int, context: TrustContext) -> Whose:
    """Whether an author is attested, and whether it asks. Where trust names nobody, all count as attested."""
    if not context.naming:
        return Whose(attested=True, own=False)
    voter = context.roster.voter(author, time_ms)
    return Whose(voter.attested, voter.voter == context.me)


SHORT_CHARACTERS = 8
# So much more than what another key shares.
_MORE_CHARACTERS = 4


def short_key(key: bytes, others: Iterable[bytes]) -> str:
    """The beginning of a key, hexadecimal, that none of some other keys has."""
    shared = max((len(commonprefix([key.hex(), other.hex()])) for other in others), default=0)  # noqa: RUF071
    return key.hex()[: SHORT_CHARACTERS if shared < SHORT_CHARACTERS else shared + _MORE_CHARACTERS]


def participant_of(log: Tables, device: bytes, time_ms: int) -> ParticipantView:
    """The participant behind what a device signed at a time."""
    return participant_with_key(log, roster_of(log).voter(device, time_ms).root)


def participant_with_key(log: Tables, root: bytes) -> ParticipantView:
    """The participant with this root key. A device without a root key is its own participant."""
    return cached(log, ("participant", root), lambda: _participant(log, root))


def _participant(log: Tables, root: bytes) -> ParticipantView:
    named = cached(log, "keys", lambda: sorted(log.trust.attestors | roster_of(log).participants), lasting=True)
    at = bisect_left(named, root)
    others = (*log.devices.beside(root), *(key for key in named[max(at - 1, 0) : at + 2] if key != root))
    naming = roster_of(log).naming(root)
    is_hidden = naming and log.hidden and bool(log.hidden.of([naming.id]) or log.hidden.of_keys([root]))
    name = "" if is_hidden else plain_name(roster_of(log).name(root))
    return ParticipantView(key=root.hex(), short=short_key(root, others), name=name)


def own_keys(log: Tables, device: bytes, now_ms: int) -> frozenset[bytes]:
    """The keys of the participant that a device speaks for, itself among them."""
    roster = roster_of(log)
    return roster.keys_of({roster.voter(device, now_ms).root}) | {device}


def is_own_task(log: Tables, task: Task, own: frozenset[bytes], *, shipped: Task) -> bool:
    """Whether no other participant published a file of a task folder: neither in a task nor, for its program, as a run.

    Shipped files are everybody's own. Of other files the first publication in a task counts, by the order of arrival in
    this log: no other participant can choose it. A file that differs in one byte from a published one is another file.
    """
    files = _files(task) - _files(shipped)
    # By file, the device that first published it in a task. Unpublished files are left out.
    first: dict[bytes, bytes] = {}
    for record in log.records.arrived("task"):
        body = record.body_as(TaskBody)
        for blob in (body.baseline, *body.harness.values()):
            if blob.sha256 in files:
                first.setdefault(blob.sha256, record.author)
    if not own.issuperset(first.values()):
        return False
    program = hashlib.sha256(task.baseline).digest()
    return program not in files or program in first or not _is_others_run(log, task.baseline.decode(), own)


def is_own_program(
    log: Tables, task: Task, program: str, parent: bytes | None, own: frozenset[bytes], *, shipped: Task
) -> bool:
    """Whether no other participant wrote any of a task and of a program for it, edited from the run ``parent``."""
    if not is_own_task(log, task, own, shipped=shipped):
        return False
    if parent is not None and not (is_own_run(log, parent, own) or _is_baseline(log, parent, task)):
        return False
    return program in (task.baseline.decode(), shipped.baseline.decode()) or not _is_others_run(log, program, own)


def _is_baseline(log: Tables, run: bytes, task: Task) -> bool:
    record = log.records.find(run)
    body = record.body if record else None
    return isinstance(body, Run) and body.source_digest == source_digest(task.baseline.decode())


def is_own_run(log: Tables, run: bytes, own: frozenset[bytes]) -> bool:
    """Whether a run and all its ancestors, back to a run without a parent, are this participant's.

    A run that changes a base other than its task's baseline and the programs among these may hold text of others, so
    it is not this participant's. Nor is one that came from another network and lost its parent there.
    """
    following: bytes | None = run
    programs, bases = set[bytes](), set[bytes | None]({None})
    while following is not None:
        record = log.records.find(following)
        if record is None or not isinstance(record.body, Run) or record.author not in own:
            return False
        programs.add(record.body.source_digest)
        bases.add(record.body.base)
        following = record.body.parent
        if following is None and record.body.origin and not _is_task_s_program(log, record.body):
            return False
    return bases <= programs | {None}


def _is_task_s_program(log: Tables, run: Run) -> bool:
    row = log.tasks.find(run.task)
    body = log.records.get(row.id).body if row else None
    return isinstance(body, TaskBody) and body.baseline.sha256 == run.source.sha256


def _is_others_run(log: Tables, source: str, own: frozenset[bytes]) -> bool:
    """Whether others have a counted run of a program, on some task, and this participant has none there."""
    digest = source_digest(source)
    tasks = {(row.digest, row.budget) for row in log.tasks.all() if row.budget is not None}
    return any(
        log.programs.find(task, digest, budget) is not None and not log.programs.is_of(task, digest, budget, own)
        for task, budget in tasks
    )


def _files(task: Task) -> set[bytes]:
    return {hashlib.sha256(content).digest() for content in (task.baseline, *task.harness.values())}


def is_clocked(log: Tables, task: bytes) -> bool:
    """Whether a task's budget is time."""
    rules = log.tasks.rules(task)
    return rules is not None and rules.clocked


def board_hardware(log: Tables, task: bytes) -> str | None:
    """The hardware whose numbers the board of a wall-clock task compares; None where all may be compared.

    The hardware on which most attested participants work; of equal ones the one with the most of their programs, then
    the first by name. Where trust names nobody, the programs of all count.
    """
    if not is_clocked(log, task):
        return None
    return cached(log, ("hardware", task), lambda: _most_used(log, task))


def is_same_hardware(run: Run, device: str) -> bool:
    """Whether a run and a verification's device are of one kind."""
    return bool(run.device) and run.device == device


def _most_used(log: Tables, task: bytes) -> str:
    roster = roster_of(log)
    voters: defaultdict[str, set[bytes]] = defaultdict(set)
    programs: Counter[str] = Counter()
    # Where trust names anybody, only runs of participants that were attested then decide.
    for device, author, count, time_ms in log.entries.hardware_of(task, roster.keys):
        voter = roster.voter(author, time_ms)
        voters[device] |= {voter.voter} if voter.attested else set()
        programs[device] += count
    if not programs:
        for device, _, count in log.programs.hardware(task):
            programs[device] += count
    return min(programs, key=lambda device: (-len(voters[device]), -programs[device], device), default="")


class OwnCommitments(NamedTuple):
    """The commitments of a device for a stage and a round: its first by number, and all by id."""

    first: CommitmentRow
    by_id: dict[bytes, CommitmentRow]


def committed_by(rows: Iterable[CommitmentRow]) -> dict[tuple[bytes, str, int], OwnCommitments]:
    """The commitments on a run with valid proofs, by device, stage and round."""
    by_name: dict[tuple[bytes, str, int], OwnCommitments] = {}
    for row in rows:
        if row.output is not None:
            name = (row.author, row.stage, row.round)
            own = by_name.get(name, OwnCommitments(row, {}))
            own.by_id[row.id] = row
            by_name[name] = own._replace(first=min(own.first, row, key=lambda row: (row.seq, row.id)))
    return by_name


def commitment_of(record: Record, commitments: Mapping[tuple[bytes, str, int], OwnCommitments]) -> bytes | None:
    """The id of the commitment that a verification links and opens, or None.

    A device has one for a stage and a round: its first by number. So no verifier can commit to two values and then
    choose which one to reveal.
    """
    check = record.body_as(Verification)
    own = commitments.get((record.author, check.stage, check.round))
    linked = [own.by_id[link] for link in record.links if link in own.by_id] if own else []
    if own is None or not linked:
        return None
    oldest = min(linked, key=lambda row: (row.time, row.id))
    digest = commitment_digest(record.author, check.salt, body_fields(record))
    # After a restored copy of the log a device commits again, to the same: either commitment may be linked.
    return oldest.id if oldest.digest == own.first.digest == digest else None


def trusted_authors(context: TrustContext, me: bytes | None) -> frozenset[bytes] | None:
    """Whose words come first: attested participants' and one's own. None: everybody's, where trust names nobody."""
    return context.roster.keys | context.mine | ({me} if me else set()) if context.naming else None
