"""What a DKIM signature field must say of itself, before its key is asked for. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autoresearch.errors import Refused
from autoresearch.identity.dkim_proof.library import Field, read_tags

ALGORITHMS = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}
# Without these a signature says nothing about who wrote what, when.
COVERED = ("from", "subject", "date")
_NEEDED = ("v", "a", "b", "bh", "d", "h", "s")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_SELECTOR = re.compile(rf"(?=.{{1,128}}\Z){_LABEL}(?:\.{_LABEL})*")
# Two labels at least: nobody signs for a whole top-level domain.
_DOMAIN = re.compile(rf"(?=.{{3,253}}\Z){_LABEL}(?:\.{_LABEL})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/ \t\r\n]+[= \t\r\n]*")
_CANONICAL = re.compile(r"(simple|relaxed)(/(simple|relaxed))?")
_SECONDS = re.compile(r"[0-9]{1,11}")
# Where the signature's own value is taken out before it is hashed: were there two such places, one would be unsigned.
_OWN_VALUE = re.compile(r"[;\s]b\s*=")


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature field that the strict profile can go on with. Times are Unix seconds, names in lower case."""

    field: Field
    tags: dict[str, str]
    domain: str
    selector: str
    algorithm: str
    identity: str
    signed_s: int | None
    expires_s: int | None

    def speaks_for(self, domain: str) -> bool:
        """Whether its domain is ``domain`` or one above it (as DMARC's relaxed alignment, RFC 7489, 3.1.1)."""
        return is_within(domain, self.domain)


def is_within(domain: str, parent: str) -> bool:
    """Whether a domain is another one or below it; both in lower case."""
    return domain == parent or domain.endswith("." + parent)


def read_signature(field: Field) -> Signature:
    """The signature that a field holds. Raises Refused, with the sentence for what is wrong with it."""
    try:
        tags = read_tags(field.value)
    except ValueError as error:
        raise Refused("A DKIM signature of the mail is malformed.") from error
    if missing := [name for name in _NEEDED if not tags.get(name)]:
        raise Refused(f"A DKIM signature of the mail has no {missing[0]}=.")
    _check_kind(tags)
    domain, selector = tags["d"].lower(), tags["s"].lower()
    if not _DOMAIN.fullmatch(domain) or not _SELECTOR.fullmatch(selector):
        raise Refused("A DKIM signature of the mail names no usable domain and selector.")
    identity = tags.get("i", "@" + domain).rpartition("@")[2].lower()
    if not is_within(identity, domain):
        raise Refused("A DKIM signature of the mail speaks for another domain than its own (i=).")
    _check_cover(tags, field)
    signed, expires = _seconds(tags, "t"), _seconds(tags, "x")
    if signed is not None and expires is not None and expires <= signed:
        raise Refused("A DKIM signature of the mail ends before it begins.")
    return Signature(field, tags, domain, selector, ALGORITHMS[tags["a"]], identity, signed, expires)


def _check_kind(tags: dict[str, str]) -> None:
    if tags["v"] != "1":
        raise Refused("A DKIM signature of the mail is of an unknown version.")
    if tags["a"] == "rsa-sha1":
        raise Refused("The mail's DKIM signature uses SHA-1, which is broken.")
    if tags["a"] not in ALGORITHMS:
        raise Refused("The mail's DKIM signature uses an unknown algorithm.")
    if not _CANONICAL.fullmatch(tags.get("c", "simple/simple")):
        raise Refused("The mail's DKIM signature uses an unknown canonicalization.")
    if tags.get("q", "dns/txt") != "dns/txt":
        raise Refused("The mail's DKIM signature has its key somewhere else than in DNS.")


def _check_cover(tags: dict[str, str], field: Field) -> None:
    if "l" in tags:
        raise Refused("The mail's DKIM signature covers a part of the text only (l=).")
    names = {name.strip().lower() for name in tags["h"].split(":")}
    if open_ones := [name for name in COVERED if name not in names]:
        raise Refused(f"The mail's DKIM signature does not cover {open_ones[0].title()}.")
    if len(_OWN_VALUE.findall(field.value.decode("latin-1"))) != 1:
        raise Refused("A DKIM signature of the mail is ambiguous.")
    if not _BASE64.fullmatch(tags["b"]) or not _BASE64.fullmatch(tags["bh"]):
        raise Refused("A DKIM signature of the mail is malformed.")


def _seconds(tags: dict[str, str], name: str) -> int | None:
    if name not in tags:
        return None
    if not _SECONDS.fullmatch(tags[name]):
        raise Refused(f"A DKIM signature of the mail has no time in {name}=.")
    return int(tags[name])
