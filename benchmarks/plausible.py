"""Which figures are possible at all: finite, not negative, shares of at most 1. Never whether they are good. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

# By the beginning of a benchmark's and a figure's name: the least and the most that is possible, where that is not 0
# and infinity. The longest beginning holds.
BOUNDS: dict[str, tuple[float, float]] = {
    "attestation/attestations": (1, math.inf),
    "cards/gain_": (-8, 8),  # bits a byte
    "cards/needed_": (0, 1),
    "catchup/records_per_second": (1, math.inf),
    "collusion/": (0, 1),
    "contamination/": (-math.inf, math.inf),  # gaps and gains have a sign
    "gossip/delivered": (0.01, 1),
    "hostile/delivered": (0, 1),
    "ingest/records_per_cpu_second": (1, math.inf),
    "null/confirmed": (0, 100),
    "null/confirmed_share": (0, 1),
    "null/better_by_own_word": (0, 100),
    "null/with_liar": (0, 1),
    "overhead/start_ms": (-math.inf, math.inf),  # a difference of two small times
    "peers_idle/peers": (1, 10),
    "proposer/": (0.1, 8),  # bits a byte; 8 where the best program failed
    "queries/rows": (1, math.inf),
    "search/rank": (1, 5),
    "search/regret": (0, 1),
    "search/failed": (0, 1),
    "services/alive_": (0, 1),
    "services/clean_stop_rate": (0, 1),
    "soak/descriptors_per_hour": (-math.inf, math.inf),  # slopes have a sign
    "soak/memory_per_hour": (-math.inf, math.inf),
    "soak/lost": (0, 0),
    "soak/stuck": (0, 0),
    "soak/unclean_ends": (0, 0),
    "soak/left_over": (0, 0),
    "soak/out_of_memory": (1, 1),
    **{f"strangers/{kind} ": (0, 1) for kind in ("texts", "named", "directions", "folders")},
    **{f"unseen/{end}rank": (1, 8) for end in ("", "low_", "high_")},
    **{f"unseen/{end}regret": (0, 1) for end in ("", "low_", "high_")},
    "unseen/failed": (0, 1),
    "sharing/": (-8, 8),  # bits a byte, and differences of them
    "sharing/duplicates_percent": (0, 100),
    "scale/exponent": (-math.inf, math.inf),
}


def impossible(name: str, figures: Mapping[str, float]) -> list[str]:
    """What is wrong with the figures of a benchmark, a sentence each; an empty list where all are possible."""
    if not figures:
        return ["it measured nothing"]
    return [said for figure, value in figures.items() if (said := _fault(name, figure, value))]


def _fault(name: str, figure: str, value: float) -> str:
    if not math.isfinite(value):
        return f"{figure} = {value} is no number"
    fitting = [begin for begin in BOUNDS if f"{name}/{figure}".startswith(begin)]
    low, high = BOUNDS[max(fitting, key=len)] if fitting else (0.0, math.inf)
    return "" if low <= value <= high else f"{figure} = {value:.4g} is not within {low:g} and {high:g}"
