"""An invite: a manifest as a word that fits into a message. Pure.

``autoresearch1``, then base32 (RFC 4648, lower case, no padding) of the manifest's bytes, compressed (raw DEFLATE, RFC
1951), and the first four bytes of their SHA-256, of the compressed ones, as a checksum. It says everything: who reads
it needs no node to ask, and nobody who is asked can make up whom the network trusts. With the seed of a token beside
the manifest it also admits whoever joins with it: see :mod:`autoresearch.networks.tokens`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.networks.encoding import MANIFEST_BYTES_MAX, decode_with_token, encode_manifest
from autoresearch.networks.manifest import Manifest

INVITE_BEGINNING = "autoresearch1"
# Longer ones do not fit into a message; the manifest's file does the same.
INVITE_CHARACTERS_MAX = 8192
_CHECKSUM_BYTES = 4
_RAW_DEFLATE = -15
_DIGITS = re.compile(r"[a-z2-7]+")


class Invite(NamedTuple):
    """What an invite says: the network, and the seed of the token that admits whoever joins with it, if it has one."""

    manifest: Manifest
    token: bytes | None = None


def write_invite(manifest: Manifest, token: bytes | None = None) -> str:
    """The invite to a network, with the seed of a token or without. Raises UsageError when it is too long for one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW_DEFLATE)
    packed = packer.compress(encode_manifest(manifest, token)) + packer.flush()
    digits = base64.b32encode(packed + _checksum(packed)).decode("ascii").lower().rstrip("=")
    if len(INVITE_BEGINNING) + len(digits) > INVITE_CHARACTERS_MAX:
        raise UsageError(
            "this network names too many keys for an invite", hint="send its file: autoresearch network show"
        )
    return INVITE_BEGINNING + digits


def looks_like_invite(text: str) -> bool:
    """Whether the text was meant as an invite."""
    return text.strip().lower().startswith(INVITE_BEGINNING)


def read_invite(text: str) -> Invite:
    """What an invite says; line breaks and spaces in it do not matter. Raises UsageError when it is none."""
    plain = "".join(text[: 2 * INVITE_CHARACTERS_MAX].split()).lower()
    digits = plain.removeprefix(INVITE_BEGINNING)
    if digits == plain or len(plain) > INVITE_CHARACTERS_MAX or not _DIGITS.fullmatch(digits):
        raise _damaged()
    try:
        data = base64.b32decode(digits.upper() + "=" * (-len(digits) % 8))
    except binascii.Error as error:
        raise _damaged() from error
    packed = data[:-_CHECKSUM_BYTES]
    if data[-_CHECKSUM_BYTES:] != _checksum(packed):
        raise _damaged()
    unpacker = zlib.decompressobj(_RAW_DEFLATE)
    try:
        raw = unpacker.decompress(packed, MANIFEST_BYTES_MAX + 1)
    except zlib.error as error:
        raise _damaged() from error
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged()
    return Invite(*decode_with_token(raw))


def _checksum(packed: bytes) -> bytes:
    return hashlib.sha256(packed).digest()[:_CHECKSUM_BYTES]


def _damaged() -> UsageError:
    return UsageError("that invite is damaged", hint="copy it again, whole: it is one long word")
