"""A project's code as one file for the sandbox: its components' folders, without what is hidden, within bounds."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from autoresearch.errors import Refused
from autoresearch.projects.model import Component, Project

MOST_FILES = 2000
MOST_BYTES = 64 << 20
OWN = "project"


def packed_code(project: Project, secrets: Sequence[Path] = (), *, within: bool = False) -> tuple[bytes, Project]:
    """The code as a stored zip, and the project as it is where that is unpacked: its paths are relative.

    Of an installed component it is the component's folder, of others every file in the project or beside the
    component's file. Left out are hidden files, environments, links, and ``secrets`` with what is in them. With
    ``within`` nothing outside of the project's folder is taken.

    Raises:
        Refused: it is too large, or the project lies in the home folder itself.
    """
    hidden = frozenset(path.resolve() for path in secrets)
    kept = io.BytesIO()
    places: dict[Path, str] = {}
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as file:
        used = files = 0
        for component in project.all():
            root = _root(project, component)
            if root in places or not Path(component.file).is_file():
                continue
            if within and not Path(component.file).resolve().is_relative_to(project.folder.resolve()):
                raise Refused(
                    f"{component.origin}: {component.key} lies outside of the project",
                    hint="what came from another participant is run only with files in its folder",
                )
            places[root] = OWN if root == project.folder else f"c{len(places)}"
            for path in _files(root, hidden, also=Path(component.file)):
                used, files = used + path.stat().st_size, files + 1
                if used > MOST_BYTES or files > MOST_FILES:
                    raise Refused(
                        f"{root} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB to show to the sandbox",
                        hint="move what is no code elsewhere",
                    )
                file.writestr(zipfile.ZipInfo(f"{places[root]}/{path.relative_to(root)}"), path.read_bytes())
    components = {
        kind: {name: _moved(project, each, places) for name, each in members.items()}
        for kind, members in project.components.items()
    }
    inside = msgspec.structs.replace(project, folder=Path(OWN), ini=Path(OWN, project.ini.name), components=components)
    return kept.getvalue(), inside


def _root(project: Project, component: Component) -> Path:
    """The folder that a component's code is in."""
    file = Path(os.path.normpath(component.file))
    installed = project.hidden / "components"
    if file.is_relative_to(installed):
        return installed.joinpath(*file.relative_to(installed).parts[:2])
    return project.folder if file.is_relative_to(project.folder) else file.parent


def _moved(project: Project, component: Component, places: dict[Path, str]) -> Component:
    root = _root(project, component)
    if root not in places:  # there is no such file, which is an error only where the component is used
        return component
    inner = Path(os.path.normpath(component.file)).relative_to(root)
    return msgspec.structs.replace(component, file=f"{places[root]}/{inner}")


def _files(root: Path, secrets: frozenset[Path], *, also: Path) -> Iterator[Path]:
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - Path.home raises where there is none
    if home.is_relative_to(root.resolve()):
        raise Refused(
            f"{root} holds the home folder, which no sandbox is shown", hint="give the project its own folder"
        )
    for place, folders, names in os.walk(root):
        here = Path(place)
        folders[:] = sorted(name for name in folders if _is_shown(here / name, secrets))
        for path in (here / name for name in sorted(names)):
            if path.is_file() and (path == also or not path.is_symlink()) and _is_shown(path, secrets):
                yield path


def _is_shown(path: Path, secrets: frozenset[Path]) -> bool:
    is_ours = not path.name.startswith(".") and path.name != "__pycache__" and not (path / "pyvenv.cfg").exists()
    return is_ours and path.resolve() not in secrets
