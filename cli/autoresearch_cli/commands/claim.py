"""``claim``: say that a program is being tried, before it is run somewhere else."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import ClaimRequest, operations
from autoresearch.figures import clock
from autoresearch_cli import here
from autoresearch_cli.ideas import Hypothesis, Parent, idea_of, request
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say

MINUTES = 30
app = command_app()
apps = {"claim": app}


@app.command(
    epilog=examples(
        ("autoresearch claim ~/grammar", "the program of a task folder, for half an hour"),
        ("autoresearch claim new.py --parent @ --minutes 120", "a file, as a change of the best run, for two hours"),
        ("autoresearch claim ~/grammar --json", "the claim's record, for a program"),
        see="claims, run, propose",
    )
)
def claim(
    program: Annotated[str, typer.Argument(metavar="DIR|FILE", help="A task folder, or a program for --task.")],
    *,
    task: Annotated[
        str, typer.Option("--task", metavar="DIR", help="The task folder of a FILE. Left out: the configured task.")
    ] = "",
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=1440, help="How long it holds.")] = MINUTES,
    json: Json = False,
) -> None:
    """Tell the network that you try a program, so that nobody else runs it meanwhile. `run` claims by itself."""
    asked = request(idea_of(program, task, parent, hypothesis))
    claimed = ClaimRequest(
        task=asked.task, program=asked.program, parent=asked.parent, hypothesis=asked.hypothesis, minutes=minutes
    )
    answer = here.client().ask(operations.CLAIM, claimed)
    if json:
        print_json(answer)
        return
    say(f"claimed “{answer.claim.title}” until {clock(answer.claim.until_ms)}")
    say("→ autoresearch run, autoresearch claims")
