"""The pictures of all runs in a real browser: a setting against the value, the family tree."""

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
        summary = page.locator("#slice-told").inner_text()
        marks = page.locator(".key [data-mark]:visible").all_inner_texts()
        page.locator("#slice").focus()
        page.keyboard.press("Home")
        page.locator("#slice .card .badge").wait_for()
        spoken = page.locator("#say").text_content()
        page.keyboard.press("Enter")
        page.wait_for_url("**/run/*")
        return summary, marks, spoken, page.url

    seen = await browser.visit(f"{site}/effects?setting=DEPTH", act)
    summary, marks, spoken, url = seen.answer
    assert seen.complaints == []
    assert "of them failed, the ticks below" in summary
    assert {"refuted", "confirmed", "failed"} <= set(marks)
    first = short_id(told_world.runs["first"].id)
    assert spoken == f"{first}, DEPTH 5, 1.8950, confirmed"
    assert url.endswith(first)


async def test_the_tree_folds_its_dead_ends_and_unfolds_those_of_a_run(browser, site, told_world):
    names = {title: short_id(run.id) for title, run in told_world.runs.items()}

    def drawn_runs(page):
        return int(page.locator("#tree").get_attribute("data-shown"))

    def act(page):
        page.locator("#tree canvas").wait_for()
        everything = drawn_runs(page)
        page.locator("#ends label", has_text="folded").click()
        folded, summary = drawn_runs(page), page.locator("#tree-told").inner_text()
        page.locator("#tree").focus()
        page.keyboard.press("Shift+End")
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("Shift+ArrowLeft")
        spoken = page.locator("#say").text_content()
        page.keyboard.press("Space")
        unfolded = drawn_runs(page)
        page.locator("a", has_text="step by step").click()
        page.wait_for_url("**/lineage?of=*")
        page.locator("a", has_text="in the family tree").click()
        page.wait_for_url("**/tree?of=*")
        page.locator("#tree canvas").wait_for()
        return everything, folded, summary, spoken, unfolded, page.locator("tbody tr").count()

    seen = await browser.visit(f"{site}/tree?of={names['reported']}", act, shot="tree")
    everything, folded, summary, spoken, unfolded, steps = seen.answer
    assert seen.complaints == []
    assert everything == len(names), "the baseline too, and not the one that was withdrawn"
    assert "runs in dead ends are folded" in summary
    assert spoken.startswith(f"{names['confirmed']}, run ")
    assert "runs in dead ends" in spoken
    assert folded < unfolded <= everything
    assert steps == 5


async def test_without_javascript_the_tree_is_a_sentence_and_the_steps(site, browser):
    def act(page):
        context = page.context.browser.new_context(java_script_enabled=False)
        plain = context.new_page()
        plain.goto(f"{site}/tree")
        content = plain.locator("main").inner_text(), plain.locator("tbody tr").count()
        context.close()
        return content

    text, steps = (await browser.visit(f"{site}/tree", act)).answer
    assert "The tree takes JavaScript." in text
    assert steps == 3


async def test_dragging_on_an_axis_narrows_the_table_and_stands_in_the_address(browser, site):
    def wait_for_count(page, count):
        page.locator("#results h2", has_text=f"{count} run").wait_for()

    def act(page):
        page.locator("#parallel-told", has_text="The best tenth").wait_for()
        field, every = page.locator("#where input[name=where]"), page.locator("#results tbody tr").count()
        field.fill("DEPTH>=6,DEPTH<=9")
        field.press("Enter")
        wait_for_count(page, 4)
        box = page.locator("#parallel").bounding_box()
        page.mouse.move(box["x"] + box["width"] - 48, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 48, box["y"] + 120, steps=3)
        page.mouse.up()
        page.wait_for_url("**value*")
        wait_for_count(page, 1)
        both = field.input_value()
        page.reload()
        wait_for_count(page, 1)
        page.locator("#parallel-told", has_text="go through what is marked").wait_for()
        return every, both, field.input_value()

    seen = await browser.visit(f"{site}/effects", act, shot="parallel")
    every, both, reloaded = seen.answer
    assert seen.complaints == []
    assert every > 4
    assert both.startswith("DEPTH>=")
    assert ",value>=" in both
    assert reloaded == both
