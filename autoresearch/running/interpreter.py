"""Another Python than the node's own: where it is, what a run has to see of it, and which packages it has."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from autoresearch.errors import CannotRunHere
from autoresearch.running import layout

# Neither the packages there nor what they have Python do at its start (.pth files) are run outside of the sandbox.
_ASKED = [
    "-I",
    "-S",
    "-c",
    "import json, platform, sys; print(json.dumps([platform.python_version(), sys.base_prefix, sys.base_exec_prefix]))",
]
_SECONDS = 30
_VERSION_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment: its program, its version, the ``folders`` that it needs, those that hold packages."""

    executable: Path
    version: str
    folders: tuple[Path, ...]
    packages: tuple[Path, ...]

    def version_of(self, package: str) -> str | None:
        """The version of an installed package as it says itself, or None."""
        for found in distributions(name=package, path=[str(folder) for folder in self.packages]):
            return "".join(filter(str.isprintable, found.version or ""))[:_VERSION_CHARACTERS]
        return None


def interpreter_in(environment: Path) -> Interpreter:
    """The Python of an environment that a person made: a venv, a conda environment.

    Raises:
        CannotRunHere: there is none, or it does not start.
    """
    executable = environment / "bin" / "python"
    if not executable.exists():
        raise CannotRunHere(
            f"{environment} is no Python environment: it has no bin/python",
            hint="make it (python -m venv PATH), or correct venv under [python] in task.toml",
        )
    try:
        said = subprocess.run([str(executable), *_ASKED], capture_output=True, timeout=_SECONDS, check=True, env={})
        version, *prefixes = [str(each) for each in json.loads(said.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CannotRunHere(f"{executable} does not start: {error}", hint=f"make {environment} anew") from error
    needed = (environment, *map(Path, prefixes), *layout.linked_folders(str(executable)))
    packages = tuple(sorted(environment.glob("lib/python*/site-packages")))
    return Interpreter(executable, version, layout.outermost(needed), packages)


def made_interpreter(environment: Path, *, with_base: bool) -> Interpreter:
    """The Python of an environment that was made here of strangers' packages; ``with_base``: beside the node's own.

    Nothing in there is started, read or followed to learn where Python is: a package may have put it there.
    """
    base = getattr(sys, "_base_executable", sys.executable)
    needed = (environment, Path(sys.base_prefix), Path(sys.base_exec_prefix), *layout.linked_folders(base))
    packages: tuple[Path, ...] = (site_packages(environment),)
    if with_base:
        needed, packages = (*needed, *layout.interpreter_folders()), (*packages, *layout.package_folders())
    return Interpreter(environment / "bin" / "python", platform.python_version(), layout.outermost(needed), packages)


def seeing(own: Interpreter | None, others: Sequence[Interpreter]) -> Interpreter | None:
    """A Python whose run sees others, too, and may start them; ``own`` None: the node's own."""
    if not others:
        return own
    folders, packages = layout.interpreter_folders(), layout.package_folders()
    own = own or Interpreter(Path(sys.executable), platform.python_version(), folders, packages)
    return replace(own, folders=layout.outermost((*own.folders, *(each for one in others for each in one.folders))))


def site_packages(environment: Path) -> Path:
    """Where an environment of the node's own Python version keeps its packages."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def launcher_python(own: Interpreter | None) -> str:
    """The Python that starts the launcher inside: beside another one, the node's without the node's packages."""
    return sys.executable if own is None else str(Path(sys.executable).resolve())


def shown_folders(own: Interpreter | None) -> tuple[Path, ...]:
    """The folders of Python that a run sees."""
    if own is None:
        return layout.interpreter_folders()
    base = (sys.base_prefix, sys.base_exec_prefix, Path(sys.executable).resolve().parent.parent)
    return layout.outermost((*(Path(folder) for folder in base), *own.folders))
