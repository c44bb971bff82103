"""The effects page: settings by importance, and the packed columns that its pictures are drawn from."""

from __future__ import annotations

import json
import struct

import aiohttp
import pytest

from autoresearch.ask.runs.answers import EffectView
from autoresearch.face.pages.effects import ranking
from autoresearch.record.encoding import short_id
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import empty_world, every_state
from tests.face.pages.hostile import EVIL, MARKUP
from tests.face.pages.reading import whole_page
from tests.log.standing.village import ANN, BEN
from tests.nasty import harms


def effect(name, median=None, low=None, high=None):
    return EffectView(name=name, pairs=9, better=5, worse=4, median=median, low=low, high=high)


def test_the_surest_effect_is_first_whichever_way_it_goes_and_what_cannot_be_told_apart_shares_a_rank():
    effects = [
        effect("UNSURE", -0.5, -9.0, 2.0),
        effect("HURTS", 0.3, 0.2, 0.4),
        effect("HELPS", -1.0, -1.1, -0.9),
        effect("HELPS_TOO", -1.0, -1.05, -0.95),
        effect("SELDOM", -7.0),
    ]
    ranked = ranking([view for view in effects if view.name != "UNSURE"])
    assert [row.effect.name for row in ranked.rows] == ["HELPS_TOO", "HELPS", "HURTS", "SELDOM"]
    assert [row.place for row in ranked.rows] == [(1, 2), (1, 2), (3, 3), None]
    assert [row.better for row in ranked.rows] == [True, True, False, None]
    assert ranking(effects, maximize=True).rows[0].better is False
    assert [row.better for row in ranking(effects).rows if row.effect.name == "UNSURE"] == [None]


def test_an_axis_is_not_stretched_by_the_interval_of_an_explosion():
    ranked = ranking([effect("LR", -0.1, -0.2, -0.05), effect("DECAY", 0.2, -0.4, 738.9)])
    assert ranked.axis.high < 1
    assert ranked.rows[1].high == 100.0
    assert ranking([effect("LR", 0.0, 0.0, 0.0)]).rows[0].middle == 50.0


def unpacked(body):
    """The head, values, parents, one setting, marks and ids of packed columns."""
    size = struct.unpack_from("I", body)[0]
    head = json.loads(body[4 : 4 + size])
    runs, at = head["runs"], 4 + size
    assert at % 4 == 0
    columns = [struct.unpack_from(f"{runs}{kind}", body, at + 4 * runs * place) for place, kind in enumerate("fif")]
    at += 12 * runs
    marks = [head["marks"][number] for number in body[at : at + runs]]
    text = body[at + runs :].decode()
    assert len(text) == 8 * runs
    return head, *columns, marks, [text[8 * run : 8 * run + 8] for run in range(runs)]


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.mark.slow
async def test_the_page_has_the_settings_and_its_data_each_run_with_its_parent_and_its_setting(told_world, tmp_path):
    names = {title: short_id(run.id) for title, run in told_world.runs.items()}
    async with site_of(told_world.node, tmp_path) as site, aiohttp.ClientSession() as session:
        async with session.get(f"{site}/effects?setting=DEPTH") as response:
            page = whole_page(await response.text())
        async with session.get(f"{site}/columns.bin?setting=DEPTH") as response:
            assert response.headers["Content-Encoding"] == "gzip"
            body = await response.read()
            head, values, parents, depths, marks, ids = unpacked(body)
        plain = {"Accept-Encoding": "identity"}
        async with session.get(f"{site}/columns.bin?setting=DEPTH", headers=plain) as response:
            assert "Content-Encoding" not in response.headers
            assert await response.read() == body
        async with session.get(f"{site}/columns.bin?setting=%22&setting=%2Bnone") as response:
            assert response.status == 400, "no program has such a name"
    assert "Rank Setting" in page.text
    assert "raised: 1 of" in page.text
    assert "crashed" in page.text
    assert (head["metric"], head["best"], head["settings"][0]["name"]) == ("val_bpb", names["confirmed"], "DEPTH")
    run = {title: ids.index(name) for title, name in names.items() if name in ids}
    assert "withdrawn" not in run
    assert marks[run["refuted"]] == "refuted"
    assert values[run["confirmed"]] == pytest.approx(1.715)
    assert values[run["crashed"]] != values[run["crashed"]], "it has none"
    assert parents[run["confirmed"]] == run["first"]
    assert depths[run["first"]] == 5
    baseline = ids.index(short_id(told_world.village.baseline.id))
    assert (parents[baseline], parents[run["first"]]) == (-1, baseline)


async def test_the_data_of_the_pictures_are_sent_again_only_after_the_log_has_changed(tmp_path):
    with empty_world(tmp_path) as world:
        world.publish(1.5, "first")
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:

            async def status(tag="", setting="DEPTH"):
                request = session.get(f"{site}/columns.bin?setting={setting}", headers={"If-None-Match": tag})
                async with request as response:
                    await response.read()
                    return response.status, response.headers["ETag"]

            code, tag = await status()
            assert code == 200
            assert await status(tag) == (304, tag)
            assert (await status(tag, setting="LR"))[0] == 200
            world.publish(1.4, "second")
            code, newer = await status(tag)
            assert (code, newer == tag) == (200, False)


async def test_of_many_runs_a_sample_is_drawn_and_those_that_led_are_in_it(told_world, tmp_path):
    async with site_of(told_world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def columns(query):
            async with session.get(f"{site}/columns.bin?setting=DEPTH&{query}") as response:
                head, _, _, _, marks, ids = unpacked(await response.read())
                return head, dict(zip(ids, marks, strict=True))

        every, all_runs = await columns("sample=0")
        assert (every["sampled"], every["left_out"]) == (False, 0)
        few, drawn = await columns("sample=1")
        assert few["sampled"]
        assert few["left_out"] == len(all_runs) - len(drawn) > 0
        assert drawn.items() <= all_runs.items()
        assert {run for run, mark in all_runs.items() if mark == "leading"} <= drawn.keys()


async def test_where_nothing_was_changed_the_page_says_so(tmp_path):
    with empty_world(tmp_path) as world:
        async with (
            site_of(world.node, tmp_path) as site,
            aiohttp.ClientSession() as session,
            session.get(f"{site}/effects") as response,
        ):
            page = whole_page(await response.text())
    assert "No run has changed a setting of its parent run yet." in page.text


async def test_conditions_on_settings_and_the_value_choose_the_runs_of_the_table(tmp_path):
    with empty_world(tmp_path) as world:
        for number, optimizer in enumerate(("adam", "sgd", "lion", 3)):
            genome = {"LR": 0.01 * (number + 1), "OPT": optimizer} | ({"+muon": True} if number == 1 else {})
            world.publish(1.5 + number / 10, f"run {number}", genome=genome)
        world.publish(None, "crashed", status="crashed", genome={"LR": 0.02, "OPT": "adam"})
        names = {short_id(run.id): title for title, run in world.runs.items()}
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:

            async def titles_where(where, status=200):
                request = session.get(f"{site}/effects", params={"where": where}, headers={"HX-Request": "true"})
                async with request as response:
                    text = await response.text()
                    assert response.status == status, text
                    return {title for name, title in names.items() if name in text} if status == 200 else text

            assert await titles_where("LR>=0.02, LR<0.04") == {"run 1", "run 2", "crashed"}
            assert await titles_where("LR>=0.02,value<=1.7") == {"run 1", "run 2"}
            assert await titles_where("OPT=adam|lion") == {"run 0", "run 2", "crashed"}
            assert await titles_where("OPT=3") == await titles_where("OPT>=1") == {"run 3"}, "a word is no number"
            assert await titles_where("+muon=1") == {"run 1"}
            assert await titles_where("+muon=0,value<9") == {"run 0", "run 2", "run 3"}
            assert await titles_where("LR>9") == set()
            assert "there are: value, LR, OPT" in await titles_where("OTHER>0", status=400)
            for wrong in ("LR", "LR>=much", "LR=>1", '"LR"=1', "<b>>1"):
                assert "such as LR&gt;=0.01" in await titles_where(wrong, status=400)
            async with session.get(f"{site}/", params={"where": "LR<0.02"}) as response:
                progress = whole_page(await response.text())
            assert "1 run found" in progress.text


async def test_dead_ends_stand_on_the_page_whatever_strangers_wrote_into_them(tmp_path):
    with empty_world(tmp_path) as world:
        first = world.publish(1.5, "first", genome={"LR": 0.1, MARKUP[:40]: 1}, by=ANN)
        for number in range(3):
            genome = {"LR": 0.1, MARKUP[:40]: 9 + number}
            world.publish(
                None,
                f"run {number}",
                parent=first,
                status="crashed",
                reason=f"{EVIL} at {number}",
                genome=genome,
                by=BEN,
            )
        runs = [short_id(run.id) for title, run in world.runs.items() if title != "first"]
        async with (
            site_of(world.node, tmp_path) as site,
            aiohttp.ClientSession() as session,
            session.get(f"{site}/effects") as response,
        ):
            text = await response.text()
    page = whole_page(text)
    assert "Dead ends" in page.text
    assert "at least 9: 3 tries, all failed" in page.text
    assert all(f"/run/{run}" in text for run in runs)
    assert not harms(page.text)
