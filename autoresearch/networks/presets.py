"""The usual kinds of networks: the constants of each, and what they mean for its participants. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

PresetName = Literal["lab", "friends", "open"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Constants that are not the usual ones, who counts, and from how many participants on a run can be confirmed."""

    who_counts: str
    confirmed_from: int
    founded: bool  # its founder decides who counts
    constants: dict[str, int] = field(default_factory=dict)


PRESETS: dict[PresetName, Preset] = {
    "lab": Preset(
        who_counts="machines of one team that trust each other; you count, and so does whoever joins with your invite",
        confirmed_from=3,
        founded=True,
        constants={
            "verify_quorum": 2,
            "verify_least": 3,
            "verify_age_ms": 0,
            "verify_patience_ms": 60_000,
            "verify_audit_permille": 0,
        },
    ),
    "friends": Preset(
        who_counts="people who know each other; you count, and so does whoever joins with your invite",
        confirmed_from=4,
        founded=True,
        constants={"verify_age_ms": 0, "verify_patience_ms": 600_000},
    ),
    "open": Preset(
        who_counts="whoever proves control of a mailbox to attestors that the network names",
        confirmed_from=4,
        founded=False,
    ),
}
