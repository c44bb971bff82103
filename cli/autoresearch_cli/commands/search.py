"""``search``: components in the log."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import search_answer
from autoresearch.projects import shipped_offers
from autoresearch.releases import TYPES
from autoresearch_cli import here
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.releases import print_components

app = command_app(no_args_is_help=False)
apps = {"search": app}


@app.command(
    epilog=examples(
        ("autoresearch search environment", "environments in the log, the newest first, and those that ship"),
        ("autoresearch search policy q table", "policies with these words, the best fit first"),
        ("autoresearch search ann --json", "what ann published, for a program"),
        see="show, publish component, yank",
    )
)
def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TYPE] [QUERY]...",
            help=f"A type ({', '.join(TYPES)}), then words of name, description or publisher.",
        ),
    ] = None,
    *,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="A type of your own; all words are searched.")
    ] = "",
    yanked: Annotated[bool, typer.Option("--yanked", help="Yanked releases too.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many.")] = 20,
    json: Json = False,
) -> None:
    """Find components: environments, policies, trainers and others that somebody published. Works without a daemon."""
    asked = list(words or [])
    chosen = kind or (asked.pop(0) if asked and asked[0] in TYPES else "")
    query = " ".join(asked)
    with open_notebook() as notebook:
        answer = search_answer(notebook.log, query=query, kind=chosen, limit=limit, yanked=yanked, me=notebook.me)
    if json:
        print_json(answer)
        return
    with paged():
        print_components(answer, now_ms=here.now_ms())
    ships = [each for each in shipped_offers() if chosen in ("", each.type) and (not query or query in each.name)]
    if not answer.components:
        kind_word = chosen or "component"
        say(f"no published {kind_word} has these words" if query else f"no {kind_word} is published here")
    if ships:
        say(f"with this program come: {', '.join(f'{each.type} {each.name}' for each in ships)}")
    if answer.components:
        say("→ autoresearch show ID, autoresearch install TYPE NAME")
    else:
        say("→ autoresearch install TYPE NAME, autoresearch publish component DIR")
