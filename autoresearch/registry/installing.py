"""Puts a release into a folder: all of it, or nothing. Nothing of it is executed or imported."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autoresearch.errors import CannotRunHere, NotFound, Refused, UsageError
from autoresearch.log import BlobStore, Log, MissingBlob, sync_folder
from autoresearch.packages import resolve_packages
from autoresearch.records import short_id
from autoresearch.registry.finding import component
from autoresearch.registry.git_source import HTTPS, fetch_files
from autoresearch.releases import BadBundle, Component, File, tree_hash, unpack
from autoresearch.running import scratch_folder, sweep
from autoresearch.tasks import Package, parse_wanted

PYPROJECT = "pyproject.toml"
_IGNORED = ".gitignore"
Source = Literal["bundle", "git"]


@dataclass(frozen=True, slots=True)
class Installed:
    """What was installed: the release, where its files lie, what it asks for, and the packages that fit, locked.

    ``packages`` fit what it asks for together with what the project asked for before.
    """

    release: bytes
    component: Component
    folder: Path
    requirements: tuple[str, ...]
    packages: tuple[Package, ...]


def release_files(
    log: Log, blobs: BlobStore, release: bytes, *, source: Source = "bundle", protocols: Collection[str] = HTTPS
) -> tuple[Component, list[File]]:
    """A release and its files, which are those that its hash names: from its bundle, or from its git repository.

    Raises:
        MissingBlob: the bundle is not on this machine; a peer may have it, or the git repository.
        NotFound: there is no such release, or its repository does not answer.
        Refused: the files are others than the record says, or are not allowed; a source that is not allowed.
        UsageError: the record is no component.
    """
    found = component(log, release)
    what = f"{found.name} {found.version}"
    try:
        if source == "git":
            if not found.metadata.git:
                raise NotFound(f"{what} names no git repository", hint="autoresearch peers, who may have its bundle")
            files = fetch_files(found.metadata.git, found.metadata.commit, protocols=protocols)
        else:
            if not blobs.has(found.bundle.sha256):
                raise MissingBlob(f"the bundle of {what}", found.bundle, log.records.get(release).author)
            files = unpack(blobs.get(found.bundle.sha256))
    except BadBundle as error:
        sentence = f"{what} is not installed: {error}"
        raise Refused(sentence, hint=f"autoresearch show {short_id(release)} says who published it") from error
    if tree_hash(files) != found.metadata.tree:
        sentence = f"{what} is not installed: its files are others than the signed record says"
        raise Refused(sentence, hint=f"autoresearch show {short_id(release)} says who published it")
    return found, files


def install_release(
    log: Log,
    blobs: BlobStore,
    release: bytes,
    folder: Path,
    *,
    beside: Sequence[str] = (),
    source: Source = "bundle",
    protocols: Collection[str] = HTTPS,
) -> Installed:
    """Write the files of a release into a new folder, after its requirements were found to fit those ``beside`` it.

    Killed at any point, it leaves the whole folder or none; what it began is invisible to git, and the next call
    removes it. The caller enters the folder and the lock where the project keeps them.

    Raises:
        MissingBlob, NotFound, Refused, UsageError: as :func:`release_files`.
        Refused: the folder is there already, or can't be written.
        CannotRunHere: the requirements don't fit, with the resolver's own words; or no resolver is here.
    """
    if folder.exists():
        raise Refused(f"{folder} is there already", hint="uninstall it first")
    found, files = release_files(log, blobs, release, source=source, protocols=protocols)
    wanted = requirements_of(found, files)
    packages: list[Package] = []
    if wanted:
        what = f"{found.name} {found.version} is not installed: its requirements don't fit"
        try:
            packages, _ = resolve_packages([*beside, *wanted], what=what)
        except CannotRunHere as error:
            raise CannotRunHere(str(error), hint="install it --isolated, in an environment of its own") from error
    write_tree(files, folder)
    return Installed(release, found, folder, tuple(wanted), tuple(packages))


def requirements_of(found: Component, files: Sequence[File]) -> list[str]:
    """The packages that a release asks for, from its own files. Raises UsageError for lines that no list may have."""
    path = found.metadata.requirements_path
    file = next((file for file in files if file.path == path), None)
    if not path or file is None:
        return []
    return read_requirements(path, file.content)


def read_requirements(path: str, content: bytes) -> list[str]:
    """The lines of ``requirements.txt``, or ``project.dependencies`` of a ``pyproject.toml``. Raises UsageError."""
    try:
        text = content.decode()
        if path.rpartition("/")[2] != PYPROJECT:
            return parse_wanted(text, path)
        project = tomllib.loads(text).get("project", {})
        listed = project.get("dependencies", []) if isinstance(project, dict) else []
        if not isinstance(listed, list) or not all(isinstance(line, str) and "\n" not in line for line in listed):
            raise UsageError(f"{path}: project.dependencies is no list of texts", hint="correct the file")
        return parse_wanted("\n".join(listed), path)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} can't be read: {error}"[:300], hint="correct the file") from error


def write_tree(files: Sequence[File], folder: Path) -> None:
    """Write files into a new folder, whole or not at all. Raises Refused when the disk is full or says no."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep(folder.parent)
        with scratch_folder(folder.parent) as scratch:
            # Git shows neither empty folders nor, from here on, anything below: a killed process leaves nothing to see.
            (scratch.folder / _IGNORED).write_text("*\n")
            made = scratch.folder / "files"
            made.mkdir(mode=0o755)
            for file in files:
                _write(file, made)
            for place in (*(path for path in made.rglob("*") if path.is_dir()), made):
                sync_folder(place)
            made.rename(folder)
            sync_folder(folder.parent)
    except OSError as error:
        raise Refused(
            f"{folder} can't be written: {error.strerror}; nothing was installed", hint="check the disk"
        ) from error


def _write(file: File, folder: Path) -> None:
    place = folder / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as target:
        target.write(file.content)
        target.flush()
        os.fsync(target.fileno())
    place.chmod(0o755 if file.executable else 0o644)
