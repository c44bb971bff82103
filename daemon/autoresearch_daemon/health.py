"""What follows from how a node is: which work is forbidden, what people are told of, what is tried again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from autoresearch.ask.node import Check, MachineStatus
from autoresearch.words import BLOCKING_PARTS, Result
from autoresearch_daemon.service.effects import Happening, TellPeople
from autoresearch_daemon.service.inputs import Blocked


def condition_changes(before: Sequence[Check], now: Sequence[Check]) -> list[Happening]:
    """Begin no runs while a condition forbids it, and tell which conditions came and which went."""
    failures = {check.name: check.sentence for check in now if check.result == Result.FAILED}
    earlier = {(check.name, check.result) for check in before}
    happenings: list[Happening] = [Blocked(why, failures.get(part)) for part, why in BLOCKING_PARTS.items()]
    happenings += [
        TellPeople("condition", f"{check.name}: {check.sentence}", msgspec.to_builtins(check))
        for check in {(check.name, check.result): check for check in now}.values()
        if (check.name, check.result) not in earlier
    ]
    happenings += [
        TellPeople("condition", f"{name}: mended", {"name": name, "result": Result.OK.value})
        for name in sorted({check.name for check in before} - {check.name for check in now})
    ]
    return happenings


def machine_signs(machine: MachineStatus | None, stamps: Sequence[object]) -> tuple[object, ...]:
    """What differs when more may be on this machine than before: files by their stamps, free memory in GiB, cards."""
    if machine is None:
        return tuple(stamps)
    return (*stamps, machine.memory_total_bytes - machine.memory_bytes >> 30, len(machine.cards))
