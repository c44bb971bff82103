"""What the templates of a run, a lineage and the board take, from the answers of the API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoresearch.api import (
    CreditAnswer,
    DiffAnswer,
    EffectsAnswer,
    PathAnswer,
    ProgramView,
    RunContextAnswer,
    RunRow,
    ShowAnswer,
    TaskStatus,
    TopAnswer,
    VotersAnswer,
)
from autoresearch.direction import MAXIMIZE
from autoresearch.pages.bare_rows import bare_row
from autoresearch.pages.boards import by_credit, confirmed_board, improvement, verifications
from autoresearch.pages.changed_lines import changed_program
from autoresearch.pages.curves import curve_data
from autoresearch.pages.forest import forest, refuting, refuting_value
from autoresearch.pages.waterfall import waterfall
from autoresearch.words import BoardSection, RunState

# The metric of the tasks of environments: what their programs report while they train are rewards.
_REWARD = "mean_reward"


def run_content(
    shown: ShowAnswer,
    *,
    context: RunContextAnswer | None,
    effects: EffectsAnswer | None,
    parent: ShowAnswer | None,
    task: TaskStatus | None,
    diff: DiffAnswer | None = None,
    me: str = "",
) -> dict[str, object]:
    """The page of a run. ``context`` is None where it was withdrawn, ``me`` the key of the participant who looks.

    ``diff`` is the difference to its parent; None where it comes later, or is not here.
    """
    run, verification = shown.run, shown.verification
    assert run is not None  # a record of another kind has no such page
    assert verification is not None
    return {
        "shown": shown,
        "row": context.row if context else bare_row(run, own=run.participant.key == me),
        "parent": context.parent if context else None,
        "context": context,
        "picture": forest(run, verification, noise=task.noise if task else 0.0),
        "refuting": refuting(run, verification),
        "refuted_by": refuting_value(run, verification),
        "effects": {one.name: one for one in effects.effects} if effects else None,
        "program": changed_program(diff.diff) if diff else None,
        "curve": curve_data(
            run.curve,
            parent.run.curve if parent and parent.run else (),
            rewards=run.mode != "experiment" or (task is not None and task.metric == _REWARD),
        ),
        "closed": _closed(task, run.value if verification.value is None else verification.value),
    }


def lineage_content(path: PathAnswer) -> dict[str, object]:
    """The steps from the baseline to a run."""
    floor, maximize = path.task.floor, path.task.direction == MAXIMIZE
    way = waterfall(path.steps, noise=path.task.noise, floor=floor, maximize=maximize)
    return {"of": path.steps[-1].row.id, "way": way, "floor": floor, "maximize": maximize, "left_out": path.left_out}


def board_content(
    top: TopAnswer,
    rows: Mapping[str, RunRow],
    credit: CreditAnswer,
    voters: VotersAnswer,
    *,
    me: str = "",
    devices: Sequence[str] = (),
    hardware: str = "",
) -> dict[str, object]:
    """The leaderboard of a task. ``rows`` are runs of it by id, ``me`` is the key of the participant who looks.

    ``devices`` are the kinds of hardware to choose from, ``hardware`` the one that is shown; empty: what is compared.
    """
    sections, task = board_sections(top.programs), top.task.digest
    return {
        "top": top,
        "board": confirmed_board(sections[BoardSection.CONFIRMED], rows, maximize=top.task.direction == MAXIMIZE),
        "rows": rows,
        "credit": [(one, improvement(one, task), verifications(one)) for one in by_credit(credit.participants, task)],
        "open": sections[BoardSection.OPEN],
        "failed": sections[BoardSection.FAILED],
        "unattested": sections[BoardSection.UNATTESTED],
        "voters": voters,
        "me": me,
        "devices": devices,
        "hardware": hardware,
    }


def board_sections(programs: Sequence[ProgramView]) -> dict[BoardSection, list[ProgramView]]:
    """Programs by section of the board; where trust names nobody by their state."""
    found: dict[BoardSection, list[ProgramView]] = {section: [] for section in BoardSection}
    for program in programs:
        usual = BoardSection.OPEN if program.state == RunState.REPORTED else BoardSection.FAILED
        found[BoardSection(program.section) if program.section else usual].append(program)
    return found


def _closed(task: TaskStatus | None, value: float | None) -> float | None:
    """The share of the way from the baseline to the floor; None where the task states no floor."""
    if task is None or task.baseline is None or task.floor is None or value is None or task.baseline == task.floor:
        return None
    return (task.baseline - value) / (task.baseline - task.floor)
