"""What is written into a bundle arrives: records, their views, and the files that they refer to."""

import hashlib
import re
import tempfile
import tracemalloc
from itertools import islice
from pathlib import Path

import dag_cbor
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multiformats import CID, varint

from autoresearch.log.bundle import Imported, is_bundle
from autoresearch.log.bundle_format import BundledBlobs
from autoresearch.log.log import Log
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import Network
from tests.log.bundles.nodes import BIG, files_of, node
from tests.log.dumping import dump
from tests.log.universe import SMALL, records
from tests.record.making import NETWORK, NOW_MS, digest_of, key, pairs, sealed, task_body


@settings(max_examples=10, deadline=None)
@given(records(max_size=40), st.integers(0, 40))
def test_a_bundle_makes_any_two_logs_hold_the_union(made, shared):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (
            node(place / "a", SMALL) as sender,
            node(place / "b", SMALL) as receiver,
            Log.open(place / "c", SMALL) as both,
        ):
            sender.log.writer.ingest(pairs(made[shared // 2 :]), now_ms=NOW_MS)
            receiver.log.writer.ingest(pairs(made[:shared]), now_ms=NOW_MS)
            both.writer.ingest(
                list(sender.log.records.iter_raw()) + list(receiver.log.records.iter_raw()), now_ms=NOW_MS
            )
            held = sender.log.records.count()
            sender.write(place / "bundle.car", carried=BundledBlobs.NONE)
            imported, error = receiver.take(place / "bundle.car")
            assert error is None
            assert imported.new + imported.present + imported.over_quota == held
            assert dump(receiver.log) == dump(both)


def test_files_arrive_as_far_as_they_were_asked_for(sender, receiver, tmp_path):
    for carried, arrived in ((BundledBlobs.NONE, 0), (BundledBlobs.SOURCES, 2), (BundledBlobs.ALL, 3)):
        run = sender.run(1, source=b"print()", log=b"step 1", checkpoint=BIG)
        other = sender.run(2, source=b"")
        sender.write(tmp_path / "bundle.car", carried=carried)
        imported, error = receiver.take(tmp_path / "bundle.car")
        assert error is None
        there_now = [receiver.blobs.has(sha256) for sha256 in files_of(run) + files_of(other)]
        assert sum(there_now) == arrived + (carried is BundledBlobs.ALL)
    assert imported == Imported(present=2, blobs=2)
    assert receiver.blobs.get(run.body.checkpoint.sha256) == BIG
    assert receiver.blobs.has(run.body.checkpoint.manifest)


def test_a_second_import_brings_nothing_but_what_failed_before(sender, receiver, tmp_path):
    early = sender.run(1, source=b"x", time_ms=NOW_MS + 3_600_000)
    sender.run(2, source=b"y")
    sender.write(tmp_path / "bundle.car")
    first, _ = receiver.take(tmp_path / "bundle.car")
    assert first == Imported(new=1, early=1, blobs=1)
    assert not receiver.blobs.has(early.body.source.sha256)
    again, _ = receiver.take(tmp_path / "bundle.car", now_ms=NOW_MS + 3_600_000)
    assert again == Imported(new=1, present=1, blobs=1)
    assert receiver.take(tmp_path / "bundle.car")[0] == Imported(present=2)


@pytest.mark.slow
def test_many_groups_with_files_that_repeat(sender, receiver, tmp_path):
    made = [sender.run(number, source=b"%d" % (number % 7)) for number in range(1, 600)]
    written = sender.write(tmp_path / "bundle.car")
    assert written == (599, 7, 0)
    imported, error = receiver.take(tmp_path / "bundle.car")
    assert (imported, error) == (Imported(new=599, blobs=7), None)
    assert receiver.ids() == {record.id for record in made}


def test_a_bundle_of_one_task_leaves_other_tasks_out_and_takes_what_judges_it_along(sender, receiver, tmp_path):
    other = task_body({"name": "other"})
    run = sender.run(1, source=b"x")
    left = sealed(key(1), other, kind="task", seq=2)
    note = sealed(key(1), Note(topic="insight", text="of no task"), kind="note", seq=3)
    sender.log.writer.ingest(pairs([left, note]), now_ms=NOW_MS)
    sender.write(tmp_path / "bundle.car", task=digest_of())
    receiver.take(tmp_path / "bundle.car")
    assert receiver.ids() == {run.id, note.id}


def test_files_that_are_not_here_or_were_damaged_are_counted(sender, tmp_path):
    lost = sender.run(1, source=b"lost", log=b"kept")
    path = sender.blobs.root / "objects" / lost.body.source.sha256.hex()[:2] / lost.body.source.sha256.hex()
    path.write_bytes(b"other")
    assert sender.write(tmp_path / "bundle.car", carried=BundledBlobs.ALL) == (1, 1, 1)


def test_a_bundle_is_a_car_that_others_read(sender, tmp_path):
    run = sender.run(1, source=b"print()", checkpoint=BIG)
    sender.write(tmp_path / "bundle.car", carried=BundledBlobs.ALL)
    root, blocks = read_as_others_do((tmp_path / "bundle.car").read_bytes())
    assert dag_cbor.decode(blocks[root]) == {"bundle": 1, "network": NETWORK.id, "name": NETWORK.name}
    assert dag_cbor.decode(list(blocks.values())[-1]) == {"records": 1, "blobs": 2}
    assert blocks[CID.decode(format_id(run.id))] == run.raw
    assert b"print()" in blocks.values()
    assert all(cid.digest[2:] == hashlib.sha256(data).digest() for cid, data in blocks.items())


def read_as_others_do(data):
    """The root and the blocks of a CAR, by the libraries of the field."""
    length, _, rest = varint.decode_raw(data)
    header = dag_cbor.decode(bytes(rest[:length]))
    assert header["version"] == 1
    rest, blocks = bytes(rest[length:]), {}
    while rest:
        length, _, section = varint.decode_raw(rest)
        section, rest = bytes(section[:length]), bytes(section[length:])
        cid = CID.decode(section[:36])
        blocks[cid] = section[36:]
    return header["roots"][0], blocks


def test_what_is_no_bundle_is_told_apart_by_its_first_bytes(sender, tmp_path):
    sender.write(tmp_path / "bundle.car")
    (tmp_path / "other").write_text("commit\tval_bpb\n")
    (tmp_path / "empty").touch()
    assert [is_bundle(tmp_path / name) for name in ("bundle.car", "other", "empty")] == [True, False, False]


def test_the_format_does_not_change(tmp_path):
    """An empty bundle of the network “test” with the id of sixteen n is what docs/protocol.md says it is."""
    network = Network(name="test")
    network.__dict__["id"] = b"n" * 16
    with node(tmp_path, network) as local:
        local.write(tmp_path / "bundle.car")
    written = (tmp_path / "bundle.car").read_bytes().hex()
    lines = [line.strip() for line in (Path(__file__).parents[3] / "docs/protocol.md").read_text().splitlines()]
    assert written in "".join(line for line in lines if re.fullmatch("[0-9a-f]+", line))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log(tmp_path):
    peaks = {}
    for size in (1_000, 6_000):
        with node(tmp_path / f"from{size}") as sender, node(tmp_path / f"to{size}") as receiver:
            notes = (
                sealed(key(1), Note(topic="insight", text=f"{number} " + "x" * 1000), kind="note", seq=number)
                for number in range(1, size + 1)
            )
            while batch := list(islice(notes, 500)):
                sender.log.writer.ingest(pairs(batch), now_ms=NOW_MS)
            tracemalloc.start()
            sender.write(tmp_path / "bundle.car")
            imported, error = receiver.take(tmp_path / "bundle.car")
            peaks[size] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert (imported.new, error) == (size, None)
    assert peaks[6_000] < 1.3 * peaks[1_000] < 20 << 20
