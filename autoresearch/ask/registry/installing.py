"""Puts a release into a folder: all of it, or nothing. Nothing of it is executed or imported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autoresearch.ask.registry.choosing import read_component
from autoresearch.ask.registry.git_source import HTTPS, fetch_files
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.log import Log
from autoresearch.paths import sync_path
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import BlobRef
from autoresearch.run.package_locks import resolve_packages
from autoresearch.run.sandbox.scratch import scratch_folder, sweep
from autoresearch.task.needs import Package, parse_wanted
from autoresearch.task.program import is_tool_file
from autoresearch.task.release import PYPROJECT, BadBundle, File, ReleasedComponent, kept_files, tree_hash, unpack
from autoresearch.text import read_toml

_IGNORED = ".gitignore"
Source = Literal["any", "bundle", "git"]


@dataclass(frozen=True, slots=True)
class CheckedRelease:
    """A release that can be installed: its files, what it asks for, and the packages that fit, locked.

    ``packages`` fit what it asks for together with what the project asked for before.
    """

    release: bytes
    component: ReleasedComponent
    files: tuple[File, ...]
    requirements: tuple[str, ...]
    packages: tuple[Package, ...]


def release_files(
    log: Log,
    blobs: BlobStore,
    release: bytes,
    *,
    source: Source = "any",
    fetch: Callable[[BlobRef], None] | None = None,
    protocols: Collection[str] = HTTPS,
) -> tuple[ReleasedComponent, list[File]]:
    """A release and its files, which are those that its hash names.

    They come from its bundle: here, else from a peer by ``fetch``, which puts a blob into the store or raises. Else
    they come from its git repository, if it has one. ``source`` may name one of the two.

    Raises:
        MissingBlob: the bundle is not on this machine, and there is no ``fetch`` and no git repository.
        AutoresearchError: what ``fetch`` raised, where there is no git repository.
        NotFound: there is no such release, or its repository does not answer.
        Refused: the files are others than the record says, or are not allowed; a source that is not allowed.
        UsageError: the record is no component.
    """
    component = read_component(log, release)
    what = f"{component.name} {component.version}"
    try:
        if source != "git" and _has_bundle(log, blobs, release, component, fetch, required=source == "bundle"):
            files = unpack(blobs.get(component.bundle.sha256))
        elif component.metadata.git:
            whole = fetch_files(component.metadata.git, component.metadata.commit, protocols=protocols)
            files = kept_files(whole)
        else:
            raise NotFound(
                f"{what} names no git repository", hint="autoresearch network peers, who may have its bundle"
            )
    except BadBundle as error:
        sentence = f"{what} is not installed: {error}"
        raise Refused(sentence, hint=f"autoresearch show {short_id(release)} says who published it") from error
    if tree_hash(files) != component.metadata.tree:
        sentence = f"{what} is not installed: its files are others than the signed record says"
        raise Refused(sentence, hint=f"autoresearch show {short_id(release)} says who published it")
    return component, files


def _has_bundle(
    log: Log,
    blobs: BlobStore,
    release: bytes,
    component: ReleasedComponent,
    fetch: Callable[[BlobRef], None] | None,
    *,
    required: bool,
) -> bool:
    """Whether the bundle is here, fetched or not; false where git has to do. Raises what :func:`release_files` does."""
    if blobs.has(component.bundle.sha256):
        return True
    missing = MissingBlob(
        f"the bundle of {component.name} {component.version}", component.bundle, log.records.get(release).author
    )
    required = required or not component.metadata.git
    if fetch is None:
        if required:
            raise missing
        return False
    try:
        fetch(component.bundle)
    except AutoresearchError as error:
        if not required:
            return False
        raise missing.nowhere(error) if isinstance(error, NotFound) else error from error
    return blobs.has(component.bundle.sha256)


def checked_release(
    log: Log,
    blobs: BlobStore,
    release: bytes,
    *,
    beside: Sequence[str] = (),
    source: Source = "any",
    fetch: Callable[[BlobRef], None] | None = None,
    protocols: Collection[str] = HTTPS,
) -> CheckedRelease:
    """The files of a release, and the packages that fit its requirements and those ``beside`` it. Nothing is written.

    Raises:
        MissingBlob, NotFound, Refused, UsageError: as :func:`release_files`.
        CannotRunHere: the requirements don't fit, with the resolver's own words; or no resolver is here.
    """
    component, files = release_files(log, blobs, release, source=source, fetch=fetch, protocols=protocols)
    requirements = requirements_of(component, files)
    packages: list[Package] = []
    if requirements:
        what = f"{component.name} {component.version} is not installed: its requirements don't fit"
        try:
            packages, _ = resolve_packages([*beside, *requirements], what=what)
        except CannotRunHere as error:
            raise CannotRunHere(str(error), hint="install it --isolated, in an environment of its own") from error
    return CheckedRelease(release, component, tuple(files), tuple(requirements), tuple(packages))


def requirements_of(component: ReleasedComponent, files: Sequence[File]) -> list[str]:
    """The packages that a release asks for, from its own files; of a ``pyproject.toml``, which it has not, its record.

    Raises UsageError for lines that no list may have.
    """
    path = component.metadata.requirements_path
    file = next((file for file in files if file.path == path), None)
    if file is not None:
        return read_requirements(path, file.content)
    return parse_wanted("\n".join(component.metadata.requirements), path) if is_tool_file(path) else []


def read_requirements(path: str, content: bytes) -> list[str]:
    """The lines of ``requirements.txt``, or ``project.dependencies`` of a ``pyproject.toml``. Raises UsageError."""
    try:
        text = content.decode()
        if path.rpartition("/")[2] != PYPROJECT:
            return parse_wanted(text, path)
        project = read_toml(text).get("project", {})
        listed = project.get("dependencies", []) if isinstance(project, dict) else []
        if not isinstance(listed, list) or not all(isinstance(line, str) and "\n" not in line for line in listed):
            raise UsageError(f"{path}: project.dependencies is no list of texts", hint="correct the file")
        return parse_wanted("\n".join(listed), path)
    except ValueError as error:
        raise UsageError(f"{path} can't be read: {error}"[:300], hint="correct the file") from error


def write_tree(files: Sequence[File], folder: Path) -> None:
    """Write files into a folder, whole or not at all, in the place of what is there.

    Killed at any point it leaves the whole folder, the one before, or none. What it began is invisible to git, and the
    next call removes it.

    Raises:
        Refused: the disk is full, or says no.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep(folder.parent)
        with scratch_folder(folder.parent) as scratch:
            # Git shows neither empty folders nor, from here on, anything below.
            (scratch.folder / _IGNORED).write_text("*\n")
            made, before = scratch.folder / "files", scratch.folder / "before"
            made.mkdir(mode=0o755)
            for file in files:
                place = made / file.path
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as target:
                    target.write(file.content)
                place.chmod(0o755 if file.executable else 0o644)
            for place in made.rglob("*"):  # after all are written, so that the disk takes them together
                sync_path(place)
            sync_path(made)
            if folder.exists():
                folder.rename(before)
            try:
                made.rename(folder)
            except OSError:
                if before.exists():
                    before.rename(folder)
                raise
            sync_path(folder.parent)
    except OSError as error:
        sentence = f"{folder} can't be written: {error.strerror}; nothing was installed"
        raise Refused(sentence, hint="check the disk") from error
