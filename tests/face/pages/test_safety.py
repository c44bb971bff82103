"""Who may read pages, and what a page may not do."""

import aiohttp
import pytest

from autoresearch.face.pages.rendering import asset_names
from tests.face.pages.conftest import TOKEN, site_of

PAGES = (
    *("/", "/find", "/board", "/lineage", "/verifications", "/notes?ask=depth"),
    *("/node", "/queue", "/peers", "/tasks", "/participants", "/components"),
)


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_read_without_a_token_and_may_load_nothing_from_elsewhere(get, path):
    status, text, headers = await get(path)
    assert status == 200
    assert text.startswith("<!doctype html>")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", [*PAGES, "/events"])
async def test_a_name_that_was_bound_to_this_machine_reads_nothing(get, path):
    assert (await get(path, Host="evil.example"))[0] == 403


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_of_another_origin_reads_nothing(get, path):
    assert (await get(path, Origin="http://evil.example"))[0] == 403


@pytest.mark.parametrize("path", ["/v1/pause", "/v1/stop", "/v1/proposals", "/v1/work"])
async def test_nothing_is_changed_without_the_token(get, node, path):
    assert (await get(path, method="POST"))[0] == 401
    assert (await get(path, method="POST", Cookie=f"token={TOKEN}"))[0] == 401
    assert (await get(path, method="POST", Origin="http://evil.example", Authorization=f"Bearer {TOKEN}"))[0] == 403
    assert node.requests == []


async def test_a_page_takes_no_other_method(get, node):
    for method in ("POST", "PUT", "DELETE"):
        assert (await get("/node", method=method))[0] in {401, 405}
    assert node.requests == []


async def test_a_mirror_shows_pages_and_takes_no_orders(node, tmp_path):
    async with site_of(node, tmp_path, pages_only=True) as site, aiohttp.ClientSession() as session:
        async with session.get(f"{site}/node") as response:
            text = await response.text()
            assert response.status == 200
        assert "data-post" not in text
        async with session.post(f"{site}/v1/pause", headers={"Authorization": f"Bearer {TOKEN}"}) as response:
            assert response.status == 403
    assert node.requests == []


async def test_assets_are_kept_by_their_content(get):
    for name in asset_names():
        status, text, headers = await get(f"/assets/{name}")
        assert (status, headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
        assert text
        assert (await get(f"/assets/{name}", **{"If-None-Match": headers["ETag"]}))[0] == 304
    assert (await get("/assets/..%2frendering.py"))[0] == 404
    assert (await get("/assets/nothing.js"))[0] == 404


@pytest.mark.parametrize("path", ["/node?task=nothing", "/queue?task=%00", "/node?nonsense=1"])
async def test_a_wrong_address_is_a_page_that_says_so(get, path):
    status, text, _ = await get(path)
    assert status in {200, 400, 404}
    assert text.startswith("<!doctype html>")
