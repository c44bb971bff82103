"""Search problems drawn from a seed: functions of settings that cost nothing, and trainings that take milliseconds.

The function's optimum may differ with a word setting, settings may count with one word only, two settings may lie in a
valley, values may ripple, come in steps or with noise, and trials may fail by a relation of two settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Space, space_of
from autoresearch.propose.search.moves import anywhere
from benchmarks.search_spaces import Evaluate
from benchmarks.unseen_trainings import FAMILIES

COUNTS = (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20)
WORDS = "abcdef"


@dataclass(frozen=True, slots=True)
class Problem:
    """A space with its first point, the exact value of each genome (smaller is better), and how far a trial is off."""

    name: str
    space: Space
    value: Evaluate
    """Raises ValueError where the trial fails."""
    noise: float = 0.0


def function(seed: int) -> Problem:
    """A drawn function of 3 to 20 settings."""
    dice = np.random.default_rng([1, seed])
    count = int(dice.choice(COUNTS))
    kinds = list(dice.choice(["float", "log", "int", "word"], count, p=[0.3, 0.3, 0.2, 0.2]))
    kinds[0] = "float"
    if dice.random() < 0.8:
        kinds[int(dice.integers(1, count))] = "word"
    lines = [_line(f"X{at}", kind, dice) for at, kind in enumerate(kinds)]
    space = space_of("\n".join(lines) + "\n")
    landscape = _landscape(space, dice)
    scale = 10.0 ** dice.uniform(-2, 2)
    form, fails = _form(dice), _failing(space, dice)

    def value(genome: Mapping[str, Any]) -> float:
        if fails(genome):
            raise ValueError("a trial that fails")
        return float(scale * form(landscape.at(genome)))

    noise = 0.0
    if dice.random() < 0.3:
        sample = _works(space, value, 40, Draws(b"spread", str(seed).encode()))
        noise = float(dice.uniform(0.01, 0.06) * np.subtract(*np.percentile([score for score, _ in sample], [75, 25])))
    return Problem(f"function-{seed}", _begun(space, value, seed, poor=bool(dice.random() < 0.5)), value, noise)


def training(seed: int) -> Problem:
    """A drawn training: its family, its data and its first point."""
    dice = np.random.default_rng([2, seed])
    name = list(FAMILIES)[int(dice.integers(len(FAMILIES)))]
    text, value = FAMILIES[name](dice)
    space = _begun(space_of(text), value, seed, poor=bool(dice.random() < 0.5))
    return Problem(f"{name}-{seed}", space, value)


def _line(name: str, kind: str, dice: np.random.Generator) -> str:
    """A setting with its range, as a program states it."""
    if kind == "word":
        return f'{name} = "a"  # one of {" ".join(WORDS[: dice.integers(2, 7)])}'
    if kind == "log":
        low = 10.0 ** int(dice.integers(-6, 1))
        high = low * 10.0 ** int(dice.integers(2, 6))
        return f"{name} = {low!r}  # log [{low!r}, {high!r}]"
    low, wide = int(dice.integers(0, 5)), int(dice.choice([4, 8, 20, 60]))
    if kind == "int":
        return f"{name} = {low}  # int [{low}, {low + wide}]"
    return f"{name} = {float(low)}  # float [{float(low)}, {float(low + wide)}]"


@dataclass(slots=True)
class _Landscape:
    """A sum of terms that are 0 at the optimum, which lies at one place for each word."""

    space: Space
    bowls: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of a number: how much it counts, and the power of its distance from the best place."""
    best: dict[str, float] = field(default_factory=dict)
    shifted: dict[str, tuple[str, dict[str, float]]] = field(default_factory=dict)
    """Of a number: the word setting that says where its best place is."""
    active: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of a number: the word with which alone it counts."""
    losses: dict[str, dict[str, float]] = field(default_factory=dict)
    valleys: list[tuple[str, str, float, float]] = field(default_factory=list)
    ripples: dict[str, tuple[float, int]] = field(default_factory=dict)

    def at(self, genome: Mapping[str, Any]) -> float:
        """The sum at a genome; 0 at the optimum, about 1 in the middle of the space."""
        total = sum(losses[genome[name]] for name, losses in self.losses.items())
        away: dict[str, float] = {}
        for name, (weight, power) in self.bowls.items():
            best = self.best[name]
            if name in self.shifted:
                word, places = self.shifted[name]
                best = places[genome[word]]
            away[name] = self.space.parameters[name].place(genome[name]) - best
            if name in self.active and genome[self.active[name][0]] != self.active[name][1]:
                away[name] = 0.0
            total += weight * abs(away[name]) ** power
            if name in self.ripples:
                height, waves = self.ripples[name]
                total += weight * height * (1 - math.cos(2 * math.pi * waves * away[name]))
        for first, second, weight, slope in self.valleys:
            total += weight * (away[first] + slope * away[second]) ** 2
        return total


def _landscape(space: Space, dice: np.random.Generator) -> _Landscape:
    made = _Landscape(space)
    names = [str(name) for name in dice.permutation(list(space.parameters))]
    numbers = [name for name in names if space.parameters[name].ordered]
    words = [name for name in names if name not in numbers]
    # how much settings count falls fast: in most programs a few matter
    fall = dice.uniform(0.55, 0.95)
    weights = {name: float(fall**at * dice.uniform(0.5, 1.5)) for at, name in enumerate(names)}
    for name in numbers:
        power = float(dice.choice([1.0, 1.5, 2.0]))
        made.bowls[name] = (weights[name] * 2**power, power)
        made.best[name] = float(dice.uniform(0.03, 0.97))
        if dice.random() < 0.15:
            made.ripples[name] = (float(dice.uniform(0.05, 0.3)), int(dice.integers(2, 5)))
    for word in words:
        choices = [str(choice) for choice in space.parameters[word].range.choices]
        losses = np.sort(dice.uniform(0, 1, len(choices)))
        order = dice.permutation(len(choices))
        made.losses[word] = {
            choices[at]: weights[word] * float(loss - losses[0]) for at, loss in zip(order, losses, strict=True)
        }
        if dice.random() < 0.6:
            for name in dice.choice(numbers, min(len(numbers), int(dice.integers(1, 3))), replace=False):
                made.shifted[str(name)] = (word, {choice: float(dice.uniform(0.03, 0.97)) for choice in choices})
        if dice.random() < 0.4:
            made.active[str(dice.choice(numbers))] = (word, str(dice.choice(choices)))
    for _ in range(int(dice.integers(0, 1 + len(numbers) // 2))):
        if len(numbers) > 1:
            first, second = (str(name) for name in dice.choice(numbers, 2, replace=False))
            weight = weights[first] * float(dice.uniform(1, 4))
            made.valleys.append((first, second, weight, float(dice.choice([-1, 1]) * dice.uniform(0.5, 2))))
    whole = math.fsum(weights.values()) / 2
    made.bowls = {name: (weight / whole, power) for name, (weight, power) in made.bowls.items()}
    made.losses = {name: {at: loss / whole for at, loss in losses.items()} for name, losses in made.losses.items()}
    made.valleys = [(first, second, weight / whole, slope) for first, second, weight, slope in made.valleys]
    return made


def _form(dice: np.random.Generator) -> Callable[[float], float]:
    """How the value follows from the sum: straight, as losses grow, in steps, or flat where all is lost."""
    floor, kind = float(dice.uniform(0, 2)), str(dice.choice(["straight", "loss", "steps", "flat"]))
    steps, roof, steep = int(dice.choice([30, 60, 120])), float(dice.uniform(0.5, 1.0)), float(dice.uniform(1, 4))
    forms: dict[str, Callable[[float], float]] = {
        "straight": lambda total: floor + total,
        "loss": lambda total: floor + math.expm1(min(50.0, steep * total)),
        "steps": lambda total: floor + math.ceil(steps * (1 - math.exp(-total))) / steps,
        "flat": lambda total: floor + min(roof, total),
    }
    return forms[kind]


def _failing(space: Space, dice: np.random.Generator) -> Callable[[Mapping[str, Any]], bool]:
    """Which genomes fail: none, or 10 to 35 in a hundred by a relation of two settings."""
    numbers = [name for name, parameter in space.parameters.items() if parameter.ordered]
    words = [name for name, parameter in space.parameters.items() if not parameter.ordered]
    share, kind = float(dice.uniform(0.1, 0.35)), dice.random()
    first, second = (str(name) for name in dice.choice([*numbers, *numbers], 2, replace=False))
    up, down = (float(dice.choice([-1, 1])) for _ in range(2))
    word = str(dice.choice(words)) if words else ""
    choice = str(dice.choice([str(each) for each in space.parameters[word].range.choices])) if words else ""
    if kind < 0.5:
        return lambda _: False
    place = {name: parameter.place for name, parameter in space.parameters.items()}
    if words and kind < 0.65:
        return lambda genome: genome[word] == choice and up * (place[first](genome[first]) - 0.5) > 0.3 - share
    draws = Draws(b"failing", str(share).encode())
    drawn = [anywhere(list(space.parameters.values()), draws) for _ in range(400)]

    def sum_of(genome: Mapping[str, Any]) -> float:
        return up * place[first](genome[first]) + down * place[second](genome[second])

    bound = float(np.quantile([sum_of(genome) for genome in drawn], 1 - share))
    return lambda genome: sum_of(genome) > bound


def _works(space: Space, value: Evaluate, count: int, draws: Draws) -> list[tuple[float, Genome]]:
    """So many genomes from anywhere that work, with their values."""
    made: list[tuple[float, Genome]] = []
    while len(made) < count:
        genome = anywhere(list(space.parameters.values()), draws)
        try:
            made.append((value(genome), genome))
        except ValueError:
            continue
    return made


def _begun(space: Space, value: Evaluate, seed: int, *, poor: bool) -> Space:
    """The space with its first point: the worst of four draws, or the second of four."""
    made = sorted(_works(space, value, 4, Draws(b"first", str(seed).encode())), key=lambda each: each[0])
    source = space.build(made[3 if poor else 1][1])
    if source is None:
        raise ValueError("the first point can't be built")
    return space_of(source)
