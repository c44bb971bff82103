"""One search over what the log and this program have: by words, whatever kind of thing has them."""

from __future__ import annotations

import re

from autoresearch.ask.commands import COMMANDS
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.notes import notes_answer
from autoresearch.ask.records import CommandView, SearchAnswer
from autoresearch.ask.registry.choosing import search as components
from autoresearch.ask.registry.releases import component_view
from autoresearch.ask.requests import RunsOf, SearchKind, SearchOf
from autoresearch.ask.runs.answers import RunsAnswer
from autoresearch.ask.runs.rows import runs_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import participant_of


@in_snapshot
def search_answer(
    log: Log,
    blobs: BlobStore,
    request: SearchOf,
    *,
    task: FoundTask | None,
    me: bytes | None = None,
    starred: frozenset[bytes] = frozenset(),
) -> SearchAnswer:
    """What has all words that are asked for. Any text may be; runs, settings and notes are those of ``task``."""
    words, most = request.query.lower().split(), request.limit

    def wants(kind: SearchKind) -> bool:
        return request.kind == kind or (request.kind is None and not request.type)

    def has(text: str) -> bool:
        return all(re.search(rf"(?<![^\W_]){re.escape(word)}", text.lower()) for word in words)

    runs: RunsAnswer | None = None
    if task and wants("run"):
        newest = RunsOf(task=task.digest.hex(), q=request.query[:200], size=most)
        runs = runs_answer(log, blobs, task, newest, me=me, starred=starred)
    settings = log.pairs.settings(task.digest) if task and wants("setting") else []
    is_of_components = wants("component") or bool(request.type)
    releases = components(log, request.query, kind=request.type, limit=most, yanked=request.yanked, me=me)
    return SearchAnswer(
        query=request.query,
        task=task.name if task else "",
        commands=[
            CommandView(command=name, summary=entry.summary)
            for name, entry in COMMANDS.items()
            if words and wants("command") and has(f"{name} {entry.summary}")
        ][:most],
        settings=[name for name in settings if has(name)][:most],
        participants=[
            who for who in (_participants(log) if wants("participant") else []) if has(f"{who.name} {who.key}")
        ][:most],
        components=[component_view(log, release) for release in releases] if is_of_components else [],
        notes=notes_answer(log, task, query=request.query, limit=most, me=me).notes if task and wants("note") else [],
        runs=runs.runs if runs else [],
        total=runs.total if runs else 0,
        hidden=runs.hidden if runs else 0,
    )


def _participants(log: Log) -> list[ParticipantView]:
    """Everybody who signed a record, by name."""
    newest_ms = log.records.newest_ms()
    participants = (participant_of(log, device, newest_ms) for device in log.devices.all())
    views = {participant.key: participant for participant in participants}
    for key in log.hidden.of_keys(list(map(bytes.fromhex, views))):
        del views[key.hex()]
    return sorted(views.values(), key=lambda participant: (not participant.name, participant.name, participant.key))
