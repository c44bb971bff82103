"""Listeners without the token take as many places as they get; the owner still hears what happens."""

from __future__ import annotations

from contextlib import AsyncExitStack

import aiohttp
import pytest
from autoresearch_daemon.api.events import MAXIMUM_LISTENERS, RESERVED_LISTENERS

from tests.daemon.api.conftest import node, story, written_log  # noqa: F401 - fixtures
from tests.face.pages.conftest import TOKEN, site_of

GUESTS = MAXIMUM_LISTENERS - RESERVED_LISTENERS


@pytest.fixture
async def site(node, tmp_path):  # noqa: F811 - the fixture
    async with site_of(node, tmp_path) as address:
        yield address


async def test_listeners_without_the_token_leave_places_to_the_owner(node, site, tmp_path):  # noqa: F811
    socket = aiohttp.UnixConnector(str(tmp_path / "run" / "api.sock"), limit=0)
    owner = {"Authorization": f"Bearer {TOKEN}"}
    async with AsyncExitStack() as opened:
        anybody = await opened.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        own_session = await opened.enter_async_context(aiohttp.ClientSession(connector=socket))

        async def listen(session, address, **headers):
            response = await opened.enter_async_context(session.get(address, headers=headers))
            return response.status

        statuses = [await listen(anybody, f"{site}/events") for _ in range(2 * MAXIMUM_LISTENERS)]
        assert statuses == [200] * GUESTS + [503] * (2 * MAXIMUM_LISTENERS - GUESTS)
        assert await listen(anybody, f"{site}/events", Authorization="Bearer wrong") == 503
        half = RESERVED_LISTENERS // 2
        assert [await listen(anybody, f"{site}/v1/events", **owner) for _ in range(half)] == [200] * half
        assert [await listen(own_session, "http://localhost/v1/events") for _ in range(half)] == [200] * half
        await node.listened_by(MAXIMUM_LISTENERS)
        assert await listen(own_session, "http://localhost/v1/events") == 503


async def test_a_page_of_another_site_can_not_listen(site):
    """A browser sends no ``Origin`` with every request, but it says where it comes from."""
    async with aiohttp.ClientSession() as session:
        for place, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            async with session.get(f"{site}/events", headers={"Sec-Fetch-Site": place}) as response:
                assert response.status == status, place
