"""The tasks that ship are attacked as anybody's are: the quick half, with a small part of their budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.run.attack import campaign, modelling
from autoresearch.run.bench import Bench
from autoresearch.task.loading import shipped_tasks
from tests.walls import best_level

TASKS = {task.name: task for task in shipped_tasks() if not task.limits.card}
# Its harness measures in the program's process, as its task.toml says: one hole, and no other.
IN_PROCESS = {"moons": ["own_number"]}


# Its numbers are stated and its files changed as grammar's are: what is its own is how its referee asks a model.
OWN = {"gpt-small-smoke": modelling.ATTACKS}


@pytest.mark.slow  # one attack of each kind: a run that a referee measures takes several processes with torch
@pytest.mark.parametrize("name", TASKS)
def test_a_shipped_task_holds(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    quick = [attack for attack in OWN.get(name, campaign.ATTACKS) if attack.quick]
    monkeypatch.setattr(campaign, "ATTACKS", list({attack.hole: attack for attack in reversed(quick)}.values()))

    report = campaign.attack_task(TASKS[name], bench, campaign.Orders(seconds=900, quick=True))

    assert [hole.hole for hole in report.holes] == IN_PROCESS.get(name, []), report.holes
    assert report.tried >= 4
