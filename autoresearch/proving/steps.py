"""The steps of a check. The first checks a record's id and signature."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from autoresearch.records import Network, Record, Refusal, admit, format_id

# A stored record was not too early when it arrived.
_ANY_TIME = 2**62


class Given(NamedTuple):
    """A record as a log stores it: its id, its bytes and their signature."""

    id: bytes
    raw: bytes
    signature: bytes


class Step(NamedTuple):
    """One comparison: what the record states, what this node found, whether they agree.

    ``agrees`` is None where there is nothing to compare.
    """

    what: str
    stated: str
    found: str
    agrees: bool | None = None


class Outcome(NamedTuple):
    """The result of the steps. ``holds`` is None where only a measurement can tell.

    ``nothing_found``: no record speaks against the author, and everything that was compared agrees.
    """

    steps: tuple[Step, ...]
    holds: bool | None
    sentence: str
    nothing_found: bool = False


def opened(given: Given, network: Network, what: str) -> tuple[list[Step], Record | None]:
    """The record in the bytes, or None where their hash is not the id or the signature does not hold."""
    found = hashlib.sha256(given.raw).digest()
    steps = [Step(f"{what}: id", format_id(given.id), format_id(found), found == given.id)]
    record = admit(given.raw, given.signature, network, now_ms=_ANY_TIME)
    if isinstance(record, Refusal):
        return [*steps, Step(f"{what}: signature", "its author's", record.sentence, agrees=False)], None
    steps.append(Step(f"{what}: signature", f"device {record.author.hex()}", "holds", agrees=True))
    return steps, record if found == given.id else None


def failed(steps: list[Step], sentence: str) -> Outcome:
    """The outcome of steps that do not prove what was stated."""
    return Outcome(tuple(steps), holds=False, sentence=sentence)


def nothing_found(steps: list[Step], sentence: str) -> Outcome:
    """The outcome of steps that found no misbehaviour, where none was stated."""
    return Outcome(tuple(steps), holds=False, sentence=sentence, nothing_found=True)


NOT_ITS_RECORD = "the bytes here are not the record that the id names, or nobody signed them"
