"""Events about the best that others confirmed: when there is a better one, and when it is confirmed no more."""

from __future__ import annotations

import pytest
from autoresearch_daemon.events import Events
from autoresearch_daemon.judging import LeaderWatch
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.log_thread import LogThread

from autoresearch.record.encoding import format_id
from tests.log.standing.village import ANN, BEN, EVE, Village


@pytest.fixture
def village(tmp_path):
    made = Village.at(tmp_path)
    yield made
    made.log.close()


@pytest.fixture
def local(tmp_path):
    state = LocalState(tmp_path / "local.sqlite")
    yield state
    state.close()


@pytest.fixture
def thread(village):
    made = LogThread(village.log)
    yield made
    made.close()


async def test_a_new_best_is_told_once_and_its_fall_too(village, local, thread):
    events = Events(local)
    leading = LeaderWatch(thread, events)
    await leading.look(0)
    first, second = village.run(1.5, "first", by=ANN), village.run(1.2, "second", by=BEN)
    village.confirm(first, 2.0, 1.5)
    await leading.look(1)
    village.confirm(second, 2.0, 1.2)
    await leading.look(2)
    await leading.look(3)
    village.evaluate(second, 1.9, EVE)
    await leading.look(4)
    summaries = [(event.kind, event.time_ms, event.data["id"], event.data["state"]) for event in events.since(0)]
    assert summaries == [
        ("confirmed", 1, format_id(first.id), "confirmed"),
        ("confirmed", 2, format_id(second.id), "confirmed"),
        ("demoted", 4, format_id(second.id), "disputed"),
    ]
    assert events.since(0)[-1].data["best_id"] == format_id(first.id)
    assert "“second” was the best confirmed run and is disputed now" in events.since(0)[-1].text


async def test_what_was_so_at_the_first_look_is_no_news(village, local, thread):
    village.confirm(village.run(1.5, "first"), 2.0, 1.5)
    events = Events(local)
    leading = LeaderWatch(thread, events)
    await leading.look(0)
    village.evaluate(village.run(1.4, "other"), 1.4, ANN)
    await leading.look(1)
    assert events.since(0) == []


async def test_what_verifiers_decide_on_own_runs_is_told_once(village, local, thread):
    own, other = village.run(1.5, "mine", by=ANN), village.run(1.4, "another's", by=BEN)
    events = Events(local)
    leading = LeaderWatch(thread, events, own.author)
    await leading.look(0)
    for run in (own, other):
        village.evaluate(run, 1.9, EVE)
    await leading.look(1)
    await leading.look(2)
    [verdict] = [event for event in events.since(0) if event.kind == "verdict"]
    assert (verdict.time_ms, verdict.data["id"], verdict.data["state"]) == (1, format_id(own.id), "disputed")
    assert "“mine” is disputed: a verifier measured another value" in verdict.text
