"""Which program lies in a folder, what builds it, starts it and is needed beside it. Runs nothing."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from autoresearch.beneath import open_beneath
from autoresearch.errors import UsageError
from autoresearch.task.folder_state import create_file
from autoresearch.task.listing import LINK_OUT, FolderListing, list_folder
from autoresearch.task.loading import MAX_FILE_BYTES, read_file
from autoresearch.task.mentions import DATA, FileNames, command_names, imported, imports_of, is_word, named_by_command
from autoresearch.task.model import Recipe
from autoresearch.task.needed import PREPARE
from autoresearch.task.program import ENTRY, MAX_PROGRAM_FILES, PLAIN_NAME, is_tool_file
from autoresearch.task.source import EMPTY, python_tree
from autoresearch.text import read_toml

SCRIPT = "run.sh"
# What a C or C++ program is compiled with: a file, so that flags change as the program does. clangd reads it too.
FLAGS = "compile_flags.txt"
# Files of settings, and names of those that belong to a program.
SETTINGS_ENDINGS = (".ini", ".cfg", ".toml", ".yaml", ".yml", ".json")
_SETTINGS = re.compile(
    r"(?:^|[._-])(?:(?:conf|config|cfg)s?|(?:h|hyper_?)?param(?:eter)?s|settings|defaults?)(?![a-z])"
)
_COMPILERS = {".cpp": "g++", ".cc": "g++", ".cxx": "g++", ".c": "gcc"}
# What tells a folder with a program from one with something else.
_CODE = frozenset((".py", ".ipynb", ".sh", ".jl", ".r", ".rs", ".go", ".cu", ".java", ".js", ".ts", *_COMPILERS))
_BUILDS = frozenset(
    ("pyproject.toml", "setup.cfg", "requirements.txt", "environment.yml", "Makefile", "CMakeLists.txt")
)
# So many programs are named in an error.
_NAMED = 6
_ROOTS, _ENDS = ("", "src/"), (".py", "/__init__.py")
_HOW = "name the files that may change, and what starts them: --edit FILE --command 'bash run.sh'"


def guess_recipe(folder: Path, *, command: str = "", build: str = "", edit: Sequence[str] = ()) -> Recipe:
    """The recipe of the program in a folder; what is given is not guessed.

    A ``train.py``, else a lone Python file, or the one that imports the others or alone does anything, else a lone
    C or C++ file without a Makefile, which is compiled, and with a ``run.sh`` started by that, else ``run.sh``,
    else a ``train.py`` or ``main.py`` in a folder, or the one that ``pyproject.toml`` names as the script of a
    package. What is part of a package is started as a module of it. Of a command the programs and settings that it
    names may change; of ``make`` and the like the programs that their file names. With a Python file those of its
    settings that it names, such as ``config.yaml``. A compiled program's flags are in ``compile_flags.txt``, which
    is written where it is missing.

    Raises UsageError where there is no such program, or several.
    """
    listing = list_folder(folder)
    names = listing.names
    for name in edit or (ENTRY,):
        if listing.left_out.get(name, "").startswith(LINK_OUT):
            read_file(folder, name)  # which says where it leads
    for name in edit:
        if name not in names:
            raise UsageError(f"{folder / name} does not exist", hint="--edit names files of the task folder")
    if command:
        files = tuple(edit) or _files_of_command(folder, Recipe(command=command, build=build), names)
        if not files:
            raise UsageError(f"{command!r} names no file of {folder}", hint="say which files may change: --edit FILE")
        return Recipe(command=command, build=build, edit=files)
    files = tuple(edit) or _program_files(folder, listing)
    if not (build or edit) and Path(files[0]).suffix in _COMPILERS:
        files = (*files, FLAGS)
        if FLAGS not in names:
            create_file(folder, FLAGS, "-O2\n")
    if not edit and files[0].endswith(".py"):
        files = (*files, *_settings_of(folder, files[0], names))
    recipe = _recipe(folder, files, names)
    return Recipe(command=recipe.command, build=build or recipe.build, edit=files)


def _files_of_command(folder: Path, recipe: Recipe, names: Sequence[str]) -> tuple[str, ...]:
    """The files that a command names and that may change: programs and settings, no data.

    Of ``make`` and the like they are the programs that its file names.
    """
    build = command_names(recipe.build) if recipe.build else []
    named = dict.fromkeys(name for name in (*command_names(recipe.command), *build) if name in names)
    if files := tuple(name for name in named if _may_change(name)):
        return files
    search = FileNames(names)
    rules = named_by_command(recipe, names)
    mentioned = dict.fromkeys(name for rule in rules for name in search.named_in(_text(folder, rule), rule))
    programs = (name for name in mentioned if name.endswith((".py", ".sh", *_COMPILERS)) and _may_change(name))
    return tuple(programs)[:MAX_PROGRAM_FILES]


def _may_change(name: str) -> bool:
    """Whether a file may be one of a program: it is no data, and its name is one that participants' files may have."""
    is_plain = all(PLAIN_NAME.fullmatch(part) for part in name.split("/")) and not is_tool_file(name)
    return is_plain and (name == FLAGS or Path(name).suffix not in DATA)


def programs_in(folder: Path) -> list[str]:
    """What of a folder says that somebody's program lies there: code, notebooks, build files. ``train.py`` is first.

    Of the folders in it ``src`` counts, and one of its own name. An empty list where there is no such folder.

    Raises UsageError where it can't be read.
    """
    names = list_folder(folder).names if folder.is_dir() else []
    own = (name for name in names if "/" not in name or name.split("/")[0] in ("src", folder.name))
    code = [name for name in own if _is_code(name) or Path(name).name in _BUILDS]
    return sorted(code, key=lambda name: (Path(name).name != ENTRY, name.count("/"), name))


def _program_files(folder: Path, listing: FolderListing) -> tuple[str, ...]:
    names = listing.names
    if ENTRY in names:
        return (ENTRY,)
    top_level = [name for name in names if "/" not in name]
    python = [name for name in top_level if name.endswith(".py") and name != PREPARE and not is_tool_file(name)]
    python = [name for name in python if PLAIN_NAME.fullmatch(name)] or python
    compiled = [name for name in top_level if Path(name).suffix in _COMPILERS and "Makefile" not in names]
    script = (SCRIPT,) if SCRIPT in names else ()
    library: list[str] = []
    if len(python) > 1:
        needed = {other for name in python for other in imported(folder, name, names, ("",)) if other != name}
        python = [name for name in python if name not in needed] or python
        library, python = python, [name for name in python if not _only_defines(_text(folder, name))]
    for programs, others in ((python, ()), (compiled, script)):
        if len(programs) > 1 and not script:
            raise _several(folder, programs)
        if len(programs) == 1:
            return (*programs, *others)
    if script:
        return script
    scripts = dict.fromkeys(file for file, _ in _scripts(folder, names))
    if len(scripts) == 1:
        return tuple(scripts)
    for last in (ENTRY, "main.py", "__main__.py"):
        inside = [name for name in names if name.endswith(f"/{last}")]
        if len(inside) > 1:
            raise _several(folder, inside)
        if inside:
            return (inside[0],)
    rules = next((name for name in top_level if name in ("Makefile", "makefile", "GNUmakefile")), "")
    hint = f"{rules} lies there: --command 'make run' --edit FILE, with its own target and file" if rules else _HOW
    if link := next((name for name in listing.left_out if _is_code(name)), ""):
        read_file(folder, link)  # which says where it leads
    if library and not rules:
        hint = f"write one that uses them, such as {ENTRY}; or say which one to start all the same: --edit {library[0]}"
        raise UsageError(f"{folder} has no program: {_names(library)} only define functions and classes", hint=hint)
    raise UsageError(f"{folder} has no {ENTRY} and no other program that is known", hint=hint)


def _is_code(name: str) -> bool:
    return Path(name).suffix.lower() in _CODE


def _several(folder: Path, programs: Sequence[str]) -> UsageError:
    hint = f"say which one: --edit {shlex.quote(programs[0])}; or what starts it: --command 'bash run.sh'"
    return UsageError(f"{folder} has several programs: {_names(programs)}", hint=hint)


def _names(files: Sequence[str]) -> str:
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return ", ".join(files[:_NAMED]) + more


def _only_defines(source: str) -> bool:
    """Whether a Python file defines functions or classes and does nothing else, so that running it shows nothing."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = (python_tree(source) or EMPTY).body
    own = {node.name for node in body if isinstance(node, definitions)}

    def does(node: ast.stmt) -> bool:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id=name))):
                return name in own
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Assign() | ast.AnnAssign():
                return False
        return not isinstance(node, definitions)

    return bool(own) and not any(map(does, body))


def _settings_of(folder: Path, program: str, names: Sequence[str]) -> list[str]:
    text = _text(folder, program)

    def is_settings(name: str) -> bool:
        path = Path(name.lower())  # configs/small.yaml is one as well
        return name.endswith(SETTINGS_ENDINGS) and any(map(_SETTINGS.search, (path.stem, *path.parent.parts)))

    settings = filter(is_settings, names)
    return [name for name in settings if is_word(name, text) and _may_change(name)][: MAX_PROGRAM_FILES - 1]


def _text(folder: Path, name: str) -> str:
    """The beginning of a file; nothing of one that can't be read."""
    try:
        with open_beneath(folder, name) as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _scripts(folder: Path, names: Sequence[str]) -> list[tuple[str, str]]:
    """The commands that ``pyproject.toml`` names, where they are in the folder: the file of each, and its function."""
    try:
        table = read_toml(_text(folder, "pyproject.toml"))
        scripts = {**table.get("tool", {}).get("poetry", {}).get("scripts", {}), **table["project"]["scripts"]}
        targets = [target.partition(":") for target in scripts.values() if isinstance(target, str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    stems = [(root + module.strip().replace(".", "/"), name.strip()) for module, _, name in targets for root in _ROOTS]
    return [(f"{stem}{end}", name) for stem, name in stems for end in _ENDS if f"{stem}{end}" in names]


def _python_command(folder: Path, program: str, names: Sequence[str]) -> str:
    """What starts a Python file: one that imports as part of a package does is started as a module of it."""
    root = "src/" if program.startswith("src/") else ""
    module = program.removeprefix(root).removesuffix(".py").replace("/", ".")
    imports = imports_of(folder, program)
    is_inner = any(level for level, _ in imports) or any(
        not level and "." in module and name.partition(".")[0] == module.partition(".")[0] for level, name in imports
    )
    function = next((name for file, name in _scripts(folder, names) if file == program and name.isidentifier()), "")
    text = _text(folder, program)
    if function and "__main__" not in text and f"def {function}(" in text:
        return f"python -c 'from {module} import {function}; {function}()'"
    return f"python -m {module.removesuffix('.__main__')}" if "." in module and is_inner else f"python {program}"


def _recipe(folder: Path, files: Sequence[str], names: Sequence[str]) -> Recipe:
    """How files are built and started, by the ending of the first that says it."""
    endings = (".py", ".sh", *_COMPILERS)
    first = next((name for name in files if name.endswith(endings)), files[0])
    suffix = Path(first).suffix
    if suffix == ".py":
        return Recipe(command=_python_command(folder, first, names))
    if suffix == ".sh":
        return Recipe(command=f"bash {first}")
    if suffix in _COMPILERS:
        built = Path(first).stem
        command = f"bash {SCRIPT}" if SCRIPT in files else f"./{built}"
        flags = f"@{FLAGS}" if FLAGS in files else "-O2"
        return Recipe(command=command, build=f"{_COMPILERS[suffix]} {flags} -o {built} {first}")
    program = f"name the program too: --edit {ENTRY} --edit {first}" if ENTRY in names else ""
    raise UsageError(
        f"{first}: its name does not say how it is started", hint=program or "say it: --command 'bash run.sh'"
    )
