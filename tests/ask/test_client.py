"""The client of the local API, before answers that are damaged: each is a sentence, none a traceback, none hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket

import pytest

from autoresearch.ask.client import Client
from autoresearch.ask.node_acts import Node
from autoresearch.errors import AutoresearchError

HEAD = b"HTTP/1.1 200 OK\r\n"
DAMAGED = [
    b"",
    b"\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 200 OK",
    HEAD,
    HEAD + b"Content-Length: many\r\n\r\n{}",
    HEAD + b"Content-Length: -7\r\n\r\n{}",
    HEAD + b"Content-Length: 1000\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\n\r\n{}",
    HEAD + b"Content-Length: 3\r\n\r\n\xff\xfe\x00",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{}",
    HEAD + b"X: " + b"y" * (1 << 17) + b"\r\n\r\n{}",
    b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops",
]


@contextmanager
def answering(path: Path, content: bytes) -> Iterator[None]:
    """Listens on a Unix socket, answers one request with these bytes, and closes."""
    with socket(AF_UNIX, SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(content)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_answer_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    with answering(tmp_path / "socket", content), pytest.raises(AutoresearchError) as error:
        Client(tmp_path / "socket").ask(Node.status)
    assert str(error.value)
