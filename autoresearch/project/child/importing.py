"""Imports of components: what lies beside a component's file is its own, whatever files of that name others have.

Each folder is a package of its own, ``acr_components.<digest of its path>``. In the code of its files the statement
``import helpers`` means the file beside it. The standard library stays what it is, and so does what is not there.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from autoresearch.task.source import parse_python

PACKAGE = "acr_components"


def module_of(path: Path) -> ModuleType:
    """The module of a component's file; a file that holds several components is loaded once. Raises what it raises."""
    folder = path.resolve().parent
    package = f"{PACKAGE}.{hashlib.sha256(bytes(folder)).hexdigest()[:16]}"
    name = f"{package}.{path.stem.replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # before the one that reads any folder as usual
    for above, search in ((PACKAGE, []), (package, [str(folder)])):
        if above not in sys.modules:
            sys.modules[above] = ModuleType(above)
            sys.modules[above].__path__ = search
    own = [str(folder)] if path.name == "__init__.py" else None
    loader = _Loader(name, str(path))
    spec = spec_from_file_location(name, path, loader=loader, submodule_search_locations=own)
    assert spec is not None, "it has a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


class _Finder:
    """Finds what lies in such a folder, and nothing else."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module of this name below a folder's package; None elsewhere."""
        del target
        if not name.startswith(f"{PACKAGE}."):
            return None
        kinds: Any = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (_Loader, [".py"]))
        specs = (FileFinder(folder, *kinds).find_spec(name) for folder in path or ())
        return next((spec for spec in specs if spec is not None), None)


class _Loader(SourceFileLoader):
    """Loads a file whose imports of what lies beside it name that. No file of bytecode is read or written."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file."""
        path = self.get_filename(fullname)
        package = ".".join(fullname.split(".")[:2])
        folder = sys.modules[package].__path__[0]
        try:
            tree = _Beside(package, Path(folder), Path(path)).visit(parse_python(self.get_data(path)))
            code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            error.filename = path
            raise
        return code


class _Beside(ast.NodeTransformer):
    def __init__(self, package: str, folder: Path, path: Path) -> None:
        self._package = package
        self._folder = folder
        self._path = path

    def _is_beside(self, name: str) -> bool:
        first = name.partition(".")[0]
        if first in sys.stdlib_module_names or self._path == self._folder / f"{first}.py":
            return False
        place = self._folder / first
        endings = (".py", *EXTENSION_SUFFIXES)
        return any(place.glob("*.py")) or any(place.with_name(f"{first}{each}").is_file() for each in endings)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        """``import helpers`` as ``import acr_components.X.helpers as helpers``."""
        return [ast.copy_location(ast.Import([each]), node) for alias in node.names for each in self._names(alias)]

    def _names(self, alias: ast.alias) -> Iterator[ast.alias]:
        if not self._is_beside(alias.name):
            yield alias
            return
        first = alias.name.partition(".")[0]
        # Without “as” the first part is bound, and what is named is loaded.
        names = {alias.name: alias.asname or first} if alias.asname else {alias.name: first, first: first}
        for name, bound in names.items():
            yield ast.copy_location(ast.alias(f"{self._package}.{name}", bound), alias)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        """``from helpers import f`` likewise."""
        if node.level == 0 and node.module and self._is_beside(node.module):
            node.module = f"{self._package}.{node.module}"
        return node
