"""What the source of a program says of what it needs: folders of the home, a budget of time. Runs nothing.

``os.path.join(os.path.expanduser("~"), ".cache", "name")`` and ``TIME_BUDGET = 5 * 60`` are read as they stand.
"""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_TIME = re.compile(
    r"^(?:TIME_BUDGET|TIME_LIMIT|MAX_TIME|MAX_SECONDS|BUDGET_SECONDS)(?:_SECONDS|_SEC|_S)?"
    r"(?:\s*:\s*\w+)?\s*=\s*(?P<factors>[\d_.]+(?:\s*\*\s*[\d_.]+)*)\s*(?:#.*)?$",
    re.MULTILINE | re.IGNORECASE,
)
_IN_TEXT = re.compile(r"(?:~|\$HOME|\$\{HOME\})(/[\w.@+-]+(?:/[\w.@+-]+)*)")
_ABSOLUTE = re.compile(r"(?<![\w.~])/[\w.@+-]+(?:/[\w.@+-]+)*")
# Folders that many programs share, and those with keys and passwords: a run is shown none because its program names it.
_SHARED = frozenset({".cache", ".config", ".local", ".local/share", ".local/state", ".local/lib", ".local/bin"})
_SECRET = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".password-store", ".mozilla"})
CACHES = "~/.cache/"


def stated_seconds(sources: Iterable[str]) -> float | None:
    """The seconds that a constant such as ``TIME_BUDGET`` gives a program, by the first of its files that has one."""
    for source in sources:
        if found := _TIME.search(source):
            try:
                return math.prod(float(factor) for factor in found["factors"].split("*"))
            except ValueError:
                continue
    return None


def named_in_home(name: str, source: str) -> set[str]:
    """The paths below the home that a file names, relative to it."""
    if not name.endswith(".py"):
        return {found[1:] for found in _IN_TEXT.findall(source)}
    reader = _Paths(source)
    return {path[2:] for path in reader.paths if path.startswith("~/")}


def printed_in_home(text: str, homes: Iterable[Path]) -> set[str]:
    """The paths below one of ``homes`` that a program printed, relative to it: such as those that it did not find."""
    paths = [PurePosixPath(found) for found in _ABSOLUTE.findall(text)]
    return {str(path.relative_to(home)) for path in paths for home in homes if path.is_relative_to(home)} - {"."}


def folders_to_mount(paths: Iterable[str], home: Path) -> list[str]:
    """The outermost existing folders of these paths, of a file the one that it is in, as ``~/path``.

    Left out are folders that programs share, those with keys, and whatever leads out of the home.
    """
    kept: list[PurePosixPath] = []
    for folder in sorted(filter(None, (_folder(path, home) for path in paths))):
        if not any(folder.is_relative_to(other) for other in kept):
            kept.append(folder)
    return [f"~/{folder}" for folder in kept]


def _folder(path: str, home: Path) -> PurePosixPath | None:
    relative = PurePosixPath(os.path.normpath(path))
    if (home / relative).is_file():
        relative = relative.parent
    is_named = relative.parts and relative.parts[0] not in {"..", *_SECRET} and str(relative) not in {".", *_SHARED}
    is_own = relative.parts[:1] != (".cache",) and "autoresearch" in relative.parts and relative.parts[0] in _SHARED
    return relative if is_named and not is_own and (home / relative).is_dir() else None


class _Paths:
    """The texts that the expressions of a Python file stand for, as far as they follow from constants."""

    def __init__(self, source: str) -> None:
        self._names: dict[str, str] = {}
        tree = ast.parse(source)
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
