"""The clock of this machine."""

import time


def now_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
