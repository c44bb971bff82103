"""Which chunk is asked of whom: whatever the peers do, every chunk comes if one honest peer has it."""

from __future__ import annotations

import hashlib
import random

from autoresearch_daemon.chunks import ASKS_PER_PEER, STRIKES, Ask, Download
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.log import CHUNK_BYTES, Manifest

BEHAVIOURS = ("honest", "lies", "lacks", "fails", "leaves")


def chunk(number: int) -> bytes:
    return b"chunk %d" % number


def manifest(count: int) -> Manifest:
    return Manifest(count * CHUNK_BYTES, CHUNK_BYTES, tuple(hashlib.sha256(chunk(n)).digest() for n in range(count)))


def drive(download: Download, peers: dict[str, str], dice: random.Random) -> tuple[int, set[str]]:
    """Answer every ask as the peers behave, in any order; returns the asks made and who was caught lying."""
    connected, under_way, asked, liars = set(peers), [], 0, set()
    for _ in range(10_000):
        download.meet(connected)
        new = download.asks()
        asked += len(new)
        under_way += new
        for peer in peers:
            assert sum(ask.peer == peer for ask in under_way) <= ASKS_PER_PEER
        assert len({ask.chunk for ask in under_way}) == len(under_way)
        if not under_way:
            break
        ask = under_way.pop(dice.randrange(len(under_way)))
        match peers[ask.peer]:
            case "honest":
                assert download.arrived(ask, chunk(ask.chunk))
            case "lies":
                assert not download.arrived(ask, b"something else")
                liars.add(ask.peer)
            case "lacks":
                download.failed(ask, lacks=True)
            case "leaves":
                connected.discard(ask.peer)
                download.failed(ask, lacks=False)
            case _:
                download.failed(ask, lacks=False)
    return asked, liars


@given(
    count=st.integers(1, 40),
    behaviours=st.lists(st.sampled_from(BEHAVIOURS), max_size=6),
    honest=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_all_chunks_come_exactly_when_an_honest_peer_is_there(
    count: int, behaviours: list[str], honest: bool, seed: int
) -> None:
    peers = {f"p{number}": behaviour for number, behaviour in enumerate(behaviours)}
    peers |= {"good": "honest"} if honest else {}
    download = Download(manifest(count))
    asked, liars = drive(download, peers, random.Random(seed))

    assert download.done == ("honest" in peers.values())
    assert download.done or download.stuck
    # Nobody is asked again and again: each peer costs its chances at most.
    assert asked <= count + len(peers) * (STRIKES + ASKS_PER_PEER)
    assert all(peers[peer] == "lies" for peer in liars)


@given(st.sets(st.integers(0, 19)))
def test_chunks_that_are_here_are_never_asked_for(here: set[int]) -> None:
    download = Download(manifest(20), here)
    download.meet(["a"])
    seen = set()
    while asks := download.asks():
        for ask in asks:
            seen.add(ask.chunk)
            download.arrived(ask, chunk(ask.chunk))
    assert seen == set(range(20)) - here
    assert download.done


def test_the_work_is_shared() -> None:
    download = Download(manifest(12))
    download.meet(["a", "b", "c"])
    assert sorted(ask.peer for ask in download.asks()) == ["a", "a", "b", "b", "c", "c"]
    assert download.asks() == []


def test_a_peer_that_comes_back_to_its_senses_is_asked_again() -> None:
    download = Download(manifest(3))
    download.meet(["a"])
    first, second = download.asks()
    download.failed(first, lacks=False)
    assert download.arrived(second, chunk(second.chunk))
    assert Ask("a", first.chunk) in download.asks()
