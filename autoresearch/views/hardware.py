"""Wall-clock tasks: the same time on other hardware is another experiment, and its number another number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from autoresearch.log import Log, SubjectRow
from autoresearch.records import Run
from autoresearch.views.copies import same_models
from autoresearch.views.memory import memory_of, remembered


def is_clocked(log: Log, task: bytes) -> bool:
    """Whether a task's budget is time."""
    rules = log.rules(task)
    return rules is not None and rules.clocked


def board_hardware(log: Log, task: bytes) -> str | None:
    """The hardware whose numbers the board of a wall-clock task compares; None where all may be compared.

    That on which most attested participants work; then that with the most of their runs, where nobody
    is named subjects, then the first by name.
    """
    if not is_clocked(log, task):
        return None
    return remembered(log, f"hardware {task.hex()}", lambda: _most_used(log, task))


def comparing(log: Log, task: bytes) -> Callable[[SubjectRow], bool]:
    """What tells which subjects of a task are on its board: no copies of others' models, and one kind of hardware."""
    copies, hardware = same_models(log), board_hardware(log, task)
    return lambda row: row.first not in copies and hardware in (None, row.device)


def is_same_hardware(run: Run, device: str) -> bool:
    """Whether a run and a verification's device are of one kind."""
    return bool(run.device) and run.device == device


def _most_used(log: Log, task: bytes) -> str:
    roster = memory_of(log).roster
    voices: defaultdict[str, set[bytes]] = defaultdict(set)
    subjects: Counter[str] = Counter()
    # Where anybody is named, it is for them to say, at the time of their own runs: others' move it neither way.
    for device, author, count, time_ms in log.hardware_of(task, roster.keys):
        voice = roster.voice(author, time_ms)
        voices[device] |= {voice.voice} if voice.attested else set()
        subjects[device] += count
    if not subjects:
        for device, _, count in log.hardware(task):
            subjects[device] += count
    return min(subjects, key=lambda device: (-len(voices[device]), -subjects[device], device), default="")
