"""The Python packages of a project on the command line: locked, agreed to, installed once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import typer

from autoresearch.errors import Refused
from autoresearch.figures import counted
from autoresearch.projects import (
    LOOSE,
    Offer,
    Project,
    Pythons,
    isolated_packages,
    locked_packages,
    note_locked,
    required,
)
from autoresearch_cli import here
from autoresearch_cli.packages import NAMED
from autoresearch_cli.rendering.output import say

if TYPE_CHECKING:
    from autoresearch.running import Interpreter
    from autoresearch.tasks import Package


def project_pythons(project: Project, *, allowed: bool = False) -> Pythons:
    """The Pythons with the packages that a project and its isolated components ask for.

    Packages are installed if they are not here, once a person agreed; ``allowed``: they have.

    Raises:
        UsageError: ``requirements.in`` is wrong, or was not locked since it was changed.
        PackagesNotAllowed: nobody can be asked here.
        Refused: the answer is no.
        CannotRunHere: a package can't be installed.
    """
    wanted, isolated = required(project), isolated_packages(project)
    main: Interpreter | None = None
    if wanted:
        from autoresearch.packages import has_packages

        if not has_packages(wanted):
            main = python_with(project.folder.name, locked_packages(project), allowed=allowed)
    own = {key: python_with(key, packages, allowed=allowed) for key, packages in isolated.items()}
    return Pythons(main, own)


def python_with(name: str, locked: list[Package], *, allowed: bool = False) -> Interpreter:
    """The Python with a locked list beside the node's packages; ``name`` is what needs it.

    Raises:
        PackagesNotAllowed, Refused, CannotRunHere: as :func:`project_pythons`.
    """
    from autoresearch.packages import PackageSet

    packages = PackageSet(name, locked, base=True)
    place = here.paths().environments
    if not packages.is_installed(place):
        if not allowed:
            _ask(packages.name, packages.packages)
        agree(packages.packages)
        say(f"installing {counted(len(packages.packages), 'Python package')}")
    return packages.python(place)


def lock_project(project: Project) -> None:
    """Lock the packages of ``requirements.in`` anew.

    Raises:
        UsageError: a line is no package.
        Refused: ``requirements.txt`` is a list of the person's own.
        CannotRunHere: no versions fit together, with the resolver's own words.
    """
    from autoresearch.packages import resolve_packages

    packages, _ = resolve_packages(required(project), what=f"{LOOSE} can't be locked")
    note_locked(project, packages)
    agree(packages)
    say(f"{LOOSE} is locked: {counted(len(packages), 'Python package')}")
    project_pythons(project)


def with_packages(offer: Offer, beside: Sequence[str]) -> Offer:
    """A component with the packages that fit what it asks for, and the lines ``beside`` that the project asks for.

    Raises:
        CannotRunHere: no versions fit together, with the resolver's own words; or there is no network.
    """
    if not offer.requirements or offer.packages:
        return offer
    from autoresearch.packages import resolve_packages

    say(f"{offer.name} needs {', '.join(offer.requirements)}")
    what = f"{offer.name} is not installed: its packages don't fit"
    packages, _ = resolve_packages([*beside, *offer.requirements], what=what)
    return msgspec.structs.replace(offer, packages=packages)


def agree(packages: Sequence[Package]) -> None:
    """Note that a person agreed to have a list of packages installed: they installed what asks for it."""
    from autoresearch.packages import allow

    allow(here.paths().allowed_packages, list(packages))


def _ask(name: str, packages: list[Package]) -> None:
    from autoresearch.packages import ALL, PackagesNotAllowed, is_allowed, package_source

    if here.settings().work.allow_packages == ALL or is_allowed(here.paths().allowed_packages, packages):
        return
    named = [f"{package.name} {package.version}" for package in packages]
    further = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    say(f"{name} needs {counted(len(named), 'Python package')} from {package_source()}:")
    say(f"{', '.join(named[:NAMED])}{further}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PackagesNotAllowed(name, len(packages), hint="autoresearch run --allow-packages")
    if not typer.confirm("Install them?", err=True):
        raise Refused("nothing was installed, and nothing runs", hint="install what the project needs by hand")
