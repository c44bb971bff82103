"""The fixed part: draws the points, counts the work, measures the loss. Nobody edits it.

A point lies on one of two half moons, with noise. The budget is multiplications, so a run is a function of program and seed.
"""

import json
import math
import os
import random
import time

SEED = int(os.environ.get("AUTORESEARCH_SEED", "0"))
WORK = float(os.environ.get("AUTORESEARCH_BUDGET", "4e6"))
NOISE, TEST_POINTS = 0.25, 2000
DIVERGED = 20.0


def point(dice):
    """A point and its moon, 0 or 1."""
    moon, angle = dice.randrange(2), math.pi * dice.random()
    x, y = (math.cos(angle), math.sin(angle)) if moon == 0 else (1 - math.cos(angle), 0.5 - math.sin(angle))
    return x + dice.gauss(0, NOISE), y + dice.gauss(0, NOISE), moon


def emit(**event):
    """One event to the runner, or to a person who started the program."""
    channel = os.environ.get("AUTORESEARCH_RESULT_FD")
    if channel is None:
        print(event)
        return
    with os.fdopen(int(channel), "w", closefd=False) as file:
        print(json.dumps(event, allow_nan=False), file=file)


def points(weights, loss):
    """New points until the budget is spent: one costs three multiplications a weight. ``loss()`` is a recent loss."""
    dice, count = random.Random(SEED), max(1, int(WORK / (3 * max(1, weights))))
    told = time.monotonic()
    for number in range(count):
        yield point(dice)
        if number == 0 or time.monotonic() - told > 0.5:
            told = time.monotonic()
            emit(event="progress", fraction=(number + 1) / count, step=number + 1, loss=_bounded(loss()))


def finish(probability):
    """Measure ``probability(x, y)`` of moon 1 on points that are the same for every run, in bits, and report it."""
    dice, bits = random.Random("test"), 0.0
    for _ in range(TEST_POINTS):
        x, y, moon = point(dice)
        p = probability(x, y)
        bits -= math.log2(max(p if moon else 1 - p, 2**-DIVERGED)) / TEST_POINTS
    if math.isfinite(bits):
        emit(event="result", status="ok", value=bits, metrics={}, curve=[bits])
    else:
        emit(event="result", status="diverged", reason="the loss is not a finite number", metrics={}, curve=[])


def _bounded(loss):
    return round(min(loss, DIVERGED), 5) if math.isfinite(loss) else DIVERGED
