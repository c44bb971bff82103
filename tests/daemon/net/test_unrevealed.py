"""A daemon that is killed after it measured somebody's run, before others did, tells it when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.log.log import Log
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import Record
from autoresearch.task.loading import load_task
from autoresearch.trust.manifest_file import load_manifest
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.net.test_cheaters import paths_of, publish, village
from tests.daemon.toy import write_toy_task
from tests.record.making import commitment

pytestmark = pytest.mark.slow

AUTHOR, VERIFIER, *OTHERS = range(5)


def take_over(home: Path, other: Path) -> None:
    """Carry one's records and files to another by hand."""
    with Notebook(paths_of(home)) as own, Notebook(paths_of(other)) as theirs:
        theirs.log.writer.ingest(list(own.log.records.iter_raw()), now_ms=2**52)
        for record in own.log.records.newest(kind="run"):
            assert isinstance(record.body, Run)
            theirs.blobs.put(own.blobs.get(record.body.source.sha256))


def commits(home: Path, run: bytes, now_ms: int) -> None:
    """Another verifier says that it measured the run."""
    with Notebook(paths_of(home)) as notebook:
        notebook.publish_identity(now_ms)
        device = notebook.identity.device
        proof = ecvrf.prove(bytes(device.key), question(run, "evaluate", 0))
        body = Verification(run=run, stage="evaluate", verdict="pass", value=1.0, proof=proof)
        notebook.publish_commitment(commitment(device, body), now_ms)


def own(daemon: Daemon, kind: str) -> list[Record]:
    """What a daemon's device published of a kind."""
    manifest = load_manifest(paths_of(daemon.home).manifest)
    with Log.open(paths_of(daemon.home).log, manifest.network, read_only=True, trust=manifest.trust) as log:
        return log.records.newest(kind=kind)


def test_what_was_measured_is_told_after_a_kill(tmp_path: Path) -> None:
    homes, _ = village(tmp_path)
    folder = write_toy_task(tmp_path / "task")
    run = parse_id(publish(homes[AUTHOR], folder, load_task(folder).baseline.decode(), 0.61, title="honest"))
    daemon = Daemon(homes[VERIFIER]).start()
    daemon.stop()
    take_over(homes[AUTHOR], homes[VERIFIER])
    daemon.start()
    try:
        daemon.post("/v1/work", task=str(folder), verify_share=1)
        wait_for(lambda: len(own(daemon, "commitment")) == 1)
        daemon.kill()
        assert own(daemon, "verification") == []
        mine = own(daemon, "commitment")[0]
        for number in OTHERS[:2]:
            commits(homes[number], run, mine.time)
            take_over(homes[number], homes[VERIFIER])
        daemon.start()
        wait_for(lambda: len(own(daemon, "verification")) == 1)
        revealed = own(daemon, "verification")[0]
        assert isinstance(revealed.body, Verification)
        assert revealed.body.value == pytest.approx(0.61)
        waited = {record.id for record in own(daemon, "commitment")}
        assert len(waited) == 3
        assert set(revealed.links) == {run, *waited}
    finally:
        daemon.stop()
