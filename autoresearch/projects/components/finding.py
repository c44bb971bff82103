"""From what a person typed to a component: one that ships, an id of Gymnasium, or a file of one's own.

A further place of components is a function of type, name and version (empty for any): the registry is one.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from autoresearch.errors import NotFound, UsageError
from autoresearch.projects.components.checking import METHODS
from autoresearch.projects.components.offers import Offer
from autoresearch.projects.components.shelf import gym_offer, shipped_offer, shipped_offers
from autoresearch.projects.model import AGENT, check_name, lone_name
from autoresearch.sanitise import one_line

Source = Callable[[str, str, str], Offer | None]


def find_offer(
    kind: str, wanted: str, folder: Path, *, class_name: str = "", name: str = "", sources: Sequence[Source] = ()
) -> Offer:
    """The component that ``install TYPE NAME`` means, for the project in ``folder``.

    ``wanted`` is NAME, NAME==VERSION, a path (with ``.``, ``/`` or ``~`` in front, or ``.py`` behind), or gym:ID. A
    name is looked for among the components that ship, then in ``sources`` in their order. With a version, or with a
    publisher as in PUBLISHER/NAME, only there.

    Of an environment of Gymnasium the ``requirements`` are the packages that this Python lacks, and no ``packages`` fit
    them yet.

    Raises:
        NotFound: there is none of this name or id, or no such file.
        UsageError: the type or name can't be one, or the file does not say which class is meant.
    """
    kind = kind.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", kind):
        raise UsageError(
            f"“{one_line(kind, 40)}” is no type of component", hint="environment, policy, trainer, dataset"
        )
    if wanted.startswith("gym:"):
        if kind != "environment":
            raise UsageError(
                f"Gymnasium has environments, no {kind}", hint=f"autoresearch install environment {wanted}"
            )
        return _renamed(_gymnasium(wanted.removeprefix("gym:")), name)
    if wanted.startswith((".", "/", "~")) or wanted.endswith(".py"):
        return _own(kind, Path(wanted), folder, class_name, name)
    found, _, version = wanted.partition("==")
    check_name(found.rpartition("/")[2])
    offer = None if version else shipped_offer(kind, found)
    for source in () if offer else sources:
        if offer := source(kind, found, version):
            break
    if offer is None:
        raise _unknown(kind, wanted)
    return _renamed(offer, name)


def _renamed(offer: Offer, name: str) -> Offer:
    return msgspec.structs.replace(offer, name=check_name(name)) if name else offer


def _unknown(kind: str, wanted: str) -> NotFound:
    names = [each.name for each in shipped_offers() if each.type == kind]
    near = difflib.get_close_matches(wanted, names, 1)
    other = next((each.type for each in shipped_offers() if each.name == wanted), "")
    hint = f"did you mean {near[0]}?" if near else f"here are: {', '.join(names)}" if names else "install ./file.py"
    if other:
        hint = f"autoresearch install {other} {wanted}"
    return NotFound(f"there is no {kind} “{one_line(wanted, 60)}” to install", hint=hint)


def _gymnasium(gym_id: str) -> Offer:
    if not re.fullmatch(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w.-]+", gym_id):
        raise UsageError(f"“{one_line(gym_id, 60)}” is no id of Gymnasium", hint="gym:CartPole-v1")
    from autoresearch.packages import has_packages  # the command line starts without them
    from autoresearch.projects.components.gym_ids import needed_packages

    lacking = [line for line in needed_packages(gym_id) if not has_packages([line])]
    return msgspec.structs.replace(gym_offer(gym_id), requirements=lacking)


def _own(kind: str, typed: Path, folder: Path, class_name: str, name: str) -> Offer:
    """A file of the person's own, or a folder with one; it stays where it is."""
    path = typed if typed.is_absolute() else Path(os.path.abspath(typed.expanduser()))  # noqa: PTH100 - keeps links
    module, _, short = class_name.rpartition(":")
    inside = path / f"{module}.py" if module else None
    file = (inside or _lone_file(path, kind)) if path.is_dir() else path
    if not file.is_file():
        raise NotFound(f"there is no file {file}", hint="give the Python file of the component")
    if not short:
        short = _lone_class(file, kind)
    place = os.path.relpath(file.parent, folder)
    return Offer(
        type=kind,
        name=check_name(name or lone_name(short)),
        class_name=f"{file.stem}:{short}",
        path="" if place == "." else place,
        description="",
        pins={},
    )


def _lone_file(folder: Path, kind: str) -> Path:
    named = folder / f"{kind}.py"
    files = [named] if named.is_file() else sorted(folder.glob("*.py"))
    if len(files) != 1:
        raise UsageError(f"{folder} has {len(files)} Python files", hint="give the file, or --class file:Class")
    return files[0]


def _lone_class(file: Path, kind: str) -> str:
    """The class that a file holds for a type, told by its base class or its methods. Nothing is imported."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise UsageError(f"{file}, line {line}: {one_line(str(error), 80)}") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    fitting = [each for each in classes if _is_for(each, kind)] or classes
    if len(fitting) != 1:
        names = ", ".join(each.name for each in fitting) or "none"
        raise UsageError(f"{file} does not say which class is the {kind}: {names}", hint="--class NAME")
    return fitting[0].name


def _is_for(node: ast.ClassDef, kind: str) -> bool:
    bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    own = {AGENT: "advance"}.get(kind, next((m for m in METHODS.get(kind, ()) if m != "reset"), ""))
    return kind.capitalize() in bases or bool(own and own in methods)
