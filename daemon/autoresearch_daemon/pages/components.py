"""The pages of components: those that are published or ship, and each with the agents that use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from aiohttp import web

from autoresearch.ask import questions
from autoresearch.ask.records import ShowAnswer, UsedComponent
from autoresearch.ask.requests import MAXIMUM_ROWS, OfTask, OneRecord, Reference, SearchOf
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.errors import NotFound
from autoresearch.face.columns.node import release_lines
from autoresearch.project.components.finding import shipped_offer, shipped_offers
from autoresearch.project.exchange.fetching import boards_with, components_of_run
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.task.release import TYPES
from autoresearch.text import one_line
from autoresearch_daemon.api.port import desk
from autoresearch_daemon.pages.node import Asking

# Whether an agent is meant, by its components with their pins.
Uses = Callable[[Mapping[str, Mapping[str, str]]], bool]


class ComponentsOf(OfTask, frozen=True, kw_only=True):
    """Which components: of a type, with some words."""

    q: Annotated[str, msgspec.Meta(max_length=500)] = ""
    type: Annotated[str, msgspec.Meta(max_length=32)] = ""


async def components_page(asking: Asking) -> web.Response:
    """The components of the log, and those that ship."""
    query = asking.parameters(ComponentsOf)
    search = SearchOf(query=query.q, kind="component", type=query.type, limit=MAXIMUM_ROWS)
    published = (await asking.ask(questions.search, search)).components
    types = dict.fromkeys([*TYPES, *(release.type for release in published), *filter(None, [query.type])])
    ships = await asking.in_thread(lambda: shipped_offers(query.q, query.type))
    return await asking.render(
        "components.html", "components", query=query, published=published, ships=ships, types=list(types)
    )


class OneComponent(OfTask, frozen=True, kw_only=True):
    """A release by the beginning of its id, or a component that ships, as ``policy.q_table``."""

    of: Reference


async def component_page(asking: Asking) -> web.Response:
    """One component: what it is, and the agents that use it on the leaderboard of each environment."""
    of = asking.parameters(OneComponent).of
    kind, dot, name = of.partition(".")
    if dot:
        offer = shipped_offer(kind, name)
        if offer is None:
            raise NotFound(
                f"no {one_line(of, 80)} comes with this program", hint="autoresearch search --kind component"
            )
        release, about, lines, install = None, offer.description, [], f"{kind} {name}"
        boards, unknown = await _boards(asking, lambda used: used.get(of, {}).get("source") == "shipped")
    else:
        release = (await asking.ask(questions.release, OneRecord(id=of))).release
        kind, name, about, lines = release.type, release.name, release.summary, release_lines(release)
        is_named = (release.attested or release.own) and not (release.yanked or release.equivocal)
        install = f"{kind} {f'{name}=={release.version}' if is_named else short_id(parse_id(release.id))}"
        whole = release.id
        boards, unknown = await _boards(
            asking, lambda used: any(pins.get("release") == whole for pins in used.values())
        )
    return await asking.render(
        "component.html",
        "components",
        kind=kind,
        called=name,
        about=about,
        lines=lines,
        release=release,
        install=f"autoresearch install {install}",
        boards=boards,
        unknown=unknown,
    )


async def components_of(asking: Asking, answer: ShowAnswer) -> list[UsedComponent]:
    """What the agent of a run is made of; nothing where the run is of another kind, or its files are not here."""
    if answer.budget_unit != "episodes":
        return []
    opened, run = desk(asking.request.app), parse_id(answer.record.id)
    return await asking.in_thread(lambda: components_of_run(opened, run))


async def _boards(asking: Asking, uses: Uses) -> tuple[list[TopAnswer], int]:
    opened = desk(asking.request.app)
    return await asking.in_thread(lambda: boards_with(opened, uses))
