"""What strangers write into a run is text on every page that shows it, and as long as the page wants it."""

from __future__ import annotations

import aiohttp
import pytest

from autoresearch.records import Note, short_id
from autoresearch.records.kinds import Proposer
from tests.nasty import NASTY, harms
from tests.pages.conftest import site_of
from tests.pages.every_state import empty_world
from tests.pages.reading import page_of, whole_page
from tests.views.village import ANN, BEN, STRANGER

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>&lt;{{ 7 * 7 }}</b>"
EVIL = f"{MARKUP} {NASTY}"
PAGES = ("/run/{run}", "/run/{run}/diff", "/run/{run}/log", "/lineage?of={run}", "/board", "/verifications",
         "/participants", "/participants/{who}", "/parts/branches?of={base}")  # fmt: skip


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    with empty_world(tmp_path_factory.mktemp("evil")) as world:
        text = f"DEPTH = 1  # {EVIL}\n# " + "x" * 1_000_000 + "\n"
        given = {
            "reason": EVIL,
            "device": EVIL[:110],
            "proposer": Proposer(name=MARKUP[:40]),
            "hypothesis": (EVIL * 5)[:1000],
            "environment": {MARKUP[:40]: EVIL[:110], "nasty": NASTY},
            "metrics": {MARKUP[:40]: 1.5},
            "genome": {MARKUP[:40]: EVIL[:60], "DEPTH": 1, "LR": "y" * 120},
        }
        first = world.publish(1.9, EVIL[:110], by=STRANGER, source="DEPTH = 2\n", **given)
        run = world.publish(
            1.8, "z" * 120, by=ANN, parent=first, source=text, log=(EVIL + "\n" + "w" * 1_000_000).encode(), **given
        )
        world.village.append(BEN, "note", Note(topic="insight", text=EVIL, task=world.village.task), [run.id])
        world.village.evaluate(run, 1.2, BEN)
        yield world, first, run


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
