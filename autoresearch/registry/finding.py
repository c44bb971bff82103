"""Releases as a log has them: by id, by name, by words; and who stands behind each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.log import Log, ReleaseRow
from autoresearch.records import Release as ReleaseBody
from autoresearch.records import format_id
from autoresearch.registry.choosing import Choice, Release, Spec, choose, in_order, newest_of
from autoresearch.releases import TYPE, Component, component_of
from autoresearch.views import TrustContext, cached, in_snapshot, participant_of, roster_of, trust_context, whose

# So many releases that fit best are looked at, those of attested participants first.
SEARCHED = 2000


class FoundComponent(NamedTuple):
    """A publisher's component: the release by default, and the releases that were found."""

    newest: Release
    releases: tuple[Release, ...]


@in_snapshot
def resolve(log: Log, kind: str, text: str, *, pinned: bytes | None = None, me: bytes | None = None) -> Choice:
    """The release that ``NAME``, ``NAME==VERSION`` or ``PUBLISHER/NAME`` means among components of a type.

    ``pinned`` is the id that a project pins; ``me`` is this machine's device key. See :func:`choose`.

    Raises:
        UsageError: the name can't be one.
        NotFound: there is no such release.
        AmbiguousName: several publishers have that name.
    """
    if not TYPE.fullmatch(kind):
        raise UsageError(
            f"“{kind[:40]}” is no type of component", hint="environment, policy, trainer, dataset, agent …"
        )
    spec = Spec.parse(text)
    return choose(_releases(log, log.releases.named(kind, spec.name), me), spec, pinned=pinned)


def component(log: Log, release: bytes) -> Component:
    """What a release says. Raises NotFound where there is none, UsageError where it is no component."""
    record = log.records.get(release)
    found = component_of(record.body) if isinstance(record.body, ReleaseBody) else None
    if found is None:
        sentence = f"{format_id(release)} is no release of a component that can be installed"
        raise UsageError(sentence, hint="autoresearch search")
    return found


@in_snapshot
def releases_named(log: Log, kind: str, name: str, *, me: bytes | None = None) -> list[Release]:
    """All releases of a type and a name, of all publishers, the newest version first."""
    return in_order(_releases(log, log.releases.named(kind, name), me))


@in_snapshot
def releases_like(log: Log, release: bytes, *, me: bytes | None = None) -> list[Release]:
    """All releases of the component of a release by its publisher, the newest version first; empty where none is."""
    row = log.releases.find(release)
    if row is None:
        return []
    every = _releases(log, log.releases.named(row.type, row.name), me)
    publisher = next(one.publisher for one in every if one.row.id == release)
    return in_order(one for one in every if one.publisher == publisher)


@in_snapshot
def search(
    log: Log, query: str = "", *, kind: str = "", limit: int = 20, yanked: bool = False, me: bytes | None = None
) -> list[FoundComponent]:
    """Components whose text or publisher has all words of the query, of one type or of all.

    First those whose name is the query, then by how well they fit; attested participants' before strangers'. Without a
    query the newest first. ``yanked``: also those of which every release is yanked.
    """
    here, words = trust_context(log, me), query.split()
    publishers = _publishers(log) if words else {}
    asked = [(word, _devices(publishers, word)) for word in words]
    trusted = here.roster.keys | here.mine | ({me} if me else set()) if here.naming else None
    rows = log.releases.search(asked, kind=kind, limit=SEARCHED, authors=trusted)
    if trusted is not None and len(rows) < SEARCHED:
        known = {row.id for row in rows}
        rows += [row for row in log.releases.search(asked, kind=kind, limit=SEARCHED) if row.id not in known]
    place = {row.id: number for number, row in reversed(list(enumerate(rows)))}
    grouped: defaultdict[tuple[bytes, str, str], list[Release]] = defaultdict(list)
    for one in _releases(log, rows, me):
        if yanked or one.yanked is None:
            grouped[one.publisher, one.row.type, one.row.name].append(one)
    found = [FoundComponent(newest_of(several), tuple(several)) for several in grouped.values()]

    def order(one: FoundComponent) -> tuple[object, ...]:
        exact = one.newest.row.name.lower() == query.strip().lower()
        return not (one.newest.attested or one.newest.own), not exact, min(place[each.row.id] for each in one.releases)

    return sorted(found, key=order)[:limit]


def _releases(log: Log, rows: Sequence[ReleaseRow], me: bytes | None) -> list[Release]:
    """The same with who stands behind each, and what its own publisher yanked."""
    here, roster = trust_context(log, me), roster_of(log)
    own = roster.voter(me, here_ms(log)).root if me else None
    yanks: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for yank in log.releases.yanks([row.id for row in rows]):
        yanks.setdefault(yank.target, []).append((roster.voter(yank.author, yank.time).root, yank.id))
    found = []
    for row in rows:
        publisher = roster.voter(row.author, row.time).root
        mine = row.author == me or publisher == own
        said = [record for who, record in yanks.get(row.id, ()) if who == publisher]
        found.append(Release(row, publisher, _attested(row, here), mine, min(said, default=None)))
    return found


def here_ms(log: Log) -> int:
    """The time of the newest record: who speaks for whom is judged by records, not by a clock."""
    return log.records.newest_ms()


def _attested(row: ReleaseRow, here: TrustContext) -> bool:
    return whose(row.author, row.time, here).attested


def _publishers(log: Log) -> dict[bytes, str]:
    """The devices that published releases, each with the key and the name of its participant in small letters."""

    def named() -> dict[bytes, str]:
        newest = here_ms(log)
        views = ((device, participant_of(log, device, newest)) for device in log.releases.authors())
        return {device: f"{view.key} {view.name}".lower() for device, view in views}

    return cached(log, "publishers", named, by=("release",))


def _devices(publishers: dict[bytes, str], word: str) -> Collection[bytes]:
    """The devices whose participant has a key or a word in its name that begins so."""
    asked = word.lower()
    return [device for device, text in publishers.items() if _begins(text.split(), asked)]


def _begins(texts: Iterable[str], word: str) -> bool:
    return any(text.startswith(word) for text in texts)
