"""Which network a person means, and making this node a member of it. Knows no command and prints nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass, replace

from autoresearch.api import operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, TimedOut, UsageError
from autoresearch.home_networks import HomeNetwork, home_networks, place_for, use_network
from autoresearch.installing import install_command
from autoresearch.log import Log
from autoresearch.networks import (
    ADDRESS_BEGINNINGS,
    Invitations,
    Manifest,
    check_peer_address,
    decode_manifest,
    is_loopback,
    join_with,
    load_manifest,
    looks_like_invite,
    read_invite,
    read_manifest,
    save_manifest,
)
from autoresearch.paths import typed_path
from autoresearch.settings import write_setting
from autoresearch_cli import here

ASKING = "autoresearch_daemon.net.asking"
ASK_SECONDS = 60.0
# A node may have many addresses; some of them are enough to begin with.
OWN_ADDRESSES = 4
STARTING = "starting"
WAYS = "give a manifest's file, an invite (autoresearch network invite), or an address (autoresearch peers)"
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
    from autoresearch.identity import make_identity

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
        answer = client.ask(operations.PEERS)
        deadline = time.monotonic() + patience_seconds
        while answer.network.state == STARTING and not answer.addresses and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            answer = client.ask(operations.PEERS)
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
