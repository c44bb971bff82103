"""What can be installed: files with a class, from wherever they came; which Python runs it.

Also whose code a project holds, and which of other participants' a person trusts. What others wrote runs in the
sandbox. A person's own files and what ships do not; nor what a person chose to trust.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from autoresearch.errors import Refused
from autoresearch.project.model import AGENT, HIDDEN, Component, Project
from autoresearch.run.consent import Reach
from autoresearch.run.sandbox.layout import Interpreter, seeing
from autoresearch.task.needs import Package

# Whose code it is: this participant's (or what ships), another's that a person trusts, another's.
Origin = Literal["own", "trusted", "foreign"]


class ComponentOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A component that can be installed.

    ``files`` are copied into the project, by their relative path; a component of the person's own has none and stays
    in ``path``, relative to the project. ``class_name`` is file:Class. ``pins`` go into its section of ``agent.ini``:
    where it came from, which version. ``parameters`` too: they are arguments of its constructor.
    What is ``foreign`` runs in the sandbox. ``requirements`` are the Python packages that it needs, as ``numpy>=2``;
    ``packages`` fit them and all else that the project asks for; where it is ``isolated``, them alone.
    ``needs`` are other components, as ``policy/dqn==1.0.0``.
    """

    type: str
    name: str
    class_name: str
    files: dict[str, bytes] = {}
    path: str = ""
    description: str = ""
    pins: dict[str, str] = {}
    parameters: dict[str, str] = {}
    origin: Origin = "own"
    requirements: list[str] = []
    packages: list[Package] = []
    isolated: bool = False
    needs: list[str] = []

    @property
    def key(self) -> str:
        """Type and name, as ``policy.q_table``; of an agent the type."""
        return self.type if self.type == AGENT else f"{self.type}.{self.name}"


@dataclass(frozen=True, slots=True)
class Pythons:
    """``main`` is the environment of the project's packages, None where the node's own Python has them.

    ``isolated`` has the environment of each component, by its key, that runs in a process of its own.
    """

    main: Interpreter | None = None
    isolated: Mapping[str, Interpreter] = field(default_factory=dict)

    @property
    def executables(self) -> dict[str, str]:
        """The programs of ``isolated``."""
        return {key: str(python.executable) for key, python in self.isolated.items()}

    @property
    def for_sandbox(self) -> Interpreter | None:
        """The main one, for a sandbox where it sees the others, too."""
        return seeing(self.main, list(self.isolated.values()))


# Components that ship with the program.
_PROGRAM = Path(__file__).parents[2].resolve()
TRUSTED = "trusted.txt"
FETCHED = "fetched"


def foreign_components(project: Project) -> list[str]:
    """The keys of the components that other participants wrote and nobody here trusts, as ``policy.q_table``."""
    trusted, fetched = _read(project), is_fetched(project)
    of_others = [each for each in project.all() if fetched or each.pins.get("source") == "log"]
    return [each.key for each in of_others if _entry(each) not in trusted]


def trusted_components(project: Project) -> list[str]:
    """The keys of the components that other participants wrote and a person trusts."""
    trusted = _read(project)
    return [each.key for each in project.all() if trusted.get(_entry(each)) == "trusted"]


def reaches_of(project: Project) -> tuple[Reach, ...]:
    """What a project reaches outside of its folder: its code that runs without a sandbox, and files elsewhere.

    Nothing, where all of it runs in the sandbox. What the folder says of whom it trusts is its own word, too.
    """
    walled = set(foreign_components(project))
    files = {Path(each.file) for each in project.all() if each.key not in walled}
    own = {file for file in files if not file.resolve().is_relative_to(_PROGRAM)}
    inside = {file for file in own if file.resolve().is_relative_to(project.folder.resolve())}
    reaches = [Reach("code", str(file), str(file.resolve())) for file in own - inside]
    if inside:
        reaches.append(own_code(project))
    return tuple(sorted(reaches))


def own_code(project: Project) -> Reach:
    """The code in a project's folder, which reaches all that its owner does."""
    return Reach("code", "its components, without a sandbox", str(project.folder.resolve()))


def refuse_foreign(project: Project, what: str) -> None:
    """Raises Refused where other participants wrote some of what would run without a sandbox; ``what`` that is."""
    if keys := foreign_components(project):
        wrote = "another participant wrote" if len(keys) == 1 else "other participants wrote"
        raise Refused(
            f"{wrote} {', '.join(keys[:3])}, and {what} runs without a sandbox", hint="read the code, then use --trust"
        )


def note_origin(project: Project, offer: ComponentOffer) -> None:
    """Remember whether a component of the log that was just installed is one's own, trusted, or neither."""
    component = project.component(offer.type, AGENT if offer.type == AGENT else offer.name)
    if component.pins.get("source") != "log":
        return
    trusted = {entry: reason for entry, reason in _read(project).items() if entry[0] != component.key}
    if offer.origin != "foreign":
        trusted[_entry(component)] = offer.origin
    lines = (f"{key} {release} {reason}\n" for (key, release), reason in trusted.items())
    project.write(f"{HIDDEN}/{TRUSTED}", "".join(lines))


def mark_fetched(project: Project, run: str) -> None:
    """Remember that a project's files came with another participant's run: all of them are then that participant's."""
    project.write(f"{HIDDEN}/{FETCHED}", f"{run}\n")


def is_fetched(project: Project) -> bool:
    """Whether the project came with another participant's run."""
    return os.path.lexists(project.hidden / FETCHED)


def _entry(component: Component) -> tuple[str, str]:
    return component.key, component.pins.get("release", "")


def _read(project: Project) -> dict[tuple[str, str], Origin]:
    origins: dict[tuple[str, str], Origin] = {}
    with suppress(OSError, UnicodeDecodeError):
        for line in project.read(f"{HIDDEN}/{TRUSTED}").decode().splitlines():
            match line.split():
                case [key, release, ("own" | "trusted") as reason]:
                    origins[key, release] = reason
    return origins
