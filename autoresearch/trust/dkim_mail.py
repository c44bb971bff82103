"""What a mail, and its DKIM signature field, must look like before any key is asked for.

Also the library of the extra ``attest`` that knows how DKIM writes and hashes headers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, NamedTuple

from autoresearch.errors import Refused, install_command

# The library passes over such lines, of mbox files; others read "From : somebody" as the sender.
_SKIPPED = re.compile(rb"^From[ \t]", re.MULTILINE)


class Field(NamedTuple):
    """A header field: its name as written, and all bytes behind the colon, folded as they came."""

    name: bytes
    value: bytes

    @property
    def key(self) -> str:
        """The name by which it is compared."""
        return self.name.decode("ascii").lower()


def load_dkim() -> ModuleType:
    """The module ``dkim``. Raises Refused, with what to install, when it is missing."""
    try:
        import dkim
    except (ImportError, RuntimeError) as error:  # without dnspython it raises the latter
        raise Refused(
            "DKIM signatures can't be checked here: a package is missing.", hint=install_command("attest")
        ) from error
    module: ModuleType = dkim
    return module


def read_fields(header: bytes) -> list[Field]:
    """The header's fields. Raises Refused when it is no header of a mail."""
    dkim = load_dkim()
    if _SKIPPED.search(header):
        raise Refused("That is no mail: its header is malformed.")
    try:
        fields, _ = dkim.rfc822_parse(header)
    except (dkim.DKIMException, IndexError) as error:
        raise Refused("That is no mail: its header is malformed.") from error
    return [Field(name, value) for name, value in fields]


def read_tags(text: bytes) -> dict[str, str]:
    """A list of tags as in RFC 6376, 3.2. Raises ValueError when it is none, or names a tag twice."""
    load_dkim()
    from dkim.util import InvalidTagValueList, parse_tag_value

    try:
        return {name.decode("ascii"): value.decode("ascii") for name, value in parse_tag_value(text).items()}
    except InvalidTagValueList as error:
        raise ValueError(str(error)) from error


def read_public_key(record: bytes) -> tuple[Any, int]:
    """The key in a key record as the library holds it, and its bits. Raises ValueError when it is none."""
    dkim = load_dkim()
    try:
        key, bits, _, _ = dkim.evaluate_pk("record", record)
    except (dkim.DKIMException, ValueError, TypeError, LookupError, AssertionError) as error:
        raise ValueError(str(error)) from error
    return key, int(bits)


def is_signed(header: bytes, signature: Field, tags: dict[str, str], record: bytes) -> bool:
    """Whether the key in ``record`` signed the header fields that ``signature`` names. The body is not looked at."""
    dkim = load_dkim()
    check = dkim.DKIM(header)
    check.pk, check.keysize, check.ktag, check.seqtlsrpt = dkim.evaluate_pk("record", record)
    # The body's hash is itself signed. Without this tag the library leaves the body alone; what it hashes is the field.
    parts = {name.encode(): value.encode() for name, value in tags.items() if name != "bh"}
    names = [name.strip().lower().encode() for name in tags["h"].split(":")]
    try:
        return bool(check.verify_sig_process(parts, names, tuple(signature), None))
    except (dkim.DKIMException, ValueError, TypeError, LookupError, AssertionError, ArithmeticError):
        return False


# RFC 5322, 3.6: what a mail has once, or at most once. A second one is shown by some programs and hashed by others.
_ONE = ("from", "subject", "date")
_AT_MOST_ONE = ("sender", "reply-to", "to", "cc", "message-id")
_END = re.compile(rb"\r?\n\r?\n")
# Where programs disagree on what a line is, nothing can be said about the mail.
_ODD = re.compile(rb"\r(?!\n)|[\0\x0b\x0c]")
_SPACE = re.compile(r"[ \t\r\n]+")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ADDRESS = rf"{_ATOM}(?:\.{_ATOM})*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
# One address, bare or behind a name; no comments, groups or routes, in which an address can hide.
_SENDER = re.compile(
    rf'(?:"(?:[^"\\]|\\.)*" ?|[^"<>@,;:()\\\[\]]*)<(?P<angle>{_ADDRESS})>|(?P<bare>{_ADDRESS})', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class MailHeader:
    """The header of a mail that has one sender, one subject and one date. ``date_ms`` is Unix time."""

    header: bytes
    fields: tuple[Field, ...]
    sender: str
    subject: str
    date_ms: int

    @property
    def domain(self) -> str:
        """The sender's domain."""
        return self.sender.rpartition("@")[2].lower()

    @property
    def signatures(self) -> list[Field]:
        """The DKIM signatures, topmost first."""
        return [field for field in self.fields if field.key == "dkim-signature"]


def header_of(message: bytes) -> bytes:
    """The header, with the empty line that ends it."""
    end = _END.search(message)
    return message[: end.end()] if end else message


def read_mail(message: bytes) -> MailHeader:
    """The mail's header, read so that no two programs could read it differently.

    Raises:
        Refused: it is none, or has no or several From, Subject or Date, or a From of another shape than one address.
    """
    header = header_of(message)
    if _ODD.search(header):
        raise Refused("That is no mail: its header has odd control characters.")
    fields = read_fields(header)
    counts = Counter(field.key for field in fields)
    for name in _ONE + _AT_MOST_ONE:
        if counts[name] > 1:
            raise Refused(f"The mail has several {name.title()} fields.")
    if missing := [name for name in _ONE if not counts[name]]:
        raise Refused(f"The mail has no {missing[0].title()} field.")
    values = {field.key: unfold(field.value) for field in fields}
    return MailHeader(header, tuple(fields), _sender(values["from"]), values["subject"], _date_ms(values["date"]))


def unfold(value: bytes) -> str:
    """A field's value on one line, white space as single spaces; bytes beyond ASCII stay as they are, one a letter."""
    return _SPACE.sub(" ", value.decode("latin-1")).strip(" ")


def _sender(value: str) -> str:
    match = _SENDER.fullmatch(value)
    if match is None:
        raise Refused("The mail's From is not one plain address.", hint="send it as You <you@example.org>")
    return match["angle"] or match["bare"]


def _date_ms(value: str) -> int:
    try:
        date = parsedate_to_datetime(value)
        return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise Refused("The mail's Date is no date.") from error


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
