"""What it takes to find out how two sets of records differ: bytes both ways, round trips, processor time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import NamedTuple

from autoresearch.log.sync.index import LOWEST, KeyIndex, Violation, session_salt, short_id
from autoresearch.log.sync.reconciliation import Initiator, Responder

COMPARED = (
    "one list of all 32-byte ids (list_bytes), computed; goals at a million keys: equal 400 bytes and 1 round trip, "
    "1,000 newest 15,000 bytes and 4 round trips"
)

START_MS = 1_800_000_000_000
NEWEST = 1_000
SCATTERED = 1_000

Key = tuple[int, bytes]


class Cost(NamedTuple):
    """``nbytes`` both ways; ``cpu_ms`` of both sides together."""

    nbytes: int
    round_trips: int
    cpu_ms: float


def keys(count: int, *, seed: int = 1) -> list[Key]:
    """Records of a busy network: a few a minute, some in the same millisecond."""
    chance, now, made = random.Random(seed), START_MS, list[Key]()
    for _ in range(count):
        now += int(chance.expovariate(1 / 20_000))
        made.append((now, chance.randbytes(32)))
    return sorted(made)


def reconcile(one: KeyIndex, other: KeyIndex, *, expected: int) -> Cost:
    """Reconcile and check that ``expected`` differences were found."""
    salt = session_salt(b"o" * 16, b"l" * 16)
    asks, answers = Initiator(one, salt, LOWEST), Responder(other, salt, LOWEST)
    nbytes = round_trips = found = 0
    began = time.process_time()
    while (request := asks.request()) is not None:
        reply = answers.answer(request)
        assert not isinstance(reply, Violation)
        difference = asks.receive(reply)
        assert not isinstance(difference, Violation)
        found += sum(1 for _ in difference.have()) + len(difference.need)
        nbytes += len(request) + len(reply)
        round_trips += 1
    cpu_ms = (time.process_time() - began) * 1000
    if found != expected:
        raise RuntimeError(f"{found} differences were found, not {expected}")
    return Cost(nbytes, round_trips, cpu_ms)


def halves(different: list[Key]) -> Iterator[list[Key]]:
    """Every other one for each side."""
    yield different[::2]
    yield different[1::2]


def measure(*, quick: bool) -> dict[str, float]:
    """Equal sets; sets whose newest 1,000 differ, half on each side; sets with 1,000 differences anywhere."""
    count = 100_000 if quick else 1_000_000
    made = keys(count)
    began = time.process_time()
    one = KeyIndex(made)
    load_ms = (time.process_time() - began) * 1000
    other = KeyIndex(made)
    equal = reconcile(one, other, expected=0)

    mine, theirs = (KeyIndex(made[:-NEWEST]) for _ in range(2))
    for index, extra in zip((mine, theirs), halves(made[-NEWEST:]), strict=True):
        index.update(extra)
    newest = reconcile(mine, theirs, expected=NEWEST)

    chance = random.Random(2)
    began = time.process_time()
    for position in chance.sample(range(count), SCATTERED):
        (one if position % 2 else other).discard(*made[position])
    change_us = (time.process_time() - began) / SCATTERED * 1e6
    scattered = reconcile(one, other, expected=SCATTERED)

    began = time.process_time()
    for _, record_id in made[:10_000]:
        short_id(record_id, b"s" * 32)
    short_us = (time.process_time() - began) / 10_000 * 1e6
    return {
        "keys": count,
        "equal_bytes": equal.nbytes,
        "equal_round_trips": equal.round_trips,
        "equal_cpu_ms": equal.cpu_ms,
        "newest_1000_bytes": newest.nbytes,
        "newest_1000_round_trips": newest.round_trips,
        "newest_1000_cpu_ms": newest.cpu_ms,
        "scattered_1000_bytes": scattered.nbytes,
        "scattered_1000_round_trips": scattered.round_trips,
        "scattered_1000_cpu_ms": scattered.cpu_ms,
        "load_cpu_ms": load_ms,
        "change_cpu_us": change_us,
        "short_id_cpu_us": short_us,
        "list_bytes": 32 * count,
    }


if __name__ == "__main__":
    print(measure(quick=True))
