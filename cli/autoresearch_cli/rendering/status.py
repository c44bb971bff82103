"""The node's state, its services and its peers in words: offline is normal, not a fault.

Pure: answers and the time in, lines out.
"""

from __future__ import annotations

from shlex import quote

from autoresearch import words
from autoresearch.ask import node
from autoresearch.ask.runs.answers import RunRow, SinceAnswer
from autoresearch.errors import BEGIN
from autoresearch.face.columns.column import person, short
from autoresearch.face.columns.node import card_words, energy_words, order_words, owner_words
from autoresearch.face.columns.people import peer_columns
from autoresearch.face.columns.runs import gain_words, leading_words
from autoresearch.services import Service
from autoresearch.text import (
    age,
    brief,
    clock,
    counted,
    duration,
    ending,
    largest_unit,
    percent,
    size,
    unsettled,
    value,
)
from autoresearch_cli.rendering.answers import reason
from autoresearch_cli.rendering.output import print_labelled, print_list, say

Line = tuple[str, str]


def state_sentence(status: node.StatusAnswer, now_ms: int) -> str:
    """The state, its reason, and until when."""
    named = status.reason.startswith(status.state) or not status.reason
    parts = [(status.reason or status.state) if named else f"{status.state}: {status.reason}"]
    if status.until_ms:
        left = f", for {duration(status.until_ms - now_ms)} more" if status.until_ms >= now_ms + 1000 else ""
        parts.append(f"until {clock(status.until_ms)}{left}")
    if status.runs_left is not None:
        parts.append(f"{counted(status.runs_left, 'run')} left")
    return " · ".join(parts)


def _network(net: node.NetworkStatus, now_ms: int) -> str:
    """How the network stands: what it moved, or why it rests; and why it moves records alone."""
    if net.state == words.NetworkState.RESTING:
        return f"{net.state}: {net.reason}"
    moved = f"{counted(net.connected, 'peer')} connected, {size(net.bytes_today)} today"
    if net.exchanged_ms:
        moved += f", same records as a peer {age(net.exchanged_ms, now_ms)}"
    if net.reason not in ("", words.network_reason(words.NetworkState.RUNNING)):
        moved += f"; {net.reason}"
    return f"{net.state}: {moved}"


def _participation(status: node.StatusAnswer, now_ms: int) -> list[Line]:
    """Who this participant is, whether it counts, what the network lacks, and until when its contest goes on."""
    lines: list[Line] = []
    if status.participant.short:
        way = f" · unattested, your verifications do not count yet → {status.to_count}" if status.to_count else ""
        why = f" · {reason(status.voter, now_ms)}" if status.voter else way
        lines.append(("you", person(status.participant) + why))
    if status.note and not status.to_count:  # first what this participant does, above
        lines.append(("needed", status.note))
    elif works_alone(status) and status.participant.short:
        lines.append(("alone", "others confirm runs in a network → autoresearch network new NAME --for lab"))
    if status.contest_ends_ms is not None:
        lines.append(("contest", f"{ending(status.contest_ends_ms, now_ms)} → autoresearch challenge show"))
    return lines


def status_lines(status: node.StatusAnswer, now_ms: int) -> list[Line]:
    """Everything about the node, as label and text."""
    lines = [
        ("state", state_sentence(status, now_ms).replace(f": {STEPS.get(status.state)}", ""))
    ]  # what to type stands below
    if status.running and status.started_ms:
        parts = [f"up {duration(now_ms - status.started_ms)}", f"version {status.version}", f"process {status.pid}"]
        if status.sandbox is not None:
            parts.append(f"sandbox {status.sandbox} ({status.sandbox_name})")
        lines.append(("daemon", " · ".join(parts)))
    lines += _participation(status, now_ms)
    lines += [("now", line) for line in now_lines(status, now_ms)]
    lines += [("order", order_words(each, now_ms)) for each in status.orders]
    lines += [("queue", queued_line(each)) for each in status.queue]
    lines += [("proposer", proposer_line(each)) for each in status.proposers]
    lines += [("machine", machine_line(machine, now_ms)) for machine in [status.machine] if machine]
    if status.task:
        lines += task_lines(status.task)
    if status.verifying:
        if status.verifying.today or status.verifying.runs_today:
            lines.append(("today", today_line(status.verifying)))
        if status.verifying.asked_share and not works_alone(status):
            lines.append(("verify", asked_line(status.verifying)))
        lines += [
            ("measured", waiting_line(waiting, now_ms, running=status.running)) for waiting in status.verifying.waiting
        ]
    if status.net and status.net.state != "off":
        lines.append(("net", _network(status.net, now_ms)))
    own = "" if status.mine == status.records else f", {status.mine} of them yours"
    network = f" of {status.network}" if status.network not in {"", words.DEFAULT_NETWORK} else ""
    records = f"{counted(status.records, 'record')}{network}{own}"
    if status.records or all(
        condition.name not in words.STORED_PARTS
        for condition in status.conditions
        if condition.result == words.Result.FAILED
    ):
        lines.append(("log", " · ".join(filter(None, (records, unsettled(status.unsettled))))))
    if status.storage:
        lines.append(("blobs", storage_line(status.storage)))
    lines += [("!", f"{condition.name}: {condition.sentence}") for condition in status.conditions]
    return lines


def report_lines(order: node.OrderView, happened: SinceAnswer, now_ms: int) -> list[Line]:
    """What an order brought: how long it worked, why it ended, what happened meanwhile, its last gains."""
    end_ms = order.ended_ms or now_ms
    parts = [
        f"{order.number} {order.task}",
        f"{clock(order.began_ms or 0)} to {clock(end_ms)}, {duration(end_ms - (order.began_ms or 0))}",
        counted(order.runs_done, "run"),
        f"ended: {order.end}" if order.ended_ms else order_words(order, now_ms).split(" · ", 1)[1],
    ]
    gains = [
        " · ".join(filter(None, (leading_words(row), _gain(row), row.headline, short(row.id))))
        for row in reversed(happened.gains)
    ]
    empty = [] if gains else [("gains", "none: no run became the best of its task")]
    return [("order", " · ".join(parts)), ("task", happened.sentence), *(("gain", text) for text in gains), *empty]


def _gain(row: RunRow) -> str:
    """The gain of a run against its parent; nothing where it has none, as the baseline."""
    return f"gain {gain}" if (gain := gain_words(row)) else ""


def now_lines(status: node.StatusAnswer, now_ms: int) -> list[str]:
    """What each worker does; why one waits only while the node works: else the state says why nothing is done."""
    if status.state == words.WorkState.WORKING and not status.workers:
        why = _without_worker(status)
        return [] if status.verifying and why == status.verifying.note else [why]  # that stands beside “verify”
    lines: dict[str, str] = {}
    for worker in status.workers:
        if worker.run or (status.state == words.WorkState.WORKING and worker.reason != status.reason):
            lines.setdefault(worker.name if worker.run else worker.reason, worker_line(worker, now_ms))
    return list(lines.values())


def proposer_line(proposer: node.ProposerStatus) -> str:
    """Who invents changes, what that brought and cost, and what keeps it from it."""
    name = f"{proposer.name} ({proposer.model})" if proposer.model else proposer.name
    gain = f", by {value(proposer.gain)} in all beyond the noise" if proposer.better else ""
    brought = f"{counted(proposer.runs, 'run')}, {proposer.better} better than the best before{gain}"
    cost = f"cost {proposer.cost:.2f}" if proposer.cost else ""
    state = proposer.reason if proposer.state == "waiting" else ""
    return " · ".join(filter(None, (name, brought if proposer.runs else "", cost, state)))


def machine_line(machine: node.MachineStatus, now_ms: int) -> str:
    """What the whole machine is busy with."""
    parts = [
        f"processor {percent(machine.busy)} of {counted(machine.processors, 'core')}",
        f"memory {size(machine.memory_bytes)} of {size(machine.memory_total_bytes)}",
        *(f"{card.name} {card_words(card)}" for card in machine.cards),
    ]
    return " · ".join(filter(None, (*parts, energy_words(machine), owner_words(machine.owner, now_ms))))


def works_alone(status: node.StatusAnswer) -> bool:
    """Whether there is nobody whose runs this node could verify: no network, and none that attests anybody."""
    return status.attested is None and (status.net is None or status.net.state == "off")


def today_line(part: node.VerifyingStatus) -> str:
    """What this node did today: its runs, and its verifications with the share of the time that they took."""
    verified = f"{counted(part.today, 'verification')}, {percent(part.share)} of the time" if part.today else ""
    return " · ".join(filter(None, (counted(part.runs_today, "run"), verified)))


def asked_line(part: node.VerifyingStatus) -> str:
    """The share of the time that goes to verification, and why there is none."""
    most = f"up to {percent(part.asked_share)} of the time over 24 hours"
    share = "all of the time" if part.asked_share >= 1 else most
    return " · ".join(filter(None, (share, part.note)))


def waiting_line(waiting: node.WaitingStatus, now_ms: int, *, running: bool = True) -> str:
    """What was measured and is not revealed yet, and what it waits for."""
    came = (
        f": {waiting.verdict}{'' if waiting.value is None else f' {value(waiting.value)}'}" if waiting.verdict else ""
    )
    what = f"{waiting.stage} of {short(waiting.run)} “{waiting.title}” by {person(waiting.participant)}{came}"
    if not running:
        return f"{what} · revealed once the daemon runs: autoresearch up"
    if not waiting.missing or waiting.tells_ms <= now_ms:
        return f"{what} · revealed now"
    others = "1 more verifier has" if waiting.missing == 1 else f"{waiting.missing} more verifiers have"
    return f"{what} · revealed when {others} measured it, or in {duration(waiting.tells_ms - now_ms)}"


def storage_line(storage: node.StorageStatus) -> str:
    """What the blobs take, and how much they may."""
    quota = f" of {size(storage.quota_bytes)} (storage.blobs_mib)" if storage.quota_bytes else ""
    return f"{size(storage.blobs_bytes)}{quota}"


def worker_line(worker: node.WorkerStatus, now_ms: int) -> str:
    """What one worker does."""
    name = f"{worker.name} on {worker.device}"
    if worker.run and worker.run.checked:
        return f"{checking_line(worker.run, now_ms)} · {name}"
    return f"{run_line(worker.run, now_ms)} · {name}" if worker.run else f"{worker.reason} · {name}"


def queued_line(each: node.QueuedRun) -> str:
    """One proposal that waits: its name, what it changes, and what it waits for."""
    parts = [f"{each.name} “{each.title}”", f"parent {short(each.parent)}" if each.parent else ""]
    parts += [f"seed {each.replicate}" if each.replicate else "", f"waits: {each.reason}"]
    return " · ".join(filter(None, parts))


def checking_line(run: node.RunInHand, now_ms: int) -> str:
    """The run that is verified: what is measured, whose run it is, why here."""
    what = f"{run.title} by {person(run.participant)}" if run.participant.short else run.title
    parts = [what, words.STAGE_SENTENCES.get(run.stage, run.stage), run.reason]
    return " · ".join(filter(None, (*parts, duration(now_ms - run.started_ms) if run.started_ms else "")))


def run_line(run: node.RunInHand, now_ms: int) -> str:
    """The run in hand: title, progress, loss, time."""
    parts = [f"“{run.headline or run.title}”", percent(run.fraction)]
    if run.parent:
        parts.insert(1, f"parent {short(run.parent)}")
    if run.task:
        parts.insert(1, run.task)
    if run.loss is not None:
        parts.append(f"step {run.step}, loss {brief(run.loss)}")
    if run.started_ms:
        parts.append(duration(now_ms - run.started_ms))
    if run.left_ms is not None:
        parts.append(f"{largest_unit(run.left_ms)} left")
    return " · ".join(parts)


def task_lines(task: node.TaskStatus) -> list[Line]:
    """The task, and how far the network is."""
    better = "lower is better" if task.direction == "minimize" else "higher is better"
    lines = [("task", f"{task.name}: {task.metric}, {better}")]
    lines.append(("runs", f"{task.runs}, of which {task.failed} failed" if task.failed else f"{task.runs}"))
    lines.append(("best", best_so_far(task)))
    if task.best and task.best.verdict:
        lines.append(("verdict", f"{task.best.state}: {task.best.verdict}"))
    return lines


def best_so_far(task: node.TaskStatus) -> str:
    """The best value between the baseline and the floor."""
    parts = ["nothing measured yet"]
    if task.best is not None:
        parts = [leading_words(task.best)]
        if task.best.state != words.RunState.REPORTED:
            parts.append(task.best.state)
    if task.baseline is not None:
        parts.append(f"baseline {value(task.baseline, task.best.decimals if task.best else None)}")
    if task.floor is not None:
        parts.append(f"floor {value(task.floor)}")
    if task.closed is not None:
        parts.append(f"{percent(task.closed)} of the way")
    return " · ".join(parts)


STEPS: dict[str, str] = {
    words.WorkState.IDLE: BEGIN,
    words.WorkState.PAUSED: "autoresearch node resume",
    words.WorkState.WAITING: "autoresearch node doctor",
}


def next_step(status: node.StatusAnswer) -> str:
    """What to type next."""
    fixes = [condition.fix for condition in status.conditions if condition.result == words.Result.FAILED]
    if fixes:
        return fixes[0].partition(": ")[0] if fixes[0].startswith("autoresearch ") else "autoresearch node doctor"
    if status.state == "stopped":
        return "autoresearch up" if status.records else "autoresearch work, or to watch a few runs: autoresearch demo"
    if status.why in words.ORDER_DONE:
        last = f" {quote(status.past_orders[-1].task)}" if status.past_orders else ""
        return f"autoresearch best, or for more of it: {BEGIN}{last}"
    if status.state == words.WorkState.WORKING and not (status.task and status.task.best):
        return "autoresearch node events --follow shows each step"
    if status.state == words.WorkState.IDLE and status.past_orders:
        return "autoresearch work --report says what the last order brought"
    return STEPS.get(status.state, "autoresearch best, autoresearch top, autoresearch node records")


def _without_worker(status: node.StatusAnswer) -> str:
    """Why no worker is there though the node works."""
    if not status.orders or any(order.verify_share < 1 for order in status.orders):
        return words.WHY_SENTENCES[words.Why.STARTING]
    return (status.verifying.note if status.verifying else "") or "no run is drawn for this node to verify now"


def meanwhile(status: node.StatusAnswer) -> str:
    """What becomes of the wish for a run that is not there yet: how far it is, what keeps it, or what to type."""
    in_hand = next((worker.run for worker in status.workers if worker.run), None)
    if in_hand:
        left = f", {largest_unit(in_hand.left_ms)} left" if in_hand.left_ms is not None else ""
        return f"a run on {in_hand.task or 'the task'} is at {percent(in_hand.fraction)}{left}: autoresearch status"
    if status.state == words.WorkState.IDLE:
        return BEGIN
    reasons = [worker.reason for worker in status.workers] or [_without_worker(status)]
    doing = reasons[0] if status.state == words.WorkState.WORKING else status.reason
    return doing if "autoresearch " in doing else f"{doing}: autoresearch status"


_ASKED = {
    "env": "GymEnvClient({place})",
    "action": "ActionClient({place}, config=…)",
    "inference": "InferenceClient({place})",
    "trainer": "TrainerClient(…, TrainerConfig({port}, 0), …)",
}


def print_service(service: Service) -> None:
    """One service that has begun."""
    rows = [
        ("service", service.name),
        ("kind", service.kind),
        ("component", service.component),
        ("address", f"{service.address}:{service.port}"),
    ]
    print_labelled([*rows, *([("public key", service.public_key)] if service.public_key else [])])


def ask_it(service: Service) -> str:
    """How a Python program on this machine asks it."""
    address, port = service.place
    keys = ", keys=…" if service.public_key else ""
    call = _ASKED[service.kind].format(place=f'"{address}", {port}{keys}', port=port)
    return f"autoresearch.services.{call}"


def print_peers(answer: node.PeersAnswer, *, now_ms: int) -> None:
    """This node's addresses, then the peers of its network: how they stand, what they say, what moved today."""
    print_labelled(("this node", address) for address in answer.addresses)
    peers = [peer for peer in answer.peers if not peer.other_network]
    print_list(peer_columns(now_ms), peers, now_ms=now_ms)
    if others := len(answer.peers) - len(peers):
        say(f"{counted(others, 'connected node')} of other networks left out, which exchange nothing with this one")
