"""Networks: what one is, the file and the invite that carry it to others."""

from autoresearch.networks.addresses import (
    ADDRESS_BEGINNINGS,
    check_listen_address,
    check_peer_address,
    is_loopback,
)
from autoresearch.networks.encoding import MANIFEST_BYTES_MAX, decode_manifest, encode_manifest
from autoresearch.networks.file import format_manifest, load_manifest, parse_manifest, read_manifest, save_manifest
from autoresearch.networks.invitations import Invitation, Invitations
from autoresearch.networks.invite import Invite, looks_like_invite, read_invite, write_invite
from autoresearch.networks.manifest import (
    DEFAULT_MANIFEST,
    NONCE_BYTES,
    Manifest,
    constants_of,
    parse_constant,
    parse_key,
    unusual_constants,
)
from autoresearch.networks.presets import PRESETS, Preset, PresetName
from autoresearch.networks.tokens import join_with, joined

__all__ = [
    "ADDRESS_BEGINNINGS",
    "DEFAULT_MANIFEST",
    "MANIFEST_BYTES_MAX",
    "NONCE_BYTES",
    "PRESETS",
    "Invitation",
    "Invitations",
    "Invite",
    "Manifest",
    "Preset",
    "PresetName",
    "check_listen_address",
    "check_peer_address",
    "constants_of",
    "decode_manifest",
    "encode_manifest",
    "format_manifest",
    "is_loopback",
    "join_with",
    "joined",
    "load_manifest",
    "looks_like_invite",
    "parse_constant",
    "parse_key",
    "parse_manifest",
    "read_invite",
    "read_manifest",
    "save_manifest",
    "unusual_constants",
    "write_invite",
]
