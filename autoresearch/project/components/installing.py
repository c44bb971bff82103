"""Puts a component into a project and takes it out again, its files first, ``agent.ini`` last.

Also makes a new project with a minimal agent that runs at once.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from autoresearch.errors import Refused, UsageError
from autoresearch.project.components.finding import shipped_offer
from autoresearch.project.components.requirements import note_isolated, note_required, refuse_other_list
from autoresearch.project.components.trusting import Offer, note_origin
from autoresearch.project.ini import Ini
from autoresearch.project.model import (
    AGENT,
    HIDDEN,
    INI,
    RESERVED,
    Component,
    Project,
    load_ini,
    load_project,
    section_title,
)
from autoresearch.text import one_line

COMPONENTS = "components"


def install(project: Project, offer: Offer, *, default: bool) -> Project:
    """Put a component into a project; one of the same type and name is replaced, its parameters stay.

    With ``default`` it is named the default of its type; the only one of a type is its default unnamed.
    Returns the project as it is then.

    Raises:
        UsageError: a file of the component would be outside of its folder.
        Refused: a component of the person's own has this name, or ``requirements.txt`` is a list of theirs.
    """
    ini = load_ini(project.ini)
    present = project.components.get(offer.type, {}).get(offer.name)
    if present and offer.files and not present.pins.get("path", "").startswith(HIDDEN):
        hint = f"autoresearch uninstall {offer.type} {offer.name}, or choose another name: --name"
        raise Refused(f"{offer.type} {offer.name} is a component of your own", hint=hint)
    wanted = [] if offer.isolated else offer.requirements
    if wanted:
        refuse_other_list(project)
    path = _copied(project, offer) if offer.files else offer.path
    note_isolated(project, offer.key, offer.packages if offer.isolated else [])
    note_required(project, offer.key, wanted, offer.packages if wanted else None)
    title = known_title(ini, offer.type, offer.name) if present else section_title(offer.type, offer.name)
    if offer.type == AGENT:
        title = AGENT.capitalize()
    values = {"path": path, "class_name": offer.class_name, **offer.pins, "isolated": "yes" if offer.isolated else ""}
    for key in RESERVED - values.keys() - {"default"}:
        ini.remove(title, key)  # of what was installed before
    for key, value in values.items():
        if value:
            ini.set(title, key, value)
        else:
            ini.remove(title, key)
    for key, value in offer.parameters.items():
        if not present or key not in present.settings:
            ini.set(title, key, value)
    if offer.type != AGENT and default:
        _set_default(ini, offer.type, offer.name)
    elif not present and (before := project.defaults.get(offer.type)) and not has_chosen_default(project, offer.type):
        _set_default(ini, offer.type, before)  # it was the default as the only one of its type
    write_ini(project.ini, ini)
    changed = load_project(project.ini)
    note_origin(changed, offer)
    return changed


def missing_components(project: Project) -> list[Component]:
    """The installed components whose files are not here, as after ``git clone`` of a project."""
    return [each for each in project.all() if each.pins.get("source") and not Path(each.file).is_file()]


def has_chosen_default(project: Project, kind: str) -> bool:
    """Whether ``agent.ini`` names the default of a type. The components of a new project are named by nobody."""
    section = load_ini(project.ini).section(kind)
    return section is not None and "default" in section.items


def uninstall(project: Project, kind: str, name: str) -> Project:
    """Take a component out of a project; files of the person's own stay. Returns the project as it is then.

    Raises:
        NotFound: there is no such component.
    """
    component = project.component(kind, name)
    ini = load_ini(project.ini)
    ini.remove(known_title(ini, kind, name))
    section = ini.section(kind)
    if section and "default" in section.items and section.items["default"].text == name:
        others = [each for each in project.components[kind] if each != name]
        if others:
            _set_default(ini, kind, others[0])
        else:
            ini.remove(section.title, "default")
            section = ini.section(kind)
            if section and not section.items:
                ini.remove(section.title)
    write_ini(project.ini, ini)
    note_required(project, component.key, [], None)
    note_isolated(project, component.key, [])
    if component.pins.get("path", "").startswith(f"{HIDDEN}/{COMPONENTS}/"):
        shutil.rmtree(project.folder / component.pins["path"], ignore_errors=True)
    return load_project(project.ini)


def use(project: Project, kind: str, name: str) -> Project:
    """Make a component the default of its type. Returns the project as it is then. Raises NotFound."""
    project.component(kind, name)
    ini = load_ini(project.ini)
    _set_default(ini, kind, name)
    write_ini(project.ini, ini)
    return load_project(project.ini)


def known_title(ini: Ini, kind: str, name: str) -> str:
    """The title of the section that has a component: ``[Policy.name]``, else the type's own."""
    title = section_title(kind, name)
    return title if ini.section(title) else section_title(kind)


def write_ini(path: Path, ini: Ini) -> None:
    """Replace the file in one step."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(ini.text, "utf-8")
    fresh.replace(path)


def _set_default(ini: Ini, kind: str, name: str) -> None:
    section = ini.section(kind)
    if section is None:
        first = next((each for each in ini.sections if each.title.lower().startswith(f"{kind}.")), None)
        ini.insert_section(section_title(kind), before=first.title if first else "")
    ini.set(section.title if section else section_title(kind), "default", name)


def _copied(project: Project, offer: Offer) -> str:
    """Copy a component's files into the project in one step; returns their folder, relative to the project."""
    path = f"{HIDDEN}/{COMPONENTS}/{offer.type}/{offer.name}"
    target = project.folder / path
    fresh = target.with_name(f".{offer.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    for name in offer.files:
        inner = PurePosixPath(name)
        if inner.is_absolute() or ".." in inner.parts or not inner.parts:
            raise UsageError(f"the component has a file outside of its folder: {one_line(name, 60)}")
    for name, content in offer.files.items():
        file = fresh / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    if target.exists():
        old = target.with_name(f".{offer.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        target.replace(old)
        fresh.replace(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        fresh.replace(target)
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


def make_project(folder: Path) -> Project:
    """Make the minimal project in a folder: a random policy in a corridor.

    Raises:
        Refused: there is a project already, or a file in its way.
    """
    for name in (INI, "agent.py"):
        if (folder / name).exists():
            hint = "autoresearch run runs the project that is there" if name == INI else "move it away"
            raise Refused(f"{folder / name} is there already", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(_AGENT, "utf-8")
    (folder / INI).write_text(_INI, "utf-8")
    project = load_project(folder)
    for kind, name in _FIRST:
        offer = shipped_offer(kind, name)
        assert offer is not None
        project = install(project, offer, default=False)
    return project
