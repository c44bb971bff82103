"""The file for containers: what it gives each node's shell founds a network, joins it, and is ended by a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.warm import run_command

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SECONDS = 200


def peers(place: dict[str, str]) -> int:
    """How many nodes a node is connected to."""
    result = run_command("network", "peers", "--json", environment=place)
    return int(json.loads(result.stdout)["network"]["connected"]) if result.returncode == 0 else 0


def test_each_node_has_a_home_of_its_own() -> None:
    homes = [
        [volume.split(":")[0] for volume in service["volumes"] if volume.endswith(":/home/node")]
        for service in COMPOSE["services"].values()
    ]
    assert sorted(homes) == [["founder"], ["node-2"], ["node-3"]]
    assert set(COMPOSE["volumes"]) == {"founder", "node-2", "node-3", "shared"}
    image = (ROOT / "Containerfile").read_text()
    assert "AUTORESEARCH_HOME=/home/node" in image


@pytest.mark.slow
def test_three_nodes_find_each_other(tmp_path: Path) -> None:
    pytest.importorskip("libp2p")
    shared = tmp_path / "shared"
    shared.mkdir()
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    nodes: dict[str, tuple[dict[str, str], subprocess.Popen[bytes]]] = {}
    for name, service in COMPOSE["services"].items():
        home = tmp_path / name
        home.mkdir()
        place = {**os.environ, "PATH": programs, "AUTORESEARCH_HOME": str(home)}
        place |= {"AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0", "AUTORESEARCH_WORK_WORKERS": "0"}
        command = [part.replace("$$", "$").replace("/shared", str(shared)) for part in service["command"]]
        with (tmp_path / f"{name}.out").open("wb") as printed:
            nodes[name] = place, subprocess.Popen(command, env=place, stdout=printed, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + SECONDS
        while (counts := [peers(place) for place, _ in nodes.values()]) != [2, 2, 2]:
            outputs = {name: (tmp_path / f"{name}.out").read_text()[-500:] for name in nodes}
            assert time.monotonic() < until, f"peers {counts}, said {outputs}"
            assert all(process.poll() is None for _, process in nodes.values()), outputs
            time.sleep(0.2)  # to ask takes time from those that are asked
    finally:
        for _, process in nodes.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(60) for name, (_, process) in nodes.items()}
        subprocess.run(["autoresearch", "down"], env=nodes["founder"][0], capture_output=True, check=False)
    assert codes["node-2"] == codes["node-3"] == 0
