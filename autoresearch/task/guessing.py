"""Which program lies in a folder, what builds it, starts it and is needed beside it. Runs nothing."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.task.folder_state import create_file
from autoresearch.task.loading import CHANGES, MANIFEST, MAX_FILE_BYTES, MAX_FILES, NAMES, check_source
from autoresearch.task.model import Recipe
from autoresearch.task.program import ENTRY, PLAIN_NAME, check_file_names, is_tool_file
from autoresearch.task.source import parse_python

PREPARE = "prepare.py"
SCRIPT = "run.sh"
# What a C or C++ program is compiled with: a file, so that flags change as the program does. clangd reads it too.
FLAGS = "compile_flags.txt"
# Files of settings, and names of those that belong to a program.
SETTINGS_ENDINGS = (".ini", ".cfg", ".toml", ".yaml", ".yml", ".json")
_SETTINGS = re.compile(r"(?:^|[._-])(?:conf|config|cfg|(?:h|hyper_?)?param(?:eter)?s|settings|defaults)(?![a-z])")
_COMPILERS = {".cpp": "g++", ".cc": "g++", ".cxx": "g++", ".c": "gcc"}
# What tells a folder with a program from one with something else.
_CODE = frozenset((".py", ".ipynb", ".sh", ".jl", ".r", ".rs", ".go", ".cu", ".java", ".js", ".ts", *_COMPILERS))
_BUILDS = frozenset(
    ("pyproject.toml", "setup.cfg", "requirements.txt", "environment.yml", "Makefile", "CMakeLists.txt")
)
# Folders that tools make, and what lies beside a task and is no part of it.
_MADE_BY_TOOLS = frozenset({"__pycache__", "node_modules", "venv", "env", "site-packages"})
_MOST_NAMES = 20_000
# So many programs are named in an error.
_NAMED = 6
# What is data, and neither a program nor its settings.
_DATA = frozenset((".txt", ".csv", ".tsv", ".jsonl", ".npy", ".npz", ".bin", ".pt", ".pkl", ".parquet", ".gz", ".zip"))
_NO_PART = frozenset({MANIFEST, CHANGES, NAMES})
_HOW = "name the files that may change, and what starts them: --edit FILE --command 'bash run.sh'"


def guess_recipe(folder: Path, *, command: str = "", build: str = "", edit: Sequence[str] = ()) -> Recipe:
    """The recipe of the program in a folder; what is given is not guessed.

    A ``train.py``, else a lone Python file, or one that imports the others, else a lone C or C++ file without a
    Makefile, which is compiled, and with a ``run.sh`` started by that, else ``run.sh``, else a ``train.py`` or
    ``main.py`` in a folder. Of a command the programs and settings that it names may change. With a Python file those
    of its settings that it names, such as ``config.yaml``. A compiled program's flags are in ``compile_flags.txt``,
    which is written where it is missing.

    Raises UsageError where there is no such program, or several.
    """
    names = _names(folder)
    for name in edit:
        if name not in names:
            raise UsageError(f"{folder / name} does not exist", hint="--edit names files of the task folder")
    if command:
        named = [word.removeprefix("@").removeprefix("./") for word in _words(command) + _words(build)]
        modules = [after for before, after in pairwise(named) if before == "-m"]
        named += [f"{module.replace('.', '/')}{end}" for module in modules for end in (".py", "/__main__.py")]
        files = tuple(edit) or tuple(dict.fromkeys(name for name in named if name in names and _is_code(name)))
        if not files:
            raise UsageError(f"{command!r} names no file of {folder}", hint="say which files may change: --edit FILE")
        return Recipe(command=command, build=build, edit=files)
    files = tuple(edit) or _program_files(folder, names)
    if not (build or edit) and Path(files[0]).suffix in _COMPILERS:
        files = (*files, FLAGS)
        if FLAGS not in names:
            create_file(folder / FLAGS, "-O2\n")
    if not edit and files[0].endswith(".py"):
        files = (*files, *_settings_of(folder, files[0], names))
    recipe = _recipe(files)
    return Recipe(command=recipe.command, build=build or recipe.build, edit=files)


def fixed_files(folder: Path, recipe: Recipe) -> dict[str, bytes]:
    """The files that a program needs beside it: what Python imports, and what its text or its command names.

    A Python program's ``prepare.py`` is one of them. Raises UsageError where a Python file is none, or a file is too
    large to be pinned or has a name that tools obey, or there are too many.
    """
    names, contents, edit = _names(folder), {}, recipe.edit
    # Python looks beside the file that is started, and with "python -m" in the task's folder.
    roots = sorted({"", *(f"{parent}/" for name in edit if (parent := Path(name).parent) != Path())})
    pending = [
        *edit,
        *_named(names, f"{recipe.command} {recipe.build}"),
        *([PREPARE] if PREPARE in names and any(name.endswith(".py") for name in edit) else []),
    ]
    while pending:
        name = pending.pop()
        if name in contents:
            continue
        content = contents[name] = _read(folder / name)
        text = content.decode("utf-8", "replace")
        if name.endswith(".py"):
            check_source(folder / name, content)
            pending += _imported(folder, name, names, roots)
        pending += [] if Path(name).suffix in _DATA else _named(names, text)
    fixed = {name: content for name, content in sorted(contents.items()) if name not in edit}
    check_file_names((*edit, *fixed))
    if len(fixed) > MAX_FILES:
        hint = f"{MAX_FILES} are allowed; make data in a prepare.py, or mount their folder: [mounts] in task.toml"
        raise UsageError(f"{folder} has {len(fixed)} files that the program needs", hint=hint)
    return fixed


def programs_in(folder: Path) -> list[str]:
    """What of a folder says that somebody's program lies there: code, notebooks, build files. ``train.py`` is first.

    Of the folders in it ``src`` counts, and one of its own name. An empty list where there is no such folder.

    Raises UsageError where it can't be read.
    """
    names = _names(folder) if folder.is_dir() else []
    own = (name for name in names if "/" not in name or name.split("/")[0] in ("src", folder.name))
    code = [name for name in own if Path(name).suffix.lower() in _CODE or Path(name).name in _BUILDS]
    return sorted(code, key=lambda name: (Path(name).name != ENTRY, name.count("/"), name))


def _names(folder: Path) -> list[str]:
    """The files of a folder and of the folders in it that a task could have, but environments and what tools made."""
    found: list[str] = []
    try:
        for place, folders, files in os.walk(folder, onerror=_unreadable):
            inside = Path(place).relative_to(folder)
            is_environment = "pyvenv.cfg" in files and inside.parts
            folders[:] = [] if is_environment else [one for one in folders if _is_source(one)]
            found += [] if is_environment else [str(inside / name) for name in files if PLAIN_NAME.fullmatch(name)]
            if len(found) > _MOST_NAMES:
                break
    except OSError as error:
        raise UsageError(f"{folder} can't be read: {error.strerror}", hint="check the folder") from error
    return sorted(name for name in found if (folder / name).is_file())


def _unreadable(error: OSError) -> None:
    raise error


def _is_source(folder: str) -> bool:
    return PLAIN_NAME.fullmatch(folder) is not None and folder not in _MADE_BY_TOOLS


def _is_code(name: str) -> bool:
    """Whether a file that a command names is what may change, and no data."""
    return name == FLAGS or Path(name).suffix not in _DATA


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r} can't be read: {error}", hint="close its quotes") from error


def _program_files(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    if ENTRY in names:
        return (ENTRY,)
    here = [name for name in names if "/" not in name]
    python = [name for name in here if name.endswith(".py") and name != PREPARE and not is_tool_file(name)]
    compiled = [name for name in here if Path(name).suffix in _COMPILERS and "Makefile" not in names]
    script = (SCRIPT,) if SCRIPT in names else ()
    if len(python) > 1:
        needed = {other for name in python for other in _imported(folder, name, names, ("",)) if other != name}
        python = [name for name in python if name not in needed] or python
    for programs, others in ((python, ()), (compiled, script)):
        if len(programs) > 1 and not script:
            raise _several(folder, programs)
        if len(programs) == 1:
            return (*programs, *others)
    if script:
        return script
    for last in (ENTRY, "main.py"):
        inside = [name for name in names if name.endswith(f"/{last}")]
        if len(inside) > 1:
            raise _several(folder, inside)
        if inside:
            return (inside[0],)
    raise UsageError(f"{folder} has no {ENTRY} and no other program that is known", hint=_HOW)


def _several(folder: Path, programs: Sequence[str]) -> UsageError:
    more = f" and {len(programs) - _NAMED} more" if len(programs) > _NAMED else ""
    return UsageError(f"{folder} has several programs: {', '.join(programs[:_NAMED])}{more}", hint=_HOW)


def _settings_of(folder: Path, program: str, names: Sequence[str]) -> list[str]:
    text = _read(folder / program).decode("utf-8", "replace")
    settings = (name for name in names if name.endswith(SETTINGS_ENDINGS) and _SETTINGS.search(Path(name).stem.lower()))
    return [name for name in settings if _is_word(name, text)]


def _recipe(files: Sequence[str]) -> Recipe:
    """How files are built and started, by the ending of the first that says it."""
    known = (".py", ".sh", *_COMPILERS)
    first = next((name for name in files if name.endswith(known)), files[0])
    suffix = Path(first).suffix
    if suffix == ".py":
        return Recipe(command=f"python {first}")
    if suffix == ".sh":
        return Recipe(command=f"bash {first}")
    if suffix in _COMPILERS:
        built = Path(first).stem
        command = f"bash {SCRIPT}" if SCRIPT in files else f"./{built}"
        flags = f"@{FLAGS}" if FLAGS in files else "-O2"
        return Recipe(command=command, build=f"{_COMPILERS[suffix]} {flags} -o {built} {first}")
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


def _named(names: Iterable[str], text: str) -> list[str]:
    """The files that a text names: as a path, or in parts; else all in a folder that it has in quotes, but programs."""
    here = [name for name in names if "." in name and name not in _NO_PART and not is_tool_file(name)]
    found = [name for name in here if _is_named(name, text)]
    held = {folder for name in found for folder in Path(name).parents}
    others = [name for name in here if "/" in name and not name.endswith((".py", ".md")) and name not in found]
    quoted = {folder for name in others for folder in Path(name).parents if folder not in held}
    quoted = {folder for folder in quoted if folder != Path() and _is_quoted(str(folder), text)}
    return found + [name for name in others if not quoted.isdisjoint(Path(name).parents)]


def _is_named(name: str, text: str) -> bool:
    parts = name.split("/")
    return _is_word(name, text) or (
        len(parts) > 1 and not name.endswith(".py") and all(_is_word(part, text) for part in parts)
    )


def _is_quoted(folder: str, text: str) -> bool:
    return re.search(rf"[\"'](?:\./)?{re.escape(folder)}(?:/[^\"'/]*)*[\"']", text) is not None


def _is_word(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _imported(folder: Path, name: str, names: Sequence[str], roots: Sequence[str]) -> list[str]:
    """The files among ``names`` that a Python file imports: from ``roots``, the folders where Python looks for them."""
    modules: list[tuple[str, str]] = []
    try:
        tree = parse_python(_read(folder / name).decode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [(root, alias.name) for alias in node.names for root in roots]
        elif isinstance(node, ast.ImportFrom):
            above = Path(name).parents[min(node.level, len(Path(name).parents)) - 1] if node.level else None
            places = roots if above is None else ("" if above == Path() else f"{above}/",)
            stem = f"{node.module}." if node.module else ""
            modules += [(place, f"{stem}{alias.name}") for alias in node.names for place in places]
    found: dict[str, None] = {}
    for place, module in modules:
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            path = place + "/".join(parts[:count])
            found |= dict.fromkeys((f"{path}.py", f"{path}/__init__.py"))
    return [one for one in found if one in names]
