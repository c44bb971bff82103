"""Questions and answers over real sockets: what survives what, and what the client is told."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import (
    BadMessage,
    NoAnswer,
    NotFound,
    Refused,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
    UsageError,
)
from autoresearch.services.links.client import RequestClient
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ClientKeys, KeyPair, ServerKeys
from autoresearch.services.messages import encode
from tests.services.serving import dead_port, serving


def echo(value: object) -> object:
    return value


def asked_in_vain(client: RequestClient) -> None:
    with pytest.raises(ServiceError):
        client.ask(2)


def test_several_clients_and_threads_get_their_own_answers() -> None:
    with serving(lambda value: value + 1) as server, RequestClient("localhost", server.port) as shared:
        answers: list[list[int]] = []

        def ask(client: RequestClient, base: int) -> None:
            answers.append([client.ask(base + number) - base for number in range(50)])

        own = [RequestClient("127.0.0.1", server.port) for _ in range(3)]
        threads = [
            threading.Thread(target=ask, args=(client, 1000 * number))
            for number, client in enumerate([*own, shared, shared])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert answers == [list(range(1, 51))] * 5
    assert server.counts.answered == 250


def test_arrays_go_both_ways() -> None:
    with serving(echo) as server, RequestClient("localhost", server.port, 5000) as client:
        array = np.random.default_rng(0).random((300, 1000))
        assert np.array_equal(client.ask({"cam": array, "small": array[:2, :2]})["cam"], array)


def test_what_a_callback_raises_reaches_the_client_and_the_server_goes_on() -> None:
    def handle(value: object) -> object:
        match value:
            case "value":
                raise ValueError("no\x1b[31m such thing")
            case "refused":
                raise ServiceRefused("not today", hint="ask tomorrow")
            case "other":
                raise NotFound("no such run")
            case "odd":
                return object()
        return value

    with serving(handle) as server, RequestClient("localhost", server.port) as client:
        with pytest.raises(ServiceFailed, match=r"raised ValueError: no.+such thing") as caught:
            client.ask("value")
        assert "\x1b" not in str(caught.value)
        with pytest.raises(ServiceRefused, match="not today") as refused:
            client.ask("refused")
        assert refused.value.hint == "ask tomorrow"
        with pytest.raises(ServiceFailed, match="no such run"):
            client.ask("other")
        with pytest.raises(ServiceFailed, match="the server's answer: a object cannot be sent"):
            client.ask("odd")
        with pytest.raises(BadMessage, match="cannot be sent"):
            client.ask(object())
        assert client.ask("well") == "well"
        assert (server.counts.answered, server.counts.failed) == (1, 4)


def test_a_dead_server_is_answered_in_time() -> None:
    client = RequestClient("127.0.0.1", dead_port(), timeout_ms=300)
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(NoAnswer, match="no server at"):
            client.ask(1)
        assert 0.3 <= time.monotonic() - began < 5  # the benchmark has the figure; a test machine may be busy


def test_a_client_without_room_for_sockets_is_told_so() -> None:
    program = (
        "import resource, sys; from autoresearch.services.links.client import RequestClient\n"
        "from autoresearch.errors import NoAnswer\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        "clients = [RequestClient('127.0.0.1', int(sys.argv[1]), 5000) for _ in range(60)]\n"
        "try: [client.ask(1) for client in clients]\n"
        "except NoAnswer as error: print(error)"
    )
    with serving(echo) as server:
        command = [sys.executable, "-c", program, str(server.port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cannot be asked: Too many open files" in done.stdout, done.stderr


def test_a_server_that_is_busy_is_told_from_one_that_is_not_there() -> None:
    go = threading.Event()
    with serving(lambda value: go.wait(20) and value) as server:
        client = RequestClient("127.0.0.1", server.port, timeout_ms=300)
        with pytest.raises(NoAnswer, match="did not answer within 300 ms"):
            client.ask("first")
        go.set()
        client.timeout_ms = 20_000
        assert client.ask("second") == "second"  # and not the first one's answer
        client.close()


def test_the_first_request_after_a_restart_is_answered() -> None:
    server = RequestServer(echo)
    client = RequestClient("127.0.0.1", server.port, timeout_ms=10_000)
    for number in range(5):
        server.start(threaded=True)
        assert client.ask(number) == number
        assert server.stop()
    client.close()


def test_after_an_answer_too_a_busy_server_is_told_from_none() -> None:
    free = threading.Event()
    with serving(lambda wait: free.wait(20) if wait else "quick") as server:
        client = RequestClient("127.0.0.1", server.port, timeout_ms=300)
        assert client.ask(False) == "quick"
        with pytest.raises(NoAnswer, match="did not answer within 300 ms"):
            client.ask(True)
        free.set()
        client.timeout_ms = 10_000
        assert client.ask(False) == "quick"
    client.timeout_ms = 300
    with pytest.raises(NoAnswer, match="no server"):
        client.ask(False)


@pytest.mark.slow
def test_a_port_where_every_connection_breaks_holds_up_no_other_client() -> None:
    """ZeroMQ waits for who does not read the thousandth event of a connection, and all clients of a process with it."""
    with serving(echo) as server:
        idle = RequestClient("127.0.0.1", server.port)
        assert idle.ask(1) == 1
    with socket.create_server(("127.0.0.1", server.port)) as other, serving(echo) as good:
        asking = RequestClient("127.0.0.1", server.port, timeout_ms=300_000)
        threading.Thread(target=asked_in_vain, args=(asking,), daemon=True).start()
        for _ in range(2500):  # of both clients more than a thousand
            other.accept()[0].close()
        with RequestClient("127.0.0.1", good.port, timeout_ms=10_000) as client:
            assert client.ask(3) == 3
    idle.close()


def test_a_port_that_is_taken_and_an_open_address_without_keys_are_refused() -> None:
    server = RequestServer(echo)
    with pytest.raises(Refused, match="in use"):
        RequestServer(echo, port=server.port)
    assert server.stop()
    assert server.stop()
    for address in ("0.0.0.0", "*", "::", "192.0.2.1"):
        with pytest.raises(Refused, match="could be used by anybody"):
            RequestServer(echo, address=address)
    with pytest.raises(UsageError):
        RequestServer(echo, port=-4)
    with pytest.raises(UsageError):
        RequestClient("no such host!", 5555).ask(1)


def test_stop_ends_a_server_that_blocks_a_thread_and_is_safe_within_a_callback() -> None:
    server = RequestServer(lambda _: server.stop())
    thread = threading.Thread(target=server.start)
    thread.start()
    with RequestClient("127.0.0.1", server.port, timeout_ms=10_000) as client:
        assert client.ask("end") is False  # the answer still arrives
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_starts_and_stops_with_clients_connected(count: int) -> None:
    for number in range(count):
        server = RequestServer(echo)
        server.start(threaded=True)
        clients = [RequestClient("127.0.0.1", server.port, timeout_ms=200) for _ in range(3)]
        asking = threading.Event()

        def ask(client: RequestClient, asking: threading.Event = asking) -> None:
            try:
                while True:
                    client.ask(np.zeros(20_000))
                    asking.set()
            except NoAnswer:
                client.close()

        threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        assert asking.wait(20)
        assert server.stop(), number
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


def test_questions_that_come_together_are_answered_together() -> None:
    seen: list[int] = []
    entered, go = threading.Event(), threading.Event()

    def handle_many(values: list[int]) -> list[object]:
        seen.append(len(values))
        entered.set()
        go.wait(20)
        return [ServiceRefused("too large") if value > 100 else value * 2 for value in values]

    server = RequestServer.batching(handle_many, max_batch=4, max_wait_ms=20)
    server.start(threaded=True)
    answers: dict[int, object] = {}

    def ask(value: int) -> None:
        with RequestClient("127.0.0.1", server.port, timeout_ms=20_000) as client:
            try:
                answers[value] = client.ask(value)
            except ServiceRefused as error:
                answers[value] = str(error)

    threads = [threading.Thread(target=ask, args=(value,)) for value in (0, 1, 2, 3, 4, 5, 101, 7)]
    threads[0].start()
    assert entered.wait(20)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(20)
    assert server.stop()

    assert answers == {value: 2 * value for value in (0, 1, 2, 3, 4, 5, 7)} | {101: "too large"}
    assert sum(seen) == 8
    assert max(seen) <= 4
    assert server.counts.batches == len(seen)


def test_a_wrong_number_of_answers_and_an_error_reach_all_who_asked() -> None:
    def handle_many(values: list[str]) -> list[str]:
        if values[0] == "raise":
            raise KeyError("gone")
        return ["one", "two", "three"]

    server = RequestServer.batching(handle_many, max_wait_ms=0)
    server.start(threaded=True)
    with RequestClient("127.0.0.1", server.port, timeout_ms=20_000) as client:
        with pytest.raises(ServiceFailed, match="3 answers to 1 questions"):
            client.ask("x")
        with pytest.raises(ServiceFailed, match="raised KeyError: 'gone'"):
            client.ask("raise")
    assert server.stop()


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_bytes_without_zeromq_leave_the_server_alive(parts: list[bytes]) -> None:
    with serving(echo) as server:
        with socket.create_connection(("127.0.0.1", server.port), 20) as raw:
            for part in parts:
                try:
                    raw.sendall(part)
                except OSError:
                    break
        with RequestClient("127.0.0.1", server.port, 20_000) as client:
            assert client.ask(1) == 1


def test_clients_that_vanish_with_an_answer_on_its_way_hold_up_nobody() -> None:
    with serving(lambda _: np.zeros(1_000_000)) as server, RequestClient("127.0.0.1", server.port, 20_000) as honest:
        for _ in range(20):
            with closing(zmq.Context.instance().socket(zmq.DEALER)) as gone:
                gone.setsockopt(zmq.LINGER, 20)
                gone.connect(f"tcp://127.0.0.1:{server.port}")
                gone.send_multipart(encode(1))
        assert len(honest.ask(1)) == 1_000_000


def test_keys_let_in_whom_the_server_knows_and_nobody_else(tmp_path) -> None:
    own, admitted, stranger = (
        KeyPair.from_file(tmp_path / "key"),
        KeyPair.from_secret(b"k" * 16),
        KeyPair.from_secret(os.urandom(32)),
    )
    with serving(echo, ServerKeys.of(own, [admitted.public.hex()])) as server:

        def client(keys: ClientKeys | None, timeout_ms: float = 500) -> RequestClient:
            return RequestClient("127.0.0.1", server.port, timeout_ms, keys)

        with client(ClientKeys.of(admitted, own.public), 20_000) as trusted:
            assert trusted.ask({"a": 1}) == {"a": 1}
        with client(ClientKeys.of(stranger, own.public)) as refused:
            for _ in range(3):
                with pytest.raises(ServiceRefused, match="does not accept"):
                    refused.ask(1)
        for keys in (None, ClientKeys.of(admitted, stranger.public)):
            with client(keys) as other, pytest.raises(ServiceRefused, match="has other keys, or none"):
                other.ask(1)
        assert server.counts.answered == 1


def test_a_key_in_a_file_is_made_once_and_kept_from_others(tmp_path) -> None:
    path = tmp_path / "key"
    made = KeyPair.from_file(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert KeyPair.from_file(path) == made
    assert KeyPair.from_secret(b"a" * 32) == KeyPair.from_secret(b"a" * 32) != KeyPair.from_secret(b"b" * 32)
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others may read"):
        KeyPair.from_file(path)
    path.chmod(0o600)
    path.write_text("no key\n")
    with pytest.raises(UsageError, match="no key of a service"):
        KeyPair.from_file(path)
    with pytest.raises(UsageError, match="cannot be read or written"):
        KeyPair.from_file(tmp_path / "missing" / "key")
    with pytest.raises(UsageError, match="16 bytes"):
        KeyPair.from_secret(b"short")
    with pytest.raises(UsageError, match="32 bytes"):
        ServerKeys.of(made, ["zz"])
