"""Each page in a real browser: no complaint, no sideways scrolling, no serious accessibility fault, both themes."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from autoresearch.record.encoding import short_id
from tests.ask.notebook import Notebook
from tests.daemon.api.conftest import SmallNode
from tests.face.pages.browser import NARROW, shoot
from tests.face.pages.conftest import TOKEN, site_of
from tests.face.pages.every_state import every_state
from tests.face.pages.hostile import PRODUCT, hostile_world
from tests.log.standing.village import ANN, STRANGER
from tests.nasty import harms

pytestmark = pytest.mark.slow
PAGES = {
    "progress": "/",
    "progress-by-time": "/?x=time&y=full&state=confirmed,refuted&sort=value",
    "run-confirmed": "/run/{confirmed}",
    "run-refuted": "/run/{refuted}",
    "run-crashed": "/run/{crashed}",
    "lineage": "/lineage?of={reported}",
    "tree": "/tree?of={reported}",
    "effects": "/effects?setting=DEPTH",
    "board": "/board",
    "compare": "/compare?runs={confirmed},{refuted},{crashed}",
    "compare-nothing": "/compare",
    "notes": "/notes?ask=depth",
    "verifications": "/verifications",
    "queue": "/queue",
    "participants": "/participants",
    "participant": "/participants/{ann}",
    "groups": "/?group=DEPTH",
    "contour": "/parts/contour?setting=LR&second=DEPTH",
    "timeline": "/parts/timeline",
    "find": "/find?q=conf",
    "peers": "/peers",
    "tasks": "/tasks",
    "components": "/components",
    "component": "/component?of=policy.q_table",
    "node": "/node",
    "no-such-run": "/run/zzzzzzzz",
}
HOSTILE = ("/", "/run/{run}", "/lineage?of={run}", "/board", "/participants", "/participants/{who}")
AXE = "axe_playwright_python"


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    with hostile_world(tmp_path_factory.mktemp("evil")) as made:
        yield made


@pytest.fixture
async def told_site(every, tmp_path):
    """The address of the pages of a log with a run in every state, and what stands for runs in addresses."""
    names = {title: short_id(run.id) for title, run in every.runs.items()} | {"ann": ANN.public.hex()}
    async with site_of(every.node, tmp_path) as site:
        yield site, names


def look(page):
    """Open what is folded, and say what is wrong with the page."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.wait_for_timeout(300)  # what opens is fetched
    return {
        "too wide": page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        "faults": faults(page),
        "headings": page.evaluate("document.querySelectorAll('h1').length"),
    }


def faults(page):
    """What axe-core finds, of any level. The script is evaluated by the driver, which no policy stops."""
    if not page.evaluate("'axe' in window"):  # half a megabyte, once for each page
        page.evaluate((Path(find_spec(AXE).origin).parent / "axe.min.js").read_text())
    violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(violation["id"], [node["html"][:200] for node in violation["nodes"][:3]]) for violation in violations]


def look_twice(page):
    """What is wrong with the page wide and light, and then narrow and dark."""
    wide = look(page)
    page.set_viewport_size({"width": NARROW, "height": 900})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    return [wide, look(page)]


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_in_both_themes_wide_and_narrow(browser, told_site, name):
    site, names = told_site
    seen = await browser.visit(site + PAGES[name].format(**names), look_twice, shot=name)
    expected = ["Failed to load resource: the server responded with a status of 404"] if name == "no-such-run" else []
    assert [complaint[:60] for complaint in seen.complaints] == [complaint[:60] for complaint in expected]
    assert seen.answer == [{"too wide": False, "faults": [], "headings": 1}] * 2
    assert {urlsplit(address).netloc for address in seen.requests if not address.startswith("data:")} == {
        urlsplit(site).netloc
    }


@pytest.mark.parametrize(
    "address", ["/", "/run/{run}", "/lineage?of={run}", "/board", "/participants", "/participants/{who}", "/find?q=b"]
)
async def test_what_strangers_wrote_runs_nothing_and_widens_nothing(browser, evil, tmp_path, address):
    world, _, run = evil
    dialogs = []

    def read(page):
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        layout = look(page)
        return layout["too wide"], page.evaluate("document.body.innerText"), page.evaluate("document.images.length")

    async with site_of(world.node, tmp_path) as site:
        place = site + address.format(run=short_id(run.id), who=STRANGER.public.hex())
        seen = await browser.visit(place, read, width=NARROW, shot=f"hostile{address.replace('/', '-')[:12]}")
    too_wide, text, images = seen.answer
    assert (seen.complaints, dialogs, images, too_wide) == ([], [], 0, False)
    assert not harms(text)
    assert PRODUCT not in text  # no template was filled


async def test_controls_appear_with_the_token_and_work(browser, site, node):
    def work(page):
        page.get_by_role("button", name="Work").click()
        page.locator("h1", has_text="Working").wait_for()
        return page.url

    visit = await browser.visit(f"{site}/node", lambda page: page.get_by_role("button", name="Work").count())
    assert visit.answer == 0
    seen = await browser.visit(f"{site}/node#token={TOKEN}", work)
    assert seen.complaints == []
    assert "token" not in seen.answer
    assert node.requests[0][0] == "working"


async def test_a_wrong_token_is_told_beside_the_control(browser, site):
    def work(page):
        page.get_by_role("button", name="Work").click()
        return page.locator(".failure:visible").text_content()

    seen = await browser.visit(f"{site}/node#token=wrong", work)
    assert "token" in seen.answer


async def test_a_page_without_the_token_is_unlocked_by_what_the_command_prints(browser, site, node):
    def act(page):
        page.locator(".unlock summary", has_text="Unlock the buttons").press("Enter")
        command = page.locator(".unlock .cmd code").inner_text()
        page.get_by_label("Address or token").fill("nonsense")
        page.get_by_role("button", name="Unlock").press("Enter")
        refused = page.locator(".failure:visible").inner_text()
        page.get_by_label("Address or token").fill(f"{site}/#token={TOKEN}")
        page.get_by_label("Address or token").press("Enter")
        page.get_by_role("button", name="Work").click()
        page.locator("h1", has_text="Working").wait_for()
        return command, refused, page.locator(".unlock").is_visible()

    seen = await browser.visit(f"{site}/node", act)
    command, refused, is_locked = seen.answer
    assert command == "autoresearch open --print"
    assert refused.startswith("That is not this node’s token.")
    assert not is_locked
    assert node.requests[0][0] == "working"


EMPTY = {
    "/board": "Programs are ranked here",
    "/lineage": "The steps from the baseline to the best run stand here",
    "/tree": "All runs stand here",
    "/effects": "its effect stands here",
    "/tasks": "Each task stands here",
    "/participants": "stands here with what came of it",
    "/verifications": "that verifiers are to measure stand here",
    "/notes": "Models read them",
    "/node": "The run in hand stands here",
    "/find": "that have your words stand here",
    "/compare": "Tick two",
    "/": "The runs stand here",
}


async def test_a_fresh_home_says_on_every_page_what_would_be_there_and_leads_to_the_first_step(browser, tmp_path):
    def act(page):
        texts = {}
        for path in EMPTY:
            page.goto(f"{site}{path}")
            texts[path] = page.locator("main").inner_text()
        page.goto(f"{site}/board")
        page.get_by_role("link", name="Begin").click()
        page.get_by_role("heading", name="Lend this machine").wait_for()
        begin = faults(page), page.get_by_role("button", name="Unlock").is_visible()
        page.goto("about:blank")
        page.goto(f"{site}/#token={TOKEN}")
        page.get_by_role("button", name="Work", exact=True).click()
        page.locator(".done", has_text="It works.").wait_for()
        return texts, begin

    with Notebook.at(tmp_path / "notebook") as notebook:
        node = SmallNode(notebook, tmp_path / "local.sqlite")
        async with site_of(node, tmp_path) as site:
            seen = await browser.visit(f"{site}/", act, shot="fresh")
        node.local.close()
    texts, begin = seen.answer
    assert {path: sentence for path, sentence in EMPTY.items() if sentence not in texts[path]} == {}
    assert begin == ([], True)
    assert node.requests[0][0] == "working"


async def test_the_keyboard_reaches_everything(browser, told_site):
    site, names = told_site

    def tab(page):
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.textContent")
        for _ in range(100):
            page.keyboard.press("Tab")
            if "copy" in page.evaluate("document.activeElement.className"):
                return first
        return "no button was reached"

    seen = await browser.visit(f"{site}/run/{names['confirmed']}", tab)
    assert seen.answer == "Skip to content"


async def test_the_key_of_the_search_opens_it_on_any_page(browser, told_site):
    site, _ = told_site

    def act(page):
        page.keyboard.press("/")
        page.keyboard.type("conf")
        page.locator("#found section h2", has_text="Commands").wait_for()
        page.locator("#found .id").first.wait_for()
        wide = faults(page)
        shoot(page, "find-dialog", full_page=False)
        page.keyboard.press("Escape")
        closed = page.locator("#finder").is_hidden()
        page.keyboard.press("/")
        page.keyboard.press("Enter")
        page.wait_for_url("**/find?*q=conf")
        return wide, closed, page.locator("h1").inner_text()

    seen = await browser.visit(f"{site}/board", act)
    assert seen.complaints == []
    assert seen.answer == ([], True, "Find")


async def test_eight_tabs_have_one_connection_and_the_next_takes_it_over(browser, site, node):
    loop = asyncio.get_running_loop()

    def becomes(state):
        node.state = state
        node.events.tell("state", state, 0)

    def act(page):
        tabs = [page.context.new_page() for _ in range(7)]
        for tab in tabs:
            tab.set_default_timeout(20_000)
            tab.goto(f"{site}/node")
        first = node.listeners
        loop.call_soon_threadsafe(becomes, "paused")
        for tab in tabs:
            tab.locator("h1", has_text="Paused").wait_for()
        with page.context.expect_event("request", lambda request: request.url.endswith("/events")):
            page.close()
        loop.call_soon_threadsafe(becomes, "idle")
        for tab in tabs:
            tab.locator("h1", has_text="Idle").wait_for()
        return first, node.listeners

    seen = await browser.visit(f"{site}/node", act)
    assert seen.complaints == []
    assert seen.answer == (1, 1)
