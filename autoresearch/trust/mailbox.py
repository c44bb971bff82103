"""Mail addresses: which spellings are one mailbox, which domains are throw-away, and the tag that is published. Pure.

An address itself is never published. Merging too much harms one person, merging too little gives anybody many voters,
so that rules of well-known providers are followed and a plus part is dropped everywhere.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from nacl.pwhash import argon2id

from autoresearch.errors import Refused, UsageError
from autoresearch.record.record import Network
from autoresearch.text import ADDRESS_MAX

LOCAL_MAX = 64
_LOCAL = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOMAIN = re.compile(r"(?=.{4,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_LIKE = "one like you@example.org, in plain letters before the @"
_TAG_BYTES = 32

# Domains that are other names of the same mailboxes.
ALIASES = {
    "googlemail.com": "gmail.com",
    "pm.me": "proton.me",
    "protonmail.com": "proton.me",
    "protonmail.ch": "proton.me",
    "me.com": "icloud.com",
    "mac.com": "icloud.com",
    "ymail.com": "yahoo.com",
    "rocketmail.com": "yahoo.com",
    "ya.ru": "yandex.ru",
    "yandex.com": "yandex.ru",
}
# Providers that ignore dots before the at sign.
DOTLESS = frozenset({"gmail.com", "proton.me"})
# Where many strangers have their mailbox: a limit on persons for each domain does not count there.
BIG = frozenset(
    {"gmail.com", "proton.me", "icloud.com", "yahoo.com", "yandex.ru", "outlook.com", "hotmail.com", "live.com"}
    | {"gmx.de", "gmx.net", "web.de", "aol.com", "qq.com", "163.com", "126.com", "mail.ru", "fastmail.com"}
    | {"gmx.at", "gmx.ch", "gmx.com", "msn.com", "outlook.de", "outlook.fr", "outlook.es", "outlook.it", "outlook.jp"}
    | {"hotmail.co.uk", "hotmail.fr", "hotmail.de", "hotmail.it", "hotmail.es", "live.co.uk", "live.fr", "live.nl"}
    | {"yahoo.co.uk", "yahoo.fr", "yahoo.de", "yahoo.it", "yahoo.es", "yahoo.ca", "yahoo.co.in", "yahoo.co.jp"}
    | {"yahoo.com.br", "yahoo.com.au"}
)
# By country: below these, registries sell names to strangers. All below one that is missing here count as one domain.
_FOR_SALE = (
    {"ar": "com edu org", "at": "ac co gv or", "au": "com edu gov id net org", "be": "ac"}
    | {"br": "com edu gov net org", "cn": "ac com edu gov net org", "co": "com edu org", "gr": "com edu"}
    | {"hk": "com edu org", "id": "ac co or", "il": "ac co org", "in": "ac co edu gov net org res", "ir": "ac co"}
    | {"jp": "ac co go ne or", "ke": "ac co", "kr": "ac co go or re", "mx": "com edu gob org", "my": "com edu"}
    | {"ng": "com edu", "nz": "ac co govt net org", "pe": "com edu", "ph": "com edu", "pk": "com edu"}
    | {"pl": "com edu gov net org", "pt": "com", "sa": "com edu", "sg": "com edu", "th": "ac co"}
    | {"tr": "com edu gov org", "tw": "com edu org", "ua": "com edu org"}
    | {"uk": "ac co gov ltd me net nhs org plc sch", "vn": "com edu", "za": "ac co org"}
)
# Well-known givers of throw-away mailboxes; an attestor adds to them.
DISPOSABLE = frozenset(
    {"mailinator.com", "guerrillamail.com", "guerrillamail.net", "sharklasers.com", "10minutemail.com", "yopmail.com"}
    | {"temp-mail.org", "tempmail.com", "trashmail.com", "getnada.com", "maildrop.cc", "dispostable.com", "grr.la"}
    | {"throwawaymail.com", "mohmal.com", "fakeinbox.com", "mintemail.com", "mailnesia.com", "spamgourmet.com"}
)


class Mailbox(NamedTuple):
    """A mailbox: the same for all spellings of its address. ``domain`` is in ASCII."""

    local: str
    domain: str

    @property
    def is_big(self) -> bool:
        """Whether its provider serves everybody."""
        return self.domain in BIG

    @property
    def site(self) -> str:
        """The domain that somebody registered, to whom all below it belongs: any number of mailboxes costs nothing."""
        labels = self.domain.split(".")
        return ".".join(labels[-3 if labels[-2] in _FOR_SALE.get(labels[-1], "").split() else -2 :])


def mailbox(address: str, *, disposable: frozenset[str] = DISPOSABLE) -> Mailbox:
    """The mailbox of an address as a person types it.

    Raises:
        UsageError: it is no address that this program mails to.
        Refused: its domain, or one above it, gives throw-away mailboxes.
    """
    local, at, domain = address.strip().rpartition("@")
    # Some letters beyond ASCII become others in lower case, and mail programs decode words like =?utf-8?q?you?=: the
    # mail would go somewhere else than to the mailbox that gets the tag.
    if not local.isascii() or "=?" in local:
        raise UsageError("that is no mail address", hint=_LIKE)
    local, domain = local.lower(), _ascii(domain)
    if not at or len(address.strip()) > ADDRESS_MAX or len(local) > LOCAL_MAX:
        raise UsageError("that is no mail address", hint=_LIKE)
    if not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(domain):
        raise UsageError("that is no mail address", hint=_LIKE)
    parts = domain.split(".")
    if any(".".join(parts[start:]) in disposable for start in range(len(parts) - 1)):
        raise Refused("that domain gives throw-away mailboxes", hint="use an address that you keep")
    domain = ALIASES.get(domain, domain)
    local = _local(local, domain)
    if not local:
        raise UsageError("that is no mail address", hint=_LIKE)
    return Mailbox(local, domain)


def deliverable(address: str) -> str:
    """How an address that is one stands in a mail's envelope: as typed, its domain in ASCII."""
    local, _, domain = address.strip().rpartition("@")
    return f"{local}@{_ascii(domain)}"


def mail_tag(box: Mailbox, network: Network) -> bytes:
    """The 32 bytes that stand for a mailbox in a network: Argon2id with the network's cost, slow by design.

    It keeps nobody from testing one address that he suspects, only from testing all there are.
    """
    return _slow(f"{box.local}@{box.domain}", b"autoresearch/mail-tag/1", network)


def domain_tag(box: Mailbox, network: Network) -> bytes:
    """The 32 bytes that stand for a domain and all below it, by which persons of one small domain are counted."""
    return _slow(box.site, b"autoresearch/domain-tag/1", network)


def _slow(text: str, purpose: bytes, network: Network) -> bytes:
    salt = hashlib.sha256(purpose + b"\0" + network.id).digest()[: argon2id.SALTBYTES]
    return argon2id.kdf(_TAG_BYTES, text.encode(), salt, opslimit=network.tag_passes, memlimit=network.tag_memory_bytes)


def _ascii(domain: str) -> str:
    """The domain as DNS writes it; empty when it can't be written so."""
    import idna

    name = domain.strip().rstrip(".")
    try:
        return idna.encode(name, uts46=True).decode().lower()
    except idna.IDNAError:
        return ""


def _local(local: str, domain: str) -> str:
    local = local.partition("+")[0]
    if domain.startswith("yahoo."):
        local = local.partition("-")[0]
    if domain in DOTLESS:
        local = local.replace(".", "")
    if domain == "proton.me":  # which ignores these as well
        local = local.replace("-", "").replace("_", "")
    if domain == "yandex.ru":
        local = local.replace(".", "-")
    return local.rstrip(".")
