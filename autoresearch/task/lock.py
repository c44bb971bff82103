"""A list of Python packages, locked: each with its exact version and the hashes of its files. Pure.

This is a small part of what pip reads. A stranger's file can hold options for pip, addresses and paths; here it can't.
A task pins its list. A program may bring a list of its own, where its task lets it: ``requirements.txt``.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.task.program import split_program

# A list as people write it, and as it is locked.
LOOSE, LOCK = "requirements.in", "requirements.txt"
MAX_PACKAGES = 512
# What may stand on a list that is not locked: no option, address, path or editable package, which pip would build.
_WANTED = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])? ?(?:\[[A-Za-z0-9._, -]{1,200}\])?"
    r"(?: ?(?:===?|[<>!~]=|[<>]) ?[A-Za-z0-9][A-Za-z0-9.!+*_-]{0,98} ?,?){0,8}"
    r"(?: ?; ?[A-Za-z0-9_.<>=!~'\"() -]{1,200})?"
)
_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
    r"(?P<extras>\[[A-Za-z0-9._, -]{1,200}\])?"
    r"==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]{0,98})"
    r"(?: ?; ?(?P<marker>[A-Za-z0-9_.<>=!~'\"() -]{1,200}?))?"
    r"(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


class Package(NamedTuple):
    """One package of a lock. ``marker`` says on which machines it is needed; empty: on all. Hashes are SHA-256, hex."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""


def parse_lock(text: str, where: str) -> list[Package]:
    """The packages of a locked list: lines ``name==version --hash=sha256:…`` and comments; a backslash joins lines.

    Raises:
        UsageError: a line is something else, or there are too many; ``where`` names the file in the sentence.
    """
    found: list[Package] = []
    for number, line in _lines(text):
        match = _PACKAGE.fullmatch(line)
        if match is None:
            raise UsageError(
                f"{where} is not locked: line {number}, “{line[:60]}”, is not name==version with hashes",
                hint="autoresearch task lock DIR",
            )
        hashes = tuple(part.rpartition(":")[2] for part in match["hashes"].split())
        name = f"{match['name']}{match['extras'] or ''}"
        found.append(Package(name, match["version"], hashes, match["marker"] or ""))
    if len(found) > MAX_PACKAGES:
        raise UsageError(f"{where} names {len(found)} packages", hint=f"{MAX_PACKAGES} are allowed")
    return found


def parse_wanted(text: str, where: str) -> list[str]:
    """The lines of a list that is not locked: names with versions, as ``numpy>=2``.

    Raises:
        UsageError: a line is something else; ``where`` names the file in the sentence.
    """
    lines = _lines(text)
    for number, line in lines:
        if not _WANTED.fullmatch(line):
            raise UsageError(
                f"{where} can't be locked: line {number}, “{line[:60]}”, is no package's name with or without versions",
                hint="such as numpy>=2; an index belongs into pip's settings: PIP_INDEX_URL",
            )
    return [line for _, line in lines]


def program_packages(source: str) -> list[Package]:
    """The packages that a program brings a list of; none where it brings none. Raises UsageError."""
    return parse_lock(split_program(source).get(LOCK, ""), LOCK)


def write_lock(packages: list[Package]) -> str:
    """A locked list as the text that :func:`parse_lock` and pip read."""
    parts = []
    for package in packages:
        marker = f" ; {package.marker}" if package.marker else ""
        hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in package.hashes)
        parts.append(f"{package.name}=={package.version}{marker}{hashes}\n")
    return "".join(parts)


def lock_digest(packages: list[Package]) -> bytes:
    """SHA-256 of a locked list, whatever its comments and line ends are."""
    return hashlib.sha256(write_lock(packages).encode()).digest()


def _lines(text: str) -> list[tuple[int, str]]:
    """The logical lines with the number of their first line, without comments, each run of blanks as one."""
    found: list[tuple[int, str]] = []
    begun, pending = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if pending else number
        kept = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        pending += f"{kept.removesuffix(chr(92))} "
        if kept.endswith("\\"):
            continue
        if whole := " ".join(pending.split()):
            found.append((begun, whole))
        pending = ""
    if whole := " ".join(pending.split()):
        found.append((begun, whole))
    return found
