"""``init``: a new project."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.paths import typed_path
from autoresearch.projects import make_project
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.projects import print_components, project_answer
from autoresearch_cli.rendering.output import print_json, say

app = command_app(no_args_is_help=False)
apps = {"init": app}


@app.command(
    epilog=examples(
        ("autoresearch init", "a project in this folder"),
        ("autoresearch init walker", "in a new folder"),
        ("autoresearch run walker/agent.ini", "run it"),
        see="install, train, run, list",
    )
)
def init(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="The folder. Left out: this one.")] = "",
    *,
    json: Json = False,
) -> None:
    """Make a project: a folder with an agent that runs at once, a random policy in a corridor."""
    project = make_project(typed_path(folder or ".").absolute())
    answer = project_answer(project)
    if json:
        print_json(answer)
        return
    print_components(answer)
    say(f"the project is in {project.folder}")
    say(f"→ autoresearch run{f' {folder}' if folder else ''}")
