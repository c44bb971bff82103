"""2048: slide the tiles of a board; equal ones that meet become one. https://en.wikipedia.org/wiki/2048_(video_game)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from autoresearch.project.interfaces import Environment
from autoresearch.services.spaces import Discrete

# Exponents of tiles are below it: the largest tile of a board of 4 is 2**17.
ILLEGAL = 18


class Game2048(Environment):
    """Actions are left, up, right, down. The reward is the sum of the tiles that were made.

    An observation is the board as each action sees it, turned so that its tiles slide to the left. It has the exponent
    of each tile, 0 for none. Where an action would slide nothing its board is full of ``ILLEGAL``, and the next
    direction clockwise is taken in its place: ``info["action"]`` says which it was.
    """

    def __init__(self, size: int = 4) -> None:
        self.size = size
        self.action_space = Discrete(4)
        self.observation_space = Discrete(ILLEGAL + 1, (4, size, size))
        self.board = np.zeros((size, size), np.int64)
        self.moves: dict[int, tuple[Any, float]] = {}
        self.random = np.random.default_rng()

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        """An empty board with two tiles."""
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.board = np.zeros((self.size, self.size), np.int64)
        self.add_tile()
        self.add_tile()
        return self.views(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Slide the tiles."""
        taken = next(each % 4 for each in range(int(action), int(action) + 4) if each % 4 in self.moves)
        self.board, reward = self.moves[taken]
        self.add_tile()
        return self.views(), reward, not self.moves, False, {"action": taken}

    def views(self) -> Any:
        """The board as each action sees it; what each legal one leads to is noted in ``moves``."""
        self.moves = {}
        views = np.full(self.observation_space.shape, ILLEGAL)
        for action in range(4):
            turned = np.rot90(self.board, action)
            rows = [slid_row(tuple(row)) for row in turned.tolist()]
            slid = np.array([row for row, _ in rows])
            if not np.array_equal(slid, turned):
                views[action] = turned
                self.moves[action] = np.rot90(slid, -action), float(sum(reward for _, reward in rows))
        return views

    def add_tile(self) -> None:
        """Put a 2, or seldom a 4, on an empty place."""
        empty = np.flatnonzero(self.board == 0)
        self.board.flat[empty[self.random.integers(len(empty))]] = 1 if self.random.random() < 0.9 else 2


@cache
def slid_row(row: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """A row whose tiles slid to its beginning, and the sum of the tiles that were made."""
    tiles, merged, reward = [tile for tile in row if tile], list[int](), 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tiles.pop(0)
            tile += 1
            reward += 2**tile
        merged.append(tile)
    return (*merged, *[0] * (len(row) - len(merged))), reward
