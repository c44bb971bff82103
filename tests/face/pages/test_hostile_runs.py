"""What strangers write into a run is text on every page that shows it, and as long as the page wants it."""

from __future__ import annotations

import aiohttp
import pytest

from autoresearch.record.encoding import short_id
from tests.face.pages.conftest import site_of
from tests.face.pages.hostile import hostile_world
from tests.face.pages.reading import page_of, whole_page
from tests.log.standing.village import STRANGER
from tests.nasty import harms

PAGES = ("/run/{run}", "/run/{run}/diff", "/run/{run}/log", "/lineage?of={run}", "/board", "/verifications",
         "/notes?ask=a", "/participants", "/participants/{who}", "/parts/branches?of={base}")  # fmt: skip


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    with hostile_world(tmp_path_factory.mktemp("evil")) as made:
        yield made


@pytest.mark.parametrize("address", PAGES)
async def test_it_is_text(evil, tmp_path, address):
    world, first, run = evil
    names = {"run": short_id(run.id), "base": short_id(first.id), "who": STRANGER.public.hex()}
    async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
        for part in (True, False):
            async with session.get(
                site + address.format(**names), headers={"HX-Request": "true"} if part else {}
            ) as answer:
                text = await answer.text()
            assert answer.status == 200, text
            assert len(text) < 200_000
            assert not harms(text)
            assert not any(wrong in text for wrong in ("<script>alert", "<img", "<b>&lt;"))
            assert max(map(len, page_of(text).text.split(" "))) < 4_100
        whole_page(text)
