"""Which release a name means. A name is a claim of whoever publishes it, an id is identity. Pure.

The answer is a function of the set of releases, whatever the order in which they came.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from autoresearch.errors import AmbiguousName, NotFound, UsageError
from autoresearch.log import ReleaseRow
from autoresearch.records import format_id, short_id
from autoresearch.releases import NAME, VERSION, is_prerelease

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
        raise NotFound(f"there is no component {spec.name} here{_by(spec)}", hint="autoresearch search")
    mine = _of_one_publisher(every, spec)
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
    hint = "autoresearch peers, who may have it; or unpin it"
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
    raise _ambiguous(f"the name {spec.name} alone says not which release: {why}", every)


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
