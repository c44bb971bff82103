"""Where the API listens."""

import os
import socket
import stat

import aiohttp
import pytest
from aiohttp import web
from autoresearch_daemon.api.listen import Tcp, serve

from autoresearch.errors import Locked, Refused, UsageError


@pytest.fixture
def app():
    async def hello(_):
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", hello)
    return application


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "api.sock"


async def get(path):
    connector = aiohttp.UnixConnector(str(path))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://localhost/") as response:
        return await response.text()


async def test_the_socket_is_for_this_user_alone_and_is_gone_afterwards(app, path):
    async with serve(app, socket=path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert await get(path) == "hello"
    assert not path.exists()


async def test_a_folder_that_others_could_enter_is_closed_to_them(app, path):
    path.parent.mkdir(mode=0o777)
    path.parent.chmod(0o777)
    async with serve(app, socket=path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_socket_of_a_dead_daemon_is_replaced(app, path):
    path.parent.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.listen()
    dead.close()
    async with serve(app, socket=path):
        assert await get(path) == "hello"


async def test_the_socket_of_a_living_daemon_is_left_alone(app, path):
    async with serve(app, socket=path):
        with pytest.raises(Locked):
            async with serve(web.Application(), socket=path):
                pass
        assert await get(path) == "hello"


async def test_a_daemon_too_busy_to_accept_is_not_taken_for_dead(app, path):
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(str(path))
        with pytest.raises(Locked):
            async with serve(app, socket=path):
                pass
        for client in waiting:
            client.close()
    assert path.exists()


@pytest.mark.parametrize("make", [lambda path: path.write_text("mine"), lambda path: path.mkdir()])
async def test_what_is_no_socket_is_not_removed(app, path, make):
    path.parent.mkdir()
    make(path)
    with pytest.raises(Refused):
        async with serve(app, socket=path):
            pass
    assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that is somebody else's")
async def test_a_folder_that_somebody_else_made_first_is_refused(app, path):
    path.parent.mkdir()
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(Refused, match="does not belong"):
        async with serve(app, socket=path):
            pass


async def test_a_link_in_place_of_the_folder_is_refused(app, path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="does not belong"):
        async with serve(app, socket=path):
            pass


async def test_a_socket_put_in_our_place_is_not_removed(app, path):
    async with serve(app, socket=path):
        path.unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(path))
    assert path.exists()
    other.close()


async def test_a_path_too_long_for_a_socket_is_refused_with_a_sentence(app, tmp_path):
    with pytest.raises(Refused, match="too long"):
        async with serve(app, socket=tmp_path / ("x" * 120)):
            pass


async def test_a_port_without_a_token_is_refused(app, path):
    for token in ("",):
        with pytest.raises(UsageError):
            async with serve(app, socket=path, tcp=Tcp(8100, token)):
                pass
    assert not path.exists()


async def test_a_taken_port_is_refused_and_leaves_no_socket(app, path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Refused, match="port"):
            async with serve(app, socket=path, tcp=Tcp(taken.getsockname()[1], "secret")):
                pass
    assert not path.exists()
