"""A node says which network it is in to whoever asks; what others answer is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from autoresearch_daemon.net.host.asking import ask
from autoresearch_daemon.net.host.dialling import Unreachable
from autoresearch_daemon.net.host.serving import NETWORK
from autoresearch_daemon.net.host.streams import StreamBroken, frame
from libp2p.custom_types import TProtocol

from autoresearch.paths import Paths
from autoresearch.settings import load_settings
from autoresearch.trust.invite import read_invite
from autoresearch.trust.manifest_file import decode_manifest, encode_manifest, load_manifest, save_manifest
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.hosts import in_trio, running, stranger
from tests.daemon.net.test_daemons import address_of, peers_of
from tests.trust.networks.making import PEER, TEA
from tests.warm import run_command


@in_trio
async def test_a_node_tells_its_network_to_whoever_asks(tmp_path):
    async with running(tmp_path / "a", manifest=encode_manifest(TEA)) as host:
        for _ in range(2):
            raw = await ask(tmp_path / "b", host.addresses()[0])
            assert decode_manifest(raw) == TEA
        assert len(host.book.contacts) == 1


@in_trio
async def test_who_does_not_answer_or_has_nothing_to_say_is_a_sentence(tmp_path):
    async with running(tmp_path / "a") as host:
        with pytest.RaisesGroup(StreamBroken, flatten_subgroups=True):
            await ask(tmp_path / "b", host.addresses()[0])
    with pytest.RaisesGroup(Unreachable, flatten_subgroups=True):
        await ask(tmp_path / "b", f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}")


@in_trio
async def test_an_answer_without_end_is_cut_off(tmp_path):
    async def flood(stream):
        with trio.move_on_after(10):
            await stream.write(frame(bytes(200_000))[:5])
            while True:
                await stream.write(bytes(60_000))

    async with stranger() as liar:
        liar.set_stream_handler(TProtocol(NETWORK), flood)
        address = str(liar.get_addrs()[0])
        with trio.fail_after(20), pytest.RaisesGroup(StreamBroken, flatten_subgroups=True):
            await ask(tmp_path / "b", address)


@pytest.mark.slow
def test_one_command_joins_a_running_network_without_a_file(tmp_path: Path) -> None:
    settings = {"AUTORESEARCH_NETWORK_LAN": "false", "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0"}
    first = Daemon(tmp_path / "a", settings | {"AUTORESEARCH_NETWORK_ENABLED": "true"})
    alone = replace(TEA, bootstrap=())
    save_manifest(first.paths.manifest, alone)
    second = Daemon(tmp_path / "b", settings)
    try:
        first.start()
        at_once = command(first, "network", "invite")
        wait_for(lambda: bool(peers_of(first).addresses))
        assert read_invite(at_once.stdout).manifest.bootstrap == (address_of(first),), at_once.stderr
        own_records = first.status().records  # what a node says of itself at its start
        assert own_records
        assert command(first, "network", "trust", "ab" * 32).returncode == 0
        alone = alone.with_attestor(bytes.fromhex("ab" * 32))
        joined = command(second, "network", "join", address_of(first))
        assert (joined.returncode, alone.network.id.hex() in joined.stdout) == (0, True), joined.stderr
        assert load_settings(second.paths.settings, {})[0].network.enabled
        assert load_manifest(second.paths.manifest) == replace(alone, bootstrap=(address_of(first),))
        second.start()
        wait_for(lambda: peers_of(first).network.connected == 1)
        wait_for(lambda: second.status().records == first.status().records == 2 * own_records)
        assert second.status().network == "tea"
        invite = command(first, "network", "invite").stdout
        assert address_of(first) in read_invite(invite).manifest.bootstrap
    finally:
        stop_all([first, second])


def command(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line at a daemon's home."""
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    assert Paths.from_environment(environment) == daemon.paths
    return run_command(*words, environment=environment)
