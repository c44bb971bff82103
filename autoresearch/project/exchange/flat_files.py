"""Which files a component consists of, and where they lie in a published program or task.

A project's own files lie there as they do in the project. An installed component has a folder of its own.
Also which runs of a project are published: those that came by ``get`` say it themselves, one's own stand in a file.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import yaml

from autoresearch.project.model import HIDDEN, Component, Project, read_code
from autoresearch.project.modules import files_of
from autoresearch.project.runs.kept import LocalRun, ancestors
from autoresearch.task.source import parse_python


def data_of(files: Collection[Path], project: Path) -> list[Path]:
    """The other files beside Python files that these name in a string, such as a map that they read."""
    data_files: dict[Path, None] = {}
    for path in files:
        for node in ast.walk(parse_python(read_code(path, project))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) <= 64:
                named = path.parent / node.value
                if "/" not in node.value and named.suffix not in ("", ".py", ".ini") and named.is_file():
                    data_files[named] = None
    return list(data_files)


# The folder of the project's own files in a program, where one of them is called as a file of the task.
_OWN = "agent"
_LABEL_CHARACTERS = 24


def places_of(components: Sequence[Component], project: Project, taken: Collection[str]) -> dict[str, dict[Path, str]]:
    """The files of each component, by its key, with their names in a program whose task has files named ``taken``.

    Components that share a root share its folder. A component's own file comes first.

    Raises:
        UsageError: a file is missing or no Python.
    """
    files = {each.key: files_of(each, project.folder) for each in components}
    used, folders = {name.partition("/")[0] for name in taken}, dict[str, str]()
    for each in components:
        if each.root in folders:
            continue
        root, inside = Path(each.root), ""
        if "source" not in each.pins and root.is_relative_to(project.folder):
            inside = root.relative_to(project.folder).as_posix()
        sharing = [other.key for other in components if other.root == each.root]
        own = {path.relative_to(root).parts[0] for key in sharing for path in files[key]}
        label = ""
        if inside != "." or not own.isdisjoint(used):
            label = _OWN if inside == "." else re.sub(r"[^A-Za-z0-9_]", "_", inside or each.key)[:_LABEL_CHARACTERS]
            label += "_" if label.lower().endswith("file") else ""  # many tools have such names
            further = (f"{label}_{number}" for number in itertools.count(2))
            label = next(name for name in itertools.chain((label,), further) if name not in used)
        folders[each.root] = label
        used |= {label} if label else own
    return {
        each.key: {
            path: "/".join(filter(None, (folders[each.root], path.relative_to(each.root).as_posix())))
            for path in files[each.key]
        }
        for each in components
    }


def environment_places(component: Component, project: Path) -> dict[Path, str]:
    """The files of an environment with their names in its task: beside each other, where none is in a package.

    Raises:
        UsageError: a file is missing or no Python.
    """
    files = files_of(component, project)
    if all(files.values()) and len({path.name for path in files}) == len(files):
        return {path: path.name for path in files}
    return {path: f"{component.type}/{path.relative_to(component.root).as_posix()}" for path in files}


PUBLISHED = "published.yaml"


def record_of(project: Project, run: LocalRun) -> str:
    """The id of the record that a run was published as, or came from; empty for none."""
    return run.data.record or _published(project).get(run.id, "")


def published_ancestors(project: Project, run: LocalRun) -> list[str]:
    """The records of the runs that a run went on from, the nearest first. The run itself is left out."""
    published = _published(project)
    records = (above.data.record or published.get(above.id, "") for above in ancestors(project, run))
    return [record for record in records if record]


def remember_published(project: Project, run: LocalRun, record: str) -> None:
    """Note as which record a run was published."""
    project.write(f"{HIDDEN}/{PUBLISHED}", yaml.safe_dump({**_published(project), run.id: record}))


def _published(project: Project) -> dict[str, str]:
    try:
        content = yaml.safe_load(project.read(f"{HIDDEN}/{PUBLISHED}"))
        return msgspec.convert(content, dict[str, str])
    except (OSError, yaml.YAMLError, msgspec.ValidationError, ValueError, RecursionError):
        return {}


ENVIRONMENT_INI = "environment.ini"


BENCHMARK = "benchmark"
