"""What one participant measured of one run, as far as the rules need it. Pure."""

from __future__ import annotations

from typing import NamedTuple

EVALUATE, REPLICATE = "evaluate", "replicate"
# Nobody is asked more often: to evaluate, and once more after a dispute; for pairs once. Each further round would be
# other seeds to choose from, and another word of one voice.
ROUNDS = {EVALUATE: 2, REPLICATE: 1}


class Report(NamedTuple):
    """One verification, by whom and of what: an evaluation that passed or failed, or pairs of runs.

    ``voice`` is whose word it is, ``attested`` whether that counts, ``order`` sorts reports: time and id.
    ``commitment`` is the record that fixed it before it was revealed, ``links`` are all that the reveal links.
    ``improvements`` are the differences of the pairs, positive where the run is better than its parent, ``values`` the
    run's own values in them, the smaller the better.
    """

    voice: bytes
    attested: bool
    order: tuple[int, bytes]
    stage: str
    round: int = 0
    passed: bool = True
    improvements: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    commitment: bytes = b""
    links: tuple[bytes, ...] = ()
