"""The progress page in a real browser: filters, Back, keyboard, zoom; and an export without a server."""

import pytest

from autoresearch.record.encoding import format_id, short_id
from tests.ask.notebook import Notebook
from tests.daemon.api.conftest import SmallNode
from tests.face.pages.browser import shoot
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import every_state

pytestmark = pytest.mark.slow
SEARCH = "location.search"


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture
async def site(told_world, tmp_path):
    async with site_of(told_world.node, tmp_path) as address:
        yield address


def drawn(page):
    """Wait for the chart."""
    page.locator("#chart canvas").wait_for()
    return page


def at(page, search):
    """Wait until the address says so. No function is polled in the page: its policy allows no evaluation."""
    page.wait_for_url(lambda url: url.partition("?")[2] == search.removeprefix("?"))


def back(page):
    """Go back; htmx then loads the page anew."""
    with page.expect_event("load"):
        page.evaluate("history.back()")


async def test_a_filter_is_in_the_address_and_back_takes_it_away(browser, site):
    def act(page):
        drawn(page).locator("#key label", has_text="refuted").click()
        at(page, "?state=refuted")
        page.locator("#results th a", has_text="Gain reported").click()
        at(page, "?state=refuted&sort=change")
        few = page.locator("#results tbody tr").count()
        back(page)
        at(page, "?state=refuted")
        back(page)
        at(page, "")
        drawn(page)
        return few, page.locator("#results tbody tr").count() > few, page.locator("#key :checked").count()

    seen = await browser.visit(f"{site}/", act)
    assert seen.complaints == []
    assert seen.answer == (1, True, 0)


async def test_the_view_is_in_the_address_and_in_every_link(browser, site):
    def act(page):
        drawn(page).locator("[data-view=x] label", has_text="time").click()
        at(page, "?x=time")
        page.locator("[data-view=chart] label", has_text="large").click()
        at(page, "?x=time&chart=large")
        page.locator("#chart").focus()
        page.keyboard.press("Escape")
        at(page, "?x=time")
        page.locator("#results th a", has_text="Gain reported").click()
        at(page, "?sort=change&x=time")
        page.reload()
        return drawn(page).locator("[data-view=x] :checked").input_value()

    seen = await browser.visit(f"{site}/", act)
    assert seen.complaints == []
    assert seen.answer == "time"


async def test_the_keyboard_goes_from_step_to_step_and_opens_a_run(browser, site, told_world):
    def act(page):
        drawn(page).locator("#chart").focus()
        page.keyboard.press("End")
        page.locator("#say", has_text="reported").wait_for(state="attached")
        page.locator("#card .badge").wait_for()
        card = page.locator("#card").inner_text()
        page.keyboard.press("Escape")
        hidden = page.locator("#card").is_hidden()
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        page.wait_for_url("**/run/*")
        return card, hidden, page.url

    seen = await browser.visit(f"{site}/", act)
    card, hidden, url = seen.answer
    assert "reported" in card
    assert hidden
    assert url.endswith(short_id(told_world.village.baseline.id))


async def test_a_part_is_chosen_by_dragging_and_left_by_a_double_click(browser, site):
    def act(page):
        box = drawn(page).locator(".u-over").bounding_box()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 80, steps=4)
        page.mouse.up()
        page.wait_for_url("**/?since=*")
        zoomed = page.evaluate(SEARCH)
        page.reload()
        note_visible = drawn(page).locator("#zoomed").is_visible()
        page.locator(".u-over").dblclick(position={"x": 6, "y": 6})
        at(page, "")
        return zoomed, note_visible

    seen = await browser.visit(f"{site}/", act)
    assert seen.complaints == []
    assert seen.answer[0].startswith("?since=")
    assert seen.answer[1]


async def test_a_view_is_saved_and_the_chart_is_taken_along_as_a_picture(browser, site):
    def act(page):
        drawn(page).locator("[data-view=x] label", has_text="time").click()
        at(page, "?x=time")
        page.locator(".take summary", has_text="Columns").click()
        page.locator("[name=cols][value=because]").check()
        page.wait_for_url("**cols=*")
        shoot(page, "columns", full_page=False)
        page.locator("#views summary").click()
        page.locator("#views input").fill("mine")
        page.locator("#views button", has_text="Save").click()
        page.locator("#views li a").wait_for()
        shoot(page, "views", full_page=False)
        view = page.evaluate(SEARCH)
        with page.expect_download() as picture:
            page.locator("#png").click()
        page.goto(f"{site}/")
        page.locator("#views summary").click()
        page.locator("#views li a", has_text="mine").click()
        at(page, view)
        column_checked = page.locator("[name=cols][value=because]").is_checked()
        page.locator("#views summary").click()
        page.locator("#views li button").click()
        return picture.value.path().read_bytes()[:4], column_checked, page.locator("#views li").count()

    seen = await browser.visit(f"{site}/", act)
    assert seen.complaints == []
    assert seen.answer == (b"\x89PNG", True, 0)


async def test_runs_that_are_ticked_stand_beside_each_other(browser, site, told_world):
    picked = "confirmed", "refuted"
    first, second = (short_id(told_world.runs[name].id) for name in picked)

    def act(page):
        drawn(page).locator(f".pick[value={first}]").check()
        alone = page.locator("#tray").inner_text()
        page.locator("#results th a", has_text="Gain reported").click()
        at(page, "?sort=change")
        page.locator(f".pick[value={second}]").check()
        first_checked = page.locator(f".pick[value={first}]").is_checked()
        page.locator("#tray a").click()
        page.wait_for_url("**/compare?runs=" + ",".join(format_id(told_world.runs[name].id) for name in picked))
        return (
            "tick another" in alone,
            first_checked,
            page.locator("h1").inner_text(),
            page.locator(".forest [role=img]").count(),
        )

    seen = await browser.visit(f"{site}/", act)
    assert seen.complaints == []
    assert seen.answer == (True, True, "Compare 2 runs", 2)


async def test_the_whole_range_is_drawn(browser, site):
    seen = await browser.visit(
        f"{site}/?y=full", lambda page: drawn(page).locator("#chart canvas").count(), shot="progress"
    )
    assert seen.complaints == []
    assert seen.answer == 1


async def test_large_values_are_written_with_seven_digits_in_the_chart_too(browser, tmp_path):
    with Notebook.at(tmp_path / "notebook") as notebook:
        node = SmallNode(notebook, tmp_path / "local.sqlite")
        task = notebook.task(floor=None)
        notebook.run(task, 147734.0)
        notebook.run(task, 98583.25, source="DEPTH = 9\n")

        def act(page):
            drawn(page).locator("#chart").focus()
            page.keyboard.press("End")
            announcement = page.locator("#say", has_text="reported")
            announcement.wait_for(state="attached")
            return announcement.text_content()

        async with site_of(node, tmp_path) as site:
            seen = await browser.visit(f"{site}/", act)
        node.local.close()
    assert seen.complaints == []
    assert "98583.25 reported" in seen.answer


async def test_what_diverged_stands_at_the_edge_and_axes_and_smoothing_are_in_the_address(browser, tmp_path):
    with Notebook.at(tmp_path / "notebook") as notebook:
        node = SmallNode(notebook, tmp_path / "local.sqlite")
        task = notebook.task(floor=None)
        for depth, value in enumerate((1.0, 1e-9, 1e9, 1e100)):
            curve = [10 * value, 4 * value, 2 * value] if value < 1e100 else [1.0, 1e50, 1e100]
            genome = {"DEPTH": depth}
            notebook.run(task, value, source=f"DEPTH = {depth}\n", curve=curve, duration_ms=3_000, genome=genome)

        def act(page):
            outside = drawn(page).locator("#outside").inner_text()
            page.locator("[data-view=y] label", has_text="log").first.click()
            at(page, "?y=log")
            on_log = page.locator("#outside").inner_text()
            page.locator("#chart").focus()
            page.keyboard.press("Shift+End")
            page.locator("#card .badge").wait_for()
            edge = page.locator("#card").inner_text()
            page.locator("#curves summary").press("Enter")
            page.locator("#curves canvas").wait_for()
            page.locator("#curves label", has_text="seconds").click()
            page.locator("#curves [name=curve-smooth]").focus()
            page.keyboard.press("End")
            page.wait_for_url("**/?y=log#curves=,seconds,0.95")
            page.reload()
            page.locator("#curves canvas").wait_for()
            axes = page.locator("#curves :checked").evaluate_all("all => all.map(one => one.value)")
            box = page.locator("#curves .u-over").bounding_box()
            page.mouse.move(box["x"] + 0.34 * box["width"], box["y"] + 30)
            page.locator(".curve-told", has_text="At 1").wait_for()
            return outside, on_log, edge, axes, page.locator(".curve-told").inner_text()

        async with site_of(node, tmp_path) as site:
            seen = await browser.visit(f"{site}/", act, shot="diverged")
        node.local.close()
    outside, on_log, edge, axes, line = seen.answer
    assert seen.complaints == []
    assert outside == "Marks at the edge: 2 above the axis, up to 1e100."
    assert on_log == "Marks at the edge: 1 above the axis, up to 1e100."
    assert "1e100" in edge
    assert axes == ["log", "seconds"]
    assert "1e9" in line or "1e10" in line
