"""A small task folder to spoil."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

PREPARE = "TIME_BUDGET = 300\n"
MANIFEST = f"""\
name = "tiny"
summary = "A tiny task."

[metric]
name = "val_bpb"
direction = "minimize"
floor = 0.5

[budget]
unit = "work"
amount = 1000

[limits]
seconds = 60

[harness]
"prepare.py" = "{hashlib.sha256(PREPARE.encode()).hexdigest()}"

[data]
"train.bin" = "{"ab" * 32}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prepare.py").write_text(PREPARE)
    (tmp_path / "train.py").write_text("LR = 0.1\n")
    (tmp_path / "task.toml").write_text(MANIFEST)
    return tmp_path
