"""Whether this Python, or that of every node, has what a list of packages asks for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from autoresearch.tasks import Package

_OWN = "autoresearch-p2p"


def has_packages(wanted: Sequence[str]) -> bool:
    """Whether lines such as ``numpy>=2`` are met by the packages of this Python. One with extras counts as not met."""
    return all(map(_is_met, wanted))


def every_node_has(line: str) -> bool:
    """Whether a line is met here by a package that comes with this program, also by what projects need of it."""
    try:
        own = {canonicalize_name(Requirement(each).name) for each in requires(_OWN) or []}
        return canonicalize_name(Requirement(line).name) in own and has_packages([line])
    except (InvalidRequirement, PackageNotFoundError):
        return False


def lock_meets(wanted: Sequence[str], packages: Sequence[Package]) -> bool:
    """Whether lines such as ``numpy>=2`` are met by a locked list."""
    versions = {canonicalize_name(each.name): each.version for each in packages}
    asked = map(Requirement, wanted)
    return all(
        each.specifier.contains(versions[name], prereleases=True)
        if (name := canonicalize_name(each.name)) in versions
        else False
        for each in asked
    )


def _is_met(line: str) -> bool:
    try:
        asked = Requirement(line)
        if asked.marker is not None and not asked.marker.evaluate():
            return True
        return not asked.extras and asked.specifier.contains(version(asked.name), prereleases=True)
    except (InvalidRequirement, PackageNotFoundError):
        return False
