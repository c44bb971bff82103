"""The daemon, in a hurry: it looks after its jobs each second, and gives up after seconds instead of minutes."""

from __future__ import annotations

import sys
from functools import partial

from autoresearch_daemon import main, node
from autoresearch_daemon.elsewhere import executor_of

ABSENT_SECONDS = 8.0


def hasty(settings):
    made = executor_of(settings)
    made.absences.seconds = ABSENT_SECONDS
    return made


if __name__ == "__main__":
    node.executor_of = hasty
    node.Elsewhere = partial(node.Elsewhere, look_seconds=1.0)
    sys.exit(main.main())
