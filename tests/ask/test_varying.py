"""An experiment is read off the log: which runs are missing, what each value did, what depends on what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.acts.edited_program import Idea, plan_of_idea
from autoresearch.ask.acts.varying import (
    RUNS_MOST,
    VariantView,
    interactions_of,
    levels_of,
    outcome_of,
    read_values,
    variants,
)
from autoresearch.errors import UsageError
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.program import source_digest
from tests.ask.notebook import Notebook
from tests.daemon.toy import TRAIN, write_toy_task

SETTINGS = {"X": ["0.2", "0.4"], "Y": ["0.1", "0.5", "0.9"]}


@pytest.fixture
def task(tmp_path):
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return load_task(folder)


def views(values, runs=1):
    """Programs of an experiment with X and Y, by (x, y)."""
    return [VariantView(settings={"X": x, "Y": y}, runs=runs, value=value) for (x, y), value in values.items()]


def test_every_combination_is_a_program_of_its_own(task):
    made, left_out = variants(task, task.baseline.decode(), SETTINGS, 1)
    assert left_out == 0
    assert [tuple(record.settings.values()) for record in made] == [(x, y) for x in (0.2, 0.4) for y in (0.1, 0.5, 0.9)]
    assert made[5].program == TRAIN.replace("X = 0.9", "X = 0.4").replace("Y = 0.1", "Y = 0.9")
    assert len({record.digest for record in made}) == 6
    twice, _ = variants(task, task.baseline.decode(), {"X": [0.2, 0.2, 0.20]}, 1)
    assert len(twice) == 1


def test_what_the_program_forbids_is_left_out_and_counted(task):
    program = TRAIN + "\nassert X < 0.3 or Y < 0.3\n"
    made, left_out = variants(task, program, SETTINGS, 1)
    assert (len(made), left_out) == (4, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["X"], "names no values"),
        (["X="], "names no values"),
        (["=1"], "names no values"),
        (["X=1", "X=2"], "X is set twice"),
        (["Z=1"], "turns no setting Z"),
        (["X=much"], "X can't be much"),
        ([f"X={','.join(str(n / 1000) for n in range(RUNS_MOST + 1))}"], f"1 to {RUNS_MOST} runs"),
        ([], f"1 to {RUNS_MOST} runs"),
    ],
)
def test_what_makes_no_experiment_is_refused(task, words, message):
    with pytest.raises(UsageError, match=message):
        variants(task, task.baseline.decode(), read_values(words), 1)


def test_a_flag_of_a_compiler_has_an_equals_sign_of_its_own():
    words = ["-march=native=on", "BLOCK=1,2", "OPTIONS=a=b"]
    assert read_values(words) == {"-march=native": ["on"], "BLOCK": ["1", "2"], "OPTIONS": ["a=b"]}


@pytest.mark.parametrize("seeds", [1, 2, 3, RUNS_MOST // 2, RUNS_MOST])
def test_seeds_count_as_runs_of_an_experiment(task, seeds):
    def made(count):
        return variants(task, task.baseline.decode(), {"X": [n / 1000 for n in range(1, count + 1)]}, seeds)[0]

    assert len(made(RUNS_MOST // seeds)) == RUNS_MOST // seeds
    with pytest.raises(UsageError, match=f"1 to {RUNS_MOST} runs"):
        made(RUNS_MOST // seeds + 1)


def test_the_log_says_what_was_run_and_what_is_missing(task, tmp_path):
    with Notebook.at(tmp_path) as notebook:
        made, _ = variants(task, task.baseline.decode(), {"X": [0.2, 0.4]}, 3)

        def ran(variant, value, replicate, **fields):
            digest, amount = source_digest(variant.program), float(task.budget.amount)
            notebook.run(
                task.digest, value, source=variant.program, source_digest=digest, budget=amount,
                replicate=replicate, **fields,
            )  # fmt: skip

        ran(made[0], 1.0, 0)
        ran(made[0], 2.0, 1)
        ran(made[1], None, 0, status="crashed")
        pending = {(made[1].digest, 1)}
        elsewhere = {(made[0].digest, 0), (made[0].digest, 2)}
        answer, missing = outcome_of(
            notebook.log, task, made, 3, pending=pending, elsewhere=elsewhere, me=notebook.mine.public
        )
    first, second = answer.variants
    assert (first.runs, first.value, first.to_go) == (2, 1.5, 1)
    assert (second.runs, second.value, second.failed, second.to_go) == (0, None, ["crashed"], 2)
    assert (answer.to_go, answer.elsewhere) == (3, 1)
    assert [(left.settings["X"], number) for left, number in missing] == [(0.4, 2)]


def test_a_setting_that_is_assigned_twice_is_named_so(task):
    with pytest.raises(UsageError, match=r"X is assigned twice \(lines 4 and 8\): the search turns only"):
        variants(task, f"{TRAIN}X = X / 2\n", {"X": [0.2]}, 1)


@pytest.mark.parametrize(
    ("hypothesis", "title"),
    [
        (
            "RATE 0.16, HIDDEN 12, MOMENTUM 0.95, WEIGHT_DECAY 0.001: how many units",
            "RATE 0.16, HIDDEN 12, MOMENTUM 0.95…",
        ),
        (
            "RATE 0.16, HIDDEN 12: how many units and which first rate, both",
            "RATE 0.16, HIDDEN 12: how many units and which first rate…",
        ),
        (
            "a longer warm-up keeps the first steps small enough for this one",
            "a longer warm-up keeps the first steps small enough for…",
        ),
        ("x" * 70, "x" * 59 + "…"),
        ("short", "short"),
    ],
)
def test_a_title_ends_between_settings_or_words(task, tmp_path, hypothesis, title):
    with Notebook.at(tmp_path) as notebook:
        idea = Idea(task, TRAIN.replace("X = 0.9", "X = 0.2"), hypothesis=hypothesis)
        plan = plan_of_idea(notebook.log, notebook.blobs, idea, author=notebook.mine.public)
    assert plan.title == title
    assert plan.hypothesis == hypothesis


def test_values_are_compared_where_all_else_is_the_same():
    result = levels_of(views({(1, 1): 10.0, (1, 2): 20.0, (2, 1): 13.0}, runs=2), 0.5)
    by_name = {(level.setting, level.value): level for level in result}
    assert by_name["X", 2].change == 3.0  # and not 13 - 15
    assert by_name["Y", 2].change == 10.0
    assert by_name["X", 2].margin == pytest.approx(1.96 * 0.5)
    assert by_name["X", 1].change is None
    assert by_name["X", 1].mean == 15.0


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_a_sum_of_two_settings_has_no_interaction_and_a_product_has_one(base, a, b, c):
    values = {(x, y): base + a * x + b * y + c * x * y for x in (0, 1) for y in (0, 1)}
    (result,) = interactions_of(views(values), 0.1)
    assert result.amount == pytest.approx(c, abs=1e-9)
    assert result.margin == pytest.approx(1.96 * 0.1 * 2)


def test_what_is_not_measured_says_nothing():
    some = [*views({(1, 1): 1.0}), VariantView(settings={"X": 2, "Y": 2})]
    assert interactions_of(some, 0.1) == []
    assert [level.mean for level in levels_of(some, 0.1)] == [1.0, None, 1.0, None]
    assert levels_of([], 0.1) == []
