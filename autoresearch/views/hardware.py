"""Wall-clock tasks: the same time on other hardware is another experiment, and its number another number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from autoresearch.log import Log, SubjectRow
from autoresearch.records import Run
from autoresearch.views.copies import same_models
from autoresearch.views.memory import memory_of


def is_clocked(log: Log, task: bytes) -> bool:
    """Whether a task's budget is time."""
    rules = log.rules(task)
    return rules is not None and rules.clocked


def board_hardware(log: Log, task: bytes) -> str | None:
    """The hardware whose numbers the board of a wall-clock task compares; None where all may be compared.

    That on which most attested participants work; then that with the most subjects, then the first by name.
    """
    if not is_clocked(log, task):
        return None
    memory = memory_of(log)
    name = f"hardware {task.hex()}"
    if name not in memory.known:
        memory.known[name] = _most_used(log, task)
    return memory.known[name]  # type: ignore[return-value]


def comparable(log: Log, rows: Iterable[SubjectRow]) -> list[SubjectRow]:
    """The subjects of a task that are on its board: no copies of others' models, and one kind of hardware."""
    copies = same_models(log)
    kept = [row for row in rows if row.first not in copies]
    hardware = board_hardware(log, kept[0].task) if kept else None
    return kept if hardware is None else [row for row in kept if row.device == hardware]


def is_same_hardware(run: Run, device: str) -> bool:
    """Whether a run and a verification's device are of one kind."""
    return bool(run.device) and run.device == device


def _most_used(log: Log, task: bytes) -> str:
    roster, now_ms = memory_of(log).roster, log.newest_ms()
    voices: defaultdict[str, set[bytes]] = defaultdict(set)
    subjects: defaultdict[str, int] = defaultdict(int)
    for device, author, count in log.hardware(task):
        voice = roster.voice(author, now_ms)
        voices[device] |= {voice.voice} if voice.attested else set()
        subjects[device] += count
    return min(subjects, key=lambda device: (-len(voices[device]), -subjects[device], device), default="")
