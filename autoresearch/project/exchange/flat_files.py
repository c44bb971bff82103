"""Which files a component consists of, and their names where all files of a project lie in one folder.

Also which runs of a project are published: those that came by ``get`` say it themselves, one's own stand in a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from autoresearch.beneath import LeadsOut
from autoresearch.errors import UsageError
from autoresearch.project.model import HIDDEN, Component, Project, read_code
from autoresearch.project.runs.kept import LocalRun, ancestors
from autoresearch.task.source import parse_python
from autoresearch.text import one_line

_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}\.py")


def files_of(component: Component, project: Path) -> list[Path]:
    """A component's file, then the modules that it imports from beside it or from the project's folder.

    Raises:
        UsageError: a file is missing or no Python, or it is part of a package, which has folders.
    """
    first = Path(component.file)
    files: dict[Path, None] = {}
    pending = [first]
    while pending:
        path = pending.pop(0)
        if path in files:
            continue
        if path.name == "__init__.py":
            raise _package(component, path.parent)
        files[path] = None
        for module in _imported(component, path, project):
            for folder in (path.parent, project):
                if (folder / f"{module}.py").is_file():
                    pending.append(folder / f"{module}.py")
                    break
                if any((folder / module).glob("*.py")):
                    raise _package(component, folder / module)
    return list(files)


def data_of(files: list[Path], project: Path) -> list[Path]:
    """The other files beside Python files that these name in a string, such as a map that they read."""
    data_files: dict[Path, None] = {}
    for path in files:
        for node in ast.walk(parse_python(read_code(path, project))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) <= 64:
                named = path.parent / node.value
                if "/" not in node.value and named.suffix not in ("", ".py", ".ini") and named.is_file():
                    data_files[named] = None
    return list(data_files)


class FlatNames:
    """Gives each file a plain name of its own. A component's own file is renamed where another one has its name."""

    def __init__(self, taken: set[str], project: Path) -> None:
        self._taken, self._project = taken, project
        self.files: dict[str, bytes] = {}
        self._names: dict[Path, str] = {}

    def add(self, component: Component, files: list[Path]) -> str:
        """Take in a component's files; returns the name of its own one.

        Raises:
            UsageError: two files that components import have one name.
        """
        for path in files[1:]:
            if not self._is_free(path):
                raise UsageError(
                    f"{component.key} imports {path}, and another file of the project is called {path.name}, too",
                    hint="rename one of them: published projects have all files in one folder",
                )
            self._keep(path, path.name)
        first = files[0]
        if first not in self._names:
            own = f"{re.sub(r'[^A-Za-z0-9_]', '_', component.key)}.py"
            name = first.name if self._is_free(first) else own
            if name in self._taken or self.files.get(name, b"") not in (b"", read_code(first, self._project)):
                raise UsageError(f"two files of the project are called {name}", hint="rename one of them")
            self._keep(first, name)
        return self._names[first]

    def _is_free(self, path: Path) -> bool:
        if path in self._names:
            return self._names[path] == path.name
        if path.name in self._taken or not _MODULE.fullmatch(path.name):
            return False
        return path.name not in self.files or self.files[path.name] == read_code(path, self._project)

    def _keep(self, path: Path, name: str) -> None:
        self._names[path] = name
        self.files[name] = read_code(path, self._project)


def _imported(component: Component, path: Path, project: Path) -> Iterator[str]:
    try:
        tree = parse_python(read_code(path, project))
    except OSError as error:
        hint = f"autoresearch install {component.type} {component.name}"
        if isinstance(error, LeadsOut):
            hint = "copy the file there"
        raise UsageError(f"{component.key}: {path} can't be read: {error.strerror}", hint=hint) from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise UsageError(f"{path}, line {line}: {one_line(str(error), 80)}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def _package(component: Component, folder: Path) -> UsageError:
    return UsageError(
        f"{component.key} needs the package {folder}, and a published project has no folders",
        hint="put the code into plain files beside each other",
    )


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
