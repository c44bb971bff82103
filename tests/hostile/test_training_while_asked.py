"""A model that trains while it is asked pays for it: at home, before a verifier, and as a child beside its parent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import seeds
from autoresearch.run.bench import Bench, known_cost, purse_of
from autoresearch.run.checking import Verified
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.run.texts import drawn_world
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.words import RunStatus
from tests.cli.programs import ANSWER, FIT, asking_task, evaluated_task
from tests.conftest import Once
from tests.run.checks import PROOF, carried_out, check_of
from tests.run.refereeing.programs import edited
from tests.run.refereeing.small_task import TRAIN, small_task
from tests.walls import best_level

# It goes on learning in each of the referee's processes, for four times as long as that took until then: all of a run
# then costs more than it may, by much, also where the baseline was measured on a busier machine. What it learns is put
# aside: both processes must find the same model.
STUDYING = edited(
    (
        "def build_model():\n    return GPT()\n",
        """class Studying(GPT):
    def eval(self):
        import __main__, time
        learner, until = GPT(), 4 * time.process_time()
        opts = optimizers(learner)
        while hasattr(__main__, "predictions") and time.process_time() < until:
            y = torch.randint(prepare.VOCAB, (8, prepare.DOC))
            loss = F.cross_entropy(learner(prepare.inputs(y)).view(-1, prepare.VOCAB), y.view(-1))
            learner.zero_grad(set_to_none=True)
            loss.backward()
            for o in opts:
                o.step()
        return super().eval()


def build_model():
    return Studying()
""",
    ),
    train=TRAIN,
)


@pytest.fixture(scope="module")
def task() -> Task:
    task = small_task()
    return msgspec.structs.replace(task, budget=msgspec.structs.replace(task.budget, amount=task.budget.amount / 50))


@pytest.fixture
def bench(tmp_path: Path, once: Once) -> Bench:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    return Bench(best_level(), 1, "cpu", once("purse-cache", lambda _: None), tmp_path / "scratch")


def run(task: Task, source: str, bench: Bench, **how: bool) -> JobOutcome:
    bench.scratch.mkdir(exist_ok=True)
    return Experiment(task, plan_as_it_stands(task, source), bench).measure(**how)


def check(task: Task, source: str, bench: Bench, stage: str, model: Path | None, **more: object) -> Verified:
    drawn = seeds(ecvrf.output(PROOF), 1)
    return carried_out(check_of(task, source, stage=stage, seeds=drawn, **more), task, bench, model)


@pytest.mark.slow
def test_a_model_that_trains_while_it_is_asked_is_over_budget_everywhere(task: Task, bench: Bench) -> None:
    honest = run(task, TRAIN, bench)
    assert honest.checkpoint is not None, honest.reason
    checkpoint = honest.checkpoint.rename(honest.checkpoint.with_name("studying"))
    # At home all questions are paid from the purse of the run: what is over that is the test of an artifact below.
    cost = known_cost(task, bench, float(task.budget.amount))
    assert cost is not None
    assert cost.workload > 512
    assert cost.building_ms > cost.training_ms / 2

    evaluated = check(task, STUDYING, bench, "evaluate", checkpoint)
    assert (evaluated.verdict, evaluated.value) == ("fail", None), evaluated.reason
    assert evaluated.reason.startswith("over_budget: its answers took")

    # So they are in a pair, which is measured on other text.
    purse, world = purse_of(task, bench, cost), drawn_world(task, 5, bench)
    trained = msgspec.structs.replace(honest, checkpoint=checkpoint)
    measured = Experiment(task, plan_as_it_stands(task, TRAIN), bench, world).with_number(trained, purse)
    assert measured.status is RunStatus.OK, measured.reason
    assert purse.cost.workload > 512
    assert purse.cost.building_ms > cost.building_ms / 3


@pytest.mark.slow
def test_a_larger_model_with_fewer_steps_is_within_its_budget(task: Task, bench: Bench) -> None:
    larger = TRAIN.replace("DEPTH = 1 ", "DEPTH = 2 ").replace("MLP_RATIO = 4.0", "MLP_RATIO = 6.0")
    trained = run(task, larger, bench, own=True)

    assert trained.status is RunStatus.OK, trained.reason
    assert trained.checkpoint is not None
    evaluated = check(task, larger, bench, "evaluate", trained.checkpoint)
    assert evaluated.verdict == "pass", evaluated.reason


# Many times what such a baseline and its evaluator cost, with what is allowed beyond that.
WORKS = "import time\nwhile time.process_time() < 2:\n    pass\n"


@pytest.mark.slow
def test_an_artifact_that_has_its_evaluator_work_is_over_budget(tmp_path: Path) -> None:
    executed = 'import json, os\nexec(json.load(open("model.json")).get("code", ""))\nprint("accuracy: 1.0")\n'
    task = load_task(evaluated_task(tmp_path / "fit", evaluator=executed))
    bench = Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    working = f'{FIT}json.dump({{"code": {WORKS!r}}}, open("model.json", "w"))\n'

    trained = run(task, working, bench, own=True)
    assert (trained.status, trained.value) == (RunStatus.OVER_BUDGET, None), trained.reason
    assert "its answers included" in trained.reason
    assert trained.checkpoint is not None
    evaluated = check(task, working, bench, "evaluate", trained.checkpoint)
    assert (evaluated.verdict, evaluated.reason[:11]) == ("fail", "over_budget"), evaluated.reason
    beside = check(task, working, bench, "replicate", None, parent_source=task.baseline.decode())
    assert (beside.verdict, beside.values) == ("fail", []), beside.reason
    assert beside.reason.startswith("over_budget: ")
    # What a learned state is worth is no claim about a budget.
    learned = check(task, working, bench, "evaluate", trained.checkpoint, state_only=True)
    assert (learned.verdict, learned.value) == ("pass", 1.0), learned.reason


@pytest.mark.slow
def test_a_player_that_trains_while_it_is_asked_is_over_budget(tmp_path: Path) -> None:
    task = load_task(asking_task(tmp_path / "game"))
    task = msgspec.structs.replace(task, budget=msgspec.structs.replace(task.budget, unit="work"))
    bench = Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    honest = task.baseline.decode()
    assert ANSWER in honest

    assert run(task, honest, replace(bench, scratch=tmp_path / "beside")).status is RunStatus.OK
    assert known_cost(task, bench, float(task.budget.amount)) is not None
    trained = run(task, honest.replace(ANSWER, f"{WORKS}{ANSWER}"), bench, own=True)
    assert (trained.status, trained.value) == (RunStatus.OVER_BUDGET, None), trained.reason
