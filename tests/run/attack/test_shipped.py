"""The tasks that ship are attacked as anybody's are: the quick half, with less text, model and budget."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from autoresearch.run.attack import campaign
from autoresearch.run.bench import Bench
from autoresearch.task.loading import shipped_task, shipped_tasks
from tests.conftest import Once
from tests.run.refereeing.small_task import small_task
from tests.walls import best_level

TASKS = {task.name: task for task in shipped_tasks() if not task.limits.card}
# Its harness measures in the program's process, as its task.toml says: one hole, and no other.
IN_PROCESS = {"moons": ["own_number"]}


# Its numbers are stated and its files changed as grammar's are: what is its own is how its referee asks a model. Here
# that is a small one, as a participant may make it.
OWN = {"gpt-small-smoke": ("looks-ahead", "leaves-no-model")}
# A look ahead is the other's; what does not add up is refused by its numbers.
LEFT_OUT = {"grammar": ("looks-ahead", "is-always-sure")}


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_shipped_task_holds(tmp_path: Path, name: str, once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    bench = Bench(best_level(), 1, "cpu", once("shipped-cache", lambda _: None), tmp_path / "scratch")
    attacks = [attack for attack in campaign.ATTACKS if attack.name in OWN.get(name, (attack.name,))]
    attacks = [attack for attack in attacks if attack.name not in LEFT_OUT.get(name, ())]
    monkeypatch.setattr(campaign, "ATTACKS", attacks)

    task = small_task() if TASKS[name] == shipped_task() else TASKS[name]
    if name in OWN:
        baseline = task.baseline.replace(b"DEPTH = 6 ", b"DEPTH = 2 ").replace(b"WIDTH = 384 ", b"WIDTH = 192 ")
        task = msgspec.structs.replace(task, baseline=baseline)

    # With more time than that a quick machine would train the baseline of grammar for its whole budget: half a minute.
    report = campaign.attack_task(task, bench, campaign.Orders(seconds=600, quick=True))

    assert [hole.hole for hole in report.holes] == IN_PROCESS.get(name, []), report.holes
    assert report.tried >= (len(OWN[name]) if name in OWN else 8)
    assert task.evaluation is None or task.metric.floor < report.baseline < 7
