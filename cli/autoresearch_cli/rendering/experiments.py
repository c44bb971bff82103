"""An experiment, and what the search suggests, as text."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.face.columns import experiments
from autoresearch.text import counted
from autoresearch_cli.rendering.output import is_rich, print_line, print_list, say

if TYPE_CHECKING:
    from autoresearch.ask.acts.suggesting import SuggestAnswer


def print_experiment(answer: VaryAnswer, settings: Sequence[str], metric: str) -> None:
    """The programs of an experiment; for people also what each value did, and which settings depend on each other."""
    print_list(experiments.variant_columns(settings, metric), answer.variants)
    if not is_rich():
        return
    if any(level.margin is not None for level in answer.levels):
        print_line("what each value did, against the first one:", gap=True)
        print_list(experiments.level_columns(metric), answer.levels)
    if answer.interactions:
        print_line("what two settings do together beyond the sum of both:", gap=True)
        print_list(experiments.INTERACTIONS, answer.interactions)
    if answer.left_out:
        print_line(f"the program itself forbids {counted(answer.left_out, 'combination')}", gap=True)


def print_suggestions(answer: SuggestAnswer, metric: str, folder: str) -> None:
    """What the search would try, what it knows too little for, and how a change of the task's folder is run."""
    print_list(experiments.suggestion_columns(metric), answer.suggestions)
    if all(suggestion.expected is None for suggestion in answer.suggestions):
        say("the search knows too few runs to expect a value")
    first = answer.suggestions[0]
    sets = " ".join(f"--set {name}={experiments.setting_text(new)}" for name, (_, new) in first.change.items())
    place = quote(folder)
    checkout = f"autoresearch run checkout {place} --run {first.parent} && " if first.parent else ""
    say(f"→ {checkout}autoresearch run vary {place} {sets}" if sets else f"→ autoresearch work {place} --runs 1")
