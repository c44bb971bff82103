"""What the sockets of servers and clients have in common: addresses, options, receiving within limits.

Also keys (ZeroMQ CURVE): who may ask a server, and which server it is. Traffic with keys is encrypted.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import os
import secrets
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
import zmq
from zmq.utils import z85

from autoresearch.errors import BadMessage, Refused, UsageError
from autoresearch.services.messages import MAX_BYTES, MAX_FRAMES

BYTES = 32
_PURPOSE = b"autoresearch svc"  # blake2b takes 16 bytes


class KeyPair(msgspec.Struct, frozen=True):
    """A service's or a client's own key. ``secret`` stays on this machine; ``public`` goes to the other side."""

    secret: bytes
    public: bytes

    @classmethod
    def from_secret(cls, secret: bytes) -> KeyPair:
        """The pair that follows from any secret, always the same one: from a node's identity, for example.

        Raises:
            UsageError: the secret has fewer than 16 bytes.
        """
        if len(secret) < 16:
            raise UsageError("a secret for a service's key needs 16 bytes or more", hint="secrets.token_bytes(32)")
        own = hashlib.blake2b(secret, digest_size=BYTES, person=_PURPOSE).digest()
        return cls(secret=own, public=z85.decode(zmq.curve_public(z85.encode(own))))

    @classmethod
    def from_file(cls, path: str | Path) -> KeyPair:
        """The pair in a file of 64 hexadecimal digits; a new one where the file is missing.

        Raises:
            UsageError: others may read the file, it cannot be read or written, or it holds something else.
        """
        path = Path(path)
        try:
            text = _read(path) if path.exists() else _make(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: the key cannot be read or written", hint="name another file") from error
        try:
            own = bytes.fromhex(text.strip())
        except ValueError:
            own = b""
        if len(own) != BYTES:
            raise UsageError(f"{path}: no key of a service", hint="a key is 64 hexadecimal digits in one line")
        return cls(secret=own, public=z85.decode(zmq.curve_public(z85.encode(own))))


def _read(path: Path) -> str:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"{path}: others may read this key", hint=f"chmod 600 {path}")
    return path.read_text()


def _make(path: Path) -> str:
    text = secrets.token_hex(BYTES) + "\n"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return text


class ServerKeys(msgspec.Struct, frozen=True):
    """A server's own key, and the public keys of the clients that may ask it. Any other client is refused.

    ``file`` has further keys, 64 hexadecimal digits a line. It is read when a client begins, and may be missing.
    """

    own: KeyPair
    clients: frozenset[bytes]
    file: Path | None = None

    @classmethod
    def of(cls, own: KeyPair, clients: Iterable[bytes | str], file: Path | None = None) -> ServerKeys:
        """From public keys as bytes or as 64 hexadecimal digits. Raises UsageError for anything else."""
        return cls(own=own, clients=frozenset(map(public_key, clients)), file=file)

    def accept(self, key: bytes) -> bool:
        """Whether a client with this key may ask."""
        if key in self.clients or self.file is None:
            return key in self.clients
        try:
            return key.hex() in self.file.read_text().split()
        except (OSError, UnicodeDecodeError):
            return False


class ClientKeys(msgspec.Struct, frozen=True):
    """A client's own key, and the public key of the server: nobody else can answer in its place."""

    own: KeyPair
    server: bytes

    @classmethod
    def of(cls, own: KeyPair, server: bytes | str) -> ClientKeys:
        """From a public key as bytes or as 64 hexadecimal digits. Raises UsageError for anything else."""
        return cls(own=own, server=public_key(server))


def public_key(key: bytes | str) -> bytes:
    """A public key from bytes or 64 hexadecimal digits. Raises UsageError for anything else."""
    try:
        raw = bytes.fromhex(key) if isinstance(key, str) else key
    except ValueError:
        raw = b""
    if len(raw) != BYTES:
        raise UsageError("a public key has 32 bytes, or 64 hexadecimal digits", hint="print(pair.public.hex())")
    return raw


Socket = zmq.Socket[bytes]

# After a lost connection a client tries again this often, so that a restarted server gets the first request.
_RECONNECT_MS = 30
# ZeroMQ itself asks whether the other side is there, also while a callback runs.
_HEARTBEAT_MS = 5000
# What a stopped server still sends: answers to those who take them.
_LINGER_MS = 200
# What a link adds to a message.
_OWN_BYTES = 64


@cache
def _context_of(process: int) -> zmq.Context[Socket]:  # noqa: ARG001 - a forked process needs its own
    return zmq.Context()


def client_context() -> zmq.Context[Socket]:
    """The context of this process's clients. Nobody ends it, so no client's end waits for another."""
    return _context_of(os.getpid())


def bound(context: zmq.Context[Socket], address: str, port: int, keys: ServerKeys | None) -> tuple[Socket, int]:
    """A ROUTER socket at an address of this machine, and its port; 0 is a free one that the system chooses.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
        UsageError: no such address or port.
    """
    if keys is None and not _is_loopback(address):
        raise Refused(
            f"a service at {address} could be used by anybody who reaches this machine",
            hint="pass keys=ServerKeys.of(KeyPair.from_file(FILE), [CLIENT]), or bind to 127.0.0.1",
        )
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is no port", hint="1024 to 65535, or 0 for a free one")
    socket: Socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.LINGER, _LINGER_MS)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_BYTES + _OWN_BYTES)
    if ":" in address:
        socket.setsockopt(zmq.IPV6, 1)
    if keys is not None:
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(keys.own.secret))
        socket.setsockopt(zmq.ZAP_DOMAIN, b"services")
    try:
        socket.bind(_endpoint(address, port or "*"))
    except zmq.ZMQError as error:
        socket.close()
        if error.errno == zmq.EADDRINUSE:
            raise Refused(f"port {port} of {address} is in use", hint="port 0 is a free one") from error
        raise UsageError(f"cannot listen at {address} port {port}: {error.strerror}") from error
    return socket, int(socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])


def connected(address: str, port: int, keys: ClientKeys | None, *, queues: bool = True, monitored: int = 0) -> Socket:
    """A DEALER socket of a client; the connection is made in the background.

    It ``queues`` what is sent before there is a connection, or raises zmq.Again there. Its monitor hears the events
    ``monitored`` from the first on.

    Raises:
        UsageError: no such address.
    """
    socket: Socket = client_context().socket(zmq.DEALER)
    for option, value in (
        (zmq.LINGER, 0),
        (zmq.RECONNECT_IVL, _RECONNECT_MS),
        (zmq.HEARTBEAT_IVL, _HEARTBEAT_MS),
        (zmq.HEARTBEAT_TIMEOUT, 2 * _HEARTBEAT_MS),
        (zmq.MAXMSGSIZE, MAX_BYTES + _OWN_BYTES),
        (zmq.IMMEDIATE, int(not queues)),
        (zmq.IPV6, int(":" in address)),
    ):
        socket.setsockopt(option, value)
    if keys is not None:
        socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(keys.own.secret))
        socket.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(keys.own.public))
        socket.setsockopt(zmq.CURVE_SERVERKEY, z85.encode(keys.server))
    try:
        if monitored:
            socket.get_monitor_socket(monitored).setsockopt(zmq.RCVHWM, 0)  # ZeroMQ would wait for who reads too slowly
        socket.connect(_endpoint(address, port))
    except zmq.ZMQError as error:
        socket.close()
        if error.errno == errno.EMFILE:
            raise
        raise UsageError(f"{address} port {port} is no address of a service: {error.strerror}") from error
    return socket


def send(socket: Socket, frames: list[bytes | memoryview], flags: int = 0) -> None:
    """Send what is left of a message. Raises zmq.Again with NOBLOCK, where nobody is connected."""
    if len(frames) == 1:
        socket.send(frames[0], flags)
    else:
        socket.send_multipart(frames, flags)


def receive(socket: Socket) -> list[bytes | memoryview]:
    """The frames that are left of a message: the first one as bytes, the others as they lie in memory.

    Raises:
        BadMessage: they are more than a message may have. What was left of it was read.
    """
    head = socket.recv()
    frames: list[bytes | memoryview] = [head]
    if not socket.getsockopt(zmq.RCVMORE):
        return frames
    size, too_much, more = len(head), False, True
    while more:
        frame = socket.recv(copy=False)
        more = frame.more
        size += len(frame)
        too_much = too_much or size > MAX_BYTES + _OWN_BYTES or len(frames) > MAX_FRAMES
        if too_much:
            frames.clear()
        else:
            frames.append(frame.buffer)
    if too_much:
        raise BadMessage(f"a message came with more than {MAX_BYTES:,} bytes or {MAX_FRAMES:,} frames")
    return frames


def _endpoint(address: str, port: int | str) -> str:
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
