"""Token buckets: they say how long to wait, nobody is cut off. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """``rate`` tokens a second, at most ``burst`` of them saved up. ``now`` is any monotonic clock in seconds."""

    rate: float
    burst: float
    now: float
    _level: float = field(init=False)

    def __post_init__(self) -> None:
        self._level = self.burst

    def take(self, amount: float, now: float) -> float:
        """Take tokens, on credit if there are none. Returns the seconds to wait before going on."""
        self._level = min(self.burst, self._level + (now - self.now) * self.rate) - amount
        self.now = now
        return max(0.0, -self._level / self.rate)
