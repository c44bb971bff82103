"""A program that spoils itself in any world but the task's own: what it sees of a world, and what its pairs say."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import REPLICATE
from autoresearch.log.standing.verification import judgement
from autoresearch.record.kinds import Verification
from autoresearch.run.bench import Bench, job_limits, task_data
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.run.texts import World, drawn_world
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.words import RunState
from tests.cli.programs import FIT, evaluated_task
from tests.conftest import Once
from tests.log.standing.village import ANN, BEN, CEM, EVE, Village
from tests.run.checks import carried_out, check_of
from tests.run.refereeing.conftest import BUDGET_SHARE, Trained, trained, with_known_cost
from tests.run.refereeing.programs import edited
from tests.run.refereeing.small_task import TRAIN, small_task
from tests.run.sandbox.conftest import level
from tests.walls import best_level

__all__ = ["level", "trained"]  # the fixtures

# All that a program can ask the system about its data, apart from their content and what is another one each time.
LOOKING = """
import json, os, re, subprocess, sys
from datetime import UTC, datetime
folder = os.environ["AUTORESEARCH_DATA"]
named = [(folder, folder), *((name, os.path.join(folder, name)) for name in os.listdir(folder))]
facts = {"path": folder, "statfs": os.statvfs(folder)[0]}
for name, path in named:
    seen = os.stat(path)
    facts[name] = [seen.st_size, seen.st_mode, seen.st_nlink, seen.st_uid, seen.st_gid, seen.st_blocks, seen.st_blksize]
    facts[name] += [os.listxattr(path), os.path.realpath(path), os.access(path, os.W_OK)]
    facts[f"times of {name}"] = [seen.st_mtime, seen.st_ctime, seen.st_atime]
    born = subprocess.run(["stat", "-c", "%w", path], capture_output=True, text=True, env={"TZ": "UTC"}).stdout.strip()
    if born != "-":  # as 2026-11-24 09:07:27.123456789 +0000
        born = datetime.fromisoformat(born[:26]).replace(tzinfo=UTC).timestamp()
        facts[f"times of {name}"].append(born)
try:
    mounts = open("/proc/self/mountinfo").readlines()
except OSError:  # below bubblewrap
    mounts = []
facts["mount"] = [
    re.sub(r"^\\d+ \\d+ |(master|shared):\\d+ ", "", line) for line in mounts if " /data " in line or folder in line
]
print(json.dumps(facts))
sys.exit(3)
"""


@pytest.fixture
def bench(tmp_path: Path, once: Once) -> Bench:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    (tmp_path / "scratch").mkdir(mode=0o755)
    return Bench(best_level(), 1, "cpu", once("purse-cache", lambda _: None), tmp_path / "scratch")


def facts(task: Task, bench: Bench, world: World | None) -> dict[str, object]:
    """What the program sees, the random name of a folder put aside; its files are as old as the run."""
    began = time.time()
    plan, limits = plan_as_it_stands(task, LOOKING), job_limits(task, bench.ceiling)
    outcome = Experiment(task, plan, bench, world).train(limits)
    seen = json.loads(re.sub(r"autoresearch-scratch-\w+", "RANDOM", outcome.log.decode()))
    times = {name: seen.pop(name) for name in list(seen) if name.startswith("times of")}
    assert len(times) == len(task.data)  # the folder, and all files but the hidden one
    for name, stamps in times.items():
        assert min(stamps) > began - 0.1, name  # clocks of file systems tick every hundredth of a second
    return seen


@pytest.mark.slow
def test_nothing_but_the_content_tells_a_drawn_world_from_the_task_s_own(bench: Bench, level: Level) -> None:
    task = small_task()
    bench = Bench(level, 1, "cpu", bench.data_cache, bench.scratch)
    assert task_data(task, bench) is not None
    world = drawn_world(task, 7, bench)
    assert world is not None

    assert facts(task, bench, None) == facts(task, bench, world)


@pytest.mark.parametrize(
    ("beside", "state", "compared"),
    [
        ((), RunState.CONFIRMED, 2),
        ((1.2, 1.21), RunState.CONFIRMED, 2),
        ((1.4, 1.3), RunState.CONFIRMED, 2),
        ((0.9, 0.91), RunState.PROVISIONAL, 0),
        ((0.9,), RunState.PROVISIONAL, 0),  # these are no two pairs, and count for nothing
    ],
)
def test_pairs_count_where_the_parent_is_no_worse_than_the_baseline(
    tmp_path: Path, beside: tuple[float, ...], state: RunState, compared: int
) -> None:
    village = Village.at(tmp_path)
    run = village.run(0.9, "child", by=ANN)
    village.evaluate(run, 0.9, BEN, CEM, EVE)
    village.replicate(run, 1.2, 0.9, BEN, CEM, beside=beside)

    standing = judgement(village.log, run.id)
    assert (standing.state, standing.evidence.paired) == (state, compared)
    village.log.close()


def spoiled_elsewhere(task: Task, bench: Bench) -> str:
    """A program that learns less where the training text is not the task's."""
    data = task_data(task, bench)
    assert data is not None
    data_digest = hashlib.sha256((data / "train.bin").read_bytes()).hexdigest()
    digest = "__import__('hashlib').sha256(bytes(budget.data.flatten().tolist())).hexdigest()"
    return edited(
        (
            "    budget = prepare.Budget()\n",
            f"    budget = prepare.Budget()\n    if {digest} != {data_digest!r}:\n"
            "        for g in groups:\n            g['lr0'] = g['lr'] / 100\n",
        ),
        train=TRAIN,
    )


@pytest.mark.slow
def test_a_parent_that_is_bad_in_drawn_worlds_confirms_no_child(trained: Trained, bench: Bench, tmp_path: Path) -> None:
    task, bench = trained.task, replace(bench, data_cache=trained.bench.data_cache)
    parent = spoiled_elsewhere(task, bench)
    budget = task.budget.amount * BUDGET_SHARE
    plan = msgspec.structs.replace(plan_as_it_stands(task, TRAIN), budget=budget, source=parent)
    at_home = Experiment(task, plan, bench).train(job_limits(task, bench.ceiling))
    assert at_home.checkpoint is not None, at_home.reason
    assert at_home.checkpoint.read_bytes() == trained.checkpoint.read_bytes()  # it is the baseline's twin there

    short = msgspec.structs.replace(task, budget=msgspec.structs.replace(task.budget, amount=budget))
    with_known_cost(trained, short)
    village = Village.at(tmp_path / "village")
    run = village.run(1.0, "child", by=ANN, parent=village.run(1.2, "parent", by=ANN))
    village.evaluate(run, 1.0, BEN, CEM, EVE)
    proof = ecvrf.prove(bytes(BEN.key), question(run.id, REPLICATE, 0))
    drawn = seeds(ecvrf.output(proof), 1)
    check = check_of(short, TRAIN, run=run.id, stage=REPLICATE, proof=proof, seeds=drawn, parent_source=parent)
    verified = carried_out(check, short, bench)
    assert verified.verdict == "pass", verified.reason
    ((value,), (before,), (beside,)) = verified.values, verified.parent_values, verified.baseline_values
    assert value == beside  # the child is the baseline itself
    assert value == pytest.approx(trained.value, abs=0.2)  # worlds are alike, and it is asked about that it learned
    assert value < before - 0.3  # it would be confirmed
    measured = {"values": [value] * 2, "parent_values": [before] * 2, "baseline_values": [beside] * 2}
    for who in (BEN, CEM):  # both find the same in each of their two worlds
        proof = ecvrf.prove(bytes(who.key), question(run.id, REPLICATE, 0))
        drawn = seeds(ecvrf.output(proof), 2)
        village.verify(
            who, Verification(run=run.id, stage=REPLICATE, verdict="pass", proof=proof, seeds=drawn, **measured)
        )

    judged = judgement(village.log, run.id)
    assert (judged.state, judged.improvement) == (RunState.PROVISIONAL, None)
    assert (judged.evidence.paired, judged.evidence.behind) == (0, 2)
    village.log.close()


def test_a_pair_says_of_each_program_what_that_came_to(tmp_path: Path) -> None:
    evaluator = 'import json\nprint("accuracy:", json.load(open("model.json"))["threshold"])\n'
    task = load_task(evaluated_task(tmp_path / "fit", evaluator=evaluator))
    bench = Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    parent, child = (FIT.replace("THRESHOLD = 0.5", f"THRESHOLD = {number}") for number in (0.6, 0.7))

    verified = carried_out(check_of(task, child, stage=REPLICATE, seeds=[1], parent_source=parent), task, bench)

    assert verified.verdict == "pass", verified.reason
    assert (verified.baseline_values, verified.parent_values, verified.values) == ([0.5], [0.6], [0.7])
