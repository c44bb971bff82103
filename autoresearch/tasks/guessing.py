"""Which program lies in a folder: its files, what builds it, what starts it, what it needs beside it. Runs nothing."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.tasks.loading import MANIFEST, MAX_FILE_BYTES, MAX_FILES, check_source
from autoresearch.tasks.model import Recipe
from autoresearch.tasks.program import ENTRY, PLAIN_NAME

PREPARE = "prepare.py"
SCRIPT = "run.sh"
_COMPILERS = {".cpp": "g++", ".cc": "g++", ".cxx": "g++", ".c": "gcc"}
_HOW = "name the files that may change, and what starts them: --edit FILE --command 'bash run.sh'"


def guess_recipe(folder: Path, *, command: str = "", build: str = "", edit: Sequence[str] = ()) -> Recipe:
    """The recipe of the program in a folder; what is given is not guessed.

    A ``train.py``, else a lone Python file, else a lone C or C++ file without a Makefile, which is compiled, and with a
    ``run.sh`` started by that, else ``run.sh``. Of a command the files that it names may change.

    Raises UsageError where there is no such program, or several.
    """
    names = _names(folder)
    for name in edit:
        if name not in names:
            raise UsageError(f"{folder / name} does not exist", hint="--edit names files of the task folder")
    if command:
        named = [word.removeprefix("./") for word in _words(command) + _words(build)]
        files = tuple(edit) or tuple(dict.fromkeys(name for name in named if name in names))
        if not files:
            raise UsageError(f"{command!r} names no file of {folder}", hint="say which files may change: --edit FILE")
        return Recipe(command=command, build=build, edit=files)
    files = tuple(edit) or _program(folder, names)
    found = _recipe(files)
    return Recipe(command=found.command, build=build or found.build, edit=files)


def fixed_files(folder: Path, edit: Sequence[str]) -> dict[str, bytes]:
    """The files that a program needs beside it: what Python imports from there, and what is named in its text.

    A Python program's ``prepare.py`` is one of them. Raises UsageError where a Python file is none, or a file is too
    large to be pinned, or there are too many.
    """
    names, found = _names(folder), {}
    pending = [*edit, *([PREPARE] if PREPARE in names and any(name.endswith(".py") for name in edit) else [])]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        content = found[name] = _read(folder / name)
        text = content.decode("utf-8", "replace")
        if name.endswith(".py"):
            check_source(folder / name, content)
            pending += [module for module in _imported(text) if module in names]
        pending += [other for other in names if "." in other and other != MANIFEST and _is_named(other, text)]
    fixed = {name: content for name, content in sorted(found.items()) if name not in edit}
    if len(fixed) > MAX_FILES:
        raise UsageError(f"{folder} has {len(fixed)} files that the program needs", hint=f"{MAX_FILES} are allowed")
    return fixed


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if PLAIN_NAME.fullmatch(path.name) and path.is_file())
    except OSError as error:
        raise UsageError(f"{folder} can't be read: {error.strerror}", hint="check the folder") from error


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r} can't be read: {error}", hint="close its quotes") from error


def _program(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    if ENTRY in names:
        return (ENTRY,)
    python = [name for name in names if name.endswith(".py") and name != PREPARE]
    compiled = [name for name in names if Path(name).suffix in _COMPILERS and "Makefile" not in names]
    script = (SCRIPT,) if SCRIPT in names else ()
    for found, others in ((python, ()), (compiled, script)):
        if len(found) > 1 and not script:
            raise UsageError(f"{folder} has several programs: {', '.join(found)}", hint=_HOW)
        if len(found) == 1:
            return (*found, *others)
    if script:
        return script
    raise UsageError(f"{folder} has no {ENTRY} and no other program that is known", hint=_HOW)


def _recipe(files: Sequence[str]) -> Recipe:
    """How files are built and started, by the endings of their names."""
    first, suffix = files[0], Path(files[0]).suffix
    if suffix == ".py":
        return Recipe(command=f"python {first}")
    if suffix == ".sh":
        return Recipe(command=f"bash {first}")
    if suffix in _COMPILERS:
        built = Path(first).stem
        command = f"bash {SCRIPT}" if SCRIPT in files else f"./{built}"
        return Recipe(command=command, build=f"{_COMPILERS[suffix]} -O2 -o {built} {first}")
    raise UsageError(f"{first}: its name does not say how it is started", hint="say it: --command 'bash run.sh'")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
    if len(content) > MAX_FILE_BYTES:
        hint = "make it in a prepare.py, or mount its folder: [mounts] in task.toml; meanwhile move it away"
        raise UsageError(f"{path} is named in the program and larger than {MAX_FILE_BYTES >> 10} KiB", hint=hint)
    return content


def _is_named(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _imported(source: str) -> Iterable[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"{alias.name.split('.')[0]}.py" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield f"{node.module.split('.')[0]}.py"
