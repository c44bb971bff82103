"""Reports: what one participant measured of one run, as far as the rules need it. Pure."""

from __future__ import annotations

from typing import NamedTuple

EVALUATE, REPLICATE = "evaluate", "replicate"
# The rounds of a stage: two evaluations (the second after a dispute), one for pairs. A further round would give a
# verifier other seeds to choose from, and a voter a second vote.
ROUNDS = {EVALUATE: 2, REPLICATE: 1}


class Report(NamedTuple):
    """One verification: an evaluation that passed or failed, or pairs of runs.

    ``voter`` is the verifier's voter, ``attested`` whether it counts. ``order`` sorts reports: time and id.
    ``commitment`` is the record that fixed it before the reveal, ``links`` are all links of the reveal. Without
    ``measured`` there is no value, and the run did not pass: an evaluation ended in an error, or the run failed in the
    pairs. ``improvements`` are the differences of the pairs, positive where the run is better than its parent.
    ``values`` are the run's own values in the pairs, or the one of the evaluation, ``parents`` those of its parent in
    the pairs; smaller is better.
    """

    voter: bytes
    attested: bool
    order: tuple[int, bytes]
    stage: str
    round: int = 0
    passed: bool = True
    improvements: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    commitment: bytes = b""
    links: tuple[bytes, ...] = ()
    measured: bool = True
    parents: tuple[float, ...] = ()
