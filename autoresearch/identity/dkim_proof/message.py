"""What a mail must look like before any signature is considered: its header fields, sender, subject and date. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from autoresearch.errors import Refused
from autoresearch.identity.dkim_proof.library import Field, read_fields

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
class Mail:
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


def read_mail(message: bytes) -> Mail:
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
    return Mail(header, tuple(fields), _sender(values["from"]), values["subject"], _date_ms(values["date"]))


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
