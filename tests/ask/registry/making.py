"""Components for tests: their files, repositories, and releases in a log and its blobs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from autoresearch.ask.registry.installing import CheckedRelease, checked_release, write_tree
from autoresearch.ask.registry.preparing import prepared
from autoresearch.ask.requests import Description
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.record import Record
from autoresearch.task.release import File
from autoresearch.trust.keys import KeyPair
from tests.record.making import NOW_MS, key

MAIN = b"class Corridor:\n    pass\n"
FILES = (File("main.py", MAIN), File("README.md", b"a corridor"))
FILE_ALONE = frozenset({"file"})


def publish(
    log: Log,
    blobs: BlobStore,
    name: str = "corridor",
    version: str = "1.0.0",
    *,
    by: KeyPair | None = None,
    files: tuple[File, ...] = FILES,
    kind: str = "environment",
    time_ms: int = NOW_MS,
    description: str = "walk to its end",
    git: str = "",
    commit: str = "",
) -> Record:
    """Publish a component of a participant."""
    facts = Description(type=kind, name=name, version=version, description=description)
    made = prepared(files, facts, git=git, commit=commit)
    return log.writer.append(by or key(1), "release", made.body(blobs.put(made.bundle)), now_ms=time_ms)


def installed(log: Log, blobs: BlobStore, release: bytes, folder: Path, **how: Any) -> CheckedRelease:
    """Check a release as ``agent install`` does, and write its files into a folder."""
    checked = checked_release(log, blobs, release, **how)
    write_tree(checked.files, folder)
    return checked


def git(folder: Path, *words: str, stdin: bytes | None = None) -> str:
    """One call of git, with nothing of this machine's own settings."""
    names = {f"GIT_{who}_{what}": "ann@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(folder: Path, files: tuple[File, ...] = FILES) -> str:
    """Make a repository with these files; returns its commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for file in files:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(0o755 if file.executable else 0o644)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a component")
    return git(folder, "rev-parse", "HEAD")
