"""``train``: trains the project in the working folder for the budget's episodes and leaves ``learned.zip`` there.

It goes on from ``begin.zip`` where that lies in the folder.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.projects.exchange.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.projects.inside.folder import flat_project
from autoresearch.projects.inside.telling import Teller
from autoresearch.projects.model import require_parts
from autoresearch.projects.own_process.episodes import Session
from autoresearch.projects.own_process.messages import Order
from autoresearch.projects.runs.kept import carry_files


def main() -> None:
    """Train, with the seed and the episodes that the environment's variables say.

    Raises:
        UsageError: a variable is missing or no number.
        AutoresearchError: the project can't be trained.
    """
    here = Path.cwd()
    episodes, seed = _number("AUTORESEARCH_BUDGET"), int(_number("AUTORESEARCH_SEED"))
    asked = max(1, math.ceil(episodes * _number("AUTORESEARCH_STOP_AT", "1")))
    project = flat_project(here)
    require_parts(project, training=True)
    with tempfile.TemporaryDirectory(dir=here) as scratch:
        begin, out = Path(scratch, "begin"), Path(scratch, "out")
        out.mkdir()
        if (here / BEGIN).exists():
            unpack_learned(here / BEGIN, begin)
        order = Order(
            project=project,
            mode="train",
            episodes=asked,
            seed=seed,
            learned=str(begin) if begin.exists() else "",
            out=str(out),
        )
        teller = Teller(episodes)
        done = Session(order, teller.figures, lambda: False).run()
        carry_files(begin, out)
        pack_learned(out, here / LEARNED)
        teller.result(done)


def _number(name: str, otherwise: str = "") -> float:
    text = os.environ.get(name, otherwise)
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise UsageError(f"the variable {name} must be a number from 0, not “{text}”")
    return found
