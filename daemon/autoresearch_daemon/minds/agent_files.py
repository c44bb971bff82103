"""Which files a command left beside the program, and what that says of its change: they are not taken over."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autoresearch.beneath import open_beneath
from autoresearch.propose.mind.brief import plain_line
from autoresearch.propose.program.edits import constants
from autoresearch.run.bench import program_files
from autoresearch.task.model import Task
from autoresearch.task.source import EMPTY, python_tree

# So many files of a folder are looked at, so many are named.
FILES_MAX, NAMED = 2000, 4
# What tools leave in passing.
_PASSING = ("__pycache__", "node_modules")


@dataclass(frozen=True, slots=True)
class FilesLeft:
    """Files beside the program that a command added, and fixed ones that it changed or removed."""

    added: tuple[str, ...]
    fixed: tuple[str, ...]
    elsewhere: str = ""
    """Where its work may be instead, as a sentence; empty where nothing says so."""

    @property
    def sentences(self) -> list[str]:
        """What everybody has to know who reads what the command says of its change."""
        fixed = [f"{_named(self.fixed)} changed too, and is left as the task has it."] if self.fixed else []
        return [*fixed, *([f"Not taken over: {_named(self.added)}."] if self.added else [])]

    def imported_by(self, files: Mapping[str, str]) -> str:
        """An added file that one of a program's files imports, or an empty text."""
        imported = {module for name, text in files.items() if name.endswith(".py") for module in _imports(text)}
        for name in self.added:
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if name.endswith(".py") and any(f"{each}.".startswith(f"{module}.") for each in imported):
                return name
        return ""


def _imports(text: str) -> Iterator[str]:
    """The names of the modules that a program imports, and of what it takes from them, which may be modules."""
    for node in ast.walk(python_tree(text) or EMPTY):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{alias.name}" if module else alias.name for alias in names)


def files_left(place: Path, inside: str, task: Task, parent: str, names: Collection[str]) -> FilesLeft:
    """What a command left in ``place``, whose folder ``inside`` had the task's files and the program ``parent``.

    ``names`` are the files that are taken over.
    """
    furnished = {**task.harness, **program_files(parent)}
    added = sorted(set(_listed(place / inside)) - {*furnished, *names, "history.md"})
    fixed = sorted(name for name in task.harness if not _is_as_it_was(place / inside, name, task.harness[name]))
    above = [name for name in names if name in _listed(place)]
    elsewhere = ""
    if above:
        elsewhere = f"the command wrote {_named(above)} beside the folder {inside} and not in it"
    elif branches := sorted(_listed(place / ".git" / "refs" / "heads"))[1:]:
        elsewhere = f"the command made the branches {_named(branches)}; its files must be in the folder when it ends"
    elif fixed or added:
        elsewhere = f"the command changed {_named([*fixed, *added])} alone"
    return FilesLeft(tuple(added), tuple(fixed), elsewhere)


def _listed(folder: Path) -> list[str]:
    """The files of a folder by their paths in it, without hidden ones and links."""
    names: list[str] = []
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _PASSING]
        names += [str((Path(root) / name).relative_to(folder)) for name in files if not name.startswith(".")]
        if len(names) > FILES_MAX:
            break
    return names[:FILES_MAX]


def _is_as_it_was(folder: Path, name: str, content: bytes) -> bool:
    try:
        with open_beneath(folder, name) as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def change_in_words(parent: str, source: str) -> str:
    """What changed in a program: its settings, else its first new line."""
    before, after = constants(parent), constants(source)
    settings = [
        f"{name} {before[name].value} -> {constant.value}"
        for name, constant in after.items()
        if name in before and before[name].value != constant.value
    ]
    old = set(map(str.strip, parent.splitlines()))
    new = [line.strip() for line in source.splitlines() if line.strip() and line.strip() not in old]
    return plain_line(", ".join(settings) or (new[0] if new else "lines taken out"), 280)


def _named(names: Collection[str]) -> str:
    listed = [plain_line(name, 64) for name in list(names)[:NAMED]]
    return ", ".join(listed) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
