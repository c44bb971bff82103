"""Pages over a real TCP port, from a log with a story in it, and a real browser that opens them."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import aiohttp
import pytest
from autoresearch_daemon.api.app import make_app
from autoresearch_daemon.api.listen import Tcp, serve

from tests.daemon.api.conftest import node, story, written_log  # noqa: F401 - fixtures
from tests.face.pages.browser import CHROMIUM, Browser

TOKEN = "secret"


@asynccontextmanager
async def site_of(node, folder, **options):  # noqa: F811 - a node, by whatever fixture
    """The address of the pages of a node."""
    tcp = Tcp(port=8600, token=TOKEN, fixed=False, **options)
    async with serve(make_app(node), socket=folder / "run" / "api.sock", tcp=tcp) as address:
        yield address.rstrip("/")


@pytest.fixture
async def site(node, tmp_path):  # noqa: F811 - the fixture
    async with site_of(node, tmp_path) as address:
        yield address


@pytest.fixture
async def get(site):
    """A page as text, with its status and headers."""
    async with aiohttp.ClientSession() as session:

        async def ask(path, method="GET", **headers):
            async with session.request(method, site + path, headers=headers) as response:
                return response.status, await response.text(), response.headers

        yield ask


@pytest.fixture(scope="session")
def browser():
    if not Path(CHROMIUM).exists() or find_spec("playwright") is None:
        if os.environ.get("CI"):
            pytest.fail("the pages are tested in a real browser: apt install chromium")
        pytest.skip("no browser here: apt install chromium")
    made = Browser()
    yield made
    made.close()
