"""The rule of dead ends: what loses or fails often enough is found, luck is none, and who goes there is recognised."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some

from autoresearch.propose.search.dead_ends import DeadEnd, Noise, Region, Try, code_lines, dead_ends
from autoresearch.record.encoding import short_id

NOISE = Noise(0.01, 0.01)
PARENT = b"parent of all"


def a_try(
    number: int,
    gain: float | None,
    *,
    before: object = 0.1,
    after: object = 0.5,
    setting: str = "RATE",
    parent: bytes = PARENT,
    parent_runs: int = 1,
    fault: str = "it diverged",
    **more: object,
) -> Try:
    """A program that changes one setting; smaller values are better, and its parent has 1."""
    value = None if gain is None else 1.0 - gain
    changed = {setting: (before, after)}
    more_fields = {"settings": {setting: after}, "fault": "" if value is not None else fault, **more}
    number_of_it = number.to_bytes(32, "big")
    return Try(number_of_it, b"a", changed, value=value, runs=1, parent=parent, parent_value=1.0,
               parent_runs=parent_runs, **more_fields)  # type: ignore[arg-type]  # fmt: skip


def ends_of(
    *tries: Try, noise: Noise | None = NOISE, best: object = 0.1, working: tuple[str, ...] = ()
) -> list[DeadEnd]:
    return dead_ends(tries, noise=noise, sign=1.0, best={"RATE": best}, working=working)  # type: ignore[dict-item]


def test_three_clear_losses_are_a_dead_end_and_two_are_none() -> None:
    tries = [a_try(number, -0.2, after=0.5 + number / 10) for number in range(3)]
    assert ends_of(*tries[:2]) == []
    (end,) = ends_of(*tries)
    assert end.region == Region("RATE", ">=", 0.5)
    assert (end.runs, end.participants) == (tuple(each.id for each in tries), 1)
    assert end.gain == pytest.approx(-0.2)
    assert end.sentence.startswith("RATE at least 0.5: 3 tries, no gain: -0.2 ± 0.0")


def test_the_region_ends_where_it_is_not_known_to_lose() -> None:
    losses = [a_try(number, -0.2, after=0.5 + number / 10) for number in range(3)]
    (end,) = ends_of(*losses, a_try(7, 0.0, after=0.2))
    assert end.region == Region("RATE", ">=", 0.5)
    (end,) = ends_of(*losses, a_try(7, -0.2, after=0.2))
    assert end.region == Region("RATE", ">=", 0.2)


@pytest.mark.parametrize(
    "more",
    [
        a_try(7, 0.05, after=0.9),  # one gained there
        a_try(7, 0.05, after=0.9, is_alone=False),  # with other changes
        a_try(7, -0.001, after=0.9),  # one that is not known to lose
    ],
)
def test_a_region_where_one_gained_is_none(more: Try) -> None:
    tries = [a_try(number, -0.2, after=0.5) for number in range(3)]
    assert all(end.region and not end.region.has(0.9) for end in ends_of(*tries, more))


def test_where_the_best_program_is_there_is_no_dead_end() -> None:
    tries = [a_try(number, -0.2) for number in range(3)]
    assert ends_of(*tries, best=0.6) == []


def test_losses_beside_other_changes_say_nothing_of_one() -> None:
    tries = [a_try(number, -0.2)._replace(changed={"RATE": (0.1, 0.5), "UNITS": (4, 8)}) for number in range(5)]
    assert ends_of(*tries) == []


def test_without_known_noise_only_failures_count() -> None:
    assert ends_of(*(a_try(number, -0.2) for number in range(5)), noise=None) == []
    (end,) = ends_of(*(a_try(number, None) for number in range(3)), noise=None)
    assert end.sentence.startswith("RATE at least 0.5: 3 tries, all failed: it diverged (")


def test_without_noise_no_gain_is_a_dead_end_and_the_smallest_gain_is_none() -> None:
    exact = Noise(0.0, 0.0)
    assert ends_of(*(a_try(number, 0.0) for number in range(3)), noise=exact)
    assert ends_of(*(a_try(number, 0.0) for number in range(3)), a_try(5, 1e-9), noise=exact) == []


def test_failures_of_several_causes_and_a_value_there_are_no_dead_end() -> None:
    tries = [a_try(number, None, after=0.5 + number / 10) for number in range(3)]
    assert ends_of(*tries)
    assert ends_of(*tries[:2], a_try(7, None, fault="no memory")) == []
    assert ends_of(*tries, a_try(7, -0.2, after=0.8)) == []
    other = a_try(7, -0.2, setting="UNITS", after=8)._replace(settings={"UNITS": 8, "RATE": 0.9})
    assert ends_of(*tries, other) == []
    numbers = [a_try(number, None, fault=f"stopped at step {number}") for number in range(3)]
    assert len(ends_of(*numbers)) == 1


@pytest.mark.parametrize(
    ("before", "after", "region", "text"),
    [
        ("sgd", "adam", Region("RATE", "=", "adam"), "RATE = “adam”"),
        (False, True, Region("RATE", "=", True), "RATE on"),
        (True, False, Region("RATE", "=", False), "RATE off"),
        (8, 2, Region("RATE", "<=", 2), "RATE at most 2"),
        (1, True, Region("RATE", "=", True), "RATE on"),
    ],
)
def test_words_parts_and_lower_numbers_have_their_regions(
    before: object, after: object, region: Region, text: str
) -> None:
    (end,) = ends_of(*(a_try(number, None, before=before, after=after) for number in range(3)), best="none")
    assert (end.region, str(end.region)) == (region, text)
    assert end.is_repeated({"RATE": before}, {"RATE": after}, "")  # type: ignore[dict-item]
    assert not end.is_repeated({"RATE": after}, {"RATE": after}, "")  # type: ignore[dict-item]


def test_lines_that_all_failing_programs_share_and_no_working_one_has() -> None:
    programs = [f"import torch\nimport numpy  # fast\nX = {number}{number}{number}" for number in range(3)]
    tries = [
        a_try(number, None, fault="no module numpy")._replace(changed={}, is_alone=False, added=code_lines(program))
        for number, program in enumerate(programs)
    ]
    (end,) = ends_of(*tries, working=("import torch\nX = 1",))
    assert end.lines == ("import numpy",)
    assert end.sentence.startswith("“import numpy”: 3 tries, all failed: no module numpy (")
    assert end.is_repeated({}, {}, "import math\n  import numpy as np\n  import numpy  # once more")
    assert not end.is_repeated({}, {}, "import math\nX = 2")
    assert ends_of(*tries, working=("import torch\nimport numpy",)) == []


def test_a_hypothesis_that_names_a_run_says_why_it_differs() -> None:
    (end,) = ends_of(*(a_try(number, -0.2) for number in range(3)))
    assert end.is_answered(f"unlike {short_id(end.runs[1])} with a warm-up")
    assert not end.is_answered("I just want to")


values = some.sampled_from([0.01, 0.05, 0.2, 0.5, 1.0, 3.0, "adam", "sgd", True, False])
gains = some.none() | some.sampled_from([-1.0, -0.2, -0.05, 0.0, 0.01, 0.2])
tries_of = some.lists(some.tuples(values, values, gains, some.sampled_from([b"p", b"q"])), max_size=12)


@given(tries_of, some.randoms())
def test_any_tries_in_any_order_give_the_same_and_each_goes_there(
    drawn: list[tuple[object, object, float | None, bytes]], order: random.Random
) -> None:
    tries = [
        a_try(number, gain, before=before, after=after, parent=parent)
        for number, (before, after, gain, parent) in enumerate(drawn)
        if before != after
    ]
    ends = ends_of(*tries, best="none")
    order.shuffle(tries)
    assert ends_of(*tries, best="none") == ends
    by_id = {each.id: each for each in tries}
    for end in ends:
        assert len(end.runs) >= 3
        assert end.sentence
        members = [by_id[run] for run in end.runs]
        assert all(
            end.is_repeated({"RATE": old}, {"RATE": new}, "") for each in members for old, new in [each.changed["RATE"]]
        )
        gone = [each for each in tries if end.is_repeated({"RATE": each.changed["RATE"][0]}, dict(each.settings), "")]
        assert not any(each.value is not None and 1.0 - each.value > 3 * NOISE.deviation for each in gone)


def searches(effect: float, *, seed: int, programs: int, children: int, replicas: int) -> Iterator[list[Try]]:
    """Logs in which a setting has an effect, tried from the luckiest of many equal programs; effects in deviations."""
    draws = random.Random(seed)
    while True:
        lucky = max(draws.gauss(0, 1) for _ in range(programs))
        again = sum(draws.gauss(0, 1) for _ in range(replicas - 1))
        base = 1.0 - NOISE.deviation * (lucky + again) / replicas
        others = [
            a_try(900 + number, None)._replace(changed={}, value=1.0, fault="", is_alone=False)
            for number in range(programs)
        ]
        yield others + [
            a_try(number, 0.0, after=0.5, parent_runs=replicas)._replace(
                value=1.0 - NOISE.deviation * (effect + draws.gauss(0, 1)), parent_value=base
            )
            for number in range(children)
        ]


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("programs", [2, 20])
@pytest.mark.parametrize("children", [3, 8])
def test_what_gains_as_much_as_a_seed_is_hardly_ever_a_dead_end(replicas: int, programs: int, children: int) -> None:
    logs = searches(1.0, seed=7, programs=programs, children=children, replicas=replicas)
    wrong = sum(bool(ends_of(*next(logs), best="none")) for _ in range(400))
    assert wrong <= 400 * 0.025


@pytest.mark.parametrize("replicas", [1, 4])
def test_what_loses_many_deviations_is_found(replicas: int) -> None:
    logs = searches(-8.0, seed=7, programs=20, children=4, replicas=replicas)
    assert sum(bool(ends_of(*next(logs), best="none")) for _ in range(200)) >= 190
