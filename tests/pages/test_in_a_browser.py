"""Each page in a real browser: no complaint, no sideways scrolling, no serious accessibility fault, both themes."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.pages.browser import NARROW, WIDE
from tests.pages.conftest import TOKEN

pytestmark = pytest.mark.slow
PAGES = {
    "progress": "/",
    "node": "/node",
    "queue": "/queue",
    "peers": "/peers",
    "tasks": "/tasks",
    "participants": "/participants",
}
AXE = "axe_playwright_python"


def look(page):
    """Open what is folded, and say what is wrong with the page."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    return {
        "too wide": page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        "faults": faults(page),
        "headings": page.evaluate("document.querySelectorAll('h1').length"),
    }


def faults(page):
    """Serious and critical findings of axe-core. The script is evaluated by the driver, which no policy stops."""
    page.evaluate((Path(find_spec(AXE).origin).parent / "axe.min.js").read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (WIDE, True), (NARROW, False), (NARROW, True)])
async def test_a_page_in_both_themes_wide_and_narrow(browser, site, name, width, dark):
    seen = await browser.visit(site + PAGES[name], look, width=width, dark=dark, shot=name)
    assert seen.complaints == []
    assert seen.answer == {"too wide": False, "faults": [], "headings": 1}
    assert {urlsplit(one).netloc for one in seen.requests if not one.startswith("data:")} == {urlsplit(site).netloc}


async def test_controls_appear_with_the_token_and_work(browser, site, node):
    def pause(page):
        page.get_by_role("button", name="Work").click()
        page.locator("h1", has_text="Working").wait_for()
        return page.url

    shown = await browser.visit(f"{site}/node", lambda page: page.get_by_role("button", name="Work").count())
    assert shown.answer == 0
    seen = await browser.visit(f"{site}/node#token={TOKEN}", pause)
    assert seen.complaints == []
    assert "token" not in seen.answer
    assert node.asked[0][0] == "working"


async def test_a_wrong_token_is_told_beside_the_control(browser, site):
    def work(page):
        page.get_by_role("button", name="Work").click()
        return page.locator(".failure:visible").text_content()

    seen = await browser.visit(f"{site}/node#token=wrong", work)
    assert "token" in seen.answer


async def test_the_keyboard_reaches_everything(browser, site):
    def tab(page):
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.textContent")
        for _ in range(40):
            page.keyboard.press("Tab")
            if "copy" in page.evaluate("document.activeElement.className"):
                return first
        return "no button was reached"

    seen = await browser.visit(f"{site}/node", tab)
    assert seen.answer == "Skip to content"
