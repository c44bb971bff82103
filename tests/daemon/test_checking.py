"""A verifier's worker before somebody's model: what it reports of an honest one, and of one that cheats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import seeds, text_seeds
from autoresearch.judging.statistics import Findings, passes
from autoresearch.run.bench import Bench
from autoresearch.run.checking import Verified
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.texts import drawn_world
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from tests.run.checks import PROOF, carried_out, check_of
from tests.run.refereeing.conftest import BUDGET_SHARE, Trained, trained, with_known_cost
from tests.run.refereeing.small_task import TRAIN, small_task

__all__ = ["trained"]  # the fixture

pytestmark = pytest.mark.slow

CHEATS = {
    "reads off the targets": TRAIN.replace(
        "def build_model():",
        "def build_model():\n    import __main__ as asker\n    asker.losses = lambda m, y, v: y * 0.0 + 0.01\n"
        "    return GPT()\n\n\ndef unused():",
    ),
    "another architecture": TRAIN.replace("WIDTH = 32 ", "WIDTH = 64 "),
}


def brief_task(share: float = BUDGET_SHARE) -> Task:
    """The small task with a budget that its baseline, which bounds what a check costs, is trained for in no time.

    To load torch may take as long as it allows: on a machine that does twenty other things that is no fault of a model.
    """
    task = small_task()
    return msgspec.structs.replace(
        task,
        budget=msgspec.structs.replace(task.budget, amount=task.budget.amount * share),
        limits=msgspec.structs.replace(task.limits, seconds=60),
    )


@pytest.fixture
def bench(trained: Trained) -> Bench:
    with_known_cost(trained, brief_task())
    return trained.bench


@pytest.fixture
def honest(trained: Trained) -> tuple[Path, float]:
    return trained.checkpoint, trained.value


def check(
    source: str,
    checkpoint: Path,
    bench: Bench,
    claim: float,
    task: Task | None = None,
    *,
    digest: bytes = b"",
    replay: bool = False,
) -> Verified:
    task = task or brief_task()
    plan = check_of(task, source, source_digest=digest or source_digest(source), claim=claim)
    return carried_out(plan, task, bench, None if replay else checkpoint)


def findings(verified: Verified) -> Findings:
    assert verified.value is not None
    metrics = verified.metrics
    return Findings(
        verified.value,
        int(metrics["challenges"]),
        int(metrics["mismatches"]),
        metrics["mean_difference"],
        metrics["gap"],
    )


def test_an_honest_claim_is_borne_out_and_another_number_is_not(
    bench: Bench, honest: tuple[Path, float], tmp_path: Path
) -> None:
    checkpoint, value = honest
    tmp_path.chmod(0o755)

    verified = check(TRAIN, checkpoint, replace(bench, scratch=tmp_path), value)

    assert (verified.verdict, verified.values != []) == ("pass", True)
    assert passes(value, findings(verified), tolerance=0.0005, noise=0.02)
    assert not passes(value - 0.01, findings(verified), tolerance=0.0005, noise=0.02)


@pytest.mark.parametrize("what", CHEATS)
def test_a_cheat_fails(bench: Bench, honest: tuple[Path, float], tmp_path: Path, what: str) -> None:
    tmp_path.chmod(0o755)

    verified = check(CHEATS[what], honest[0], replace(bench, scratch=tmp_path), 1.0)

    assert (verified.verdict, verified.value) == ("fail", None)
    assert verified.reason


def test_a_model_that_overruns_a_limit_when_it_is_asked_fails_and_a_slow_training_is_nobodys_fault(
    bench: Bench, honest: tuple[Path, float], tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    task = brief_task()
    hurried = msgspec.structs.replace(task, limits=msgspec.structs.replace(task.limits, seconds=0.5))
    embed = "        x = self.embed(x)\n"
    sleepy = TRAIN.replace(embed, f"        __import__('time').sleep(600)\n{embed}")
    assert sleepy != TRAIN

    assert check(sleepy, honest[0], replace(bench, scratch=tmp_path), 1.0).verdict == "fail"
    assert check(TRAIN, honest[0], replace(bench, scratch=tmp_path), 1.0, hurried, replay=True).verdict == "error"


def test_a_source_under_the_name_of_another_program_fails(bench: Bench, tmp_path: Path) -> None:
    for source, digest in ((TRAIN, source_digest("another = 1")), ("no Python \ufffd", bytes(32))):
        verified = check(source, tmp_path / "none", bench, 1.0, digest=digest)

        assert (verified.verdict, verified.value) == ("fail", None)
        assert "its record names" in verified.reason


def test_a_pair_is_run_with_seeds_of_the_proof_in_a_world_of_its_own(bench: Bench, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    short = brief_task(1 / 200)
    child, scratch_bench = TRAIN.replace("MLP_RATIO = 4.0", "MLP_RATIO = 2.0"), replace(bench, scratch=tmp_path)
    output = ecvrf.output(PROOF)
    drawn = seeds(output, 1)
    verified = carried_out(
        check_of(short, child, stage="replicate", seeds=drawn, parent_source=TRAIN), short, scratch_bench
    )

    plan = msgspec.structs.replace(plan_as_it_stands(short, child), seed=drawn[0])
    again = Experiment(
        short, plan, scratch_bench, world=drawn_world(short, text_seeds(output, 1)[0], scratch_bench)
    ).measure()
    assert (verified.verdict, len(verified.parent_values)) == ("pass", 1), verified.reason
    assert verified.values == [again.value] != verified.parent_values
