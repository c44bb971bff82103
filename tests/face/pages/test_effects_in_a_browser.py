"""The pictures of all runs in a real browser: a setting against the value."""

import pytest

from autoresearch.record.encoding import short_id
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import every_state

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture
async def site(told_world, tmp_path):
    async with site_of(told_world.node, tmp_path) as address:
        yield address


async def test_a_setting_is_drawn_against_the_value_and_the_keyboard_opens_a_run(browser, site, told_world):
    def act(page):
        page.locator("#slice canvas").wait_for()
        told = page.locator("#slice-told").inner_text()
        marks = page.locator(".key [data-mark]:visible").all_inner_texts()
        page.locator("#slice").focus()
        page.keyboard.press("Home")
        page.locator("#slice .card .badge").wait_for()
        spoken = page.locator("#say").text_content()
        page.keyboard.press("Enter")
        page.wait_for_url("**/run/*")
        return told, marks, spoken, page.url

    seen = await browser.visit(f"{site}/effects?setting=DEPTH", act)
    told, marks, spoken, url = seen.answer
    assert seen.complaints == []
    assert "of them failed, the ticks below" in told
    assert {"refuted", "confirmed", "failed"} <= set(marks)
    first = short_id(told_world.runs["first"].id)
    assert spoken == f"{first}, DEPTH 5, 1.8950, confirmed"
    assert url.endswith(first)
