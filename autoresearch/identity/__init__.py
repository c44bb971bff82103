"""Who signs: keys, their files, and the delegation of a device key by a root key."""

from autoresearch.identity.devices import DELEGATION_MS, RENEWAL_MS, Device, DeviceState, devices_of, is_due, standing
from autoresearch.identity.dkim_proof import (
    FRESH_MS,
    INSTALL_HINT,
    DkimProof,
    KeyLookup,
    proof_subject,
    prove,
    resolve_key,
    signed_part,
)
from autoresearch.identity.enrolling import ANSWER, REQUEST, read_answer, read_request, write_answer, write_request
from autoresearch.identity.identity import (
    Identity,
    LockedKey,
    adopt_root,
    back_up_root,
    create_identity,
    delegation,
    load_identity,
    own_device,
    protect_root,
    restore_identity,
    unlock,
)
from autoresearch.identity.keys import KeyPair, read_secret
from autoresearch.identity.mailbox import DISPOSABLE, Mailbox, deliverable, domain_tag, mail_tag, mailbox
from autoresearch.identity.roster import BIG_DOMAIN, Roster, Voter, Word
from autoresearch.identity.trust import Trust

__all__ = [
    "ANSWER",
    "BIG_DOMAIN",
    "DELEGATION_MS",
    "DISPOSABLE",
    "FRESH_MS",
    "INSTALL_HINT",
    "RENEWAL_MS",
    "REQUEST",
    "Device",
    "DeviceState",
    "DkimProof",
    "Identity",
    "KeyLookup",
    "KeyPair",
    "LockedKey",
    "Mailbox",
    "Roster",
    "Trust",
    "Voter",
    "Word",
    "adopt_root",
    "back_up_root",
    "create_identity",
    "delegation",
    "deliverable",
    "devices_of",
    "domain_tag",
    "is_due",
    "load_identity",
    "mail_tag",
    "mailbox",
    "own_device",
    "proof_subject",
    "protect_root",
    "prove",
    "read_answer",
    "read_request",
    "read_secret",
    "resolve_key",
    "restore_identity",
    "signed_part",
    "standing",
    "unlock",
    "write_answer",
    "write_request",
]
