"""Early records wait in memory: the first to come first, and never too many."""

from __future__ import annotations

from autoresearch_daemon.peers.ingest import RECORDS_MAX, EarlyRecords
from hypothesis import given
from hypothesis import strategies as st


def key(number: int, time_ms: int) -> tuple[int, bytes]:
    return time_ms, number.to_bytes(32, "big")


@given(st.dictionaries(st.integers(0, 1000), st.integers(0, 100), max_size=40), st.integers(0, 100))
def test_what_is_due_comes_once_and_in_order(records: dict[int, int], until_ms: int) -> None:
    waiting = EarlyRecords()
    for number, time_ms in records.items():
        assert waiting.add(key(number, time_ms), (b"raw%d" % number, b"")) == []
    due = waiting.due(until_ms)
    assert [at for at, _ in due] == sorted(key(n, t) for n, t in records.items() if t <= until_ms)
    assert waiting.due(until_ms) == []
    assert waiting.keys() == sorted(key(n, t) for n, t in records.items() if t > until_ms)
    ids = [number.to_bytes(32, "big") for number in records]
    assert len(waiting.raw(ids)) == len(waiting)


def test_there_is_room_for_so_many_and_the_latest_goes() -> None:
    waiting = EarlyRecords()
    for number in range(RECORDS_MAX):
        waiting.add(key(number, number), (b"", b""))
    assert waiting.add(key(RECORDS_MAX, 5), (b"", b"")) == [key(RECORDS_MAX - 1, RECORDS_MAX - 1)]
    late = key(RECORDS_MAX + 1, 10**9)
    assert waiting.add(late, (b"", b"")) == [late]
    assert len(waiting) == RECORDS_MAX
