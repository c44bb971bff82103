"""Where everything lives. One variable, ``AUTORESEARCH_HOME``, moves all of it. Knows no contents."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from shlex import quote

from autoresearch.errors import Refused, UsageError
from autoresearch.text import one_line

APP = "autoresearch"
# Which network's folder a process uses, whatever is in use meanwhile: a daemon gives it to its workers.
NETWORK_VARIABLE = "AUTORESEARCH_IN_NETWORK"
# Networks besides the first have a folder each below this one, in the data and in the state.
NETWORKS = "networks"
LOCAL = "local.sqlite"
FOLDER = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,79}")
# A Unix socket's path may have 107 bytes (sockaddr_un); longer homes get a socket in the system's temporary folder.
SOCKET_PATH_BYTES = 100
SOCKET_NAME_BYTES = len("/api.sock")
# A path that is too long to exist is also too long to be read in a sentence.
TOLD_CHARACTERS = 80
# The longest name that a file has on usual disks.
_PART_BYTES = 255


def archive_fault(name: str, longest: int = 1024) -> str | None:
    """Why a file in an archive may not have this name, with ``/`` between folders; None where it may."""
    if not name.isprintable() or "\\" in name or ":" in name:
        return "it has a character that no file name should have"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "it leads out of the folder, or is not written in the shortest form"
    if len(name) > longest or any(len(part.encode("utf-8", "replace")) > _PART_BYTES for part in name.split("/")):
        return "it is too long"
    return None


def archive_paths(names: Iterable[str], longest: int = 1024) -> list[PurePosixPath]:
    """Where the files of an archive belong, in their order: paths below the folder that it is unpacked into.

    Names that differ in small and capital letters alone, or in how an accent is encoded, are one file on some disks.

    Raises:
        ValueError: a name is refused, two name the same file, or one is a file and the folder of another.
    """
    spellings: dict[str, str] = {}
    paths = []
    for name in names:
        if fault := archive_fault(name, longest):
            raise ValueError(f"the file {name[:TOLD_CHARACTERS]!r} is refused: {fault}")
        spelling = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        if spelling in spellings:
            other = spellings[spelling][:TOLD_CHARACTERS]
            both = (
                f"two files {other!r}"
                if other == name[:TOLD_CHARACTERS]
                else f"{other!r} and {name[:TOLD_CHARACTERS]!r}"
            )
            raise ValueError(f"it has {both}, which are one file on some disks")
        spellings[spelling] = name
        paths.append(PurePosixPath(name))
    for spelling, name in spellings.items():
        if any(str(folder) in spellings for folder in PurePosixPath(spelling).parents):
            raise ValueError(f"a file stands where {name[:TOLD_CHARACTERS]!r} needs a folder")
    return paths


def typed_path(text: str | Path) -> Path:
    """The path that a person or a program typed; ``~somebody`` who has no home here is a name like any other.

    Raises:
        UsageError: this system can have no such path: too long, or with a character that none has.
    """
    try:
        path = _expanded(Path(text))
        os.lstat(path)
    except ValueError:
        reason = "it has a character that no path has"
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return path
        reason = "it is too long"
    else:
        return path
    raise UsageError(f"“{one_line(str(text), TOLD_CHARACTERS)}” can't be a path: {reason}", hint="check the path")


def output_path(text: str | Path, *, or_folder: bool = False) -> Path:
    """The file (``or_folder``) that a command writes as a whole, at the end of links: ``-o results.tsv``.

    Raises:
        UsageError: a folder or a device is there, or there is no folder for it.
    """
    place = typed_path(text).absolute()
    if place.is_dir():
        if or_folder:
            return place.resolve()
        raise UsageError(f"{place} is a folder", hint="name a file")
    if place.exists() and not place.is_file():  # renaming a file over it would remove the device
        raise UsageError(f"{place} is a device or a pipe, and the file is written as a whole", hint="name a file")
    if not (path := place.resolve()).parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", hint="make it, or name another file")
    return path


def put_folder(made: Path, folder: Path) -> None:
    """Have a whole folder appear at its place. An empty folder there stays the same one: a shell may be in it."""
    if not (made.is_dir() and folder.is_dir()):
        made.replace(folder)
        return
    manifests_last = sorted(made.iterdir(), key=lambda entry: entry.suffix in (".toml", ".ini"))
    for entry in manifests_last:
        entry.replace(folder / entry.name)


@contextmanager
def write_refusals(
    place: Path | str = "", hint: str = "let it be written, or set AUTORESEARCH_HOME to another folder"
) -> Iterator[None]:
    """Raise Refused where something can't be written: ``place``, else the path of the error, as in a node's home."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sentence = f"{place or error.filename} can't be written: {error.strerror}"
        raise Refused(sentence, hint="make room on that disk" if full else hint) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file; whatever happens it is the old one or the new one, whole. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sync_path(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk: a renamed file is safe only after this."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:  # ~somebody who has no home here
        return path


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one node: ``data`` has log, blobs and keys; ``state`` the daemon's own files.

    A home may hold several networks. ``folder`` is the one in use: empty for the first, whose files lie in ``data`` and
    ``state`` themselves. Each has its own log, blobs, manifest and local state; keys, settings and caches are shared.
    """

    config: Path
    data: Path
    state: Path
    cache: Path
    runtime: Path
    folder: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Paths:
        """The platform's directories, or folders below ``AUTORESEARCH_HOME`` when that is set.

        Raises:
            UsageError: what says which network is in use is damaged.
        """
        base = cls._of_home(environment)
        network = environment.get(NETWORK_VARIABLE)
        return base.of_network(base.folder_in_use() if network is None else network)

    @classmethod
    def _of_home(cls, environment: Mapping[str, str]) -> Paths:
        home = environment.get("AUTORESEARCH_HOME")
        if home:
            root = Path(home).expanduser().absolute()
            return cls(root / "config", root / "data", root / "state", root / "cache", root / "run")
        import platformdirs

        dirs = platformdirs.PlatformDirs(APP, appauthor=False)
        # Sessions without a login manager have no runtime folder; sockets are as well kept beside the state.
        runtime = environment.get("XDG_RUNTIME_DIR")
        return cls(
            Path(dirs.user_config_dir),
            Path(dirs.user_data_dir),
            Path(dirs.user_state_dir),
            Path(dirs.user_cache_dir),
            Path(runtime) / APP if runtime else Path(dirs.user_state_dir) / "run",
        )

    def of_network(self, folder: str) -> Paths:
        """The same home with another network's files; an empty ``folder`` is the first network's."""
        return replace(self, folder=folder)

    @property
    def in_use(self) -> Path:
        """The small file that names the folder of the network in use; without it that is the first."""
        return self.data / "network-in-use"

    def folder_in_use(self) -> str:
        """The folder that this file names. Raises UsageError when it is damaged, or there is no such folder."""
        try:
            folder = self.in_use.read_text("utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except PermissionError as error:
            sentence = f"{self.in_use} can't be read: {error.strerror}"
            raise Refused(sentence, hint="let it be read, or set AUTORESEARCH_HOME to another folder") from error
        except (OSError, ValueError):
            folder = "?"
        if folder and not (FOLDER.fullmatch(folder) and (self.data / NETWORKS / folder).is_dir()):
            hint = f"delete that file: then the first network is in use; {self.data / NETWORKS} has the others"
            raise UsageError(f"{self.in_use} names no network that is here", hint=hint)
        return folder

    def _in_network(self, root: Path) -> Path:
        return root / NETWORKS / self.folder if self.folder else root

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.config / "config.toml"

    @property
    def log(self) -> Path:
        """The SQLite file of the log."""
        return self._in_network(self.data) / "log.sqlite"

    @property
    def manifest(self) -> Path:
        """The manifest of the network that the log belongs to; without one it is the built-in network."""
        return self._in_network(self.data) / "network.toml"

    @property
    def blobs(self) -> Path:
        """The folder of blobs."""
        return self._in_network(self.data) / "blobs"

    @property
    def keys(self) -> Path:
        """The folder of this participant's keys."""
        return self.data / "keys"

    @property
    def restoring(self) -> Path:
        """Is there while a backup is put back: the backup's path."""
        return self.data / "restoring"

    @property
    def local(self) -> Path:
        """What the node keeps of this network: orders, runs in hand, events, acts as an attestor. Never synced."""
        return self._in_network(self.state) / LOCAL

    @property
    def home_local(self) -> Path:
        """What it keeps of no network: starred runs, archived tasks, calls of models. The first network's is this."""
        return self.state / LOCAL

    @property
    def heads(self) -> Path:
        """Which record each own key signed last, beside the log; kept when the network is forgotten."""
        return self.log.parent / "heads"

    def secrets(self) -> list[Path]:
        """What no run may read: the keys' folders and what is in them, the API's token."""
        others = sorted((self.state / NETWORKS).glob("*/network"))
        folders = (self.keys, self.of_network("").network, *others)
        inside = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
        return [*folders, *inside, self.api_token]

    @property
    def api_token(self) -> Path:
        """What a program shows that asks over a loopback port."""
        return self.config / "api-token"

    def make_api_token(self) -> str:
        """That token: made once, and kept where only this user reads it."""
        if not self.api_token.exists():
            import secrets  # few commands need it

            self.config.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.api_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(32))
        return self.api_token.read_text().strip()

    @property
    def spool(self) -> Path:
        """Files of runs in hand."""
        return self._in_network(self.state) / "spool"

    @property
    def services(self) -> Path:
        """A file for each service that runs on this machine. Never synced."""
        return self.state / "services"

    @property
    def own_machines(self) -> Path:
        """The keys of this participant's other machines, a line each: services that are open to them read it."""
        return self.services / "own-machines.keys"

    @property
    def service_key(self) -> Path:
        """The key by which this node's services and their clients know each other."""
        return self.keys / "services.key"

    @property
    def daemon_log(self) -> Path:
        """The daemon's log file, JSON lines."""
        return self.state / "daemon.log"

    @property
    def task_data(self) -> Path:
        """Prepared data of tasks, by hash; may be deleted at any time."""
        return self.cache / "tasks"

    @property
    def published_tasks(self) -> Path:
        """Folders of tasks that others published, by digest; may be deleted while no daemon runs."""
        return self.cache / "published"

    @property
    def environments(self) -> Path:
        """Python environments of tasks, by the digest of their packages; may be deleted while no program runs."""
        return self.cache / "venvs"

    @property
    def allowed(self) -> Path:
        """What a person allowed: an empty file for each list of packages, and of what a folder reaches outside."""
        return self.state / "packages"

    @property
    def socket(self) -> Path:
        """The daemon's API socket."""
        return self._socket("api.sock")

    @property
    def network(self) -> Path:
        """The network's own files: the host key, the address book."""
        return self._in_network(self.state) / "network"

    def _socket(self, name: str) -> Path:
        # All sockets in one folder: whether they fit is not a question of each one's name.
        if len(str(self.runtime).encode()) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES:
            return self.runtime / name
        from hashlib import sha256
        from tempfile import gettempdir

        digest = sha256(str(self.runtime).encode()).hexdigest()[:16]
        return Path(gettempdir()) / f"{APP}-{digest}" / name

    def create(self, *, restores: bool = False) -> None:
        """Make the folders; those that hold keys, sockets or local state are for this user alone.

        A folder for sockets elsewhere is made by the process that listens. ``restores``: for putting a backup back.

        Raises:
            Refused: a backup was put back here, and not to its end; or a folder can't be made.
        """
        if self.restoring.exists() and not restores:
            hint = f"autoresearch node restore {quote(self.restoring.read_text())}"
            raise Refused(f"{self.data} is half restored: that was interrupted.", hint=hint)
        with write_refusals():
            for folder in (self.config, self.data, self.cache, self.log.parent):
                folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.state, self.runtime, self.keys, self.spool, self.network):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def remove_sockets(self) -> None:
        """Leave nothing of a node that stopped in the system's temporary folder."""
        if self.socket.parent != self.runtime:
            with suppress(OSError):
                self.socket.parent.rmdir()


def session_bus() -> str:
    """The address of this user's session bus: the environment's, or where systemd has it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return os.environ.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path={runtime}/bus"
