"""Two machines of one participant and a stranger's: services by name, told to own machines alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.agent.models import ActedAnswer, ServiceAnswer
from autoresearch_cli.models import VersionAnswer

from autoresearch.ask.node import PeersAnswer, ServicesAnswer
from autoresearch.services import Service
from autoresearch.version import __version__
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.warm import run_command

pytestmark = pytest.mark.slow

NETWORK = {
    "AUTORESEARCH_NETWORK_ENABLED": "true",
    "AUTORESEARCH_NETWORK_LAN": "false",
    "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
    "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
}


PROGRAM = (sys.executable, "-m", "autoresearch_cli")


def command(daemon: Daemon, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run_command(*words, environment={**os.environ, "AUTORESEARCH_HOME": str(daemon.home)}, folder=folder)


def output(daemon: Daemon, *words: str, folder: Path | None = None) -> str:
    done = command(daemon, *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def services(daemon: Daemon) -> list[Service]:
    return msgspec.json.decode(output(daemon, "agent", "services", "--json"), type=ServicesAnswer).services


def project(daemon: Daemon, folder: Path) -> Path:
    folder.mkdir()
    for words in ("init", "install policy q_table --default", "install trainer q_learning", "install dataset replay"):
        output(daemon, *words.split(), folder=folder)
    return folder


def test_a_trainer_on_one_machine_learns_from_another_and_no_stranger_knows_of_it(tmp_path: Path) -> None:
    desk, laptop, tablet, stranger = (
        Daemon(tmp_path / name, dict(NETWORK)) for name in ("desk", "laptop", "tablet", "stranger")
    )
    output(desk, "node", "id", "new", "--no-passphrase")
    for other in (laptop, tablet):
        request = output(other, "node", "id", "add-device").strip()
        output(other, "node", "id", "add-device", output(desk, "node", "id", "add-device", request).strip())
    served = None
    try:
        for bootstrap, daemon in ((), desk), ((desk,), laptop), ((desk, laptop), tablet), ((desk, laptop), stranger):
            addresses = ",".join(peers_of(node).addresses[0] for node in bootstrap)
            daemon.settings["AUTORESEARCH_NETWORK_BOOTSTRAP"] = addresses
            daemon.start()
            wait_for(lambda daemon=daemon: bool(peers_of(daemon).addresses))
        school, maze = project(laptop, tmp_path / "school"), project(tablet, tmp_path / "maze")
        served = subprocess.Popen(
            [*PROGRAM, *["agent", "serve", "trainer", "--name", "school", "--allow", "own", "--json"]],
            cwd=school,
            env={**os.environ, "AUTORESEARCH_HOME": str(laptop.home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert served.stdout
        line = served.stdout.readline()
        assert line, served.communicate()[1]
        own = msgspec.json.decode(line, type=ServiceAnswer).service
        assert (own.address, own.for_own_machines) == ("0.0.0.0", True)

        wait_for(lambda: [each.name for each in services(tablet)] == ["school"])
        (service,) = services(tablet)
        assert (service.address, service.port, service.public_key) == ("127.0.0.1", own.port, own.public_key)
        assert service.machine
        assert "school\ttrainer\t" in output(tablet, "agent", "services")
        played = output(tablet, "train", "20", "--join", "school", "--json", folder=maze)
        acted = msgspec.json.decode(played.splitlines()[-1], type=ActedAnswer)
        assert (acted.learner, acted.metrics["episodes"]) == (f"127.0.0.1:{own.port}", 20)

        wait_for(lambda: any(peer.connected for peer in peers_of(stranger).peers))
        assert services(stranger) == []
        refused = command(stranger, "train", "1", "--join", "school", folder=project(stranger, tmp_path / "other"))
        assert (refused.returncode, "no service school runs" in refused.stderr) == (4, True)

        compared = msgspec.json.decode(output(tablet, "node", "version", "--check", "--json"), type=VersionAnswer)
        assert (compared.newest, set(compared.peers)) == ("", {__version__})
        assert sum(compared.peers.values()) >= 2

        # A machine that its owner revokes is told nothing more, and its key opens nothing.
        assert laptop.paths.own_machines.read_text().split()
        device = next(peer.device_key for peer in peers_of(desk).peers if peer.peer == peers_of(tablet).peer)
        desk.stop()
        output(desk, "node", "id", "revoke", device, "--yes")
        desk.start()
        wait_for(lambda: laptop.paths.own_machines.read_text() == "")
        assert services(tablet) == []
        place = f"127.0.0.1:{own.port}"
        shut = command(tablet, "train", "1", "--join", place, "--server-key", own.public_key, folder=maze)
        assert (shut.returncode, "does not accept this client's key" in shut.stderr) == (6, True), shut.stderr
    finally:
        if served:
            served.terminate()
            served.communicate()
        stop_all((desk, laptop, tablet, stranger))


def peers_of(daemon: Daemon) -> PeersAnswer:
    with daemon.client() as client:
        return msgspec.json.decode(client.get("/v1/peers").content, type=PeersAnswer)
