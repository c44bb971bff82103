"""A whole registry as a file: components with their releases, as AgentOS had them in ``registry.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from autoresearch.errors import CannotRunHere, UsageError
from autoresearch.installing import install_command
from autoresearch.registry.preparing import Said

FILE_BYTES = 1 << 20
RELEASES_MOST = 1000
_KEYS = "type, description, and releases with name, hash, github_url, class_name, requirements_path"


class Entry(NamedTuple):
    """One release of a registry file: what it says, the repository and the commit."""

    said: Said
    git: str
    commit: str


def read_registry(path: Path) -> list[Entry]:
    """The releases in a registry file, in its order.

    Raises:
        UsageError: it can't be read, or an entry has another shape.
        CannotRunHere: PyYAML is not here.
    """
    try:
        import yaml
    except ImportError as error:
        raise CannotRunHere("PyYAML is not here to read a registry file", hint=install_command("components")) from error
    try:
        if path.stat().st_size > FILE_BYTES:
            raise UsageError(f"{path} is larger than {FILE_BYTES >> 20} MiB", hint="split the file")
        # Texts only: a version 1.10 is no number, and no tag makes an object.
        found = yaml.load(path.read_text("utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts alone
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} can't be read: {reason}", hint="give a registry.yaml") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(
            f"{path} is not YAML: {' '.join(str(error).split())[:200]}", hint="correct the file"
        ) from error
    components = found.get("components", found) if isinstance(found, dict) else None
    if not isinstance(components, dict) or not components:
        raise UsageError(f"{path} has no components", hint=f"by name, each with {_KEYS}")
    entries: list[Entry] = []
    for name, about in components.items():
        for entry in _entries(str(name), about, path):
            entries.append(entry)
            if len(entries) > RELEASES_MOST:
                raise UsageError(f"{path} has more than {RELEASES_MOST} releases", hint="split the file")
    return entries


def _entries(name: str, about: object, path: Path) -> Iterator[Entry]:
    fields = _mapping(about, name, path)
    releases = fields.get("releases")
    if not isinstance(releases, list):
        raise UsageError(f"{path}: {name[:60]} has no list of releases", hint=_KEYS)
    for release in releases:
        one = _mapping(release, name, path)
        said = Said(
            type=_text(fields, "type"),
            name=name,
            version=_text(one, "name"),
            description=_text(fields, "description"),
            class_name=_class_name(_text(one, "class_name"), _text(one, "file_path")),
            requirements_path=_text(one, "requirements_path").removeprefix("./"),
        )
        yield Entry(said, _text(one, "github_url"), _text(one, "hash").lower())


def _class_name(name: str, file_path: str) -> str:
    """``main.Env`` or ``Env`` in the file ``main.py`` as ``main:Env``; empty where nothing is said."""
    if not name or ":" in name:
        return name
    module, _, last = name.rpartition(".")
    in_file = file_path.removeprefix("./").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{in_file or module or 'main'}:{last}"


def _mapping(value: object, name: str, path: Path) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name[:60]} is no table", hint=_KEYS)
    return value


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key, "")
    return value if isinstance(value, str) else ""
