"""Boards of environments with chance: intervals by the evaluators' standard errors, and the places that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.answers import BoardLine
from autoresearch.ask.runs.boards import NO_LINES, top_answer
from autoresearch.face.columns.runs import line_words, verified_words
from autoresearch.judging.places import Interval, places
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import ProgramView
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.queries import board, leaderboard
from autoresearch.record.record import Network
from autoresearch.trust.roster import Trust
from tests.log.standing.test_agents import AGENTS
from tests.log.standing.village import ANN, BEN, CEM, DOT, TRUST, Village
from tests.record.making import BLOB

VERIFIERS = (ANN, BEN, CEM, DOT)


EPISODES = AGENTS | {"budget": {"unit": "episodes", "amount": 300.0}}
# As a lab founds it: two others confirm a run.
LAB = Network(name="test", verify_least=3, verify_quorum=2)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Village]:
    made = Village.at(tmp_path, definition=AGENTS)
    yield made
    made.log.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Village]:
    made = Village(Log.open(tmp_path / "log.sqlite", LAB, trust=TRUST), AGENTS)
    yield made
    made.log.close()


def agent(
    world: Village,
    name: str,
    claim: tuple[float, float | None],
    *measured: tuple[float, float | None],
) -> str:
    """An agent with its value and standard error, and what each verifier came to; returns the title of its run."""
    value, stated = claim
    metrics = {} if stated is None else {"standard_error": stated}
    run = world.run(value, name, mode="train", budget=300.0, checkpoint=BLOB, metrics=metrics)
    for who, (number, error) in zip(VERIFIERS, measured, strict=False):
        world.evaluate(run, number, who, error=error)
    return name


def row(world: Village, name: str) -> ProgramView:
    """The row of a run on the board."""
    rows = board(world.log, world.task, trust_context(world.log), limit=50)
    return next(each for each in rows if each.title == name)


def test_2048_is_told_from_random_actions(lab: Village) -> None:
    agent(lab, "sarsa", (2070.72, 111.6), (2168.12, 111.6), (1901.48, 111.6))
    agent(lab, "random", (1056.36, 55.0), (1203.44, 60.0), (1187.0, 58.0))
    best, chance = row(lab, "sarsa"), row(lab, "random")
    assert best.verified == pytest.approx(2034.8)
    assert best.verified_margin == pytest.approx(1.96 * 111.6 / math.sqrt(2))
    assert verified_words(best) == "mean of 2 runs of verifiers"
    assert [(each.position, each.last_position) for each in (best, chance)] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("stated", "half"),
    [
        (100.0, 138.6),
        (None, 138.6),
        (0.0, 138.6),  # no less than the least of the verifiers
        (1e-9, 138.6),
        (150.0, 1.96 * math.sqrt((2 * 100**2 + 150**2) / 3 / 2)),
        (200.0, 1.96 * math.sqrt((2 * 100**2 + 200**2) / 3 / 2)),
        (1e6, 1.96 * math.sqrt((2 * 100**2 + 200**2) / 3 / 2)),  # no more than twice that
        (1e99, 1.96 * math.sqrt((2 * 100**2 + 200**2) / 3 / 2)),
        (-5.0, 138.6),
    ],
)
def test_what_an_author_states_of_its_error_is_bounded_by_the_verifiers(
    world: Village, stated: float | None, half: float
) -> None:
    agent(world, "agent", (2000.0, stated), (2050.0, 100.0), (1950.0, 100.0))
    assert row(world, "agent").verified_margin == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize(
    ("measured", "value", "half", "words"),
    [
        # One verifier invents a huge or a tiny error, or states none.
        ([(2050.0, 100.0), (1950.0, 1e50)], 2000.0, 219.1, "mean of 2"),
        ([(2050.0, 100.0), (1950.0, None)], 2000.0, 138.6, "mean of 2"),
        ([(2050.0, 100.0), (1950.0, 1e-9)], 1950.0, 12.706 * 50, "the worse of 2"),
        # Huge errors excuse no value far from the others: the least one counts.
        ([(1300.0, 100.0), (2000.0, 1e50)], 1300.0, 12.706 * 350, "the worse of 2"),
        # Nobody states an error.
        ([(2050.0, None), (1950.0, None)], 1950.0, 12.706 * 50, "the worse of 2"),
        # An episode in a hundred fails: one verifier's draw was all the same.
        ([(500.0, 0.0), (498.8, 1.2)], 499.4, None, "mean of 2"),
        ([(2010.0, 100.0), (2000.0, 100.0), (1950.0, 100.0)], 2000.0, 1.96 * 125.33 / math.sqrt(3), "median of 3"),
        ([(2010.0, 5.0), (2000.0, 5.0), (1500.0, 5.0)], 2000.0, 4.303 * 168.4, "median of 3"),
        # 1,000 episodes say more than 20.
        ([(2000.0, 14.1), (1990.0, 14.1)], 1995.0, 19.54, "mean of 2"),
        ([(2000.0, 100.0), (1990.0, 100.0)], 1995.0, 138.6, "mean of 2"),
    ],
)
def test_intervals(
    world: Village, measured: Sequence[tuple[float, float | None]], value: float, half: float | None, words: str
) -> None:
    claim = min(each for each, _ in measured)  # no more than anybody measured, so that nobody doubts it
    agent(world, "agent", (claim, None), *measured)
    result = row(world, "agent")
    assert result.verified == pytest.approx(value)
    assert half is None or result.verified_margin == pytest.approx(half, rel=0.01)
    assert 0 < (result.verified_margin or 0.0) < math.inf
    assert verified_words(result).startswith(f"{words} ")


@pytest.mark.parametrize("measured", [[], [(1990.0, 100.0)]])
def test_before_two_have_measured_there_is_no_interval(
    world: Village, measured: Sequence[tuple[float, float | None]]
) -> None:
    agent(world, "agent", (2000.0, 1e9), *measured)
    result = row(world, "agent")
    assert (result.verified, result.verified_margin, result.position) == (None, None, 0)


def test_without_chance_equal_agents_share_their_place_and_have_no_interval(lab: Village) -> None:
    for name in ("a", "b", "c"):
        agent(lab, name, (-9.0, 0.0), (-9.0, 0.0), (-9.0, 0.0))
    agent(lab, "d", (-12.0, 0.0), (-12.0, 0.0), (-12.0, 0.0))
    rows = [row(lab, name) for name in ("a", "b", "c", "d")]
    assert [(each.verified, each.verified_margin or 0.0) for each in rows] == [(-9.0, 0.0)] * 3 + [(-12.0, 0.0)]
    assert [(each.position, each.last_position) for each in rows] == [(1, 3)] * 3 + [(4, 4)]


@pytest.mark.slow
def test_places_do_not_depend_on_how_many_are_asked_for(lab: Village) -> None:
    for number in range(6):
        agent(lab, f"agent {number}", (100.0 + number, 5.0), (100.0 + number, 5.0), (101.0 + number, 5.0))
    context = trust_context(lab.log)
    rows = board(lab.log, lab.task, context, limit=50)
    ranked = [each for each in rows if each.section == "confirmed"]
    assert {(each.position, each.last_position) for each in ranked} == {(1, 6)}
    ends = [Interval.around(each.verified or 0.0, each.verified_margin) for each in ranked]
    assert [(each.position, each.last_position) for each in ranked] == places(ends, maximize=True)
    for limit in range(1, 6):
        few = board(lab.log, lab.task, context, limit=limit)
        assert [(each.id, each.last_position) for each in few if each.position] == [
            (each.id, each.last_position) for each in ranked[: sum(row.position > 0 for row in few)]
        ]


def test_smaller_is_better_on_a_board_that_minimizes(tmp_path: Path) -> None:
    metric = {"name": "steps", "direction": "minimize", "source": "evaluator"}
    world = Village(Log.open(tmp_path / "log.sqlite", LAB, trust=TRUST), AGENTS | {"metric": metric})
    agent(world, "fast", (100.0, 4.0), (101.0, 4.0), (103.0, 4.0))
    agent(world, "as fast", (104.0, 4.0), (104.0, 4.0), (105.0, 4.0))
    agent(world, "slow", (200.0, 4.0), (201.0, 4.0), (199.0, 4.0))
    rows = [row(world, name) for name in ("fast", "as fast", "slow")]
    assert [(each.position, each.last_position) for each in rows] == [(1, 2), (1, 2), (3, 3)]
    world.log.close()


def test_where_nobody_verifies_equal_reports_share_a_place(tmp_path: Path) -> None:
    world = Village.at(tmp_path, trust=Trust(), definition=AGENTS)
    for name, value in [("a", -9.0), ("b", -9.0), ("c", -8.0), ("d", -9.0)]:
        world.run(value, name, mode="train", budget=300.0, metrics={"standard_error": 1e9})
    rows = leaderboard(world.log, world.task)
    assert [(each.reported, each.position, each.last_position) for each in rows] == [
        (2.0, 1, 1),  # the baseline
        (-8.0, 2, 2),
        (-9.0, 3, 5),
        (-9.0, 3, 5),
        (-9.0, 3, 5),
    ]
    assert leaderboard(world.log, world.task, limit=3) == rows[:3]
    world.log.close()


def lines(world: Village, *, me: bytes | None = None, limit: int = 20) -> tuple[list[BoardLine], str]:
    """What stands below a board, and what has to be said of it."""
    task = find_task(world.log, None)
    answer = top_answer(world.log, task, limit=limit, author=me)
    return answer.lines, answer.lines_note


def test_what_random_actions_earn_is_what_verifiers_measured(tmp_path: Path) -> None:
    world = Village(Log.open(tmp_path / "log.sqlite", LAB, trust=TRUST), EPISODES)
    invented = {"standard_error": 5.0, "random_reward": 1e9, "random_standard_error": 1e-9, "solved_reward": -1e9}
    run = world.run(100.0, "agent", mode="train", budget=300.0, checkpoint=BLOB, metrics=invented)
    assert lines(world) == ([], NO_LINES)
    measured = {"random_standard_error": 3.0, "solved_reward": 195.0}
    world.evaluate(run, 101.0, ANN, error=5.0, random_reward=20.0, **measured)
    assert lines(world)[0] == [], "one verifier alone gives no number"
    world.evaluate(run, 102.0, BEN, error=5.0, random_reward=24.0, **measured)
    (chance, solved), note = lines(world)
    assert note == ""
    assert (chance.name, chance.value, chance.verifiers) == ("random", 22.0, 2)
    assert chance.margin == pytest.approx(1.96 * 3 / math.sqrt(2), rel=1e-3)
    assert (solved.name, solved.value, solved.margin) == ("solved", 195.0, None)
    assert line_words([chance, solved]).startswith(
        "random actions earn 22.0000 ± 4.1578, solved is 195.0000; measured by 2"
    )
    # Whoever measures often is one among the others, and all parts of the board say the same.
    for number in range(4):
        other = world.run(90.0, f"other {number}", mode="train", budget=300.0, checkpoint=BLOB)
        world.evaluate(other, 90.0, ANN, error=5.0, random_reward=20.0, **measured)
        world.evaluate(other, 90.0, CEM, error=5.0, random_reward=26.0, **measured)
    (chance, _), _ = lines(world)
    assert (chance.value, chance.verifiers) == (24.0, 3)
    assert lines(world, limit=1) == lines(world, limit=50)
    world.log.close()


def test_where_nobody_verifies_a_node_believes_what_it_measured_itself(tmp_path: Path) -> None:
    world = Village.at(tmp_path, trust=Trust(), definition=EPISODES)
    invented = {"random_reward": 1e9, "solved_reward": -1e9}
    world.run(100.0, "agent", by=ANN, mode="train", budget=300.0, metrics=invented)
    assert lines(world, me=BEN.public) == ([], NO_LINES)
    world.run(
        90.0, "own", by=BEN, mode="train", budget=300.0, metrics={"random_reward": 21.0, "random_standard_error": 2.0}
    )
    (chance,), note = lines(world, me=BEN.public)
    assert (chance.value, chance.margin, chance.verifiers) == (21.0, pytest.approx(3.92), 0)
    assert line_words([chance]).endswith("measured by this node")
    assert note == ""
    world.log.close()


def test_a_task_that_is_no_environment_has_no_lines(tmp_path: Path) -> None:
    world = Village.at(tmp_path, trust=Trust())
    world.run(1.0, "program", metrics={"random_reward": 1.0})
    assert lines(world, me=world.baseline.author if world.baseline else None) == ([], "")
    world.log.close()
