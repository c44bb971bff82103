"""The blobs' limit: what others made goes first, what is pinned or our own stays; and blobs that are on their way."""

from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import Refused
from autoresearch.log import CHUNK_BYTES, BlobStore, Manifest, PartialBlob, collect_blobs, decode_manifest
from autoresearch.records import BlobRef

BIG = os.urandom(2 * CHUNK_BYTES + 100)


def age(store, ref, seconds):
    path = store.root / "objects" / ref.sha256.hex()[:2] / ref.sha256.hex()
    os.utime(path, (seconds, seconds))


def test_nothing_goes_while_all_fits(blobs):
    ref = blobs.put_stream([b"x" * 1000], fetched=True)
    assert collect_blobs(blobs, 1000) == 0
    assert blobs.has(ref.sha256)


def test_what_was_not_used_for_longest_goes_first_and_only_as_much_as_must(blobs):
    refs = [blobs.put_stream([bytes([n]) * 1000], fetched=True) for n in range(10)]
    for number, ref in enumerate(refs):
        age(blobs, ref, 1000 + number)
    blobs.part(refs[0].sha256, 0, 1)  # used now
    assert collect_blobs(blobs, 5000) == 6000
    assert [blobs.has(ref.sha256) for ref in refs] == [True] + [False] * 6 + [True] * 3


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 3000)), max_size=12), st.integers(0, 20_000))
@settings(max_examples=30, deadline=None)
def test_own_and_pinned_blobs_always_stay(tmp_path_factory, made, limit):
    with BlobStore(tmp_path_factory.mktemp("blobs")) as store:
        refs = [
            (store.put_stream([number.to_bytes(4, "big") * size], fetched=fetched), fetched, pinned)
            for number, (fetched, pinned, size) in enumerate(made)
        ]
        pins = {ref.sha256 for ref, _, pinned in refs if pinned}
        before = store.size()
        freed = collect_blobs(store, limit, pins)
        assert store.size() == before - freed
        assert all(store.get(ref.sha256) for ref, fetched, pinned in refs if pinned or not fetched)
        assert store.size() <= limit or all(not store.has(r.sha256) or p or not f for r, f, p in refs)


def test_a_manifest_goes_and_stays_with_its_blob(blobs):
    kept, loose = blobs.put(BIG), blobs.put_stream([BIG[::-1]], fetched=True)
    collect_blobs(blobs, 0)
    assert blobs.has(kept.sha256)
    assert blobs.has(kept.manifest)
    assert not blobs.has(loose.sha256)
    assert not blobs.has(loose.manifest)


def test_what_this_node_made_stays_its_own_when_it_comes_again(blobs):
    ref = blobs.put(b"mine")
    blobs.put_stream([b"mine"], fetched=True)
    assert collect_blobs(blobs, 0) == 0
    other = blobs.put_stream([b"theirs"], fetched=True)
    blobs.put(b"theirs")
    assert collect_blobs(blobs, 0) == 0
    assert blobs.has(ref.sha256)
    assert blobs.has(other.sha256)


def test_a_store_of_an_earlier_version_is_all_its_own(tmp_path):
    import sqlite3

    (tmp_path / "blobs").mkdir()
    with sqlite3.connect(tmp_path / "blobs" / "index.sqlite") as connection:
        connection.execute(
            "CREATE TABLE blob(sha256 BLOB PRIMARY KEY, size INTEGER NOT NULL, manifest BLOB) WITHOUT ROWID"
        )
    with BlobStore(tmp_path / "blobs") as store:
        ref = store.put(b"x")
        collect_blobs(store, 0)
        assert store.has(ref.sha256)


def test_a_deleted_file_that_a_crash_left_is_swept(blobs):
    ref = blobs.put_stream([b"gone"], fetched=True)
    path = blobs.root / "objects" / ref.sha256.hex()[:2] / ref.sha256.hex()
    blobs.delete(ref.sha256)
    path.write_bytes(b"gone")
    with BlobStore(blobs.root) as again:
        assert not again.has(ref.sha256)
    assert not path.exists()


def gathered(folder):
    """A blob with its manifest, as another node has it, and the chunks."""
    with BlobStore(folder) as other:
        ref = other.put(BIG)
        manifest = decode_manifest(other.get(ref.manifest))
    return ref, manifest, [BIG[start : start + CHUNK_BYTES] for start in range(0, len(BIG), CHUNK_BYTES)]


def test_chunks_survive_the_process_and_spoiled_ones_are_noticed(blobs, tmp_path):
    ref, manifest, chunks = gathered(tmp_path / "other")
    partial = PartialBlob(blobs, ref, manifest)
    partial.put(0, chunks[0])
    partial.put(2, chunks[2])
    with BlobStore(blobs.root) as again:
        resumed = PartialBlob(again, ref, manifest)
        assert resumed.here() == {0, 2}
        (blobs.root / "partial" / ref.sha256.hex() / "2").write_bytes(b"spoiled")
        assert resumed.here() == {0}
        resumed.put(1, chunks[1])
        resumed.put(2, chunks[2])
        assert resumed.join() == ref
        assert again.get(ref.sha256) == BIG
        assert not (blobs.root / "partial" / ref.sha256.hex()).exists()


def test_chunks_that_are_not_those_of_the_blob_leave_nothing(blobs, tmp_path):
    ref, manifest, chunks = gathered(tmp_path / "other")
    lie = BlobRef(sha256=hashlib.sha256(b"another").digest(), size=ref.size, manifest=ref.manifest)
    partial = PartialBlob(blobs, lie, manifest)
    for number, data in enumerate(chunks):
        partial.put(number, data)
    with pytest.raises(Refused, match="another blob"):
        partial.join()
    assert not blobs.has(ref.sha256)
    assert list((blobs.root / "partial").iterdir()) == []


def test_a_small_blob_is_its_own_only_chunk(blobs):
    ref = BlobRef(sha256=hashlib.sha256(b"small").digest(), size=5)
    partial = PartialBlob(blobs, ref, Manifest(5, CHUNK_BYTES, (ref.sha256,)))
    partial.put(0, b"small")
    assert partial.join() == ref
