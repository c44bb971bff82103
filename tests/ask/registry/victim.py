"""Writes a component until somebody kills it: ``python -m tests.ask.registry.victim FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from autoresearch.ask.registry.installing import write_tree
from autoresearch.task.release import File

COUNT = 2000

if __name__ == "__main__":
    write_tree([File(f"part{number % 7}/file{number}.py", b"x" * 2000) for number in range(COUNT)], Path(sys.argv[1]))
