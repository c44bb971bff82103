"""Each attack on an artifact is measured here by a hole of its kind, and by the same measure without the hole."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.attack.judging import judge
from autoresearch.run.attack.table import ATTACKS
from autoresearch.run.attack.target import Loot, Target, margin_of
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.run.attack.planted import SOUND, build

TRUTH = [int(at * 37 % 60 < 30) for at in range(60)]  # in no order
SORTED = [int(at < 30) for at in range(60)]
HELD = [1 - label if at % 7 == 2 else label for at, label in enumerate(TRUTH)]
GUESSES = [1 - label if at % 9 == 4 else label for at, label in enumerate(TRUTH)]
Value = Callable[[bytes], float]


@dataclass(frozen=True)
class Hole:
    """An artifact, the attack that it falls to, and how it is measured: with the hole, and without it."""

    attack: str
    artifact: Any
    planted: Callable[[Any], float]
    sound: Callable[[Any], float]
    metric: str = "accuracy"
    direction: str = "maximize"
    columns: dict[str, list[Any]] = field(default_factory=dict)
    read: Callable[[bytes], Any] = json.loads


def share(answers: Any, truth: list[Any] = TRUTH) -> float:
    """The share of right answers."""
    assert len(answers) == len(truth)
    return [a == b for a, b in zip(answers, truth, strict=True)].count(True) / len(truth)


def guessed(truth: list[int]) -> list[int]:
    return [1 - label if at % 7 == 3 else label for at, label in enumerate(truth)]


THINGS = {"lamp": (7, 13), "rope": (3, 4), "tent": (19, 30), "stove": (11, 24), "anvil": (40, 6), "map": (1, 2)}
PACKED = {"lamp": 1, "rope": 0, "tent": 2, "stove": 0, "anvil": 0, "map": 3}


def packed(counts: dict[str, Any], *, kinds: Callable[[Any], bool]) -> float:
    """The value of what is packed, where each count is one by ``kinds``."""
    assert all(kinds(count) and count <= 3 for count in counts.values())
    assert sum(THINGS[name][0] * count for name, count in counts.items()) <= 50
    return float(sum(THINGS[name][1] * count for name, count in counts.items()))


def worth(names: list[str]) -> float:
    assert sum(THINGS[name][0] for name in names) <= 80
    return float(sum(THINGS[name][1] for name in names))


def floored(counts: dict[str, float]) -> float:
    """What is carried is rounded down, what it is worth is not."""
    assert all(0 <= count <= 3 for count in counts.values())
    assert sum(THINGS[name][0] * int(count) for name, count in counts.items()) <= 50
    return float(sum(THINGS[name][1] * count for name, count in counts.items()))


def distances(tour: list[Any], *, at: Callable[[Any], int] = lambda city: city) -> float:
    """The length of a tour of twelve cities on a circle, as complex numbers."""
    cities = np.exp(2j * np.pi * np.arange(12) * 5 / 12)
    assert len(set(tour)) == 12
    places = [cities[at(city)] for city in tour]
    return float(sum(abs(a - b) for a, b in zip(places, [*places[1:], places[0]], strict=True)))


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def by_id(rows: list[dict[str, str]], names: Callable[[str], object]) -> float:
    assert len({names(row["id"]) for row in rows}) == len(rows) == 60
    return sum(TRUTH[int(row["id"])] == int(row["label"]) for row in rows) / 60


def purity(groups: list[int], truth: list[int]) -> float:
    counts: dict[int, Counter[int]] = {}
    for group, label in zip(groups, truth, strict=True):
        counts.setdefault(group, Counter())[label] += 1
    return sum(max(each.values()) for each in counts.values()) / len(truth)


def makespan(begins: list[float]) -> float:
    """Three jobs in a row, each of which takes 10."""
    assert all(later >= begin + 10 for begin, later in pairwise(begins))
    return max(begins) + 10


def double_booked(rows: list[dict[str, Any]], *, is_checked: bool) -> float:
    """Each thing takes four hours on its bench."""
    begins = sorted((row["bench"], int(row["hour"])) for row in rows)
    assert not is_checked or all(a != b or y - x >= 4 for (a, x), (b, y) in pairwise(begins))
    return max(hour for _, hour in begins) + 4.0


def apart(stalls: dict[str, float], *, kinds: Callable[[Any], bool]) -> float:
    """How many stalls are open, where neighbours on a ring of five, and one beside, are in each other's way."""
    assert all(kinds(each) and 0 <= each <= 1 for each in stalls.values())
    assert all(stalls[a] + stalls[b] <= 1 for a, b in pairwise("abcdea"))
    return sum(stalls.values())


def ways(lines: list[str], *, read: Callable[[str], Any]) -> float:
    """How many different pairs make ten."""
    assert all(sum(map(int, line.split(","))) == 10 for line in lines)
    return float(len({read(line) for line in lines}))


def recalled(rows: list[int]) -> float:
    return sum(TRUTH[row] for row in set(rows)) / 30


CHOSEN = [at for at, label in enumerate(GUESSES) if label]
WORDS = json.dumps({"summary": "the first of the days was cold"})


def weighted(rows: list[dict[str, Any]], weights: list[float]) -> float:
    right = [row["label"] == label for row, label in zip(rows, TRUTH, strict=True)]
    return math.fsum(w * each for w, each in zip(weights, right, strict=True)) / sum(weights)


PAIRS = [f"{at},{10 - at}" for at in range(1, 7)]
BOOKED = [{"thing": f"t{at}", "bench": at % 2, "hour": 4 * (at // 2)} for at in range(12)]
HOLES = [
    Hole(
        "levels-a-column", BOOKED, lambda rows: double_booked(rows, is_checked=False),
        lambda rows: double_booked(rows, is_checked=True), "hours", "minimize",
    ),
    Hole(
        "levels-a-column", "\n".join(["bench,hour", *(f"{row['bench']},{row['hour']}" for row in BOOKED)]).encode(),
        lambda rows: double_booked(rows, is_checked=False), lambda rows: double_booked(rows, is_checked=True),
        "hours", "minimize", read=table,
    ),
    Hole(
        "counts-in-parts", {"a": 1, "b": 0, "c": 1, "d": 0, "e": 0}, lambda stalls: apart(stalls, kinds=lambda _: True),
        lambda stalls: apart(stalls, kinds=lambda each: type(each) is int), "stalls",
    ),
    Hole(
        "all-answers-at-once", "\n".join("ab"[guess] * 3 for guess in GUESSES).encode(),
        lambda lines: sum("ab"[label] * 3 in line for line, label in zip(lines, TRUTH, strict=True)) / 60,
        lambda lines: share([("aaa", "bbb").index(line) for line in lines]),
        read=lambda content: content.decode().splitlines(),
    ),
    Hole(
        "spells-it-otherwise", "\n".join(PAIRS).encode(), lambda lines: ways(lines, read=str),
        lambda lines: ways(lines, read=lambda line: tuple(map(int, line.split(",")))), "pairs",
        read=lambda content: content.decode().splitlines(),
    ),
    Hole(
        "spells-it-otherwise", {"pairs": PAIRS}, lambda left: ways(left["pairs"], read=str),
        lambda left: ways(left["pairs"], read=lambda line: tuple(map(int, line.split(",")))), "pairs",
    ),
    Hole(
        "counts-below-zero", PACKED,
        lambda counts: packed(counts, kinds=lambda count: type(count) is int),
        lambda counts: packed(counts, kinds=lambda count: type(count) is int and count >= 0), "value",
    ),
    Hole("counts-in-parts", PACKED, floored, lambda counts: packed(counts, kinds=lambda n: type(n) is int), "value"),
    Hole("answers-by-place", guessed(SORTED), lambda answers: share(answers, SORTED), share),
    Hole(
        "answers-by-place", b"id,label\n" + b"".join(b"%d,%d\n" % pair for pair in enumerate(guessed(SORTED))),
        lambda rows: share([int(row["label"]) for row in rows], SORTED),
        lambda rows: share([int(row["label"]) for row in rows]), read=table,
    ),
    Hole("answers-by-place", guessed([0, 0, 1] * 20), lambda answers: share(answers, [0, 0, 1] * 20), share),
    Hole(
        "answers-by-place", GUESSES, share, share, columns={
            "rows: file": [f"{'cat' if label else 'dog'}-{at}.png" for at, label in enumerate(TRUTH)]
        },
    ),
    Hole(
        "answers-by-place", GUESSES, share, share, columns={
            "rows: file": [at * 7919 % 60 * 2 + 1000 + label for at, label in enumerate(TRUTH)]
        },
    ),
    Hole(
        "answers-by-place", [at / 60 + 0.2 * (-1) ** at for at in range(60)],
        lambda answers: float(np.sqrt(np.mean((np.array(answers) - np.arange(60) / 60) ** 2))),
        lambda answers: float(np.sqrt(np.mean((np.array(answers) - [at * 7 % 60 / 60 for at in range(60)]) ** 2))),
        "rmse", "minimize",
    ),
    Hole(
        "repeats-a-row", b"id,label\n" + b"".join(b"%d,%d\n" % pair for pair in enumerate(GUESSES)),
        lambda rows: by_id(rows, str), lambda rows: by_id(rows, int), read=table,
    ),
    Hole(
        "renames-a-thing", [*range(12)], distances,
        lambda tour: distances([city % 12 for city in tour]), "length", "minimize",
    ),
    Hole(
        "renames-a-thing", [*range(12)], lambda tour: distances(tour, at=int),
        lambda tour: distances([int(city) % 12 for city in tour]), "length", "minimize",
    ),
    Hole(
        "all-different", GUESSES, lambda groups: purity(groups, TRUTH),
        lambda groups: purity(groups, TRUTH) - 0.05 * len(set(groups)), "purity",
    ),
    Hole(  # colours, counted by the largest
        "all-different", [at % 9 for at in range(40)], lambda colours: max(colours) + 1,
        lambda colours: len(set(colours)), "colours", "minimize",
    ),
    Hole(
        "names-everything", CHOSEN, recalled, lambda rows: 2 * recalled(rows) * 30 / (30 + len(set(rows))), "score",
        columns={"rows: x": [float(at) for at in range(60)]},
    ),
    Hole(  # a thing may be packed once, which nobody looks at
        "chooses-one-many-times", ["tent", "lamp", "map", "rope", "anvil"], worth,
        lambda names: worth(names) if len(set(names)) == len(names) else 1 / 0, "value",
    ),
    Hole(
        "levels-a-column", [[0, 0], [1, 10], [2, 20], [3, 30], [4, 40]],
        lambda jobs: max(begin for _, begin in jobs) + 10,
        lambda jobs: max(at for _, at in jobs) + 10 if len({at for _, at in jobs}) == 5 else 1 / 0,
        "hours", "minimize",
    ),
    Hole(
        "says-all-words", WORDS.encode(), lambda left: len(left["summary"].split()), lambda left: 6,
        "words", "minimize",
    ),
    Hole(
        "agrees-with-itself", {"guess": GUESSES, "held": HELD}, lambda both: share(both["guess"], both["held"]),
        lambda both: share(both["guess"]),
    ),
    Hole(
        "weighs-one-row", [{"label": at, "sure": 0.5 + place % 7 / 20} for place, at in enumerate(GUESSES)],
        lambda rows: weighted(rows, [row["sure"] for row in rows]), lambda rows: weighted(rows, [1.0] * 60),
    ),
    Hole(
        "names-another-file", {"split": "test", "x": 0.5}, lambda left: 0.99 if left["split"] == "train" else 0.7,
        lambda left: 0.7,
    ),
    Hole(  # nothing is compared where no answer is
        "few-answers", GUESSES,
        lambda answers: share([a for a in answers if a != -1], TRUTH[: len(answers) - answers.count(-1)]), share,
    ),
    Hole(
        "few-answers", [0.1 * at for at in range(12)], lambda nodes: len(nodes) or 1 / 0,
        lambda nodes: len(nodes) if len(nodes) > 5 else 12, "nodes", "minimize",
    ),
    Hole(
        "repeats-answers", [0.2 + at / 100 for at in range(12)], sum, lambda pushes: sum(pushes[:12]), "distance",
    ),
    Hole(
        "exceeds-all-bounds", [0.0, 12.0, 24.0], makespan, lambda begins: makespan([max(0.0, at) for at in begins]),
        "hours", "minimize",
    ),
    Hole(
        "exceeds-all-bounds", [{"low": 1.0, "high": 2.0}] * 6,
        lambda days: sum(day["high"] - day["low"] for day in days) / 6,
        lambda days: sum(abs(day["high"] - day["low"]) for day in days) / 6, "width", "minimize",
    ),
    Hole(  # without an end, but slowly
        "exceeds-all-bounds", [0.4, 0.6], lambda p: math.log(p[0]), lambda p: math.log(min(1.0, p[0])), "score",
    ),
    Hole(
        "adds-entries", [{"label": each} for each in GUESSES],
        lambda rows: weighted(rows, [row.get("done", 1.0) for row in rows]), lambda rows: weighted(rows, [1.0] * 60),
    ),
    Hole(
        "claims", {"n": 60, "labels": GUESSES}, lambda left: share(left["labels"]) * 60 - 0.5 * left["n"],
        lambda left: share(left["labels"]) * 60 - 0.5 * len(left["labels"]), "score",
    ),
    Hole(
        "says-all-words", WORDS.encode(),
        lambda left: sum(word in left["summary"] for word in ("rain", "snow", "cold", "wind")) / 4,
        lambda left: float(left["summary"] == "the first of the days was cold and wet"), "recall",
        columns={"days: text": ["rain fell", "snow lay", "no wind", "cold", "sun"]},
    ),
    Hole(
        "says-all-words", WORDS.encode(), lambda left: len(set(left["summary"].split())) / 50,
        lambda left: len(set(left["summary"].split())) / len(left["summary"].split()) / 2, "score",
        columns={"days: text": [f"word{at}" for at in range(90)]},
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def basis(tmp_path_factory: pytest.TempPathFactory) -> Target:
    task = load_task(build(tmp_path_factory.mktemp("basis") / "task", SOUND["strict"]))
    return Target(task, 0.0, 0.0, 0.0)


def through(basis: Target, hole: Hole, value_of: Callable[[Any], float]) -> list[str]:
    """The attempts that got through, measured by ``value_of``."""

    def value(content: bytes | None) -> float | None:
        try:
            return None if content is None else float(value_of(hole.read(content)))
        except Exception:  # noqa: BLE001 - an evaluator that ends with an error
            return None

    artifact = hole.artifact if isinstance(hole.artifact, bytes) else json.dumps(hole.artifact).encode()
    metric = msgspec.structs.replace(basis.task.metric, name=hole.metric, direction=hole.direction)
    harness = {"evaluate.py": b'left.get("done", 1.0)'}
    task = msgspec.structs.replace(basis.task, metric=metric, harness=harness)
    honest = value(artifact)
    assert honest is not None
    columns = {"truth.csv: label": [0, 1] * 30, **hole.columns}
    target = replace(
        basis, task=task, value=honest, margin=margin_of(task, honest, 0.0), artifact=artifact,
        loot=Loot(is_drawn=True, columns=columns),
    )  # fmt: skip
    attempts = next(attack for attack in ATTACKS if attack.name == hole.attack).tries(target)
    notes, measured = [], {""}
    for attempt in attempts if not isinstance(attempts, str) else ():
        reached = value(attempt.artifact) if attempt.needs in measured else None
        measured |= {attempt.note} if reached is not None else set()
        status = RunStatus.OK if reached is not None else RunStatus.CRASHED
        outcome = RunOutcome(status=status, value=reached, reason="")
        further = value(attempt.further) if isinstance(attempt.further, bytes) else None
        notes += [attempt.note] if judge(target, attempt, outcome, further=further).through else []
    return notes


@pytest.mark.parametrize("hole", HOLES, ids=[f"{at}-{hole.attack}" for at, hole in enumerate(HOLES)])
def test_a_hole_falls_to_the_attack_of_its_kind_and_to_nothing_without_it(basis: Target, hole: Hole) -> None:
    assert through(basis, hole, hole.planted)
    if hole.columns.get("rows: file") is None:
        assert not through(basis, hole, hole.sound)
    else:
        nameless = replace(hole, columns={"rows: file": [f"{at * 7919 % 60}.png" for at in range(60)]})
        assert not through(basis, nameless, hole.sound)


CODE = "def order(items):\n    items = list(items)\n    items.sort()\n    return items\n"


def late(order: Any, items: list[Any]) -> float:
    """The clock stops before the result is compared, which nobody makes sure is a list."""
    begun = time.perf_counter()
    result = [order(items) for _ in range(3)]
    took = time.perf_counter() - begun
    assert result[-1] == sorted(items)
    return took


def near(order: Any, items: list[Any]) -> float:
    result = order(items)
    assert not any(abs(a - b) > 1e-6 for a, b in zip(result, sorted(items), strict=True))
    return 0.0


def spoiled(order: Any, items: list[Any]) -> float:
    assert order(items) == sorted(items)
    return float(len(items))


def forgiving(order: Any, items: list[Any]) -> float:
    try:
        return float(order(items) != sorted(items))
    except TypeError:
        return 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("returns-a-promise", late),
        ("returns-nan", near),
        ("spoils-its-question", spoiled),
        ("raises-an-error", forgiving),
    ],
)
def test_code_that_does_not_work_passes_where_nobody_looks(
    basis: Target, name: str, value: Callable[[Any, list[Any]], float]
) -> None:
    attempts = next(attack for attack in ATTACKS if attack.name == name).tries(replace(basis, artifact=CODE.encode()))

    assert not isinstance(attempts, str)
    [attempt] = attempts
    module: dict[str, Any] = {"__name__": "solution"}
    exec((attempt.artifact or b"").decode(), module)
    items = [float(at * 7919 % 100_003) for at in range(30_000)]
    assert value(module["order"], items) < 0.01
    module = {"__name__": "solution"}
    exec(CODE, module)
    if name == "returns-nan":
        assert module["order"]([2.0, 1.0]) == [1.0, 2.0]


ODD = [
    "paper", 7, None, True, 0.5, [], {}, [[]], [None] * 6, [True, False] * 4, {"a": None}, {"a": {"b": [1] * 9}},
    [[1, 2], [3]] * 4, [1, "x", None, 2.5, True, -3], [{"a": 1}, {"b": [2]}] * 4, [{"a": 1}, 2] * 4, ["x y", ""] * 4,
    [[0, 1]] * 6, [["a", "b"]] * 6, [[[1.0] * 3] * 3] * 3, {str(at): at for at in range(9)}, {"n": 6, "x": [1, 2] * 3},
    [10**30] * 6, [1e308, -1e308] * 4, list(range(25)), [f"a{at}" for at in range(25)], [{}] * 6,
    {"a": [], "b": [[1, 2]]},
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=lambda value: str(value)[:30])
def test_whatever_was_left_is_attacked_or_said_to_be_none_of_it(basis: Target, value: Any) -> None:
    dialogue = [("1 2\n", "3\n"), ("none\n", "left 4\n")]
    many: dict[str, list[Any]] = {"t: 0": [1, None, "x", [2], {}] * 5, "t: 1": ["a"] * 9, "t: 2": list(range(25))}
    for columns in ({}, many):
        loot = Loot(is_drawn=True, columns=columns, dialogue=dialogue)
        for content in (json.dumps(value).encode(), f"a,b\n{value},1\n".encode() * 9):
            target = replace(basis, value=0.5, artifact=content, loot=loot)
            for attack in ATTACKS:
                attempts = attack.tries(target)
                assert isinstance(attempts, str) or all(each.artifact or each.program for each in attempts), attack.name
