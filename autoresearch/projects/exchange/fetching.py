"""From a published program and its task back to the files of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from autoresearch.errors import UsageError
from autoresearch.projects.components.installing import COMPONENTS, known_title
from autoresearch.projects.components.shelf import GYM_CLASS, gym_offer, shipped_offers
from autoresearch.projects.exchange.flat_files import files_of
from autoresearch.projects.exchange.learned import unpack_learned
from autoresearch.projects.exchange.publishing import ENVIRONMENT
from autoresearch.projects.ini import Ini
from autoresearch.projects.inside.folder import BENCHMARK, ENVIRONMENT_INI
from autoresearch.projects.model import HIDDEN, INI, Component, Project, load_project, project_of, section_title
from autoresearch.projects.parameters import parameters_text, with_parameters
from autoresearch.projects.runs.kept import DATA, Run, RunData, digest_of, keep_run, new_run_folder
from autoresearch.projects.values import value_of
from autoresearch.sanitise import one_line
from autoresearch.tasks import split_program


def write_project(program: str, harness: Mapping[str, bytes], folder: Path) -> Project:
    """Write a published project into an empty folder: what was installed lies where ``install`` puts it.

    ``harness`` are the fixed files of its task, by name. Returns the project.

    Raises:
        UsageError: the program is no project, or a component of it names a file that is not there.
    """
    files = {name: text.encode() for name, text in split_program(program).items()}
    if INI not in files or ENVIRONMENT_INI not in harness:
        raise UsageError("this is no project: it has no agent.ini, or its task has no environment")
    if both := files.keys() & harness.keys():
        raise UsageError(f"the program and its task both have {one_line(', '.join(sorted(both)), 80)}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**files, **harness}.items():
        (folder / name).write_bytes(content)
    ini = _decoded(files[INI], INI)
    agent = project_of(ini, folder / INI)
    world = project_of(
        _decoded(harness[ENVIRONMENT_INI], ENVIRONMENT_INI), folder / INI, besides=frozenset((BENCHMARK,))
    )
    environment = world.component(ENVIRONMENT)
    for component in (*agent.all(), environment):
        if component.type == ENVIRONMENT and component is not environment:
            raise UsageError("the program names an environment of its own", hint="its task's is the one that counts")
        _check_place(component, folder)
    _add_environment(ini, environment, harness)
    (folder / ENVIRONMENT_INI).unlink()
    (folder / INI).write_text(ini.text, "utf-8")
    installed = [each for each in load_project(folder).all() if each.pins.get("source")]
    for component in installed:
        _move(ini, component, folder)
    (folder / INI).write_text(ini.text, "utf-8")
    project = load_project(folder)
    _remove_unused(project, installed)
    return project


def keep_fetched(project: Project, data: RunData, learned: Path | None) -> Run:
    """Keep a published run as the newest of a project that was just written, with what it had ``learned`` (packed).

    ``data`` is completed by the project's components.

    Raises:
        DamagedState: the file holds no learned state.
    """
    effective = with_parameters(project)
    components = {
        each.key: {"class": each.class_name, "sha256": digest_of(Path(each.file)), **each.pins}
        for each in effective.all()
    }
    with new_run_folder(project) as folder:
        if learned is not None:
            unpack_learned(learned, folder / DATA)
        whole = msgspec.structs.replace(data, components=components)
        return keep_run(project, folder, whole, parameters_text(effective.all()))


def _add_environment(ini: Ini, environment: Component, harness: Mapping[str, bytes]) -> None:
    """The environment's section, with where it is known to come from."""
    title = section_title(ENVIRONMENT, environment.name)
    module = Path(environment.file).stem
    ini.insert_section(title)
    for key, value in _known_pins(environment, harness).items():
        ini.set(title, key, value)
    ini.set(title, "path", ".")
    ini.set(title, "class_name", f"{module}:{environment.class_name}")
    for key, setting in environment.settings.items():
        ini.set(title, key, setting.value)


def _known_pins(environment: Component, harness: Mapping[str, bytes]) -> dict[str, str]:
    """The pins of an environment that ships, or is Gymnasium's: a task has the files alone."""
    code, class_name = Path(environment.file).name, f"{Path(environment.file).stem}:{environment.class_name}"
    gym_id = environment.settings.get("id")
    offers = [each for each in shipped_offers() if each.type == ENVIRONMENT]
    if class_name == GYM_CLASS and gym_id is not None:
        offers = [gym_offer(str(value_of(gym_id.value)))]
    for offer in offers:
        if offer.class_name == class_name and offer.files.get(code) == harness.get(code):
            return offer.pins
    return {}


def _check_place(component: Component, folder: Path) -> None:
    """Raises UsageError where a component's file is not among those that were fetched."""
    file = Path(component.file)
    if file.parent.resolve() != folder.resolve() or not file.is_file() or file.is_symlink():
        raise UsageError(f"{component.key} names a file that was not published: {one_line(component.file, 80)}")


def _move(ini: Ini, component: Component, folder: Path) -> None:
    """Copy the files of an installed component to where ``install`` puts them, and name that place."""
    path = f"{HIDDEN}/{COMPONENTS}/{component.type}/{component.name}"
    for file in files_of(component, folder):
        target = folder / path / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    ini.set(known_title(ini, component.type, component.name), "path", path)


def _remove_unused(project: Project, installed: list[Component]) -> None:
    """Remove from the project's folder what only installed components need."""
    own = {each.key for each in installed}
    needed = {file for each in project.all() if each.key not in own for file in files_of(each, project.folder)}
    for component in installed:
        for file in files_of(component, project.folder):
            if (beside := project.folder / file.name) not in needed:
                beside.unlink(missing_ok=True)


def _decoded(content: bytes, name: str) -> Ini:
    try:
        return Ini(content.decode("utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8") from None
