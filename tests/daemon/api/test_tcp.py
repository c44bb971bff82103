"""The loopback port."""

import asyncio
import socket

import aiohttp
import pytest

from tests.daemon.api.conftest import served


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
async def session(node, tmp_path, port):
    serving = served(node, tmp_path / "run" / "api.sock", port=port, token="secret")
    async with serving, aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
async def ask(session, port):
    async def get(**headers):
        async with session.get(f"http://127.0.0.1:{port}/v1/status", headers=headers) as response:
            return response.status, await response.json(), response.headers

    return get


async def test_the_token_opens(ask):
    status, answer, _ = await ask(Authorization="Bearer secret")
    assert (status, answer["state"]) == (200, "idle")


async def test_without_the_token_nothing_is_told(ask):
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        status, failure, answered = await ask(**headers)
        assert (status, failure["exit_status"]) == (401, 6)
        assert answered["WWW-Authenticate"] == "Bearer"


async def test_no_address_is_open(session, node, port):
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/events", "/v1/nothing"):
        async with session.get(f"http://127.0.0.1:{port}{path}") as response:
            assert response.status == 401
    async with session.post(f"http://127.0.0.1:{port}/v1/stop") as response:
        assert response.status == 401
    assert node.requests == []


async def test_a_token_that_is_no_text_is_wrong(session, port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer \xff\xfe\r\n\r\n" % port)
    assert b" 401 " in await reader.readline()
    writer.close()


async def test_a_page_of_another_site_is_refused(ask):
    assert (await ask(Authorization="Bearer secret", Origin="http://evil.example"))[0] == 403
    assert (await ask(Authorization="Bearer secret", Host="evil.example"))[0] == 403


async def test_the_unix_socket_needs_no_token_meanwhile(ask, tmp_path):
    connector = aiohttp.UnixConnector(str(tmp_path / "run" / "api.sock"))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get("http://any.name/v1/status", headers={"Origin": "http://evil.example"}) as response,
    ):
        assert response.status == 200


async def test_only_loopback_listens(ask, port):
    with socket.socket(socket.AF_INET6) as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("::1", port))
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.2", port))


async def test_what_is_no_http_is_refused_and_fills_no_log(session, port, caplog):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x16\x03\x01 what is no request\r\n\r\n")
    assert b" 400 " in await reader.readline()
    writer.close()
    assert "Traceback" not in caplog.text
