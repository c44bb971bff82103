"""Another Python than the node's own: where it is, what a run has to see of it, and which packages it has."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment: its program, its version, the ``folders`` that it needs, those that hold packages."""

    executable: Path
    version: str
    folders: tuple[Path, ...]
    packages: tuple[Path, ...]

    def version_of(self, package: str) -> str | None:
        """The version of an installed package, or None."""
        found = distributions(name=package, path=[str(folder) for folder in self.packages])
        return next((each.version for each in found), None)


def interpreter_in(environment: Path, *, with_base: bool = False) -> Interpreter:
    """The Python of an environment (a venv, a conda environment); ``with_base``: it uses the node's packages too.

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
    needed: tuple[Path, ...] = (environment, *map(Path, prefixes), *layout.linked_folders(str(executable)))
    packages = tuple(sorted(environment.glob("lib/python*/site-packages")))
    if with_base:
        needed, packages = (*needed, *layout.interpreter_folders()), (*packages, *layout.package_folders())
    return Interpreter(executable, version, layout.outermost(needed), packages)


def launcher_python(own: Interpreter | None) -> str:
    """The Python that starts the launcher inside: beside another one, the node's without the node's packages."""
    return sys.executable if own is None else str(Path(sys.executable).resolve())


def shown_folders(own: Interpreter | None) -> tuple[Path, ...]:
    """The folders of Python that a run sees."""
    if own is None:
        return layout.interpreter_folders()
    base = (sys.base_prefix, sys.base_exec_prefix, Path(sys.executable).resolve().parent.parent)
    return layout.outermost((*(Path(folder) for folder in base), *own.folders))
