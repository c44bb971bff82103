#!/usr/bin/env python
# Logistic regression with random Fourier features on two rings. Plain Python, no dependencies.
import argparse
import math
import random

NOISE = 0.15
defaults = {"momentum": 0.9, "random_state": 0, "print_every": 5}
palette = {"red": 3, "blue": 4}


def parse():
    p = argparse.ArgumentParser(description="rings")
    p.add_argument("--lr", "--learning-rate", type=float, default=0.003)
    p.add_argument("--alpha", type=float, default=1e-2, help="L2 penalty, e.g. 1e-4 # not a range")
    p.add_argument("--n-features", type=int, default=2, help="columns of the data")
    p.add_argument("--hidden", type=int, default=16)
    p.add_argument("--bandwidth", type=float, default=0.3)  # 0.1 .. 10
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--kernel", choices=["rbf", "cauchy"], default="rbf")
    p.add_argument("--power", type=int, choices=[1, 2], default=1)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--test-size", type=float, default=0.3)
    p.add_argument("--n-samples", type=int, default=400)
    p.add_argument("--n_jobs", type=int, default=1)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--verbose", type=int, default=1)
    return p.parse_args()


def rings(n, rng):
    """Points of two classes; the second lies in a ring around the first."""
    rows = []
    for i in range(n):
        radius, angle = 1.0 + (i % 2) * 0.8 + rng.gauss(0, NOISE), rng.uniform(0, 2 * math.pi)
        rows.append(([radius * math.cos(angle), radius * math.sin(angle)], i % 2))
    rng.shuffle(rows)
    return rows


def main():
    args = parse()
    rng = random.Random(args.seed)
    rows = rings(args.n_samples, rng)
    cut = int(len(rows) * args.test_size)
    test, train = rows[:cut], rows[cut:]

    rng = random.Random(defaults["random_state"])
    draw = rng.gauss if args.kernel == "rbf" else lambda m, s: math.tan(math.pi * (rng.random() - 0.5)) * s
    waves = [
        ([draw(0, args.bandwidth) for _ in range(args.n_features)], rng.uniform(0, 2 * math.pi))
        for _ in range(args.hidden)
    ]

    def features(x):
        return [math.cos(sum(w * v for w, v in zip(ws, x)) + b) ** args.power for ws, b in waves] + [1.0]

    train = [(features(x), y) for x, y in train]
    test = [(features(x), y) for x, y in test]
    weights, speed = [0.0] * (args.hidden + 1), [0.0] * (args.hidden + 1)

    def probability(x):
        z = sum(w * v for w, v in zip(weights, x))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))

    for epoch in range(args.epochs):
        rng.shuffle(train)
        for at in range(0, len(train), args.batch_size):
            part = train[at:at + args.batch_size]
            gradient = [args.alpha * w for w in weights]
            for x, y in part:
                error = (probability(x) - y) / len(part)
                gradient = [g + error * v for g, v in zip(gradient, x)]
            speed = [defaults["momentum"] * s - args.lr * g for s, g in zip(speed, gradient)]
            weights = [w + s for w, s in zip(weights, speed)]
        if args.verbose and epoch % defaults["print_every"] == 0:
            print(f"epoch {epoch}")

    losses = [-math.log(max(1e-9, probability(x) if y else 1 - probability(x))) for x, y in test]
    print("---")
    print(f"test_loss: {sum(losses) / len(losses):.6f}")


if __name__ == "__main__":
    main()
