"""What the text of a program, a script or a command names: files of its folder, modules, what it writes."""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from autoresearch.beneath import open_beneath
from autoresearch.errors import UsageError
from autoresearch.task.loading import CHANGES, MANIFEST, MAX_FILE_BYTES, NAMES
from autoresearch.task.model import Recipe
from autoresearch.task.program import is_tool_file
from autoresearch.task.source import EMPTY, python_tree

# What is data, and neither a program nor its settings.
DATA = frozenset((".txt", ".csv", ".tsv", ".jsonl", ".npy", ".npz", ".bin", ".pt", ".pkl", ".parquet", ".gz", ".zip"))
NO_PART = frozenset({MANIFEST, CHANGES, NAMES})
# Files that tools obey are named in texts for the tools' sake. Others of an unknown form are data that runs only read.
_OF_TOOLS = re.compile(
    r"(?:.*/)?(?:.*\.(?:py|pyx|md|mdc|toml|lock|pth|rs|nix|gradle|kts|build|ninja|bazel|bzl|desktop|code-workspace)"
    r"|wscript|[^./]*(?:file|[A-Z][^./]*))"
)
_MOST_GLOBS = 32
# What a command reads without naming it.
_READ_BY_TOOLS = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "cmake": ("CMakeLists.txt", "CMakePresets.json"),
    "ninja": ("build.ninja",),
    "cargo": ("Cargo.toml", "Cargo.lock"),
    "npm": ("package.json",),
    "rake": ("Rakefile",),
    "scons": ("SConstruct",),
}
_WRITERS = re.compile(r"(?:save\w*|dump|to_(?:csv|json|parquet|pickle|excel)|write\w*|imsave|FileHandler|tofile)")
_LOOKS_FIRST = frozenset({"exists", "isfile", "is_file"})
_LOOKS = _LOOKS_FIRST | {"Path", "print", "remove", "unlink", "add_argument"}


def folders_of(name: str) -> list[str]:
    """The folders above a file, the outermost first."""
    return [str(folder) for folder in list(Path(name).parents)[-2::-1]]


def named_by_command(recipe: Recipe, names: Collection[str]) -> list[str]:
    """The files that a command or a build names, and those that its tool reads without being told."""
    named: list[str] = []
    for line in filter(None, (recipe.build, recipe.command)):
        words = command_names(line)
        named += [name for name in words if name in names]
        tools = {Path(word).name for word in words}
        for tool in tools & _READ_BY_TOOLS.keys():
            named += [name for name in _READ_BY_TOOLS[tool] if name in names]
    return named


def command_names(line: str) -> list[str]:
    """The names of files that the words of a command could be; of a module its files. Raises UsageError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r} can't be read: {error}", hint="close its quotes") from error
    inner = [word for before, text in pairwise(words) if before == "-c" for word in re.findall(r"[\w./-]+", text)]
    named = [word.removeprefix("@").removeprefix("./") for word in (*words, *inner)]
    named += [value for word in named if (value := word.partition("=")[2])]
    modules = [after for before, after in pairwise(words) if before == "-m"]
    modules += [
        word for before, text in pairwise(words) if before == "-c" for word in re.findall(r"from ([\w.]+)", text)
    ]
    stems = [root + module.replace(".", "/") for module in modules for root in ("", "src/")]
    return named + [f"{stem}{end}" for stem in stems for end in (".py", "/__main__.py")]


class FileNames:
    """The names of a folder's files, looked up in texts: many names, and texts of a megabyte."""

    def __init__(self, names: Iterable[str]) -> None:
        names = [name for name in names if name not in NO_PART]
        self._all = [name for name in names if not (is_tool_file(name) and _OF_TOOLS.fullmatch(name))]
        self._files = [name for name in self._all if "." in name]
        self._by_folder: dict[str, list[str]] = {}
        for name in self._files:
            if not name.endswith((".py", ".md")):
                for folder in folders_of(name):
                    self._by_folder.setdefault(folder, []).append(name)

    def named_in(self, text: str, by: str) -> list[str]:
        """The files that the text of the file ``by`` names: as a path from the task's folder or its own, or in parts.

        Of a folder that is quoted, and in which it names nothing, all files but programs. A file without an ending is
        named by ``./NAME``, or behind ``bash``. In a script and the like ``*.c`` stands for files.
        """
        words = set(re.findall(r"[\w.-]+", text))
        words |= {word.rstrip(".-") for word in words}
        near = [f"{by.rpartition('/')[0]}/"] if "/" in by else []
        if not by.endswith(".py"):
            near += [f"{posixpath.normpath(folder)}/" for folder in re.findall(r"\bcd +[\"']?([\w./-]*\w)", text)]
        files = [
            name
            for name in self._all
            if _may_be_in(Path(name).name, words, text)
            and any(_is_named(path, text) for path in (name, *(_below(name, folder) for folder in near)) if path)
        ]
        if not by.endswith(".py"):
            patterns = _globs(text)
            files += [name for name in self._files if _stands_for(patterns, name) and name not in files]
        held = {folder for name in files for folder in folders_of(name)}
        quoted = [
            folder
            for folder in self._by_folder
            if folder not in held and _may_be_in(Path(folder).name, words, text) and _is_quoted(folder, text)
        ]
        return files + [name for folder in quoted for name in self._by_folder[folder] if name not in files]


def _below(name: str, folder: str) -> str:
    return name.removeprefix(folder) if name.startswith(folder) else ""


def _globs(text: str) -> frozenset[str]:
    """The patterns of files in a text, such as ``src/*.c``, and ``%.c`` of a Makefile."""
    words = re.findall(r"(?<![\w*%])[\w./-]{0,80}[*%][\w.*%-]{0,40}(?:/[\w.*%-]{1,40})?", text)[:_MOST_GLOBS]
    return frozenset(word.replace("%", "*").removeprefix("./") for word in words if re.search(r"[*%]\.\w", word))


def _stands_for(patterns: Collection[str], name: str) -> bool:
    return any(pattern.count("/") == name.count("/") and fnmatchcase(name, pattern) for pattern in patterns)


def _may_be_in(last: str, words: Collection[str], text: str) -> bool:
    """Whether the last part of a path can be in a text: soon said of most."""
    return last in words if re.fullmatch(r"[\w.-]*\w", last) else last in text


def _is_named(name: str, text: str) -> bool:
    if "." not in Path(name).name:
        return re.search(rf"(?:\./|\b(?:bash|sh|source) +){re.escape(name)}(?![\w./-])", text) is not None
    parts = name.split("/")
    return is_word(name, text) or (
        len(parts) > 1 and not name.endswith(".py") and all(is_word(part, text) for part in parts)
    )


def _is_quoted(folder: str, text: str) -> bool:
    return re.search(rf"[\"'](?:\./)?{re.escape(folder)}(?:/[^\"'/]*)*[\"']", text) is not None


def is_word(name: str, text: str) -> bool:
    """Whether a text has a name, and not as a part of another one."""
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def roots_of(programs: Iterable[str], names: Collection[str]) -> list[str]:
    """Where Python looks for modules: beside the file that is started, in the task's folder, and in its ``src``."""
    parents = {f"{parent}/" for name in programs if (parent := Path(name).parent) != Path()}
    return sorted({"", *parents, *(["src/"] if any(name.startswith("src/") for name in names) else [])})


def imported(folder: Path, name: str, names: Collection[str], roots: Sequence[str]) -> list[str]:
    """The files among ``names`` that a Python file imports: from ``roots``, the folders where Python looks for them."""
    modules = [
        (place, module) for level, module in imports_of(folder, name) for place in _places_of(name, level, roots)
    ]
    files: dict[str, None] = {}
    for place, module in modules:
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            path = place + "/".join(parts[:count])
            files |= dict.fromkeys((f"{path}.py", f"{path}/__init__.py"))
    if "/" in name:  # a package's own file is run before a module of it
        files |= {f"{parent}/__init__.py": None for parent in folders_of(name)}
    return [file for file in files if file in names]


def _places_of(name: str, level: int, roots: Sequence[str]) -> Sequence[str]:
    if not level:
        return roots
    above = Path(name).parents[min(level, len(Path(name).parents)) - 1]
    return ("" if above == Path() else f"{above}/",)


def imports_of(folder: Path, name: str) -> list[tuple[int, str]]:
    """The modules that a Python file imports, each with how many folders up it is looked for; 0: where Python looks.

    None of what is no Python, or can't be read.
    """
    try:
        with open_beneath(folder, name) as file:
            return imports_in(file.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace"))
    except OSError:
        return []


def imports_in(source: str) -> list[tuple[int, str]]:
    """The same of a text."""
    modules: list[tuple[int, str]] = []
    for node in ast.walk(python_tree(source) or EMPTY):
        if isinstance(node, ast.Import):
            modules += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = f"{node.module}." if node.module else ""
            modules += [(node.level, f"{stem}{alias.name}") for alias in node.names]
    return modules


def written_by(text: str) -> set[str]:
    """The paths that a Python file writes and does not need: it doesn't read them, or looks first whether they exist.

    They are found as far as they are constants in its calls, or names of these.
    """
    nodes = list(ast.walk(python_tree(text) or EMPTY))
    names: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(path))):
                names[name] = path
    written: set[str] = set()
    read: set[str] = set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        called = _called(call)
        if called in _LOOKS:
            continue
        is_writer = _is_writer(call)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        for part in [*arguments, *(ast.walk(call.func) if is_writer else ())]:
            match part:
                case ast.Constant(value=str(path)):
                    (written if is_writer else read).add(path.removeprefix("./"))
                case ast.Name(id=name) if name in names:
                    (written if is_writer else read).add(names[name].removeprefix("./"))
    looks = any(isinstance(node, ast.Call) and _called(node) in _LOOKS_FIRST for node in nodes)
    return written if looks else written - read


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _is_writer(call: ast.Call) -> bool:
    if _called(call) == "open":
        modes = [*call.args[:2], *(word.value for word in call.keywords if word.arg == "mode")]
        return any(
            isinstance(mode, ast.Constant) and re.fullmatch(r"[wax][bt+]*|r[bt]*\+[bt]*", str(mode.value))
            for mode in modes
        )
    return _WRITERS.fullmatch(_called(call)) is not None
