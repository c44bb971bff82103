"""Blobs: bytes named by their hash, checked when read, refused cleanly when they can't be written."""

import fcntl
import hashlib
import os
import resource
import signal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import NotFound, Refused
from autoresearch.log.blobs import BlobStore, forget_lost
from autoresearch.log.chunks import CHUNK_BYTES, decode_manifest, encode_manifest
from autoresearch.record.encoding import encode

BIG = b"0123456789abcdef" * (CHUNK_BYTES // 16 * 2) + b"rest"


def object_path(store, sha256):
    return store.root / "objects" / sha256.hex()[:2] / sha256.hex()


def temporary_files(store):
    return list((store.root / "tmp").iterdir())


@pytest.mark.parametrize("data", [b"", b"x", bytes(CHUNK_BYTES), BIG], ids=["empty", "one", "a chunk", "three chunks"])
def test_what_was_put_comes_back(blobs, data):
    ref = blobs.put(data)
    assert (ref.sha256, ref.size) == (hashlib.sha256(data).digest(), len(data))
    assert blobs.get(ref.sha256) == data
    with blobs.open(ref.sha256) as file:
        assert file.read(3) == data[:3]
    assert blobs.find(ref.sha256) == ref == blobs.put(data)
    assert temporary_files(blobs) == []
    assert (ref.manifest is None) == (len(data) <= CHUNK_BYTES)


def test_a_large_blob_has_a_manifest_by_which_each_chunk_is_checked(blobs):
    ref = blobs.put(BIG)
    manifest = decode_manifest(blobs.get(ref.manifest))
    assert (manifest.size, manifest.chunk, len(manifest.hashes)) == (len(BIG), CHUNK_BYTES, 3)
    chunks = [BIG[start : start + CHUNK_BYTES] for start in range(0, len(BIG), CHUNK_BYTES)]
    assert all(manifest.fits(index, chunk) for index, chunk in enumerate(chunks))
    assert not manifest.fits(0, chunks[2])
    assert not manifest.fits(3, chunks[2])


@given(st.lists(st.integers(0, CHUNK_BYTES), max_size=4))
@settings(max_examples=20, deadline=None)
def test_the_manifest_does_not_depend_on_the_pieces(tmp_path_factory, cuts):
    places = [0, *sorted(cuts), len(BIG)]
    with BlobStore(tmp_path_factory.mktemp("blobs")) as store:
        pieces = store.put_stream(BIG[start:end] for start, end in pairwise(places))
        assert pieces == store.put(BIG)


def test_a_file_is_put_piece_by_piece(blobs, tmp_path):
    (tmp_path / "file").write_bytes(BIG)
    assert blobs.put_file(tmp_path / "file") == blobs.put(BIG)
    with pytest.raises(NotFound):
        blobs.put_file(tmp_path / "nowhere")
    with pytest.raises(Refused):
        blobs.put_file(tmp_path)
    assert temporary_files(blobs) == []


def test_what_is_not_here_is_not_found(blobs):
    assert not blobs.has(b"x" * 32)
    with pytest.raises(NotFound):
        blobs.get(b"x" * 32)


def test_changed_bytes_are_never_given_out(blobs):
    ref = blobs.put(b"some bytes")
    object_path(blobs, ref.sha256).write_bytes(b"other data")
    with pytest.raises(Refused, match="changed"):
        blobs.get(ref.sha256)
    assert blobs.put(b"some bytes") == ref
    assert blobs.get(ref.sha256) == b"some bytes"
    object_path(blobs, ref.sha256).unlink()
    with pytest.raises(Refused):
        blobs.open(ref.sha256)


def test_opening_sweeps_what_was_never_entered_and_leaves_what_is_being_written(blobs):
    ref = blobs.put(b"kept")
    stray = object_path(blobs, b"s" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"stray")
    abandoned, in_hand = blobs.root / "tmp" / "abandoned", blobs.root / "tmp" / "in_hand"
    abandoned.write_bytes(b"half")
    with in_hand.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with BlobStore(blobs.root) as other:
            assert other.get(ref.sha256) == b"kept"
        assert in_hand.exists()
    assert not stray.exists()
    assert not abandoned.exists()


def test_a_blob_whose_file_was_lost_stays_in_the_index_until_it_is_told_to_forget(tmp_path):
    with BlobStore(tmp_path) as blobs:
        lost, whole = blobs.put(b"lost"), blobs.put(b"whole")
        object_path(blobs, lost.sha256).unlink()
        with pytest.raises(Refused, match="can't be read"):
            blobs.get(lost.sha256)
    with BlobStore(tmp_path) as blobs:
        assert blobs.find(lost.sha256) == lost, "its disk may only not be mounted"
    forget_lost(tmp_path)
    with BlobStore(tmp_path) as blobs:
        assert blobs.find(lost.sha256) is None
        assert blobs.get(whole.sha256) == b"whole"
        assert blobs.put(b"lost") == lost
        assert blobs.get(lost.sha256) == b"lost"


def test_a_lost_index_is_made_again_and_no_blob_is_lost(tmp_path):
    with BlobStore(tmp_path) as blobs:
        small, large = blobs.put(b"small"), blobs.put(BIG)
        object_path(blobs, small.sha256).with_name("0" * 64).write_bytes(b"other bytes than its name says")
    (tmp_path / "index.sqlite").unlink()
    with BlobStore(tmp_path) as blobs:
        assert blobs.find(small.sha256) == small
        assert blobs.find(large.sha256) == large
        assert blobs.get(large.sha256) == BIG
        assert len(list((tmp_path / "objects").glob("*/*"))) == 4  # also under its right name what was misnamed
    (tmp_path / "index.sqlite").unlink()
    (tmp_path / "index.lost").touch()  # as after a kill in the middle
    with BlobStore(tmp_path) as blobs:
        assert blobs.get(small.sha256) == b"small"
    assert not (tmp_path / "index.lost").exists()


def test_a_read_only_store_reads_while_another_writes_and_refuses_to_write(blobs, tmp_path):
    ref = blobs.put(b"data")
    with BlobStore(blobs.root, read_only=True) as reader:
        assert reader.get(ref.sha256) == b"data"
        later = blobs.put(b"later")
        assert reader.get(later.sha256) == b"later"
        with pytest.raises(Refused):
            reader.put(b"x")
    with BlobStore(tmp_path / "nowhere", read_only=True) as empty:
        assert not empty.has(ref.sha256)
    assert not (tmp_path / "nowhere").exists()


def test_a_disk_that_takes_no_more_is_refused_cleanly(blobs):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(Refused):
            blobs.put(os.urandom(600_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert temporary_files(blobs) == []
    assert blobs.put(b"small").size == 5


GOOD = {"v": 1, "size": CHUNK_BYTES + 1, "chunk": CHUNK_BYTES, "hashes": bytes(64)}


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2}, {"size": 0}, {"size": -1}, {"size": True}, {"size": 2**62}, {"size": CHUNK_BYTES}, {"chunk": 1},
        {"hashes": bytes(63)}, {"hashes": bytes(96)}, {"hashes": [bytes(32)] * 2}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_manifest_is_refused(change):
    assert decode_manifest(encode(GOOD)).size == CHUNK_BYTES + 1
    assert encode_manifest(CHUNK_BYTES + 1, [bytes(32)] * 2) == encode(GOOD)
    for raw in (encode(GOOD | change), b"", encode([1]), encode(GOOD) + b"\0"):
        with pytest.raises(Refused):
            decode_manifest(raw)
