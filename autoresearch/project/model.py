"""What a project consists of, by ``agent.ini``: components by type and name, their defaults, their parameters.

``[Policy.q_table]`` is a component of type policy. ``[Policy]`` names the type's default, or is its only component.
Over the parameters of ``agent.ini`` go those of ``parameters.yaml``, over these ``--set``; each keeps where it was
written. ``parameters.yaml`` has a mapping for each component: ``policy:`` means the default policy, ``policy.dqn:`` one
by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from autoresearch.beneath import path_to_write, read_beneath, text_beneath
from autoresearch.errors import NotFound, UsageError
from autoresearch.project.ini import Ini, IniItem, IniSection, ParameterValue, value_of
from autoresearch.task.folder_state import replace_file, unwritable
from autoresearch.text import did_you_mean, one_line, unreadable

INI = "agent.ini"
PARAMETERS = "parameters.yaml"
# Makes a folder a package.
INIT_FILE = "__init__.py"
HIDDEN = ".autoresearch"
AGENT = "agent"
# Keys of a section that are no arguments of the component: where its code is, and what was installed.
RESERVED = frozenset(
    ("class_name", "file_path", "path", "root", "default", "source", "release", "version", "commit", "tree", "isolated")
)
OWN_KEYS = frozenset(("learns_on_run",))
# A file of a project; what its components learned may be larger.
MOST_BYTES = 64 << 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Component(msgspec.Struct, frozen=True):
    """One component: its code (an absolute file and a class in it), its parameters, what was installed (``pins``).

    ``root`` is the folder that holds its files: what they import from below it is the component's own.
    """

    type: str
    name: str
    file: str
    root: str
    class_name: str
    settings: dict[str, ParameterValue]
    pins: dict[str, str]
    origin: str

    @property
    def key(self) -> str:
        """Type and name, as ``policy.q_table``."""
        return self.type if self.type == AGENT else f"{self.type}.{self.name}"


class Project(msgspec.Struct, frozen=True):
    """A folder with its ``agent.ini``, read. ``components`` has them by type, then name, in the file's order."""

    folder: Path
    ini: Path
    components: dict[str, dict[str, Component]]
    defaults: dict[str, str]
    learns_on_run: bool = False

    @property
    def hidden(self) -> Path:
        """Where installed components and runs are."""
        return self.folder / HIDDEN

    @property
    def runs(self) -> Path:
        """The folder with a folder for each run."""
        return self.hidden / "runs"

    def read(self, name: str) -> bytes:
        """A file of its folder, which no link leads out of. Raises OSError."""
        return read_beneath(self.folder, name, MOST_BYTES)

    def write(self, name: str, text: str) -> None:
        """Replace a file of its folder, or make it. Raises UsageError where it can't be written."""
        replace_file(self.folder, name, text.encode())

    def to_write(self, name: str) -> Path:
        """The path of a file or a new folder in its folder, for what writes it by itself. Raises UsageError."""
        try:
            return path_to_write(self.folder, name)
        except OSError as error:
            raise unwritable(self.folder / name, error) from error

    def all(self) -> list[Component]:
        """Every component, the agent first."""
        return [each for members in self.components.values() for each in members.values()]

    def component(self, kind: str, name: str = "") -> Component:
        """A component by name; without one the default of its type.

        Raises:
            NotFound: there is none.
        """
        members = self.components.get(kind, {})
        if not members:
            hint = did_you_mean(kind, self.components) or f"autoresearch install {kind} NAME"
            raise NotFound(f"this project has no {one_line(kind, 20)}", hint=hint)
        name = name or self.defaults.get(kind, "")
        if name not in members:
            if not name:
                raise NotFound(f"this project has no default {kind}", hint=f"autoresearch use {kind} NAME")
            names = f"here are: {', '.join(members)}; autoresearch install {kind} {name}"
            hint = did_you_mean(name, members) or names
            raise NotFound(f"this project has no {kind} {one_line(name, 40)}", hint=hint)
        return members[name]


def is_project(folder: Path) -> bool:
    """Whether a folder holds a project."""
    return (folder / INI).is_file()


def load_ini(path: Path) -> Ini:
    """The text of a project's file.

    Raises:
        NotFound: there is no such file.
        UsageError: it is no text, or a line of it is neither section nor key.
    """
    try:
        return Ini(text_beneath(path.parent, path.name, MOST_BYTES), path.name)
    except FileNotFoundError:
        raise NotFound(f"there is no {path}", hint="autoresearch init makes a project") from None
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} can't be read: {unreadable(error)}", hint="check the file") from None


def read_code(file: Path, folder: Path) -> bytes:
    """A file of a component: of the project's ``folder``, or beside another one that lies elsewhere. Raises OSError."""
    path = Path(os.path.normpath(file))
    root = folder if path.is_relative_to(folder) else path.parent
    return read_beneath(root, path.relative_to(root), MOST_BYTES)


def load_project(path: Path) -> Project:
    """Read a project from its ``agent.ini``, or from the folder that has one. No component is loaded.

    Raises:
        NotFound: there is no such file.
        UsageError: a line is wrong; the sentence names it.
    """
    file = path / INI if path.is_dir() else path
    return project_of(load_ini(file), file)


def project_of(ini: Ini, file: Path, *, besides: frozenset[str] = frozenset()) -> Project:
    """The project of a file that was read. Sections named in ``besides`` (lower case) are about something else.

    Raises:
        UsageError: a line is wrong; the sentence names it.
    """
    folder = file.absolute().parent
    components: dict[str, dict[str, Component]] = {}
    for section in ini.sections:
        if section.title.lower() in besides:
            continue
        if (component := _component(ini, section, folder)) is not None:
            components.setdefault(component.type, {})[component.name] = component
    return Project(folder, file.absolute(), components, _defaults(ini, components), _learns(ini))


def require_parts(project: Project, *, training: bool) -> None:
    """See that a project has what a run needs. Raises NotFound."""
    project.component("environment")
    project.component("policy")
    if training and AGENT not in project.components:
        project.component("trainer")


def section_title(kind: str, name: str = "") -> str:
    """The title of a component's section, or of its type's: ``Policy.q_table``, ``Policy``."""
    return f"{kind.capitalize()}.{name}" if name else kind.capitalize()


def check_name(name: str) -> str:
    """The name, if it can be one. Raises UsageError."""
    if not NAME.fullmatch(name) or name == "default":  # acr.policy.default is another one
        raise UsageError(
            f"“{one_line(name, 40)}” can't be a component's name", hint="use letters, digits and _ . - in it"
        )
    return name


def lone_name(class_name: str) -> str:
    """The name of a class in lower case, its words joined by underscores: ``q_table`` of ``policies:QTable``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name.rpartition(":")[2]).lower()


def _component(ini: Ini, section: IniSection, folder: Path) -> Component | None:
    kind, _, name = section.title.partition(".")
    kind = kind.strip().lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", kind):
        raise ini.error(section.line, f"[{one_line(section.title, 40)}] names no type of component")
    items = section.items
    if "class_name" not in items:
        if not name and kind != AGENT:
            extra = next((item for key, item in items.items() if key not in RESERVED), None)
            if extra is None:
                return None  # it only names the default
            raise ini.error(extra.line, f"[{section.title}] has parameters and no class_name")
        raise ini.error(section.line, f"[{section.title}] has no class_name", hint="class_name = file:Class")
    class_name = items["class_name"].text
    module, colon, short = class_name.rpartition(":")
    if not short.isidentifier() or (colon and not re.fullmatch(r"[\w./-]+", module)):
        excerpt = one_line(class_name, 40)
        raise ini.error(items["class_name"].line, f"“{excerpt}” names no class", hint="class_name = file:Class")
    name = name.strip() or (AGENT if kind == AGENT else lone_name(class_name))
    if not NAME.fullmatch(name):
        raise ini.error(section.line, f"“{one_line(name, 40)}” can't be a component's name")
    own = RESERVED | (OWN_KEYS if kind == AGENT else frozenset())
    file = Path(os.path.normpath(_file(ini, items, folder, module)))
    return Component(
        type=kind,
        name=name,
        file=str(file),
        root=str(_root(items, folder, file)),
        class_name=short,
        settings={
            key: ParameterValue(item.text, f"{ini.name}, line {item.line}", plain=True)
            for key, item in items.items()
            if key not in own
        },
        pins={key: item.text for key, item in items.items() if key in RESERVED},
        origin=f"{ini.name}, line {items['class_name'].line}",
    )


def _file(ini: Ini, items: dict[str, IniItem], folder: Path, module: str) -> Path:
    """The file that a section names: ``file_path``, else the module of ``class_name``, in the folder ``path``."""
    place = folder / items["path"].text if "path" in items else folder
    if "file_path" in items:
        return place / items["file_path"].text
    if not module:
        raise ini.error(items["class_name"].line, "the class has no file", hint="class_name = file:Class")
    file = place / f"{module.replace('.', '/')}.py"
    package = place / module.replace(".", "/") / INIT_FILE
    return package if package.exists() and not file.exists() else file


def _root(items: dict[str, IniItem], folder: Path, file: Path) -> Path:
    """The folder that ``root`` names, or that was installed; of a person's own the project's, which they all share.

    Elsewhere it is that of ``path``, or the one above the package that the file is in.
    """
    named = items.get("root") or items.get("path")
    place = Path(os.path.normpath(folder / named.text)) if named else folder
    if ("root" in items or "source" in items) and file.is_relative_to(place):
        return place
    # A folder such as policy-1.0 is no part of a module's name.
    if file.is_relative_to(folder) and "." not in str(file.parent.relative_to(folder))[1:]:
        return folder
    root = place if file.is_relative_to(place) and place != folder else file.parent
    while root not in (root.parent, folder) and (root / INIT_FILE).is_file():
        root = root.parent
    return root


def _defaults(ini: Ini, components: dict[str, dict[str, Component]]) -> dict[str, str]:
    defaults: dict[str, str] = {}
    for kind, members in components.items():
        section = ini.section(kind)
        named = section.items.get("default") if section else None
        if named and named.text not in members:
            hint = f"here are: {', '.join(members)}"
            raise ini.error(named.line, f"there is no {kind} {one_line(named.text, 40)}", hint=hint)
        if named:
            defaults[kind] = named.text
        elif len(members) == 1 or (section and "class_name" in section.items):
            defaults[kind] = next(iter(members))
    for section in ini.sections:
        kind = section.title.lower()
        if "default" in section.items and kind not in components:
            item = section.items["default"]
            raise ini.error(item.line, f"there is no {one_line(kind, 20)} {one_line(item.text, 40)}")
    return defaults


def _learns(ini: Ini) -> bool:
    section = ini.section(AGENT)
    item = section.items.get("learns_on_run") if section else None
    if item is None:
        return False
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    if item.text.lower() not in words:
        raise ini.error(item.line, f"learns_on_run must be yes or no, not “{one_line(item.text, 40)}”")
    return words[item.text.lower()]


def set_default(ini: Ini, kind: str, name: str) -> None:
    """Make a component the default of its type."""
    section = ini.section(kind)
    if section is None:
        first = next((each for each in ini.sections if each.title.lower().startswith(f"{kind}.")), None)
        ini.insert_section(section_title(kind), before=first.title if first else "")
    ini.set(section.title if section else section_title(kind), "default", name)


def with_parameters(project: Project, assignments: Sequence[str] = (), *, file: Path | None = None) -> Project:
    """The project with the parameters of ``parameters.yaml`` and of ``--set component.key=value``.

    ``policy=dqn`` takes another component than the default of its type.
    ``file`` takes the place of the ``parameters.yaml`` beside ``agent.ini``.

    Raises:
        NotFound: the project has no such component.
        UsageError: the file or an assignment is wrong, or names no component of the project.
    """
    chosen = [
        text
        for text in assignments
        if text.partition("=")[0].strip().lower() in project.components and text.partition("=")[2].strip()
    ]
    for kind, _, name in (text.partition("=") for text in chosen):
        component = project.component(kind.strip().lower(), name.strip())
        project = msgspec.structs.replace(project, defaults={**project.defaults, component.type: component.name})
    changed = {component.key: dict(component.settings) for component in project.all()}
    for name, key, setting in [
        *_of_file(file or project.folder / PARAMETERS),
        *(_assignment(text) for text in assignments if text not in chosen),
    ]:
        changed[_named(project, name, setting.origin)][key] = setting
    components = {
        kind: {name: msgspec.structs.replace(each, settings=changed[each.key]) for name, each in members.items()}
        for kind, members in project.components.items()
    }
    return msgspec.structs.replace(project, components=components)


def parameters_text(components: Sequence[Component]) -> str:
    """The effective parameters of components as the text of a ``parameters.yaml``."""
    parameters = {
        each.key: {key: value_of(s.value) if s.plain else s.value for key, s in each.settings.items()}
        for each in components
        if each.settings
    }
    return yaml.safe_dump(parameters, sort_keys=True, allow_unicode=True) if parameters else "{}\n"


def _named(project: Project, name: str, origin: str) -> str:
    """The key of the component that ``policy``, ``policy.dqn`` or ``agent`` means."""
    kind, _, member = name.partition(".")
    members = project.components.get(kind.lower(), {})
    member = member or project.defaults.get(kind.lower(), "")
    if member not in members:
        names = ", ".join(each.key for each in project.all())
        raise UsageError(f"{origin}: this project has no {one_line(name, 60)}", hint=f"its components: {names}")
    return members[member].key


def _assignment(text: str) -> tuple[str, str, ParameterValue]:
    """What ``policy.learning_rate=0.1`` or ``policy.dqn.learning_rate=0.1`` sets."""
    left, equals, value = text.partition("=")
    name, dot, key = left.strip().rpartition(".")
    if not (equals and dot and name and key):
        raise UsageError(f"“{one_line(text, 60)}” sets nothing", hint="--set policy.learning_rate=0.1")
    return (
        name,
        _parameter(key, f"--set {one_line(left, 60)}"),
        ParameterValue(value.strip(), f"--set {left}", plain=True),
    )


def _parameter(key: str, origin: str) -> str:
    if key.lower() in RESERVED:
        raise UsageError(f"{origin}: {key} is no parameter", hint="change it in agent.ini")
    return key.lower()


def _of_file(path: Path) -> list[tuple[str, str, ParameterValue]]:
    try:
        root = yaml.compose(read_beneath(path.parent, path.name, MOST_BYTES).decode(), yaml.SafeLoader)
    except FileNotFoundError:
        return []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{path.name}, line {line}: {one_line(error.problem or '', 80)}", hint="correct it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {unreadable(error)}", hint="check the file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} can't be read: {one_line(str(error), 80)}", hint="check the file") from None
    settings: list[tuple[str, str, ParameterValue]] = []
    for name, node in _pairs(root, path.name):
        for key, value in _pairs(node, path.name):
            origin = f"{path.name}, line {value.start_mark.line + 1}"
            try:
                read = yaml.SafeLoader("").construct_document(value)
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                raise UsageError(f"{origin}: {one_line(str(error), 80)}", hint="correct it") from None
            settings.append((name, _parameter(key, origin), ParameterValue(read, origin)))
    return settings


def _pairs(node: yaml.Node | None, file: str) -> list[tuple[str, yaml.Node]]:
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return []
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        hint = f"policy:\n  learning_rate: 0.1 sets a parameter, {AGENT}: those of the agent"
        raise UsageError(f"{file}, line {line}: a mapping is missing here", hint=" ".join(hint.split()))
    return [(str(key.value), value) for key, value in node.value]
