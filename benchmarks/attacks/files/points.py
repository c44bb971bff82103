"""Points in a square, and on which side of a curve each lies; one label in ten is wrong."""

import random


def points(seed: int, count: int) -> list[tuple[float, float, int]]:
    """So many, with x, y and the side."""
    dice = random.Random(seed)
    rows = []
    for _ in range(count):
        x, y = dice.random(), dice.random()
        rows.append((x, y, int(x * x + y > 0.8) ^ int(dice.random() < 0.1)))
    return rows
