"""The blobs' quota: what others made and nobody used goes first, what is pinned or our own stays."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import Locked, NotFound, Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import CHUNK_BYTES, decode_manifest
from autoresearch.log.eviction import KeptBlob, excess, victims

BIG = os.urandom(2 * CHUNK_BYTES + 100)
NOW_MS = 2_000_000_000_000

kept_blobs = st.lists(
    st.builds(
        KeptBlob,
        st.binary(min_size=32, max_size=32),
        st.integers(0, 1000),
        st.integers(0, 50),
        fetched=st.booleans(),
        partial=st.booleans(),
    ),
    unique_by=lambda blob: blob.sha256,
    max_size=30,
)


@given(kept_blobs, st.data(), st.integers(-10, 20_000), st.integers(0, 60))
def test_what_goes_is_loose_old_the_least_recently_used_and_no_more_than_must(stored, data, excess_bytes, before_ms):
    pinned = {blob.sha256 for blob in stored if data.draw(st.booleans())}
    chosen = victims(stored, pinned, excess_bytes=excess_bytes, before_ms=before_ms)

    loose = [b for b in stored if b.fetched and b.sha256 not in pinned and b.used_ms < before_ms]
    assert set(chosen) <= set(loose)
    assert sum(b.size for b in chosen) >= excess_bytes or set(chosen) == set(loose)
    assert not chosen or sum(b.size for b in chosen[:-1]) < excess_bytes
    left = [b for b in loose if b not in chosen]
    assert all((not gone.partial, gone.used_ms) <= (not b.partial, b.used_ms) for gone in chosen for b in left)


@given(*[st.integers(0, 10_000)] * 5)
def test_something_has_to_go_exactly_when_quota_or_disk_is_short(used, needed, quota, free, minimum):
    over = excess(used_bytes=used, needed_bytes=needed, quota_bytes=quota, free_bytes=free, minimum_free_bytes=minimum)
    short = (quota and used + needed > quota) or free - needed < minimum
    assert (over > 0) == bool(short)


def loose_blob(store, sha256, used_ms=1):
    """The entry of a blob that was last used long ago."""
    path = store.root / "objects" / sha256.hex()[:2] / sha256.hex()
    os.utime(path, (used_ms / 1000, used_ms / 1000))
    return next(blob for blob in store.stored() if blob.sha256 == sha256)


def test_a_blob_goes_with_its_manifest_and_both_are_counted(blobs):
    own = blobs.put(BIG)
    other = blobs.put_stream([BIG[::-1]], fetched=True)
    files = sum(path.stat().st_size for path in (blobs.root / "objects").glob("*/*"))
    assert blobs.used_bytes() == sum(blob.size for blob in blobs.stored()) == files

    gone = loose_blob(blobs, other.sha256)
    assert blobs.delete([gone]) == gone.size
    assert not blobs.has(other.sha256)
    assert not blobs.has(other.manifest)
    assert blobs.get(own.sha256) == BIG
    assert blobs.has(own.manifest)
    assert blobs.used_bytes() == files - gone.size
    assert len(list((blobs.root / "objects").glob("*/*"))) == 2
    with pytest.raises(NotFound):
        blobs.open(other.sha256)


def test_a_blob_that_was_read_since_it_was_looked_at_stays(blobs):
    ref = blobs.put_stream([b"x"], fetched=True)
    looked = loose_blob(blobs, ref.sha256)
    blobs.get(ref.sha256)
    assert blobs.delete([looked]) == 0
    assert blobs.get(ref.sha256) == b"x"


def test_what_peers_read_does_not_count_as_used(blobs):
    ref = blobs.put_stream([b"x"], fetched=True)
    looked = loose_blob(blobs, ref.sha256)
    blobs.part(ref.sha256, None, 0, 1)
    assert blobs.delete([looked]) == 1


def test_what_this_node_made_stays_its_own_when_it_comes_again(blobs):
    blobs.put(b"mine")
    blobs.put_stream([b"mine"], fetched=True)
    blobs.put_stream([b"theirs"], fetched=True)
    blobs.put(b"theirs")
    blobs.put_stream([b"loose"], fetched=True)
    assert [blob.size for blob in blobs.stored() if blob.fetched] == [5]


def test_a_deleted_file_that_a_crash_left_is_swept(blobs):
    ref = blobs.put_stream([b"gone"], fetched=True)
    path = blobs.root / "objects" / ref.sha256.hex()[:2] / ref.sha256.hex()
    blobs.delete([loose_blob(blobs, ref.sha256)])
    path.write_bytes(b"gone")
    with BlobStore(blobs.root) as again:
        assert not again.has(ref.sha256)
    assert not path.exists()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A blob with its manifest, as another node has it, and the chunks."""
    with BlobStore(tmp_path_factory.mktemp("theirs")) as other:
        ref = other.put(BIG)
        manifest = other.get(ref.manifest)
    return ref, manifest, [BIG[start : start + CHUNK_BYTES] for start in range(0, len(BIG), CHUNK_BYTES)]


def test_chunks_survive_the_process_and_spoiled_ones_are_noticed(blobs, theirs):
    ref, raw, chunks = theirs
    manifest = decode_manifest(raw)
    with blobs.begin(ref.sha256, manifest) as partial:
        assert partial.look() == {0, 1, 2}
        assert partial.put(2, chunks[2])
        assert partial.put(0, chunks[0])
        assert not partial.put(1, chunks[0])
        with pytest.raises(Locked):
            blobs.begin(ref.sha256, manifest)
    with BlobStore(blobs.root) as again:
        again.put_stream([raw], fetched=True)
        assert again.begun_bytes(ref.sha256) >= CHUNK_BYTES
        path = blobs.root / "partial" / ref.sha256.hex()
        with path.open("r+b") as file:
            file.seek(5)
            file.write(b"spoiled")
        with again.begin(ref.sha256, manifest) as partial:
            assert partial.look() == {0, 1}
            assert partial.put(0, chunks[0])
            assert partial.put(1, chunks[1])
            assert partial.missing == set()
            assert again.finish(ref.sha256, ref.manifest, partial) == ref
        assert again.get(ref.sha256) == BIG
        assert again.find(ref.sha256) == ref
        assert not path.exists()
        assert again.begun_bytes(ref.sha256) == 0


def test_chunks_of_another_blob_leave_nothing_and_take_nothing_away(blobs, theirs):
    ref, raw, chunks = theirs
    own = blobs.put(BIG)  # what the chunks really make is here, and our own
    wrong = b"w" * 32
    with blobs.begin(wrong, decode_manifest(raw)) as partial:
        for number, data in enumerate(chunks):
            partial.put(number, data)
        with pytest.raises(Refused, match="another blob"):
            blobs.finish(wrong, ref.manifest, partial)
    assert not blobs.has(wrong)
    assert blobs.get(own.sha256) == BIG
    assert list((blobs.root / "partial").iterdir()) == []


def test_a_chunk_that_comes_after_the_end_is_written_nowhere(blobs, theirs):
    ref, raw, chunks = theirs
    with blobs.begin(ref.sha256, decode_manifest(raw)) as partial:
        partial.look()
    innocent = blobs.root / "innocent"
    with innocent.open("w+b"):
        partial.put(0, chunks[0])  # the number of its descriptor is another file's now
    assert innocent.stat().st_size == 0


def test_an_abandoned_part_goes_and_one_in_hand_stays(blobs, theirs):
    ref, raw, chunks = theirs
    with blobs.begin(ref.sha256, decode_manifest(raw)) as partial:
        partial.put(0, chunks[0])
        [part] = blobs.stored()
        assert part.partial
        assert blobs.delete([part]) == 0
    assert blobs.delete([part]) == part.size
    assert blobs.stored() == []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(BIG) + 10), st.integers(1, CHUNK_BYTES))
def test_a_part_is_what_was_put(tmp_path_factory, offset, length):
    with BlobStore(tmp_path_factory.mktemp("blobs")) as store:
        ref = store.put(BIG)
        assert store.part(ref.sha256, ref.manifest, offset, length) == BIG[offset : offset + length]


def test_a_part_of_a_damaged_blob_or_by_another_manifest_is_given_to_nobody(blobs):
    small, large = blobs.put(b"small"), blobs.put(BIG)
    assert blobs.part(small.sha256, None, 1, 100) == b"mall"
    for sha256, manifest in ((small.sha256, large.manifest), (large.sha256, None), (large.sha256, b"?" * 32)):
        with pytest.raises(NotFound):
            blobs.part(sha256, manifest, 0, 1)
    path = blobs.root / "objects" / large.sha256.hex()[:2] / large.sha256.hex()
    with path.open("r+b") as file:
        file.seek(CHUNK_BYTES)
        file.write(b"spoiled")
    assert blobs.part(large.sha256, large.manifest, 0, 10) == BIG[:10]
    with pytest.raises(Refused, match="changed"):
        blobs.part(large.sha256, large.manifest, CHUNK_BYTES, 10)
