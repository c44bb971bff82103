"""The quota of blobs in a node: what others made makes room, what somebody here needs never goes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.peers.blob_storage import Keeper

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import Refused
from autoresearch.paths import Paths
from autoresearch.record.kinds import BlobRef, Run
from autoresearch.record.record import DEFAULT_NETWORK, seal
from autoresearch.run.experiment import abandoned, plan_as_it_stands, run_body
from autoresearch.task.loading import load_task
from autoresearch.trust.roster import Trust
from autoresearch.words import RunStatus
from tests.daemon.toy import write_toy_task
from tests.record.making import key

MIB = 1 << 20


@pytest.fixture
def notebook(tmp_path: Path):
    with Notebook(Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})) as opened:
        yield opened


def keeper(notebook: Notebook, quota_mib: int, **options: int) -> Keeper:
    limits = {"minimum_free_bytes": lambda: 0, "grace_ms": 0} | options
    return Keeper(notebook, quota_bytes=quota_mib * MIB, **limits)


def fetched(notebook: Notebook, size: int = MIB, *, used_ms: int = 0) -> BlobRef:
    """A blob of somebody else, used last at that time."""
    ref = notebook.blobs.put_stream([os.urandom(size)], fetched=True)
    path = notebook.blobs.root / "objects" / ref.sha256.hex()[:2] / ref.sha256.hex()
    os.utime(path, (used_ms / 1000, used_ms / 1000))
    return ref


def publish(
    notebook: Notebook, tmp_path: Path, value: float, *, author: int | None = None, number: int = 1, **changed: object
) -> Run:
    """A run with source and checkpoint of this node, or of another whose files were fetched."""
    task = load_task(write_toy_task(tmp_path / "task"))
    notebook.publish_task(task, now_ms())
    plan = plan_as_it_stands(task, f"X = {value}\n", replicate=0, title="a run")
    measurement = msgspec.structs.replace(abandoned(""), status=RunStatus.OK, value=value)
    if author is None:
        file = tmp_path / "checkpoint"
        file.write_bytes(os.urandom(MIB))
        published = notebook.publish_run(plan, measurement, now_ms(), checkpoint=file, keep_all=True)
        return published.record.body
    body = run_body(plan, measurement, source=fetched(notebook, 100), log=None, checkpoint=fetched(notebook))
    body = msgspec.structs.replace(body, **changed)
    record = seal(
        key(author), DEFAULT_NETWORK, "run", body, seq=number, prev=bytes(32 * (number > 1)), time_ms=now_ms()
    )
    notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=now_ms())
    return body


async def test_what_was_unused_longest_makes_room(notebook):
    refs = [fetched(notebook, used_ms=1000 * number) for number in range(8)]
    await keeper(notebook, 8).make_room(2 * MIB)
    present = [notebook.blobs.has(ref.sha256) for ref in refs]
    assert present == sorted(present)
    assert 5 <= sum(present) <= 6
    assert notebook.blobs.used_bytes() <= 6 * MIB


async def test_own_runs_and_the_best_and_what_is_held_never_go(notebook, tmp_path):
    own = [publish(notebook, tmp_path, 5.0 + number) for number in range(3)]
    best = publish(notebook, tmp_path, 0.1, author=1)
    worst = [publish(notebook, tmp_path, 9.0 + number, author=2, number=1 + number) for number in range(3)]
    held, loose = fetched(notebook), fetched(notebook)
    node = keeper(notebook, 1)
    with node.hold(held), pytest.raises(Refused, match="no room"):
        await node.make_room(MIB)

    blobs = notebook.blobs
    for body in (*own, best):
        assert blobs.has(body.source.sha256)
        assert blobs.has(body.checkpoint.sha256)
    assert blobs.has(held.sha256)
    assert not blobs.has(loose.sha256)
    assert not any(blobs.has(body.checkpoint.sha256) for body in worst)


async def test_who_cheated_for_all_to_see_has_nothing_kept_in_the_place_of_the_best(notebook, tmp_path):
    notebook.log.trust = Trust(participants=frozenset({key(1).public, key(2).public}))
    fakes = [publish(notebook, tmp_path, 0.1 + n / 100, author=2, number=1 + n, seed=7) for n in range(4)]
    best = publish(notebook, tmp_path, 5.0, author=1)
    with pytest.raises(Refused, match="no room"):
        await keeper(notebook, 1).make_room(MIB)
    assert notebook.blobs.has(best.checkpoint.sha256)
    assert not any(notebook.blobs.has(body.checkpoint.sha256) for body in fakes)


async def test_the_files_of_own_records_stay_also_when_they_came_back_from_others(notebook, tmp_path):
    own = publish(notebook, tmp_path, 5.0)
    data = notebook.blobs.get(own.checkpoint.sha256)
    [entry] = [blob for blob in notebook.blobs.stored() if blob.sha256 == own.checkpoint.sha256]
    assert notebook.blobs.delete([entry])
    notebook.blobs.put_stream([data], fetched=True)
    with pytest.raises(Refused):
        await keeper(notebook, 1).make_room(MIB)
    assert notebook.blobs.has(own.checkpoint.sha256)


async def test_a_hold_ends(notebook):
    ref = fetched(notebook)
    node = keeper(notebook, 1)
    with node.hold(ref), node.hold(ref):
        pass
    await node.make_room(MIB)
    assert not notebook.blobs.has(ref.sha256)


async def test_what_has_just_come_stays(notebook):
    refs = [fetched(notebook, used_ms=now_ms()), fetched(notebook, used_ms=now_ms() - 3_600_000)]
    with pytest.raises(Refused):
        await keeper(notebook, 2, grace_ms=600_000).make_room(2 * MIB)
    assert [notebook.blobs.has(ref.sha256) for ref in refs] == [True, False]


async def test_a_disk_that_is_nearly_full_is_relieved_and_no_limit_is_none(notebook):
    refs = [fetched(notebook) for _ in range(3)]
    await keeper(notebook, 0).make_room(1)
    assert all(notebook.blobs.has(ref.sha256) for ref in refs)
    with pytest.raises(Refused):
        await keeper(notebook, 0, minimum_free_bytes=lambda: 1 << 60).make_room(1)
    assert not any(notebook.blobs.has(ref.sha256) for ref in refs)


async def test_the_status_says_what_is_used(notebook):
    fetched(notebook)
    node = keeper(notebook, 4)
    assert node.status().blobs_bytes == notebook.blobs.used_bytes() >= MIB
    assert node.status().quota_bytes == 4 * MIB
