"""A task that takes milliseconds: find X. Its harness is real, its programs run in the real sandbox."""

from __future__ import annotations

import hashlib
from pathlib import Path

HARNESS = """
import json
import os


def progress(value):
    with os.fdopen(int(os.environ["AUTORESEARCH_RESULT_FD"]), "w", closefd=False) as channel:
        channel.write(json.dumps({"event": "progress", "fraction": 0.5, "step": 1, "loss": value}) + "\\n")


def report(value, **metrics):
    progress(value)
    with os.fdopen(int(os.environ["AUTORESEARCH_RESULT_FD"]), "w") as channel:
        event = {"event": "result", "status": "ok", "value": value, "metrics": metrics, "curve": [value]}
        channel.write(json.dumps(event) + "\\n")
"""

TRAIN = """
import prepare

X = 0.9  # float [0.0, 1.0]
Y = 0.1  # float [0.0, 1.0]

prepare.report((X - 0.3) ** 2 + (Y - 0.6) ** 2, steps=1)
"""

# Long enough that nodes which search without end don't keep the processor busy while they wait for each other.
SECOND_TRAIN = TRAIN.replace("import prepare", "import time\n\nimport prepare\n\ntime.sleep(1)")

SLOW_TRAIN = """
import time

import prepare

X = 0.9  # float [0.0, 1.0]
prepare.progress(X)
time.sleep(600)
prepare.report(X)
"""


def write_toy_task(folder: Path, train: str = TRAIN, harness: str = HARNESS) -> Path:
    """A task folder in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prepare.py").write_text(harness)
    (folder / "train.py").write_text(train)
    digest = hashlib.sha256(harness.encode()).hexdigest()
    (folder / "task.toml").write_text(
        f"""
name = "toy"
[metric]
name = "distance"
direction = "minimize"
floor = 0.0
noise = 0.001
[budget]
unit = "work"
amount = 1.0
[limits]
seconds = 60
memory_mib = 512
[harness]
"prepare.py" = "{digest}"
"""
    )
    return folder
