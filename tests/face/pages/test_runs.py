"""The page of a run in each of its states, its diff and its log."""

from __future__ import annotations

import aiohttp
import pytest

from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.encoding import format_id, short_id
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import every_state
from tests.face.pages.reading import page_of, whole_page

STATES = {
    "confirmed": "it is better than its parent: compared with its parent by 2 verifiers",
    "provisional": "its value holds: ",
    "reported": "only its author has measured it",
    "not replicated": "it is not better than its parent: compared with its parent by ",
    "disputed": "measured another value; a larger committee is drawn",
    "refuted": "verifiers measured another value",
    "fraud": "its own records prove that it is false",
}


@pytest.fixture(scope="module")
def told_world(tmp_path_factory):
    with every_state(tmp_path_factory.mktemp("every-state")) as world:
        yield world


@pytest.fixture
async def pages(told_world, tmp_path):
    """Pages by their address, or by the title of a run."""
    async with site_of(told_world.node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def ask(path, part=False, status=200):
            path = f"/run/{short_id(told_world.runs[path].id)}" if path in told_world.runs else path
            async with session.get(site + path, headers={"HX-Request": "true"} if part else {}) as response:
                text = await response.text()
                assert response.status == status, text
                return text

        yield ask


@pytest.mark.parametrize(("state", "verdict"), STATES.items())
async def test_a_run_says_its_state_and_why(pages, state, verdict):
    page = whole_page(await pages(state))
    assert state in page.text
    assert verdict in page.text


async def test_a_confirmed_run_has_what_verifiers_measured_beside_the_reported_value(pages, told_world):
    page = whole_page(await pages("confirmed"))
    assert "Verified 1.7150 ±" in page.text
    assert "Reported 1.7000 −0.0150 from what verifiers measured" in page.text
    assert "The 5 measurements as a table" in page.text
    assert "ran it beside its parent" in page.text
    assert "together" in page.text
    assert "depth helps up to nine" in page.text
    assert "why confirmed" in page.text
    assert "card of confirmed" in page.text
    assert "DEPTH" in page.text
    mine = short_id(told_world.runs["confirmed"].id)
    assert [f"autoresearch diff {mine}", f"autoresearch run checkout . --run {mine}"] == page.commands[-4:-2]
    children = page.text.partition("Child runs")[2]
    assert "1 refuted" in children
    assert "1 failed" in children


async def test_a_refuted_value_is_struck_out_and_what_verifiers_measured_leads(pages):
    text = await pages("refuted")
    assert '<s class="muted">0.5000</s>' in text
    assert "Measured by verifiers 1.9000 median of the values that refute it" in whole_page(text).text
    assert "another value" in whole_page(text).text


async def test_a_failed_run_leads_with_its_end(pages):
    page = whole_page(await pages("crashed"))
    assert "division by zero" in page.text
    assert "failed" in page.text
    assert "It has no value, so there is nothing to verify." in page.text
    assert not any("verify" in command for command in page.commands)


async def test_a_run_that_nobody_measured_says_how_to(pages, told_world):
    page = whole_page(await pages("stranger"))
    assert "its author is unattested" in page.text
    assert f"autoresearch verify {short_id(told_world.runs['stranger'].id)}" in page.commands


async def test_a_withdrawn_run_is_still_there(pages):
    page = whole_page(await pages("withdrawn"))
    assert "its author withdrew it" in page.text
    assert "a slip" in page.text
    assert "Child runs None yet." in page.text


@pytest.mark.parametrize("reference", ["@", "@~1", "@mine"])
async def test_the_best_run_and_its_parents_have_addresses(pages, reference):
    whole_page(await pages(f"/run/{reference}"))


async def test_an_address_may_have_a_whole_id_or_a_beginning(pages, told_world):
    for name in (format_id(told_world.runs["first"].id), short_id(told_world.runs["first"].id)[:6]):
        assert "1.9" in whole_page(await pages(f"/run/{name}")).text


async def test_what_is_no_run_is_a_page_that_says_so(pages, told_world):
    whole_page(await pages("/run/aaaaaaaa", status=404))
    assert "nothing is at /runs/aaaaaaaa" in whole_page(await pages("/runs/aaaaaaaa", status=404)).text
    note = told_world.village.log.records.newest(kind="note", limit=1)[0]
    assert "not a run" in whole_page(await pages(f"/run/{format_id(note.id)}", status=400)).text


async def test_the_baseline_changed_nothing(pages, told_world):
    page = whole_page(await pages(f"/run/{short_id(told_world.village.baseline.id)}"))
    assert "it has no parent to differ from" in page.text
    assert "The program printed nothing." in page.text


async def test_the_diff_of_a_program_of_several_files(pages, told_world):
    address = f"/run/{short_id(told_world.runs['confirmed'].id)}/diff"
    part = page_of(await pages(address, part=True))
    assert "in 2 files" in part.text
    assert "model.py +1 −0" in part.text
    assert part.headings == []
    assert "model.py" in whole_page(await pages(address)).text


async def test_the_page_waits_for_no_diff(pages, told_world):
    """The source of a run is nowhere: the page is there, and the part says so."""
    run = told_world.publish(1.62, "nowhere", has_source=False)
    text = await pages("nowhere")
    assert f'hx-get="/run/{short_id(run.id)}/diff"' in text
    part = page_of(await pages(f"/run/{short_id(run.id)}/diff", part=True))
    assert "is not on this machine" in part.text or "nobody" in part.text.lower()


async def test_the_end_of_a_log_is_text(pages, told_world):
    text = await pages(f"/run/{short_id(told_world.runs['confirmed'].id)}/log", part=True)
    assert "\x1b" not in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert "step 1 loss 1.9" in page_of(text).text
    silent = page_of(await pages(f"/run/{short_id(told_world.runs['first'].id)}/log", part=True))
    assert "printed nothing" in silent.text


@pytest.mark.slow
async def test_a_hidden_run_and_its_participant_say_so_and_have_a_way_back(node, tmp_path):
    log, run = node.log, node.log.records.newest(kind="run", limit=1)[0]
    who = participant_of(log, run.author, run.time)
    async with site_of(node, tmp_path) as site, aiohttp.ClientSession() as session:

        async def text(path):
            return await (await session.get(site + path)).text()

        page, participant = f"/run/{short_id(run.id)}", f"/participants/{who.key}"
        assert "hidden by you" not in await text(page) + await text(participant)
        hide(log, [HiddenRow(run.id, b"", "a reason <b>", 0), HiddenRow(run.author, b"", "", 0)])
        page_text = await text(page)
        assert "you hide it (a reason &lt;b&gt;)" in page_text
        assert "Hide it no longer" in page_text
        assert f"autoresearch network hide {short_id(run.id)} --undo" in page_text
        for path in ("/", "/board", "/notes", "/participants", "/find?q="):
            assert f"/run/{short_id(run.id)}" not in await text(path), path
        who_is_hidden = await text(participant)
        assert "you hide its participant" in who_is_hidden
        assert f"autoresearch network hide {who.key[:16]} --undo" in who_is_hidden


@pytest.mark.parametrize(("pages_only", "posts"), [(False, {"/v1/stars", "/v1/notes", "/v1/hidden"}), (True, set())])
async def test_controls_are_not_on_a_mirror(told_world, tmp_path, pages_only, posts):
    address = f"/run/{short_id(told_world.runs['confirmed'].id)}"
    async with site_of(told_world.node, tmp_path, pages_only=pages_only) as site, aiohttp.ClientSession() as session:
        response = await session.get(site + address)
        assert set(page_of(await response.text()).posts) == posts
