"""Which services run on this machine: a small file each in one folder, locked as long as its process lives.

A process that ends, also a killed one, lets go of the lock. So a file that nobody locks tells of no service.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from autoresearch.errors import NoAnswer, NotFound, Refused, UsageError
from autoresearch.text import one_line

if TYPE_CHECKING:
    from autoresearch.paths import Paths
    from autoresearch.services.links.sockets import ClientKeys

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Addresses of a server that mean all of this machine's.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - they are replaced here

_LOOK_SECONDS = 0.05


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service: what it serves, where, since when, and how many questions it has answered.

    ``kind`` is "action", "trainer", "inference" or "env".

    ``public_key`` is the server's in hexadecimal digits; empty where it takes clients of this machine without a key.
    ``for_own_machines``: the participant's other machines may ask it. ``machine`` is the name of the one where it runs,
    empty for this one; its ``address`` is empty where that machine is reached through a relay.
    """

    name: str
    kind: str
    component: str
    project: str
    address: str
    port: int
    pid: int
    since_ms: int
    requests: int = 0
    public_key: str = ""
    for_own_machines: bool = False
    machine: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """Address and port for a client on this machine. Raises NoAnswer where no address leads there."""
        if not self.address:
            raise NoAnswer(
                f"{one_line(self.machine, 40)}, where {self.name} runs, is reached through a relay only",
                hint=f"forward its port {self.port} by ssh, and give HOST:PORT with --server-key {self.public_key}",
            )
        return EVERYWHERE.get(self.address, self.address), self.port


class Announcement:
    """The file of a running service."""

    def __init__(self, path: Path, service: Service) -> None:
        self._path = path
        self.service = service
        self._write()

    def answered(self, requests: int) -> None:
        """Tell how many questions it has answered by now."""
        if requests != self.service.requests:
            self.service = msgspec.structs.replace(self.service, requests=requests)
            self._write()

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(self.service))
        fresh.replace(self._path)


@contextmanager
def reserved(folder: Path, name: str) -> Iterator[Path]:
    """Hold a name while a service starts and runs. Gives the path of its file, for ``Announcement``.

    Raises:
        UsageError: it can be no name.
        Refused: a service of this name runs.
    """
    if not NAME.fullmatch(name):
        sentence = f"“{one_line(name, 40)}” can't be a service's name"
        raise UsageError(sentence, hint="use letters, digits and _ . - in it")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    from filelock import FileLock, Timeout

    # Those who look for services hold the lock for a moment.
    lock = FileLock(_lock_of(folder, name), timeout=2, poll_interval=0.05)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(f"a service {name} runs already", hint="--name gives this one another name") from None
    path = folder / f"{name}.json"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def running_services(folder: Path) -> list[Service]:
    """The services of this machine that run, by name."""
    services = []
    for path in sorted(folder.glob("*.json")):
        if not _is_locked(_lock_of(folder, path.stem)):
            path.unlink(missing_ok=True)
            continue
        with suppress(OSError, msgspec.MsgspecError):  # it ended meanwhile
            services.append(msgspec.json.decode(path.read_bytes(), type=Service))
    return services


def find_service(
    name: str,
    folder: Path | None = None,
    *,
    wait_s: float = 0.0,
    elsewhere: Callable[[], Sequence[Service]] = tuple,
) -> Service:
    """The service of this name on this machine, as ``autoresearch agent services`` lists it; one may be about to begin.

    ``elsewhere`` gives those of other machines, which are looked at when it is not here.

    Raises:
        NotFound: none of this name runs after ``wait_s`` seconds.
    """
    folder = _paths().services if folder is None else folder
    until = time.monotonic() + wait_s
    while True:
        services = running_services(folder)
        for each in services:
            if each.name == name:
                return each
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_SECONDS)
    others = elsewhere()
    for each in others:
        if each.name == name:
            return each
    names = ", ".join(each.name for each in [*services, *others]) or "none"
    raise NotFound(f"no service {one_line(name, 40)} runs on this machine", hint=f"there are: {names}")


def client_keys(server_key: str, key_file: Path | None = None) -> ClientKeys | None:
    """What a client needs to ask a service with this public key; None where that is empty, and no key is needed.

    The client's own key is that of ``key_file``, else this node's, which ``autoresearch agent services --key`` shows.

    Raises:
        UsageError: the server's key is none, or the file can't be read.
    """
    if not server_key:
        return None
    from autoresearch.services.links.sockets import ClientKeys, KeyPair

    if key_file is None:
        key_file = _paths().service_key
        key_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return ClientKeys.of(KeyPair.from_file(key_file), server_key)


def _paths() -> Paths:
    from autoresearch.paths import Paths

    return Paths.from_environment(os.environ)


def _lock_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
