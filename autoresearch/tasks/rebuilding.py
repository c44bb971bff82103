"""From a published task back to a folder: what somebody else asked can be run, and checked, here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from autoresearch.errors import Refused, UsageError
from autoresearch.tasks.folder_state import keep_baseline
from autoresearch.tasks.loading import MANIFEST, load_task
from autoresearch.tasks.model import Task
from autoresearch.tasks.program import PLAIN_NAME, source_digest, split_program


def rebuild_task(
    definition: Mapping[str, object],
    digest: bytes,
    *,
    harness: Mapping[str, bytes],
    baseline: bytes,
    summary: str,
    folder: Path,
) -> Task:
    """Write a published task as a new folder and load it: ``digest`` is checked, and the folder appears whole or not.

    A folder that is there already, and not empty, is loaded if it is this task. Mounts, which are this machine's own,
    are left out.

    Raises:
        Refused: the files are not those of the definition, or something else is in the folder's place.
        UsageError: the definition is no task.
    """
    if is_taken(folder):
        return _checked(folder, digest)
    program = split_program(baseline.decode("utf-8", "replace"))
    for name in harness:
        if not PLAIN_NAME.fullmatch(name) or name in program:
            raise UsageError(f"the task has a file with an impossible name: {name[:80]!r}")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        for name, content in {**harness, **{name: text.encode() for name, text in program.items()}}.items():
            (temporary / name).write_bytes(content)
        digest_of_baseline = source_digest(baseline.decode("utf-8", "replace"))
        manifest = manifest_text(definition, summary=summary, baseline=digest_of_baseline)
        (temporary / MANIFEST).write_text(manifest, encoding="utf-8")
        keep_baseline(temporary, baseline)
        _checked(temporary, digest)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return load_task(folder)


def is_taken(folder: Path) -> bool:
    """Whether something is in a folder's place: an empty folder is none."""
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


def _checked(folder: Path, digest: bytes) -> Task:
    task = load_task(folder)
    if task.digest != digest:
        raise Refused(f"{folder} is another task than {digest.hex()[:12]}…", hint="give a new folder")
    return task


def manifest_text(definition: Mapping[str, object], *, summary: str = "", baseline: bytes) -> str:
    """The ``task.toml`` of a published task; ``baseline`` is the digest that it pins. Raises UsageError."""
    import tomlkit  # the command line starts without it

    table: dict[str, object] = {"name": definition.get("name", "")} | ({"summary": summary} if summary else {})
    table |= {key: value for key, value in definition.items() if key not in ("name", "summary", "baseline")}
    table["baseline"] = baseline.hex()
    try:
        return tomlkit.dumps({key: _plain(value) for key, value in table.items()})
    except (TypeError, ValueError) as error:
        raise UsageError(f"the task's definition can't be written as {MANIFEST}: {error}") from error


def _plain(value: object) -> object:
    """A value of a definition as ``task.toml`` has it: digests in hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
