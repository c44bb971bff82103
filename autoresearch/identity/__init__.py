"""Who signs: keys, their files, and the delegation of a device key by a root key."""

from autoresearch.identity.devices import DELEGATION_MS, RENEWAL_MS, Device, DeviceState, devices_of, is_due, standing
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
from autoresearch.identity.mailbox import ADDRESS_MAX, DISPOSABLE, Mailbox, deliverable, domain_tag, mail_tag, mailbox
from autoresearch.identity.roster import BIG_DOMAIN, Roster, Voice, Word
from autoresearch.identity.trust import Trust

__all__ = [
    "ADDRESS_MAX",
    "ANSWER",
    "BIG_DOMAIN",
    "DELEGATION_MS",
    "DISPOSABLE",
    "RENEWAL_MS",
    "REQUEST",
    "Device",
    "DeviceState",
    "Identity",
    "KeyPair",
    "LockedKey",
    "Mailbox",
    "Roster",
    "Trust",
    "Voice",
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
    "protect_root",
    "read_answer",
    "read_request",
    "read_secret",
    "restore_identity",
    "standing",
    "unlock",
    "write_answer",
    "write_request",
]
