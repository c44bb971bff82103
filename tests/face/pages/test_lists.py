"""Lists on pages that no log brings about by itself: peers, proposals, claims. What others wrote is text."""

from __future__ import annotations

from autoresearch.ask.discussion import OpenClaim
from autoresearch.ask.node import NetworkStatus, PeersAnswer, PeerView, QueuedRun, StatusAnswer
from autoresearch.face.pages.rendering import Links, View, render
from autoresearch.log.standing.answers import MarkView, ParticipantView
from tests.face.pages.reading import whole_page
from tests.nasty import NASTY, harms

EVE = ParticipantView(key="3fa9" * 16, short="3fa9bc12", name=NASTY)


def view(page, **status):
    return View(
        page=page,
        links=Links(),
        now_ms=3_600_000,
        status=StatusAnswer(state="idle", why="", reason="", participant=EVE, **status),
    )


def test_a_peer_is_told_as_on_a_terminal():
    mark = MarkView(mark="fraud", record="bafy", evidence=[], time_ms=0)
    peer = PeerView(
        peer="12D3KooWabcdefghijkl",
        address=f"/ip4/{NASTY}",
        connected=True,
        agent=NASTY,
        bytes_in=2048,
        exchanged_ms=3_000_000,
        records_in=3,
        participant=EVE,
        marks=[mark],
    )
    answer = PeersAnswer(network=NetworkStatus(state="running", connected=1), peers=[peer])
    page = whole_page(render("peers.html", view("peers"), answer=answer))
    assert "direct …abcdefghijkl 2.0 KiB 10 min ago (+3) now" in page.text
    assert "Sent today" not in page.text, "nothing was sent"
    assert "fraud → autoresearch network credit 3fa9bc12" in page.text
    assert not harms(page.text)


def test_proposals_and_claims_are_lists():
    waiting = QueuedRun(name="run-1", title=NASTY, task="", proposed_ms=3_000_000, reason="for a worker", replicate=2)
    claim = OpenClaim(
        id="bafy", title="", source_digest="", replicate=0, time_ms=0, until_ms=4_200_000, author="", participant=EVE
    )
    text = render("queue.html", view("queue", queue=[waiting]), claims=[claim])
    page = whole_page(text)
    assert "for a worker 10 min ago Withdraw" in page.text
    assert "a change without a title" in page.text
    assert "10 min left" in page.text
    assert 'name="name" value="run-1"' in text
    assert not harms(page.text)


def test_a_page_says_how_many_runs_are_still_to_be_judged_and_nothing_where_none_is():
    answer = PeersAnswer(network=NetworkStatus(state="running"))
    sentence = "runs are still being judged"
    assert f"1,234 {sentence}" in whole_page(render("peers.html", view("peers", unsettled=1234), answer=answer)).text
    assert sentence not in whole_page(render("peers.html", view("peers"), answer=answer)).text
