"""Groups of runs as pictures: the values of each group on one axis, and two settings against each other. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from autoresearch.ask.runs.answers import GroupsAnswer, GroupView
from autoresearch.face.columns.column import Columns
from autoresearch.face.columns.runs import group_columns
from autoresearch.face.pages.chart import Scale, axis_over
from autoresearch.text import sign_of

# A median of fewer runs has no colour, and of fewer such cells there is no picture.
LEAST_RUNS, LEAST_CELLS = 3, 4
# So many colours tell medians apart.
SHADES = 5


class GroupPicture(NamedTuple):
    """Groups by one setting: their list, and the axis of their medians and middle halves."""

    answer: GroupsAnswer
    columns: Columns[GroupView]
    axis: Scale


def group_picture(answer: GroupsAnswer) -> GroupPicture:
    """Groups by one setting as a table whose rows have one axis."""
    ends = (end for group in answer.groups for end in (group.low, group.median, group.high) if end is not None)
    return GroupPicture(answer, group_columns(answer), axis_over(ends))


class Contour(NamedTuple):
    """Groups by two settings: names ``across`` and ``down``, and by these two the group and its shade.

    Shades go from 1 to 5, the better half of the medians has the stronger ones; 0: too few runs. ``best`` and ``worst``
    are the groups with the best and the worst median; ``best`` is None where there are too few to compare.
    """

    answer: GroupsAnswer
    across: Sequence[str]
    down: Sequence[str]
    cells: Mapping[tuple[str, str], tuple[GroupView, int]]
    best: GroupView | None
    worst: GroupView | None
    shaded: int


def contour(answer: GroupsAnswer) -> Contour:
    """Two settings against each other."""
    sign, (across, down) = sign_of(answer.task.direction), answer.values

    def median(group: GroupView) -> float:
        return sign * (group.median or 0.0)

    shaded = [g for g in answer.groups if g.median is not None and g.runs - g.failed >= LEAST_RUNS]
    medians = sorted(map(median, shaded))
    cells = {
        (group.settings[0], group.settings[1]): (
            group,
            SHADES - SHADES * (bisect_right(medians, median(group)) - 1) // len(medians) if group in shaded else 0,
        )
        for group in answer.groups
    }
    is_told = len(shaded) >= LEAST_CELLS and len(across) > 1 and len(down) > 1
    best, worst = (min(shaded, key=median), max(shaded, key=median)) if is_told else (None, None)
    return Contour(answer, across, down, cells, best, worst, len(shaded))
