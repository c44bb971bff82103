"""Proof by a mail that its holder sent: a DKIM signature (RFC 6376, 8463) over a Subject that carries a digest.

Strict: a signature that any mail server accepts is not yet a proof of who wrote. Everything is pure but
:func:`resolve_key`. It needs the packages of the extra ``attest``.
"""

from autoresearch.identity.dkim_proof.keys import KeyLookup
from autoresearch.identity.dkim_proof.profile import FRESH_MS, DkimProof, proof_subject, prove, signed_part
from autoresearch.identity.dkim_proof.resolver import resolve_key

__all__ = [
    "FRESH_MS",
    "DkimProof",
    "KeyLookup",
    "proof_subject",
    "prove",
    "resolve_key",
    "signed_part",
]
