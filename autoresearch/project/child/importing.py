"""Imports of components: each has a package of its own, in which its files alone are found.

The package of a root is ``acr_components.policy_zero``, called by the first component that is loaded from it. Its files
are modules of that package. Their ``import utils`` means the component's own ``utils`` (``modules.py``), also within
functions, by ``__import__`` and by ``importlib.import_module``: their builtins have an ``__import__`` of their own.
So ``sys.modules`` has no entry that two components could share. All else is imported as everywhere.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from autoresearch.project.model import INIT_FILE, Component
from autoresearch.project.modules import dotted, own_folder
from autoresearch.task.source import parse_python

PACKAGE = "acr_components"
_import, _import_module = builtins.__import__, importlib.import_module
# What Python itself was started with is never a component's, also where it lies in the project's folder.
_STARTED_WITH = frozenset(sys.path)
_roots: dict[Path, _Root] = {}


def module_of(component: Component) -> ModuleType:
    """The module of a component's file; a file that holds several components is loaded once. Raises what it raises."""
    root = Path(component.root).resolve()
    if root not in _roots:
        _install()
        label = f"{PACKAGE}.{re.sub(r'[^A-Za-z0-9_]', '_', component.key)}"
        names = itertools.chain((label,), (f"{label}_{number}" for number in itertools.count(2)))
        name = next(each for each in names if each not in sys.modules)
        _roots[root] = sys.modules[name] = _Root(name, root)
    package, inner = _roots[root], dotted(Path(component.root), Path(component.file))
    if not inner:
        package.run()
        return package
    return _import_module(f"{package.__name__}.{inner}")


def _install() -> None:
    if PACKAGE not in sys.modules:
        sys.modules[PACKAGE] = ModuleType(PACKAGE)
        sys.modules[PACKAGE].__path__ = []
        sys.meta_path.insert(0, _Finder)  # before the one that reads any folder as usual
        sys.path_hooks.insert(0, _no_finder)
        importlib.import_module = import_module


class _Root(ModuleType):
    """The package of a root. Its ``__init__.py`` runs where something of it is asked for."""

    def __init__(self, name: str, root: Path) -> None:
        super().__init__(name)
        self.__path__ = [str(root)]
        self.__package__ = name
        self._loader = _Loader(name, str(root / INIT_FILE))
        self.__spec__ = ModuleSpec(name, self._loader, origin=self._loader.path, is_package=True)
        self.__spec__.submodule_search_locations = self.__path__
        self.__builtins__ = {**vars(builtins), "__import__": _Importer(name, root)}
        self._has_run = False

    def run(self) -> None:
        """Run its ``__init__.py``, once."""
        path = Path(self.__path__[0], INIT_FILE)
        if not self._has_run and path.is_file():
            self._has_run = True
            self.__file__ = str(path)
            exec(self._loader.get_code(self.__name__), vars(self))  # noqa: S102 - its own code

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if not name.startswith("__"):
            self.run()
        if name in vars(self):
            return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Importer:
    """``__import__`` in the files of one root."""

    def __init__(self, package: str, root: Path) -> None:
        self._package, self._root = package, root
        self._names: dict[tuple[object, str], str | None] = {}

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - as Python calls it
        locals: Mapping[str, object] | None = None,  # noqa: A002 - as Python calls it
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """As the builtin one, for what is not the component's own."""
        if level:
            package = str((globals or {}).get("__package__") or "")
            if level > package.count(".") and package.startswith(PACKAGE):
                raise ImportError("attempted relative import beyond the component's own files")
            return _import(name, globals, locals, fromlist or (), level)
        private = self.private(name, (globals or {}).get("__file__") or _file_of(sys._getframe(1), self))  # noqa: SLF001
        if private is None:
            return _import(name, globals, locals, fromlist or (), 0)
        if fromlist:
            return _import(private, globals, locals, fromlist, 0)
        _import_module(private)
        return sys.modules[private.removesuffix(name.removeprefix(name.partition(".")[0]))]

    def private(self, name: str, file: object) -> str | None:
        """The full name of what an absolute import in a file means; None where it is not the component's own."""
        first, _, rest = name.partition(".")
        if (key := (file, first)) not in self._names:
            place = Path(str(file)) if file else self._root / INIT_FILE
            folder = own_folder(self._root, place, first, self._further())
            inside = ".".join((self._package, *folder.relative_to(self._root).parts, first)) if folder else None
            if inside is None and first not in sys.modules:
                return None  # it may yet be written
            self._names[key] = inside
        private = self._names[key]
        return f"{private}.{rest}" if private and rest else private

    def _further(self) -> list[Path]:
        """Folders of the component that it put on ``sys.path``."""
        return [Path(os.path.normpath(each)) for each in sys.path if _lies_in(self._root, each)]


def import_module(name: str, package: str | None = None) -> ModuleType:
    """``importlib.import_module``: called by a component, or on its behalf for what is not there, it means its own."""
    caller: FrameType | None = sys._getframe(1)  # noqa: SLF001 - who calls is what counts
    if private := _private(caller, name):
        return _import_module(private)
    try:
        return _import_module(name, package)
    except ModuleNotFoundError as error:
        while error.name == name.partition(".")[0] and (caller := caller.f_back if caller else None):
            if private := _private(caller, name):
                return _import_module(private)
        raise


def _private(frame: FrameType | None, name: str) -> str | None:
    importer = frame.f_builtins.get("__import__") if frame else None
    if frame is None or not isinstance(importer, _Importer) or name.startswith("."):
        return None
    return importer.private(name, _file_of(frame, importer))


def _file_of(frame: FrameType | None, importer: _Importer) -> str | None:
    """The file whose code calls, also by a text that it executes; None where no file of the component does."""
    while frame is not None and frame.f_builtins.get("__import__") is importer:
        if file := frame.f_globals.get("__file__"):
            return str(file)
        frame = frame.f_back
    return None


def _no_finder(entry: str) -> type[_Nothing]:
    """Keep a component's folder on ``sys.path`` from all others, which would find its files there."""
    if any(_lies_in(root, entry) for root in _roots):
        return _Nothing
    raise ImportError(entry)


def _lies_in(root: Path, entry: str) -> bool:
    place = Path(os.path.normpath(entry))
    return entry not in _STARTED_WITH and place.is_relative_to(root) and "." not in str(place.relative_to(root))[1:]


class _Nothing:
    @staticmethod
    def find_spec(name: str, target: ModuleType | None = None) -> None:
        """Nothing is found."""


class _Finder:
    """Finds what lies in a component's package, and nothing else."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module of this name below a component's package; None elsewhere."""
        del target
        if not name.startswith(f"{PACKAGE}."):
            return None
        kinds: Any = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (_Loader, [".py"]))
        specs = (FileFinder(folder, *kinds).find_spec(name) for folder in path or ())
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is None:  # a folder without __init__.py is a package with an empty one
            spec.loader = _Loader(name, str(Path(*spec.submodule_search_locations or (), INIT_FILE)))
        return spec


class _Loader(SourceFileLoader):
    """Loads a file with the imports of its component. No file of bytecode is read or written."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the file."""
        root = sys.modules[".".join(module.__name__.split(".")[:2])]
        module.__dict__["__builtins__"] = root.__dict__["__builtins__"]
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file."""
        path = self.get_filename(fullname)
        content = self.get_data(path) if Path(path).is_file() else b""
        try:
            code: CodeType = compile(parse_python(content), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            error.filename = path
            raise
        return code
