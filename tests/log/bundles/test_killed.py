"""Killed in the middle of an import: what is there is whole, and the next import brings the rest."""

import hashlib
import random
import time

import pytest

from autoresearch.log.bundle_format import BundledBlobs
from tests.log.bundles.nodes import BIG, node
from tests.log.dumping import dump
from tests.warm import warm

KILLS = 25
RECORDS = 600


@pytest.mark.slow
def test_killed_while_importing(tmp_path):
    chance = random.Random(1)
    with node(tmp_path / "from") as local:
        for number in range(1, RECORDS + 1):
            local.run(number, source=b"%d" % (number // 10), checkpoint=BIG if number % 150 == 0 else None)
        local.write(tmp_path / "bundle.car", carried=BundledBlobs.ALL)
        contents = dump(local.log)
    held, victims = [], warm("tests.log.bundles.nodes", "autoresearch.log.bundle")
    for kill in range(KILLS):
        folder = tmp_path / f"to{kill}"
        process = victims.open("tests.log.bundles.victim", str(tmp_path / "bundle.car"), str(folder))
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.6))  # the moment of the kill, not a wait for anything
        process.kill()
        process.communicate()
        with node(folder) as receiver:
            held.append(receiver.log.records.count())
            assert receiver.log.reader.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            for path in receiver.blobs.root.glob("objects/*/*"):
                assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
            imported, error = receiver.take(tmp_path / "bundle.car")
            assert (error, imported.present, imported.new) == (None, held[-1], RECORDS - held[-1])
            assert dump(receiver.log) == contents
    assert any(0 < count < RECORDS for count in held), "the kills fell all too early or all too late"
