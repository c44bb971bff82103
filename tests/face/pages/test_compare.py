"""Runs beside each other at an address that another node opens too, and notes that are edited where they stand."""

from __future__ import annotations

import aiohttp
import pytest

from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Note
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import every_state
from tests.face.pages.reading import whole_page
from tests.log.standing.village import ANN, AUTHOR


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture
async def get(told_world, tmp_path):
    async with site_of(told_world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def ask(path):
            async with session.get(site + path) as response:
                text = await response.text()
                assert response.status == 200, text
                return str(response.url).removeprefix(site), whole_page(text)

        yield ask


@pytest.mark.slow
async def test_the_address_of_a_comparison_has_whole_ids_each_once_and_keeps_the_rest(told_world, get):
    first, second = (told_world.runs[name].id for name in ("confirmed", "refuted"))
    whole = f"{format_id(first)},{format_id(second)}"
    for named in (f"{short_id(first)},{short_id(second)}", f"{format_id(first)},{short_id(second)},{short_id(first)}"):
        address, page = await get(f"/compare?runs={named}&task=grammar")
        assert address.replace("%2C", ",") == f"/compare?runs={whole}&task=grammar"
        assert "Compare 2 runs" in page.text
    address, _ = await get(f"/compare?runs={whole}")
    assert address.replace("%2C", ",") == f"/compare?runs={whole}"


async def test_a_run_that_is_not_here_is_named_with_how_to_get_it(told_world, get):
    first, second = (format_id(told_world.runs[name].id) for name in ("confirmed", "refuted"))
    gone, other = format_id(told_world.runs["withdrawn"].id), format_id(b"?" * 32)
    address, page = await get(f"/compare?runs={first},{other},{short_id(told_world.runs['refuted'].id)},{gone}")
    assert address.replace("%2C", ",") == f"/compare?runs={first},{other},{second},{gone}"
    assert "Compare 2 runs" in page.text
    for missing in (other, gone):
        assert f"{missing} is not in this node’s log, or its author withdrew it." in page.text
    assert "autoresearch node import FILE" in page.text
    _, alone = await get(f"/compare?runs={other}")
    assert f"{other} is not in this node’s log" in alone.text
    assert "Tick two" in alone.text


async def test_settings_that_differ_are_told_where_a_program_is_not_here(told_world, get):
    first = told_world.runs["confirmed"]
    second = told_world.publish(1.66, "away", parent=first, has_source=False, genome={"DEPTH": 77, "LR": 0.1})
    told_world.node.notebook.now_ms = told_world.village.now_ms
    _, page = await get(f"/compare?runs={format_id(first.id)},{format_id(second.id)}")
    assert "DEPTH 6 77" in page.text
    assert "No setting differs" not in page.text


async def test_an_own_note_can_be_edited_where_it_stands_and_others_cannot(told_world, get):
    village = told_world.village

    def publish(who, text, *links, topic="insight"):
        return village.append(who, "note", Note(topic=topic, text=text, task=village.task), links)

    run = told_world.runs["confirmed"]
    own, others = publish(AUTHOR, "mine", run.id), publish(ANN, "hers", run.id)
    cited = publish(AUTHOR, "cited", topic="hypothesis")
    village.run(1.6, "tries it", links=[cited])
    told_world.node.notebook.now_ms = village.now_ms
    for path in ("/notes", f"/run/{short_id(run.id)}"):
        _, page = await get(path)
        assert format_id(own.id) in page.values
        assert format_id(others.id) not in page.values
        assert format_id(cited.id) not in page.values
    assert "Runs cite it, so it stays as it is" in (await get("/notes"))[1].text
