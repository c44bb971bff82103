"""How a participant stands with the attestors, and what an attestor did."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.api.base import Answer
from autoresearch.bounds import ADDRESS_MAX, PROOF_BYTES_MAX


class AttestRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask attestors to write to this address. It is passed on to them alone and kept nowhere."""

    address: Annotated[str, Meta(min_length=1, max_length=ADDRESS_MAX)]


class ConfirmRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to one attestor: its token, and the root key's signature of what both tokens make; both in hex.

    ``mail`` may be the header of a mail that its holder sent, in base64, as a second proof; its Subject stands for this
    answer and the ``others``, statements in hex.
    """

    token: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    signature: Annotated[str, Meta(pattern="^[0-9a-f]{128}$")]
    mail: Annotated[str, Meta(max_length=2 * PROOF_BYTES_MAX, pattern="^[0-9A-Za-z+/=]*$")] = ""
    others: Annotated[list[Annotated[str, Meta(pattern="^([0-9a-f]{2}){1,64}$")]], Meta(max_length=15)] = msgspec.field(
        default_factory=list
    )


class WithdrawRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take back what this attestor said of a participant: its root key in hex, and why, for all to read."""

    participant: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    reason: Annotated[str, Meta(max_length=2048)] = ""


class AllowRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attest the mailboxes of a participant again of which this attestor took its word back: its root key in hex."""

    participant: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class AttestationView(Answer, frozen=True, kw_only=True):
    """One trusted attestor's word that holds now; keys and tag in hex, times in Unix milliseconds."""

    attestor: str
    tag: str
    since_ms: int
    until_ms: int
    method: str = "code"


class CodeView(Answer, frozen=True, kw_only=True):
    """A mail that is on its way: whose code it has, and what the answer is bound to besides."""

    attestor: str
    attestor_peer: str
    peer: str
    token: str
    until_ms: int


class AttestRefusal(Answer, frozen=True, kw_only=True):
    """An attestor that was asked and said no, or could not be asked."""

    attestor: str
    why: str
    reason: str


class AttestAnswer(Answer, frozen=True, kw_only=True):
    """How this participant stands. ``until_ms`` is when it stops being attested, 0 when it is not or never stops.

    ``attestors`` are those that the network trusts, ``reachable`` those that answer now (None: nobody was asked).
    """

    schema: str = "autoresearch.attest/1"
    participant: str
    attested: bool
    reason: str
    until_ms: int = 0
    needed: int
    attestors: int
    reachable: int | None = None
    attestations: list[AttestationView] = msgspec.field(default_factory=list)
    awaited: list[CodeView] = msgspec.field(default_factory=list)
    refused: list[AttestRefusal] = msgspec.field(default_factory=list)


class AttestorAct(Answer, frozen=True, kw_only=True):
    """One thing that this attestor did: mailed, attested, refused (``why`` says it), withdrawn or allowed.

    Never an address.
    """

    time_ms: int
    what: str
    why: str
    reason: str
    participant: str
    peer: str
    tag: str
    domain: str


class AttestorAnswer(Answer, frozen=True, kw_only=True):
    """What this attestor did, the newest first, and how often in all."""

    schema: str = "autoresearch.attestor/1"
    attestor: str
    trusted: bool
    mailed: int
    attested: int
    refused: int
    acts: list[AttestorAct]
