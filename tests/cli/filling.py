"""A real notebook with a small history: a baseline, three steps, a crash, and a stranger who writes nasty things."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Run, RunOutcome
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.folders import write_task
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task, seed_for
from autoresearch.trust.keys import KeyPair
from autoresearch.words import RunStatus

START_MS = 1_795_000_000_000
TRAIN = "import prepare\n\nX = {x}\nprint('---')\nprint(f'val_bpb: {{X}}')\n"
NASTY = "evil \x1b[2J\x1b]0;owned\x07 \u202etxt\ttab\nnewline"


@dataclass(frozen=True)
class Filled:
    """The ids of the runs in the order in which they were published; the last is the stranger's."""

    task: Task
    ids: list[str]
    best: str
    crash: str
    stranger: str


def write_folder(folder: Path) -> Task:
    """A task folder in the shape of karpathy/autoresearch."""
    folder.mkdir(parents=True)
    (folder / "prepare.py").write_text("BUDGET = 1\n")
    (folder / "train.py").write_text(TRAIN.format(x=1.5))
    manifest = write_task(folder)
    text = manifest.read_text().replace("# floor = 0.0", "floor = 1.0").replace("# noise = 0.0", "noise = 0.01")
    manifest.write_text(text)
    return load_task(folder)


def fill(paths: Paths, folder: Path) -> Filled:
    """Publish the history with this home's own key, and one run with a stranger's."""
    task = write_folder(folder)
    with Notebook(paths) as notebook:
        notebook.publish_identity(START_MS)
        notebook.publish_task(task, START_MS)
        ids: list[str] = []
        steps: list[tuple[float, float | None, str]] = [
            (1.5, 1.5, "the baseline"),
            (1.4, 1.4, "lower X"),
            (9.9, None, "raise X"),
            (1.3, 1.3, "lower X again"),
            (1.45, 1.45, "halfway back"),
        ]
        for number, (x, value, title) in enumerate(steps):
            parent = notebook.log.records.resolve(ids[-1 if number != 3 else 1]) if ids else None
            plan = plan_as_it_stands(
                task, TRAIN.format(x=x), title=title, parent=parent, genome={"X": x}, hypothesis=f"X should be {x}"
            )
            published = notebook.publish_run(plan, measured(value), START_MS + 60_000 * number, log=b"step 1\n---\n")
            ids.append(format_id(published.record.id))
        stranger = notebook.log.writer.append(
            KeyPair.from_seed(b"s" * 32),
            "run",
            nasty_run(task, notebook.log.records.resolve(ids[0])),
            now_ms=START_MS + 600_000,
        )
    return Filled(task, ids, best=ids[3], crash=ids[2], stranger=format_id(stranger.id))


def measured(value: float | None) -> RunOutcome:
    """A measurement as the sandbox makes it."""
    return RunOutcome(
        status=RunStatus.CRASHED if value is None else RunStatus.OK,
        reason="ValueError: X is too large" if value is None else "",
        value=value,
        metrics={} if value is None else {"steps": 12},
        duration_ms=61_000,
        cpu_ms=60_000,
        peak_memory_bytes=3 << 30,
        sandbox=2,
        device="a processor",
        environment={"python": "3.11"},
    )


def nasty_run(task: Task, parent: bytes) -> Run:
    """A valid run full of control characters, with a source that is not on this machine."""
    return Run(
        task=task.digest,
        status="ok",
        value=1.35,
        source=BlobRef(sha256=b"\x01" * 32, size=10),
        source_digest=b"\x02" * 32,
        device="a processor",
        parent=parent,
        seed=seed_for(task.digest, b"\x02" * 32, 0),
        budget=float(task.budget.amount),
        title=NASTY,
        hypothesis=NASTY,
        genome={"X": 1.35, NASTY[:40]: NASTY},
    )
