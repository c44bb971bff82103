"""How many samples a learner draws for each row that actors insert: neither side runs far ahead of the other."""

from __future__ import annotations

import threading

from autoresearch.errors import UsageError


class SamplesPerInsert:
    """Holds samples / rows near ``ratio``. Safe among threads.

    Actors' rows are refused while the learner is more than ``slack`` samples behind, and their ``update`` says False.
    The learner calls ``take`` before it draws, and waits there while it is as far ahead. Before ``min_size`` rows
    there is no limit on rows, and no sample.

    Raises:
        UsageError: the ratio is not above 0, or the slack is below one row's samples.
    """

    def __init__(self, ratio: float, min_size: int = 1, slack: float | None = None) -> None:
        self.ratio, self.min_size = ratio, min_size
        self.slack = max(ratio, 1.0) * 100 if slack is None else slack
        if not ratio > 0 or not self.slack >= ratio:
            raise UsageError(
                f"samples per insert {ratio:g} with slack {self.slack:g}",
                hint="a ratio above 0, and a slack of that many samples or more",
            )
        self.rows = 0
        self.samples = 0
        self._changed = threading.Condition()

    def has_room(self) -> bool:
        """Whether rows may be inserted now."""
        with self._changed:
            return self.rows < self.min_size or self._owed() <= self.slack

    def inserted(self, rows: int) -> None:
        """Note rows that were inserted."""
        with self._changed:
            self.rows += rows
            self._changed.notify_all()

    def take(self, samples: int, wait_s: float | None = None) -> bool:
        """Note samples that the learner will draw, as soon as it may. False where that is not within ``wait_s``."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._may_sample(samples), wait_s):
                return False
            self.samples += samples
            return True

    def _owed(self) -> float:
        """Samples that the learner is behind; rows before the first sample are not owed for."""
        return (self.rows - self.min_size) * self.ratio - self.samples

    def _may_sample(self, samples: int) -> bool:
        # A batch larger than the slack must pass as well: it is drawn when nothing is drawn ahead.
        return self.rows >= self.min_size and (samples - self._owed() <= self.slack or self._owed() >= 0)
