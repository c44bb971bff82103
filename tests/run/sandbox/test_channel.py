"""Whatever bytes come, in whatever pieces, the channel and the log hold their bounds and never raise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.run.sandbox.capture import (
    CURVE_POINTS,
    LINE_BYTES,
    BoundedLog,
    HarnessResult,
    ResultChannel,
    parse_line,
)

NUMBERS = st.floats(-NUMBER_MAX, NUMBER_MAX)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["event", "status", "value", "curve"]), inner),
)


@given(st.lists(st.binary(max_size=200)))
def test_any_bytes_in_any_pieces_are_survived(pieces: list[bytes]) -> None:
    whole, split = ResultChannel(), ResultChannel()
    whole.feed(b"".join(pieces))
    for piece in pieces:
        split.feed(piece)
    whole.close()
    split.close()
    assert (whole.result, whole.progress, whole.results) == (split.result, split.progress, split.results)


@given(JSON)
def test_any_json_is_an_event_with_finite_numbers_or_a_sentence(value: object) -> None:
    event = parse_line(json.dumps(value).encode())
    if isinstance(event, HarnessResult):
        assert all(abs(number) <= NUMBER_MAX for number in (event.value or 0.0, *event.metrics.values(), *event.curve))


@given(NUMBERS, st.lists(NUMBERS, max_size=CURVE_POINTS))
def test_a_good_result_arrives_as_it_was_sent(value: float, curve: list[float]) -> None:
    line = json.dumps({"event": "result", "status": "ok", "value": value, "curve": curve}).encode()
    event = parse_line(line)
    assert isinstance(event, HarnessResult)
    assert (event.value, list(event.curve)) == (value, curve)


def test_a_line_that_never_ends_is_over_the_limit() -> None:
    channel = ResultChannel()
    for _ in range(LINE_BYTES // 1000 + 2):
        channel.feed(b"x" * 1000)
    assert channel.over_limit


@given(st.lists(st.binary(max_size=300)), st.integers(1, 500))
def test_the_log_keeps_all_or_head_and_tail(pieces: list[bytes], limit: int) -> None:
    log, whole = BoundedLog(limit), b"".join(pieces)
    for piece in pieces:
        log.feed(piece)
    contents = log.contents()
    if len(whole) <= limit:
        assert contents == whole
    else:
        head, _, tail = contents.partition(b"\n[... ")
        number, _, tail = tail.partition(b" bytes left out ...]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(whole) - int(number) - len(tail) - len(head) <= limit // 4  # line ends before the cut
        assert len(contents) <= limit + 60


@pytest.mark.parametrize("line", ["val_loss: 0.25", "epoch 3, val loss 0.25"])
def test_the_last_line_with_the_metric_is_kept_wherever_it_stands(line: str) -> None:
    log, other = BoundedLog(4000, "val_loss"), "something else, and much of it\n" * 100
    for text in (*[other] * 100, "val_loss: 9.5\n", *[other] * 100, f"{line}\n", *[other] * 100):
        log.feed(text.encode())
    contents = log.contents().decode()
    assert f"]\n{line}\n" in contents
    assert "9.5" not in contents
    assert log.contents().decode() == contents
    log.feed(b"val_loss: 0.125\n")
    assert contents.count("val") == 1
    assert log.contents().decode().endswith("\nval_loss: 0.125\n")


def test_a_log_is_cut_between_lines() -> None:
    log = BoundedLog(400)
    for step in range(1000):
        log.feed(b"step %d val_loss: 12.5\n" % step)
    before, marker, after = log.contents().decode().partition("[... ")
    assert marker
    assert before.splitlines() == [f"step {step} val_loss: 12.5" for step in range(len(before.splitlines()))]
    last = after.splitlines()[1:]
    assert last == [f"step {step} val_loss: 12.5" for step in range(1000 - len(last), 1000)]
    assert log.received == len(before) + len("\n".join(last)) + 1 + int(after.split()[0])


@pytest.mark.parametrize("part", ['"value": 1e101', '"curve": [1.0, -1e300]', '"metrics": {"loss": 1e999}'])
def test_numbers_beyond_all_metrics_are_none(part: str) -> None:
    assert isinstance(parse_line(f'{{"event": "result", "status": "ok", {part}}}'.encode()), str)
