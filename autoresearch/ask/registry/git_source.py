"""The files of one commit of a git repository that somebody else wrote. Nothing of it is checked out or executed.

Git fetches one commit into a bare repository of its own, in a temporary folder. The files are read as objects. So no
hook, filter or symbolic link can come to work, and no submodule is followed. Every command is a fixed list: an address
or a commit stands behind ``--``, and only what :func:`check_url` and the pattern of a commit let through.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autoresearch.errors import CannotRunHere, NotFound, Refused, TimedOut
from autoresearch.paths import archive_fault
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.task.release import BUNDLE_BYTES, COMMIT, FILES_MOST, BadBundle, File, fault_of_path
from autoresearch.text import one_line

SECONDS = 120.0
_SHA256_DIGITS = 64
_REFERENCE_CHARACTERS = 1024
URL_CHARACTERS = 512
HTTPS = frozenset({"https"})
# No file that git writes is larger. In a pack with one commit, what stands beside the files is small.
_PACK_BYTES = 2 * BUNDLE_BYTES
# The shell sets it, in blocks of 512 bytes (POSIX, ``ulimit``): a function between fork and exec would take a lock of
# another thread, and a copy of this process's memory tables.
_LIMITED = 'ulimit -f "$0" && exec git "$@"'
_LISTING_BYTES = 4 << 20
# What git says first is the cause, and what follows from it comes later.
_SAID = ("error:", "fatal:", "remote:")
_FILE, _EXECUTABLE = b"100644", b"100755"
_KINDS = {b"120000": "a symbolic link", b"160000": "a submodule"}
# Whatever this machine's or a repository's own configuration says.
_FIXED = (
    *("-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.symlinks=false", "-c", "transfer.fsckObjects=true", "-c", "fetch.unpackLimit=1"),
    *("-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "credential.helper=", "-c", "core.askPass=true", "-c", "http.followRedirects=false"),
)


def check_url(url: str, protocols: Collection[str] = HTTPS) -> None:
    """Raises Refused unless git may fetch from an address: https, with a host, without a name or a password."""
    plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url and "::" not in url
    with suppress(ValueError):
        parts = urlsplit(url)
        if (
            plain
            and len(url) <= URL_CHARACTERS
            and parts.scheme in protocols
            and (parts.hostname or parts.scheme == "file")
            and "@" not in parts.netloc
            and not parts.netloc.startswith("-")
            and not parts.fragment
        ):
            return
    raise Refused(
        f"the source {one_line(url, 80)!r} is refused: git fetches from https addresses alone, without a name in them",
        hint="install it from the bundle of a peer, or ask its publisher",
    )


def fetch_files(url: str, commit: str, *, protocols: Collection[str] = HTTPS, seconds: float = SECONDS) -> list[File]:
    """The files of a commit.

    Raises:
        Refused: the address or the commit is none that git may fetch, or the commit is too large.
        BadBundle: a file in it is not allowed: a symbolic link, a submodule, a name like ``..``.
        NotFound: the host or the commit is not there.
        CannotRunHere: git is not on this machine.
        TimedOut: it took longer than ``seconds``.
    """
    check_url(url, protocols)
    if not COMMIT.fullmatch(commit):
        raise Refused(f"{one_line(commit, 60)!r} is no commit", hint="a commit is 40 hexadecimal digits")
    with scratch_folder() as scratch:
        git = _Git(scratch.folder, scratch.folder, protocols)
        git.run("init", "--bare", "--quiet", "--template=", "--", str(scratch.folder), seconds=seconds)
        words = ("--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")
        git.run("fetch", *words, "--", url, commit, seconds=seconds, what=f"{one_line(url, 80)} can't be fetched")
        return git.files(commit, seconds)


def head_of(folder: Path) -> tuple[list[File], str, str] | None:
    """The committed files of a repository, its commit, and the address that it was cloned from.

    The folder may come from elsewhere. Git works in a repository of its own and reads the folder's objects and index:
    no configuration, filter, hook or attribute of the folder has an effect. Files are compared by their bytes.

    None where the folder is not the top of a repository, or has no commit.

    Raises:
        Refused: files are changed and not committed.
        BadBundle: a file is not allowed in a release.
        CannotRunHere: git is not on this machine.
    """
    place = folder / ".git"
    commit = _head_commit(place) if place.is_dir() else ""
    if not commit:
        return None
    with scratch_folder() as scratch:
        own = scratch.folder / "own"
        git = _Git(scratch.folder, own, HTTPS)
        hashes = "sha256" if len(commit) == _SHA256_DIGITS else "sha1"
        git.run("init", "--bare", "--quiet", "--template=", f"--object-format={hashes}", "--", str(own))
        git.read_from(place)
        files = git.files(commit)
        added = git.run("diff-index", "--cached", "--name-only", "--ignore-submodules=all", commit, "--")
        if added or not all(_is_as_committed(folder / file.path, file) for file in files):
            raise Refused(f"{folder} has changes that are not committed", hint="git commit -a, then publish again")
        return files, commit, _origin(git, place)


def _head_commit(place: Path) -> str:
    """The commit that is checked out, read from the repository's files; empty without one."""
    with suppress(OSError, UnicodeDecodeError):
        text = (place / "HEAD").read_text()[:_REFERENCE_CHARACTERS].strip()
        name = text.removeprefix("ref: ")
        if name == text:
            return text if COMMIT.fullmatch(text) else ""
        if archive_fault(name) or not name.startswith("refs/"):
            return ""
        with suppress(FileNotFoundError, NotADirectoryError):
            commit = (place / name).read_text()[:_REFERENCE_CHARACTERS].strip()
            return commit if COMMIT.fullmatch(commit) else ""
        lines = (line.split(" ", 1) for line in (place / "packed-refs").read_text().splitlines())
        return next((words[0] for words in lines if words[1:] == [name] and COMMIT.fullmatch(words[0])), "")
    return ""


def _is_as_committed(path: Path, file: File) -> bool:
    """Whether a file has the bytes of its commit; ends of lines may be those of this system."""
    try:
        content, mode = path.read_bytes(), path.lstat().st_mode
    except OSError:
        return False
    is_same = content == file.content or content.replace(b"\r\n", b"\n") == file.content.replace(b"\r\n", b"\n")
    return is_same and stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR) == file.executable


def _cause(output: str) -> str:
    """Why git failed, of all that it printed."""
    lines = output.splitlines() or ["git says no more"]
    return one_line(next((line for line in lines if line.startswith(_SAID)), lines[-1]), 200)


def _origin(git: _Git, place: Path) -> str:
    """The address that a repository was cloned from, of its own file alone; empty where it says none."""
    with suppress(NotFound, UnicodeDecodeError):
        words = ("--file", str(place / "config"), "--no-includes", "--get", "remote.origin.url")
        return git.run("config", *words).decode().strip()
    return ""


def clone(url: str, folder: Path) -> None:
    """Clone a repository into a new folder, as ``git clone`` does; its newest commit alone.

    Raises:
        NotFound: there is none at the address, or git is refused there.
        CannotRunHere: git is not on this machine.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # without git it says so where git is wanted
    import git

    try:
        git.Repo.clone_from(url, folder, depth=1, env={"GIT_TERMINAL_PROMPT": "0"}).close()
    except git.exc.GitCommandNotFound as error:
        raise CannotRunHere("git is not on this machine", hint="apt install git") from error
    except git.exc.GitError as error:
        cause = _cause(str(getattr(error, "stderr", "") or error).strip(" \n'").removeprefix("stderr: '"))
        raise NotFound(f"{one_line(url, 80)} can't be cloned: {cause}", hint="check the address") from error


def origin_of(folder: Path) -> str:
    """The address that a folder was cloned from; empty where it is no clone. Raises CannotRunHere."""
    with scratch_folder() as scratch:
        return _origin(_Git(scratch.folder, scratch.folder, HTTPS), folder / ".git")


class _Git:
    """Git with fixed arguments and an environment of its own, through GitPython."""

    def __init__(self, folder: Path, repository: Path, protocols: Collection[str]) -> None:
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        import git

        self._git = git.Git(str(folder))
        self._environment = dict(_environment(repository, protocols))

    def read_from(self, place: Path) -> None:
        """Have objects and index of another repository take the place of one's own."""
        self._environment["GIT_OBJECT_DIRECTORY"] = str(place.absolute() / "objects")
        self._environment["GIT_INDEX_FILE"] = str(place.absolute() / "index")

    def run(
        self,
        *words: str,
        seconds: float = SECONDS,
        what: str = "git failed",
        most: int = _LISTING_BYTES,
        stdin: Any = None,  # noqa: ANN401 - a file, as GitPython has it
    ) -> bytes:
        """What a command prints. Raises NotFound when it fails, TimedOut, Refused when it prints more than ``most``."""
        if not shutil.which("git"):
            raise CannotRunHere("git is not on this machine", hint="apt install git")
        own, _ = resource.getrlimit(resource.RLIMIT_FSIZE)  # nobody may set a higher one than their own
        largest = _PACK_BYTES if own == resource.RLIM_INFINITY else min(own, _PACK_BYTES)
        command = ["/bin/sh", "-c", _LIMITED, f"{largest // 512}", *_FIXED, *words]
        started = self._git.execute(
            command, istream=stdin, as_process=True, env=self._environment, start_new_session=True
        )
        process: Any = started.proc
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process.pid)

        timer = threading.Timer(seconds, stop)
        timer.start()
        errors: list[bytes] = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read(_LISTING_BYTES)))
        reader.start()
        try:
            output: bytes = process.stdout.read(most + 1)
            if len(output) > most:
                raise Refused(f"{what}: it is larger than a component may be", hint=f"{BUNDLE_BYTES >> 20} MiB at most")
            status = process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                _kill(process.pid)
                process.wait()
            reader.join()
        if late.is_set():
            raise TimedOut(f"{what}: it took more than {seconds:g} s", hint="try again later")
        if status:
            cause = _cause(b"".join(errors).decode("utf-8", "replace").strip())
            raise NotFound(f"{what}: {cause}", hint="a peer may have it: autoresearch network peers")
        return output

    def files(self, commit: str, seconds: float = SECONDS) -> list[File]:
        """The files of a commit, read as objects. Raises Refused for what a release may not have."""
        listed = self.run("ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", commit, seconds=seconds)
        entries = [_entry(line) for line in listed.split(b"\0") if line]
        total = sum(size for _, _, _, size in entries)
        if len(entries) > FILES_MOST or total > BUNDLE_BYTES:
            sentence = f"the commit has {len(entries)} files with {total >> 20} MiB"
            raise Refused(sentence, hint=f"a component has at most {FILES_MOST} files and {BUNDLE_BYTES >> 20} MiB")
        with scratch_folder() as scratch:
            names = scratch.folder / "names"
            names.write_text("".join(f"{name}\n" for _, _, name, _ in entries))
            with names.open("rb") as stdin:
                read = self.run("cat-file", "--batch", seconds=seconds, most=total + 100 * len(entries), stdin=stdin)
        files, at = [], 0
        for path, executable, _, size in entries:
            start = read.index(b"\n", at) + 1
            files.append(File(path, read[start : start + size], executable))
            at = start + size + 1
        return files


def _entry(line: bytes) -> tuple[str, bool, str, int]:
    about, _, name = line.partition(b"\t")
    mode, _, digest, size = about.split()
    try:
        path = name.decode()
    except UnicodeDecodeError as error:
        raise BadBundle(f"the file {name[:80]!r} is refused: its name is not UTF-8") from error
    if mode not in (_FILE, _EXECUTABLE):
        raise BadBundle(f"the file {path[:80]!r} is refused: it is {_KINDS.get(mode, 'of an unusual mode')}")
    if fault := fault_of_path(path):
        raise BadBundle(f"the file {path[:80]!r} is refused: {fault}")
    return path, mode == _EXECUTABLE, digest.decode(), int(size)


def _environment(repository: Path, protocols: Collection[str]) -> Mapping[str, str]:
    """What takes the place of this machine's settings of git. GitPython keeps the other variables."""
    return {
        "GIT_DIR": str(repository),
        "GIT_OBJECT_DIRECTORY": str(repository / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_ALLOW_PROTOCOL": ":".join(sorted(protocols)),
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TRACE": "0",
    }


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
