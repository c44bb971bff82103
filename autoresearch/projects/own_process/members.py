"""The components of this process: built when they are first asked for, one object each."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from autoresearch.errors import NotFound, Refused
from autoresearch.projects.components.trusting import foreign_components
from autoresearch.projects.model import INI, Component, Project, load_project
from autoresearch.projects.own_process.loading import build, component_class
from autoresearch.projects.own_process.recording import Recorder, Tally
from autoresearch.projects.parameters import with_parameters

if TYPE_CHECKING:
    import numpy as np

# The attribute that says which component an object is.
OWNER = "_autoresearch_owner"
_current: list[Members] = []


class Members:
    """A project's components as objects. ``made`` is given each that was built; what it returns takes its place.

    ``isolated`` names components that run in processes of their own, by their key, each with the Python of its process.
    Components ``refused``, by their key, are not built.
    """

    def __init__(
        self,
        project: Project,
        *,
        seed: int = 0,
        made: Callable[[str, str, Any], object] | None = None,
        isolated: Mapping[str, str] = MappingProxyType({}),
        refused: Collection[str] = (),
    ) -> None:
        self.project = project
        self.built: dict[tuple[str, str], Any] = {}
        self._classes: dict[tuple[str, str], Callable[[], object]] = {}
        self._defaults = dict(project.defaults)
        self._seed = seed
        self._made = made
        self._isolated = isolated
        self._refused = refused
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
            found = make() if make else self._built(self.project.component(kind, name))
            if self._made:
                found = self._made(kind, name, found)
            elif kind == "environment":
                found = Recorder(found, Tally())
            self.built[key] = found
        return self.built[key]

    def _built(self, component: Component) -> object:
        if component.key in self._refused:
            raise Refused(
                f"another participant wrote {component.key}, and a script of your own runs without a sandbox",
                hint="autoresearch train and run use the sandbox; or read the code, and install it with --trust",
            )
        owner = (component.type, component.name)
        if component.key in self._isolated:
            from autoresearch.projects.own_process.apart import started_apart  # which needs this module

            return started_apart(self._isolated[component.key], self.project, self._seed, owner, self.get)
        component_class(component)
        self._seed_torch()
        found = build(component)
        if self._isolated:
            mark_owner(found, owner)
        return found

    def register(self, kind: str, name: str, make: Callable[[], object]) -> None:
        """Add a component that no file names; the first of its type is its default."""
        self._classes[kind, name] = make
        self.built.pop((kind, name), None)
        self._defaults.setdefault(kind, name)

    def _seed_torch(self) -> None:
        """Seed torch once, as soon as a component has imported it."""
        if (torch := sys.modules.get("torch")) is not None and not self._has_seeded:
            self._has_seeded = True
            torch.manual_seed(self._seed)

    def generator(self, component: object) -> np.random.Generator:
        """A random generator for a component, the same for every one of its class."""
        import numpy as np

        return np.random.default_rng([self._seed, zlib.crc32(type(component).__name__.encode())])


class Group:
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
        found = [each for each in members.names(self._kind) if each.replace("-", "_").replace(".", "_") == name]
        try:
            return members.get(self._kind, found[0] if found else name)
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


def mark_owner(component: object, owner: tuple[str, str]) -> None:
    """Have a component be passed to other processes by its type and name. One without attributes can't be passed."""
    if isinstance(getattr(component, "__dict__", None), dict):
        component.__dict__[OWNER] = owner


def current() -> Members:
    """The components of this process: those of the run, else of the project in or above the working folder.

    In a script, components that other participants wrote and nobody here trusts are refused when they are asked for.

    Raises:
        NotFound: there is no project.
    """
    if not _current:
        here = Path.cwd()
        folder = next((each for each in (here, *here.parents) if (each / INI).is_file()), here)
        project = with_parameters(load_project(folder))
        use(Members(project, refused=foreign_components(project)))
    return _current[-1]


def use(members: Members) -> None:
    """Make these the components of this process."""
    _current[:] = [members]


def generator_of(component: object) -> np.random.Generator:
    """The random generator of a component of this process."""
    return current().generator(component)
