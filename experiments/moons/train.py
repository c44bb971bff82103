"""A small network in plain Python learns which of two moons a point lies on. This file may change."""

import math

import prepare

HIDDEN = 6
LEARNING_RATE = 0.002
MOMENTUM = 0.0

# Weights of x, y, 1, and of the output. The units look into all directions, whatever the seed.
turns = [2 * math.pi * k / HIDDEN for k in range(HIDDEN)]
rows = [[math.cos(turn), math.sin(turn), 0.5 * (-1) ** k, 0.0] for k, turn in enumerate(turns)]
speeds = [[0.0] * 4 for _ in range(HIDDEN)]
bias, bias_speed, recent = 0.0, 0.0, 1.0


def forward(x, y):
    """What each hidden unit says, and the probability of moon 1."""
    units = [math.tanh(a * x + b * y + c) for a, b, c, _ in rows]
    score = bias + sum(row[3] * unit for row, unit in zip(rows, units))
    return units, 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))


for x, y, moon in prepare.points(4 * HIDDEN + 1, lambda: recent):
    units, p = forward(x, y)
    error = p - moon
    recent = 0.99 * recent - 0.01 * math.log2(max(p if moon else 1 - p, 1e-9))
    for row, speed, unit in zip(rows, speeds, units):
        slope = error * row[3] * (1 - unit * unit)
        for k, gradient in enumerate((slope * x, slope * y, slope, error * unit)):
            speed[k] = MOMENTUM * speed[k] - LEARNING_RATE * gradient
            row[k] += speed[k]
    bias_speed = MOMENTUM * bias_speed - LEARNING_RATE * error
    bias += bias_speed

prepare.finish(lambda x, y: forward(x, y)[1])
