"""The files that a program needs beside it: what is pinned with the task, what is shown to runs where it lies.

Small files with plain names are pinned, and travel with the task. Everything else is shown to runs, read-only, at its
place: large files, many files, names with blanks, files that tools obey. Runs nothing.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.task.inputs import read_input
from autoresearch.task.listing import Listing, list_folder
from autoresearch.task.loading import CHANGES, MANIFEST, MAX_FILE_BYTES, MAX_FILES, MAX_PLACE, NAMES, check_source
from autoresearch.task.model import MAX_INPUTS, PLACE, Input, Recipe
from autoresearch.task.program import check_file_name, check_file_names, is_tool_file
from autoresearch.task.source import parse_python

PREPARE = "prepare.py"
# What is data, and neither a program nor its settings.
DATA = frozenset((".txt", ".csv", ".tsv", ".jsonl", ".npy", ".npz", ".bin", ".pt", ".pkl", ".parquet", ".gz", ".zip"))
_NO_PART = frozenset({MANIFEST, CHANGES, NAMES})
# A folder with more files that are shown is shown as a whole.
_MOST_SINGLE = 8
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
# Folders that a training writes into, and how a program shows that it does.
_RESULTS = re.compile(
    r"(?:out|outputs?|results?|runs?|logs?|checkpoints?|ckpts?|saved?(?:_models?)?|wandb|mlruns|lightning_logs"
    r"|tb_logs|tensorboard|figures|plots)(?:[-_].*)?",
    re.IGNORECASE,
)
_WRITES = re.compile(r"\b(?:makedirs|mkdir|save\w*|SummaryWriter|output_dir|default_root_dir|dump|to_csv)\b")
_WRITERS = re.compile(r"(?:save\w*|dump|to_(?:csv|json|parquet|pickle|excel)|write\w*|imsave|FileHandler|tofile)")
_LOOKS_FIRST = frozenset({"exists", "isfile", "is_file"})
_LOOKS = _LOOKS_FIRST | {"Path", "print", "remove", "unlink", "add_argument"}
_RESULTS_REASON = "results of earlier runs; to show it to runs: --mount {}"
_WRITTEN_REASON = "the program writes it; to show it to runs: --mount {}"


@dataclass(slots=True)
class Needed:
    """What a program needs beside it: ``fixed`` files, pinned by their content, and ``inputs``, shown where they lie.

    ``folders`` are the mounts elsewhere, ``mounts`` the places of task.toml for links that lead there. ``left_out`` has
    a reason for each path that runs won't see, those that the program names first.
    """

    fixed: dict[str, bytes] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    mounts: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def needed_files(folder: Path, recipe: Recipe, mounts: Sequence[str] = (), also: Collection[str] = ()) -> Needed:
    """The files that a program needs: what Python imports, what its text or its command names; and ``also`` these.

    A Python program's ``prepare.py`` is one of them. Of ``mounts``, the folders that runs may read, those in the folder
    are inputs, and links that lead into one are shown at their place. Raises UsageError where an imported file is no
    Python, or more places are needed than a task can have.
    """
    allowed = [Path(mount).expanduser().resolve() for mount in mounts]
    listing = list_folder(folder, allowed)
    inside = _inside(folder, allowed)
    search = _Search(folder, recipe, listing, set(inside.values()), also)
    shown = search.shown | _overflow(search.fixed)
    places = sorted(_places(folder, shown, recipe, search, listing))
    if len(places) > MAX_INPUTS:
        hint = f"put them into one folder: {MAX_INPUTS} files and folders are shown where they lie"
        raise UsageError(f"{folder} has {len(places)} files that the program needs, and that are not pinned", hint=hint)
    below = tuple(f"{place}/" for place in places)
    folders = tuple(mount for mount, path in zip(mounts, allowed, strict=True) if path not in inside)
    needed = Needed(folders=folders, left_out=search.left_out)
    for name, content in sorted(search.fixed.items()):
        if name not in places and not name.startswith(below):
            needed.fixed[name] = content
    check_file_names((*recipe.edit, *needed.fixed))
    for place in places:
        needed.inputs[place] = read_input(folder / place)
        if place in listing.leading_out:
            needed.mounts[PLACE + place] = listing.leading_out[place]
    return needed


def _inside(folder: Path, allowed: Iterable[Path]) -> dict[Path, str]:
    """Those of the folders that lie in the task's own, with their places."""
    real = folder.resolve()
    return {path: str(path.relative_to(real)) for path in allowed if path.is_relative_to(real) and path != real}


class _Search:
    """What a program needs, found file by file: ``fixed`` with their content, ``shown`` without."""

    def __init__(
        self, folder: Path, recipe: Recipe, listing: Listing, forced: Collection[str], also: Collection[str]
    ) -> None:
        self.fixed: dict[str, bytes] = {}
        self.shown: set[str] = set(forced)
        self.left_out: dict[str, str] = {}
        self._folder, self._listing, self._edit = folder, listing, recipe.edit
        self._names = _Names(listing.names)
        self._texts: list[str] = []
        self._written: set[str] = set()
        names, roots = frozenset(listing.names), roots_of(recipe.edit, listing.names)
        below = tuple(f"{place}/" for place in forced)
        pending = [
            *recipe.edit,
            *named_by_command(recipe, names),
            *(name for name in also if name in names),
            *([PREPARE] if PREPARE in names and any(name.endswith(".py") for name in recipe.edit) else []),
        ]
        seen = set(forced)
        while pending:
            name = pending.pop()
            if name in seen or name.startswith(below):
                continue
            seen.add(name)
            text = self._read(name)
            if name.endswith(".py"):
                pending += imported(folder, name, names, roots)
            if text:
                self._texts.append(text)
                pending += self._names.named_in(text)
        self._leave_out(set(forced) | set(also))

    def _read(self, name: str) -> str:
        """Take up a file; its text, where that can name others."""
        path, is_own = self._folder / name, name in self._edit
        try:
            length = path.stat().st_size
            content = path.read_bytes() if length <= MAX_FILE_BYTES else b""
        except OSError as error:
            if is_own:
                raise UsageError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
            self.left_out[name] = f"it can't be read: {error.strerror}"
            return ""
        if is_own and length > MAX_FILE_BYTES:
            hint = f"a file that may change has at most {MAX_FILE_BYTES >> 10} KiB: keep data in files of their own"
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES >> 10} KiB", hint=hint)
        if name.endswith(".py") and content:
            check_source(path, content)
        if length <= MAX_FILE_BYTES and _is_plain(name) and not self._leads_out(name):
            if not is_own:
                self.fixed[name] = content
        else:
            self.shown.add(name)
        text = "" if Path(name).suffix in DATA else content.decode("utf-8", "replace")
        if name.endswith(".py"):
            self._written |= _written(text)
        return text

    def _leads_out(self, name: str) -> bool:
        return any(name == link or name.startswith(f"{link}/") for link in self._listing.leading_out)

    def _leave_out(self, wanted: Collection[str]) -> None:
        """Leave out what earlier runs wrote; and of what the listing left out, name first what the program names."""
        text = "\n".join(self._texts)
        writes = _WRITES.search(text) is not None
        for name in sorted((self.fixed.keys() | self.shown) - set(wanted)):
            results = next((part for part in _folders_of(name) if _RESULTS.fullmatch(Path(part).name)), "")
            is_code = name.endswith((".py", ".sh"))
            if results and writes and not is_code:
                self.left_out[results] = _RESULTS_REASON.format(self._folder / results)
            elif name in self.shown and name in self._written:
                self.left_out[name] = _WRITTEN_REASON.format(self._folder / name)
            else:
                continue
            self.fixed.pop(name, None)
            self.shown.discard(name)
        by_reason = sorted(self._listing.left_out.items(), key=lambda item: not is_word(Path(item[0]).name, text))
        self.left_out |= dict(by_reason)


def _is_plain(name: str) -> bool:
    try:
        check_file_name(name)
    except UsageError:
        return False
    return True


def _folders_of(name: str) -> list[str]:
    return [str(folder) for folder in list(Path(name).parents)[-2::-1]]


def _overflow(fixed: dict[str, bytes]) -> set[str]:
    """What is too much to be pinned: the data of the fullest folders, and where that is not enough their programs."""
    shown: set[str] = set()
    for suffixes in ((".py", ".sh"), ()):
        while len(fixed) - len(shown) > MAX_FILES:
            rest = [name for name in fixed if name not in shown and not name.endswith(suffixes or "\0")]
            folders = Counter(name.rpartition("/")[0] for name in rest)
            if not folders:
                break
            fullest = max(folders, key=lambda folder: (folder != "", folders[folder], folder))
            most = len(fixed) - len(shown) - MAX_FILES if fullest == "" else len(rest)
            shown |= set(sorted(name for name in rest if name.rpartition("/")[0] == fullest)[:most])
    return shown


def _places(folder: Path, shown: Collection[str], recipe: Recipe, search: _Search, listing: Listing) -> Iterator[str]:
    """The files and folders that are shown: a folder as a whole where that is many files, and no program lies in it."""
    programs = {*recipe.edit, *(name for name in search.fixed if name.endswith(".py") and name not in shown)}

    def visit(prefix: str, names: list[str]) -> Iterator[str]:
        by_folder: dict[str, list[str]] = {}
        for name in names:
            first, _, rest = name[len(prefix) :].partition("/")
            if rest:
                by_folder.setdefault(prefix + first, []).append(name)
            else:
                yield name
        for inside, below in by_folder.items():
            has_program = any(name.startswith(f"{inside}/") for name in programs)
            is_full = len(below) > _MOST_SINGLE or any(_is_below(name, inside) for name in listing.crowded)
            if inside in listing.leading_out or (is_full and not has_program):
                yield inside
            else:
                yield from visit(f"{inside}/", below)

    for place in visit("", sorted(shown)):
        if len(place) > MAX_PLACE:
            search.left_out[place[:MAX_PLACE]] = f"its path has more than {MAX_PLACE} characters"
        else:
            yield place
        if (folder / place).is_dir():
            search.left_out.pop(place, None)


def _is_below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


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


class _Names:
    """The names of a folder's files, looked up in texts: many names, and texts of a megabyte."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = [name for name in names if name not in _NO_PART and not is_tool_file(name)]
        self._files = [name for name in self._all if "." in name]
        self._bare = [name for name in self._all if "." not in name]
        self._by_folder: dict[str, list[str]] = {}
        for name in self._files:
            if not name.endswith((".py", ".md")):
                for folder in _folders_of(name):
                    self._by_folder.setdefault(folder, []).append(name)

    def named_in(self, text: str) -> list[str]:
        """The files that a text names: as a path, or in parts; else all in a folder that is quoted, but programs.

        A file without an ending is named by ``./NAME``, or behind ``bash``.
        """
        words = set(re.findall(r"[\w.-]+", text))
        words |= {word.rstrip(".-") for word in words}
        found = [name for name in self._files if _may_be_in(Path(name).name, words, text) and _is_named(name, text)]
        found += [
            name
            for name in self._bare
            if _may_be_in(Path(name).name, words, text)
            and re.search(rf"(?:\./|\b(?:bash|sh|source) +){re.escape(name)}(?![\w./-])", text)
        ]
        held = {folder for name in found for folder in _folders_of(name)}
        quoted = [
            folder
            for folder in self._by_folder
            if folder not in held and _may_be_in(Path(folder).name, words, text) and _is_quoted(folder, text)
        ]
        return found + [name for folder in quoted for name in self._by_folder[folder] if name not in found]


def _may_be_in(last: str, words: Collection[str], text: str) -> bool:
    """Whether the last part of a path can be in a text: soon said of most."""
    return last in words if re.fullmatch(r"[\w.-]*\w", last) else last in text


def _is_named(name: str, text: str) -> bool:
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
        (place, module) for level, module in imports_of(folder / name) for place in _places_of(name, level, roots)
    ]
    found: dict[str, None] = {}
    for place, module in modules:
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            path = place + "/".join(parts[:count])
            found |= dict.fromkeys((f"{path}.py", f"{path}/__init__.py"))
    if "/" in name:  # a package's own file is run before a module of it
        found |= {f"{parent}/__init__.py": None for parent in _folders_of(name)}
    return [one for one in found if one in names]


def _places_of(name: str, level: int, roots: Sequence[str]) -> Sequence[str]:
    if not level:
        return roots
    above = Path(name).parents[min(level, len(Path(name).parents)) - 1]
    return ("" if above == Path() else f"{above}/",)


def imports_of(path: Path) -> list[tuple[int, str]]:
    """The modules that a Python file imports, each with how many folders up it is looked for; 0: where Python looks.

    None of what is no Python, or can't be read.
    """
    modules: list[tuple[int, str]] = []
    try:
        with path.open("rb") as file:
            tree = parse_python(file.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = f"{node.module}." if node.module else ""
            modules += [(node.level, f"{stem}{alias.name}") for alias in node.names]
    return modules


def _written(text: str) -> set[str]:
    """The paths that a Python file writes and does not need: it doesn't read them, or looks first whether they exist.

    They are found as far as they are constants in its calls, or names of these.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    nodes = list(ast.walk(tree))
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
