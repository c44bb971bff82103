"""What a program needs beside itself: Python packages, folders of the home, a budget of time. Runs nothing.

A list of packages is locked: each with its exact version and the hashes of its files. This is a small part of what pip
reads. A stranger's file can hold options for pip, addresses and paths; here it can't. A task pins its list. A program
may bring a list of its own, where its task lets it: ``requirements.txt``.

Folders and budget are read from the source as they stand there: ``os.path.join(os.path.expanduser("~"), ".cache",
"name")``, ``TIME_BUDGET = 5 * 60``.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.task.program import split_program
from autoresearch.task.source import parse_python

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
    packages: list[Package] = []
    for number, line in _lines(text):
        match = _PACKAGE.fullmatch(line)
        if match is None:
            raise UsageError(
                f"{where} is not locked: line {number}, “{line[:60]}”, is not name==version with hashes",
                hint="autoresearch task lock DIR",
            )
        hashes = tuple(part.rpartition(":")[2] for part in match["hashes"].split())
        name = f"{match['name']}{match['extras'] or ''}"
        packages.append(Package(name, match["version"], hashes, match["marker"] or ""))
    if len(packages) > MAX_PACKAGES:
        raise UsageError(f"{where} names {len(packages)} packages", hint=f"{MAX_PACKAGES} are allowed")
    return packages


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
    lines: list[tuple[int, str]] = []
    begun, pending = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if pending else number
        content = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        pending += f"{content.removesuffix(chr(92))} "
        if content.endswith("\\"):
            continue
        if whole := " ".join(pending.split()):
            lines.append((begun, whole))
        pending = ""
    if whole := " ".join(pending.split()):
        lines.append((begun, whole))
    return lines


_TIME = re.compile(
    r"^(?:TIME_BUDGET|TIME_LIMIT|MAX_TIME|MAX_SECONDS|BUDGET_SECONDS)(?:_SECONDS|_SEC|_S)?"
    r"(?:\s*:\s*\w+)?\s*=\s*(?P<factors>[\d_.]+(?:\s*\*\s*[\d_.]+)*)\s*(?:#.*)?$",
    re.MULTILINE | re.IGNORECASE,
)
_IN_TEXT = re.compile(r"(?:~|\$HOME|\$\{HOME\})(/[\w.@+-]+(?:/[\w.@+-]+)*)")
_ABSOLUTE = re.compile(r"(?<![\w.~])/[\w.@+-]+(?:/[\w.@+-]+)*")
# Folders that many programs share, and those with keys and passwords: a run is shown none because its program names it.
_SHARED = frozenset({".cache", ".config", ".local", ".local/share", ".local/state", ".local/lib", ".local/bin"})
SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".password-store", ".mozilla"}
)
# Where an error happened is no path that a program wants: a line of a traceback, or of a compiler's or a warning's.
_PLACE_IN_CODE = re.compile(r"""File "[^"\n]{1,1000}", line \d+|[^\s"':]{1,300}:\d+:""")
# What a program says of a file that it could not have.
_NOT_HAD = re.compile(
    r"no such|not found|denied|n[o']t exist|read-only|missing|no data|unable to|FileNotFound"
    r"|(?:cannot|can't|could not|couldn't|failed to) (?:be )?(?:open|read|find|load|access|stat|create)",
    re.IGNORECASE,
)
_QUOTED_PATH = re.compile(r"""['"`‘](/[^'"`’\n]{1,500})['"’]""")
_SYSTEM = frozenset({"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "nix", "proc", "run", "sbin", "sys", "usr"})
_PLACES = frozenset({"/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/var/lib", "/var/tmp"})  # noqa: S108
# Only so much of the end of what a program printed is looked at: it may be large, and made to be slow to read.
END_CHARACTERS = 16_384
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|lib(?:32|64)?/python\d[\d.]*)(?:/|$)")


def stated_seconds(sources: Iterable[str]) -> float | None:
    """The seconds that a constant such as ``TIME_BUDGET`` gives a program, by the first of its files that has one."""
    for source in sources:
        if match := _TIME.search(source):
            try:
                return math.prod(float(factor) for factor in match["factors"].split("*"))
            except ValueError:
                continue
    return None


def named_in_home(name: str, source: str) -> set[str]:
    """The paths below the home that a file names, relative to it."""
    if not name.endswith(".py"):
        return {path[1:] for path in _IN_TEXT.findall(source)}
    reader = _Paths(source)
    return {path[2:] for path in reader.paths if path.startswith("~/")}


def printed_in_home(text: str, homes: Iterable[Path]) -> set[str]:
    """The paths below one of ``homes`` that a program printed, relative to it: such as those that it did not find.

    No place in code is among them, and nothing of Python or its packages. The end of the text is read.
    """
    named = _ABSOLUTE.findall(_PLACE_IN_CODE.sub("", text[-END_CHARACTERS:]))
    paths = [PurePosixPath(path) for path in named if not is_library(path)]
    return {str(path.relative_to(home)) for path in paths for home in homes if path.is_relative_to(home)} - {"."}


def printed_folders(text: str, home: Path) -> list[str]:
    """The folders outside of the home that a program could not have and this machine has, outermost.

    They stand on lines such as ``No such file or directory: '/data/a.csv'``; of a file it is the folder that it is in.
    Nothing of the system is among them, nor of Python and its packages.
    """
    lines = [line for line in text[-END_CHARACTERS:].splitlines() if _NOT_HAD.search(line)]
    end = _PLACE_IN_CODE.sub("", "\n".join(lines))
    paths = [*_QUOTED_PATH.findall(end), *_ABSOLUTE.findall(end)]
    outermost: list[Path] = []
    for path in sorted({Path(os.path.normpath(path)) for path in paths}):
        try:
            folder = path if path.is_dir() else path.parent if path.is_file() else None
        except OSError:
            continue
        if folder is None or str(folder) in _PLACES or folder.parts[1] in _SYSTEM or is_library(str(folder)):
            continue
        is_own = folder.is_relative_to(home) or home.is_relative_to(folder) or SECRET_FOLDERS.intersection(folder.parts)
        if not is_own and not any(folder.is_relative_to(other) for other in outermost):
            outermost.append(folder)
    return list(map(str, outermost))


def is_library(path: str) -> bool:
    """Whether an absolute path lies in Python or its packages, of the node's own or of another environment."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix} - {"/", "/usr", "/usr/local"}
    return bool(_LIBRARY.search(path)) or any(PurePosixPath(path).is_relative_to(prefix) for prefix in prefixes)


def folders_to_mount(paths: Iterable[str], home: Path) -> list[str]:
    """The outermost existing folders of these paths, of a file the one that it is in, as ``~/path``.

    Left out are folders that programs share, those with keys, and whatever leads out of the home.
    """
    outer: list[PurePosixPath] = []
    for folder in sorted(filter(None, (_folder(path, home) for path in paths))):
        if not any(folder.is_relative_to(other) for other in outer):
            outer.append(folder)
    return [f"~/{folder}" for folder in outer]


def _folder(path: str, home: Path) -> PurePosixPath | None:
    relative = PurePosixPath(os.path.normpath(path))
    if (home / relative).is_file():
        relative = relative.parent
    is_named = (
        relative.parts and relative.parts[0] not in {"..", *SECRET_FOLDERS} and str(relative) not in {".", *_SHARED}
    )
    is_own = relative.parts[:1] != (".cache",) and "autoresearch" in relative.parts and relative.parts[0] in _SHARED
    return relative if is_named and not is_own and (home / relative).is_dir() else None


class _Paths:
    """The texts that the expressions of a Python file stand for, as far as they follow from constants."""

    def __init__(self, source: str) -> None:
        self._names: dict[str, str] = {}
        tree = parse_python(source)
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if (text := self._text(value)) is not None:
                        self._names.setdefault(name, text)
        expressions = (node for node in ast.walk(tree) if isinstance(node, ast.expr))
        self.paths = {text for node in expressions if (text := self._text(node)) is not None}

    def _text(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined([left, right])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._text(left), self._text(right)
                return None if first is None or second is None else first + second
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value="HOME")):
                return "~"
            case ast.JoinedStr(values=values):
                texts = [self._text(value) for value in values]
                return None if None in texts else "".join(filter(None, texts))
            case ast.FormattedValue(value=value):
                return self._text(value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                return self._called(name, node.func, arguments)
            case _:
                return None

    def _called(self, name: str, function: ast.expr, arguments: list[ast.expr]) -> str | None:
        owner = function.value if isinstance(function, ast.Attribute) else None
        match name:
            case "home":
                return "~"
            case "get" | "getenv" if arguments:
                return "~" if self._text(arguments[0]) == "HOME" else self._joined(arguments[1:])
            case "join" if owner and self._text(owner) is None:
                return self._joined(arguments)
            case "joinpath" if owner:
                return self._joined([owner, *arguments])
            case "expanduser" | "resolve" | "absolute" if owner and not arguments:
                return self._text(owner)
            case "expanduser" | "Path" | "str" | "abspath" | "realpath" | "fspath":
                return self._joined(arguments)
            case _:
                return None

    def _joined(self, parts: list[ast.expr]) -> str | None:
        """The path of these parts, where each is known."""
        texts = [text for part in parts if (text := self._text(part)) is not None]
        return os.path.join(*texts) if texts and len(texts) == len(parts) else None  # noqa: PTH118 - it is a text
