"""What the commands about projects share: finding the project, doing a run with its figures, showing both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated

import msgspec
import typer

from autoresearch.errors import NotFound
from autoresearch.face.columns.runs import COMPARED
from autoresearch.judging.statistics import median_margin
from autoresearch.paths import typed_path
from autoresearch.project.child.messages import ComponentChecked, Mode, RunFigures
from autoresearch.project.components.trusting import reaches_of
from autoresearch.project.model import AGENT, INI, Component, Project, is_project, load_project
from autoresearch.project.runs.fleet import train_with_actors
from autoresearch.project.runs.kept import LocalRun, head_run
from autoresearch.project.runs.process import Box
from autoresearch.project.runs.running import Choices, do_project_run
from autoresearch.run.consent import check_reaches
from autoresearch.text import counted, duration
from autoresearch_cli import home
from autoresearch_cli.agent import models
from autoresearch_cli.event_display import choose_display
from autoresearch_cli.rendering.lists import PROJECT_COLUMNS, walls
from autoresearch_cli.rendering.output import print_json, print_labelled, print_list, say

# Between two figures of a run, with --json.
FIGURE_SECONDS = 2.0
SPARKS = "▁▂▃▄▅▆▇█"
STOPPED = 130

IniArgument = Annotated[
    str, typer.Argument(metavar="INI", help="The project's agent.ini, or its folder. Left out: this folder.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="COMPONENT.KEY=VALUE", help="A parameter for this run, such as policy.hidden=64."),
]
From = Annotated[
    str, typer.Option("--from", metavar="RUN", help="Begin with what this run had learned. Left out: the newest run.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**62, help="The seed. Left out: one that follows from the runs before."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run other participants' components without a sandbox. The run says so.")
]
Type = Annotated[
    str, typer.Argument(metavar="TYPE", help="environment, policy, trainer, dataset, or a type of your own.")
]


def project_path(text: str) -> Path:
    """The ``agent.ini`` that was typed: a file, a folder that has one, or that of this folder or one above it.

    Raises:
        NotFound: there is none.
    """
    if text:
        path = typed_path(text).absolute()
        return path / INI if path.is_dir() else path
    start = Path.cwd()
    ini = next((folder / INI for folder in (start, *start.parents) if is_project(folder)), None)
    if ini is None:
        is_task = (start / "task.toml").exists()
        hint = (
            "this is a task folder: autoresearch run list lists its runs, autoresearch publish task publishes it"
            if is_task
            else "autoresearch init makes a project"
        )
        raise NotFound(f"there is no {INI} in {start}", hint=hint)
    return ini


def means_project(text: str) -> bool:
    """Whether ``run`` is about a project: a file .ini, or a folder with an ``agent.ini`` and no ``task.toml``."""
    from autoresearch.task.loading import MANIFEST

    path = typed_path(text) if text else Path.cwd()
    return path.suffix == ".ini" or (is_project(path) and not (path / MANIFEST).exists())


def sandbox() -> Box:
    """The sandbox of this machine, with the limits of the settings, for what other participants wrote."""
    from autoresearch.run.bench import Ceiling
    from autoresearch.run.sandbox.job import JobLimits, Level
    from autoresearch.run.sandbox.probes import detect_level

    work, secrets = home.settings().work, home.paths().secrets()
    most = Ceiling.of(work)
    limits = JobLimits(
        seconds=most.seconds,
        memory_bytes=most.memory_mib << 20,
        disk_bytes=most.disk_mib << 20,
        processes=most.processes,
        output_bytes=most.output_kib * 1024,
    )
    return Box(
        detect_level(secrets)[0],
        limits,
        threads=work.threads,
        device=home.first_device(),
        least=Level(work.minimum_sandbox),
        secrets=tuple(secrets),
    )


@contextmanager
def figures_shown(title: str, mode: Mode, episodes: int, *, json: bool) -> Iterator[Callable[[RunFigures], None]]:
    """Show how far a run is, and with ``json`` print it now and then."""
    printed_at = [time.monotonic()]
    with choose_display(quiet=True) as display:

        def show(figures: RunFigures) -> None:
            done = min(1.0, figures.episodes / episodes)
            reward = "" if figures.recent_reward is None else f"  mean reward {figures.recent_reward:.4g}"
            left = f"{duration(figures.seconds * 1000 * (1 - done) / done)} left" if done else ""
            display.progress("run", title, done, f"episode {figures.episodes}{reward}", left=left)
            if json and time.monotonic() - printed_at[0] >= FIGURE_SECONDS:
                printed_at[0] = time.monotonic()
                print_json(
                    models.ProjectFigures(
                        mode=mode,
                        episodes=figures.episodes,
                        asked_episodes=episodes,
                        steps=figures.steps,
                        seconds=round(figures.seconds, 1),
                        recent_reward=figures.recent_reward,
                    )
                )

        yield show


def chosen(
    path: Path, assignments: Sequence[str] | None, start: str, seed: int | None, *, trust: bool, allow_packages: bool
) -> Choices:
    """What a person chose, with the packages of the project installed; see :func:`models.project_pythons` for errors.

    Raises NotAllowed where nobody allowed the project's code to run without a sandbox; ``trust`` does.
    """
    project = load_project(path)
    if not trust:
        check_reaches(project.folder, reaches_of(project), home.paths().allowed)
    pythons = models.project_pythons(project, allowed=allow_packages)
    return Choices(path, assignments or (), start, seed, trust, pythons)


def do_run(choices: Choices, mode: Mode, episodes: int, *, json: bool, actors: int = 0) -> LocalRun:
    """Train or benchmark, showing how far it is. With ``actors`` so many processes play for one that learns."""
    with figures_shown("train" if mode == "train" else "benchmark run", mode, episodes, json=json) as show:
        if actors:
            return train_with_actors(choices, episodes, actors, now_ms=home.now_ms, on_figures=show)
        return do_project_run(choices, mode, episodes, now_ms=home.now_ms, box=sandbox, on_figures=show)


def finish_run(run: LocalRun, *, json: bool, assignments: Sequence[str] = ()) -> None:
    """Show a run that was kept, and what to do next, with what this one was given; leave with 130 when it stopped."""
    if json:
        print_json(models.ProjectRunAnswer(run=run_view(run)))
    else:
        print_run(run)
    stopped = run.data.status == "stopped"
    if stopped:
        say(f"stopped: what was learned so far is kept as run {run.id}")
    if run.data.policy_changed:
        counting = "it is kept (learns_on_run), and the run counts as training"
        remark = counting if run.data.learns_on_run else "the change is not kept"
        say(f"the policy changed in a benchmark run; {remark}")
    if not json:
        options = "".join(f" --set {quote(each)}" for each in assignments)
        say(f"→ autoresearch run{options}" if run.data.mode == "train" else "→ autoresearch list --runs")
    if stopped:
        raise typer.Exit(STOPPED)


def metric_lines(metrics: Mapping[str, int | float]) -> list[tuple[str, str]]:
    """What was played, and the rewards of it, for ``print_labelled``."""
    reward = [
        f"{name} {metrics[f'{name}_reward']:.4g}" for name in ("mean", "median", "max", "min") if _has(metrics, name)
    ]
    beside = [
        f"{text} {metrics[f'{name}_reward']:.4g}" + (f" ± {median_margin(error, 1):.2g}" if error else "")
        for name, text in COMPARED.items()
        if _has(metrics, name)
        for error in [metrics.get(f"{name}_standard_error")]
    ]
    return [
        ("done", f"{counted(int(metrics['episodes']), 'episode')}, {counted(int(metrics['steps']), 'step')}"),
        ("reward", "  ".join(reward) or "no episode ended"),
        *([("compare", ", ".join(beside))] if beside else []),
    ]


def print_run(run: LocalRun) -> None:
    """A run's figures."""
    data, metrics = run.data, run.data.metrics
    totals = data.totals
    lines = [
        ("run", f"{run.id}  {'training' if data.mode == 'train' else 'benchmark'}"),
        ("from", data.parent or "nothing learned before"),
        *metric_lines(metrics),
        *([("curve", sparks(data.curve))] if len(data.curve) > 1 and data.mode == "train" else []),
        (
            "totals",
            f"trained {counted(totals.training_episodes, 'episode')} ({counted(totals.training_steps, 'step')}), "
            f"benchmarked {counted(totals.benchmark_episodes, 'episode')}",
        ),
        ("took", f"{data.seconds:.1f} s"),
        *([("sandbox", walls(run.data.sandbox, run.data.trusted))] if run.data.sandbox or run.data.trusted else []),
        ("folder", str(run.folder)),
    ]
    print_labelled(lines)


def sparks(values: Sequence[float]) -> str:
    """A curve in one line, from its lowest to its highest value."""
    low, high = min(values), max(values)
    span = high - low or 1.0
    bars = "".join(SPARKS[min(7, int((value - low) / span * 8))] for value in values)
    return f"{bars}  {low:.4g} to {high:.4g}"


def project_answer(
    project: Project, *, checked: Sequence[ComponentChecked] = (), runs: Sequence[LocalRun] = ()
) -> models.ProjectAnswer:
    """A project as a document."""
    head = head_run(project)
    findings = {each.key: each for each in checked}
    return models.ProjectAnswer(
        folder=str(project.folder),
        components=[_component(project, each, findings.get(each.key)) for each in project.all()],
        runs=[run_view(run) for run in runs],
        head=head.id if head else "",
    )


def run_view(run: LocalRun) -> models.ProjectRun:
    """A run as part of a document."""
    own = {"id": run.id, "folder": str(run.folder), "components": sorted(run.data.components)}
    return msgspec.convert(msgspec.to_builtins(run.data) | own, models.ProjectRun)


def print_project(answer: models.ProjectAnswer) -> None:
    """The components as a table; a default has a star."""
    print_list(PROJECT_COLUMNS, answer.components)
    if not answer.components:
        say("this project has no components yet → autoresearch install environment NAME")


def _component(project: Project, each: Component, checked: ComponentChecked | None) -> models.ProjectComponent:
    return models.ProjectComponent(
        type=each.type,
        name=each.name,
        is_default=each.type == AGENT or project.defaults.get(each.type) == each.name,
        class_name=each.class_name,
        file=each.file,
        source=each.pins.get("source", ""),
        version=each.pins.get("version", ""),
        parameters={key: setting.value for key, setting in each.settings.items()},
        missing=checked.missing if checked else [],
        error=checked.error if checked else "",
    )


def _has(metrics: Mapping[str, int | float], name: str) -> bool:
    return f"{name}_reward" in metrics
