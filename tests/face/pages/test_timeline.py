"""Who worked on a task when: runs and verifications of each device in equal parts of time."""

from __future__ import annotations

import aiohttp
import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.since import DEVICES_MOST, PARTS, timeline_answer
from autoresearch.trust.keys import KeyPair
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import empty_world, every_state
from tests.face.pages.reading import whole_page
from tests.log.standing.village import ANN, AUTHOR, BEN


def timeline(world, **request):
    log = world.village.log
    return timeline_answer(log, find_task(log), **request)


def test_runs_stand_in_the_part_of_time_in_which_they_ended(tmp_path):
    with empty_world(tmp_path) as world:
        start_ms = world.village.now_ms
        world.publish(1.5, "first", by=ANN)
        world.publish(None, "crashed", by=ANN, status="crashed")
        world.village.now_ms = start_ms + 96_000_000
        world.publish(1.4, "last", by=BEN)
        answer = timeline(world)
        ann, *rest = answer.rows
        assert (ann.device, ann.runs, ann.failed, ann.verifications) == (ANN.public.hex(), 2, 1, 0)
        assert [(part.part, part.runs, part.failed) for part in ann.parts] == [(0, 2, 1)]
        [last] = [row for row in rest if row.device == BEN.public.hex()]
        assert [part.part for part in last.parts] == [PARTS - 1]
        assert answer.part_ms * PARTS >= answer.to_ms - answer.since_ms
        [alone] = timeline(world, last_ms=1000).rows
        assert alone.device == BEN.public.hex()


def test_all_of_one_moment_is_one_part_and_no_run_is_no_row(tmp_path):
    with empty_world(tmp_path) as world:
        answer = timeline(world)
        assert (answer.part_ms, [row.runs for row in answer.rows]) == (1, [1]), "the baseline alone"


def test_of_many_devices_those_with_the_most_runs_are_told(tmp_path):
    with empty_world(tmp_path) as world:
        for number in range(DEVICES_MOST + 3):
            world.publish(1.5, f"{number}", by=KeyPair.from_seed(bytes([number]) * 32))
        world.publish(1.4, "more", by=ANN)
        world.publish(1.3, "even more", by=ANN)
        answer = timeline(world)
    assert (len(answer.rows), answer.left_out) == (DEVICES_MOST, 5)
    assert answer.rows[0].device == ANN.public.hex()


@pytest.mark.slow
@pytest.mark.parametrize("span", ["", "day", "week"])
async def test_the_page_has_a_row_for_each_device_and_its_verifications(tmp_path, span):
    with every_state(tmp_path) as world:
        rows = timeline(world).rows
        assert {row.device for row in rows} >= {AUTHOR.public.hex(), ANN.public.hex()}
        assert sum(row.verifications for row in rows) > 5
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
            async with session.get(f"{site}/parts/timeline?span={span}") as response:
                page = whole_page(await response.text())
            async with session.get(f"{site}/parts/timeline?span=year") as response:
                assert response.status == 400
            async with session.get(f"{site}/") as response:
                assert "/parts/timeline" in whole_page(await response.text()).links
    assert "by the times that authors state" in page.text
    assert "A bar below is a verification." in page.text
    assert any("x=time" in link and "since=" in link for link in page.links)
