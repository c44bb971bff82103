"""A trained agent on its way: measured in two sandboxes, published, and written as a project again."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.project.exchange.fetching import write_run
from autoresearch.project.exchange.publishing import flat_program
from autoresearch.project.learned import pack_learned
from autoresearch.project.model import load_project
from autoresearch.project.runs.records import new_task, prepare_run, publish_run, request_of
from autoresearch.project.runs.running import Choices, do_project_run
from autoresearch.record.encoding import parse_id
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.runner import as_record
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.task.loading import load_task
from benchmarks.project_steps import learner

EPISODES, ROUNDS = 300, 20
START_MS = 1_800_000_000_000


def measure_exchange(*, quick: bool) -> dict[str, float]:
    """Milliseconds of measuring a learned state, of publishing it, and of writing it as a project, in the median."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        folder = learner(root / "project", "corridor")
        run = do_project_run(Choices(folder), "train", EPISODES, now_ms=lambda: START_MS)
        bench = Bench(detect_level()[0], 1, "cpu", root / "data", root / "scratch")
        prepared, learned = prepare_run(load_project(folder), run), root / "learned.zip"
        began = time.perf_counter()
        program, task = flat_program(prepared.project), new_task(prepared, {}, root / "task")
        pack_learned(run.folder / "data", learned)
        measured = as_record(Experiment(task, plan_as_it_stands(task, program), bench).measure(model=learned))
        evaluated = time.perf_counter()
        with Notebook(Paths.from_environment({"AUTORESEARCH_HOME": str(root / "home")}), lambda: START_MS) as notebook:
            shown = publish_run(notebook, request_of(prepared, task, program, learned, measured))
            published = time.perf_counter()
            harness = load_task(task.folder).harness
            record = notebook.log.records.get(parse_id(shown.record.id))
            took = []
            for number in range(3 if quick else ROUNDS):
                before = time.perf_counter()
                write_run(record, program, harness, learned, root / f"got-{number}", own=True)
                took.append(time.perf_counter() - before)
    return {
        "measure_run_ms": 1000 * (evaluated - began),
        "publish_run_ms": 1000 * (published - evaluated),
        "get_run_ms": 1000 * statistics.median(took),
    }
