"""A program as one text, whatever its files are, and what names it. Pure.

A program of one ``train.py`` is the text of that file. Any other program has each file behind a line with its name.
Such a text can't begin a Python program, so no text has two meanings.

Names of files that tools obey where they find them, and that nothing of a participant may therefore have.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath

from autoresearch.errors import UsageError
from autoresearch.task.source import canonical_source

ENTRY = "train.py"
MAX_PROGRAM_FILES = 16
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
# A file's name is as long as a record's names at most, with the folders before it.
_NAME_CHARACTERS = 64
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_FILE_NAME = rf"{_PART}(?:/{_PART})*"

# In small letters. Coding agents take orders from such files; Python, pytest, make and editors run what stands there.
_TOOL_FILES = (
    ".*",  # .git*, .vscode, .envrc, .cursorrules, .mcp.json, .github, …
    *("agents*.md", "agent.md", "claude*.md", "gemini*.md", "qwen*.md", "codex*.md", "copilot*.md", "cursor*.md"),
    *("conventions.md", "crush.md", "warp.md", "skill.md", "llms*.txt", "mcp.json", "opencode.json*"),
    *("*.instructions.md", "*.prompt.md", "*.agent.md", "*.chatmode.md", "*.mdc"),
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "setup.cfg", "pyproject.toml", "*.pth"),
    *("tox.ini", "pytest.ini", "pytest.toml", "mypy.ini", "ruff.toml", "uv.toml", "pip.conf", "pipfile*", "pyvenv.cfg"),
    *("noxfile.py", "ipython_config.py", "jupyter*_config.py", "jupyter*_config.json"),
    *("makefile*", "gnumakefile", "bsdmakefile", "cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json"),
    *("justfile", "taskfile.y*ml", "rakefile", "gemfile", "sconstruct", "wscript", "build.rs", "cargo.toml"),
    *("package.json", "dockerfile*", "containerfile*", "compose.y*ml", "docker-compose*.y*ml", "devcontainer.json"),
    *("procfile", "vagrantfile", "jenkinsfile", "*.code-workspace", "*.desktop", "desktop.ini", "autorun.inf"),
)

_MARK = "==== autoresearch file: "
_BOUNDARY = re.compile(re.escape(_MARK) + rf"({_FILE_NAME}) ====")
_DOMAIN = b"autoresearch/program/1\n"


def is_tool_file(path: str) -> bool:
    """Whether a part of a path is a name that a tool obeys, such as ``AGENTS.md`` or ``Makefile``, in any spelling."""
    parts = unicodedata.normalize("NFKC", path).casefold().split("/")
    return any(fnmatchcase(part.rstrip(". "), pattern) for part in parts for pattern in _TOOL_FILES)


def check_file_name(name: str) -> None:
    """Raises UsageError for a name that no file of a task or a program may have; of a file in folders it has these."""
    if not re.fullmatch(_FILE_NAME, name) or len(name) > _NAME_CHARACTERS:
        hint = f"use letters, digits, dots, - and _, and no more than {_NAME_CHARACTERS} with its folders"
        raise UsageError(f"{name[:80]!r} is no plain file name", hint=hint)
    if is_tool_file(name):
        raise UsageError(
            f"tools obey a file with the name {name}, so no task or program has one", hint="give the file another name"
        )


def check_file_names(names: Iterable[str]) -> None:
    """Raises UsageError as :func:`check_file_name`, and where a name is a file's and that of a folder of another."""
    files = frozenset(names)
    for name in files:
        check_file_name(name)
        if clash := next((str(folder) for folder in PurePosixPath(name).parents if str(folder) in files), ""):
            raise UsageError(f"{clash} is a file, and the folder of {name}", hint="give one of them another name")


def join_files(files: Mapping[str, str]) -> str:
    """The text of a program from its files, in their order; each but a lone ``train.py`` ends with a newline.

    Raises UsageError where a file has a line that only boundaries may have, or a name that tools obey.
    """
    if list(files) == [ENTRY]:
        return files[ENTRY]
    check_file_names(files)
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
    check_file_names(files)
    if list(files) == [ENTRY] or len(files) > MAX_PROGRAM_FILES:
        raise UsageError(f"the program has {len(files)} files behind boundary lines, which is no valid form")
    *others, last = files
    return {**{name: "".join(f"{line}\n" for line in files[name]) for name in others}, last: "\n".join(files[last])}


@lru_cache(maxsize=64)
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
