"""The steps of a check, and the first of them: that a record is what its id names, and its author's."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from autoresearch.records import Network, Record, Refusal, admit, format_id

# A record that is here was not too early when it came.
_ANY_TIME = 2**62


class Given(NamedTuple):
    """A record as it lies in a log: the id that it is kept under, its bytes and their signature."""

    id: bytes
    raw: bytes
    signature: bytes


class Step(NamedTuple):
    """One thing that was looked at: what the record states, what was found here, whether they agree.

    ``agrees`` is None where there is nothing to compare.
    """

    what: str
    stated: str
    found: str
    agrees: bool | None = None


class Outcome(NamedTuple):
    """What the steps come to. ``holds`` is None where it takes a measurement to tell."""

    steps: tuple[Step, ...]
    holds: bool | None
    sentence: str


def opened(given: Given, network: Network, what: str) -> tuple[list[Step], Record | None]:
    """The record that the bytes are, when they hash to the id and its author signed them; else None."""
    found = hashlib.sha256(given.raw).digest()
    steps = [Step(f"{what}: id", format_id(given.id), format_id(found), found == given.id)]
    record = admit(given.raw, given.signature, network, now_ms=_ANY_TIME)
    if isinstance(record, Refusal):
        return [*steps, Step(f"{what}: signature", "its author's", record.sentence, agrees=False)], None
    steps.append(Step(f"{what}: signature", f"device {record.author.hex()}", "holds", agrees=True))
    return steps, record if found == given.id else None


def failed(steps: list[Step], sentence: str) -> Outcome:
    """The outcome of steps that prove nothing."""
    return Outcome(tuple(steps), holds=False, sentence=sentence)


NOT_ITS_RECORD = "the bytes here are not the record that the id names, or nobody signed them"
