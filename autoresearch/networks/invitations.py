"""The invites that this machine gave out, and the one that it joined with: small files beside the manifest."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.networks.encoding import TOKEN_SEED_BYTES
from autoresearch.networks.file import write_whole
from autoresearch.networks.tokens import token_of
from autoresearch.records import DAY_MS, Join, Network

USES_MAX = 256
DAYS_MAX = 365


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invite that admits: its token's public key, for which network, and how many it admits until when.

    The seed is in the invite alone. Times are Unix milliseconds by the clock of this machine.
    """

    token: bytes
    network: bytes
    made_ms: int
    expires_ms: int
    uses: int = 1
    revoked: bool = False

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

    def make(self, now_ms: int, *, uses: int, days: int) -> tuple[Invitation, bytes]:
        """Note a new invite; returns it with the seed of its token, which is kept nowhere.

        Raises:
            UsageError: it would admit too many, or for too long.
        """
        for name, number, most in (("uses", uses, USES_MAX), ("days", days, DAYS_MAX)):
            if not 1 <= number <= most:
                raise UsageError(f"an invite has 1 to {most} {name}, not {number}")
        seed = secrets.token_bytes(TOKEN_SEED_BYTES)
        made = Invitation(
            token=token_of(seed), network=self._network, made_ms=now_ms, expires_ms=now_ms + days * DAY_MS, uses=uses
        )
        self._save(made)
        return made, seed

    def given(self) -> list[Invitation]:
        """The invites to this network that admit or did, the newest first. Raises UsageError: a file is damaged."""
        found = [self._read(file) for file in self._folder.glob("*.json")]
        mine = [invitation for invitation in found if invitation.network == self._network]
        return sorted(mine, key=lambda invitation: (-invitation.made_ms, invitation.token))

    def revoke(self, invitation: Invitation) -> Invitation:
        """End an invite: it admits nobody from now on."""
        ended = msgspec.structs.replace(invitation, revoked=True)
        self._save(ended)
        return ended

    def find(self, text: str) -> Invitation:
        """The invite whose token begins with this. Raises NotFound, AmbiguousId."""
        found = [one for one in self.given() if text and one.token.hex().startswith(text.strip().lower())]
        if len(found) > 1:
            raise AmbiguousId(f"{text[:80]} can mean several invites.", [one.token.hex()[:16] for one in found][:10])
        if not found:
            raise NotFound(f"no invite that was made here has a token that begins with {text[:80]!r}",
                           hint="autoresearch network invites")  # fmt: skip
        return found[0]

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
