"""Bundles as files of this machine: written whole or not at all, taken in beside a daemon that runs or not."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from autoresearch.bundles import BrokenBundle, Carried, Imported, Written, import_bundle, write_bundle
from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.figures import counted
from autoresearch.log import BlobStore, Log
from autoresearch.networks import load_manifest
from autoresearch_cli import here
from autoresearch_cli.reading import open_notebook


def write(path: Path, *, task: str, carried: Carried) -> Written:
    """Write a bundle beside the file and rename it, once all of it is on the disk: sticks are pulled out early."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open_notebook() as notebook:
        digest = notebook.task(task).digest if task else None
        try:
            with temporary.open("wb") as file:
                written = write_bundle(notebook.log, notebook.blobs, file, task=digest, carried=carried)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            raise Refused(f"{path} can't be written: {error.strerror}") from error
        finally:
            with suppress(OSError):
                temporary.unlink()
    return written


def take_in(path: Path) -> Imported:
    """Import a bundle. A daemon that runs meanwhile finds what is new by itself.

    Raises AutoresearchError whose sentence says what was taken in all the same.
    """
    paths = here.paths()
    paths.create()
    imported = Imported()
    with (
        Log.open(paths.log, load_manifest(paths.manifest).network) as log,
        BlobStore(paths.blobs) as blobs,
        path.open("rb") as file,
    ):
        try:
            import_bundle(file, log, blobs, imported, now_ms=here.now_ms())
        except BrokenBundle as error:
            raise UsageError(f"{path} is not a whole bundle: {error}; {summary(imported)}") from error
        except AutoresearchError as error:
            raise type(error)(f"{error}; {summary(imported)}", hint=error.hint) from error
    return imported


def summary(imported: Imported) -> str:
    """What became of the records, in a line."""
    parts = [
        f"{counted(imported.new, 'new record')}",
        f"{imported.known} known",
        f"{imported.refused} refused" + (f" ({imported.reason})" if imported.reason else ""),
        f"{imported.early} ahead of the clock here" if imported.early else "",
        f"{imported.over_quota} more than peers keep" if imported.over_quota else "",
        f"{counted(imported.blobs, 'new blob')}",
    ]
    return ", ".join(part for part in parts if part)
