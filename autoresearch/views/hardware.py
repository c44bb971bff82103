"""Wall-clock tasks: selects the hardware of the leaderboard, since values on other hardware differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from autoresearch.log import Log, ProgramRow
from autoresearch.records import Run
from autoresearch.views.cache import cache_of, cached
from autoresearch.views.copies import same_models


def is_clocked(log: Log, task: bytes) -> bool:
    """Whether a task's budget is time."""
    rules = log.tasks.rules(task)
    return rules is not None and rules.clocked


def board_hardware(log: Log, task: bytes) -> str | None:
    """The hardware whose numbers the board of a wall-clock task compares; None where all may be compared.

    The hardware on which most attested participants work; of equal ones the one with the most of their programs, then
    the first by name. Where trust names nobody, the programs of all count.
    """
    if not is_clocked(log, task):
        return None
    return cached(log, f"hardware {task.hex()}", lambda: _most_used(log, task), by=("run",))


def comparing(log: Log, task: bytes) -> Callable[[ProgramRow], bool]:
    """A predicate: whether a program is on its task's leaderboard. No copies of checkpoints, one kind of hardware."""
    copies, hardware = same_models(log), board_hardware(log, task)
    return lambda row: row.first not in copies and hardware in (None, row.device)


def is_same_hardware(run: Run, device: str) -> bool:
    """Whether a run and a verification's device are of one kind."""
    return bool(run.device) and run.device == device


def _most_used(log: Log, task: bytes) -> str:
    roster = cache_of(log).roster
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
