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
from autoresearch.log.standing.context import TrustContext, participant_of, trust_context, whose
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Release as ReleaseBody
from autoresearch.task.release import NAME, TYPE, VERSION, ReleasedComponent, component_of, is_prerelease

_SHOWN = 10
_PUBLISHER = re.compile(r"[0-9a-f]{4,64}")


class Release(NamedTuple):
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


class Choice(NamedTuple):
    """What a name means, and what a person should know of it."""

    release: Release
    warnings: tuple[str, ...] = ()


def choose(found: Iterable[Release], spec: Spec, *, pinned: bytes | None = None) -> Choice:
    """The release that a name means among all ``found`` of that type and name.

    What is ``pinned``, by its id, else this participant's own, else that of the one attested publisher; of it the
    version that is named, else the newest one that is neither yanked, nor a pre-release, nor one of two that differ.

    Raises:
        NotFound: there is none.
        AmbiguousName: several publishers have it, nobody attested has, or one version has two contents.
    """
    every = in_order(found)
    if pinned is not None:
        return _pinned(every, spec, pinned)
    every = [one for one in every if one.publisher.hex().startswith(spec.publisher)]
    if not every:
        raise NotFound(
            f"there is no component {spec.name} here{_by(spec)}", hint="autoresearch search --kind component"
        )
    # What is yanked blocks no name: publishers who yanked all of theirs are asked after only where no other is left.
    kept = {one.publisher for one in every if one.yanked is None or spec.version}
    mine = _of_one_publisher([one for one in every if one.publisher in kept] or every, spec)
    wanted = [one for one in mine if not spec.version or one.row.version == spec.version]
    if not wanted:
        versions = ", ".join(dict.fromkeys(one.row.version for one in reversed(mine)))
        raise NotFound(f"there is no {spec.name} {spec.version} here", hint=f"versions: {versions[:200]}")
    return _newest(wanted, spec)


def equivocal(found: Iterable[Release]) -> frozenset[bytes]:
    """The ids of releases whose publisher has another one of the same type, name and version that installs otherwise.

    Yanked ones do not count: by a yank the publisher says which of two it does not mean.
    """
    same: defaultdict[tuple[object, ...], list[Release]] = defaultdict(list)
    for one in found:
        if one.yanked is None:
            same[one.publisher, one.row.type, one.row.name, one.row.version].append(one)
    return frozenset(
        one.row.id for several in same.values() if len({one.row.content for one in several}) > 1 for one in several
    )


def newest_of(found: Collection[Release]) -> Release:
    """The release that stands for a publisher's component in a list: the one by default, else the newest at all."""
    twice = equivocal(found)
    kept = [one for one in found if one.yanked is None]
    plain = [one for one in kept if one.row.id not in twice and not is_prerelease(one.row.version)]
    return in_order(plain or kept or found)[0]


def in_order(found: Iterable[Release]) -> list[Release]:
    """The newest version first; of one version the oldest release first."""
    oldest = sorted(found, key=lambda one: (one.row.time, one.row.id))
    return sorted(oldest, key=lambda one: one.row.version_key, reverse=True)


def _pinned(every: Sequence[Release], spec: Spec, pinned: bytes) -> Choice:
    for one in every:
        if one.row.id == pinned:
            return Choice(one, _warnings(one))
    hint = "autoresearch network peers, who may have it; or unpin it"
    raise NotFound(f"the pinned release {short_id(pinned)} of {spec.name} is not here", hint=hint)


def _of_one_publisher(every: Sequence[Release], spec: Spec) -> Sequence[Release]:
    publishers = {one.publisher for one in every}
    for trusted in (
        {one.publisher for one in every if one.own},
        {one.publisher for one in every if one.attested},
        publishers if spec.publisher else set(),
    ):
        if len(trusted) == 1:
            [publisher] = trusted
            return [one for one in every if one.publisher == publisher]
        if trusted:
            break
    count = len(publishers)
    why = "only unattested participants publish it" if count == 1 or not trusted else f"{count} participants publish it"
    offered = [one for one in every if one.yanked is None] or every
    raise _ambiguous(f"the name {spec.name} alone says not which release: {why}", offered)


def _newest(wanted: Sequence[Release], spec: Spec) -> Choice:
    twice = equivocal(wanted)
    kept = [one for one in wanted if one.yanked is None]
    plain = [one for one in kept if one.row.id not in twice]
    if kept and not plain:
        sentence = f"the publisher of {spec.name} signed two different releases {kept[0].row.version}"
        raise _ambiguous(sentence, kept)
    final = plain if spec.version else [one for one in plain if not is_prerelease(one.row.version)]
    # Only yanked ones are left: what is wanted by its version is taken, with a warning.
    if not plain and not spec.version:
        raise NotFound(f"all releases of {spec.name} are yanked", hint=f"autoresearch search {spec.name} --yanked")
    chosen = (final or plain or wanted)[0]
    passed = sorted({one.row.version for one in kept if one.row.id in twice and one.row.version != chosen.row.version})
    more = tuple(f"{spec.name} {version} is passed over: it has two different contents" for version in passed)
    return Choice(chosen, _warnings(chosen) + more)


def _warnings(one: Release) -> tuple[str, ...]:
    yanked = one.yanked is not None
    said = f"{one.row.name} {one.row.version} is yanked: autoresearch show {short_id(one.yanked)}" if one.yanked else ""
    return (said,) if yanked else ()


def _ambiguous(sentence: str, every: Sequence[Release]) -> AmbiguousName:
    first = {(one.publisher, one.row.version, one.row.content): one for one in reversed(every)}
    shown = in_order(first.values())[:_SHOWN]
    words = ", ".join(
        f"{short_id(one.row.id)} ({one.row.version} by {one.publisher.hex()[:8]}{_standing(one)})" for one in shown
    )
    return AmbiguousName(sentence, [format_id(one.row.id) for one in shown], hint=f"name one by its id: {words}")


def _standing(one: Release) -> str:
    return "" if one.attested else ", unattested"


def _by(spec: Spec) -> str:
    return f" by {spec.publisher}" if spec.publisher else ""


# So many releases that fit best are looked at, those of attested participants first.
SEARCHED = 2000


class FoundComponent(NamedTuple):
    """A publisher's component: the release by default, and the releases that were found."""

    newest: Release
    releases: tuple[Release, ...]


@in_snapshot
def resolve(log: Log, kind: str, text: str, *, pinned: bytes | None = None, me: bytes | None = None) -> Choice:
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
                [one] = _releases(log, [row], me)
                return Choice(one, _warnings(one))
    return choose(_releases(log, rows, me), spec, pinned=pinned)


def component(log: Log, release: bytes) -> ReleasedComponent:
    """What a release says. Raises NotFound where there is none, UsageError where it is no component."""
    record = log.records.get(release)
    found = component_of(record.body) if isinstance(record.body, ReleaseBody) else None
    if found is None:
        sentence = f"{format_id(release)} is no release of a component that can be installed"
        raise UsageError(sentence, hint="autoresearch search --kind component")
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

    return cached(log, "publishers", named)


def _devices(publishers: dict[bytes, str], word: str) -> Collection[bytes]:
    """The devices whose participant has a key or a word in its name that begins so."""
    asked = word.lower()
    return [device for device, text in publishers.items() if _begins(text.split(), asked)]


def _begins(texts: Iterable[str], word: str) -> bool:
    return any(text.startswith(word) for text in texts)
