"""An experiment as text."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.face.columns.experiments import INTERACTIONS, level_columns, variant_columns
from autoresearch.text import counted
from autoresearch_cli.rendering.output import is_rich, print_list, print_text


def print_experiment(answer: VaryAnswer, settings: Sequence[str], metric: str) -> None:
    """The programs of an experiment; for people also what each value did, and which settings depend on each other."""
    print_list(variant_columns(settings, metric), answer.variants)
    if not is_rich():
        return
    if any(level.margin is not None for level in answer.levels):
        print_text("\nwhat each value did, against the first one:")
        print_list(level_columns(metric), answer.levels)
    if answer.interactions:
        print_text("\nwhat two settings do together beyond the sum of both:")
        print_list(INTERACTIONS, answer.interactions)
    if answer.left_out:
        print_text(f"\nthe program itself forbids {counted(answer.left_out, 'combination')}")
