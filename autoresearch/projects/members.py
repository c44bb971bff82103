"""The components of this process: built when they are first asked for, one object each."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoresearch.errors import NotFound
from autoresearch.projects.loading import build, component_class
from autoresearch.projects.model import INI, Project, load_project
from autoresearch.projects.parameters import with_parameters
from autoresearch.projects.recording import Recorder, Tally

if TYPE_CHECKING:
    import numpy as np

_current: list[Members] = []


class Members:
    """A project's components as objects. ``made`` is given each that was built; what it returns takes its place."""

    def __init__(
        self, project: Project, *, seed: int = 0, made: Callable[[str, str, Any], object] | None = None
    ) -> None:
        self.project = project
        self.built: dict[tuple[str, str], Any] = {}
        self._classes: dict[tuple[str, str], Callable[[], object]] = {}
        self._defaults = dict(project.defaults)
        self._seed = seed
        self._made = made
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
            if key in self._classes:
                found = self._classes[key]()
            else:
                component = self.project.component(kind, name)
                component_class(component)
                self._seed_torch()
                found = build(component)
            if self._made:
                found = self._made(kind, name, found)
            elif kind == "environment":
                found = Recorder(found, Tally())
            self.built[key] = found
        return self.built[key]

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


def current() -> Members:
    """The components of this process: those of the run, else of the project in or above the working folder.

    Raises:
        NotFound: there is no project.
    """
    if not _current:
        here = Path.cwd()
        folder = next((each for each in (here, *here.parents) if (each / INI).is_file()), here)
        use(Members(with_parameters(load_project(folder))))
    return _current[-1]


def use(members: Members) -> None:
    """Make these the components of this process."""
    _current[:] = [members]


def generator_of(component: object) -> np.random.Generator:
    """The random generator of a component of this process."""
    return current().generator(component)
