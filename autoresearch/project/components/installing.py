"""Puts a component into a project and takes it out again, its files first, ``agent.ini`` last.

Also makes a new project with a minimal agent that runs at once.

The Python packages that a project needs are asked for in ``requirements.in`` and locked in ``requirements.txt``. A line
that an installed component asks for ends with its key, as ``numpy>=2  # policy.dqn``; others are the person's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from autoresearch.ask.registry.installing import write_tree
from autoresearch.beneath import remove_beneath, resolve_beneath, text_beneath
from autoresearch.errors import Refused, UsageError
from autoresearch.project import model
from autoresearch.project.components.finding import shipped_offer
from autoresearch.project.components.trusting import ComponentOffer, note_origin
from autoresearch.project.ini import Ini
from autoresearch.task.folder_state import create_file, replace_file
from autoresearch.task.needs import LOCK, LOOSE, Package, parse_lock, parse_wanted, write_lock
from autoresearch.task.release import File
from autoresearch.text import one_line, unreadable

_KEY = re.compile(r"\s#\s(\S+)$")
_HEADER = "# Locked for {loose} {digest}. After an edit of that file: autoresearch install\n"


def required(project: model.Project, *, besides: str = "") -> list[str]:
    """What the project asks for, without what the component of the key ``besides`` does.

    Raises:
        UsageError: a line is no package's name with or without versions.
    """
    return list(dict.fromkeys(line for line, key in required_by(project) if not besides or key != besides))


def required_by(project: model.Project) -> list[tuple[str, str]]:
    """Each line of what the project asks for, with the key of the component that does; empty for the person's own.

    Raises:
        UsageError: a line is no package's name with or without versions.
    """
    text = _text(project, LOOSE)
    parse_wanted(text, LOOSE)  # an error names the line of the file
    lines = text.splitlines()
    return [(requirement, _key(line)) for line in lines for requirement in parse_wanted(line, LOOSE)]


def locked_packages(project: model.Project) -> list[Package]:
    """The packages that fit what the project asks for.

    Raises:
        UsageError: they are not locked, or not for the list as it is now.
    """
    if is_unlocked(project):
        raise UsageError(f"{LOCK} does not fit {LOOSE}", hint="autoresearch install locks it anew")
    return parse_lock(_text(project, LOCK), LOCK)


def is_unlocked(project: model.Project) -> bool:
    """Whether ``requirements.in`` is another one than that which ``requirements.txt`` was locked for."""
    if not required(project):
        return False
    head, _, _ = _text(project, LOCK).partition("\n")
    return f"{head}\n" != _header(_text(project, LOOSE))


def refuse_other_list(project: model.Project) -> None:
    """Raises Refused where ``requirements.txt`` is the person's own list, which nothing is written over."""
    text = _text(project, LOCK)
    if text and not text.startswith(_HEADER.partition("{")[0]):
        raise Refused(
            f"{project.folder / LOCK} is a list of your own, and the packages of components are locked in that file",
            hint=f"rename it to {LOOSE}, then: autoresearch install",
        )


def note_locked(project: model.Project, packages: Sequence[Package]) -> None:
    """Write the packages that fit ``requirements.in``.

    Raises:
        Refused: ``requirements.txt`` is a list of the person's own.
    """
    refuse_other_list(project)
    project.write(LOCK, _header(_text(project, LOOSE)) + write_lock(list(packages)))


def package_files(lines: Mapping[str, str], packages: Sequence[Package]) -> dict[str, bytes]:
    """``requirements.in`` and ``requirements.txt``, by their names: lines with who asks for each, packages that fit."""
    loose = "".join(f"{line}  # {key}\n" if key else f"{line}\n" for line, key in lines.items())
    return {LOOSE: loose.encode(), LOCK: (_header(loose) + write_lock(list(packages))).encode()}


def isolated_packages(project: model.Project) -> dict[str, list[Package]]:
    """The locked packages of each component that has an environment of its own, by its key.

    Raises:
        UsageError: a list is missing or damaged.
    """
    packages: dict[str, list[Package]] = {}
    for each in project.all():
        if each.pins.get("isolated") == "yes":
            packages[each.key] = parse_lock(_text(project, _isolated(each.key)), f"{each.key}.lock")
            if not packages[each.key]:
                hint = f"autoresearch install {each.type} {each.name} --isolated"
                raise UsageError(f"{each.origin}: the packages of {each.key} are not locked", hint=hint)
    return packages


def note_isolated(project: model.Project, key: str, packages: Sequence[Package]) -> None:
    """Write the packages of a component's own environment; none where it has none."""
    if packages:
        project.write(_isolated(key), write_lock(list(packages)))
    else:
        remove_beneath(project.folder, _isolated(key))


def _isolated(key: str) -> str:
    return f"{model.HIDDEN}/isolated/{key}.lock"


def note_required(project: model.Project, key: str, lines: Sequence[str], packages: Sequence[Package] | None) -> None:
    """Write what a component asks for, and the packages that fit the whole list; None: those of before fit, too.

    Raises:
        Refused: ``requirements.txt`` is a list of the person's own.
    """
    before = _text(project, LOOSE)
    others = [line for line in before.splitlines() if _key(line) != key]
    text = "".join(f"{line}\n" for line in [*others, *(f"{line}  # {key}" for line in lines)])
    if text == before and packages is None:
        return
    refuse_other_list(project)
    if not parse_wanted(text, LOOSE):
        for name in (LOOSE, LOCK):
            (project.folder / name).unlink(missing_ok=True)
        return
    fitting = parse_lock(_text(project, LOCK), LOCK) if packages is None else list(packages)
    project.write(LOCK, _header(text) + write_lock(fitting))
    project.write(LOOSE, text)


def _key(line: str) -> str:
    match = _KEY.search(line)
    return match[1] if match else ""


def _header(loose: str) -> str:
    digest = hashlib.sha256("\n".join(parse_wanted(loose, LOOSE)).encode()).hexdigest()[:16]
    return _HEADER.format(loose=LOOSE, digest=digest)


def _text(project: model.Project, name: str) -> str:
    try:
        return text_beneath(project.folder, name, model.MOST_BYTES)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{project.folder / name} can't be read: {unreadable(error)}", hint="check the file") from None


COMPONENTS = "components"


def install(project: model.Project, offer: ComponentOffer, *, default: bool) -> model.Project:
    """Put a component into a project; one of the same type and name is replaced, its parameters stay.

    With ``default`` it is named the default of its type; the only one of a type is its default unnamed.
    Returns the project as it is then.

    Raises:
        UsageError: a file of the component would be outside of its folder.
        Refused: a component of the person's own has this name, or ``requirements.txt`` is a list of theirs.
    """
    ini = model.load_ini(project.ini)
    present = project.components.get(offer.type, {}).get(offer.name)
    if present and offer.files and not present.pins.get("path", "").startswith(model.HIDDEN):
        hint = f"autoresearch uninstall {offer.type} {offer.name}, or choose another name: --name"
        raise Refused(f"{offer.type} {offer.name} is a component of your own", hint=hint)
    requirements = [] if offer.isolated else offer.requirements
    if requirements:
        refuse_other_list(project)
    path = _copied(project, offer) if offer.files else offer.path
    note_isolated(project, offer.key, offer.packages if offer.isolated else [])
    note_required(project, offer.key, requirements, offer.packages if requirements else None)
    title = known_title(ini, offer.type, offer.name) if present else model.section_title(offer.type, offer.name)
    if offer.type == model.AGENT:
        title = model.AGENT.capitalize()
    values = {"path": path, "class_name": offer.class_name, **offer.pins, "isolated": "yes" if offer.isolated else ""}
    for key in model.RESERVED - values.keys() - {"default"}:
        ini.remove(title, key)  # of what was installed before
    for key, value in values.items():
        if value:
            ini.set(title, key, value)
        else:
            ini.remove(title, key)
    for key, value in offer.parameters.items():
        if not present or key not in present.settings:
            ini.set(title, key, value)
    if offer.type != model.AGENT and default:
        model.set_default(ini, offer.type, offer.name)
    elif not present and (before := project.defaults.get(offer.type)) and not has_chosen_default(project, offer.type):
        model.set_default(ini, offer.type, before)  # it was the default as the only one of its type
    write_ini(project.ini, ini)
    changed = model.load_project(project.ini)
    note_origin(changed, offer)
    return changed


def missing_components(project: model.Project) -> list[model.Component]:
    """The installed components whose files are not here, as after ``git clone`` of a project."""
    return [each for each in project.all() if each.pins.get("source") and not Path(each.file).is_file()]


def has_chosen_default(project: model.Project, kind: str) -> bool:
    """Whether ``agent.ini`` names the default of a type. The components of a new project are named by nobody."""
    section = model.load_ini(project.ini).section(kind)
    return section is not None and "default" in section.items


def uninstall(project: model.Project, kind: str, name: str) -> model.Project:
    """Take a component out of a project; files of the person's own stay. Returns the project as it is then.

    Raises:
        NotFound: there is no such component.
    """
    component = project.component(kind, name)
    ini = model.load_ini(project.ini)
    ini.remove(known_title(ini, kind, name))
    section = ini.section(kind)
    if section and "default" in section.items and section.items["default"].text == name:
        others = [each for each in project.components[kind] if each != name]
        if others:
            model.set_default(ini, kind, others[0])
        else:
            ini.remove(section.title, "default")
            section = ini.section(kind)
            if section and not section.items:
                ini.remove(section.title)
    write_ini(project.ini, ini)
    note_required(project, component.key, [], None)
    note_isolated(project, component.key, [])
    if component.pins.get("path", "").startswith(f"{model.HIDDEN}/{COMPONENTS}/"):
        with suppress(OSError):  # it is gone, or lies elsewhere
            components = resolve_beneath(project.folder, f"{model.HIDDEN}/{COMPONENTS}")
            place = resolve_beneath(project.folder, component.pins["path"])
            if len(place.parts) == len(components.parts) + 2:
                remove_beneath(components, place, tree=True)
    return model.load_project(project.ini)


def use(project: model.Project, kind: str, name: str) -> model.Project:
    """Make a component the default of its type. Returns the project as it is then. Raises NotFound."""
    project.component(kind, name)
    ini = model.load_ini(project.ini)
    model.set_default(ini, kind, name)
    write_ini(project.ini, ini)
    return model.load_project(project.ini)


def known_title(ini: Ini, kind: str, name: str) -> str:
    """The title of the section that has a component: ``[Policy.name]``, else the type's own."""
    title = model.section_title(kind, name)
    return title if ini.section(title) else model.section_title(kind)


def write_ini(path: Path, ini: Ini) -> None:
    """Replace the file in one step."""
    replace_file(path.parent, path.name, ini.text.encode())


def _copied(project: model.Project, offer: ComponentOffer) -> str:
    """Write a component's files into the project in one step; returns their folder, relative to the project."""
    path = f"{model.HIDDEN}/{COMPONENTS}/{offer.type}/{offer.name}"
    for name in offer.files:
        inner = PurePosixPath(name)
        if inner.is_absolute() or ".." in inner.parts or not inner.parts:
            raise UsageError(f"it has a file outside of its folder: {one_line(name, 60)}", hint="ask its publisher")
    write_tree([File(name, content) for name, content in offer.files.items()], project.to_write(path))
    return path


_AGENT = '''\
"""The agent of this project: it puts environment, policy and trainer together."""

from autoresearch import Agent


class SimpleAgent(Agent):
    def train(self):
        self.trainer.train(self.policy)

    def advance(self):
        next_action = self.policy.decide(self.obs)
        self.obs, done, reward, info = self.environment.step(next_action)
'''
_INI = """\
# The components of this project. `autoresearch list` shows them, `autoresearch install` adds others.
# Below a component, every other key is an argument of its constructor.

[Agent]
class_name = agent:SimpleAgent
"""
_FIRST = (("environment", "corridor"), ("policy", "random"))


def make_project(folder: Path) -> model.Project:
    """Make the minimal project in a folder: a random policy in a corridor.

    Raises:
        Refused: there is a project already, or a file in its way.
    """
    for name in (model.INI, "agent.py"):
        if os.path.lexists(folder / name):
            hint = "autoresearch run runs the project that is there" if name == model.INI else "move it away"
            raise Refused(f"{folder / name} is there already", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("agent.py", _AGENT), (model.INI, _INI)):
        create_file(folder, name, text)
    project = model.load_project(folder)
    for kind, name in _FIRST:
        offer = shipped_offer(kind, name)
        assert offer is not None
        project = install(project, offer, default=False)
    return project
