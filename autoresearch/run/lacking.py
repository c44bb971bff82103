"""Which packages a program lacks, all at once, and how a person gets them. Starts no Python of theirs."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import distributions, packages_distributions
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from autoresearch.errors import UsageError
from autoresearch.run.bench import program_files
from autoresearch.run.sandbox.layout import package_folders
from autoresearch.task.declared import declared_packages, imported_packages, package_of, packages_with
from autoresearch.task.listing import list_folder
from autoresearch.task.model import Task
from autoresearch.task.needs import LOOSE

# So many folders above a program's are looked at for a package of its checkout.
_ABOVE = 3


def lacking_packages(
    folder: Path, sources: Mapping[str, str], own: Collection[str], places: Sequence[Path], failed: Collection[str] = ()
) -> list[str]:
    """What a Python lacks of all that a program imports and that the lists in its folder name, as pip's words.

    ``own`` are further names of the folder's files, ``places`` hold the packages of that Python: see
    :func:`places_of`; none: all is lacking. ``failed`` are modules that a run did not find.
    """
    names = {canonicalize_name(each.name) for each in distributions(path=[str(place) for place in places])}
    declared, installed = declared_packages(folder, sources), packages_distributions()
    lacking = {name: line for name, line in declared.items() if name not in names}
    for module in {*imported_packages(sources, own), *failed}:
        if module not in failed and _has_module(module, places):
            continue
        likely = [*sorted(installed.get(module, ())), package_of(module)][0]
        names_of_it = (*map(canonicalize_name, installed.get(module, ())), *packages_with(module))
        name = next((each for each in names_of_it if each in declared), "")
        if not name or module in failed:
            lacking[name or canonicalize_name(likely)] = declared.get(name, likely)
    return [lacking[name] for name in sorted(lacking)]


def places_of(venv: str) -> Sequence[Path]:
    """Where an environment has its packages; empty: the node's own Python."""
    return sorted(Path(venv).glob("lib/python*/site-packages")) if venv else package_folders()


def lacks_packages(task: Task, names: str, module: str) -> UsageError:
    """The error for a program, by its ``names``, that did not find a module: all that it lacks, and how to get it."""
    folder, sources, own = task.folder, task_sources(task), list_folder(task.folder).names
    if any(module in name.removesuffix(".py").split("/") for name in own):
        return UsageError(
            f"{names} did not find {module}, which is part of its folder",
            hint="name what starts it there: --command 'python -m PACKAGE.MODULE' --edit FILE",
        )
    if (above := _holder(folder, module)) is not None:
        command = f"python {(folder / task.recipe.edit[0]).resolve().relative_to(above.resolve())}"
        return UsageError(
            f"{names} did not find {module}, which lies above its folder, in {above}",
            hint=f"autoresearch task new {shlex.quote(str(above))} --command {shlex.quote(command)}",
        )
    venv = task.python.venv if task.python else ""
    lacking = lacking_packages(folder, sources, own, places_of(venv), [module])
    way = way_to_environment(folder, sources, own, venv, [module])
    return UsageError(
        f"{names} needs packages that {venv or 'the Python of this node'} lacks: {', '.join(lacking)}",
        hint=f"{way} (to share the task, list them in {folder / LOOSE} and, once it is one: autoresearch task lock "
        f"{shlex.quote(str(folder))})",
    )


def _holder(folder: Path, module: str) -> Path | None:
    """The folder above that has a module: of a checkout whose programs lie further in, as ``projects/adder``."""
    for above in folder.resolve().parents[:_ABOVE]:
        if (above / module / "__init__.py").is_file() or (above / f"{module}.py").is_file():
            return above
        if (above / ".git").exists() or above == Path.home():
            return None
    return None


def _has_module(name: str, places: Sequence[Path]) -> bool:
    try:
        if PathFinder.find_spec(name, [str(place) for place in places]) is not None:
            return True
        return list(places) == list(package_folders()) and find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def way_to_environment(
    folder: Path, sources: Mapping[str, str], own: Collection[str], venv: str, failed: Collection[str] = ()
) -> str:
    """One command that gets a program what it lacks, and then makes it a task.

    ``failed`` are modules that a run did not find. The environment is ``venv``, else one that lies in the folder, or
    that is active; nothing is got that it has.
    """
    new = f"autoresearch task new {shlex.quote(str(folder))} --venv"
    active = [os.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    for place in map(Path, filter(None, (venv, str(folder / ".venv"), str(folder / "venv"), *active))):
        if not (place / "bin/python").exists() or place.resolve() == Path(sys.prefix).resolve():
            continue
        places = places_of(str(place))
        rest = lacking_packages(
            folder, sources, own, places, [module for module in failed if not _has_module(module, places)]
        )
        path = shlex.quote(str(place))
        words = " ".join(map(shlex.quote, rest))
        return f"{path}/bin/python -m pip install {words} && {new} {path}" if rest else f"{new} {path}"
    path, words = shlex.quote(str(folder / ".venv")), shlex.join(lacking_packages(folder, sources, own, (), failed))
    return f"python -m venv {path} && {path}/bin/pip install {words} && {new} {path}"


def lacking_in_list(task: Task) -> list[str]:
    """The packages that a task's files import, and that its locked list lacks; none where it has no list of its own.

    With ``base`` the node's own are there too.
    """
    if not task.packages:
        return []
    listed = {canonicalize_name(Requirement(package.name).name) for package in task.packages}
    own = packages_distributions()
    is_based = task.python is not None and task.python.base
    lacking = set()
    for module in imported_packages(task_sources(task), task.inputs):
        providers = {canonicalize_name(name) for name in own.get(module, ())}
        names = providers | set(packages_with(module))
        if names.isdisjoint(listed) and not (is_based and providers):
            lacking.add(next(iter(sorted(providers)), package_of(module)))
    return sorted(lacking)


def packages_of(task: Task, modules: Collection[str]) -> list[str]:
    """What a list of a task's own has to name: the packages of modules, of all that its files import and declare."""
    return lacking_packages(task.folder, task_sources(task), task.inputs, (), modules)


def task_sources(task: Task) -> dict[str, str]:
    """The texts of a task's program and of its fixed files."""
    files = {**program_files(task.baseline.decode()), **task.harness}
    return {name: content.decode("utf-8-sig", "replace") for name, content in files.items()}
