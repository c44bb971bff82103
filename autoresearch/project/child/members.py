"""The components of this process: built when they are first asked for, one object each.

A section's file is loaded as a module of its own (``importing.py``), and its class is called.
"""

from __future__ import annotations

import sys
import traceback
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError, install_command
from autoresearch.project.child.importing import PACKAGE, module_of
from autoresearch.project.child.recording import Recorder, Tally
from autoresearch.project.components.trusting import foreign_components
from autoresearch.project.ini import arguments
from autoresearch.project.model import AGENT, INI, Component, Project, load_project, with_parameters
from autoresearch.text import one_line

if TYPE_CHECKING:
    import numpy as np


class ComponentFailed(AutoresearchError):
    """A component's own code raised an error."""


def component_class(component: Component) -> type:
    """The class of a component. Two components may both have a file of the same name.

    Raises:
        NotFound: there is no such file, or no such class in it.
        ComponentFailed: the file can't be imported.
    """
    module = _module(component)
    constructor = getattr(module, component.class_name, None)
    if not isinstance(constructor, type):
        classes = [name for name, each in vars(module).items() if isinstance(each, type) and _is_of(each, module)]
        hint = f"it has {', '.join(classes)}" if classes else "it has no class"
        raise NotFound(f"{component.origin}: {component.file} has no class {component.class_name}", hint=hint)
    return constructor


def build(component: Component) -> object:
    """A component, made with the parameters of its section.

    Raises:
        NotFound: there is no such file, or no such class in it.
        UsageError: a parameter is unknown, missing, or of another type.
        ComponentFailed: its code raised an error.
    """
    cls = component_class(component)
    try:
        parameters = arguments(component.key, cls, component.settings)
    except ValueError:  # a class of C has no signature
        parameters = {}
    try:
        return cls(**parameters)
    except AutoresearchError:
        raise
    except Exception as error:
        raise failed(component.key, error) from error


def failed(key: str, error: BaseException) -> ComponentFailed:
    """A component's error as a sentence that names the line, and the component in whose file that is."""
    if isinstance(error, ComponentFailed):
        return error
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _is_ours(each.filename)]
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    owners = {each.file: each.key for members in _current for each in members.project.all()}
    key = next((owners[each.filename] for each in reversed(frames) if each.filename in owners), key)
    if isinstance(error, ModuleNotFoundError) and error.name:
        in_file = f" ({place})" if place else ""
        if error.name.startswith(f"{PACKAGE}."):
            sentence = f"imports {one_line(error.name.split('.', 2)[-1], 60)}, which is not among its files"
            return ComponentFailed(f"{key} {sentence}{in_file}", hint="add that file, or ask its publisher")
        name = one_line(error.name.partition(".")[0], 40)
        hint = f"a package: list {name} in its requirements.txt, install it again; a file of its own: add {name}.py"
        if name == "gymnasium":
            name, hint = "gymnasium (extra “projects”)", install_command("projects")
        return ComponentFailed(f"{key} needs the package {name}, which is not installed{in_file}", hint=hint)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}, line {error.lineno}"
    sentence = one_line(str(error), 200)
    where = f"{place}: " if place else ""
    return ComponentFailed(f"{key}: {where}{type(error).__name__}{f': {sentence}' if sentence else ''}")


def _is_ours(file: str) -> bool:
    return file.startswith("<frozen") or Path(file).parent == Path(__file__).parent


def _module(component: Component) -> ModuleType:
    path = Path(component.file)
    if not path.is_file():
        hint = f"autoresearch install {component.type} {component.name}" if component.type != AGENT else ""
        raise NotFound(f"{component.origin}: there is no file {path}", hint=hint or "check class_name and file_path")
    if path.suffix != ".py":
        raise UsageError(f"{component.origin}: {path} is no Python file", hint="correct class_name")
    try:
        return module_of(component)
    except Exception as error:
        raise failed(component.key, error) from error


def _is_of(cls: type, module: ModuleType) -> bool:
    return cls.__module__ == module.__name__


# The attribute that says which component an object is.
OWNER = "_autoresearch_owner"
_current: list[Members] = []


@dataclass(eq=False)
class Members:
    """A project's components as objects. ``made`` is given each that was built; what it returns takes its place.

    ``isolated`` names components that run in processes of their own, by their key, each with the Python of its process.
    Components ``refused``, by their key, are not built.
    """

    project: Project
    seed: int = 0
    made: Callable[[str, str, Any], object] | None = None
    isolated: Mapping[str, str] = field(default_factory=dict)
    refused: Collection[str] = ()

    def __post_init__(self) -> None:
        self.built: dict[tuple[str, str], Any] = {}
        self._classes: dict[tuple[str, str], Callable[[], object]] = {}
        self._defaults = dict(self.project.defaults)
        self._has_seeded = False

    def names(self, kind: str) -> list[str]:
        """The names of a type's components."""
        registered = [name for each, name in self._classes if each == kind]
        return list(dict.fromkeys([*self.project.components.get(kind, {}), *registered]))

    def default(self, kind: str) -> Any:  # noqa: ANN401
        """The default component of a type. Raises NotFound."""
        return self.get(kind, self._defaults.get(kind, ""))

    def get(self, kind: str, name: str) -> Any:  # noqa: ANN401
        """The component of this name, built the first time. Raises NotFound, UsageError, ComponentFailed."""
        key = (kind, name)
        if key not in self.built:
            make = self._classes.get(key)
            built = make() if make else self._built(self.project.component(kind, name))
            if self.made:
                built = self.made(kind, name, built)
            elif kind == "environment":
                built = Recorder(built, Tally())
            self.built[key] = built
        return self.built[key]

    def _built(self, component: Component) -> object:
        if component.key in self.refused:
            raise Refused(
                f"another participant wrote {component.key}, and a script of your own runs without a sandbox",
                hint="autoresearch train and run use the sandbox; or read the code, and install it with --trust",
            )
        owner = (component.type, component.name)
        if component.key in self.isolated:
            from autoresearch.project.child.apart import started_apart  # which needs this module

            return started_apart(self.isolated[component.key], self.project, self.seed, owner, self.get)
        component_class(component)
        self._seed_torch()
        instance = build(component)
        # It is passed to other processes by its type and name. One without attributes can't be passed.
        if self.isolated and isinstance(getattr(instance, "__dict__", None), dict):
            instance.__dict__[OWNER] = owner
        return instance

    def register(self, kind: str, name: str, make: Callable[[], object]) -> None:
        """Add a component that no file names; the first of its type is its default."""
        self._classes[kind, name] = make
        self.built.pop((kind, name), None)
        self._defaults.setdefault(kind, name)

    def _seed_torch(self) -> None:
        """Seed torch once, as soon as a component has imported it."""
        if (torch := sys.modules.get("torch")) is not None and not self._has_seeded:
            self._has_seeded = True
            torch.manual_seed(self.seed)

    def generator(self, component: object) -> np.random.Generator:
        """A random generator for a component, the same for every one of its class."""
        import numpy as np

        return np.random.default_rng([self.seed, zlib.crc32(type(component).__name__.encode())])


class ComponentGroup:
    """The components of one type, as ``acr.policy``: by name, as attributes, or the default."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return current().get(self._kind, name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        members = current()
        if name == "default":
            return members.default(self._kind)
        matching = [each for each in members.names(self._kind) if each.replace("-", "_").replace(".", "_") == name]
        try:
            return members.get(self._kind, matching[0] if matching else name)
        except NotFound as error:
            raise AttributeError(str(error)) from error

    def __iter__(self) -> Iterator[str]:
        return iter(current().names(self._kind))

    def __len__(self) -> int:
        return len(current().names(self._kind))

    def __contains__(self, name: object) -> bool:
        return name in current().names(self._kind)

    def __repr__(self) -> str:
        return f"<{self._kind}: {', '.join(self) or 'none'}>"


def current() -> Members:
    """The components of this process: those of the run, else of the project in or above the working folder.

    In a script, components that other participants wrote and nobody here trusts are refused when they are asked for.

    Raises:
        NotFound: there is no project.
    """
    if not _current:
        cwd = Path.cwd()
        folder = next((each for each in (cwd, *cwd.parents) if (each / INI).is_file()), cwd)
        project = with_parameters(load_project(folder))
        use(Members(project, refused=foreign_components(project)))
    return _current[-1]


def use(members: Members) -> None:
    """Make these the components of this process."""
    _current[:] = [members]


def generator_of(component: object) -> np.random.Generator:
    """The random generator of a component of this process."""
    return current().generator(component)
