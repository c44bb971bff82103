"""What the daemon remembers between starts."""

from __future__ import annotations

from pathlib import Path

from autoresearch_daemon.local_state import InHand, LocalState
from autoresearch_daemon.service.agenda import Agenda, Order

from autoresearch.run.experiment import Plan

PLAN = Plan(
    task=bytes(32),
    source="X = 1",
    source_digest=bytes(32),
    replicate=0,
    seed=2**63 - 1,
    budget=1.0,
    genome={"X": 1, "Y": 0.5, "+muon": True, "NAME": "a"},
)


def test_what_was_asked_survives(tmp_path: Path) -> None:
    agenda = Agenda(paused=True, paused_until_ms=99).with_spent(7, runs_ms=5, verification_ms=6)
    agenda = agenda.with_order(Order("/task", 3), 0).with_order(Order(for_ms=12, until_ms=90), 0)
    first = LocalState(tmp_path / "local.sqlite")
    first.save_agenda(agenda)
    first.close()

    assert LocalState(tmp_path / "local.sqlite").agenda() == agenda


def test_a_run_in_hand_is_there_until_it_is_ended(tmp_path: Path) -> None:
    run = InHand(assignment="search-1", started_ms=5, plan=PLAN)
    local = LocalState(tmp_path / "local.sqlite")
    local.keep(run)

    assert LocalState(tmp_path / "local.sqlite").in_hand() == [run]
    local.end("search-1")
    assert LocalState(tmp_path / "local.sqlite").in_hand() == []


def test_events_have_growing_ids_and_can_be_read_again(tmp_path: Path) -> None:
    local = LocalState(tmp_path / "local.sqlite")
    events = [local.add_event("state", n, f"event {n}", {"n": n}) for n in range(5)]

    assert [event.id for event in events] == sorted({event.id for event in events})
    assert local.events_since(events[1].id) == events[2:]
    assert local.events_since(events[-1].id) == []


def test_a_reader_too_far_behind_is_told_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("autoresearch_daemon.local_state.EVENTS_KEPT", 10)
    local = LocalState(tmp_path / "local.sqlite")
    for n in range(1000):
        local.add_event("state", n, "", {})

    assert local.events_since(5) is None
    assert len(local.events_since(990) or []) == 10
