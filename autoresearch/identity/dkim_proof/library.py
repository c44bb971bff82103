"""The library that knows how DKIM writes and hashes headers, of the extra ``attest``."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, NamedTuple

from autoresearch.errors import Refused
from autoresearch.installing import install_command

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
