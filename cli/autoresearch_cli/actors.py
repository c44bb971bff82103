"""``train --join``: playing for a trainer that is served elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from autoresearch.errors import UsageError
from autoresearch.projects import Pythons, act_for_learner
from autoresearch_cli import here
from autoresearch_cli.project_models import ActedAnswer
from autoresearch_cli.projects import STOPPED, figures_shown, metric_lines
from autoresearch_cli.rendering.output import print_json, print_labelled, say


def join(  # noqa: PLR0913 - each is an option of the command
    path: Path,
    learner: str,
    episodes: int,
    *,
    server_key: str,
    assignments: Sequence[str],
    others: Sequence[str],
    seed: int | None,
    trust: bool,
    pythons: Pythons,
    json: bool,
) -> None:
    """Play episodes for a learner. ``others`` are options that were given and mean nothing here. Raises UsageError."""
    if others:
        raise UsageError(f"--join and {' '.join(others)} can't be combined", hint="the learner decides that")
    if server_key:
        here.paths().create()  # the folder of this node's key for services
    with figures_shown("play", "train", episodes, json=json) as show:
        acted = act_for_learner(
            path,
            learner,
            episodes,
            key_file=here.paths().service_key,
            server_key=server_key,
            assignments=assignments,
            seed=seed or 0,
            trust=trust,
            pythons=pythons,
            on_figures=show,
        )
    if json:
        print_json(ActedAnswer(learner=acted.place, metrics=acted.metrics))
    else:
        print_labelled([("learner", acted.place), *metric_lines(acted.metrics)])
    say("stopped: the learner has what was played" if acted.stopped else "the learner keeps what was learned")
    if acted.stopped:
        raise typer.Exit(STOPPED)
