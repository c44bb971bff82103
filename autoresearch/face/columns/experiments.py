"""The lists of an experiment, and of what the search suggests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autoresearch.ask.acts.varying import InteractionView, LevelView, VariantView
from autoresearch.face.columns.column import CHANGE, COUNT, VALUE, WORDS, Column, Columns, Face
from autoresearch.propose.program.ranges import Value
from autoresearch.text import change_interval, value

if TYPE_CHECKING:  # it loads numpy, which most of an experiment goes without
    from autoresearch.ask.acts.suggesting import SuggestionView

PROGRAMS = Face.PIPE


def setting_text(value: Value) -> str:
    """A value as a person types it."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def variant_columns(settings: Sequence[str], metric: str) -> Columns[VariantView]:
    """The programs of an experiment: a column for each setting."""

    def setting(name: str) -> Column[VariantView]:
        return Column(name, lambda view: setting_text(view.settings[name]), WORDS)

    return (
        *map(setting, settings),
        Column("value", lambda view: view.value, VALUE, heading=metric),
        Column("runs", lambda view: view.runs, COUNT),
        Column("failed", lambda view: ", ".join(view.failed), WORDS),
        Column("to go", lambda view: view.to_go, COUNT),
        Column("run", lambda view: view.run, WORDS),
    )


def level_columns(metric: str) -> Columns[LevelView]:
    """What each value of each setting did."""
    return (
        Column("setting", lambda view: f"{view.setting} {setting_text(view.value)}", WORDS),
        Column("mean", lambda view: view.mean, VALUE, heading=metric),
        Column("runs", lambda view: view.runs, COUNT),
        Column(
            "change", lambda view: view.change, CHANGE,
            display=lambda view, _: change_interval(view.change, view.margin) if view.change is not None else "",
        ),
        Column("margin", lambda view: view.margin, VALUE, faces=PROGRAMS),
    )  # fmt: skip


INTERACTIONS: Columns[InteractionView] = (
    Column("together", lambda view: f"{view.first} and {view.second}", WORDS),
    Column(
        "more than the sum", lambda view: view.amount, CHANGE,
        display=lambda view, _: change_interval(view.amount, view.margin),
    ),
    Column("margin", lambda view: view.margin, VALUE, faces=PROGRAMS),
)  # fmt: skip


def suggestion_columns(metric: str) -> Columns[SuggestionView]:
    """Changes that the search would try, with the value that it expects."""
    return (
        Column("change", _changes, WORDS),
        Column("expected", lambda view: view.expected, VALUE, heading=metric),
        Column(
            "interval", lambda view: view.low, VALUE, heading="95 %",
            display=lambda view, _: "" if view.low is None else f"{value(view.low)} to {value(view.high)}",
        ),
        Column("high", lambda view: view.high, VALUE, faces=PROGRAMS),
        Column("parent", lambda view: view.parent, WORDS),
    )  # fmt: skip


def _changes(view: SuggestionView) -> str:
    """Every setting with its value before and after."""
    parts = [f"{name} {setting_text(old)} → {setting_text(new)}" for name, (old, new) in view.change.items()]
    return ", ".join(parts) or view.title
