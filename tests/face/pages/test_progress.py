"""The progress page over a log with a run in every state: summary, chart, table, filters, empty states."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import asynccontextmanager
from html import unescape
from xml.etree import ElementTree

import aiohttp
import pytest

from autoresearch.record.encoding import parse_id, short_id
from autoresearch.record.kinds import Proposer
from tests.ask.notebook import Notebook
from tests.daemon.api.conftest import SmallNode
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import empty_world, every_state
from tests.face.pages.reading import page_of, whole_page
from tests.log.standing.village import ANN, STRANGER
from tests.nasty import NASTY, harms

PART = {"HX-Request": "true"}
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'></script>"


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@asynccontextmanager
async def asking(node, folder):
    """A client of the pages of a node: text and headers of an address."""
    async with site_of(node, folder) as site, aiohttp.ClientSession() as session:

        async def ask(path, status=200, **headers):
            async with session.get(site + path, headers=headers) as answer:
                text = await answer.text()
                assert answer.status == status, text
                return text, answer.headers

        yield ask


@pytest.fixture
async def get(told_world, tmp_path):
    async with asking(told_world.node, tmp_path) as ask:
        yield ask


@pytest.fixture
def notebook(tmp_path):
    """An empty log, with a node that serves it."""
    with Notebook.at(tmp_path / "notebook") as made:
        made.node = SmallNode(made, tmp_path / "local.sqlite")
        yield made
        made.node.local.close()


def rows(text):
    """The short ids of the table, from top to bottom."""
    return re.findall(r'data-id="(\w+)"', text)


async def chart_of(ask, search=""):
    return json.loads((await ask(f"/chart.json{search}"))[0])


@pytest.mark.slow
async def test_it_says_how_far_the_task_is_and_what_is_only_reported(get, told_world):
    text, _ = await get("/")
    page = whole_page(text)
    best, reported = (short_id(told_world.runs[name].id) for name in ("confirmed", "reported"))
    assert "Best confirmed 1.7150 ±" in page.text
    assert f"/run/{best}" in page.links
    assert "Best reported, not verified 1.6500" in page.text
    assert f"/run/{reported}" in page.links
    assert "1 failed" in page.text
    assert "floor" not in page.text.replace("distance to floor", "")  # this task has none


async def test_the_table_has_every_run_that_the_chart_has(get):
    text, _ = await get("/?size=200")
    chart = await chart_of(get)
    drawn = [mark["id"] for mark in chart["marks"]] + chart["dots"]["id"] + chart["failures"]["id"]
    assert sorted(rows(text)) == sorted(drawn)
    assert chart["total"] == len(drawn)
    assert (chart["maximize"], chart["floor"], chart["binned"]) == (False, None, False)


async def test_what_changed_follows_the_run_whole_and_its_author_stands_last(tmp_path):
    names = [f"A_SETTING_WITH_A_LONG_NAME_{number}" for number in range(7)]
    with empty_world(tmp_path) as world:
        first = world.publish(1.9, "first", genome=dict.fromkeys(names, 1))
        world.publish(1.8, "second", parent=first, genome=dict.fromkeys(names, 2), by=ANN)
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
            table = await (await session.get(f"{site}/")).text()
            parents = await (await session.get(f"{site}/run/{short_id(first.id)}")).text()
    heads = re.findall(r'<th scope="col" class="c-(\w+)', table)
    assert heads[:3] + heads[-1:] == ["number", "run", "words", "by"]
    kids = parents.partition("Child runs")[2].partition("</ul>")[0]
    for text in (table.partition("<tbody>")[2].partition("</tr>")[0], kids):
        assert re.findall(r">(A_\w+) 1→2<", text) == names, text


async def test_the_key_is_a_filter_by_marks(get, told_world):
    text, _ = await get("/?state=refuted,fraud")
    assert set(rows(text)) == {short_id(told_world.runs[name].id) for name in ("refuted", "fraud")}
    assert 'value="refuted" checked' in text
    assert 'value="confirmed" checked' not in text
    chart = await chart_of(get, "?state=refuted,fraud")
    assert {mark["mark"] for mark in chart["marks"]} == {"refuted", "fraud"}
    assert (chart["dots"]["id"], chart["failures"]["id"]) == ([], [])
    assert chart["matching"] == 2


@pytest.mark.parametrize(("query", "titles"), [
    ("q=nobodywrotethis", set()),
    ("q=not+replicated", {"not replicated"}),
    ("has=DEPTH&by=me", {"confirmed", "reported", "crashed"}),
    ("hardware=card+of+disputed", {"disputed"}),
])  # fmt: skip
async def test_filters(get, told_world, query, titles):
    text, _ = await get(f"/?{query}")
    assert set(rows(text)) >= {short_id(told_world.runs[title].id) for title in titles}
    assert "clear filters" in page_of(text).text
    if not titles:
        assert "No run matches." in page_of(text).text


async def test_a_part_has_the_table_and_the_short_address(get):
    text, headers = await get("/?sort=value&state=&q=&by=&has=&hardware=&since=0&to=0&x=number&y=&chart=", **PART)
    assert headers["HX-Push-Url"] == "/?sort=value"
    assert text.lstrip().startswith('<div id="results"')
    page_of(text)
    values = re.findall(r'<(?:b|s) class="num[^"]*">([\d.]+)<', text)
    assert values == sorted(values)


@pytest.mark.parametrize("condition", ["LR%3E%3E", "%3C", "value%3C", "a%3D1,,%3E", "%3Cscript%3E"])
async def test_a_condition_that_is_none_is_refused_in_a_sentence(get, condition):
    text, _ = await get(f"/?where={condition}", **PART)
    assert text.lstrip().startswith('<div id="results"')
    assert "is no condition on runs: such as LR>=0.01" in page_of(text).text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("address", "sentence", "typed"),
    [
        ("where=LRR%3E%3D0.1&sort=value", "LRR", 'name="where" value="LRR&gt;=0.1"'),
        ("group=WIDHT", "no run has a setting “WIDHT”", 'name="group" value="WIDHT"'),
        ("where=%3C", "is no condition on runs", 'name="where" value="&lt;"'),
    ],
)
async def test_an_address_with_an_unknown_setting_keeps_the_form(get, address, sentence, typed):
    text, _ = await get(f"/?{address}", status=400)
    assert sentence in re.search('role="alert">([^<]*)<', text)[1]
    assert typed in text
    assert "Every run" in whole_page(text).text
    assert not rows(text)


@pytest.mark.slow
async def test_a_part_of_the_axis_narrows_the_table(get):
    assert len(rows((await get("/?since=3&to=5"))[0])) == 3
    text, _ = await get("/?since=4&q=refuted&sort=value")
    assert len(rows(text)) == 1
    times = [row["time_ms"] for row in json.loads((await get("/runs.json?sort=time"))[0])]
    assert len(rows((await get(f"/?x=time&since={times[2]}&to={times[4]}"))[0])) == 3
    assert "No run matches." in page_of((await get("/?since=100"))[0]).text


async def test_without_scripts_the_chart_is_a_picture(get, told_world):
    text, _ = await get("/?x=time&state=confirmed,refuted,failed")
    address = re.search('<noscript><img src="([^"]+)"', text).group(1)
    picture, headers = await get(unescape(address))
    assert headers["Content-Type"].startswith("image/svg+xml")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    drawn = [
        element.get("class")
        for element in ElementTree.fromstring(picture).iter()
        if element.get("class", "").startswith("m ")
    ]
    assert sorted(drawn) == ["m confirmed", "m confirmed", "m refuted"]
    every = ElementTree.fromstring((await get("/chart.svg"))[0])
    assert {"m fraud", "m disputed", "m leading"} <= {element.get("class") for element in every.iter()}
    for search in ("?y=distance", "?y=full&x=cost", "?q=nobodywrotethis", "?since=3&to=4"):
        ElementTree.fromstring((await get(f"/chart.svg{search}"))[0])


async def test_columns_are_chosen_in_the_address(get):
    usual, _ = await get("/")
    text, headers = await get("/?cols=hardware&cols=reported&cols=nonsense", **PART)
    assert headers["HX-Push-Url"] == "/?cols=reported,hardware"
    heads = re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?([^<]+)', text)
    assert heads == ["Run", "Reported", "Hardware"]
    assert "card of confirmed" in text
    assert "Hardware" not in re.findall(r"<th scope=.col.[^>]*>([^<]+)", usual)


async def test_runs_are_taken_along_as_files_with_absolute_times(get, told_world):
    text, headers = await get("/runs.csv?state=refuted,crashed,confirmed&sort=value&size=1")
    assert headers["Content-Disposition"] == 'attachment; filename="grammar-runs.csv"'
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    table = list(csv.DictReader(io.StringIO(text)))
    names = {run.id: name for name, run in told_world.runs.items()}
    assert [names[parse_id(row["run"])] for row in table] == ["refuted", "confirmed", "first"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", table[0]["when"])
    assert (await get("/runs.csv?cols=reported&q=refuted"))[0].splitlines()[0] == "run,reported"
    run_rows = json.loads((await get("/runs.json?size=1"))[0])
    assert sorted(short_id(parse_id(row["id"])) for row in run_rows) == sorted(rows((await get("/?size=200"))[0]))
    assert json.loads((await get("/runs.json?q=nobodywrotethis"))[0]) == []


async def test_a_page_of_the_table_keeps_its_runs(get):
    first, _ = await get("/?size=5", **PART)
    following = re.search(r'rel="next" href="([^"]+)"', first).group(1)
    assert "until=" in following
    second, _ = await get(unescape(following), **PART)
    assert len(rows(first)) == len(rows(second)) == 5
    assert not set(rows(first)) & set(rows(second))
    back = re.search(r'rel="prev" href="([^"]+)"', second).group(1)
    assert rows((await get(unescape(back), **PART))[0]) == rows(first)


@pytest.mark.parametrize(
    "nonsense", ["page=x", "state=nonsense", "sort=name", "size=0", "x=y", "unknown=1", "page=9999"]
)
async def test_a_wrong_address_shows_what_is_usual(get, nonsense):
    assert whole_page((await get(f"/?{nonsense}"))[0])


async def test_a_wrong_participant_is_told(get):
    assert "beginning of its key" in whole_page((await get("/?by=nobody", 400))[0]).text


async def test_no_such_task_is_told(get):
    whole_page((await get("/?task=nothing", 404))[0])


async def test_a_card_tells_a_run(get, told_world):
    text, _ = await get(f"/card/{short_id(told_world.runs['refuted'].id)}")
    page = page_of(text)
    assert "refuted" in page.text
    assert "DEPTH 6 → 7" in page.text
    await get("/card/aaaaaaaa", 404)


async def test_without_a_task_it_says_how_to_begin(notebook, tmp_path):
    async with asking(notebook.node, tmp_path) as ask:
        page = whole_page((await ask("/"))[0])
    assert "No task is in the log yet." in page.text
    assert "autoresearch work" in page.commands


@pytest.mark.parametrize(("state", "advice"), [("idle", "autoresearch work"), ("working", "appears here when it ends")])
async def test_before_the_first_run_it_says_what_the_node_does(notebook, tmp_path, state, advice):
    notebook.task()
    notebook.node.state = state
    async with asking(notebook.node, tmp_path) as ask:
        page = whole_page((await ask("/"))[0])
    assert "No run yet" in page.text
    assert f"This node is {state}: because" in page.text
    assert advice in page.text + " ".join(page.commands)
    assert "chart" not in page.ids


async def test_with_failures_alone_it_says_so(notebook, tmp_path):
    task = notebook.task()
    notebook.run(task, status="crashed", reason="division by zero")
    async with asking(notebook.node, tmp_path) as ask:
        text, chart = (await ask("/"))[0], await chart_of(ask)
    page = whole_page(text)
    assert "No run has a value yet" in page.text
    assert "1 run failed." in page.text
    assert len(chart["failures"]["id"]) == 1
    assert "best reported" not in page.text


async def test_alone_the_best_is_reported_and_nothing_is_confirmed(notebook, tmp_path):
    task = notebook.task(direction="maximize", floor=2.0)
    first = notebook.run(task, 1.0)
    notebook.run(task, 1.5, parent=first, source="DEPTH = 5")
    async with asking(notebook.node, tmp_path) as ask:
        text, chart = (await ask("/?y=distance"))[0], await chart_of(ask)
    page = whole_page(text)
    assert "Best reported 1.5000 reported val_bpb, higher is better" in page.text
    assert "50.0 %" in page.text
    assert "Nothing is confirmed yet." in page.text
    assert (chart["maximize"], chart["floor"]) == (True, 2.0)
    assert "distance to floor" in page.text
    assert "sort=-value" in text  # the best first, at the first click


async def test_what_strangers_write_is_text(tmp_path):
    evil = f"{MARKUP} {NASTY}"
    with empty_world(tmp_path / "world") as world:
        run_fields = {
            "device": evil[:110],
            "proposer": Proposer(name=MARKUP[:40]),
            "genome": {MARKUP[:40]: evil[:60], "LR": "y" * 120},
        }
        run = world.publish(1.5, evil[:110], by=STRANGER, **run_fields)
        world.publish(1.2, "z" * 120, by=ANN, parent=run, **run_fields)
        world.publish(None, evil[:110], by=STRANGER, status="crashed", reason=evil, **run_fields)
        async with asking(world.node, tmp_path) as ask:
            whole, part = (await ask("/"))[0], (await ask("/", **PART))[0]
            card, data = (await ask(f"/card/{short_id(run.id)}"))[0], (await ask("/chart.json"))[0]
            picture, _ = await ask("/chart.svg")
    whole_page(whole)
    for text in (part, card):
        page_of(text)
    ElementTree.fromstring(picture)
    for text in (whole, part, card, data, picture):
        assert not harms(text)
    for text in (whole, part, card):
        assert "<script>alert" not in text
        assert set(re.findall("<img[^>]*", text)) <= set(re.findall('<img src="/chart.svg"[^>]*', text))
    chart = json.loads(data)
    assert all(len(mark.get("label", "")) <= 40 and not harms(mark.get("label", "")) for mark in chart["marks"])


async def test_the_summary_says_what_the_best_is_worth_in_other_sizes(notebook, tmp_path):
    small, large = notebook.task(), notebook.task("grammar-l", budget=1e10)
    notebook.run(small, 1.5)
    notebook.run(small, 1.2, source="DEPTH = 9\n")
    start = notebook.run(large, 1.4, budget=1e10)
    async with asking(notebook.node, tmp_path) as ask:
        assert "grammar-l · not tried there · best there 1.4000" in (await ask("/?task=grammar"))[0]
        notebook.run(large, 1.3, source="DEPTH = 9\n", parent=start, budget=1e10)
        text = (await ask("/?task=grammar"))[0]
    assert "grammar-l · 1.3000 there in 1 run, gain +0.1000 · best there 1.3000" in text


@pytest.mark.parametrize(
    "path",
    ["/", "/board", "/tree", "/effects", "/notes", "/queue", "/verifications", "/lineage", "/compare", "/runs.csv"],
)
async def test_a_page_is_about_the_task_that_its_chooser_names(notebook, tmp_path, path):
    ran, waits = notebook.task("moons"), notebook.task("comets")
    run = short_id(notebook.run(ran, 0.5))
    notebook.node.front = "comets"
    async with asking(notebook.node, tmp_path) as ask:
        text, _ = await ask(path)
        assert run not in text
        named, _ = await ask(f"{path}?task={waits.hex()[:16]}")
        assert page_of(text).text == page_of(named).text, "as where the address names the task"
        other, _ = await ask(f"{path}?task=moons")
        assert other != named
