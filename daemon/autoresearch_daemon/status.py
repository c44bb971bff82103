"""What the node says of itself."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict

import msgspec

from autoresearch.ask import node
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.challenges.board import contest_end
from autoresearch.ask.health import failed
from autoresearch.ask.lookup import find_task
from autoresearch.ask.people.verification import verifying_status
from autoresearch.ask.people.voters import nothing_to_verify, with_voter
from autoresearch.ask.runs.boards import task_status
from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.log.standing.context import participant_with_key
from autoresearch.settings import Storage, Work
from autoresearch.text import duration, percent, sanitised, size
from autoresearch.trust.invite import Invitations
from autoresearch.version import __version__
from autoresearch.words import WHY_SENTENCES, WORK_RULES, Part, Result, WorkKind
from autoresearch_daemon.events import Trace, now_ms
from autoresearch_daemon.minds.proposing import proposers_status
from autoresearch_daemon.parts import NO_NETWORK, NodeParts
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import ServiceStatus, WorkerNow


def status_answer(parts: NodeParts, conditions: list[node.Check], pages: str) -> node.StatusAnswer:
    """What the node does, and why, with its log, task and part in verification; where that can't be read, without."""
    log, now = parts.notebook.log, parts.service.status(now_ms())
    answer = node.StatusAnswer(
        state=now.state.value,
        why=now.why.value,
        reason=now.reason,
        since_ms=now.since_ms,
        version=__version__,
        pid=os.getpid(),
        started_ms=parts.started_ms,
        network=log.network.name,
        network_id=log.network.id.hex(),
        conditions=conditions,
        pages=pages,
    )
    try:
        return _with_log(answer, now, parts)
    except (AutoresearchError, sqlite3.Error, ValueError) as error:  # ValueError: stored bytes are no record
        if any(check.name == Part.LOG and check.result == Result.FAILED for check in conditions):
            return answer
        return msgspec.structs.replace(answer, conditions=[failed(Part.LOG, error), *conditions])


def _with_log(answer: node.StatusAnswer, now: ServiceStatus, parts: NodeParts) -> node.StatusAnswer:
    agenda, notebook, folders, settings = now.agenda, parts.notebook, parts.folders, parts.settings
    log, me, root = notebook.log, notebook.author, notebook.identity.root.public
    trace = parts.assignments.progress.trace
    workers = [
        _worker(worker, trace(worker.name, worker.assignment.name if worker.assignment else ""))
        for worker in now.workers
    ]
    # Between being given to a worker and its beginning a run would stand in both places.
    in_hand = {worker.proposal for worker in workers if worker.run}
    task, level = folders.find(now.front.task), parts.level
    # A node that is not asked to work shows what it worked on last, whatever folders it looked into meanwhile.
    followed = followed_task(notebook, task.digest if task and now.is_working else None, folders.archived())
    if followed:
        task = folders.task_with(bytes.fromhex(followed.digest))
    answer = msgspec.structs.replace(
        answer,
        until_ms=agenda.paused_until_ms if agenda.paused else now.front.until_ms,
        runs_left=now.front.runs_left,
        participant=participant_with_key(log, root),
        device_key=me.hex(),
        sandbox=None if level is None else int(level),
        sandbox_name="" if level is None else level.sentence,
        contest_ends_ms=contest_end(log),
        records=log.records.count(),
        unsettled=log.todo.count(),
        mine=log.records.count(author=me),
        task=followed,
        net=parts.sync.status() if parts.sync else NO_NETWORK,
        workers=workers,
        verifying=verifying_part(now, notebook, parts.verifying.waiting(), obstacle=parts.verifying.obstacle()),
        storage=parts.keeper.status(),
        machine=parts.owner.seen(parts.gauges.status),
        orders=order_views(now, folders.name_of),
        past_orders=past_views(now, folders.name_of),
        queue=[each for each in parts.assignments.queued() if each.name not in in_hand],
        proposers=proposers_status(log, parts.paths, parts.settings_of_file(), task, me=me, now_ms=now_ms()),
        limits=limits_of(settings.work, settings.storage),
    )
    joins = Invitations(parts.paths.manifest, log.network).kept_join() is not None
    return with_voter(log, answer, root, now_ms(), seen=parts.devices_seen(), joins=joins)


def _worker(worker: WorkerNow, trace: Trace) -> node.WorkerStatus:
    return node.WorkerStatus(
        name=worker.name,
        device=worker.device,
        why=worker.why.value,
        reason=WHY_SENTENCES[worker.why],
        run=worker.run and msgspec.structs.replace(worker.run, left_ms=worker.run.time_left_ms(now_ms())),
        proposal=worker.assignment.name if worker.assignment and worker.assignment.is_proposal else "",
        curve=[[at_ms, loss] for at_ms, loss in trace.curve],
        lines=[sanitised(line) for line in trace.lines],
    )


def order_views(now: ServiceStatus, name_of: Callable[[str], str]) -> list[node.OrderView]:
    """The orders in the order of their turns; ``name_of(folder)`` is the name of a task."""
    working = {worker.assignment.order for worker in now.workers if worker.assignment and worker.assignment.is_search}
    views: list[node.OrderView] = []
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
        bound = WORK_RULES[order.kind].bound if state in ("waiting", "next") else ""
        views.append(_order_view(order, name_of(order.task), state=state, reason=reason, bound=bound))
    return views


def past_views(now: ServiceStatus, name_of: Callable[[str], str]) -> list[node.OrderView]:
    """The last orders that began and ended."""
    return [_order_view(order, order.task_name or name_of(order.task), state="done") for order in now.agenda.past]


def _order_view(order: Order, task: str, **values: str) -> node.OrderView:
    return msgspec.convert(asdict(order) | {"task": task} | values, node.OrderView)


def limits_of(work: Work, storage: Storage) -> list[node.LimitView]:
    """What this node lends at most, and when: of the conditions of the owner those that are set."""
    memory = size(work.max_memory_mib << 20) if work.max_memory_mib else "7/8 of this machine's"
    return [
        node.LimitView(name="runs at a time", value=str(work.workers), setting="work.workers", number=work.workers),
        node.LimitView(
            name="verification in 24 h",
            value=percent(work.verify_share),
            setting="work.verify_share",
            number=work.verify_share,
        ),
        node.LimitView(name="threads of a run", value=str(work.threads), setting="work.threads"),
        node.LimitView(name="time of a run", value=duration(1000 * work.max_seconds), setting="work.max_seconds"),
        node.LimitView(name="memory of a run", value=memory, setting="work.max_memory_mib"),
        node.LimitView(
            name="free disk, at least", value=size(storage.minimum_free_mib << 20), setting="storage.minimum_free_mib"
        ),
        *_owner_limits(work),
    ]


def _owner_limits(work: Work) -> list[node.LimitView]:
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
    return [node.LimitView(name=name, value=value, setting=f"work.{setting}") for name, value, setting in rows if value]


def verifying_part(
    now: ServiceStatus, notebook: Notebook, measured: Sequence[node.WaitingStatus], *, obstacle: str
) -> node.VerifyingStatus:
    """The node's part in verification: what it did today, what it is asked for, what waits, what keeps it from it.

    ``obstacle``: why this machine can't verify a run that it is drawn for.
    """
    log = notebook.log
    part = verifying_status(log, notebook.author, now_ms())
    share = now.front.verify_share if now.is_working else 0.0
    checks = any(worker.assignment and worker.assignment.job for worker in now.workers)
    note = ""
    if now.job is not None and (now.blocks or now.agenda.paused):
        note = "the next one is ready: it begins once this node may work"
    elif now.job is not None and now.verification_wait_ms:
        note = f"the next one is ready, and due after {duration(now.verification_wait_ms)} more of runs"
    elif now.job is not None:
        note = f"the next one is ready: {WORK_RULES[WorkKind.VERIFICATION].bound.partition(' where')[0]}"
    elif share > 0 and not checks:
        note = obstacle or nothing_to_verify(log, notebook.author, now_ms())
    return msgspec.structs.replace(part, asked_share=share, waiting=list(measured), note=note)


def followed_task(notebook: Notebook, digest: bytes | None, archived: frozenset[bytes]) -> node.TaskStatus | None:
    """The task with this digest; without one, the task worked on last that is not archived."""
    try:
        task = find_task(notebook.log, digest.hex() if digest else None, author=notebook.author, archived=archived)
    except NotFound:
        return None  # nothing was run here yet
    return task_status(notebook.log, task, author=notebook.author)
