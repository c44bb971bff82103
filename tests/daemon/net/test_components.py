"""A component of another participant: found by its words, and installed when its git host is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.records import SearchAnswer
from autoresearch.ask.registry.choosing import read_component, resolve
from autoresearch.ask.registry.components import ReleaseAnswer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.encoding import parse_id
from autoresearch.trust.manifest_file import load_manifest
from tests.ask.registry.making import MAIN, git, installed, repository
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.test_verification import answer_of, begin, friends

pytestmark = pytest.mark.slow


def test_another_daemon_finds_it_and_installs_it_from_the_peer(tmp_path: Path) -> None:
    host = tmp_path / "host"
    commit = repository(host)
    git(host, "remote", "add", "origin", "https://git.invalid/corridor.git")
    publisher, reader = (Daemon(home) for home in friends(tmp_path, 2))
    try:
        begin([publisher], "")
        begin([reader], answer_of(publisher, "/v1/peers", PeersAnswer).addresses[0])
        about = {"type": "environment", "name": "corridor", "version": "1.0.0", "description": "walk to its end"}
        published = publisher.post("/v1/releases", place=str(host), **about)
        assert published.status_code == 200, published.text
        shutil.rmtree(host)

        def search() -> SearchAnswer:
            return answer_of(reader, "/v1/search?query=walk&type=environment", SearchAnswer)

        wait_for(lambda: bool(search().components))
        [row] = search().components
        assert (row.name, row.version, row.attested, row.own) == ("corridor", "1.0.0", True, False)
        whole = answer_of(reader, f"/v1/releases/{row.id}", ReleaseAnswer).release
        assert (whole.git, whole.commit) == ("https://git.invalid/corridor.git", commit)

        bundle = component_of(reader, row.id)
        wait_for(lambda: reader.post("/v1/fetch", sha256=bundle.sha256.hex(), size=bundle.size).status_code == 200)
        trust = load_manifest(reader.paths.manifest)
        with Log.open(reader.paths.log, trust.network, read_only=True, trust=trust.trust) as log:
            choice = resolve(log, "environment", "corridor")
            with BlobStore(reader.paths.blobs, read_only=True) as blobs:
                installed(log, blobs, choice.release.row.id, tmp_path / "project" / "corridor")
        assert (tmp_path / "project/corridor/main.py").read_bytes() == MAIN

        yanked = publisher.post("/v1/yanks", release=row.id, reason="wrong reward")
        assert yanked.status_code == 200, yanked.text
        wait_for(lambda: not search().components)
        assert reader.post("/v1/yanks", release=row.id).status_code == 409
    finally:
        stop_all([publisher, reader])


def component_of(daemon: Daemon, release: str):
    manifest = load_manifest(daemon.paths.manifest)
    with Log.open(daemon.paths.log, manifest.network, read_only=True) as log:
        return read_component(log, parse_id(release)).bundle
