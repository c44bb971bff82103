"""What ``doctor network`` looks at: why no peer is reachable, and what to do. Changes nothing."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from ipaddress import ip_address

from autoresearch.ask.health import failed, of_peers, passed, skew_ms, warning
from autoresearch.ask.node import Check, PeersAnswer, PeerView, VotersAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.errors import AutoresearchError, DaemonNotRunning, install_command
from autoresearch.text import counted
from autoresearch.words import NetworkState, Part, Result
from autoresearch_cli import home
from autoresearch_cli.commands import voters

CONNECT_SECONDS = 3.0


def network_checks() -> Iterator[Check]:
    """Every check, in the order in which a person would ask; those that need a running network only with one."""
    if importlib.util.find_spec("libp2p") is None:
        yield Check(
            name="library", result=Result.FAILED, detail="libp2p is not installed", fix=install_command("network")
        )
        return
    yield passed("library", "libp2p is installed")
    answer = _ask()
    # A daemon may have been told otherwise when it was started, by its environment.
    if not home.settings().network.enabled and (isinstance(answer, Check) or answer.network.state == NetworkState.OFF):
        fix = "autoresearch network join …, or: autoresearch node config set network.enabled true"
        yield Check(name="setting", result=Result.FAILED, detail="the network is off (network.enabled)", fix=fix)
        return
    if isinstance(answer, Check):
        yield answer
        yield from beginnings([])
        return
    yield process(answer)
    if answer.network.state == NetworkState.RESTING:
        return
    yield listening(answer, home.settings().network.listen)
    yield reachable(answer)
    yield from beginnings(answer.peers)
    yield connections(answer.peers)
    if (check := clocks(answer.peers)) is not None:
        yield check
    if (check := check_voters(voters.voters())) is not None:
        yield check


def _ask() -> PeersAnswer | Check:
    try:
        return home.client().ask(Node.peers)
    except DaemonNotRunning:
        return Check(name="daemon", result=Result.FAILED, detail="it is not running", fix="autoresearch up")
    except AutoresearchError as error:
        return failed("daemon", error)


def process(answer: PeersAnswer) -> Check:
    """Whether the network process runs."""
    state = answer.network
    if state.state == NetworkState.OFF:
        detail = "the network was switched on after the daemon's start"
        return Check(name="process", result=Result.FAILED, detail=detail, fix="autoresearch down && autoresearch up")
    if state.state == NetworkState.RESTING:
        return warning("process", f"{state.reason} → autoresearch node config set network.hours …")
    if state.state != NetworkState.RUNNING:
        return Check(name="process", result=Result.FAILED, detail=state.reason, fix="autoresearch node logs")
    return passed("process", state.reason)


def listening(answer: PeersAnswer, listen: str) -> Check:
    """Whether it listens, and where it was told to."""
    hosts, ports = zip(*map(host_and_port, answer.addresses), strict=True) if answer.addresses else ((), ())
    if not answer.addresses:
        fix = "autoresearch node config set network.listen /ip4/0.0.0.0/tcp/4001"
        return warning("listening", f"it listens nowhere: it can dial others, and they cannot dial it → {fix}")
    fixed = {int(part.rpartition("/")[2]) for part in listen.split(",") if not part.strip().endswith("/0")}
    if fixed and not fixed & set(ports):
        port = min(fixed)
        detail = f"port {port} is taken by another program; it listens on {min(ports)}"
        return Check(
            name="listening", result=Result.WARNING, detail=detail, fix=f"free port {port}: ss -ltnp 'sport = :{port}'"
        )
    if all(is_loopback(host) for host in hosts):
        fix = "autoresearch node config set network.listen /ip4/0.0.0.0/tcp/0"
        return Check(name="listening", result=Result.WARNING, detail="only this machine can reach it", fix=fix)
    return passed("listening", ", ".join(answer.addresses[:3]))


def reachable(answer: PeersAnswer) -> Check:
    """Whether somebody who is connected called here."""
    hosts = [host_and_port(address)[0] for address in answer.addresses]
    called = [peer for peer in answer.peers if peer.connected and peer.inbound]
    if called:
        return passed("reachable", f"{counted(len(called), 'peer')} dialled this node")
    if any(is_public(host) for host in hosts):
        detail = "this machine has a public address, but no connected peer dialled it"
        return passed("reachable", detail)
    detail = "no connected peer dialled this node, and its addresses are private: it is behind a router"
    fix = "nothing to do: dialling others is enough. To be dialled, forward the port on the router"
    return Check(name="reachable", result=Result.OK, detail=detail, fix=fix)


def beginnings(peers: list[PeerView]) -> Iterator[Check]:
    """Whether there is somebody to begin with, and whether those who are named answer."""
    settings = home.settings().network
    named = [part.strip() for part in settings.bootstrap.split(",") if part.strip()]
    named += [address for address in home.manifest().bootstrap if address not in named]
    if not named and not settings.lan and not peers:
        fix = "autoresearch network peers add ADDRESS, or: autoresearch node config set network.lan true"
        yield Check(
            name="beginning",
            result=Result.FAILED,
            detail="it knows no node to begin with, and does not look on the local network",
            fix=fix,
        )
    if not named and settings.lan:
        yield passed("beginning", "it looks for nodes on the local network")
    by_id = {peer.peer: peer for peer in peers}
    for address in named:
        yield beginning(address, by_id)


def beginning(address: str, peers: dict[str, PeerView]) -> Check:
    """Whether a node that is named as a beginning answers."""
    where, _, peer = address.partition("/p2p/")
    if peer in peers and peers[peer].connected:
        return passed("beginning", f"{where} is connected")
    if peer in peers and is_refused(peers[peer]):
        fix = f"autoresearch network peers unblock {peer}"
        return Check(name="beginning", result=Result.WARNING, detail=f"{where} is refused here: {peer}", fix=fix)
    host, port = host_and_port(where)
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            pass
    except socket.gaierror:
        detail, fix = f"{host} has no address", "is the name right, and does this machine reach the internet?"
    except TimeoutError:
        detail, fix = (
            f"{where} does not answer",
            "a firewall may block it; try another node: autoresearch network peers add ADDRESS",
        )
    except OSError as error:
        detail = f"{where} does not answer: {error.strerror or error}"
        fix = "its daemon is down or its port changed; try another node: autoresearch network peers add ADDRESS"
    else:
        detail = f"something answers at {where}, but not as {peer}"
        fix = "it has a new key or refuses this node; ask its owner for its address: autoresearch network peers"
    return warning("beginning", f"{detail} → {fix}")


def connections(peers: list[PeerView]) -> Check:
    """Whether somebody of this network is connected."""
    if strangers := [check for check in of_peers(peers) if check.name == Part.PEERS]:
        return strangers[0]
    connected = [peer for peer in peers if peer.connected and not peer.other_network]
    refused = [peer for peer in peers if is_refused(peer)]
    if not connected and refused:
        detail = f"no peer is connected; {counted(len(refused), 'peer')} may not connect: blocked or shut out here"
        fix = "autoresearch network peers lists them; autoresearch network peers unblock PEER admits one again"
        return warning("peers", f"{detail} → {fix}")
    if not connected:
        fix = "see the lines above; records are sent when a peer connects"
        return Check(name="peers", result=Result.WARNING, detail="no peer is connected", fix=fix)
    return passed("peers", f"{counted(len(connected), 'peer')} connected")


def is_refused(peer: PeerView) -> bool:
    """Whether this node refuses the peer: a person blocked it, or its rubbish did."""
    return peer.blocked or bool(peer.shut_out)


def clocks(peers: list[PeerView]) -> Check | None:
    """Whether this clock agrees with the others'; None when nobody is there to compare with."""
    if skew_ms(peers) is None:
        return None
    differing = [check for check in of_peers(peers) if check.name == Part.CLOCK]
    return differing[0] if differing else passed(Part.CLOCK, "as the peers' clocks")


def check_voters(answer: VotersAnswer) -> Check | None:
    """Whether this participant counts, and whether enough do; None where the network names nobody."""
    if not answer.named:
        return None
    detail = f"{counted(len(answer.voters), 'participant')} counted; {answer.least} confirm a run"
    if answer.way:
        return Check(name="voters", result=Result.WARNING, detail=f"{detail}; you do not count yet", fix=answer.way)
    note, _, fix = answer.note.partition(" → ")
    if note:
        return Check(name="voters", result=Result.WARNING, detail=f"{detail}: {note}", fix=fix)
    return passed("voters", detail)


def host_and_port(address: str) -> tuple[str, int]:
    """The host and the port of a TCP multiaddr."""
    parts = address.split("/")
    return parts[2], int(parts[4])


def is_loopback(host: str) -> bool:
    """Whether only this machine can mean it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(host: str) -> bool:
    """Whether the internet may reach it."""
    try:
        return ip_address(host).is_global
    except ValueError:
        return True
