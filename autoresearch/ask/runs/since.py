"""What happened on a task from a time on, in numbers and in one sentence; who worked on it when."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.runs.answers import RunRow, SinceAnswer, TimelineAnswer, TimelinePart, TimelineRow
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.rows import rows_of
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.rows import LeaderRow
from autoresearch.log.standing.cache import cached_answer, in_snapshot, roster_of
from autoresearch.log.standing.context import board_hardware, participant_of, trust_context, trusted_authors
from autoresearch.log.standing.credit import Citations, citations
from autoresearch.log.standing.verdicts import decimals_of
from autoresearch.log.tables.filters import Filter
from autoresearch.record.record import DAY_MS
from autoresearch.text import clock, counted, duration, value
from autoresearch.words import HypothesisState, RunMark

# Of so many hypotheses, the newest, it is asked what became of them.
_HYPOTHESES = 200
# So many gains are told, the newest.
_GAINS = 5
_FOR_EVER = 1 << 62


@in_snapshot
def since_answer(
    log: Log, task: FoundTask, *, since_ms: int, now_ms: int, to_ms: int = 0, me: bytes | None = None
) -> SinceAnswer:
    """What happened on a task, by the times that authors state; ``since_ms`` 0 is a day ago, ``to_ms`` 0 is now."""
    since_ms = since_ms or now_ms - DAY_MS
    until_ms = to_ms or _FOR_EVER  # clocks of others may be ahead
    roster = roster_of(log)
    rows = log.listing.between(task.digest, since_ms, to_ms) if to_ms else log.listing.since(task.digest, since_ms)
    marks = {mark: sum(runs for _, which, runs in rows if which == mark) for mark in RunMark}
    settled = [
        cited.state for cited in _hypotheses(log, task, me).values() if since_ms <= cited.runs[0].time <= until_ms
    ]
    led, origin = _led(log, task, until_ms)
    before = [leader for leader in led if leader.time < since_ms]
    sign = log.tasks.sign(task.digest)
    answer = SinceAnswer(
        task=task.name,
        since_ms=since_ms,
        to_ms=to_ms or now_ms,
        runs=sum(runs for _, _, runs in rows),
        participants=len({roster.voter(device, now_ms).root for device, _, _ in rows}),
        confirmed=marks[RunMark.CONFIRMED],
        refuted=marks[RunMark.REFUTED],
        failed=marks[RunMark.FAILED],
        best_before=sign * before[-1].value if before else None,
        best=sign * led[-1].value if led else None,
        origin=origin,
        held=settled.count(HypothesisState.HELD),
        not_held=settled.count(HypothesisState.REFUTED),
    )
    return msgspec.structs.replace(answer, sentence=_sentence(answer, now_ms, decimals_of(log, task.digest)))


@in_snapshot
def gains(log: Log, blobs: BlobStore, task: FoundTask, answer: SinceAnswer, *, me: bytes | None = None) -> list[RunRow]:
    """The last runs that led when they came, within the time of an answer, the newest last."""
    led, _ = _led(log, task, answer.to_ms)
    new = [leader.n for leader in led if leader.time >= answer.since_ms]
    return rows_of(log, blobs, task.digest, me=me).at(new[-_GAINS:])


# A time is cut into so many parts; so many devices are told.
PARTS, DEVICES_MOST = 96, 24


def timeline_answer(log: Log, task: FoundTask, *, last_ms: int = 0) -> TimelineAnswer:
    """Who worked on a task when; ``last_ms``: only so much time up to its last run. Kept until the log changes."""
    return cached_answer(log, "timeline", (task.digest, last_ms), lambda: _timeline(log, task, last_ms))


def _timeline(log: Log, task: FoundTask, last_ms: int) -> TimelineAnswer:
    first, last = log.listing.times(task.digest) or (0, 0)
    since_ms = max(first, last - last_ms + 1) if last_ms else first
    part_ms = (last - since_ms) // PARTS + 1
    parts = defaultdict[bytes, dict[int, list[int]]](dict)
    for device, part, *counts in log.listing.activity(task.digest, since_ms, part_ms):
        # What was verified after the last run belongs to the last part.
        at = min(part, PARTS - 1)
        parts[device][at] = [sum(both) for both in zip(parts[device].get(at, (0, 0, 0)), counts, strict=True)]
    sums = {
        device: [sum(column) for column in zip(*by_part.values(), strict=True)] for device, by_part in parts.items()
    }
    most = sorted(parts, key=lambda device: (-sums[device][0] - sums[device][2], device))
    return TimelineAnswer(
        task=task_status(log, task),
        since_ms=since_ms,
        to_ms=last,
        part_ms=part_ms,
        rows=[
            TimelineRow(
                participant=participant_of(log, device, last),
                device=device.hex(),
                runs=sums[device][0],
                failed=sums[device][1],
                verifications=sums[device][2],
                parts=[
                    TimelinePart(part=at, runs=runs, failed=failed, verifications=verifications)
                    for at, (runs, failed, verifications) in sorted(parts[device].items())
                ],
            )
            for device in most[:DEVICES_MOST]
        ],
        left_out=len(most[DEVICES_MOST:]),
    )


def _hypotheses(log: Log, task: FoundTask, me: bytes | None) -> dict[bytes, Citations]:
    """The hypotheses of trusted authors that runs cite."""
    trust = trust_context(log, me)
    notes = log.texts.newest_notes(
        task.digest, limit=_HYPOTHESES, authors=trusted_authors(trust, me), topic="hypothesis"
    )
    return citations(log, task.digest, [note.id for note in notes], trust, me=me)


def _led(log: Log, task: FoundTask, until_ms: int) -> tuple[list[LeaderRow], str]:
    """The runs that led until a time, by values that are ``verified`` or else ``reported``, and which of these."""
    every = Filter(task=task.digest, board=board_hardware(log, task.digest) or "")
    for sure, origin in (1, "verified"), (0, "reported"):
        if led := [leader for leader in log.listing.leaders(every, sure) if leader.time <= until_ms]:
            return led, origin
    return [], ""


def _sentence(answer: SinceAnswer, now_ms: int, decimals: int | None) -> str:
    """All of it for people."""
    length = answer.to_ms - answer.since_ms
    when = "since yesterday" if length == DAY_MS else f"in the last {duration(length)}"
    if answer.to_ms < now_ms:
        when = f"from {clock(answer.since_ms)} to {clock(answer.to_ms)}"
    if not answer.runs:
        return f"{when}: no run"
    runs = f"{when}: {counted(answer.runs, 'run')} by {counted(answer.participants, 'participant')}"
    numbers = ("confirmed", answer.confirmed), ("refuted", answer.refuted), ("failed", answer.failed)
    parts = [", ".join((runs, *(f"{runs_of} {word}" for word, runs_of in numbers if runs_of)))]
    if answer.best is not None and answer.best != answer.best_before:
        came = "" if answer.best_before is None else f"{value(answer.best_before, decimals)} → "
        parts.append(f"best {came}{value(answer.best, decimals)} {answer.origin}")
    if answer.held or answer.not_held:
        held = f"{counted(answer.held, 'hypothesis', 'hypotheses')} held"
        parts.append(f"{held}, {answer.not_held} did not" if answer.not_held else held)
    return "; ".join(parts)
