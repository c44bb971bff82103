"""The project of a folder of flat files: components of ``agent.ini``, the environment of ``environment.ini``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from autoresearch.projects.model import INI, Project, load_ini, load_project, project_of
from autoresearch.projects.parameters import with_parameters

ENVIRONMENT_INI = "environment.ini"
BENCHMARK = "benchmark"


def flat_project(folder: Path) -> Project:
    """The project in a folder. The environment of a task takes the place of those that ``agent.ini`` names.

    Raises:
        NotFound: there is no ``agent.ini``, or ``environment.ini`` has no environment.
        UsageError: a line of a file is wrong.
    """
    project = load_project(folder / INI)
    if (folder / ENVIRONMENT_INI).exists():
        given = environment_project(folder)
        components = {**project.components, "environment": given.components["environment"]}
        defaults = {**project.defaults, "environment": given.component("environment").name}
        project = msgspec.structs.replace(project, components=components, defaults=defaults)
    return with_parameters(project)


def environment_project(folder: Path) -> Project:
    """A project of a task's environment alone.

    Raises:
        NotFound: there is no ``environment.ini``, or no environment in it.
        UsageError: a line of it is wrong.
    """
    file = folder / ENVIRONMENT_INI
    project = project_of(load_ini(file), file, besides=frozenset((BENCHMARK,)))
    project.component("environment")
    return project
