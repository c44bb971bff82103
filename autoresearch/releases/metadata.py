"""What a release says of its component, and which of them can be searched and installed. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from autoresearch.records import BlobRef, Release, encode
from autoresearch.releases.files import PATH_CHARACTERS, fault_of_path

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


class Parameter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    params: Annotated[dict[Word, Parameter], Meta(max_length=128)] = {}
    license: Annotated[str, Meta(max_length=64)] = ""

    def plain(self) -> dict[str, Any]:
        """As a record holds it."""
        found = msgspec.to_builtins(self)
        assert isinstance(found, dict)
        return found


class Component(NamedTuple):
    """A release that can be searched and installed."""

    name: str
    version: str
    summary: str
    bundle: BlobRef
    metadata: Metadata


def component_of(release: Release) -> Component | None:
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
    return Component(release.name, release.version, release.summary, release.bundle, metadata)


def content_digest(component: Component) -> bytes:
    """SHA-256 of what is installed. Two releases that differ in their description alone have the same."""
    said = component.metadata
    installed = (said.tree, said.class_name, said.file_path, said.requirements_path)
    return hashlib.sha256(encode([component.bundle.sha256, *installed, *sorted(said.needs)])).digest()
