"""Which network a person means, and making this node a member of it.

Also what the ``id`` commands do with the log: delegate, revoke, add a device. The root key is at hand where it signs.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from autoresearch.ask.acts.networks import HomeNetwork, home_networks, place_for, use_network
from autoresearch.ask.acts.notebook import Notebook, check_name, own_devices
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import NameRequest
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, TimedOut, UsageError, install_command
from autoresearch.log.log import Log
from autoresearch.log.standing.context import participant_with_key
from autoresearch.paths import typed_path
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Merge
from autoresearch.settings import write_setting
from autoresearch.trust.identity import (
    Device,
    OwnKeys,
    adopt_root,
    own_device,
    read_answer,
    read_request,
    write_answer,
    write_request,
)
from autoresearch.trust.invite import Invitations, join_with, looks_like_invite, read_invite
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import ADDRESS_BEGINNINGS, Manifest, check_peer_address, is_loopback
from autoresearch.trust.manifest_file import decode_manifest, load_manifest, read_manifest, save_manifest
from autoresearch_cli import here
from autoresearch_cli.models import EnrolAnswer, MergeAnswer
from autoresearch_cli.rendering.output import print_json, print_text, say

ASKING = "autoresearch_daemon.net.host.asking"
ASK_SECONDS = 60.0
# A node may have many addresses; some of them are enough to begin with.
OWN_ADDRESSES = 4
STARTING = "starting"
WAYS = "give a manifest's file, an invite (autoresearch network invite), or an address (autoresearch network peers)"
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Found:
    """A network that was named, and whether its trust list comes from another node alone.

    ``token`` is the seed of the token in an invite that admits.
    """

    manifest: Manifest
    by_word: bool
    token: bytes | None = None


def can_connect() -> bool:
    """Whether libp2p is installed here."""
    return importlib.util.find_spec("libp2p") is not None


def find_network(text: str) -> Found:
    """The network that a file, an invite or a node's address stands for.

    Raises:
        NotFound: it is none of these.
        UsageError: it is damaged.
        AutoresearchError: the node could not be asked.
    """
    if looks_like_invite(text):
        manifest, token = read_invite(text)
        return Found(manifest, by_word=False, token=token)
    try:
        path = typed_path(text)
    except UsageError as error:
        raise UsageError(str(error), hint=WAYS) from error
    if text.startswith(ADDRESS_BEGINNINGS) and not path.exists():
        return Found(ask_node(text), by_word=True)
    try:
        return Found(read_manifest(path), by_word=False)
    except NotFound as error:
        raise NotFound(f"{text[:200]!r} is not a file, an invite or an address", hint=WAYS) from error


def ask_node(address: str) -> Manifest:
    """The manifest of a node's network, with its address to begin with. Raises AutoresearchError."""
    check_peer_address(address, "the address")
    if not can_connect():
        raise AutoresearchError("a node can't be asked: libp2p is not installed", hint=install_command("network"))
    paths = here.paths()
    paths.create()
    command = [sys.executable, "-P", "-m", ASKING, str(paths.network), address]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{address} does not answer", hint="is its daemon up, and its port open?") from error
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["it could not be asked"])[-1]
        raise AutoresearchError(reason[:500], hint="is its daemon up, and its port open? An invite needs no answer")
    try:
        manifest = decode_manifest(bytes.fromhex(ended.stdout.strip()))
    except (UsageError, ValueError) as error:
        raise AutoresearchError(f"{address} answers, but not with a network: {error}") from error
    return manifest.with_bootstrap((address,))


@dataclass(frozen=True, slots=True)
class Joined:
    """The manifest as it is kept now, and whether the network is switched on. ``left``: the other one, used before."""

    manifest: Manifest
    enabled: bool
    left: HomeNetwork | None


def join(found: Manifest) -> Joined:
    """Make this node a member, and that network the one in use, beside the networks that this home has.

    When the node is in that network already, addresses are added and its own trust list stays.

    Raises:
        Refused: something can't be written.
    """
    paths = here.paths()
    place = place_for(paths, found.network)
    before = load_manifest(place.manifest)
    joined = before.with_bootstrap(found.bootstrap) if before.network == found.network else found
    with Log.open(place.log, joined.network, read_only=True):
        pass  # refuses when it is another network's
    if joined != before or not place.manifest.exists():
        save_manifest(place.manifest, joined)
    if place != paths:
        use_network(place)
    if can_connect():
        write_setting(paths.settings, "network.enabled", "true")
    left = next((one for one in home_networks(place) if place != paths == one.paths), None)
    return Joined(joined, can_connect(), left)


def own_root() -> bytes:
    """This participant's root key; the keys are made where there are none yet."""
    from autoresearch.trust.identity import make_identity

    here.paths().create()
    return make_identity(here.paths().keys).root.public


def ask_to_count(manifest: Manifest, token: bytes) -> bool:
    """Have the daemon publish that this participant joined with a token; whether a founder has to admit it for that."""
    root = own_root()
    if root in manifest.trust.founders | manifest.trust.participants:
        return False
    invitations = Invitations(here.paths().manifest, manifest.network)
    invitations.keep_join(join_with(token, manifest.network.id, root))
    return True


def own_addresses(*, patience_seconds: float = 0.0) -> list[str]:
    """What others need to reach this node: nothing with the daemon down, loopback only when there is nothing else.

    A network that is starting has none yet; it is given ``patience_seconds``.
    """
    try:
        client = here.client()
        answer = client.ask(Node.peers)
        deadline = time.monotonic() + patience_seconds
        while answer.network.state == STARTING and not answer.addresses and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            answer = client.ask(Node.peers)
    except DaemonNotRunning:
        return []
    return not_only_here(answer.addresses)


def to_be_sent(manifest: Manifest, addresses: list[str]) -> Manifest:
    """The network as an invite says it: this node's addresses first, none that means another machine elsewhere."""
    whole = manifest.with_bootstrap(tuple(addresses[:OWN_ADDRESSES]))
    return replace(whole, bootstrap=tuple(not_only_here(list(whole.bootstrap))))


def not_only_here(addresses: list[str]) -> list[str]:
    """Without the addresses of the loopback interface, unless there are no others."""
    return [address for address in addresses if not is_loopback(address)] or addresses


ALL_RUNS = 1_000_000


def rows(mine: OwnKeys) -> list[Device]:
    """This participant's devices, as the log here has them."""
    with Log.open(here.paths().log, here.manifest().network, read_only=True) as log:
        return own_devices(log, mine.root.public, here.now_ms())


def name_of(mine: OwnKeys) -> str:
    """What this participant calls itself, as the log here has it."""
    with Log.open(here.paths().log, here.manifest().network, read_only=True) as log:
        return participant_with_key(log, mine.root.public).name


def call(name: str) -> None:
    """Publish what this participant calls itself, empty: nothing any more; through the daemon where one runs."""
    check_name(name)
    with suppress(DaemonNotRunning):
        here.client().ask(Node.set_name, NameRequest(name=name))
        return
    with Notebook(here.paths()) as notebook:
        notebook.publish_name(name, here.now_ms())


def renew(mine: OwnKeys) -> None:
    """Delegate this device anew, whatever is left of the last time."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.delegate(mine.root, here.now_ms())
        notebook.publish_identity(here.now_ms())


def revoke(mine: OwnKeys, device: bytes, reason: str) -> None:
    """Revoke a device."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.revoke(mine.root, device, here.now_ms(), reason=reason)


def merge(mine: OwnKeys, device: bytes) -> MergeAnswer:
    """End the forks of a device of this participant."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        log = notebook.log
        held = [run for run in log.records.newest(kind="run", author=device, limit=ALL_RUNS) if log.devices.forked(run)]
        record = notebook.merge(mine.root, device, here.now_ms())
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
    device = own_device(here.paths().keys).public
    _print("request", device, write_request(device), json=json)
    if not json:
        say("→ on the machine with the root key: autoresearch node id add-device and this text")


def approve(text: str, mine: OwnKeys, *, json: bool) -> None:
    """Where the root key is: delegate the device that asks."""
    device = read_request(text)
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.publish_identity(here.now_ms())
        record = notebook.delegate(mine.root, here.now_ms(), device=device)
    _print("answer", device, write_answer(record), json=json)
    if not json:
        say("→ on the new machine: autoresearch node id add-device and this text")


def adopt(text: str, *, json: bool) -> None:
    """On the new machine: keep the answer, and agree."""
    folder = here.paths().keys
    device = own_device(folder).public
    record = read_answer(text, device, here.manifest().network, now_ms=here.now_ms())
    adopt_root(folder, record.author)
    with Notebook(here.paths()) as notebook:
        notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=here.now_ms())
        notebook.publish_identity(here.now_ms())
    _print("done", device, "", json=json)
    if not json:
        say(f"this device speaks for {record.author.hex()} now → autoresearch up")


def _print(step: str, device: bytes, text: str, *, json: bool) -> None:
    if json:
        print_json(EnrolAnswer(step=step, device_key=device.hex(), text=text))
    elif text:
        print_text(text)
