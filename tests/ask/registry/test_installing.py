"""A component is published from a folder or a repository, and installed whole: files, requirements, lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.ask.registry.preparing import fetch_prepared, prepare, read_registry
from autoresearch.ask.requests import Description
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.log import Log
from autoresearch.record.kinds import BlobRef
from autoresearch.task.release import File, tree_hash, unpack
from tests.ask.registry.making import FILE_ALONE, FILES, MAIN, git, installed, publish, repository
from tests.record.making import NOW_MS, key

INI = b"[component]\ntype = policy\nname = q_table\nversion = 1.2.0\ndescription = values\nneeds = environment/2048\n"
REGISTRY = """
components:
  corridor:
    type: environment
    description: walk to its end
    releases:
      - {{name: 1.10, hash: {commit}, github_url: "file://{host}", class_name: main.Corridor}}
      - {{name: 1.0.0, hash: 3939aa1, github_url: https://example.org/x, file_path: ./sub/env.py, class_name: Env}}
"""
NUMPY = File("requirements.txt", b"tiny_a  # one\n")


@pytest.mark.slow
def test_files_and_lock_are_there_after_an_installation(
    log: Log, blobs: BlobStore, tmp_path: Path, wheels: Path
) -> None:
    files = (*FILES, NUMPY, File("sub/run.sh", b"#!/bin/sh\n", executable=True))
    release = publish(log, blobs, files=files)
    target = tmp_path / "components/environment/corridor"
    installation = installed(log, blobs, release.id, target, beside=["tiny_b"])
    assert installation.requirements == ("tiny_a",)
    assert [(package.name.replace("-", "_"), package.version) for package in installation.packages] == [
        ("tiny_a", "1.0"),
        ("tiny_b", "1.2"),
    ]
    assert all(len(digest) == 64 for package in installation.packages for digest in package.hashes)
    files = [path for path in target.rglob("*") if path.is_file()]
    read = [
        File(path.relative_to(target).as_posix(), path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in files
    ]
    assert tree_hash(read) == installation.component.metadata.tree
    assert list(target.parent.iterdir()) == [target]
    other = publish(log, blobs, version="2.0.0", files=(File("other.py", MAIN),))
    installed(log, blobs, other.id, target)
    assert [path.name for path in target.rglob("*")] == ["other.py"]
    assert list(target.parent.iterdir()) == [target]


def test_a_bundle_that_is_elsewhere_is_asked_for(log: Log, blobs: BlobStore, tmp_path: Path) -> None:
    release = publish(log, blobs)
    with BlobStore(tmp_path / "empty") as empty, pytest.raises(MissingBlob) as error:
        installed(log, empty, release.id, tmp_path / "x")
    assert error.value.blob == release.body.bundle
    assert not (tmp_path / "x").exists()
    with pytest.raises(NotFound, match="names no git repository"):
        installed(log, blobs, release.id, tmp_path / "x", source="git")


WITHOUT_GIT = """
import sys
from pathlib import Path
from autoresearch.errors import CannotRunHere
from autoresearch.log.log import Log
from autoresearch.log.blobs import BlobStore
from tests.ask.registry.making import installed
from autoresearch.ask.registry.choosing import resolve
from tests.record.making import NETWORK
place = Path(sys.argv[1])
log = Log.open(place / "log.sqlite", NETWORK, read_only=True)
with log, BlobStore(place / "blobs", read_only=True) as blobs:
    release = resolve(log, "environment", "corridor").release.row.id
    installed(log, blobs, release, place / "installed")
    try:
        installed(log, blobs, release, place / "other", source="git")
    except CannotRunHere as error:
        print(error, error.hint)
"""


@pytest.mark.slow
def test_without_git_a_bundle_is_installed(log: Log, blobs: BlobStore, tmp_path: Path) -> None:
    publish(log, blobs, git="https://example.org/x", commit="ab" * 20)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PATH": ""}
    words = [sys.executable, "-c", WITHOUT_GIT, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert "git is not on this machine apt install git" in done.stdout
    assert (tmp_path / "installed/main.py").read_bytes() == MAIN


@pytest.mark.slow
def test_a_peer_comes_before_git_and_git_before_nothing(log: Log, blobs: BlobStore, tmp_path: Path) -> None:
    commit = repository(tmp_path / "host")
    description = Description(type="environment", version="1.0.0")
    made = fetch_prepared(f"file://{tmp_path}/host", commit, description, protocols=FILE_ALONE)
    body = made.body(blobs.put(made.bundle))
    release = log.writer.append(key(1), "release", body, now_ms=NOW_MS)

    def nobody(blob: BlobRef) -> None:
        raise NotFound("no peer has it")

    with BlobStore(tmp_path / "empty") as empty:
        installed(log, empty, release.id, tmp_path / "from-git", fetch=nobody, protocols=FILE_ALONE)
        with pytest.raises(NotFound, match="no peer has it"):
            installed(log, empty, release.id, tmp_path / "x", source="bundle", fetch=nobody)
        shutil.rmtree(tmp_path / "host")
        with pytest.raises(NotFound, match="can't be fetched"):
            installed(log, empty, release.id, tmp_path / "x", fetch=nobody, protocols=FILE_ALONE)
        installed(log, empty, release.id, tmp_path / "peer", fetch=lambda blob: copied(blobs, empty, blob))
    assert (tmp_path / "peer/main.py").read_bytes() == (tmp_path / "from-git/main.py").read_bytes() == MAIN


def copied(source: BlobStore, target: BlobStore, blob: BlobRef) -> None:
    target.put(source.get(blob.sha256))


@pytest.mark.slow
def test_bundle_and_repository_give_the_same(log: Log, blobs: BlobStore, tmp_path: Path) -> None:
    commit = repository(tmp_path / "host")
    address = f"file://{tmp_path}/host"
    made = fetch_prepared(address, commit, Description(type="environment", version="1.0.0"), protocols=FILE_ALONE)
    assert (made.name, made.metadata.class_name, made.metadata.git) == ("host", "main:Corridor", address)
    body = made.body(blobs.put(made.bundle))
    release = log.writer.append(key(1), "release", body, now_ms=NOW_MS)
    for source in ("bundle", "git"):
        installed(log, blobs, release.id, tmp_path / source, source=source, protocols=FILE_ALONE)
        assert (tmp_path / source / "main.py").read_bytes() == MAIN


@pytest.mark.slow
def test_of_a_repository_the_committed_files_are_published(tmp_path: Path) -> None:
    pytest.importorskip("git")
    folder = tmp_path / "q"
    commit = repository(folder, (*FILES, File("component.ini", INI)))
    (folder / "secret.env").write_text("TOKEN=1")
    release = prepare(folder, Description())
    assert (release.name, release.version, release.metadata.needs) == ("q_table", "1.2.0", ["environment/2048"])
    assert (release.metadata.git, release.metadata.commit, len(release.notes)) == ("", "", 1)
    assert b"TOKEN" not in release.bundle
    git(folder, "remote", "add", "origin", "https://example.org/q.git")
    again = prepare(folder, Description())
    assert (again.metadata.git, again.metadata.commit) == ("https://example.org/q.git", commit)
    assert again.bundle == release.bundle
    (folder / "main.py").write_text("changed")
    with pytest.raises(Refused, match="not committed"):
        prepare(folder, Description())


def test_of_a_folder_hidden_files_stay_here(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    for path in ("main.py", ".env", ".venv/x.py", "__pycache__/main.pyc"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(MAIN)
    alone = prepare(folder, Description(type="policy", version="1.0"))
    assert alone.metadata.tree == tree_hash([File("main.py", MAIN)])
    assert prepare(folder / "main.py", Description(type="policy", version="1.0")).name == "main"
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="no plain file"):
        prepare(folder, Description(type="policy", version="1.0"))


@pytest.mark.parametrize(
    ("description", "files", "why"),
    [
        (Description(version="1.0"), {"main.py": MAIN}, "the component has no type"),
        (Description(type="policy"), {"main.py": MAIN}, "the component has no version"),
        (Description(type="policy", version="1 0"), {"main.py": MAIN}, "can't be the version"),
        (Description(type="policy", version="1.0", name="a b"), {"main.py": MAIN}, "can't be the name"),
        (Description(type="policy", version="1.0", class_name="main:X"), {"main.py": MAIN}, "main.py has no class X"),
        (Description(type="policy", version="1.0", class_name="x:X"), {"main.py": MAIN}, "has no module x"),
        (Description(type="policy", version="1.0"), {"a.py": MAIN, "b.py": MAIN}, "has several classes"),
        (Description(type="policy", version="1.0"), {"a.py": b"class ("}, "a.py is not Python"),
        (Description(type="policy", version="1.0"), {"requirements.txt": b"-r x"}, "requirements.txt"),
        (Description(type="policy", version="1.0", requirements_path="x"), {"a": b""}, "has no file x"),
        (
            Description(type="trainer"),
            {"component.ini": INI, "main.py": MAIN},
            "component.ini says type = policy, and you say",
        ),
        (Description(), {"component.ini": b"[component]\nversoin = 1"}, "there is no key versoin"),
        (Description(), {"component.ini": b"type = policy"}, "component.ini can't be read"),
        (Description(type="policy", version="1.0"), {}, "it has no file"),
    ],
)
def test_what_can_not_be_published_is_a_sentence(
    tmp_path: Path, description: Description, files: dict[str, bytes], why: str
) -> None:
    folder = tmp_path / "q"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=why):
        prepare(folder, description)


def test_a_pyproject_gives_version_and_packages(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1 2 3")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.3"\ndependencies = ["numpy>=1.26", "x<2"]\n')
    release = prepare(tmp_path, Description(type="dataset", name="d"))
    assert (release.version, release.metadata.requirements) == ("0.3", ["numpy>=1.26", "x<2"])
    assert [file.path for file in unpack(release.bundle)] == ["data.txt", "pyproject.toml.txt"], "no tool obeys it"


@pytest.mark.slow
def test_packages_that_a_pyproject_asks_for_are_those_of_the_record(
    log: Log, blobs: BlobStore, tmp_path: Path, wheels: Path
) -> None:
    project = File("pyproject.toml", b'[project]\ndependencies = ["tiny_a"]\n')
    release = publish(log, blobs, files=(*FILES, project))
    assert installed(log, blobs, release.id, tmp_path / "corridor").requirements == ("tiny_a",)
    assert not (tmp_path / "corridor/pyproject.toml").exists()


@pytest.mark.slow
def test_a_registry_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    commit = repository(tmp_path / "host")
    file = tmp_path / "registry.yaml"
    file.write_text(REGISTRY.format(commit=commit, host=tmp_path / "host"))
    first, second = read_registry(file)
    assert (first.version, first.class_name, first.commit) == ("1.10", "main:Corridor", commit)
    assert (second.class_name, second.git) == ("sub.env:Env", "https://example.org/x")
    made = fetch_prepared(first.git, first.commit, first, protocols=FILE_ALONE)
    assert (made.name, made.metadata.type, made.summary) == ("corridor", "environment", "walk to its end")
    with pytest.raises(Refused, match="is no commit"):
        fetch_prepared(second.git, second.commit, second)


@pytest.mark.parametrize(
    "text", ["", "[1]", "a: 1", "a: {releases: [1]}", "a: [", "!!python/object:os.system {}", "\x00"]
)
def test_a_file_that_is_no_registry_is_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "registry.yaml"
    file.write_text(text)
    with pytest.raises(UsageError):
        read_registry(file)
