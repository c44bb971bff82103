"""A training or benchmark run of a project, from its ``agent.ini`` to the folder that keeps it."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from autoresearch.errors import AutoresearchError
from autoresearch.projects.messages import Checked, Figures, Mode, Order
from autoresearch.projects.model import AGENT, load_project
from autoresearch.projects.parameters import parameters_text, with_parameters
from autoresearch.projects.process import check_components, do_run
from autoresearch.projects.runs import (
    DATA,
    Run,
    RunData,
    Totals,
    carry_state,
    digest_of,
    find_run,
    head_run,
    keep_run,
    new_run_folder,
)

LOG = "log.txt"
CHECK_LOG = "check.txt"
_PACKAGES = ("numpy", "torch", "gymnasium")


class RunStopped(AutoresearchError):
    """A benchmark run was stopped before it was done. Nothing is kept."""

    exit_status = 130


def do_project_run(
    path: Path,
    mode: Mode,
    episodes: int,
    *,
    now_ms: Callable[[], int],
    assignments: Sequence[str] = (),
    start: str = "",
    seed: int | None = None,
    on_figures: Callable[[Figures], None] = lambda _figures: None,
) -> Run:
    """Train a project, or benchmark it, and keep the run in its folder.

    It goes on from the run that ``start`` names, else from the newest. The seed of a training run follows from its
    parent unless given; the episodes of a benchmark run have the seeds ``seed``, ``seed + 1`` …, from 0.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a line of ``agent.ini`` or a parameter is wrong.
        Refused: another command runs this project.
        RunStopped: a benchmark run was stopped.
        AutoresearchError: a component's code raised an error, or ended the process.
    """
    project = with_parameters(load_project(path), assignments)
    project.component("environment")
    project.component("policy")
    if mode == "train" and AGENT not in project.components:
        project.component("trainer")
    with new_run_folder(project) as folder:
        parent = find_run(project, start) if start else head_run(project)
        if seed is None:
            seed = zlib.crc32(parent.id.encode()) if mode == "train" and parent else 0
        order = Order(
            project=project,
            mode=mode,
            episodes=episodes,
            seed=seed,
            learned=str(parent.folder / DATA) if parent else "",
            out=str(folder / DATA),
        )
        started = now_ms()
        done = do_run(order, project.hidden / LOG, on_figures)
        if done.stopped and mode == "bench":
            raise RunStopped("the benchmark run was stopped; nothing is kept of it", hint="autoresearch run")
        carry_state(parent, folder / DATA)
        used = [each for each in project.all() if each.key in done.used]
        data = RunData(
            mode=mode,
            status="stopped" if done.stopped else "ok",
            parent=parent.id if parent else "",
            started=started,
            seconds=round(done.seconds, 3),
            seed=seed,
            asked_episodes=episodes,
            metrics=done.metrics,
            totals=(parent.data.totals if parent else Totals()).plus(mode, done.metrics),
            curve=done.curve,
            components={
                each.key: {"class": each.class_name, "sha256": digest_of(Path(each.file)), **each.pins} for each in used
            },
            files={},
            environment=_environment(),
            learns_on_run=project.learns_on_run,
            policy_changed=done.changed,
        )
        return keep_run(project, folder, data, parameters_text(used))


def _environment() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def check_project(path: Path) -> list[Checked]:
    """Load every component of a project in a process of its own, and tell what each lacks of its interface.

    Raises:
        NotFound: there is no such project.
        UsageError: a line of ``agent.ini`` or ``parameters.yaml`` is wrong.
    """
    project = with_parameters(load_project(path))
    project.hidden.mkdir(exist_ok=True)
    order = Order(project=project, mode="bench", episodes=0, seed=0, learned="", out="")
    return check_components(order, project.hidden / CHECK_LOG)
