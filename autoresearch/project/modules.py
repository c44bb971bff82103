"""What an import in a component's file means: a module of the component's own, as a file below its root, or none.

The root is a folder that holds all of a component's files. ``import utils`` in one of them means the file beside its
package, as Python has it for a program, else the one in the root, else the one beside it or in a folder above it.
Nothing is imported here. Also all the files of a component, and their digest.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from autoresearch.beneath import LeadsOut
from autoresearch.errors import UsageError
from autoresearch.project.model import INIT_FILE, Component, Project, read_code
from autoresearch.task.source import EMPTY, parse_python, python_tree
from autoresearch.text import one_line

_INTERFACE = frozenset(("autoresearch", "acr"))


def dotted(root: Path, path: Path) -> str:
    """A module's name below the root: ``inner.deep`` of ``inner/deep.py``, empty of the root's ``__init__.py``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if path.name == INIT_FILE else parts)


def own_folder(root: Path, file: Path, name: str, further: Sequence[Path] = ()) -> Path | None:
    """The folder that has the module which the first part of an absolute import means; None where it is not own.

    The standard library stays what it is, and so does what components derive from. A file that imports its own name
    means a package of that name.
    """
    first = name.partition(".")[0]
    if first in sys.stdlib_module_names or first in _INTERFACE:
        return None
    above = file.parent
    while above != root and (above / INIT_FILE).is_file():
        above = above.parent
    between = itertools.takewhile(lambda each: each != root, file.parents)
    for folder in dict.fromkeys((above, root, *between, *further)):
        if folder / f"{first}.py" != file and (folder / first).parent == folder and _has(folder / first):
            return folder
    return None


def _has(place: Path) -> bool:
    names = (f"{place.name}{each}" for each in (".py", *EXTENSION_SUFFIXES))
    return any(place.with_name(name).is_file() for name in names) or any(place.rglob("*.py"))


def imported_files(root: Path, file: Path, tree: ast.Module) -> dict[Path, bool]:
    """The component's own files that the code of one of them imports, with the packages that they are in.

    Each with whether it is imported by its plain name, as ``utils.py`` by ``import utils``: its folder is no package.
    """
    files: dict[Path, bool] = {}
    for level, name in _imports(tree):
        if level:
            folder = file.parents[level - 1] if level <= len(file.parents) else None
            folder = folder if folder is not None and folder.is_relative_to(root) else None
        else:
            folder = own_folder(root, file, name)
        if folder is not None:
            for path in _files_of(root, folder, name.split(".") if name else []):
                files[path] = files.get(path, True) and path.parent == folder and path.name != INIT_FILE
    return files


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What a file imports: how many folders above it a name begins, and the name; also by ``import_module("name")``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((0, each.name) for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from ((level, ".".join(filter(None, (module, each.name)))) for each in names)
            case ast.Call(func=function, args=[ast.Constant(value=str() as name), *_]):
                called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
                if called in ("import_module", "__import__") and name.strip("."):
                    yield len(name) - len(name.lstrip(".")), name.lstrip(".")


def packages_above(root: Path, folder: Path) -> Iterator[Path]:
    """The files of the packages that a folder below the root is in, and its own."""
    while folder != root:
        yield from _existing(folder / INIT_FILE)
        folder = folder.parent


def _files_of(root: Path, folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    yield from packages_above(root, folder)
    yield from _existing(folder / INIT_FILE) if folder == root and not parts else ()
    for part in parts:
        yield from _existing(folder / f"{part}.py")
        yield from _existing(folder / part / INIT_FILE)
        folder /= part


def _existing(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path


def files_of(component: Component, project: Path) -> dict[Path, bool]:
    """A component's file, then its own modules that it imports; with whether each is imported by its plain name.

    Raises:
        UsageError: a file is missing or no Python.
    """
    return _files(component, lambda path: _tree(component, path, project))


def code_digest(component: Component, project: Project) -> str:
    """SHA-256 of a component's code, in hex: of its lone file, else of the names and digests of all. Raises OSError."""
    contents: dict[Path, bytes] = {}

    def tree(path: Path) -> ast.Module:
        contents[path] = read_code(path, project.folder)
        return python_tree(contents[path]) or EMPTY

    names = {path: path.relative_to(component.root).as_posix() for path in _files(component, tree)}
    digests = {names[path]: hashlib.sha256(contents[path]).hexdigest() for path in names}
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = (f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _files(component: Component, tree: Callable[[Path], ast.Module]) -> dict[Path, bool]:
    root, first = Path(component.root), Path(component.file)
    files = {first: first.name != INIT_FILE, **dict.fromkeys(packages_above(root, first.parent), False)}
    pending = list(files)
    while pending:
        path = pending.pop(0)
        for imported, is_plain in imported_files(root, path, tree(path)).items():
            if imported not in files:
                pending.append(imported)
            files[imported] = files.get(imported, True) and is_plain
    return files


def _tree(component: Component, path: Path, project: Path) -> ast.Module:
    try:
        return parse_python(read_code(path, project))
    except OSError as error:
        hint = f"autoresearch install {component.type} {component.name}"
        if isinstance(error, LeadsOut):
            hint = "copy the file there"
        raise UsageError(f"{component.key}: {path} can't be read: {error.strerror}", hint=hint) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise not_python(path, error) from None


def not_python(path: object, error: Exception) -> UsageError:
    """What a person reads of a file that can't be parsed."""
    line = getattr(error, "lineno", None)
    where = f", line {line}" if line else ""
    reason = "it is not UTF-8" if "unicode error" in f"{error}" else one_line(f"{error}", 80)
    return UsageError(f"{path}{where}: {reason}", hint="it must be valid Python")
