"""Components and releases: found by words, one whole; which may be published and yanked here."""

from __future__ import annotations

import msgspec

from autoresearch.ask.registry import choosing, components
from autoresearch.ask.registry.preparing import PreparedRelease, fetch_prepared, prepare
from autoresearch.ask.requests import PublishRequest
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import participant_with_key
from autoresearch.paths import typed_path
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Release as ReleaseBody
from autoresearch.record.kinds import Yank as YankBody
from autoresearch.record.record import Record
from autoresearch.task.release import ReleasedComponent, component_of
from autoresearch.words import with_article


@in_snapshot
def component_view(log: Log, entry: choosing.FoundComponent) -> components.ComponentView:
    """A component that was found, by its newest release."""
    component, twice = choosing.read_component(log, entry.newest.row.id), bool(choosing.equivocal(entry.releases))
    return components.ComponentView(**_row(log, entry.newest, component), releases=len(entry.releases), equivocal=twice)  # type: ignore[arg-type]  # by its keys


@in_snapshot
def release_answer(
    log: Log, release: bytes, *, me: bytes | None = None, notes: tuple[str, ...] = ()
) -> components.ReleaseAnswer:
    """One release, whole. Raises NotFound, UsageError."""
    return components.ReleaseAnswer(release=release_view(log, release, me=me), notes=list(notes))


def release_view(log: Log, release: bytes, *, me: bytes | None = None) -> components.ReleaseView:
    """The same as it stands in other answers. Raises NotFound where it is withdrawn, UsageError where it is none."""
    component, every = choosing.read_component(log, release), choosing.releases_like(log, release, me=me)
    this = next((other for other in every if other.row.id == release), None)
    if this is None:
        raise NotFound(f"the release {short_id(release)} was withdrawn", hint=f"autoresearch show {short_id(release)}")
    twice = choosing.equivocal(every)
    yank = log.records.get(this.yanked).body if this.yanked else None
    return components.ReleaseView(
        **(msgspec.structs.asdict(component.metadata) | _row(log, this, component)),
        releases=len(every),
        equivocal=release in twice,
        bundle=component.bundle.sha256.hex(),
        bundle_bytes=component.bundle.size,
        yank=format_id(this.yanked) if this.yanked else "",
        yank_reason=yank.reason if isinstance(yank, YankBody) else "",
        versions=[_version(other, twice) for other in every],
    )


def prepared_for(request: PublishRequest) -> PreparedRelease:
    """What a request wants published, read or fetched. Raises what :func:`prepare` and :func:`.fetch_files` raise."""
    if bool(request.place) == bool(request.git):
        raise UsageError("name a folder or a file, or a git repository with a commit", hint="one of the two")
    if request.place:
        return prepare(typed_path(request.place), request)
    return fetch_prepared(request.git, request.commit, request)


def check_new_release(log: Log, prepared: PreparedRelease, me: bytes) -> None:
    """Raises Refused where this participant has published that version already."""
    for release in choosing.releases_named(log, prepared.metadata.type, prepared.name, me=me):
        if not release.own or release.row.version != prepared.version:
            continue
        component = choosing.read_component(log, release.row.id)
        same = component.metadata.tree == prepared.metadata.tree
        what = f"{prepared.name} {prepared.version} is published already, as {short_id(release.row.id)}"
        hint = f"autoresearch show {short_id(release.row.id)}" if same else "give it a new version: --version"
        raise Refused(what if same else f"{what}, with other files", hint=hint)


def own_release(log: Log, reference: str, me: bytes | None) -> Record:
    """The release that this participant may yank.

    Raises:
        NotFound: there is no such record.
        Refused: it is no release, another participant's, or yanked already.
    """
    record = log.records.get(resolve_reference(log, reference, author=me))
    name = short_id(record.id)
    if not isinstance(record.body, ReleaseBody) or component_of(record.body) is None:
        raise Refused(
            f"{name} is {with_article(record.kind)}, no component", hint="autoresearch search --kind component"
        )
    this = next((other for other in choosing.releases_like(log, record.id, me=me) if other.row.id == record.id), None)
    if this is None or not this.own:
        hint = f"autoresearch show {name} says who published it"
        raise Refused(f"{name} was {'withdrawn' if this is None else 'published by another participant'}", hint=hint)
    if this.yanked:
        raise Refused(f"{name} is yanked already", hint=f"autoresearch show {name}")
    return record


def yanked_answer(release: Record, yank: Record) -> components.YankedAnswer:
    """What was yanked, and by which record."""
    body = release.body_as(ReleaseBody)
    assert isinstance(yank.body, YankBody)
    return components.YankedAnswer(
        id=format_id(release.id), name=body.name, version=body.version, yank=format_id(yank.id), reason=yank.body.reason
    )


def _row(log: Log, release: choosing.ListedRelease, component: ReleasedComponent) -> dict[str, object]:
    return {
        "id": format_id(release.row.id),
        "type": release.row.type,
        "name": release.row.name,
        "version": release.row.version,
        "summary": component.summary,
        "publisher": participant_with_key(log, release.publisher),
        "attested": release.attested,
        "own": release.own,
        "time_ms": release.row.time,
        "yanked": release.yanked is not None,
    }


def _version(release: choosing.ListedRelease, twice: frozenset[bytes]) -> components.VersionView:
    return components.VersionView(
        id=format_id(release.row.id),
        version=release.row.version,
        time_ms=release.row.time,
        yanked=format_id(release.yanked) if release.yanked else "",
        equivocal=release.row.id in twice,
    )
