"""What a person means by what was typed: a task by its name or digest, a participant by its key or name.

Also which participants are behind the peers of a node, and which services run on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.ask.node import PeersAnswer, PeerView, ServicesAnswer
from autoresearch.errors import AmbiguousId, NoTaskYet, NotFound, UsageError
from autoresearch.judging.statistics import task_rules
from autoresearch.log.log import Log
from autoresearch.log.rows import TaskRow
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of, participant_with_key
from autoresearch.log.standing.participants import TrackRecord, mark_view
from autoresearch.log.standing.queries import banned_until, records_behind
from autoresearch.record.kinds import Run, Task
from autoresearch.services import running_services
from autoresearch.task.loading import shipped_tasks
from autoresearch.text import counted, did_you_mean, moment, one_line, plain_name

# As many recent runs as are looked at for one on a task that this log knows.
RECENT_RUNS = 50
_DIGEST = re.compile(r"[0-9a-f]{4,64}")


class FoundTask(NamedTuple):
    """A task as its published definition has it. ``baseline`` is its program's canonical digest."""

    digest: bytes
    name: str
    metric: str
    direction: str
    budget: float
    floor: float | None
    baseline: bytes | None
    unit: str = ""


@in_snapshot
def find_task(
    log: Log, reference: str | None = None, *, author: bytes | None = None, archived: frozenset[bytes] = frozenset()
) -> FoundTask:
    """The task with this name or digest; without a reference the one that ``author``, or else anybody, ran last.

    Names are not unique: of several tasks with one name, the one that ``author`` has runs on is meant. Before these,
    of an environment with tasks of earlier versions, the one that leaves the training budget to its agents. What is
    ``archived`` here is meant by its name or digest alone, and by a name only where no other task has it.

    Raises:
        NotFound: there is none.
        AmbiguousId: there are several.
    """
    # A definition without a direction and a budget cannot be ranked; anybody may have published it.
    published = [row for row in log.tasks.all() if row.direction is not None]
    tasks = {row.digest: row for row in published}
    visible = {row.digest: row for row in log.tasks.all(visible=True) if row.direction is not None}
    if reference is None:
        if author is not None and not visible:  # whoever published what this device works on is of no matter then
            visible = {digest: row for digest, row in tasks.items() if log.runs.newest(digest, limit=1, author=author)}
        if tasks and not visible:
            hint = "name one with --task, or look at: autoresearch network hidden"
            raise NotFound("All tasks here are hidden.", hint=hint)
        return _load(log, _last(log, _but(visible, archived), author))
    # Somebody published these under the name; whether the definition has that name is another question.
    digests = dict.fromkeys(row.digest for row in published if row.name == reference)
    named = [task for digest in digests if (task := _load(log, tasks[digest])).name == reference]
    if not named and _DIGEST.fullmatch(reference.lower()):
        named = [_load(log, row) for row in tasks.values() if row.digest.hex().startswith(reference.lower())]
    named = [task for task in named if task.digest not in archived] or named
    if len(named) > 1:
        named = [task for task in named if task.unit == "episodes"] or named
    if len(named) > 1 and author is not None:
        named = [task for task in named if log.runs.newest(task.digest, limit=1, author=author)] or named
    if not named:
        raise _no_task(reference, sorted({row.name for row in visible.values()}))
    if len(named) > 1:
        newest = sorted(named, key=lambda task: -tasks[task.digest].time)[:10]
        shortened = [task.digest.hex()[:12] for task in newest]
        runs = {task.digest: sum(log.runs.endings(task.digest).values()) for task in newest}
        about = [
            f"{digest} of {moment(tasks[task.digest].time)}, {counted(runs[task.digest], 'run')}"
            for digest, task in zip(shortened, newest, strict=True)
        ]
        raise AmbiguousId(f"{reference} can mean several tasks.", shortened, hint="name one: " + "; ".join(about))
    return named[0]


def _no_task(reference: str, names: list[str]) -> NotFound:
    """What to say of a name that no task of the log has; ``names`` are those of the log."""
    ships = [task.name for task in shipped_tasks()]
    if reference in ships:
        return NotFound(f"No run on {reference} is here yet.", hint=f"autoresearch work {reference}")
    last = reference.rstrip("/").rpartition("/")[2]  # of a folder its own name, which its task mostly has too
    whole = [name for name in ships if not any(name.startswith(f"{other}-") for other in ships)]  # no other's size
    more = [f"{len(names) - 5} more of this log"] if len(names) > 5 else []
    listed = ", ".join(dict.fromkeys([*names[:5], *more, *whole]))
    hint = f"known tasks: {listed}; autoresearch task new DIR makes one of your own program"
    return NotFound(f"There is no task {reference[:80]} here.", hint=did_you_mean(last, [*names, *ships]) or hint)


def other_tasks(log: Log, task: FoundTask, archived: frozenset[bytes] = frozenset()) -> list[str]:
    """The names of the other tasks here that are not archived, sorted; of one with the same name its digest."""
    names = {row.digest: row.name for row in log.tasks.all(visible=True) if row.direction is not None}
    others = {digest: name for digest, name in names.items() if digest != task.digest and digest not in archived}
    return sorted({digest.hex()[:12] if name == task.name else name for digest, name in others.items()})


def task_of(log: Log, digest: bytes) -> FoundTask | None:
    """The task with this digest, or None when its definition is not here."""
    row = log.tasks.find(digest)
    return _load(log, row) if row and row.direction is not None else None


def _but(tasks: Mapping[bytes, TaskRow], archived: frozenset[bytes]) -> dict[bytes, TaskRow]:
    """The tasks that are not archived."""
    left = {digest: row for digest, row in tasks.items() if digest not in archived}
    if tasks and not left:
        hint = "name one with --task, or: autoresearch task restore NAME"
        raise NotFound("All tasks here are archived.", hint=hint)
    return left


def _last(log: Log, tasks: Mapping[bytes, TaskRow], author: bytes | None) -> TaskRow:
    if not tasks:
        raise NoTaskYet
    own = log.records.newest(kind="run", author=author, limit=RECENT_RUNS) if author is not None else []
    for record in own or log.records.newest(kind="run", limit=RECENT_RUNS):
        if isinstance(record.body, Run) and record.body.task in tasks:
            return tasks[record.body.task]
    return max(tasks.values(), key=lambda row: (row.time, row.id))


def _load(log: Log, row: TaskRow) -> FoundTask:
    body = log.records.get(row.id).body_as(Task)
    rules = task_rules(body.definition)
    assert rules
    metric, budget = body.definition["metric"], body.definition["budget"]
    assert isinstance(metric, Mapping)
    assert isinstance(budget, Mapping)
    name, floor, baseline = (body.definition.get("name"), metric.get("floor"), body.definition.get("baseline"))
    return FoundTask(
        digest=row.digest,
        # The record's own name is its publisher's word; the definition's is part of the digest.
        name=name if isinstance(name, str) else row.name,
        metric=str(metric.get("name", "")),
        direction=rules.direction,
        budget=rules.budget,
        floor=float(floor) if isinstance(floor, int | float) and not isinstance(floor, bool) else None,
        baseline=baseline if isinstance(baseline, bytes) else None,
        unit=str(budget.get("unit", "")),
    )


_KEY = re.compile(r"[0-9a-f]{4,64}")


def named(log: Log, text: str, *, author: bytes | None) -> frozenset[bytes]:
    """The root keys of the one participant that is meant; of several only where one mailbox is behind them.

    ``text`` is ``me``, the beginning of a device's, a root or a participant's key, or a name that only one has.
    ``author`` is this node's device key.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    roster, newest_ms = roster_of(log), log.records.newest_ms()
    if text == "me":
        if author is None:
            raise NotFound("This machine has no key yet.", hint="autoresearch node id new")
        return frozenset({roster.voter(author, newest_ms).root})
    key, name = text.strip().lower(), plain_name(text)
    is_key = _KEY.fullmatch(key) is not None
    by_key: dict[bytes, set[bytes]] = {}  # root keys by voter
    by_name: dict[bytes, set[bytes]] = {}
    for device in log.devices.all():
        voter = roster.voter(device, newest_ms)
        if is_key and any(owner.hex().startswith(key) for owner in (device, voter.root, voter.voter)):
            by_key.setdefault(voter.voter, set()).add(voter.root)
        if name and plain_name(roster.name(voter.root)) == name:
            by_name.setdefault(voter.voter, set()).add(voter.root)
    matches = by_key or by_name
    if len(matches) > 1:
        called = sorted(participant_with_key(log, min(roots)).short for roots in matches.values())
        raise AmbiguousId(f"{one_line(text, 80)} can mean several participants.", called[:10])
    if matches:
        return frozenset(*matches.values())
    if is_key:
        raise NotFound(
            f"Nobody whose key begins with {key} has signed anything here.", hint="autoresearch network credit"
        )
    hint = "me, at least four digits of a key, or a name that only one has: autoresearch network credit"
    raise UsageError(f"“{one_line(text, 80)}” names no participant.", hint=hint)


@in_snapshot
def with_participants(log: Log, answer: PeersAnswer) -> PeersAnswer:
    """The peers with the participants behind those that have proven their device key."""
    now_ms = log.records.newest_ms()
    devices = [bytes.fromhex(peer.device_key) for peer in answer.peers if peer.device_key]
    records = iter(records_behind(log, [(device, now_ms) for device in devices]))
    peers = [_with_participant(log, peer, next(records), now_ms) if peer.device_key else peer for peer in answer.peers]
    return msgspec.structs.replace(answer, peers=peers)


def _with_participant(log: Log, peer: PeerView, records: Sequence[TrackRecord], now_ms: int) -> PeerView:
    device = bytes.fromhex(peer.device_key)
    return msgspec.structs.replace(
        peer,
        participant=participant_of(log, device, now_ms),
        attested=roster_of(log).voter(device, now_ms).attested,
        marks=[mark_view(mark) for record in records for mark in record.marks],
        banned_until_ms=banned_until(records),
    )


def services_answer(folder: Path) -> ServicesAnswer:
    """The services whose files are in a folder, and that run."""
    return ServicesAnswer(services=list(running_services(folder)))
