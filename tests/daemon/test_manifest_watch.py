"""Whom a network trusts may change while the daemon runs: what it shows and does follows, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.local_state import LocalState

from autoresearch.ask.node import Event, TrustAnswer
from autoresearch.ask.runs.answers import BestAnswer, TopAnswer
from autoresearch.log.log import Log
from autoresearch.trust.identity import load_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import Part
from tests.daemon.daemons import Daemon, wait_for
from tests.log.standing.village import ANN, ROOTS, TRUST, Village
from tests.record.making import NETWORK
from tests.trust.networks.making import TEA
from tests.warm import run_command

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Not started yet. Its log has a run that four would confirm, if anybody's word counted in its network."""
    made = Daemon(tmp_path / "home")
    made.paths.create()
    save_manifest(made.paths.manifest, NetworkManifest(NETWORK))
    with Log.open(made.paths.log, NETWORK) as log:
        village = Village(log)
        village.confirm(village.run(1.22, "steady", by=ANN), 2.0, 1.22)
    yield made
    made.stop()


def test_the_command_counts_for_a_running_daemon_and_for_one_that_starts(daemon: Daemon) -> None:
    daemon.start()
    before, pid = daemon.status().records, daemon.status().pid
    assert best(daemon).confirmed is None

    for root in ROOTS:
        done = command(daemon, "network", "trust", root.public.hex(), "--participant")
        assert "and the daemon uses it" in done.stderr
    steady = best(daemon).confirmed
    assert steady.state == "confirmed"
    assert top(daemon).programs[0].state == "confirmed"
    kinds = [event.kind for event in events(daemon)]
    assert (kinds.count("trust"), kinds.count("confirmed")) == (len(ROOTS), 1)
    assert command(daemon, "best", "--json").stdout.count('"confirmed"')

    for root in ROOTS[:3]:
        command(daemon, "network", "distrust", root.public.hex(), "--participant")
    assert best(daemon).confirmed is None
    assert [event.data["id"] for event in events(daemon) if event.kind == "demoted"] == [steady.id]
    assert (daemon.status().records, daemon.status().pid) == (before, pid)

    daemon.stop()
    for root in ROOTS[:3]:
        done = command(daemon, "network", "trust", root.public.hex(), "--participant")
        assert "no daemon runs" in done.stderr
    daemon.start()
    assert best(daemon).confirmed == steady


def test_who_is_trusted_from_now_on_verifies_without_a_restart(daemon: Daemon) -> None:
    daemon.start()
    assert daemon.post("/v1/work", verify_share=1.0).status_code == 409
    me = load_identity(daemon.paths.keys).root.public
    command(daemon, "network", "trust", me.hex(), "--participant")
    assert daemon.post("/v1/work", verify_share=1.0).status_code == 200
    never_done = daemon.post("/v1/work", verify_share=1.0, runs=2)
    assert (never_done.status_code, "name a time" in never_done.text) == (400, True)


def test_a_file_that_somebody_edits_is_followed_and_one_that_cannot_be_is_named(daemon: Daemon) -> None:
    daemon.start()
    manifest = load_manifest(daemon.paths.manifest)
    save_manifest(daemon.paths.manifest, NetworkManifest(NETWORK, TRUST))
    wait_for(lambda: best(daemon).confirmed is not None)

    for wrong, status in ((b"[trust", 400), (None, 409)):
        if wrong is None:
            save_manifest(daemon.paths.manifest, TEA)
        else:
            daemon.paths.manifest.write_bytes(wrong)
        assert daemon.post("/v1/trust").status_code == status
        wait_for(lambda: any("network.toml" in condition.detail for condition in daemon.status().conditions))
        assert best(daemon).confirmed is not None

    save_manifest(daemon.paths.manifest, manifest)
    wait_for(lambda: best(daemon).confirmed is None)
    assert not any(condition.name == Part.NETWORK for condition in daemon.status().conditions)


def test_the_answer_says_who_is_trusted_and_whether_that_is_new(daemon: Daemon) -> None:
    daemon.start()
    save_manifest(daemon.paths.manifest, NetworkManifest(NETWORK, Trust(frozenset({b"a" * 32}), 3)))
    answers = [msgspec.json.decode(daemon.post("/v1/trust").content, type=TrustAnswer) for _ in range(2)]
    assert [answer.changed for answer in answers] == [True, False]
    assert (answers[1].attestors, answers[1].needed) == ([(b"a" * 32).hex()], 3)


def best(daemon: Daemon) -> BestAnswer:
    return answer_of(daemon, "/v1/best", BestAnswer)


def top(daemon: Daemon) -> TopAnswer:
    return answer_of(daemon, "/v1/top", TopAnswer)


def answer_of(daemon: Daemon, path: str, answer: type) -> object:
    with daemon.client() as client:
        return msgspec.json.decode(client.get(path).content, type=answer)


def events(daemon: Daemon) -> list[Event]:
    """All that the daemon told."""
    local = LocalState(daemon.paths.local)
    try:
        return local.events_since(0) or []
    finally:
        local.close()


def command(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line at a daemon's home."""
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = run_command(*words, environment=environment)
    ended.check_returncode()
    return ended
