"""Effective parameters: ``agent.ini``, over it ``parameters.yaml``, over it ``--set``. Each keeps where it was written.

``parameters.yaml`` has a mapping for each component: ``policy:`` means the default policy, ``policy.dqn:`` one by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from autoresearch.errors import UsageError
from autoresearch.projects.model import AGENT, PARAMETERS, RESERVED, Component, Project
from autoresearch.projects.values import Setting, value_of
from autoresearch.sanitise import one_line


def with_parameters(project: Project, assignments: Sequence[str] = (), *, file: Path | None = None) -> Project:
    """The project with the parameters of ``parameters.yaml`` and of ``--set component.key=value``.

    ``file`` takes the place of the ``parameters.yaml`` beside ``agent.ini``.

    Raises:
        UsageError: the file or an assignment is wrong, or names no component of the project.
    """
    changed = {component.key: dict(component.settings) for component in project.all()}
    for name, key, setting in [*_of_file(file or project.folder / PARAMETERS), *map(_assignment, assignments)]:
        changed[_named(project, name, setting.origin)][key] = setting
    components = {
        kind: {name: msgspec.structs.replace(each, settings=changed[each.key]) for name, each in members.items()}
        for kind, members in project.components.items()
    }
    return msgspec.structs.replace(project, components=components)


def parameters_text(components: Sequence[Component]) -> str:
    """The effective parameters of components as the text of a ``parameters.yaml``."""
    found = {
        each.key: {key: value_of(s.value) if s.plain else s.value for key, s in each.settings.items()}
        for each in components
        if each.settings
    }
    return yaml.safe_dump(found, sort_keys=True, allow_unicode=True) if found else "{}\n"


def _named(project: Project, name: str, origin: str) -> str:
    """The key of the component that ``policy``, ``policy.dqn`` or ``agent`` means."""
    kind, _, member = name.partition(".")
    members = project.components.get(kind.lower(), {})
    wanted = member or project.defaults.get(kind.lower(), "")
    if wanted not in members:
        known = ", ".join(each.key for each in project.all())
        raise UsageError(f"{origin}: this project has no {one_line(name, 60)}", hint=f"its components: {known}")
    return members[wanted].key


def _assignment(text: str) -> tuple[str, str, Setting]:
    """What ``policy.learning_rate=0.1`` or ``policy.dqn.learning_rate=0.1`` sets."""
    left, equals, value = text.partition("=")
    name, dot, key = left.strip().rpartition(".")
    if not (equals and dot and name and key):
        raise UsageError(f"“{one_line(text, 60)}” sets nothing", hint="--set policy.learning_rate=0.1")
    return name, _parameter(key, f"--set {one_line(left, 60)}"), Setting(value.strip(), f"--set {left}", plain=True)


def _parameter(key: str, origin: str) -> str:
    if key.lower() in RESERVED:
        raise UsageError(f"{origin}: {key} is no parameter", hint="change it in agent.ini")
    return key.lower()


def _of_file(path: Path) -> list[tuple[str, str, Setting]]:
    if not path.exists():
        return []
    try:
        root = yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{path.name}, line {line}: {one_line(error.problem or 'no YAML', 80)}") from None
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {one_line(str(error), 80)}") from None
    found: list[tuple[str, str, Setting]] = []
    for name, node in _pairs(root, path.name):
        for key, value in _pairs(node, path.name):
            origin = f"{path.name}, line {value.start_mark.line + 1}"
            try:
                read = yaml.SafeLoader("").construct_document(value)
            except yaml.YAMLError as error:
                raise UsageError(f"{origin}: {one_line(str(error), 80)}") from None
            found.append((name, _parameter(key, origin), Setting(read, origin)))
    return found


def _pairs(node: yaml.Node | None, file: str) -> list[tuple[str, yaml.Node]]:
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return []
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        hint = f"policy:\n  learning_rate: 0.1 sets a parameter, {AGENT}: those of the agent"
        raise UsageError(f"{file}, line {line}: a mapping is missing here", hint=" ".join(hint.split()))
    return [(str(key.value), value) for key, value in node.value]
