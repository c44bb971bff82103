"""What each setting did, as a table."""

from __future__ import annotations

from autoresearch.api import EffectsAnswer
from autoresearch.figures import figure, signed
from autoresearch_cli.rendering.output import is_rich, print_rows, print_table


def print_effects(answer: EffectsAnswer, metric: str) -> None:
    """Settings with the mean change of the metric, its 95 % interval, and in how many pairs they helped."""
    if not is_rich():
        print_rows((e.name, e.pairs, e.better, figure(e.mean), figure(e.low), figure(e.high)) for e in answer.effects)
        return
    rows = [
        (e.name, signed(e.mean), "" if e.low is None else f"{signed(e.low)} .. {signed(e.high)}", e.better, e.pairs)
        for e in answer.effects
    ]
    print_table(("setting", metric, "95 % interval", "helped", "of pairs"), rows, right=(metric, "helped", "of pairs"))
