"""Whatever a file holds: a sentence, bounded memory, and what was admitted before it stays whole."""

import hashlib
import random
import tracemalloc

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.errors import AutoresearchError, Refused
from autoresearch.log.bundle import Imported
from autoresearch.log.bundle_format import (
    DAG_CBOR,
    HEADER_PREFIX,
    RAW,
    BrokenBundle,
    BundledBlobs,
    closing,
    opening,
    write_block,
    write_header,
)
from autoresearch.log.chunks import CHUNK_BYTES, encode_manifest
from autoresearch.record.kinds import BlobRef
from autoresearch.record.record import Network
from tests.log.bundles.nodes import BIG, node
from tests.record.making import NETWORK, key, run_body, sealed


def by_hand(path, *blocks, end=True):
    """A bundle of these (codec, data), whatever they are."""
    first = opening(NETWORK)
    records = sum(codec == DAG_CBOR for codec, _ in blocks)
    with path.open("wb") as file:
        write_header(file, hashlib.sha256(first).digest())
        write_block(file, DAG_CBOR, first)
        for codec, data in blocks:
            write_block(file, codec, data)
        if end:
            write_block(file, DAG_CBOR, closing(records, 0))
    return path


def signed(record):
    return (DAG_CBOR, record.raw), (RAW, record.signature)


def run_with(blob, number=1, author=1, **more):
    body = run_body(1.0, **more)
    return sealed(key(author), msgspec.structs.replace(body, source=blob), seq=number)


def ref(data, **fields):
    return BlobRef(**({"sha256": hashlib.sha256(data).digest(), "size": len(data)} | fields))


def test_a_bundle_of_another_network_is_refused_by_name(receiver, tmp_path):
    with node(tmp_path / "other", Network(name="elsewhere")) as other:
        other.write(tmp_path / "bundle.car")
    imported, error = receiver.take(tmp_path / "bundle.car")
    assert isinstance(error, Refused)
    assert "elsewhere" in str(error)
    assert imported == Imported()


def test_records_of_another_network_under_this_ones_name_are_refused_one_by_one(receiver, tmp_path):
    foreign = sealed(key(1), run_body(1.0), network=Network(name="elsewhere"))
    mine = run_with(ref(b"x"))
    imported, error = receiver.take(by_hand(tmp_path / "b", *signed(foreign), *signed(mine)))
    assert error is None
    assert (imported.new, imported.refused) == (1, 1)
    assert "another network" in imported.reason


def test_forged_and_damaged_records_are_refused_and_the_rest_is_stored(receiver, tmp_path):
    good, other = run_with(ref(b"x")), run_with(ref(b"y"), 2)
    blocks = [
        (DAG_CBOR, good.raw), (RAW, other.signature), (DAG_CBOR, b"\xff" * 300), (RAW, bytes(64)),
        (DAG_CBOR, b""), (RAW, b""), (DAG_CBOR, bytes(CHUNK_BYTES)), (RAW, bytes(CHUNK_BYTES)), *signed(other),
    ]  # fmt: skip
    imported, error = receiver.take(by_hand(tmp_path / "b", *blocks))
    assert error is None
    assert (imported.new, imported.refused) == (1, 4)
    assert receiver.ids() == {other.id}


def test_only_blobs_that_an_admitted_record_of_the_group_names_are_kept(receiver, tmp_path):
    named, first = run_with(ref(b"named")), run_with(ref(b"of the first group"), 2)
    forged = run_with(ref(b"of a forged one"), 3)
    blocks = [
        (RAW, b"before any record"), *signed(first), (RAW, b"of no record"), *signed(named),
        (DAG_CBOR, forged.raw), (RAW, bytes(64)), (RAW, b"of a forged one"), (RAW, b"of the first group"),
        (RAW, b"named"), (RAW, b"named"),
    ]  # fmt: skip
    imported, error = receiver.take(by_hand(tmp_path / "b", *blocks))
    assert error is None
    assert (imported.new, imported.refused, imported.blobs) == (2, 1, 1)
    assert receiver.blobs.get(hashlib.sha256(b"named").digest()) == b"named"


@pytest.mark.parametrize("wrong", ["swapped", "missing", "not a manifest", "another blob"])
def test_a_large_blob_whose_chunks_are_not_its_own_is_not_kept_and_nothing_after_it_is_lost(receiver, tmp_path, wrong):
    chunks = [BIG[at : at + CHUNK_BYTES] for at in range(0, len(BIG), CHUNK_BYTES)]
    hashes = [hashlib.sha256(chunk).digest() for chunk in chunks]
    manifest = b"rubbish" if wrong == "not a manifest" else encode_manifest(len(BIG), hashes)
    named = ref(b"another" if wrong == "another blob" else BIG, manifest=hashlib.sha256(manifest).digest())
    if wrong == "swapped":
        chunks[0], chunks[1] = chunks[1], chunks[0]
    if wrong == "missing":
        del chunks[2]
    blocks = [*signed(run_with(named)), (RAW, manifest), *((RAW, chunk) for chunk in chunks)]
    after = run_with(ref(b"after"), 2)
    imported, error = receiver.take(by_hand(tmp_path / "b", *blocks, *signed(after), (RAW, b"after")))
    assert error is None
    assert (imported.new, imported.blobs) == (2, 1)
    assert not receiver.blobs.has(named.sha256)
    assert len([path for path in receiver.blobs.root.glob("*/**/*") if path.is_file()]) == 1


@pytest.mark.slow
def test_many_large_blobs_that_break_off_one_in_the_other_do_not_exhaust_the_stack(receiver, tmp_path):
    manifests = [encode_manifest(2 * CHUNK_BYTES, [bytes(32), b"%032d" % number]) for number in range(2_000)]
    made = [run_with(ref(m, size=2 * CHUNK_BYTES, manifest=hashlib.sha256(m).digest()), n + 1)
            for n, m in enumerate(manifests[:250])]  # fmt: skip
    blocks = [part for record in made for part in signed(record)] + [(RAW, m) for m in manifests]
    imported, error = receiver.take(by_hand(tmp_path / "b", *blocks))
    assert error is None
    assert imported.new == 250


def test_an_impossible_length_is_not_believed(receiver, tmp_path):
    path = by_hand(tmp_path / "b", *signed(run_with(ref(b"x"))), end=False)
    for bomb in (b"\xff\xff\xff\x7f", b"\xff" * 9, b"\xa5\x80\x40", b"\x00", b"\x23"):
        path.write_bytes(path.read_bytes() + bomb)
        tracemalloc.start()
        imported, error = receiver.take(path)
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
        tracemalloc.stop()
        assert isinstance(error, BrokenBundle)
        assert imported.new + imported.present == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A bundle with small and large files."""
    folder = tmp_path_factory.mktemp("whole")
    with node(folder) as local:
        for number in range(1, 6):
            local.run(number, source=b"%d" % number * 100, log=b"log", checkpoint=BIG if number == 3 else None)
        local.write(folder / "bundle.car", carried=BundledBlobs.ALL)
    return (folder / "bundle.car").read_bytes()


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_a_bundle_that_is_cut_off_anywhere_says_so(whole, tmp_path_factory, chance):
    folder = tmp_path_factory.mktemp("cut")
    # Most of it is one large file: cut as often before as within it.
    cut = chance.randrange(len(whole)) if chance.random() < 0.5 else chance.randrange(5_000)
    (folder / "b").write_bytes(whole[:cut])
    with node(folder / "to") as receiver:
        imported, error = receiver.take(folder / "b")
        assert isinstance(error, BrokenBundle)
        assert imported.refused == 0
        assert receiver.log.records.count() == imported.new


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_flipped_and_inserted_bytes_never_store_what_was_not_written(whole, tmp_path_factory, chance):
    folder = tmp_path_factory.mktemp("flipped")
    data = bytearray(whole[:5_000] if chance.random() < 0.5 else whole)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(min(len(data), 6_000))
        data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    (folder / "b").write_bytes(data)
    (folder / "whole").write_bytes(whole)
    with node(folder / "to") as receiver, node(folder / "true") as true:
        true.take(folder / "whole")
        _, error = receiver.take(folder / "b")
        assert error is None or isinstance(error, AutoresearchError)
        assert receiver.ids() <= true.ids()
        stored = list(receiver.blobs.root.glob("objects/*/*"))
        assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.name for path in stored)
        assert {path.name for path in stored} <= {path.name for path in true.blobs.root.glob("objects/*/*")}


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_with_a_sentence(receiver, tmp_path, junk, begins):
    (tmp_path / "b").write_bytes((HEADER_PREFIX if begins else b"") + junk)
    imported, error = receiver.take(tmp_path / "b")
    assert isinstance(error, BrokenBundle)
    assert imported == Imported()


@pytest.mark.slow
def test_a_million_tiny_blocks_are_passed_over_in_bounded_memory(receiver, tmp_path):
    path = by_hand(tmp_path / "b", *signed(run_with(ref(b"x"))), *[(RAW, b"")] * 20_000)
    tracemalloc.start()
    imported, error = receiver.take(path)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    assert (imported.new, error) == (1, None)


def test_random_record_soup_is_counted(receiver, tmp_path):
    chance = random.Random(1)
    blocks = [(DAG_CBOR if n % 2 == 0 else RAW, chance.randbytes(64)) for n in range(2_000)]
    imported, error = receiver.take(by_hand(tmp_path / "b", *blocks))
    assert error is None
    assert imported.refused == 1_000
