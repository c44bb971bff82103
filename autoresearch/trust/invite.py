"""An invite: a manifest as a word that fits into a message, with a token if it admits.

Also the files beside the manifest with the invites that this machine gave out and the one that it joined with.
``autoresearch1``, then base32 (RFC 4648, lower case, no padding) of the manifest's bytes, compressed (raw DEFLATE, RFC
1951), and the first four bytes of their SHA-256, of the compressed ones, as a checksum. It says everything: who reads
it needs no node to ask, and nobody who is asked can make up whom the network trusts.

A token is an Ed25519 key made for one invite, whose holder a founder admits. Whoever joins signs with it that a root
key joins a network. So what is published is good for that root key and network alone, and the founder's node knows its
own tokens by their public keys.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
import zlib
from pathlib import Path
from typing import NamedTuple

import msgspec
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.paths import write_whole
from autoresearch.record.kinds import Join
from autoresearch.record.record import DAY_MS, Network
from autoresearch.trust import manifest_file
from autoresearch.trust.manifest import NetworkManifest

_PURPOSE = b"autoresearch/join/1\0"


def join_with(seed: bytes, network_id: bytes, participant: bytes) -> Join:
    """What a participant publishes that joins with the token of this seed."""
    token = SigningKey(seed)
    proof = token.sign(join_statement(network_id, participant)).signature
    return Join(participant=participant, token=bytes(token.verify_key), proof=proof)


def token_of(seed: bytes) -> bytes:
    """The public key of the token with this seed."""
    return bytes(SigningKey(seed).verify_key)


def joined(join: Join, network_id: bytes) -> bool:
    """Whether the token signed that this participant joins this network."""
    try:
        VerifyKey(join.token).verify(join_statement(network_id, join.participant), join.proof)
    except (CryptoError, ValueError):
        return False
    return True


def join_statement(network_id: bytes, participant: bytes) -> bytes:
    """What the token signs: the purpose, then SHA-256 of the network's id (16 bytes) and the root key (32 bytes)."""
    return _PURPOSE + hashlib.sha256(network_id + participant).digest()


INVITE_BEGINNING = "autoresearch1"
# Longer ones do not fit into a message; the manifest's file does the same.
INVITE_CHARACTERS_MAX = 8192
_CHECKSUM_BYTES = 4
_RAW_DEFLATE = -15
_DIGITS = re.compile(r"[a-z2-7]+")


class Invite(NamedTuple):
    """What an invite says: the network, and the seed of the token that admits whoever joins with it, if it has one."""

    manifest: NetworkManifest
    token: bytes | None = None


def write_invite(manifest: NetworkManifest, token: bytes | None = None) -> str:
    """The invite to a network, with the seed of a token or without. Raises UsageError when it is too long for one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW_DEFLATE)
    packed = packer.compress(manifest_file.encode_manifest(manifest, token)) + packer.flush()
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
        raw = unpacker.decompress(packed, manifest_file.MANIFEST_BYTES_MAX + 1)
    except zlib.error as error:
        raise _damaged() from error
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged()
    return Invite(*manifest_file.decode_with_token(raw))


def _checksum(packed: bytes) -> bytes:
    return hashlib.sha256(packed).digest()[:_CHECKSUM_BYTES]


def _damaged() -> UsageError:
    return UsageError("that invite is damaged", hint="copy it again, whole: it is one long word")


USES_MAX = 256
DAYS_MAX = 365


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invite that admits: its token's public key, for which network, and how many it admits until when.

    The seed is in the invite alone. Times are Unix milliseconds by the clock of this machine. ``alias`` is what its
    holder is called on this machine.
    """

    token: bytes
    network: bytes
    made_ms: int
    expires_ms: int
    uses: int = 1
    revoked: bool = False
    alias: str = ""

    def is_open(self, now_ms: int) -> bool:
        """Whether it may still admit somebody, as far as its uses are not spent."""
        return not self.revoked and now_ms < self.expires_ms


class Invitations:
    """The files for one network: a folder with one for each invite, and ``join.json``, what to publish after joining.

    ``manifest`` is the path of the network's manifest.
    """

    def __init__(self, manifest: Path, network: Network) -> None:
        self._folder = manifest.with_name("invites")
        self._join = manifest.with_name("join.json")
        self._network = network.id

    def forget(self) -> None:
        """Remove these files, of whichever network: nobody is admitted by them any more. Raises OSError."""
        for file in (*self._folder.glob("*.json"), self._join):
            file.unlink(missing_ok=True)

    def make(self, now_ms: int, *, uses: int, days: int, alias: str = "") -> tuple[Invitation, bytes]:
        """Note a new invite; returns it with the seed of its token, which is kept nowhere.

        Raises:
            UsageError: it would admit too many, or for too long.
        """
        for name, number, most in (("uses", uses, USES_MAX), ("days", days, DAYS_MAX)):
            if not 1 <= number <= most:
                raise UsageError(f"an invite has 1 to {most} {name}, not {number}")
        seed = secrets.token_bytes(manifest_file.TOKEN_SEED_BYTES)
        made = Invitation(
            token=token_of(seed),
            network=self._network,
            made_ms=now_ms,
            expires_ms=now_ms + days * DAY_MS,
            uses=uses,
            alias=alias,
        )
        self._save(made)
        return made, seed

    def all(self) -> list[Invitation]:
        """The invites to this network that admit or did, the newest first. Raises UsageError: a file is damaged."""
        invitations = [self._read(file) for file in self._folder.glob("*.json")]
        mine = [invitation for invitation in invitations if invitation.network == self._network]
        return sorted(mine, key=lambda invitation: (-invitation.made_ms, invitation.token))

    def revoke(self, invitation: Invitation) -> Invitation:
        """End an invite: it admits nobody from now on."""
        ended = msgspec.structs.replace(invitation, revoked=True)
        self._save(ended)
        return ended

    def find(self, text: str) -> Invitation:
        """The invite whose token begins with this. Raises NotFound, AmbiguousId."""
        start = text.strip().lower()
        invitations = [each for each in self.all() if text and each.token.hex().startswith(start)]
        if len(invitations) > 1:
            raise AmbiguousId(
                f"{text[:80]} can mean several invites.",
                [invitation.token.hex()[:16] for invitation in invitations][:10],
            )
        if not invitations:
            raise NotFound(f"no invite that was made here has a token that begins with {text[:80]!r}",
                           hint="autoresearch network invites")  # fmt: skip
        return invitations[0]

    def stamp(self) -> object:
        """Another one after the files have changed."""
        return tuple(_stamp(path) for path in (self._folder, self._join))

    def keep_join(self, join: Join) -> None:
        """Have the daemon publish that this participant joined. Raises OSError."""
        write_whole(self._join, msgspec.json.encode(join).decode())

    def kept_join(self) -> Join | None:
        """What to publish, if this node joined with an invite that admits; a damaged file is none."""
        try:
            return msgspec.json.decode(self._join.read_bytes(), type=Join)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _save(self, invitation: Invitation) -> None:
        try:
            write_whole(self._folder / f"{invitation.token.hex()}.json", msgspec.json.encode(invitation).decode())
        except OSError as error:
            raise Refused(f"the invite can't be noted in {self._folder}: {error.strerror}") from error

    def _read(self, file: Path) -> Invitation:
        try:
            return msgspec.json.decode(file.read_bytes(), type=Invitation)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} is damaged", hint="remove it: its invite then admits nobody") from error


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino
