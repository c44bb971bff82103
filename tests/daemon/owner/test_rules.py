"""When this machine is its owner's: the rules by themselves, and a week of an owner's life through the service."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import msgspec
import pytest
from autoresearch_daemon.owner.rules import (
    FREE_MS,
    KNOWN_MS,
    Heat,
    NetworkRest,
    Reading,
    Use,
    WorkRefusal,
    network_rest,
    refusals,
    unheld,
)
from autoresearch_daemon.owner.watch import LOOK_SECONDS
from autoresearch_daemon.service.effects import Assign, Cancel
from autoresearch_daemon.service.inputs import (
    Assignment,
    Blocked,
    Dropped,
    Finished,
    JobReady,
    Proposed,
    RunAsked,
    Tick,
    WorkerReady,
)

from autoresearch.settings import NetworkSection, Work
from autoresearch.words import OWNER_REASONS, Why, WorkKind, WorkState
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started, state_of

NOON = round(
    datetime(2026, 11, 25, 12, tzinfo=UTC).astimezone().replace(hour=12).timestamp() * 1000
)  # a Wednesday, in local time
MIB = 1 << 20


def refused(work: Work, reading: Reading, before: dict[Why, WorkRefusal] | None = None) -> str:
    reasons = list(refusals(work, reading, before or {}).values())
    return reasons[0].sentence if reasons else ""


def test_outside_its_hours_the_node_says_when_it_goes_on_and_how_runs_end() -> None:
    for end in ("finish", "stop"):
        [refusal] = refusals(Work(hours="wed 19:00-07:00", hours_end=end), Reading(NOON), {}).values()
        assert refusal.stops is (end == "stop")
        assert refusal.sentence.endswith("19:00")
        assert ("a run in hand is finished" in refusal.sentence) is (end == "finish")
    assert not refused(Work(hours="wed"), Reading(NOON))


def test_mains_have_three_values_and_only_one_is_mains() -> None:
    work = Work(only_on_mains=True)
    assert not refused(work, Reading(NOON, on_mains=True))
    assert "on battery" in refused(work, Reading(NOON, on_mains=False))
    assert "nothing tells" in refused(work, Reading(NOON, on_mains=None))


def test_use_is_evidence_with_an_age_and_a_source() -> None:
    work, use = Work(only_idle=10), Use(NOON - 599_000, "terminal pts/3")
    assert "terminal pts/3" in refused(work, Reading(NOON, use=use, answered_ms=NOON))
    assert not refused(work, Reading(NOON + 1000, use=use, answered_ms=NOON))


def test_no_answer_is_never_idle_unless_a_setting_says_so() -> None:
    silent = Reading(NOON, answered_ms=NOON - KNOWN_MS - 1, unanswered="systemd-logind does not answer")
    assert "unknown: systemd-logind does not answer" in refused(Work(only_idle=10), silent)
    assert "unknown" in refused(Work(only_idle=10), Reading(NOON))
    trusting = Work(only_idle=10, idle_unknown="work")
    assert not refused(trusting, silent)
    assert "unknown: systemd-logind does not answer" in unheld(trusting, silent)[0]
    assert unheld(trusting, replace(silent, answered_ms=NOON)) == []
    seen = replace(silent, use=Use(NOON - 1000, "terminal pts/3"))
    assert "pts/3" in refused(trusting, seen), "what is known counts all the same"


def test_heat_has_ten_degrees_between_stop_and_start() -> None:
    work, before = Work(max_temperature=85), dict[Why, WorkRefusal]()
    too_hot = []
    for celsius in (84, 85, 80, 76, 75, 74, 84):
        before = refusals(work, Reading(NOON, heat=Heat("coretemp", celsius)), before)
        too_hot.append(Why.TOO_HOT in before)
    assert too_hot == [False, True, True, True, True, False, False]
    hot = refusals(work, Reading(NOON, heat=Heat("coretemp", 90)), {})
    assert "no sensor" in unheld(work, Reading(NOON))[0]
    assert refusals(work, Reading(NOON), hot) == hot, "a sensor that is silent now has not cooled down"


@pytest.mark.parametrize("short", [{"free_bytes": 511 * MIB}, {"free_bytes": 4096 * MIB, "pressure": 20.0}])
def test_memory_must_stay_free_for_a_while(short: dict[str, float]) -> None:
    work = Work(pause_memory_mib=512)
    free = Reading(NOON, free_bytes=4096 * MIB, pressure=0.5)
    assert not refused(work, free)
    before = refusals(work, msgspec.convert({"now_ms": NOON, **short}, Reading), {})
    assert Why.MEMORY_LOW in before
    assert refused(work, replace(free, now_ms=NOON + FREE_MS - 1), before)
    assert not refused(work, replace(free, now_ms=NOON + FREE_MS), before)


def test_another_program_on_a_card_is_named() -> None:
    assert "blender (77)" in refused(Work(only_free_card=True), Reading(NOON, others=("blender (77)",)))


def test_nothing_holds_a_node_whose_owner_set_nothing() -> None:
    poor = Reading(NOON, False, Use(NOON, "x"), None, "", 1, 99.0, Heat("coretemp", 120), ("blender (77)",))
    assert refusals(Work(), poor, {}) == {}


def test_a_stop_ends_what_is_in_hand_once_and_a_finish_lets_it_end() -> None:
    node = started(1)
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(1), RUN), 0)
    assert of(Cancel, node.handle(Blocked(Why.OUTSIDE_HOURS, "until 19:00"), 1)) == []
    assert of(Cancel, node.handle(Blocked(Why.ON_BATTERY, "on battery", stops=True), 2))
    assert of(Cancel, node.handle(Blocked(Why.ON_BATTERY, "on battery", stops=True), 3)) == []
    node.handle(Finished("w1", counted=False), 4)
    assert node.status().reason == "until 19:00"
    node.handle(Blocked(Why.OUTSIDE_HOURS, None), 5)
    assert (state_of(node), node.status().reason) == ((WorkState.WAITING, Why.ON_BATTERY), "on battery")
    assert of(Assign, node.handle(Blocked(Why.ON_BATTERY, None), 6))


def test_what_a_person_proposed_waits_until_the_machine_is_free() -> None:
    node = started(1)
    node.handle(Dropped("w1"), 0)
    node.handle(Blocked(Why.IN_USE, "in use", stops=True), 0)
    node.handle(RunAsked(Assignment("mine", "", WorkKind.PERSON)), 1)
    node.handle(Blocked(Why.IN_USE, None), 2)
    node.handle(WorkerReady("w1", "cpu"), 2)
    assert assignment_of(node, "w1") == "mine"
    node.handle(Blocked(Why.IN_USE, "in use", stops=True), 3)
    assert of(Cancel, node.handle(Proposed("w1", "mine", key(2), RUN), 4)), "nothing new is agreed to"
    node.handle(Dropped("w1"), 5)
    assert [waiting.name for waiting in node.status().queue] == ["mine"]


# --- a week ---


@dataclass
class Week:
    """An owner who works on a laptop from nine to five on weekdays, unplugs it at noon, and plays on Sunday evening."""

    zone: ZoneInfo

    def is_there(self, now_ms: int) -> bool:
        local = datetime.fromtimestamp(now_ms / 1000, self.zone)
        if local.weekday() < 5:
            return 9 <= local.hour < 17
        return local.weekday() == 6 and 20 <= local.hour < 22

    def on_mains(self, now_ms: int) -> bool:
        local = datetime.fromtimestamp(now_ms / 1000, self.zone)
        return not (local.weekday() < 5 and 12 <= local.hour < 13)


@pytest.mark.slow
def test_a_week_of_an_owner() -> None:
    """How long until work stops when the owner comes, and what processor time they lose to it.

    Nothing changes but at whole hours and quarters: the node looks every five seconds in their first minute.
    """
    owner, look = Week(ZoneInfo("Europe/Berlin")), round(LOOK_SECONDS * 1000)
    begin = round(datetime(2026, 10, 19, tzinfo=owner.zone).timestamp() * 1000)  # the clocks change on its Sunday
    work = Work(only_idle=15, only_on_mains=True)
    node, before = started(1), dict[Why, WorkRefusal]()
    is_running, used_ms, last_use, was_there = False, 0, begin - 3_600_000, False
    there_ms, stops, came_ms, runs, done_ms = 0, list[int](), 0, 0, 0
    end = begin + 7 * 86_400_000 + 3_600_000
    looks = [now_ms for now_ms in range(begin, end, look) if now_ms % 900_000 < 60_000 or now_ms % 300_000 == 0]
    for now_ms, next_ms in pairwise([*looks, end]):
        step = next_ms - now_ms
        is_there = owner.is_there(now_ms)
        if is_there:
            last_use = now_ms
        if is_there and not was_there:
            came_ms = now_ms if is_running else 0
        was_there = is_there
        if is_running:
            used_ms += step
            there_ms += step * is_there
        reading = Reading(now_ms, owner.on_mains(now_ms), Use(last_use, "a session"), now_ms)
        before = refusals(work, reading, before)
        effects = []
        for why in OWNER_REASONS:
            refusal = before.get(why)
            effects += node.handle(
                Blocked(why, refusal.sentence, refusal.stops) if refusal else Blocked(why, None), now_ms
            )
        effects += node.handle(Tick(), now_ms)
        if of(Cancel, effects):
            node.handle(Finished("w1", counted=False), now_ms)
            if came_ms:
                stops.append(now_ms - came_ms)
            is_running, came_ms = False, 0
        elif is_running and now_ms - done_ms > 600_000:
            node.handle(Finished("w1"), now_ms)
            is_running = False
        if not before and not is_running:
            node.handle(WorkerReady("w1", "cpu"), now_ms)
            node.handle(JobReady(None), now_ms)
            runs += 1
            node.handle(Proposed("w1", assignment_of(node, "w1"), key(runs), RUN), now_ms)
            is_running, done_ms = True, now_ms
        assert not (is_running and before)
    assert len(stops) == 6, "five mornings and an evening"
    assert max(stops) <= look
    assert there_ms <= len(stops) * look
    away_ms = (7 * 24 + 1 - 5 * 8 - 2) * 3_600_000 - 6 * 15 * 60_000
    assert used_ms >= 0.99 * away_ms, "the rest of the week is used"


def test_the_network_has_hours_of_its_own_and_a_metered_link_moves_records_alone() -> None:
    night = NetworkSection(enabled=True, hours="wed 19:00-07:00")
    rest = network_rest(night, NOON, metered=False)
    assert rest.offline.startswith("outside the hours of network.hours (wed 19:00-07:00); the network goes on at ")
    assert rest.offline.endswith("19:00")
    assert network_rest(night, NOON + 8 * 3_600_000, metered=None) == NetworkRest()
    always = NetworkSection(enabled=True)
    assert network_rest(always, NOON, metered=None) == NetworkRest()
    assert "records move, programs and checkpoints don't" in network_rest(always, NOON, metered=True).blobs
    all_moves = NetworkSection(enabled=True, blobs_on_metered=True)
    assert network_rest(all_moves, NOON, metered=True) == NetworkRest()
