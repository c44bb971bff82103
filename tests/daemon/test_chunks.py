"""Which chunk is asked of whom: whatever the peers do, every chunk comes if one honest peer stays."""

from __future__ import annotations

import random

from autoresearch_daemon.peers.blob_fetching import (
    ASKED_IN_ALL,
    ASKED_OF_ONE,
    FAILURES_MAX,
    PATIENCE_SECONDS,
    Ask,
    Download,
    Outcome,
)
from hypothesis import given
from hypothesis import strategies as st

BEHAVIOURS = {
    "honest": Outcome.RIGHT,
    "lies": Outcome.WRONG,
    "lacks": Outcome.NOT_HERE,
    "fails": Outcome.BROKEN,
    "busy": Outcome.BUSY,
    "silent": None,
}


def drive(download: Download, peers: dict[str, str], dice: random.Random) -> tuple[list[Ask], float]:
    """Answer in any order as the peers behave, some of which come and go; the asks made, and the seconds it took."""
    now, under_way, asks = 0.0, [], []
    flaky = {name for name, how in peers.items() if how != "honest" and dice.random() < 0.3}
    for _ in range(5_000):
        download.meet([name for name in peers if name not in flaky or dice.random() < 0.5])
        new = download.next(now)
        assert not new or not download.done
        asks += new
        under_way += new
        check_limits(under_way)
        able = [ask for ask in under_way if BEHAVIOURS[peers[ask.peer]]]
        if download.done or (download.hopeless and not under_way):
            break
        if not able:
            if (later := download.look_at(now)) is None:
                break
            now = later
            continue
        ask = able[dice.randrange(len(able))]
        under_way.remove(ask)
        for needless in download.answer(ask, BEHAVIOURS[peers[ask.peer]], now):
            under_way.remove(needless)
    return asks, now


def check_limits(under_way: list[Ask]) -> None:
    assert len(set(under_way)) == len(under_way) <= ASKED_IN_ALL
    for ask in under_way:
        assert sum(other.peer == ask.peer for other in under_way) <= ASKED_OF_ONE


@given(
    count=st.integers(1, 40),
    behaviours=st.lists(st.sampled_from(sorted(BEHAVIOURS)), max_size=6),
    seed=st.integers(0, 2**32),
)
def test_every_chunk_comes_exactly_when_an_honest_peer_is_there(count: int, behaviours: list[str], seed: int) -> None:
    peers = {f"p{number}": behaviour for number, behaviour in enumerate(behaviours)}
    download = Download(count)
    asks, _ = drive(download, peers, random.Random(seed))

    assert download.done == ("honest" in behaviours)
    # Who lied is never asked again; who has it not, only after it was gone.
    for name, behaviour in peers.items():
        mine = [ask for ask in asks if ask.peer == name]
        if behaviour == "lies":
            assert len(mine) <= ASKED_OF_ONE


@given(st.sets(st.integers(0, 19)))
def test_chunks_that_are_here_are_never_asked_for(missing: set[int]) -> None:
    download = Download(20, missing)
    download.meet(["a"])
    seen = set()
    while asks := download.next(0.0):
        for ask in asks:
            seen.add(ask.chunk)
            download.answer(ask, Outcome.RIGHT, 0.0)
    assert seen == missing
    assert download.done


def test_a_peer_that_answers_gets_more_at_a_time_and_the_work_is_shared() -> None:
    download = Download(40)
    download.meet(["a", "b", "c"])
    first = download.next(0.0)
    assert sorted(ask.peer for ask in first) == ["a", "b", "c"]
    for ask in first * 1:
        download.answer(ask, Outcome.RIGHT, 0.0)
    assert sorted(ask.peer for ask in download.next(0.0)) == ["a", "a", "b", "b", "c", "c"]


def test_a_busy_peer_is_left_alone_for_longer_and_longer_but_never_given_up() -> None:
    download, now, pauses = Download(1), 0.0, []
    download.meet(["a"])
    for _ in range(20):
        [ask] = download.next(now)
        download.answer(ask, Outcome.BUSY, now)
        assert not download.next(now)
        pauses.append(download.look_at(now) - now)
        now = download.look_at(now)
    assert pauses == sorted(pauses)
    assert pauses[-1] < 10
    assert not download.hopeless


def test_a_peer_that_only_fails_is_given_up_and_tried_again_when_it_comes_back() -> None:
    download, now = Download(1), 0.0
    download.meet(["a"])
    for _ in range(FAILURES_MAX):
        [ask] = download.next(now)
        download.answer(ask, Outcome.BROKEN, now)
        now = download.look_at(now) or now
    assert download.hopeless
    download.meet([])
    download.meet(["a"])
    assert not download.hopeless
    assert download.next(now) == [Ask("a", 0)]


def test_a_silent_peer_costs_patience_and_no_more() -> None:
    download = Download(1)
    download.meet(["silent", "b"])
    assert download.next(0.0) == [Ask("silent", 0)]
    assert download.next(PATIENCE_SECONDS - 0.1) == []
    assert download.look_at(0.0) == PATIENCE_SECONDS
    assert download.next(PATIENCE_SECONDS) == [Ask("b", 0)]
    assert download.answer(Ask("b", 0), Outcome.RIGHT, PATIENCE_SECONDS) == [Ask("silent", 0)]
    assert download.done


def test_nothing_that_a_liar_still_owes_is_waited_for() -> None:
    download = Download(9)
    download.meet(["liar"])
    now = 0.0
    for ask in download.next(now):
        download.answer(ask, Outcome.RIGHT, now)
    first, second = download.next(now)
    assert download.answer(first, Outcome.WRONG, now) == [second]
    download.meet([])
    download.meet(["liar"])
    assert download.next(now) == []
    assert download.hopeless
