"""2048: slide the tiles of a board; equal ones that meet become one. https://en.wikipedia.org/wiki/2048_(video_game)."""

from __future__ import annotations

from typing import Any

import numpy as np

from autoresearch.project.interfaces import Environment
from autoresearch.services.spaces import Discrete


class Game2048(Environment):
    """Actions are left, up, right, down. The reward is the sum of the tiles that were made.

    An observation has the exponent of each tile, 0 for none. After ``patience`` moves in a row that move nothing the
    episode is cut.
    """

    def __init__(self, size: int = 4, patience: int = 10) -> None:
        self.size, self.patience = size, patience
        self.action_space = Discrete(4)
        self.observation_space = np.zeros((size, size), np.int64)  # its shape is what policies look at
        self.board = self.observation_space
        self.idle = 0
        self.random = np.random.default_rng()

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        """An empty board with two tiles."""
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.board, self.idle = np.zeros((self.size, self.size), np.int64), 0
        self.add_tile()
        self.add_tile()
        return self.board.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Slide the tiles."""
        board, reward = self.slid(int(action))
        moved = not np.array_equal(board, self.board)
        self.idle = 0 if moved else self.idle + 1
        if moved:
            self.board = board
            self.add_tile()
        return self.board.copy(), reward, self.is_over(), self.idle >= self.patience, {"moved": moved}

    def add_tile(self) -> None:
        """Put a 2, or seldom a 4, on an empty place."""
        empty = np.argwhere(self.board == 0)
        row, column = empty[self.random.integers(len(empty))]
        self.board[row, column] = 1 if self.random.random() < 0.9 else 2

    def slid(self, action: int) -> tuple[Any, float]:
        """The board after a move, and the sum of the tiles that it made."""
        turned, reward = np.rot90(self.board, action), 0.0
        rows = []
        for row in turned.tolist():
            tiles = [tile for tile in row if tile]
            merged: list[int] = []
            while tiles:
                tile = tiles.pop(0)
                if tiles and tiles[0] == tile:
                    tiles.pop(0)
                    tile += 1
                    reward += 2**tile
                merged.append(tile)
            rows.append(merged + [0] * (self.size - len(merged)))
        return np.rot90(np.array(rows, np.int64), -action), reward

    def is_over(self) -> bool:
        """Whether no move is left."""
        board = self.board
        full, beside, below = (board != 0).all(), (board[:, 1:] == board[:, :-1]).any(), (board[1:] == board[:-1]).any()
        return bool(full and not beside and not below)
