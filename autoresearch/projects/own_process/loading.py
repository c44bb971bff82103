"""From a component's section to an object: loads its file as a module of its own and calls the class."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from autoresearch.errors import AutoresearchError, NotFound, UsageError
from autoresearch.projects.model import AGENT, Component
from autoresearch.projects.values import arguments
from autoresearch.sanitise import one_line


class ComponentFailed(AutoresearchError):
    """A component's own code raised an error."""


def component_class(component: Component) -> type:
    """The class of a component. Two components may both have a file of the same name.

    Raises:
        NotFound: there is no such file, or no such class in it.
        ComponentFailed: the file can't be imported.
    """
    module = _module(component)
    found = getattr(module, component.class_name, None)
    if not isinstance(found, type):
        classes = [name for name, each in vars(module).items() if isinstance(each, type) and _is_of(each, module)]
        hint = f"it has {', '.join(classes)}" if classes else "it has no class"
        raise NotFound(f"{component.origin}: {component.file} has no class {component.class_name}", hint=hint)
    return found


def build(component: Component) -> object:
    """A component, made with the parameters of its section.

    Raises:
        NotFound: there is no such file, or no such class in it.
        UsageError: a parameter is unknown, missing, or of another type.
        ComponentFailed: its code raised an error.
    """
    cls = component_class(component)
    try:
        given = arguments(component.key, cls, component.settings)
    except ValueError:  # a class of C has no signature
        given = {}
    try:
        return cls(**given)
    except AutoresearchError:
        raise
    except Exception as error:
        raise failed(component.key, error) from error


def failed(key: str, error: BaseException) -> ComponentFailed:
    """A component's error as a sentence that names the line."""
    if isinstance(error, ComponentFailed):
        return error
    if isinstance(error, ModuleNotFoundError) and error.name:
        extra = " (extra “projects”)" if error.name == "gymnasium" else ""
        return ComponentFailed(
            f"{key} needs the package {one_line(error.name, 60)}{extra}, which is not installed",
            hint=_package_hint(error.name),
        )
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if "/autoresearch/projects/" not in each.filename
    ]
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}, line {error.lineno}: "
    else:
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    said = one_line(str(error), 200)
    return ComponentFailed(f"{key}: {place}{type(error).__name__}{f': {said}' if said else ''}")


def _package_hint(name: str) -> str:
    if name == "gymnasium":
        from autoresearch.installing import install_command

        return install_command("projects")
    return f"pip install {one_line(name.partition('.')[0], 40)}"


def _module(component: Component) -> ModuleType:
    """The module of a component's file; a file that holds several components is loaded once."""
    path = Path(component.file)
    if not path.is_file():
        hint = f"autoresearch install {component.type} {component.name}" if component.type != AGENT else ""
        raise NotFound(f"{component.origin}: there is no file {path}", hint=hint or "check class_name and file_path")
    name = f"acr_components.{re.sub(r'[^a-zA-Z0-9]', '_', str(path.resolve()))}"
    if name in sys.modules:
        return sys.modules[name]
    package = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=package)
    if spec is None or spec.loader is None:
        raise UsageError(f"{component.origin}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # for modules beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise failed(component.key, error) from error
    return module


def _is_of(cls: type, module: ModuleType) -> bool:
    return cls.__module__ == module.__name__
