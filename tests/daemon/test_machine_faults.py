"""One cause for different programs in a row is taken as the machine's until the baseline runs again."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from autoresearch_daemon.events import SAME_CAUSE, MachineFaults

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.experiment import Plan, abandoned
from autoresearch.words import RunStatus

NO_PROCESS = "it started more than 64 processes"


def plan(number: int) -> Plan:
    digest = hashlib.sha256(bytes([number])).digest()
    return Plan(task=bytes(32), source="", source_digest=digest, replicate=0, seed=1, budget=1.0)


def ending(status: RunStatus, reason: str = "") -> RunOutcome:
    return msgspec.structs.replace(abandoned(reason), status=status)


def statuses(faults: MachineFaults, *endings: tuple[int, RunStatus, str]) -> list[str]:
    return [faults.ended(plan(number), ending(status, reason)).status for number, status, reason in endings]


def test_the_third_program_that_ends_for_one_reason_is_no_evidence() -> None:
    faults = MachineFaults()
    outcomes = [faults.ended(plan(n), ending(RunStatus.CRASHED, f"error at line {n}")) for n in range(SAME_CAUSE + 1)]
    assert [each.status for each in outcomes] == ["crashed", "crashed", "could_not_run", "could_not_run"]
    assert "3 different programs in a row" in outcomes[2].reason
    assert "error at line 2" in outcomes[2].reason
    assert faults.suspected
    faults.clear()
    assert not faults.suspected
    assert faults.ended(plan(9), ending(RunStatus.CRASHED, "error at line 9")).status == RunStatus.CRASHED


@pytest.mark.parametrize(
    "between",
    [(7, RunStatus.OK, ""), (7, RunStatus.DIVERGED, ""), (7, RunStatus.CRASHED, "something else")],
    ids=["a good run", "an idea's own fault", "another cause"],
)
def test_what_comes_between_begins_the_count_anew(between: tuple[int, RunStatus, str]) -> None:
    faults, same = MachineFaults(), (RunStatus.PROCESS_LIMIT, NO_PROCESS)
    outcomes = statuses(faults, (1, *same), (2, *same), between, (3, *same), (4, *same))
    assert "could_not_run" not in outcomes
    assert not faults.suspected


def test_one_program_that_always_fails_is_its_own_fault() -> None:
    faults = MachineFaults()
    assert set(statuses(faults, *[(1, RunStatus.CRASHED, "bad idea")] * 5)) == {"crashed"}
