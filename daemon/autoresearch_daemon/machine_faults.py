"""Notices that different programs end for one reason here: then it is taken as this machine's fault."""

from __future__ import annotations

import re

import msgspec

from autoresearch.research import Measurement, Plan
from autoresearch.words import RunStatus

# So many different programs in a row that end for one reason are no coincidence.
SAME_CAUSE = 3
# How a run ends when the machine lacks something.
_SUSPECT = frozenset(
    {RunStatus.CRASHED, RunStatus.OUT_OF_MEMORY, RunStatus.DISK_LIMIT, RunStatus.PROCESS_LIMIT, RunStatus.TIMED_OUT}
)


class MachineFaults:
    """The last cause, and the programs that ended for it. ``suspected``: until the baseline has run here again."""

    def __init__(self) -> None:
        self._cause = ""
        self._programs: set[bytes] = set()

    @property
    def suspected(self) -> bool:
        """Whether the baseline has to run before the next program."""
        return len(self._programs) >= SAME_CAUSE

    def ended(self, plan: Plan, measurement: Measurement) -> Measurement:
        """How a run ended: as it was measured, or as a run that this machine could not do."""
        if measurement.status not in _SUSPECT:
            self.clear()
            return measurement
        cause = f"{measurement.status} {re.sub(r'[0-9]+', '#', measurement.reason)}"
        if cause != self._cause:
            self.clear()
        self._cause = cause
        self._programs.add(plan.source_digest)
        if not self.suspected:
            return measurement
        reason = f"{len(self._programs)} different programs in a row ended so on this machine: {measurement.reason}"
        return msgspec.structs.replace(measurement, status=RunStatus.COULD_NOT_RUN, reason=reason)

    def clear(self) -> None:
        """The machine works: a run ended well, or the baseline took its first step."""
        self._cause = ""
        self._programs.clear()
