"""What the node says of itself; it also tells when the best that others confirmed changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.lookup import find_task
from autoresearch.ask.node import (
    Check,
    LimitView,
    NetworkStatus,
    OrderView,
    StatusAnswer,
    TaskStatus,
    VerifyingStatus,
    WaitingStatus,
    WorkerStatus,
)
from autoresearch.ask.people.verification import verifying_status
from autoresearch.ask.people.voters import nothing_to_verify
from autoresearch.ask.runs.boards import task_status
from autoresearch.errors import NotFound
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import backed
from autoresearch.log.standing.context import participant_with_key, trust_context
from autoresearch.log.standing.verification import state_of
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Storage, Work
from autoresearch.text import duration, percent, sanitised, size
from autoresearch.version import __version__
from autoresearch.words import RUN_STATE_SENTENCES, WHY_SENTENCES, WORK_RULES, RunState, WorkKind, WorkState
from autoresearch_daemon.events import Events, Trace, now_ms
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.service.effects import ServiceStatus, WorkerNow


def status_answer(
    now: ServiceStatus,
    notebook: Notebook,
    *,
    level: Level | None,
    started_ms: int,
    task: TaskStatus | None,
    net: NetworkStatus,
    conditions: Sequence[Check],
    trace: Callable[[str, str], Trace],
) -> StatusAnswer:
    """State, reason, workers, sandbox, log and task of the node, at this moment."""
    agenda = now.agenda
    log, root = notebook.log, notebook.identity.root.public
    return StatusAnswer(
        state=now.state.value,
        why=now.why.value,
        reason=now.reason,
        since_ms=now.since_ms,
        until_ms=agenda.paused_until_ms if agenda.paused else now.front.until_ms,
        runs_left=now.front.runs_left,
        version=__version__,
        pid=os.getpid(),
        started_ms=started_ms,
        network=log.network.name,
        network_id=log.network.id.hex(),
        participant=participant_with_key(log, root),
        device_key=notebook.author.hex(),
        sandbox=None if level is None else int(level),
        sandbox_name="" if level is None else level.sentence,
        records=log.records.count(),
        unsettled=log.todo.count(),
        mine=log.records.count(author=notebook.author),
        task=task,
        net=net,
        workers=[_worker(one, trace(one.name, one.assignment.name if one.assignment else "")) for one in now.workers],
        conditions=list(conditions),
    )


def _worker(one: WorkerNow, trace: Trace) -> WorkerStatus:
    return WorkerStatus(
        name=one.name,
        device=one.device,
        why=one.why.value,
        reason=WHY_SENTENCES[one.why],
        run=one.run and msgspec.structs.replace(one.run, left_ms=one.run.time_left_ms(now_ms())),
        proposal=one.assignment.name if one.assignment and one.assignment.is_proposal else "",
        curve=[[at_ms, loss] for at_ms, loss in trace.curve],
        lines=[sanitised(line) for line in trace.lines],
    )


def order_views(now: ServiceStatus, name_of: Callable[[str], str]) -> list[OrderView]:
    """The orders in the order of their turns; ``name_of(folder)`` is the name of a task."""
    working = {worker.assignment.order for worker in now.workers if worker.assignment and worker.assignment.is_search}
    views: list[OrderView] = []
    for order in now.agenda.orders:
        held = now.held.get(order.number)
        before = [each.number for each in views if each.state != "passed over" and each.number != order.number]
        state, reason = "next", ""
        if held is not None:
            state, reason = "passed over", f"{held.sentence} · tried again within {duration(held.wait_ms)}"
        elif order.number in working:
            state, reason = "working", ""
        elif before:
            state, reason = "waiting", f"behind order {before[-1]}"
        views.append(
            OrderView(
                number=order.number,
                task=name_of(order.task),
                state=state,
                reason=reason,
                bound=WORK_RULES[order.kind].bound if state in ("waiting", "next") else "",
                runs=order.runs,
                runs_left=order.runs_left,
                for_ms=order.for_ms,
                until_ms=order.until_ms,
                verify_share=order.verify_share,
                proposer=order.proposer,
                executor=order.executor,
            )
        )
    return views


def waiting_reasons(now: ServiceStatus, now_ms: int) -> dict[str, str]:
    """Why each proposal waits, by name, the next first."""
    runs = [worker.run for worker in now.workers if worker.run]
    left_ms = runs[0].time_left_ms(now_ms) if runs else None
    left = "" if left_ms is None else f", {duration(left_ms)} left"
    reason = f"for the end of “{runs[0].title}”{left}" if runs else "for a worker to start"
    reason += f"; {WORK_RULES[WorkKind.PERSON].bound}"
    if now.state is not WorkState.WORKING and now.why not in {held.why for held in now.held.values()}:
        reason = f"while the node is {now.state.value}: {now.reason}"
    reasons: dict[str, str] = {}
    for each in now.queue:
        if held := now.held.get(each.name):
            reasons[each.name] = f"{held.sentence} · passed over, tried again within {duration(held.wait_ms)}"
        else:
            reasons[each.name], reason = reason, "after the one before it"
    return reasons


def limits_of(work: Work, storage: Storage) -> list[LimitView]:
    """What this node lends at most, and when: of the conditions of the owner those that are set."""
    memory = size(work.max_memory_mib << 20) if work.max_memory_mib else "7/8 of this machine's"
    return [
        LimitView(name="runs at a time", value=str(work.workers), setting="work.workers", number=work.workers),
        LimitView(
            name="verification in 24 h",
            value=percent(work.verify_share),
            setting="work.verify_share",
            number=work.verify_share,
        ),
        LimitView(name="threads of a run", value=str(work.threads), setting="work.threads"),
        LimitView(name="time of a run", value=duration(1000 * work.max_seconds), setting="work.max_seconds"),
        LimitView(name="memory of a run", value=memory, setting="work.max_memory_mib"),
        LimitView(
            name="free disk, at least", value=size(storage.minimum_free_mib << 20), setting="storage.minimum_free_mib"
        ),
        *_owner_limits(work),
    ]


def _owner_limits(work: Work) -> list[LimitView]:
    degrees = f"{work.max_temperature} °C"
    rows = (
        ("hours", f"{work.hours}, then {work.hours_end}" if work.hours else "always", "hours"),
        ("cores of all runs", str(work.cores) if work.cores else "", "cores"),
        ("power", "only on mains" if work.only_on_mains else "", "only_on_mains"),
        ("without use for", duration(60_000 * work.only_idle) if work.only_idle else "", "only_idle"),
        (
            "free memory, at least",
            size(work.pause_memory_mib << 20) if work.pause_memory_mib else "",
            "pause_memory_mib",
        ),
        ("temperature, at most", degrees if work.max_temperature else "", "max_temperature"),
        ("cards", "only those that nobody else uses" if work.only_free_card else "", "only_free_card"),
    )
    return [LimitView(name=name, value=value, setting=f"work.{setting}") for name, value, setting in rows if value]


def verifying_part(
    now: ServiceStatus, notebook: Notebook, measured: Sequence[WaitingStatus], *, obstacle: str
) -> VerifyingStatus:
    """The node's part in verification: what it did today, what it is asked for, what waits, what keeps it from it.

    ``obstacle``: why this machine can't verify a run that it is drawn for.
    """
    log = notebook.log
    part = verifying_status(log, notebook.author, now_ms())
    share = now.front.verify_share if now.is_working else 0.0
    checks = any(worker.assignment and worker.assignment.job for worker in now.workers)
    note = ""
    if now.job is not None and now.verification_wait_ms:
        note = f"the next one is ready, and due after {duration(now.verification_wait_ms)} more of runs"
    elif now.job is not None:
        note = f"the next one is ready: {WORK_RULES[WorkKind.VERIFICATION].bound.partition(' where')[0]}"
    elif share > 0 and not checks:
        note = obstacle or nothing_to_verify(log, notebook.author, now_ms())
    return msgspec.structs.replace(part, asked_share=share, waiting=list(measured), note=note)


def followed_task(notebook: Notebook, digest: bytes | None, archived: frozenset[bytes]) -> TaskStatus | None:
    """The task with this digest; without one, the task worked on last that is not archived."""
    try:
        task = find_task(notebook.log, digest.hex() if digest else None, author=notebook.author, archived=archived)
    except NotFound:
        return None  # nothing was run here yet
    return task_status(notebook.log, task, author=notebook.author)


class _Seen(NamedTuple):
    """How many verifications there were, the best confirmed run of each task, and the states of own runs."""

    verifications: int
    best: dict[bytes, bytes]
    own: dict[bytes, RunState]


class _Change(NamedTuple):
    """What is told: an event's kind, its text, and a run with its state."""

    kind: str
    text: str
    data: dict[str, str | None]


class LeaderWatch:
    """The best confirmed run of each task, and what verifiers decided on runs of the device ``me``, at the last look.

    It looks in the thread of the log; the first is no news.
    """

    def __init__(self, thread: LogThread, events: Events, me: bytes = b"") -> None:
        self._me = me
        self._thread = thread
        self._events = events
        self._turn = asyncio.Lock()
        self._seen: _Seen | None = None

    async def look(self, now_ms: int, *, again: bool = False) -> None:
        """Tell what changed since the last look; quick when no verification came, unless ``again``."""
        async with self._turn:
            self._seen, changes = await self._thread.run(partial(_look, me=self._me, before=self._seen, again=again))
        for change in changes:
            self._events.tell(change.kind, change.text, now_ms, **change.data)


def _look(log: Log, *, me: bytes, before: _Seen | None, again: bool) -> tuple[_Seen, list[_Change]]:
    with log.reader.snapshot():
        count = log.records.count("verification")
        if before and count == before.verifications and not again:
            return before, []
        seen = _Seen(count, _confirmed(log) if count else {}, log.standings.decided(me) if count else {})
        if before is None:
            return seen, []
        pairs = [(before.best.get(task), seen.best.get(task)) for task in before.best.keys() | seen.best.keys()]
        decided = [(run, state) for run, state in seen.own.items() if before.own.get(run) != state]
        return seen, [
            *(_verdict(log, run, state) for run, state in decided),
            *(_change(log, old, new) for old, new in pairs if old != new),
        ]


def _confirmed(log: Log) -> dict[bytes, bytes]:
    context, best = trust_context(log), {}
    for task in {row.digest for row in log.tasks.all()}:
        if confirmed := backed(log, task, context, RunState.CONFIRMED):
            best[task] = confirmed[0].row.first
    return best


def _change(log: Log, old: bytes | None, new: bytes | None) -> _Change:
    state = state_of(log, old) if old and log.records.has([old]) else ""
    if old and (new is None or state != RunState.CONFIRMED):
        word = str(state or "withdrawn")
        text = f"{short_id(old)}{_title(log, old)} was the best confirmed run and is {word} now"
        best = format_id(new) if new else None
        return _Change("demoted", text, {"id": format_id(old), "state": word, "best_id": best})
    assert new is not None
    text = f"{short_id(new)}{_title(log, new)} is the best confirmed run now"
    return _Change("confirmed", text, {"id": format_id(new), "state": RunState.CONFIRMED.value})


def _verdict(log: Log, run: bytes, state: RunState) -> _Change:
    text = f"your run {short_id(run)}{_title(log, run)} is {state.value}: {RUN_STATE_SENTENCES[state]}"
    return _Change("verdict", text, {"id": format_id(run), "state": state.value})


def _title(log: Log, run: bytes) -> str:
    record = None if log.hidden.of([run]) else log.records.find(run)
    return f" “{record.body.title}”" if record and isinstance(record.body, Run) and record.body.title else ""
