"""The git repository that an export made: its processes, its references, its work tree.

Commits, files and notes go to git in the language of fast-import. It is marked in its config, and a folder without the
mark is never touched. Commits are written on branches of their own. All other references move in one transaction after
the objects are kept, so that a killed process leaves the repository as it was.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import IO

import psutil
from filelock import FileLock, Timeout

from autoresearch.errors import Refused
from autoresearch.text import one_line
from autoresearch_exports.git_commits import Commit

IMPORT_BRANCH = "refs/autoresearch/import"
NOTES_BRANCH = "refs/autoresearch/notes"
EXPORTER = "autoresearch <export@autoresearch.invalid>"
END = b"done\n"


class Stream:
    """Encodes objects one after the other. Each gets a mark, such as ``:7``, by which later ones name it."""

    def __init__(self) -> None:
        self._last = 0
        self._blobs: dict[bytes, str] = {}

    def blob(self, content: bytes) -> tuple[bytes, str]:
        """The bytes of a file and its mark; no bytes for one that was written before."""
        digest = hashlib.sha256(content).digest()
        if mark := self._blobs.get(digest):
            return b"", mark
        mark = self._blobs[digest] = self._mark()
        return b"blob\nmark %s\n%s" % (mark.encode(), _data(content)), mark

    def commit(self, commit: Commit, parent: str | None) -> tuple[bytes, str]:
        """The bytes of a commit with its files, and its mark. ``parent`` is a mark or an id."""
        out: list[bytes] = []
        entries: list[str] = []
        for name, content in sorted(commit.files.items()):
            data, blob = self.blob(content)
            out.append(data)
            entries.append(f"M 100644 {blob} {name}\n")
        mark = self._mark()
        out.append(_head(IMPORT_BRANCH, mark, commit.author, commit.seconds, commit.message))
        out.append("".join([f"from {parent}\n" if parent else "", "deleteall\n", *entries, "\n"]).encode())
        return b"".join(out), mark

    def notes(self, texts: Mapping[str, str], parent: str | None, seconds: int) -> tuple[bytes, str]:
        """The bytes of a commit with these notes by mark or id of what they are about, and its mark."""
        out: list[bytes] = []
        entries: list[str] = []
        for about, text in texts.items():
            data, blob = self.blob(text.encode())
            out.append(data)
            entries.append(f"N {blob} {about}\n")
        mark = self._mark()
        out.append(_head(NOTES_BRANCH, mark, EXPORTER, seconds, "States of runs\n"))
        out.append("".join([f"from {parent}\n" if parent else "", *entries, "\n"]).encode())
        return b"".join(out), mark

    def _mark(self) -> str:
        self._last += 1
        return f":{self._last}"


def _head(branch: str, mark: str, author: str, seconds: int, message: str) -> bytes:
    who = f"{author} {seconds} +0000"
    head = f"commit {branch}\nmark {mark}\nauthor {who}\ncommitter {who}\n"
    return head.encode() + _data(message.encode())


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


MAIN = "refs/heads/main"
BRANCHES = "refs/heads/runs/"
RUNS = "refs/runs/"
NOTES = "refs/notes/autoresearch"
MAILMAP = "refs/autoresearch/mailmap"
# The commit of the task, and the commit where main has to be: a work tree may not be there yet.
ROOT, TARGET = "refs/autoresearch/task", "refs/autoresearch/main"
_TASK, _NETWORK = "autoresearch.task", "autoresearch.network"
_UNFINISHED = ".git.partial"
# With so many new references git keeps them in one file.
_PACK_AT = 100
_HEAD_FILE = "ref: refs/heads/main\n"
_LINE = "%C(auto)%h  %<(10,trunc)%(trailers:key=Reported,key=Status,valueonly,separator=%x20)  %s%C(auto)%d"
_CONFIG = (
    ("core.autocrlf", "false"),
    ("notes.displayRef", NOTES),
    ("mailmap.blob", MAILMAP),
    ("log.excludeDecoration", "refs/runs"),
    ("log.excludeDecoration", "refs/autoresearch"),
    ("pretty.run", f"format:{_LINE}"),
    ("alias.runs", f"log --graph --format=run --glob={RUNS}*"),
)
# What else a repository's own config may set: git runs nothing for these. An archive from elsewhere may set more.
_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)"
    r"|user\.(name|email)|init\.defaultbranch|remote\.[^\n]*\.(url|pushurl|fetch)|branch\.[^\n]*\.(remote|merge|rebase)"
    r"|autoresearch\.\w+"
)
# These point git at another repository than the one that is meant.
_KEPT_VARIABLES = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
# Whatever the repository says that git starts.
_NO_COMMANDS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_NO_GIT = "git is not on this machine"


def exported_task(folder: Path) -> bytes | None:
    """The digest of the task that a folder has as a repository; None for a new or empty folder.

    Raises:
        Refused: something else is there, or there is no git.
    """
    if _is_new(folder):
        return None
    if not (folder / ".git" / "HEAD").is_file():
        raise Refused(f"{folder} is no repository that export made", hint="give a new folder")
    text = Repository(folder).config(_TASK)
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if not digest:
        raise Refused(f"{folder} is a git repository that export did not make", hint="give a new folder")
    return digest


@contextmanager
def open_repository(folder: Path, task: bytes, network: bytes, *, bare: bool = False) -> Iterator[Repository]:
    """The repository of a task in a folder, made where there is none; nobody else exports there meanwhile.

    Raises:
        Refused: the folder is something else, another task's or another network's, or busy; or there is no git.
    """
    is_new, is_ours = exported_task(folder) is None, not folder.exists()
    try:
        if is_new:
            _make(folder, task, network, bare=bare)
        with FileLock(folder / ".git" / "autoresearch.lock", timeout=0):
            repository = Repository(folder)
            if repository.config(_TASK) != task.hex():
                raise Refused(f"{folder} has the runs of another task", hint="give a new folder")
            if repository.config(_NETWORK) != network.hex():
                raise Refused(f"{folder} has runs of another network", hint="give a new folder")
            repository.check_config()
            if bare and not repository.is_bare:
                raise Refused(f"{folder} is a repository with files", hint="leave out --bare, or give a new folder")
            try:
                with repository.busy():
                    yield repository
            finally:
                if is_new and not repository.references():
                    shutil.rmtree(repository.git_dir, ignore_errors=True)
    except Timeout as error:
        raise Refused(f"another export writes to {folder}", hint="wait until it ends") from error
    except OSError as error:
        raise Refused(f"{error.filename or folder} can't be written: {error.strerror}") from error
    finally:
        if is_ours:
            with suppress(OSError):  # unless there is something in it
                folder.rmdir()


def _is_new(folder: Path) -> bool:
    """Whether nothing is there, or what an interrupted start left."""
    if folder.is_symlink() and not folder.exists():
        return False
    return not folder.exists() or (folder.is_dir() and {each.name for each in folder.iterdir()} <= {_UNFINISHED})


def _make(folder: Path, task: bytes, network: bytes, *, bare: bool) -> None:
    """A repository without commits; it appears with its mark or not at all."""
    unfinished = folder / _UNFINISHED
    folder.mkdir(parents=True, exist_ok=True)
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        git = Repository(folder, unfinished)
        git.run("init", "--quiet", "--bare", "--template=")
        (unfinished / "HEAD").write_text(_HEAD_FILE)
        (unfinished / "info").mkdir(exist_ok=True)
        (unfinished / "info" / "exclude").write_text(".autoresearch/\n__pycache__/\n")
        git.run("config", "core.bare", str(bare).lower())
        for name, value in (*_CONFIG, (_TASK, task.hex()), (_NETWORK, network.hex())):
            git.run("config", "--add", name, value)
        unfinished.replace(folder / ".git")
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_at_work(folder: Path) -> bool:
    """Whether a git of this user works in a folder: one that waits for an editor keeps its lock meanwhile."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name().startswith("git") and Path(process.cwd()).is_relative_to(folder.resolve()):
                return True
    return False


class Repository:
    """Git's commands on one repository. Each raises Refused with git's own last line when git fails."""

    def __init__(self, folder: Path, git_dir: Path | None = None) -> None:
        self.folder = folder
        self.git_dir = git_dir or folder / ".git"

    def run(self, *words: str, text: str = "") -> str:
        """What a git command prints."""
        with self.process(*words) as process:
            out, err = process.communicate(text.encode("utf-8", "surrogateescape"))
        if process.returncode:
            raise self._failed(words[0], err)
        return out.decode("utf-8", "surrogateescape")

    def process(self, *words: str) -> subprocess.Popen[bytes]:
        """A git command with pipes to it."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES
        }
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                ["git", *_NO_COMMANDS, f"--git-dir={self.git_dir}", *words],
                cwd=self.folder,
                env=environment | {"LC_ALL": "C", "GIT_DEFAULT_HASH": "sha1", "GIT_TERMINAL_PROMPT": "0"},
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
            )
        except FileNotFoundError as error:
            raise Refused(_NO_GIT, hint="install git, such as: apt install git") from error

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Mark the repository while an export works; the mark of one that was killed says that its locks are old."""
        mark = self.git_dir / "autoresearch.busy"
        if mark.exists():
            places = ("refs/**/*.lock", "packed-refs.lock", "HEAD.lock", "index.lock")
            for lock in (lock for place in places for lock in self.git_dir.glob(place)):
                if lock.name != "index.lock" or not _is_at_work(self.folder):  # it may be a person's own
                    lock.unlink(missing_ok=True)
        mark.touch()
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    def config(self, name: str) -> str:
        """A setting in the repository's own config; empty where there is none."""
        out = self.run("config", "--local", "--default", "", "--get", name)
        return out.strip()

    def check_config(self) -> None:
        """Refuse a repository whose own config has what git may run, such as a filter or another file."""
        listed = self.run("config", "--local", "--no-includes", "--name-only", "--list", "-z").split("\0")
        usual = {name.lower() for name, _ in _CONFIG}
        for name in filter(None, listed):
            if name.lower() not in usual and not _HARMLESS.fullmatch(name.lower()):
                raise Refused(
                    f"{self.git_dir / 'config'} sets {one_line(name, 80)}, which may have git run something",
                    hint="remove it there, or give a new folder",
                )

    @property
    def is_bare(self) -> bool:
        """Whether it has no files beside it."""
        return self.config("core.bare") == "true"

    def head(self) -> str:
        """The branch that is checked out; something else where none is."""
        return (self.git_dir / "HEAD").read_text().strip().removeprefix("ref: ")

    def held(self) -> set[str]:
        """The branches that are checked out in some work tree of the repository."""
        out = self.run("worktree", "list", "--porcelain")
        return {each.removeprefix("branch ") for each in out.splitlines() if each.startswith("branch ")}

    def references(self, under: str = "refs/") -> dict[str, str]:
        """The references below a prefix, with the ids of what they name."""
        out = self.run("for-each-ref", "--format=%(refname) %(objectname)", under)
        return dict(each.split(" ", 1) for each in out.splitlines())

    def noted(self) -> dict[str, str]:
        """The ids of commits with notes, each with the id of its note."""
        if not self.references(NOTES):
            return {}
        rows = (each.split("\t", 1) for each in self.run("ls-tree", "-r", NOTES).splitlines())
        return {path.replace("/", ""): about.split(" ")[2] for about, path in rows}

    @contextmanager
    def importing(self) -> Iterator[Import]:
        """Objects to be kept; nothing names them before references move."""
        marks = self.git_dir / "autoresearch.marks"
        process = self.process("fast-import", "--quiet", "--done", "--force", f"--export-marks={marks}")
        assert process.stdin
        with process:
            try:
                started = Import(process.stdin)
                yield started
                _, err = process.communicate(END)
            except BrokenPipeError:
                _, err = process.communicate()
            except BaseException:
                process.kill()
                process.communicate()
                raise
            if process.returncode:
                raise self._failed("fast-import", err)
        started.ids = dict(entry.split(" ", 1) for entry in marks.read_text().splitlines())
        marks.unlink()

    def move(self, targets: Mapping[str, str | None]) -> None:
        """Move references in one transaction; None deletes one."""
        commands = [f"update {name} {at}\n" if at else f"delete {name}\n" for name, at in targets.items()]
        commands += [f"delete {name}\n" for name in (IMPORT_BRANCH, NOTES_BRANCH)]
        self.run("update-ref", "--no-deref", "--stdin", text="".join(commands))
        if len(targets) >= _PACK_AT:
            self.run("pack-refs", "--all")
        self.run("-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")

    def _failed(self, command: str, err: bytes) -> Refused:
        lines = err.decode("utf-8", "replace").splitlines()
        line = next((each for each in lines if each.startswith(("fatal: ", "error: "))), "fatal: it was stopped")
        return Refused(
            f"git {command} failed in {self.folder}: {line[7:]}", hint=f"git -C {quote(str(self.folder))} status"
        )


class Import:
    """Objects on their way into a repository. ``ids`` of marks are known when it has ended."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.ids: dict[str, str] = {}

    def write(self, data: bytes) -> None:
        """Hand over bytes of a stream."""
        self._pipe.write(data)
