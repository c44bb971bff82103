"""The lists of a node and of the registry: services, proposals, components and releases; what a search found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from autoresearch.ask.node import CardStatus, MachineStatus, OrderView, OwnerStatus, QueuedRun
from autoresearch.ask.records import CommandView, SearchAnswer, UsedComponent
from autoresearch.ask.registry.components import ComponentView, ReleaseView
from autoresearch.face.columns.column import (
    CODE,
    COUNT,
    PERSON,
    RECORD,
    RUN,
    TIME,
    WORDS,
    Column,
    Columns,
    Face,
    short,
)
from autoresearch.face.columns.people import NOTE_COLUMNS
from autoresearch.face.columns.runs import RUN_COLUMNS
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.services import Service
from autoresearch.text import age, clock, counted, duration, one_line, percent, size

if TYPE_CHECKING:
    from autoresearch.project.components.trusting import ComponentOffer

JOULES_OF_KWH = 3.6e6
SERVICE_COLUMNS: Columns[Service] = (
    Column("name", lambda row: row.name),
    Column("kind", lambda row: row.kind),
    Column("component", lambda row: row.component, optional=2),
    Column("address", lambda row: f"{row.address or 'relayed'}:{row.port}"),
    Column("since", lambda row: row.since_ms, TIME),
    Column("requests", lambda row: row.requests, COUNT),
    Column("machine", lambda row: row.machine or "this one"),
    Column("project", lambda row: row.project, optional=1),
)

QUEUE_COLUMNS: Columns[QueuedRun] = (
    Column("name", lambda row: row.name, CODE),
    Column("title", lambda row: row.title, WORDS),
    Column("parent", lambda row: row.parent, RUN),
    Column("seed", lambda row: row.replicate, COUNT),
    Column("waits", lambda row: row.reason),
    Column("proposed", lambda row: row.proposed_ms, TIME),
)


def card_words(card: CardStatus) -> str:
    """What a card is busy with: ``97 % · 20 GiB of 80 GiB · 300 W``."""
    memory = card.memory_bytes is not None and card.memory_total_bytes is not None
    words = (
        "" if card.busy is None else percent(card.busy),
        f"{size(card.memory_bytes or 0)} of {size(card.memory_total_bytes or 0)}" if memory else "",
        "" if card.watts is None else f"{card.watts:.0f} W",
    )
    return " · ".join(filter(None, words)) or "it tells nothing"


def order_words(order: OrderView, now_ms: int) -> str:
    """One order: ``2 moons · 3 of 10 runs left · waiting · behind order 1``."""
    left = "without an end"
    if order.runs is not None:
        left = f"{order.runs_left} of {counted(order.runs, 'run')} left"
    elif order.until_ms is not None:
        left = f"until {clock(order.until_ms)}, for {duration(max(0, order.until_ms - now_ms))} more"
    elif order.for_ms is not None:
        left = f"for {duration(order.for_ms)} from its turn on"
    if order.goal is not None:
        left += f", or until the best is {order.goal:g}"
    if order.patience is not None:
        left += f", or {order.patience} runs without a new best ({order.idle_runs} by now)"
    left = left.removeprefix("without an end, or ")
    alone = "only verifies others' runs" if order.verify_share >= 1 else ""
    parts = [f"{order.number} {order.task}", alone, left, "" if order.state == "next" else order.state, order.reason]
    return " · ".join(filter(None, parts))


def owner_words(owner: OwnerStatus, now_ms: int) -> str:
    """What shows whether the machine is its owner's: ``on mains · 71 °C · used 12 s ago by terminal pts/3``."""
    words = (
        "" if owner.on_mains is None else "on mains" if owner.on_mains else "on battery",
        "" if owner.celsius is None else f"{owner.celsius:.0f} °C",
        "" if owner.used_ms is None else f"used {age(owner.used_ms, now_ms)} by {owner.used_by}",
        f"use unknown: {owner.unknown}" if owner.unknown else "",
    )
    return " · ".join(filter(None, words))


def energy_words(machine: MachineStatus) -> str:
    """The power of the processor, and its energy since the daemon's start; empty where that can't be read."""
    if machine.watts is None or machine.joules is None:
        return ""
    return f"{machine.watts:.0f} W · {machine.joules / JOULES_OF_KWH:.3g} kWh since the start"


def caution(component: ComponentView) -> str:
    """What a person should know before installing it; empty where all is well."""
    words = (
        "yours" if component.own else "",
        "" if component.attested or component.own else "unattested",
        "yanked" if component.yanked else "",
        "two contents" if component.equivocal else "",
    )
    return ", ".join(filter(None, words))


COMPONENT_COLUMNS: Columns[ComponentView] = (
    Column("id", lambda row: row.id, RECORD),
    Column("type", lambda row: row.type),
    Column("name", lambda row: row.name),
    Column("version", lambda row: row.version),
    Column("by", lambda row: row.publisher, PERSON, optional=2),
    Column("publisher name", lambda row: row.publisher.name, faces=Face.PIPE),
    Column("note", caution),
    Column("when", lambda row: row.time_ms, TIME, optional=1),
    Column("releases", lambda row: row.releases, faces=Face.PIPE),
    Column("what", lambda row: row.summary, WORDS),
)

SHIPPED_COLUMNS: Columns[ComponentOffer] = (
    Column("kind", lambda _: "shipped", faces=Face.PIPE),
    Column("type", lambda row: row.type),
    Column("name", lambda row: row.name),
    Column("what", lambda row: row.description, WORDS),
)

# `show ID --json` has all of them.
VERSIONS_SHOWN = 8
SUMMARY_CHARACTERS = 240
EQUIVOCAL = "its publisher signed two different releases of this version: neither is taken by its name"


def release_lines(release: ReleaseView) -> list[tuple[str, str]]:
    """What a release of a component says, and what its publisher says of it."""
    versions = [
        f"{each.version} {short(each.id)}{' yanked' if each.yanked else ''}{' two contents' if each.equivocal else ''}"
        for each in release.versions
    ]
    more = len(versions) - VERSIONS_SHOWN
    rows = [
        ("component", f"{release.type} {release.name} {release.version}"),
        ("about", one_line(release.description or release.summary, SUMMARY_CHARACTERS)),
        ("class", f"{release.class_name} in {release.file_path}" if release.class_name else ""),
        ("packages", ", ".join(release.requirements)),
        ("needs", ", ".join(release.needs)),
        ("license", release.license),
        ("git", f"{release.git} at {release.commit}" if release.git else ""),
        ("files", f"{release.tree}, {size(release.bundle_bytes)}"),
        ("versions", ", ".join(versions[:VERSIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")),
    ]
    lines = [(label, text) for label, text in rows if text]
    if release.yank:
        why = f": “{release.yank_reason}”" if release.yank_reason else ""
        lines.append(("!", f"its publisher yanked it{why}; it is installed by its id or version alone"))
    if release.equivocal:
        lines.append(("!", EQUIVOCAL))
    if not release.attested:
        lines.append(("!", "its publisher is unattested: its name alone does not install it"))
    return lines


def used_component_words(used: UsedComponent) -> str:
    """A component of an agent with where it came from: ``policy/q_table 0.9 (shipped)``."""
    origin = f"release {short(used.release)}" if used.release else used.source
    return f"{used.type}/{used.name}{f' {used.version}' if used.version else ''}{f' ({origin})' if origin else ''}"


COMMAND_COLUMNS: Columns[CommandView] = (
    Column("command", lambda row: f"autoresearch {row.command}", CODE),
    Column("what", lambda row: row.summary, WORDS),
)
SETTING_COLUMNS: Columns[str] = (Column("setting", lambda name: name, CODE),)
PARTICIPANT_COLUMNS: Columns[ParticipantView] = (
    Column("participant", lambda who: who, PERSON),
    Column("name", lambda who: who.name, faces=Face.PIPE),
)


class SearchHits(NamedTuple):
    """What a search found of one kind. For a program each row begins with the kind."""

    kind: str
    title: str
    columns: Columns[Any]
    rows: Sequence[Any]


def search_lists(answer: SearchAnswer) -> list[SearchHits]:
    """What a search found, kind by kind; what leads elsewhere comes first, as it is short."""
    runs = f"Runs of {answer.task}, the newest {len(answer.runs)} of {answer.total}"
    lists: tuple[tuple[str, str, Columns[Any], Sequence[Any]], ...] = (
        ("command", "Commands", COMMAND_COLUMNS, answer.commands),
        ("setting", f"Settings of {answer.task}", SETTING_COLUMNS, answer.settings),
        ("participant", "Participants", PARTICIPANT_COLUMNS, answer.participants),
        ("component", "Components", COMPONENT_COLUMNS, answer.components),
        ("note", f"Notes on {answer.task}", NOTE_COLUMNS, answer.notes),
        ("run", runs if answer.total > len(answer.runs) else f"Runs of {answer.task}", RUN_COLUMNS, answer.runs),
    )
    return [SearchHits(kind, title, (_kind(kind), *columns), rows) for kind, title, columns, rows in lists]


def _kind(kind: str) -> Column[Any]:
    return Column("kind", lambda _: kind, faces=Face.PIPE)
