"""What a network is: its constants, by the usual kinds, whom it trusts, its tasks, where to begin.

Also the form of a node's address: a multiaddr over TCP, direct or through a relay, with its peer id at the end. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal

from autoresearch.errors import UsageError
from autoresearch.record.record import DEFAULT_NETWORK, Network
from autoresearch.trust.roster import Trust

ADDRESS_CHARACTERS_MAX = 256
PORT_MAX = 65_535
LISTEN_ADDRESS = re.compile(r"/(?P<kind>ip4|ip6)/(?P<host>[0-9A-Fa-f.:]+)/tcp/(?P<port>[0-9]{1,5})")
PEER = r"/p2p/[1-9A-HJ-NP-Za-km-z]{2,128}"
PEER_ADDRESS = re.compile(
    r"/(?P<kind>ip4|ip6|dns|dns4|dns6)/(?P<host>[0-9A-Za-z.:_-]+)/tcp/(?P<port>[0-9]{1,5})"
    rf"(?:{PEER}/p2p-circuit)?{PEER}"
)
ADDRESS_BEGINNINGS = ("/ip4/", "/ip6/", "/dns/", "/dns4/", "/dns6/")


def check_peer_address(text: str, name: str) -> None:
    """Refuse what is no multiaddr of a node. ``name`` begins the sentence. Raises UsageError."""
    _check(text, PEER_ADDRESS, name, "/ip4/203.0.113.7/tcp/4001/p2p/12D3…")


def check_listen_address(text: str, name: str) -> None:
    """Refuse what is no multiaddr to listen on. ``name`` begins the sentence. Raises UsageError."""
    _check(text, LISTEN_ADDRESS, name, "/ip4/0.0.0.0/tcp/4001")


def is_loopback(address: str) -> bool:
    """Whether only this machine can mean it."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))


def _check(text: str, form: re.Pattern[str], name: str, example: str) -> None:
    match = form.fullmatch(text)
    try:
        if match is None or int(match["port"]) > PORT_MAX or len(text) > ADDRESS_CHARACTERS_MAX:
            raise ValueError("it has another form")
        if match["kind"] in ("ip4", "ip6") and ip_address(match["host"]).version != int(match["kind"][2]):
            raise ValueError("its IP address is of the other version")
    except ValueError as error:
        raise UsageError(f"{name}: {text[:200]!r} is no address: {error}", hint=f"one looks like {example}") from error


PresetName = Literal["lab", "friends", "open"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Constants that are not the usual ones, who counts, and from how many participants on a run can be confirmed."""

    who_counts: str
    confirmed_from: int
    founded: bool  # its founder decides who counts
    constants: dict[str, int] = field(default_factory=dict)


PRESETS: dict[PresetName, Preset] = {
    "lab": Preset(
        who_counts="machines of one team that trust each other; you count, and so does whoever joins with your invite",
        confirmed_from=3,
        founded=True,
        constants={
            "verify_quorum": 2,
            "verify_least": 3,
            "verify_age_ms": 0,
            "verify_patience_ms": 60_000,
            "verify_audit_permille": 0,
        },
    ),
    "friends": Preset(
        who_counts="people who know each other; you count, and so does whoever joins with your invite",
        confirmed_from=4,
        founded=True,
        constants={"verify_age_ms": 0, "verify_patience_ms": 600_000},
    ),
    "open": Preset(
        who_counts="whoever proves control of a mailbox to attestors that the network names",
        confirmed_from=4,
        founded=False,
    ),
}


NONCE_BYTES = 16
KEY_BYTES = 32
NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,39}")
# How many of each a manifest may have; together they keep it below the size of one frame on the wire.
ATTESTORS_MAX = 64
FOUNDERS_MAX = 16
PARTICIPANTS_MAX = 256
TASKS_MAX = 256
BOOTSTRAP_MAX = 32
# What the constants may be: (least, most).
CONSTANTS: dict[str, tuple[int, int]] = {
    "record_bytes": (1024, 16_384),
    "ahead_ms": (0, 86_400_000),
    "start_ms": (0, 2**52),
    "per_day_seq": (1, 1024),
    "per_day": (1, 2**31),
    "per_author": (1, 2**31),
    "tag_memory_bytes": (8192, 2**30),
    "tag_passes": (1, 16),
    "domain_voices": (1, 2**31),
    "verify_committee": (1, 10_000),
    "verify_quorum": (1, 16),
    "verify_everybody": (1, 10_000),
    "verify_least": (2, 10_000),
    "verify_patience_ms": (1, 2**40),
    "verify_age_ms": (0, 2**40),
    "verify_audit_permille": (0, 1000),
    "verify_seasoned": (1, 2**31),
    "verify_ban_ms": (0, 2**52),
    "unattested": (1, 2**31),
}


@dataclass(frozen=True, slots=True)
class NetworkManifest:
    """One network. Peers are in one network when constants and nonce are the same; the rest each may edit.

    ``tasks`` are digests of the tasks that the network is about, ``bootstrap`` the multiaddrs of nodes to begin with.

    Raises:
        UsageError: something in it is out of bounds.
    """

    network: Network
    trust: Trust = field(default_factory=Trust)
    tasks: tuple[bytes, ...] = ()
    bootstrap: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        network, trust = self.network, self.trust
        check(NAME.fullmatch(network.name), "the name has 1 to 40 letters, digits, dots, dashes and underscores")
        check(len(network.nonce) in (0, NONCE_BYTES), f"the nonce has {NONCE_BYTES} bytes, or none")
        for name, value in constants_of(network).items():
            least, most = CONSTANTS[name]
            check(least <= value <= most, f"the constant {name} is between {least} and {most}")
        check(1 <= trust.needed <= ATTESTORS_MAX, f"between 1 and {ATTESTORS_MAX} attestations are needed")
        for name, keys, most in (
            ("attestors", trust.attestors, ATTESTORS_MAX),
            ("participants", trust.participants, PARTICIPANTS_MAX),
            ("founders", trust.founders, FOUNDERS_MAX),
            ("tasks", self.tasks, TASKS_MAX),
        ):
            check(len(keys) <= most, f"{name} are at most {most}")
            check(all(len(key) == KEY_BYTES for key in keys), f"each of the {name} has {KEY_BYTES} bytes")
        check(len(self.bootstrap) <= BOOTSTRAP_MAX, f"bootstrap addresses are at most {BOOTSTRAP_MAX}")
        for address in self.bootstrap:
            check_peer_address(address, "a bootstrap address of the network")

    def with_attestor(self, key: bytes) -> NetworkManifest:
        """The same network, trusting one attestor more."""
        return self._with(replace(self.trust, attestors=self.trust.attestors | {key}))

    def without_attestor(self, key: bytes) -> NetworkManifest:
        """The same network, trusting one attestor less."""
        return self._with(replace(self.trust, attestors=self.trust.attestors - {key}))

    def with_participant(self, key: bytes) -> NetworkManifest:
        """The same network, with one participant more who counts as attested by hand."""
        return self._with(replace(self.trust, participants=self.trust.participants | {key}))

    def without_participant(self, key: bytes) -> NetworkManifest:
        """The same network, with one participant less who counts as attested by hand."""
        return self._with(replace(self.trust, participants=self.trust.participants - {key}))

    def with_founder(self, key: bytes) -> NetworkManifest:
        """The same network, with one founder more."""
        return self._with(replace(self.trust, founders=self.trust.founders | {key}))

    def without_founder(self, key: bytes) -> NetworkManifest:
        """The same network, with one founder less: its admissions count here no longer."""
        return self._with(replace(self.trust, founders=self.trust.founders - {key}))

    def with_bootstrap(self, addresses: tuple[str, ...]) -> NetworkManifest:
        """The same network with these addresses first, and as many of its own as there is room for."""
        return replace(self, bootstrap=tuple(dict.fromkeys(addresses + self.bootstrap))[:BOOTSTRAP_MAX])

    def _with(self, trust: Trust) -> NetworkManifest:
        return replace(self, trust=trust)


def new_manifest(
    name: str,
    nonce: bytes,
    preset: Preset,
    trust: Trust,
    *,
    constants: Mapping[str, int] = MappingProxyType({}),
    tasks: Iterable[bytes] = (),
    bootstrap: Iterable[str] = (),
) -> NetworkManifest:
    """The manifest of a new network of a usual kind; ``constants`` are those that differ from that kind's.

    Raises:
        UsageError: something in it is out of bounds.
    """
    network = Network(name=name, nonce=nonce, **(preset.constants | dict(constants)))
    return NetworkManifest(network, trust, tuple(dict.fromkeys(tasks)), tuple(dict.fromkeys(bootstrap)))


def constants_of(network: Network) -> dict[str, int]:
    """The numbers that, with name and nonce, make the network's id."""
    return {name: value for name, value in asdict(network).items() if name not in ("name", "nonce")}


def unusual_constants(network: Network) -> dict[str, int]:
    """Those of its constants that are not the usual ones."""
    usual = {constant.name: constant.default for constant in fields(Network)}
    return {name: value for name, value in constants_of(network).items() if value != usual[name]}


def network_of(name: str, nonce: bytes, constants: dict[str, int], network_id: bytes | None) -> Network:
    """The network of these; ``network_id`` is what it is said to be.

    Raises:
        UsageError: a constant is unknown, or the id is another one.
    """
    if unknown := constants.keys() - CONSTANTS.keys():
        raise UsageError(f"this version knows no constant {min(unknown)[:40]!r}", hint="install a newer autoresearch")
    network = Network(name=name, nonce=nonce, **constants)
    if network_id is not None and network.id != network_id:
        raise UsageError(
            f"the network says that its id is {network_id.hex()}, but its constants make {network.id.hex()}",
            hint="somebody changed it, or it needs another version of autoresearch; ask for it again",
        )
    return network


def parse_constant(text: str) -> tuple[str, int]:
    """The constant of ``NAME=VALUE``, as a person sets it. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or name not in CONSTANTS:
        raise UsageError(f"{text[:80]!r} sets no constant", hint=f"NAME=VALUE, where NAME is {', '.join(CONSTANTS)}")
    try:
        return name, int(value.replace("_", ""))
    except ValueError:
        raise UsageError(f"{name} is a whole number, not {value[:80]!r}") from None


def check(holds: object, sentence: str) -> None:
    """Raise UsageError when it does not hold."""
    if not holds:
        raise UsageError(f"that is no network: {sentence}")


def parse_key(text: str) -> bytes:
    """A public root key as ``id show`` prints it. Raises UsageError."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES or key.hex() != text.lower():
        raise UsageError(f"{text[:80]!r} is no key", hint="autoresearch node id show prints one: 64 hexadecimal digits")
    return key


DEFAULT_MANIFEST = NetworkManifest(DEFAULT_NETWORK)
