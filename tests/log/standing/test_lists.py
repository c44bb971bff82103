"""Lists of the runs of a task: what the records say one by one, in any order of arrival, or made anew."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.ask.requests import RunsOf
from autoresearch.ask.runs.filtering import filter_of
from autoresearch.ask.runs.rows import mark_of
from autoresearch.log.log import Log
from autoresearch.log.standing.context import board_hardware, trust_context, whose
from autoresearch.log.standing.verification import judgement
from autoresearch.log.tables.filters import Filter
from autoresearch.record.kinds import Identity, Run
from autoresearch.trust.keys import KeyPair
from autoresearch.words import RunState
from tests.log.standing.copying import models
from tests.log.standing.stories import HOUR_MS, STORIES, play
from tests.log.standing.village import ANN, BEN, CEM, TRUST, Village
from tests.record.making import DEFINITION, NETWORK, pairs

UPHELD = {RunState.PROVISIONAL, RunState.CONFIRMED, RunState.NOT_REPLICATED}
STANDING = {RunState.REPORTED, RunState.PROVISIONAL, RunState.CONFIRMED}


def columns(log: Log, task: bytes) -> list[tuple[object, ...]]:
    """All runs of a task by time, row by row; None for what is not known."""

    def number(value: float | None) -> float | None:
        return None if value is None else round(value, 9)

    every = Filter(task, board_hardware(log, task) or "")
    numbers = log.listing.page(every, "time", falling=False, limit=1000)
    result = log.listing.facts(every, numbers)
    runs = [result[n] for n in numbers]
    places = log.listing.places(task).of(run.place for run in runs)
    assert [place.number for place in places] == list(range(1, len(runs) + 1))
    assert sum(log.listing.counts(every).marks.values()) == len(runs)
    return [
        (
            run.id,
            run.time,
            True,
            run.parent if run.parent and log.listing.number(run.parent) else None,
            number(run.reported),
            number(run.value),
            number(run.delta),
            run.state,
            mark_of(run),
            place.cost_ms,
            run.leads,
            run.led_by_claim,
            log.listing.children(task, run.id),
        )
        for run, place in zip(runs, places, strict=True)
    ]


def one_by_one(log: Log, task: bytes) -> list[tuple[object, ...]]:
    """The same from whole records and judgements, without columns."""
    stored = list(log.runs.newest(task, limit=1000))
    stored.sort(key=lambda item: (item.record.time, item.record.id))
    records = {each.record.id: each.record for each in stored}
    rules, sign = log.tasks.rules(task), log.tasks.sign(task)
    copied, hardware = models(log), board_hardware(log, task)
    cost, best_claim, best_sure, rows = 0, float("inf"), float("inf"), []
    for each in stored:
        record, body = each.record, each.record.body
        assert isinstance(body, Run)
        result = judgement(log, record.id)
        reported = body.value if body.status == "ok" else None
        value = result.value if result.value is not None else reported
        parent = records.get(body.parent) if body.parent else None
        above = parent.body.value if parent is not None and parent.body.status == "ok" else None
        if parent is not None and parent.body.idea == body.idea and parent.body.source_digest != body.source_digest:
            above = None  # another seed is no gain
        delta = None if reported is None or above is None else reported - above
        if result.improvement is not None:
            delta = -sign * result.improvement
        cost += body.cpu_ms
        doubted = each.forked and result.state not in UPHELD
        comparable = hardware in (None, body.device) and record.id not in copied
        compared = (
            rules is not None and reported is not None and body.budget == rules.budget and comparable and not doubted
        )
        vouched = whose(record.author, record.time, trust_context(log)).attested
        claims = compared and vouched and result.state in STANDING and sign * reported < best_claim
        sure = compared and result.state is RunState.CONFIRMED and sign * value < best_sure
        best_claim = sign * reported if claims else best_claim
        best_sure = sign * value if sure else best_sure
        mark = "leading" if claims and result.state is RunState.REPORTED else result.state.value
        rows.append(
            (
                record.id,
                record.time,
                True,
                parent.id if parent else None,
                None if reported is None else round(reported, 9),
                None if value is None else round(value, 9),
                None if delta is None else round(delta, 9),
                result.state.value,
                "failed" if body.status != "ok" else mark,
                cost,
                sure,
                claims,
                sum(other.body.parent == record.id for other in records.values()),
            )
        )
    return rows


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STORIES, st.randoms(use_true_random=False), st.integers(1, 8))
def test_columns_say_what_records_say_whatever_arrives_first(
    tmp_path_factory, story, order: random.Random, size
) -> None:
    village = play(Village.at(tmp_path_factory.mktemp("log")), story)
    now_ms, batch = village.now_ms + HOUR_MS, pairs(village.log.records.newest(limit=1000))
    last = columns(village.log, village.task)
    village.log.close()
    order.shuffle(batch)
    with Log.open(tmp_path_factory.mktemp("log") / "log.sqlite", NETWORK, trust=TRUST) as log:
        for start in range(0, len(batch), size):
            log.writer.ingest(batch[start : start + size], now_ms=now_ms)
            between = columns(log, village.task)
            assert between == one_by_one(log, village.task)
        with Log.open(log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
            assert columns(fresh, village.task) == between
        assert between == last


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_who_led_is_by_time_and_direction(tmp_path, direction: str) -> None:
    metric = {**DEFINITION["metric"], "direction": direction}
    village = Village.at(tmp_path, definition={**DEFINITION, "metric": metric})
    runs = [village.run(value, name) for value, name in ((1.9, "a"), (1.95, "b"), (2.5, "c"), (1.8, "d"))]
    led_by = {row[0]: row[11] for row in columns(village.log, village.task)}
    led = [led_by[run.id] for run in runs]
    assert led == ([True, False, False, True] if direction == "minimize" else [False, False, True, False])
    village.log.close()


def test_a_verification_changes_the_mark_of_its_run_alone(village: Village) -> None:
    runs = [village.run(1.9 - n / 10, f"{n}") for n in range(3)]
    before = columns(village.log, village.task)
    assert [row[8] for row in before] == ["leading"] * 4
    village.evaluate(runs[1], 1.8, ANN, BEN, CEM)
    after = columns(village.log, village.task)
    assert [row[8] for row in after] == ["leading", "leading", "provisional", "leading"]
    village.refute(runs[2], 9.0)
    village.run(1.75, "later")
    assert [row[8] for row in columns(village.log, village.task)][2:] == [
        "provisional",
        "refuted",
        "leading",
    ]


def test_equal_times_are_in_order_of_ids_and_a_task_without_runs_is_empty(village: Village) -> None:
    for by in (ANN, BEN, CEM):
        village.now_ms -= 1000
        village.run(1.9, by.public.hex(), by=by)
    rows = columns(village.log, village.task)
    assert columns(village.log, bytes(32)) == []
    assert len({row[1] for row in rows}) == 1 < len(rows)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_runs_of_a_device_are_its_participants_from_the_delegation_on(village: Village) -> None:
    device, root = KeyPair.from_seed(b"v" * 32), KeyPair.from_seed(b"w" * 32)
    before = village.run(1.9, "before", by=device)
    village.append(root, "identity", Identity(action="delegate", root=root.public, device=device.public))
    village.append(device, "identity", Identity(action="profile", root=root.public))
    later = village.run(1.8, "after", by=device)

    def ids_by(key: bytes) -> list[bytes]:
        query = filter_of(village.log, village.task, RunsOf(by=key.hex()))
        assert query is not None
        numbers = village.log.listing.page(query, "time", falling=False, limit=10)
        assert sum(village.log.listing.counts(query).marks.values()) == len(numbers)
        return [run.id for run in village.log.listing.facts(query, numbers).values()]

    assert ids_by(root.public) == [later.id]
    assert ids_by(device.public) == [before.id]
    assert filter_of(village.log, village.task, RunsOf(by="ffff")) is None
