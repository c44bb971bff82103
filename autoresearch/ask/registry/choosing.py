"""Releases as a log has them, by id, by name, by words; and which one a name means. Pure.

Also who stands behind each, and the components that it needs beside it, one level deep. A name is a claim of its
publisher, an id is identity. The answer is a function of the set of releases, whatever the order in which they came.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from autoresearch.errors import AmbiguousName, NotFound, UsageError
from autoresearch.log.log import Log
from autoresearch.log.rows import ReleaseRow
from autoresearch.log.standing.cache import cached, in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of, trust_context, whose
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Release as ReleaseBody
from autoresearch.task.release import NAME, TYPE, VERSION, ReleasedComponent, component_of, is_prerelease

_SHOWN = 10
_PUBLISHER = re.compile(r"[0-9a-f]{4,64}")


class ListedRelease(NamedTuple):
    """A release and its publisher, as this machine sees it.

    ``publisher`` is the root key. ``attested``: trust here says that somebody stands behind it. ``own``: it is this
    participant's. ``yanked`` is the id of the record by which its publisher advises against it.
    """

    row: ReleaseRow
    publisher: bytes
    attested: bool
    own: bool
    yanked: bytes | None = None


class Spec(NamedTuple):
    """What was typed: ``NAME``, ``NAME==VERSION``, ``PUBLISHER/NAME``; the publisher is the beginning of a key."""

    name: str
    version: str = ""
    publisher: str = ""

    @staticmethod
    def parse(text: str) -> Spec:
        """Raises UsageError."""
        before, _, version = text.strip().partition("==")
        publisher, _, name = before.strip().rpartition("/")
        good = NAME.fullmatch(name) and (not version or VERSION.fullmatch(version.strip()))
        if not good or (publisher and not _PUBLISHER.fullmatch(publisher.lower())):
            raise UsageError(f"“{text[:80]}” names no component", hint="NAME, NAME==1.0.0 or PUBLISHER-KEY/NAME")
        return Spec(name, version.strip(), publisher.lower())


class ReleaseChoice(NamedTuple):
    """What a name means, and what a person should know of it."""

    release: ListedRelease
    warnings: tuple[str, ...] = ()


def choose(releases: Iterable[ListedRelease], spec: Spec, *, pinned: bytes | None = None) -> ReleaseChoice:
    """The release that a name means among all ``found`` of that type and name.

    What is ``pinned``, by its id, else this participant's own, else that of the one attested publisher; of it the
    version that is named, else the newest one that is neither yanked, nor a pre-release, nor one of two that differ.

    Raises:
        NotFound: there is none.
        AmbiguousName: several publishers have it, nobody attested has, or one version has two contents.
    """
    every = in_order(releases)
    if pinned is not None:
        for release in every:
            if release.row.id == pinned:
                return ReleaseChoice(release, _warnings(release))
        hint = "autoresearch network peers, who may have it; or unpin it"
        raise NotFound(f"the pinned release {short_id(pinned)} of {spec.name} is not here", hint=hint)
    every = [release for release in every if release.publisher.hex().startswith(spec.publisher)]
    if not every:
        by = f" by {spec.publisher}" if spec.publisher else ""
        raise NotFound(f"there is no component {spec.name} here{by}", hint="autoresearch search --kind component")
    # What is yanked blocks no name: publishers who yanked all of theirs are asked after only where no other is left.
    publishers = {release.publisher for release in every if release.yanked is None or spec.version}
    mine = _of_one_publisher([release for release in every if release.publisher in publishers] or every, spec)
    candidates = [release for release in mine if not spec.version or release.row.version == spec.version]
    if not candidates:
        versions = ", ".join(dict.fromkeys(release.row.version for release in reversed(mine)))
        raise NotFound(f"there is no {spec.name} {spec.version} here", hint=f"versions: {versions[:200]}")
    return _newest(candidates, spec)


def equivocal(releases: Iterable[ListedRelease]) -> frozenset[bytes]:
    """The ids of releases whose publisher has another one of the same type, name and version that installs otherwise.

    Yanked ones do not count: by a yank the publisher says which of two it does not mean.
    """
    same: defaultdict[tuple[object, ...], list[ListedRelease]] = defaultdict(list)
    for release in releases:
        if release.yanked is None:
            same[release.publisher, release.row.type, release.row.name, release.row.version].append(release)
    return frozenset(
        release.row.id
        for several in same.values()
        if len({release.row.content for release in several}) > 1
        for release in several
    )


def newest_of(releases: Collection[ListedRelease]) -> ListedRelease:
    """The release that stands for a publisher's component in a list: the one by default, else the newest at all."""
    twice = equivocal(releases)
    valid = [release for release in releases if release.yanked is None]
    plain = [release for release in valid if release.row.id not in twice and not is_prerelease(release.row.version)]
    return in_order(plain or valid or releases)[0]


def in_order(releases: Iterable[ListedRelease]) -> list[ListedRelease]:
    """The newest version first; of one version the oldest release first."""
    oldest = sorted(releases, key=lambda release: (release.row.time, release.row.id))
    return sorted(oldest, key=lambda release: release.row.version_key, reverse=True)


def _of_one_publisher(every: Sequence[ListedRelease], spec: Spec) -> Sequence[ListedRelease]:
    publishers = {release.publisher for release in every}
    for trusted in (
        {release.publisher for release in every if release.own},
        {release.publisher for release in every if release.attested},
        publishers if spec.publisher else set(),
    ):
        if len(trusted) == 1:
            [publisher] = trusted
            return [release for release in every if release.publisher == publisher]
        if trusted:
            break
    count = len(publishers)
    why = "only unattested participants publish it" if count == 1 or not trusted else f"{count} participants publish it"
    offered = [release for release in every if release.yanked is None] or every
    raise _ambiguous(f"the name {spec.name} alone says not which release: {why}", offered)


def _newest(releases: Sequence[ListedRelease], spec: Spec) -> ReleaseChoice:
    twice = equivocal(releases)
    valid = [release for release in releases if release.yanked is None]
    plain = [release for release in valid if release.row.id not in twice]
    if valid and not plain:
        sentence = f"the publisher of {spec.name} signed two different releases {valid[0].row.version}"
        raise _ambiguous(sentence, valid)
    final = plain if spec.version else [release for release in plain if not is_prerelease(release.row.version)]
    # Only yanked ones are left: what is wanted by its version is taken, with a warning.
    if not plain and not spec.version:
        raise NotFound(f"all releases of {spec.name} are yanked", hint=f"autoresearch search {spec.name} --yanked")
    chosen = (final or plain or releases)[0]
    versions = {release.row.version for release in valid if release.row.id in twice} - {chosen.row.version}
    more = tuple(f"{spec.name} {version} is passed over: it has two different contents" for version in sorted(versions))
    return ReleaseChoice(chosen, _warnings(chosen) + more)


def _warnings(release: ListedRelease) -> tuple[str, ...]:
    row, yank = release.row, release.yanked
    return (f"{row.name} {row.version} is yanked: autoresearch show {short_id(yank)}",) if yank else ()


def _ambiguous(sentence: str, every: Sequence[ListedRelease]) -> AmbiguousName:
    first = {(release.publisher, release.row.version, release.row.content): release for release in reversed(every)}
    releases = in_order(first.values())[:_SHOWN]
    words = ", ".join(
        f"{short_id(release.row.id)} ({release.row.version} by {release.publisher.hex()[:8]}"
        f"{'' if release.attested else ', unattested'})"
        for release in releases
    )
    ids = [format_id(release.row.id) for release in releases]
    return AmbiguousName(sentence, ids, hint=f"name one by its id: {words}")


# So many releases that fit best are looked at, those of attested participants first.
SEARCHED = 2000


class FoundComponent(NamedTuple):
    """A publisher's component: the release by default, and the releases that were found."""

    newest: ListedRelease
    releases: tuple[ListedRelease, ...]


@in_snapshot
def resolve(log: Log, kind: str, text: str, *, pinned: bytes | None = None, me: bytes | None = None) -> ReleaseChoice:
    """The release that ``NAME``, ``NAME==VERSION``, ``PUBLISHER/NAME`` or an id means among components of a type.

    An id is a release's, or the beginning of it; a component of that name comes first. ``pinned`` is the id that a
    project pins; ``me`` is this machine's device key. See :func:`choose`.

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
    rows = log.releases.named(kind, spec.name)
    if not spec.publisher:  # what is hidden here is meant only where its publisher, or the release, is named
        hidden = log.hidden.of([row.id for row in rows]) - {pinned}
        rows = [row for row in rows if row.id not in hidden]
    if not rows and pinned is None and spec == Spec(spec.name):
        with suppress(NotFound, UsageError):
            row = log.releases.find(log.records.resolve(spec.name))
            if row is not None and row.type == kind:
                [release] = _releases(log, [row], me)
                return ReleaseChoice(release, _warnings(release))
    return choose(_releases(log, rows, me), spec, pinned=pinned)


def read_component(log: Log, release: bytes) -> ReleasedComponent:
    """What a release says. Raises NotFound where there is none, UsageError where it is no component."""
    record = log.records.get(release)
    component = component_of(record.body) if isinstance(record.body, ReleaseBody) else None
    if component is None:
        sentence = f"{format_id(release)} is no release of a component that can be installed"
        raise UsageError(sentence, hint="autoresearch search --kind component")
    return component


@in_snapshot
def releases_named(log: Log, kind: str, name: str, *, me: bytes | None = None) -> list[ListedRelease]:
    """All releases of a type and a name, of all publishers, the newest version first."""
    return in_order(_releases(log, log.releases.named(kind, name), me))


@in_snapshot
def releases_like(log: Log, release: bytes, *, me: bytes | None = None) -> list[ListedRelease]:
    """All releases of the component of a release by its publisher, the newest version first; empty where none is."""
    row = log.releases.find(release)
    if row is None:
        return []
    every = _releases(log, log.releases.named(row.type, row.name), me)
    publisher = next(other.publisher for other in every if other.row.id == release)
    return in_order(other for other in every if other.publisher == publisher)


@in_snapshot
def search(
    log: Log, query: str = "", *, kind: str = "", limit: int = 20, yanked: bool = False, me: bytes | None = None
) -> list[FoundComponent]:
    """Components whose text or publisher has all words of the query, of one type or of all.

    First those whose name is the query, then by how well they fit; attested participants' before strangers'. Without a
    query the newest first. ``yanked``: also those of which every release is yanked.
    """
    trust, words = trust_context(log, me), query.split()
    publishers = _publishers(log) if words else {}
    terms = [
        (word, [device for device, texts in publishers.items() if any(text.startswith(word.lower()) for text in texts)])
        for word in words
    ]
    trusted = trust.roster.keys | trust.mine | ({me} if me else set()) if trust.naming else None
    rows = log.releases.search(terms, kind=kind, limit=SEARCHED, authors=trusted)
    if trusted is not None and len(rows) < SEARCHED:
        ids = {row.id for row in rows}
        rows += [row for row in log.releases.search(terms, kind=kind, limit=SEARCHED) if row.id not in ids]
    place = {row.id: number for number, row in reversed(list(enumerate(rows)))}
    grouped: defaultdict[tuple[bytes, str, str], list[ListedRelease]] = defaultdict(list)
    for release in _releases(log, rows, me):
        if yanked or release.yanked is None:
            grouped[release.publisher, release.row.type, release.row.name].append(release)
    components = [FoundComponent(newest_of(several), tuple(several)) for several in grouped.values()]

    def order(component: FoundComponent) -> tuple[object, ...]:
        newest = component.newest
        exact = newest.row.name.lower() == query.strip().lower()
        return not (newest.attested or newest.own), not exact, min(place[each.row.id] for each in component.releases)

    return sorted(components, key=order)[:limit]


def _releases(log: Log, rows: Sequence[ReleaseRow], me: bytes | None) -> list[ListedRelease]:
    """The same with who stands behind each, and what its own publisher yanked."""
    trust, roster = trust_context(log, me), roster_of(log)
    # Who speaks for whom is judged by records, not by a clock.
    own = roster.voter(me, log.records.newest_ms()).root if me else None
    yanks: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for yank in log.releases.yanks([row.id for row in rows]):
        yanks.setdefault(yank.target, []).append((roster.voter(yank.author, yank.time).root, yank.id))
    releases = []
    for row in rows:
        publisher = roster.voter(row.author, row.time).root
        mine = row.author == me or publisher == own
        yanked = min((record for root, record in yanks.get(row.id, ()) if root == publisher), default=None)
        releases.append(ListedRelease(row, publisher, whose(row.author, row.time, trust).attested, mine, yanked))
    return releases


def _publishers(log: Log) -> dict[bytes, list[str]]:
    """The devices that published releases, with the key and the words of the name of each one's participant."""

    def words() -> dict[bytes, list[str]]:
        newest = log.records.newest_ms()
        views = ((device, participant_of(log, device, newest)) for device in log.releases.authors())
        return {device: f"{view.key} {view.name}".lower().split() for device, view in views}

    return cached(log, "publishers", words)
