"""A release of a component: what it says, its files, their hash and bundle (a tar archive), its version. Pure.

The order of versions is that of Semantic Versioning, with what Python projects write beside it: 1.0rc1, 1.0.post1. The
hash is that of Go modules, ``h1:``, with the mode beside each file: SHA-256 over the sorted lines
``sha256  mode  path``. It does not depend on git and its SHA-1.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from autoresearch.paths import archive_fault, archive_paths
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import BlobRef, Release

if TYPE_CHECKING:
    from tarfile import TarFile

_VERSION = re.compile(r"v?(?P<numbers>[0-9]+(?:\.[0-9]+)*)(?P<rest>.*)", re.DOTALL)
_PARTS = re.compile(r"[0-9]+|[a-z]+")
# Between the numbers and what follows them, so that 1.0rc1 < 1.0 < 1.0.post1 < 1.0.1.
_PRERELEASE, _FINAL = "!", "-"
_AFTER = "post"


def version_key(version: str) -> str:
    """A text that sorts as the versions do; empty, and so before all others, for what is no version."""
    match = _VERSION.fullmatch(version.lower())
    if match is None:
        return ""
    numbers = match["numbers"].split(".")
    while len(numbers) > 1 and not int(numbers[-1]):
        numbers.pop()
    key = "".join(f".{_number(digits)}" for digits in numbers)
    parts = _PARTS.findall(match["rest"].partition("+")[0])
    further = " ".join(f"0{_number(part)}" if part.isdigit() else f"1{part}" for part in parts)
    return f"{key}{_PRERELEASE if parts and parts[0] != _AFTER else _FINAL}{further}"


def is_prerelease(version: str) -> bool:
    """Whether a version says that it comes before a release: 1.0-beta, 2.0rc1."""
    return _PRERELEASE in version_key(version)


def _number(digits: str) -> str:
    """A number that sorts as text: the longer one is the larger one."""
    plain = digits.lstrip("0") or "0"
    return f"{len(plain):03d}{plain}"


BUNDLE_BYTES = 32 << 20
FILES_MOST = 4096
PATH_CHARACTERS = 240
_MODES = {False: 0o644, True: 0o755}
# A folder of this name would make a repository, with hooks and filters, within the project's own.
_GIT = ".git"


class File(NamedTuple):
    """One file: its path with ``/`` between the parts, its bytes, and whether it may be executed."""

    path: str
    content: bytes
    executable: bool = False


class BadBundle(ValueError):
    """The bytes are no bundle; ``str(error)`` says why."""


def fault_of_path(path: str) -> str | None:
    """Why a file of a release may not have this path; None where it may."""
    if any(part.lower().rstrip(". ") == _GIT for part in path.split("/")):
        return "it would be part of a git repository"
    return archive_fault(path, PATH_CHARACTERS)


def check_files(files: Iterable[File]) -> list[File]:
    """The files in order. Raises BadBundle where they can't lie in one folder, or are too many or too large."""
    paths = sorted(files)
    if not paths:
        raise BadBundle("it has no file")
    if len(paths) > FILES_MOST:
        raise BadBundle(f"it has {len(paths)} files, of {FILES_MOST} at most")
    if sum(len(file.content) for file in paths) > BUNDLE_BYTES:
        raise BadBundle(f"its files have more than {BUNDLE_BYTES >> 20} MiB together")
    from autoresearch.task.program import form_fault

    for file in paths:
        if fault := fault_of_path(file.path):
            raise BadBundle(f"the file {file.path[:80]!r} is refused: {fault}")
        if advice := form_fault(file.path):
            raise BadBundle(f"the file {file.path[:80]!r} is refused: tools may obey names of this kind; {advice}")
    try:
        archive_paths((file.path for file in paths), PATH_CHARACTERS)
    except ValueError as error:
        raise BadBundle(str(error)) from error
    return paths


# A project's table is kept as text: by its own name tools would obey it.
PYPROJECT, _TABLE = "pyproject.toml", "pyproject.toml.txt"


def kept_files(files: Iterable[File]) -> list[File]:
    """The files of a release among a folder's: none with a name that tools obey, its ``pyproject.toml`` as text."""
    from autoresearch.task.program import form_fault

    every = list(files)
    names = {file.path for file in every}
    renamed = (file._replace(path=_TABLE) if file.path == PYPROJECT and _TABLE not in names else file for file in every)
    return [file for file in renamed if form_fault(file.path) is None]


def tree_hash(files: Iterable[File]) -> str:
    """The hash of files, whatever their order: ``h1:`` and 64 hexadecimal digits."""
    import hashlib

    lines = sorted(
        f"{hashlib.sha256(file.content).hexdigest()}  {_MODES[file.executable]:06o}  {file.path}\n" for file in files
    )
    return f"h1:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def pack(files: Iterable[File]) -> bytes:
    """Files as one tar archive; the same files give the same bytes. Raises BadBundle."""
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for file in check_files(files):
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(file.content), _MODES[file.executable]
            archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def unpack(bundle: bytes) -> list[File]:
    """The files of a bundle. An archive that :func:`pack` would have written otherwise is refused.

    Raises:
        BadBundle: it is none, or has links, devices, impossible names, too many or too large files.
    """
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:", encoding="utf-8", errors="strict") as archive:
            files = list(_files(archive))
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError, RecursionError) as error:
        raise error if isinstance(error, BadBundle) else BadBundle(f"it is no tar archive: {error}"[:200]) from error
    if pack(files) != bundle:
        raise BadBundle("it has something beside its files")
    return files


def _files(archive: TarFile) -> Iterable[File]:
    from tarfile import REGTYPE

    total = 0
    for count, entry in enumerate(archive):
        total += entry.size
        if count >= FILES_MOST or total > BUNDLE_BYTES:
            raise BadBundle(f"it has more than {FILES_MOST} files or {BUNDLE_BYTES >> 20} MiB")
        if entry.type != REGTYPE or entry.issparse():
            raise BadBundle(f"{entry.name[:80]!r} is a link, a folder or a device")
        file = archive.extractfile(entry)
        assert file is not None
        yield File(entry.name, file.read(), executable=entry.mode == _MODES[True])


# The types that come with interfaces; any other word is a type, too.
TYPES = ("environment", "policy", "trainer", "dataset", "agent")
TYPE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# Also the name of a folder: it begins with a letter, a digit or an underscore and has no separators.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TREE = r"\Ah1:[0-9a-f]{64}\Z"
_CLASS = r"\A(?:[A-Za-z_][A-Za-z0-9_.]{0,127}:[A-Za-z_][A-Za-z0-9_]{0,127})?\Z"

Word = Annotated[str, Meta(min_length=1, max_length=64)]
Path = Annotated[str, Meta(max_length=PATH_CHARACTERS)]
Line = Annotated[str, Meta(min_length=1, max_length=300)]


class ReleasedParameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A parameter of a component: its default, and the name of its type."""

    default: int | float | str | bool | None = None
    type: Annotated[str, Meta(max_length=64)] = ""


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``Release.metadata`` of a component. Unknown keys are ignored.

    ``tree`` is the hash of the files (:func:`tree_hash`); ``git`` and ``commit`` say where they come from, if from a
    repository. ``class_name`` is ``module:Class``, in the file ``file_path``. ``requirements`` are the lines of
    ``requirements_path``. ``needs`` are other components, as ``type/name==version``.
    """

    type: Annotated[str, Meta(min_length=1, max_length=32)]
    tree: Annotated[str, Meta(pattern=_TREE)]
    description: Annotated[str, Meta(max_length=2048)] = ""
    git: Annotated[str, Meta(max_length=512)] = ""
    commit: Annotated[str, Meta(max_length=64)] = ""
    class_name: Annotated[str, Meta(pattern=_CLASS)] = ""
    file_path: Path = ""
    requirements_path: Path = ""
    requirements: Annotated[list[Line], Meta(max_length=256)] = []
    needs: Annotated[list[Line], Meta(max_length=32)] = []
    interfaces: Annotated[list[Word], Meta(max_length=32)] = []
    params: Annotated[dict[Word, ReleasedParameter], Meta(max_length=128)] = {}
    license: Annotated[str, Meta(max_length=64)] = ""

    def plain(self) -> dict[str, Any]:
        """As a record holds it."""
        values = msgspec.to_builtins(self)
        assert isinstance(values, dict)
        return values


class ReleasedComponent(NamedTuple):
    """A release that can be searched and installed."""

    name: str
    version: str
    summary: str
    bundle: BlobRef
    metadata: Metadata


def component_of(release: Release) -> ReleasedComponent | None:
    """What a release says; None where that is no component: a name that is no file name, metadata of another shape."""
    if not NAME.fullmatch(release.name) or not VERSION.fullmatch(release.version):
        return None
    try:
        metadata = msgspec.convert(release.metadata, Metadata)
    except (msgspec.ValidationError, RecursionError):
        return None
    paths = [path for path in (metadata.file_path, metadata.requirements_path) if path]
    if not TYPE.fullmatch(metadata.type) or any(map(fault_of_path, paths)):
        return None
    if metadata.commit and not COMMIT.fullmatch(metadata.commit):
        return None
    return ReleasedComponent(release.name, release.version, release.summary, release.bundle, metadata)


def content_digest(component: ReleasedComponent) -> bytes:
    """SHA-256 of what is installed. Two releases that differ in their description alone have the same."""
    import hashlib

    metadata = component.metadata
    installed = (metadata.tree, metadata.class_name, metadata.file_path, metadata.requirements_path)
    return hashlib.sha256(encode([component.bundle.sha256, *installed, *sorted(metadata.needs)])).digest()
