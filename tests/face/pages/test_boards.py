"""The board, the lineage, the verification queue and the participants, over a log that has every state."""

from __future__ import annotations

import re

import aiohttp
import pytest

from autoresearch.record.encoding import short_id
from autoresearch.trust.roster import Trust
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import PEOPLE, empty_world, every_state
from tests.face.pages.reading import page_of, whole_page
from tests.log.standing.village import ANN, BEN, ROOTS
from tests.record.making import DEFINITION


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture
async def pages(told_world, tmp_path):
    async with site_of(told_world.node, tmp_path) as site, aiohttp.ClientSession() as session:
        yield asking(site, session)


def asking(site, session):
    """A page by its address."""

    async def ask(path, part=False, status=200):
        async with session.get(site + path, headers={"HX-Request": "true"} if part else {}) as response:
            text = await response.text()
            assert response.status == status, text
            return text

    return ask


def name(world, title):
    return short_id(world.runs[title].id)


@pytest.mark.slow
async def test_the_board_has_the_confirmed_runs_with_their_places(pages, told_world):
    page = whole_page(await pages("/board"))
    confirmed = page.text.partition("Confirmed ranked")[2].partition("Participants by")[0]
    assert re.search(
        rf" 1 {name(told_world, 'confirmed')} DEPTH 5→6 1\.7000 1\.7150 ± .*"
        rf" 2 {name(told_world, 'first')} first 1\.9000 1\.8950",
        confirmed,
    )
    assert "fabricator" in page.text
    doubt = page.text.partition("In doubt, or no better")[2]
    assert all(name(told_world, title) in doubt for title in ("refuted", "disputed", "not replicated", "fraud"))
    assert name(told_world, "stranger") in page.text.partition("By unattested participants")[2]
    assert name(told_world, "withdrawn") not in page.text


async def test_the_board_of_a_log_with_nothing_confirmed_says_so(tmp_path):
    with empty_world(tmp_path) as world:
        world.publish(1.9, "alone")
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
            page = whole_page(await asking(site, session)("/board"))
    assert "Nothing is confirmed yet." in page.text
    assert "In doubt, or no better than the parent, by what others measured None." in page.text


async def test_the_board_of_who_works_alone_tells_how_not_to(tmp_path):
    with empty_world(tmp_path, trust=Trust()) as world:
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
            ask = asking(site, session)
            page = whole_page(await ask("/board"))
            whole_page(await ask("/verifications"))
            whole_page(await ask("/participants"))
            whole_page(await ask("/lineage"))
    assert "this network attests nobody" in page.text
    assert "autoresearch network new NAME --for lab" in page.commands


async def test_the_lineage_has_each_step_and_what_lies_beside_it(pages, told_world):
    text = await pages("/lineage?of=" + name(told_world, "reported"))
    page = whole_page(text)
    assert f"From the baseline to {name(told_world, 'reported')} in 4 steps" in page.text
    steps = [name(told_world, title) for title in ("first", "confirmed", "provisional", "reported")]
    places = [page.ids.index(f"s-{step}") for step in steps]
    assert places == sorted(places)
    assert "6 other child runs, the best 1.6" in page.text, "not the refuted value"
    gains = [2.0 - 1.89, 1.89 - 1.71, 1.7 - 1.66, 1.66 - 1.65]
    assert f"3 steps brought {100 * sum(gains[:3]) / sum(gains):.0f} % of the gains" in page.text
    branch = re.search(r'hx-get="(/parts/branches\?[^"]+)"', text)[1].replace("&amp;", "&")
    part = page_of(await pages(branch, part=True))
    assert name(told_world, "refuted") in part.text
    assert name(told_world, "provisional") not in part.text
    assert "Child runs of" in whole_page(await pages(branch)).text


async def test_the_lineage_without_a_name_is_that_of_the_best_run(pages, told_world):
    assert (
        f"From the baseline to {name(told_world, 'confirmed')} in 2 steps" in whole_page(await pages("/lineage")).text
    )
    whole_page(await pages("/lineage?of=aaaaaaaa", status=404))


async def test_the_verification_queue_says_who_is_waited_for(pages, told_world):
    page = whole_page(await pages("/verifications"))
    waiting = page.text.partition("Runs that wait for verifiers")[2].partition("Newest verifications")[0]
    assert re.search(
        rf"{name(told_world, 'disputed')} disputed 1\.6000 disputed evaluation, round 2 0 of \d (not )?drawn", waiting
    )
    assert re.search(rf"{name(told_world, 'reported')} reported 1\.6500 reported evaluation 0 of 3 own", waiting)
    assert name(told_world, "refuted") not in waiting
    newest = page.text.partition("Newest verifications")[2]
    assert re.search(rf"{name(told_world, 'refuted')} refuted refuted evaluation another value 1\.9000", newest)
    assert re.search(rf"{name(told_world, 'confirmed')} confirmed confirmed evaluation the same value 1\.7000", newest)
    assert "autoresearch verify --list" in page.commands


async def test_a_participant_has_its_credit_its_marks_and_its_runs(pages, told_world):
    key = ROOTS[PEOPLE.index(told_world_author(told_world, "refuted"))].public.hex()
    page = whole_page(await pages(f"/participants/{key[:8]}"))
    assert "Its verifications count: named by hand." in page.text
    assert "fabricator reported a value that verifiers refuted" in page.text
    assert "card of refuted" in page.text
    newest = page.text.partition("Newest runs")[2]
    assert name(told_world, "refuted") in newest
    assert name(told_world, "refuted") not in page.text.partition("Best runs")[2].partition("Newest runs")[0]
    whole_page(await pages("/participants/ffffffff", status=404))


def told_world_author(world, title):
    """The device that published a run."""
    return next(who for who in PEOPLE if who.public == world.runs[title].author)


async def test_everybody_has_a_page(pages):
    page = whole_page(await pages("/participants"))
    addresses = [link for link in dict.fromkeys(page.links) if link.startswith("/participants/")]
    assert len(addresses) == 7
    for address in addresses:
        whole_page(await pages(address))


async def test_the_board_of_one_kind_of_hardware(pages, told_world):
    page = whole_page(await pages("/board?hardware=card+of+confirmed"))
    confirmed = page.text.partition("Confirmed ranked")[2].partition("Participants by")[0]
    assert name(told_world, "confirmed") in confirmed
    assert name(told_world, "first") not in page.text
    everything = whole_page(await pages("/board?hardware=compared"))
    assert name(told_world, "first") in everything.text
    assert "Nothing is confirmed on this hardware." in whole_page(await pages("/board?hardware=none")).text


async def test_wall_clock_numbers_are_those_of_this_machine_s_hardware(tmp_path):
    clocked = DEFINITION | {"budget": {"unit": "seconds", "amount": 60.0}}
    with empty_world(tmp_path, definition=clocked) as world:
        for number, who in enumerate((ANN, BEN, ANN, BEN)):
            world.publish(1.5 + number / 10, f"theirs {number}", by=who, device="big card")
        world.publish(1.9, "mine", device="small card")
        async with site_of(world.node, tmp_path) as site, aiohttp.ClientSession() as session:
            own = whole_page(await asking(site, session)("/board"))
            others = whole_page(await asking(site, session)("/board?hardware=compared"))
    assert "compared on one kind of hardware: big card" in own.text
    assert name(world, "mine") in own.text
    assert name(world, "theirs 0") not in own.text
    assert name(world, "theirs 0") in others.text


async def test_the_tasks_have_their_figures(pages):
    page = whole_page(await pages("/tasks"))
    assert re.search(r"grammar \w{12} val_bpb minimize 1\.7150 ± 0\.0257 verified confirmed", page.text)


async def test_components_that_ship_have_a_list_and_a_page_each(pages):
    listed = whole_page(await pages("/components"))
    assert "/component?of=policy.q_table" in listed.links
    assert "Nobody has published one" in listed.text
    filtered = whole_page(await pages("/components?q=sarsa&type=trainer"))
    assert "/component?of=trainer.sarsa" in filtered.links
    assert "/component?of=policy.q_table" not in filtered.links
    page = whole_page(await pages("/component?of=policy.q_table"))
    assert page.commands[:-1] == ["autoresearch install policy q_table"]
    assert "No published agent on this machine uses it yet." in page.text


async def test_a_component_that_is_not_there_is_said(get):
    status, text, _ = await get("/component?of=policy.none")
    assert (status, "no policy.none comes with this program" in text) == (404, True)
