"""Runs in groups by a setting on Progress, two settings against each other on Effects, metrics beside each other."""

from __future__ import annotations

import re

import aiohttp
import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.requests import GroupsOf
from autoresearch.ask.runs.groups import groups_answer
from autoresearch.errors import UsageError
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.encoding import format_id, short_id
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import empty_world
from tests.face.pages.reading import whole_page
from tests.log.standing.village import DEFINITION


@pytest.fixture
def world(tmp_path):
    with empty_world(tmp_path) as made:
        yield made


def grouped(world, *setting, **request):
    log = world.village.log
    answer = groups_answer(log, find_task(log), GroupsOf(setting=list(setting), **request))
    assert sum(group.runs for group in answer.groups) == answer.runs
    return answer


def test_groups_are_those_of_the_log_as_it_is(world):
    for number in (1, 2, 3):
        run = world.publish(1.5, f"{number}", genome={"LR": 0.1})
        assert next(group.runs for group in grouped(world, "LR").groups) == number
    hide(world.village.log, [HiddenRow(run.id, b"", "", 1)])
    assert next(group.runs for group in grouped(world, "LR").groups) == 2


def test_each_value_of_few_is_a_group_with_its_best_its_median_and_its_middle_half(world):
    runs = {}
    for number, value in enumerate((1.5, 1.4, 1.9, 1.6, 1.8)):
        runs[value] = world.publish(value, f"{number}", genome={"LR": 0.1})
    world.publish(None, "crashed", status="crashed", genome={"LR": 0.1})
    world.publish(1.2, "other", genome={"LR": 0.02})
    world.publish(1.3, "word", genome={"LR": "warm"})
    world.publish(1.3, "none", genome={"DEPTH": 3})
    few, many, word, none = grouped(world, "LR", where="value<3").groups
    assert [group.settings for group in (few, many, word, none)] == [["0.02"], ["0.1"], ["warm"], ["none"]]
    assert (many.runs, many.failed, many.best, many.median, many.low, many.high) == (5, 0, 1.4, 1.6, 1.5, 1.8)
    assert many.best_run == format_id(runs[1.4].id)
    assert (few.low, few.high, few.best) == (None, None, 1.2), "the middle half of one value says nothing"
    assert [group.where for group in (few, many, word, none)] == ["LR=0.02", "LR=0.1", "LR=warm", ""]
    every = grouped(world, "LR").groups
    assert [(group.runs, group.failed) for group in every] == [(1, 0), (6, 1), (1, 0), (2, 0)], (
        "the baseline states none"
    )


@pytest.mark.parametrize(
    "word", ["a,b", "a|b", "a<b", " a", "3", "1e5", "inf", "x" * 500, '"', "<b>", "", "a=b", "é\u202e"]
)
def test_a_condition_finds_the_runs_of_its_group_or_there_is_none(world, word):
    world.publish(1.5, "one", genome={"OPT": word})
    world.publish(1.6, "two", genome={"OPT": "adam"})
    world.publish(1.7, "three", genome={"OPT": 3})
    answer = grouped(world, "OPT")
    assert [group.runs for group in answer.groups] == [1, 1, 1, 1]
    for group in answer.groups:
        if group.where:
            [same] = grouped(world, "OPT", where=group.where).groups
            assert (same.runs, same.settings) == (1, group.settings)


@pytest.mark.slow
def test_many_numbers_are_ranges_with_as_many_runs_each_and_many_words_have_a_rest(world):
    for number in range(24):
        world.publish(1.5, f"{number}", genome={"LR": 1e-9 * 10**number, "OPT": f"word {number}", "+muon": number == 3})
    answer = grouped(world, "LR")
    assert [group.runs for group in answer.groups] == [3] * 8 + [1]
    assert answer.groups[0].settings == ["1e-9 .. 1e-7"]
    for group in answer.groups[:-1]:
        assert grouped(world, "LR", where=group.where).runs == 3, group.where
    words = grouped(world, "OPT").groups
    assert [(group.settings[0], group.runs) for group in words[-2:]] == [("others", 12), ("none", 1)]
    assert [(group.settings[0], group.runs) for group in grouped(world, "+muon").groups] == [
        ("off", 23),
        ("on", 1),
        ("none", 1),
    ]


def test_the_better_direction_is_that_of_the_metric(tmp_path):
    metric = {**DEFINITION["metric"], "direction": "maximize"}
    with empty_world(tmp_path, definition={**DEFINITION, "metric": metric}) as world:
        for value in (1.5, 1.4, 1.9):
            world.publish(value, f"{value}", genome={"LR": 0.1})
        assert grouped(world, "LR").groups[0].best == 1.9


def test_two_settings_cross_and_names_that_no_setting_has_are_refused(world):
    for lr in (0.1, 0.2):
        for optimizer in ("adam", "sgd"):
            world.publish(1 + lr, f"{lr} {optimizer}", genome={"LR": lr, "OPT": optimizer})
    answer = grouped(world, "LR", "OPT")
    assert answer.values == [["0.1", "0.2", "none"], ["adam", "sgd", "none"]]
    assert [group.where for group in answer.groups][:2] == ["LR=0.1,OPT=adam", "LR=0.1,OPT=sgd"]
    for name in ('"', "a\\", "a\nb", ""):
        with pytest.raises(UsageError, match="no setting has such a name"):
            grouped(world, name)


@pytest.mark.slow
async def test_progress_has_groups_whose_names_lead_to_their_runs(world, tmp_path):
    for number in range(6):
        world.publish(1.5 + number / 10, f"run {number}", genome={"LR": 0.1 * (number % 2 + 1), "<b>": 1})
    async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def text(path, headers=None, status=200):
            async with session.get(site + path, headers=headers) as response:
                assert response.status == status
                return await response.text()

        page = whole_page(await text("/?group=LR&where=value<1.9"))
        assert "median and middle half of their values" in page.text
        [to] = [link for link in page.links if "LR%3D0.2" in link]
        assert "group=" not in to
        assert "value%3C1.9" in to
        assert "2 runs found" in whole_page(await text(to)).text
        assert "Runs by <code>LR</code>" in await text("/?group=LR", {"HX-Request": "true"})
        assert "no setting has such a name" in await text('/?group="', {"HX-Request": "true"})
        await text('/?group="', status=400)
        assert "Runs by <b>" in whole_page(await text("/?group=<b>")).text
        assert "no run has a setting “NOTHING”: there are: LR" in await text("/?group=NOTHING", status=400)


@pytest.mark.slow
async def test_two_settings_are_a_table_with_the_best_pair_or_a_sentence(world, tmp_path):
    async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def page(path, read=whole_page):
            async with session.get(site + path) as response:
                assert response.status == 200
                return read(await response.text())

        path = "/parts/contour?setting=LR&second=OPT"
        assert "Too few runs with a value" in (await page(path)).text
        parent = None
        for number in range(24):
            optimizer = ("adam", "sgd")[number % 2]
            genome = {"LR": 0.1 * (number % 3 + 1), "OPT": optimizer}
            value = 1 + 0.1 * (number % 3) + (optimizer == "sgd")
            parent = world.publish(value, f"{number}", genome=genome, parent=parent)
        table = await page(path)
        assert "The best median of val_bpb is 1.0000 , in 4 runs with LR 0.1, OPT adam; the worst is" in table.text
        assert "LR=0.1,OPT=adam" in " ".join(re.sub("%3D", "=", link) for link in table.links)
        effects = await page("/effects?setting=LR&second=OPT")
        assert any("second=OPT" in link for link in effects.links)


@pytest.mark.slow
async def test_metrics_that_programs_state_stand_beside_each_other(world, tmp_path):
    first = world.publish(1.5, "first", metrics={"accuracy": 0.9, "<b>": 1e-9})
    second = world.publish(1.4, "second", parent=first, metrics={"accuracy": 0.95})
    bare = world.publish(1.3, "bare", parent=second)
    names = [short_id(run.id) for run in (first, second, bare)]
    async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def page(path):
            async with session.get(site + path) as response:
                return whole_page(await response.text()).text

        run = await page(f"/run/{names[1]}")
        assert "Metrics, as their authors state Metric this run its parent <b> – 1e-9 accuracy 0.95 0.9" in run
        assert "Metrics, as their authors state" in await page(f"/run/{names[2]}")
        assert "as the author of each states them" in await page(f"/compare?runs={','.join(names)}")
        assert "accuracy 0.9 0.95 –" in await page(f"/compare?runs={','.join(names)}")
