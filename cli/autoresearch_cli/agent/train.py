"""``train`` and ``reset``: what a project learns, and forgetting it."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import AutoresearchError, NotFound, UsageError
from autoresearch.project.model import load_project
from autoresearch.project.runs.kept import find_run, set_head
from autoresearch.project.runs.running import Choices
from autoresearch_cli.agent import projects
from autoresearch_cli.agent.models import SweepAnswer, SweepRow
from autoresearch_cli.agent.serve import join
from autoresearch_cli.catalogue import AllowPackages, CommandApp, Json, JsonLines
from autoresearch_cli.rendering.lists import SWEEP_COLUMNS
from autoresearch_cli.rendering.output import print_json, print_list, say

EPISODES = 100
MEASURED_EPISODES = 20
MOST_COMBINATIONS = 256
MOST_ACTORS = 64
# A value of several: a list in brackets, a text in quotes, or all up to the next comma.
_VALUE = re.compile(r"(?:\[[^\]]*\]|\{[^}]*\}|\"[^\"]*\"|'[^']*'|[^,])+")
app = CommandApp()


@app.command(
    "train",
    ("autoresearch train agent.ini 1000", "1000 episodes"),
    ("autoresearch train --set trainer.epsilon=0.2", "with another parameter"),
    ("autoresearch train --sweep policy=q_table,dqn", "try each policy, or each value of a parameter, keep the best"),
    see="run, agent reset, list, install",
)
def train(  # noqa: PLR0913 - each is an option of the command
    ini: projects.IniArgument = "",
    count: Annotated[
        int | None, typer.Argument(metavar="N", min=1, max=10**9, help="How many episodes. Left out: 100.")
    ] = None,
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="The same as INI.")] = "",
    episodes: Annotated[int | None, typer.Option("--episodes", "-n", min=1, max=10**9, help="The same as N.")] = None,
    assignments: projects.Set = None,
    start: projects.From = "",
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="COMPONENT.KEY=V1,V2", help="Train with each value, measure, keep the best."),
    ] = None,
    actors: Annotated[
        int, typer.Option("--actors", min=0, max=MOST_ACTORS, help="So many processes play, and one learns from them.")
    ] = 0,
    learner: Annotated[
        str, typer.Option("--join", metavar="SERVICE", help="Play for a served trainer: its name, or HOST:PORT.")
    ] = "",
    server_key: Annotated[
        str, typer.Option("--server-key", metavar="KEY", help="The public key of a trainer at HOST:PORT.")
    ] = "",
    seed: projects.Seed = None,
    trust: projects.Trust = False,
    allow_packages: AllowPackages = False,
    json: JsonLines = False,
) -> None:
    """Train a project's policy and keep the run. It goes on from what the newest run had learned."""
    if ini.isdecimal() and count is None and not Path(ini).exists():
        if not int(ini):
            raise UsageError("0 episodes train nothing", hint="autoresearch train 100")
        ini, count = "", int(ini)
    path = projects.project_path(ini or file)
    number = count or episodes or EPISODES
    if sweep and actors:
        raise UsageError("--sweep and --actors can't be combined", hint="leave out one of them")
    choices = projects.chosen(path, assignments, start, seed, trust=trust, allow_packages=allow_packages)
    if learner:
        refused = (("--sweep", sweep), ("--actors", actors), ("--from", start))
        others = [option for option, value in refused if value]
        join(choices, learner, number, server_key=server_key, others=others, json=json)
    elif sweep:
        _sweep(choices, number, _values(sweep), json=json)
    else:
        run = projects.do_run(choices, "train", number, actors=actors, json=json)
        projects.finish_run(run, json=json, assignments=choices.assignments)


@app.command(
    "agent reset",
    ("autoresearch agent reset", "the next run begins with nothing learned"),
    ("autoresearch agent reset --to 3fa1", "it begins with what this run had learned"),
    ("autoresearch list --runs", "the runs of the project"),
    see="train, run, list",
)
def reset(
    ini: projects.IniArgument = "",
    *,
    to: Annotated[str, typer.Option("--to", metavar="RUN", help="Go back to this run instead of the beginning.")] = "",
    json: Json = False,
) -> None:
    """Have the next run begin anew, or with what an earlier run had learned. No run is deleted."""
    project = load_project(projects.project_path(ini))
    run = find_run(project, to) if to else None
    set_head(project, run)
    if json:
        print_json(projects.project_answer(project))
    say(f"the next run goes on from {run.id}" if run else "the next run begins with nothing learned")
    say("→ autoresearch train")


def _sweep(choices: Choices, episodes: int, axes: list[list[str]], *, json: bool) -> None:
    """Train and measure with every combination, each from the same run; the best becomes the newest."""
    project = load_project(choices.path)
    beginning = choices.before(project)
    rows: list[SweepRow] = []
    failure: AutoresearchError | None = None
    for combination in itertools.product(*axes):
        parameters = [*choices.assignments, *combination]
        tried = replace(choices, assignments=parameters, start="", seed=choices.seed or 0)
        set_head(project, beginning)
        say(f"train with {' '.join(combination)}")
        try:
            trained = projects.do_run(tried, "train", episodes, json=json)
        except AutoresearchError as error:
            # Not every component works with every other: the others are tried all the same.
            if error.exit_status != 1 or not any("." not in _split(each)[0] for each in combination):
                raise
            failure = error
            say(f"{error}")
            continue
        if trained.data.status != "ok":
            say(f"stopped: what was learned so far is kept as run {trained.id}")
            raise typer.Exit(130)
        measured = projects.do_run(replace(tried, seed=0), "bench", MEASURED_EPISODES, json=json)
        rows.append(
            SweepRow(
                parameters=dict(_split(each) for each in combination),
                train=trained.id,
                bench=measured.id,
                mean_reward=measured.data.metrics.get("mean_reward"),
            )
        )
    if not rows:
        raise failure or NotFound("no combination was tried", hint="--sweep trainer.learning_rate=0.1,0.5")
    rows.sort(key=lambda row: float("-inf") if row.mean_reward is None else row.mean_reward, reverse=True)
    set_head(project, find_run(project, rows[0].bench))
    if json:
        print_json(SweepAnswer(rows=rows))
        return
    print_list(SWEEP_COLUMNS, rows)
    best = " ".join(f"--set {key}={value}" for key, value in rows[0].parameters.items())
    say(f"the next run goes on from the best, {rows[0].bench}")
    say(f"→ autoresearch train {best}")


def _values(sweep: list[str]) -> list[list[str]]:
    """The assignments of each axis. Raises UsageError."""
    axes: list[list[str]] = []
    for text in sweep:
        name, values = _split(text)
        axis = [f"{name}={value.strip()}" for value in _VALUE.findall(values) if value.strip()]
        if not axis or not name:
            raise UsageError(f"“{text}” names no values", hint="--sweep trainer.learning_rate=0.1,0.5")
        axes.append(axis)
    total = 1
    for axis in axes:
        total *= len(axis)
    if total > MOST_COMBINATIONS:
        raise UsageError(f"{total} combinations: at most {MOST_COMBINATIONS} are tried", hint="give fewer values")
    return axes


def _split(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()
