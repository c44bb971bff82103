"""Joining a network, the addresses of this node, and what the ``id`` commands do with the log: delegate, revoke, add.

The root key is at hand where it signs.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

import typer

from autoresearch.ask.acts.joining import Membership, find_network
from autoresearch.ask.acts.joining import join as join_network
from autoresearch.ask.acts.notebook import Notebook, check_name, own_devices
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import NameRequest
from autoresearch.errors import DaemonNotRunning
from autoresearch.log.log import Log
from autoresearch.log.standing.context import participant_with_key
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Merge
from autoresearch.trust import identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest, is_loopback
from autoresearch_cli import home, starting
from autoresearch_cli.commands import network_homes
from autoresearch_cli.models import EnrolAnswer, MergeAnswer
from autoresearch_cli.rendering.output import print_json, print_text, say

# A node may have many addresses; some of them are enough to begin with.
OWN_ADDRESSES = 4
STARTING = "starting"
POLL_SECONDS = 0.1
Bring = Annotated[bool, typer.Option("--bring", help="Publish your finished runs of the network used until now in it.")]


def become_member(where: str, *, bring: bool) -> Membership:
    """Join the network that was named, by an invite, a file, an address or its name; say what a person should know.

    Raises what :func:`find_network` raises; Refused: something can't be written.
    """
    paths = home.paths()
    is_new = not (paths.keys / "device.key").exists()
    offer = find_network(paths, where)
    joined = join_network(paths, offer)
    if is_new and (paths.keys / "device.key").exists():
        say(starting.KEY_MADE)
    network_homes.after_joining(joined.left, bring=bring)
    if offer.by_word:
        say("the trust list comes from that node alone: compare id, founders and attestors with another participant")
    if joined.manifest.trust != offer.manifest.trust:
        say("you were in this network already: your trust list is unchanged")
    return joined


def own_addresses(*, patience_seconds: float = 0.0) -> list[str]:
    """What others need to reach this node: nothing with the daemon down, loopback only when there is nothing else.

    A network that is starting has none yet; it is given ``patience_seconds``.
    """
    try:
        client = home.client()
        answer = client.ask(Node.peers)
        deadline = time.monotonic() + patience_seconds
        while answer.network.state == STARTING and not answer.addresses and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            answer = client.ask(Node.peers)
    except DaemonNotRunning:
        return []
    return not_only_here(answer.addresses)


def to_be_sent(manifest: NetworkManifest, addresses: list[str]) -> NetworkManifest:
    """The network as an invite says it: this node's addresses first, none that means another machine elsewhere."""
    whole = manifest.with_bootstrap(tuple(addresses[:OWN_ADDRESSES]))
    return replace(whole, bootstrap=tuple(not_only_here(list(whole.bootstrap))))


def not_only_here(addresses: list[str]) -> list[str]:
    """Without the addresses of the loopback interface, unless there are no others."""
    return [address for address in addresses if not is_loopback(address)] or addresses


ALL_RUNS = 1_000_000


def rows(mine: identity.OwnKeys) -> list[identity.Device]:
    """This participant's devices, as the log here has them."""
    with Log.open(home.paths().log, home.manifest().network, read_only=True) as log:
        return own_devices(log, mine.root.public, home.now_ms())


def name_of(mine: identity.OwnKeys) -> str:
    """What this participant calls itself, as the log here has it."""
    with Log.open(home.paths().log, home.manifest().network, read_only=True) as log:
        return participant_with_key(log, mine.root.public).name


def call(name: str) -> None:
    """Publish what this participant calls itself, empty: nothing any more; through the daemon where one runs."""
    check_name(name)
    with suppress(DaemonNotRunning):
        home.client().ask(Node.set_name, NameRequest(name=name))
        return
    with Notebook(home.paths()) as notebook:
        notebook.publish_name(name, home.now_ms())


def renew(mine: identity.OwnKeys) -> None:
    """Delegate this device anew, whatever is left of the last time."""
    with Notebook(home.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.delegate(mine.root, home.now_ms())
        notebook.publish_identity(home.now_ms())


def revoke(mine: identity.OwnKeys, device: bytes, reason: str) -> None:
    """Revoke a device."""
    with Notebook(home.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.revoke(mine.root, device, home.now_ms(), reason=reason)


def merge(mine: identity.OwnKeys, device: bytes) -> MergeAnswer:
    """End the forks of a device of this participant."""
    with Notebook(home.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        log = notebook.log
        held = [run for run in log.records.newest(kind="run", author=device, limit=ALL_RUNS) if log.devices.forked(run)]
        record = notebook.merge(mine.root, device, home.now_ms())
        assert isinstance(record.body, Merge)
        heads = [log.records.get(head) for head in record.body.heads]
        return MergeAnswer(
            device_key=device.hex(),
            id=format_id(record.id),
            heads=[format_id(head.id) for head in heads],
            seq=max(head.seq for head in heads),
            runs=sum(not log.devices.forked(run) for run in held),
        )


def request(*, json: bool) -> None:
    """On the new machine: its request."""
    device = identity.own_device(home.paths().keys).public
    _print("request", device, identity.write_request(device), json=json)
    if not json:
        say("→ on the machine with the root key: autoresearch node id add-device and this text")


def approve(text: str, mine: identity.OwnKeys, *, json: bool) -> None:
    """Where the root key is: delegate the device that asks."""
    device = identity.read_request(text)
    with Notebook(home.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.publish_identity(home.now_ms())
        record = notebook.delegate(mine.root, home.now_ms(), device=device)
    _print("answer", device, identity.write_answer(record), json=json)
    if not json:
        say("→ on the new machine: autoresearch node id add-device and this text")


def adopt(text: str, *, json: bool) -> None:
    """On the new machine: keep the answer, and agree."""
    folder = home.paths().keys
    device = identity.own_device(folder).public
    record = identity.read_answer(text, device, home.manifest().network, now_ms=home.now_ms())
    identity.adopt_root(folder, record.author)
    with Notebook(home.paths()) as notebook:
        notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=home.now_ms())
        notebook.publish_identity(home.now_ms())
    _print("done", device, "", json=json)
    if not json:
        say(f"this device speaks for {record.author.hex()} now → autoresearch up")


def _print(step: str, device: bytes, text: str, *, json: bool) -> None:
    if json:
        print_json(EnrolAnswer(step=step, device_key=device.hex(), text=text))
    elif text:
        print_text(text)
