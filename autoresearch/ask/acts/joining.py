"""Joining a network: which one a person means, and making this node a member of it. By a command, by a running node."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from autoresearch.ask.acts.networks import HomeNetwork, find_home_network, home_networks, place_for, use_network
from autoresearch.ask.node import JoinedAnswer
from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut, UsageError, install_command
from autoresearch.log.log import Log
from autoresearch.paths import Paths, typed_path
from autoresearch.settings import write_setting
from autoresearch.trust.identity import make_identity
from autoresearch.trust.invite import Invitations, join_with, looks_like_invite, read_invite
from autoresearch.trust.manifest import ADDRESS_BEGINNINGS, NetworkManifest, check_peer_address
from autoresearch.trust.manifest_file import decode_manifest, load_manifest, read_manifest, save_manifest

ASKING = "autoresearch_daemon.net.host.asking"
ASK_SECONDS = 60.0
WAYS = "give a manifest's file, an invite (autoresearch network invite), or an address (autoresearch network peers)"
WAIT_FOR_FOUNDER = "wait: this invite admits you once a founder's node has seen that you joined: autoresearch status"
NO_FOUNDER = "this invite admits by a founder whom you do not trust: autoresearch network trust KEY --founder"


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network that was named, and whether its trust list comes from another node alone.

    ``token`` is the seed of the token in an invite that admits.
    """

    manifest: NetworkManifest
    by_word: bool
    token: bytes | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A network that this node is in now: its manifest as it is kept, where its files lie, whether it is switched on.

    ``left``: the other network, used before. ``was_member``: it was the one in use already. ``way``: what this
    participant waits for or does so that it counts, where a token admits it.
    """

    manifest: NetworkManifest
    paths: Paths
    enabled: bool
    left: HomeNetwork | None
    was_member: bool
    way: str = ""


def can_connect() -> bool:
    """Whether libp2p is installed here."""
    return importlib.util.find_spec("libp2p") is not None


def find_network(paths: Paths, text: str) -> NamedNetwork:
    """The network that a file, an invite, a node's address or the name of one of this home's networks stands for.

    Raises:
        NotFound: it is none of these.
        UsageError: it is damaged.
        AutoresearchError: the node could not be asked.
    """
    if looks_like_invite(text):
        manifest, token = read_invite(text)
        return NamedNetwork(manifest, by_word=False, token=token)
    try:
        path = typed_path(text)
    except UsageError as error:
        raise UsageError(str(error), hint=WAYS) from error
    if text.startswith(ADDRESS_BEGINNINGS) and not path.exists():
        return NamedNetwork(_ask_node(paths, text), by_word=True)
    if not path.is_dir():  # a folder may have the name of a network
        with suppress(NotFound):
            return NamedNetwork(read_manifest(path), by_word=False)
    try:
        return NamedNetwork(find_home_network(paths, text).manifest, by_word=False)
    except NotFound as error:
        raise NotFound(f"{text[:200]!r} is not a file, an invite or an address", hint=WAYS) from error


def _ask_node(paths: Paths, address: str) -> NetworkManifest:
    """The manifest of a node's network, with its address to begin with. Raises AutoresearchError."""
    check_peer_address(address, "the address")
    if not can_connect():
        raise AutoresearchError("a node can't be asked: libp2p is not installed", hint=install_command("network"))
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


def join(paths: Paths, named: NamedNetwork) -> Membership:
    """Make this node a member, and that network the one in use, beside the networks that this home has.

    When the node is in that network already, addresses are added and its own trust list stays. A token of the invite is
    kept: the daemon publishes that this participant joined with it.

    Raises:
        Refused: something can't be written.
    """
    manifest = named.manifest
    place = place_for(paths, manifest.network)
    before = load_manifest(place.manifest)
    joined = before.with_bootstrap(manifest.bootstrap) if before.network == manifest.network else manifest
    with Log.open(place.log, joined.network, read_only=True):
        pass  # refuses when it is another network's
    if joined != before or not place.manifest.exists():
        save_manifest(place.manifest, joined)
    if place != paths:
        use_network(place)
    if can_connect():
        write_setting(paths.settings, "network.enabled", "true")
    left = next((network for network in home_networks(place) if place != paths == network.paths), None)
    with suppress(Refused):  # a further device of a participant whose root key is on another machine
        own_root(place)
    way = ""
    if named.token is not None and _ask_to_count(place, joined, named.token):
        way = WAIT_FOR_FOUNDER if joined.trust.founders else NO_FOUNDER
    return Membership(joined, place, can_connect(), left, was_member=place == paths and joined == before, way=way)


def joined_answer(joined: Membership, *, restarts: bool) -> JoinedAnswer:
    """What a running daemon says of it."""
    network = joined.manifest.network
    sentences = [
        f"This node is in the network {network.name} now, and the daemon begins again in it."
        if restarts
        else f"This node was in the network {network.name} already.",
        "" if joined.enabled else f"It is off, for libp2p is not installed: {install_command('network')}",
        f"Back to the other one: autoresearch network use {joined.left.name}" if joined.left else "",
        joined.way,
    ]
    note = " ".join(filter(None, sentences))
    return JoinedAnswer(network=network.name, network_id=network.id.hex(), restarts=restarts, note=note)


def own_root(paths: Paths) -> bytes:
    """This participant's root key; the keys are made where there are none yet."""
    paths.create()
    return make_identity(paths.keys).root.public


def _ask_to_count(paths: Paths, manifest: NetworkManifest, token: bytes) -> bool:
    """Have the daemon publish that this participant joined with a token; whether a founder has to admit it for that."""
    root = own_root(paths)
    if root in manifest.trust.founders | manifest.trust.participants:
        return False
    invitations = Invitations(paths.manifest, manifest.network)
    invitations.keep_join(join_with(token, manifest.network.id, root))
    return True
