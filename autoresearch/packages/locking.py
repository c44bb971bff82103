"""Makes a locked list of packages from a loose one, and pins it in ``task.toml``."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoresearch.errors import UsageError
from autoresearch.packages import tools
from autoresearch.running import scratch_folder
from autoresearch.tasks import MANIFEST, PLAIN_NAME, Package, Task, load_task, parse_lock, parse_wanted, write_lock

REQUIREMENTS = "requirements.txt"
LOCK_SECONDS = 600.0
_LIST = "wanted.txt"
_HEADER = "# The packages of this task. Edit {loose}, then: autoresearch task lock DIR\n"


@dataclass(frozen=True, slots=True)
class Locked:
    """What was locked: the task as it is now, its packages, the loose list (None: there is none), and the tool."""

    task: Task
    loose: Path | None
    tool: str


def lock_folder(folder: Path) -> Locked:
    """Lock the packages of a task folder and pin the list in its ``task.toml``: another list makes another task.

    The loose list is ``requirements.in``; where there is none, ``requirements.txt`` is moved there.

    Raises:
        UsageError: there is no list or no ``task.toml``, or something on the list can't be locked.
        CannotRunHere: no tool or no network is here, or no versions fit together.
    """
    import tomlkit  # the command line starts without it

    path = folder / MANIFEST
    try:
        document = tomlkit.parse(_text(path, hint=f"autoresearch task new {folder}"))
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="correct the file at that place") from error
    section = document.get("python", {})
    if not isinstance(section, dict) or not isinstance(document.get("harness", {}), dict):
        raise UsageError(f"{path}: [python] and [harness] are tables", hint="correct the file at that place")
    if section.get("venv"):
        hint = "remove venv under [python] first, or the whole table"
        raise UsageError(f"{path} names an environment of this machine, which has no list to lock", hint=hint)
    name = str(section.get("requirements") or REQUIREMENTS)
    if not PLAIN_NAME.fullmatch(name) or not name.endswith(".txt"):
        raise UsageError(f"{path}: python.requirements is {name!r}", hint=f'requirements = "{REQUIREMENTS}"')
    place, loose = folder / name, (folder / name).with_suffix(".in")
    if loose.exists():
        wanted = _text(loose, hint="")
    else:
        wanted = _text(place, hint=f"write one package a line into {loose}")
        if found := _locked(wanted, name):
            _pin(path, document, name, _write(place, wanted))
            return Locked(load_task(folder), None, "")
    found, tool = _resolved(wanted, loose if loose.exists() else place)
    if not loose.exists():
        _write(loose, wanted)
    content = _write(place, _HEADER.format(loose=loose.name) + write_lock(found))
    _pin(path, document, name, content)
    return Locked(load_task(folder), loose, tool)


def _locked(text: str, name: str) -> list[Package]:
    try:
        return parse_lock(text, name)
    except UsageError:
        return []


def _resolved(text: str, where: Path) -> tuple[list[Package], str]:
    """The packages that fit a loose list and each other, and which tool found them."""
    wanted = parse_wanted(text, str(where))
    if not wanted:
        raise UsageError(f"{where} names no package", hint="write one a line: numpy>=2")
    return resolve_packages(wanted, what=f"{where} can't be locked")


def resolve_packages(wanted: Sequence[str], *, what: str) -> tuple[list[Package], str]:
    """The packages that fit lines such as ``numpy>=2`` and each other, with their hashes; and which tool found them.

    Only wheels are looked at, so that nothing of a package runs. ``what`` begins the sentence of an error.

    Raises:
        CannotRunHere: no versions fit together, with the tool's own words; or no tool or no network is here.
        TimedOut: it took too long.
    """
    with scratch_folder() as scratch:  # nothing of the folder that they come from is read by the tool
        (scratch.folder / _LIST).write_text("".join(f"{line}\n" for line in wanted))
        found = tools.uv()
        if found and (tools.is_usual_source() or not tools.has_pip()):  # uv doesn't know pip's settings
            words = ["--quiet", "--generate-hashes", "--no-build", "--no-header", "--no-annotate", "--universal"]
            command = [found, "pip", "compile", *words, "--python", sys.executable, _LIST]
            said = tools.call(command, what, seconds=LOCK_SECONDS, cwd=scratch.folder)
            return parse_lock(said, "what uv says"), "uv"
        words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "-"]
        command = tools.pip(*words, "--requirement", _LIST)
        said = tools.call(command, what, seconds=LOCK_SECONDS, cwd=scratch.folder)
    return sorted(map(_reported, json.loads(said)["install"])), "pip"


def _reported(item: dict[str, Any]) -> Package:
    metadata, archive = item["metadata"], item["download_info"]["archive_info"]
    return Package(metadata["name"], metadata["version"], (archive["hashes"]["sha256"],))


def _pin(path: Path, document: Any, name: str, content: bytes) -> None:  # noqa: ANN401 - tomlkit's own types
    import tomlkit

    if "python" not in document:
        document.add("python", tomlkit.table())
    document["python"]["requirements"] = name
    if "harness" not in document:
        document.add("harness", tomlkit.table())
    document["harness"][name] = hashlib.sha256(content).hexdigest()
    _write(path, tomlkit.dumps(document))


def _text(path: Path, *, hint: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} can't be read: {reason}", hint=hint) from error


def _write(path: Path, text: str) -> bytes:
    """Write a file whole: a crash leaves the old one. Returns its bytes."""
    temporary, content = path.with_name(f".{path.name}.{os.getpid()}"), text.encode()
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        temporary.unlink(missing_ok=True)
    return content
