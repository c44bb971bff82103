"""A program as one text, whatever its files are, and what names it. Pure.

A program of one ``train.py`` is the text of that file. Any other program has each file behind a line with its name.
Such a text can't begin a Python program, so no text has two meanings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from autoresearch.errors import UsageError
from autoresearch.tasks.source import canonical_source

ENTRY = "train.py"
MAX_PROGRAM_FILES = 16
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

_MARK = "==== autoresearch file: "
_BOUNDARY = re.compile(re.escape(_MARK) + rf"({PLAIN_NAME.pattern}) ====")
_DOMAIN = b"autoresearch/program/1\n"


def join_files(files: Mapping[str, str]) -> str:
    """The text of a program from its files, in their order; each but a lone ``train.py`` ends with a newline.

    Raises UsageError where a file has a line that only boundaries may have.
    """
    if list(files) == [ENTRY]:
        return files[ENTRY]
    parts = []
    for name, content in files.items():
        if content.startswith(_MARK) or f"\n{_MARK}" in content:
            raise UsageError(f"{name} has a line that begins with {_MARK.strip()!r}", hint="change that line")
        parts.append(f"{_MARK}{name} ====\n{content}" + ("\n" if content and not content.endswith("\n") else ""))
    return "".join(parts)


def is_lone(text: str) -> bool:
    """Whether a program is a lone ``train.py``."""
    return not text.startswith(_MARK)


def split_program(text: str) -> dict[str, str]:
    """The files of a program by name, in their order. Raises UsageError where the text is no program."""
    if is_lone(text):
        return {ENTRY: text}
    files: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        boundary = _BOUNDARY.fullmatch(line)
        if boundary is None or boundary[1] in files:
            raise UsageError(f"the program has a boundary line that names no file of its own: {line[:80]!r}")
        lines = files[boundary[1]] = []
    if list(files) == [ENTRY] or len(files) > MAX_PROGRAM_FILES:
        raise UsageError(f"the program has {len(files)} files behind boundary lines, which is no valid form")
    *others, last = files
    return {**{name: "".join(f"{line}\n" for line in files[name]) for name in others}, last: "\n".join(files[last])}


def source_digest(text: str) -> bytes:
    """What names a program: formatting does not count. Raises UsageError when a ``.py`` file is not Python.

    Of a lone ``train.py`` it is the SHA-256 of :func:`canonical_source`. Otherwise it is that of all names with the
    digest of each file: of other than Python files without the ends of lines, blanks before them and empty last lines.
    """
    if is_lone(text):
        return hashlib.sha256(canonical_source(text)).digest()
    files = split_program(text)
    parts = (name.encode() + b"\0" + _file_digest(name, files[name]) for name in sorted(files))
    return hashlib.sha256(_DOMAIN + b"".join(parts)).digest()


def _file_digest(name: str, content: str) -> bytes:
    if not name.endswith(".py"):
        lines = "\n".join(line.rstrip(" \t\r") for line in content.split("\n")).rstrip("\n")
        return hashlib.sha256(lines.encode()).digest()
    try:
        return hashlib.sha256(canonical_source(content)).digest()
    except UsageError as error:
        raise UsageError(f"{name}: {error}", hint=error.hint) from error
