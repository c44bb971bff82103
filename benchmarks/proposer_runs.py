"""Real training runs for the proposer's benchmark, without importing torch again for each.

The parent imports torch once and forks a child per run. The child trains as a run under the daemon does, with the same
seed and budget; then it measures itself, as `python train.py` does. Sandbox and referee are left out: the sources are
our own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from autoresearch.task.printed import read_metric

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
METRIC = "val_bpb"
# Processor seconds, not wall clock: a busy machine must not turn a good run into a failure.
CPU_SECONDS = 240


class Trainer:
    """Runs sources of the shipped task at one budget (work units), one at a time.

    A run repeats bit by bit, so that one with a source and a seed that had their run before is not done again.
    ``documents``: so many of the validation text measure it; all of them without it.
    """

    def __init__(self, *, budget: float, data: Path, documents: int | None = None) -> None:
        # the child inherits these modules; it must import prepare itself, which reads its environment once
        import safetensors.torch  # noqa: F401
        import torch
        import torch._inductor  # a child would load it, for four seconds
        import torch.utils.flop_counter

        torch.set_num_threads(1)
        self._budget = budget
        self._data = data
        self._values: dict[tuple[str, int], float | None] = {}
        subprocess.run(
            [sys.executable, str(EXPERIMENTS / "prepare.py")],
            env={**os.environ, "AUTORESEARCH_DATA": str(data)},
            check=True,
            stderr=subprocess.DEVNULL,
        )
        if documents is not None:
            os.truncate(data / "val.bin", documents * 256)

    def value(self, source: str, *, seed: int) -> float | None:
        """The metric of one run, or None when it did not end well."""
        if (source, seed) not in self._values:
            self._values[source, seed] = self._run(source, seed)
        return self._values[source, seed]

    def _run(self, source: str, seed: int) -> float | None:
        sys.stdout.flush()  # or the child would say it again
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            self._child(source, seed, writer)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
            printed = pipe.read()
        os.waitpid(child, 0)
        return read_metric(printed, METRIC).value

    def _child(self, source: str, seed: int, writer: int) -> None:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(writer, 1)
            os.dup2(silence, 2)
            os.environ.update(
                AUTORESEARCH_SEED=str(seed),
                AUTORESEARCH_BUDGET=repr(self._budget),
                AUTORESEARCH_THREADS="1",
                AUTORESEARCH_DATA=str(self._data),
            )
            sys.path.insert(0, str(EXPERIMENTS))
            sys.modules.pop("prepare", None)
            exec(compile(source, "train.py", "exec"), {"__name__": "__main__"})
            status = 0
        except SystemExit as end:
            status = int(end.code == 0)
        finally:
            sys.stdout.flush()
            os._exit(status)
