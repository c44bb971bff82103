"""Which records a person hides by what it hides: a participant, a record, a task, or words in what others wrote.

What is decided here follows from the records and from the person's list, whichever came first. A person's own records
are hidden by their ids alone. Nothing that is counted depends on it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from autoresearch.errors import Refused
from autoresearch.log.connection import own_authors
from autoresearch.log.derive.step import Items, Step
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.tables.hidden import HiddenRow, Thing
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Identity, Task
from autoresearch.record.record import parse_stored
from autoresearch.text import folded

# So many things are hidden at most, and so many of them may be words: each new text is compared with them.
THINGS_MOST, WORDS_MOST = 100_000, 1_000
# More phrases than these are looked for by their first words.
_FEW = 16
_ASCII_WORD = re.compile(r"[a-z0-9]+")


class Phrases:
    """Words that are looked for in texts, whole words and not parts of one, all of them at once.

    Scripts without capital letters, such as Chinese, need not set words apart: there the characters suffice.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: defaultdict[str, list[str]] = defaultdict(list)
        self._others: list[str] = []
        several = list(phrases)
        for phrase in several:
            first = _ASCII_WORD.match(phrase) if len(several) > _FEW else None
            (self._by_first[first.group()] if first else self._others).append(phrase)

    def within(self, text: str) -> list[str]:
        """Those that a text has."""
        text = folded(text)
        near = [phrase for phrase in self._others if phrase in text]
        if self._by_first:
            words = self._by_first.keys() & _ASCII_WORD.findall(text)
            near += [phrase for word in words for phrase in self._by_first[word]]
        return [phrase for phrase in near if _has(text, phrase)]


def _has(text: str, phrase: str) -> bool:
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (_is_joined(text, start) or _is_joined(text, end)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _is_joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of a place are of one word."""
    return 0 < at < len(text) and _joins(text[at - 1]) and _joins(text[at])


def _joins(character: str) -> bool:
    return character.isdecimal() or character.upper() != character or bool(unicodedata.combining(character))


class Hiding(NamedTuple):
    """What changed: how many things are hidden now, or are no longer, and how many records that are here."""

    changed: int
    records: int


def hide(log: Tables, rows: Iterable[HiddenRow], *, replacing: bytes = b"") -> Hiding:
    """Hide things on this machine: what is here of them, and what comes later.

    ``replacing``: in place of all that is from this participant's list. Raises Refused when there would be too many;
    nothing is changed then.
    """
    listed = list(rows)
    with log.writer.settling():
        before = {*log.hidden.things(words=True), *log.hidden.things(words=False)}
        records = log.hidden.count_records()
        if replacing:
            log.hidden.remove(origin=replacing)
        words = set(log.hidden.things(words=True))
        log.hidden.add(listed)
        if log.hidden.count() > THINGS_MOST or len(log.hidden.things(words=True)) > WORDS_MOST:
            most = f"{THINGS_MOST:,} things at most are hidden, {WORDS_MOST:,} of them words"
            raise Refused(f"that is too much to hide: {most}", hint="autoresearch network hidden")
        things = dict.fromkeys(row.thing for row in listed)
        _hide_authors(log, {thing for thing in things if isinstance(thing, bytes)})
        new = [thing for thing in things if isinstance(thing, str) and thing not in words]
        if new:
            _hide_texts(log, Phrases(new), 0)
        return Hiding(len(things.keys() - before), log.hidden.count_records() - records)


def unhide(log: Tables, thing: Thing | None = None, *, origin: bytes | None = None) -> Hiding:
    """Hide a thing no longer, or all that was taken from one participant's list."""
    with log.writer.settling():
        records = log.hidden.count_records()
        things = log.hidden.remove(thing, origin)
        return Hiding(len(things), records - log.hidden.count_records())


def arrive(log: Tables, after: int) -> Items:
    """Hide what was stored after the record with this number, in the transaction that stores it."""
    if not log.hidden:
        return {}
    last = log.records.last_row()
    if any(True for _ in log.hidden.signed(after, last)):
        _hide_authors(log, {thing for thing in log.hidden.things(words=False) if isinstance(thing, bytes)})
    if phrases := tuple(thing for thing in log.hidden.things(words=True) if isinstance(thing, str)):
        _hide_texts(log, _phrases(phrases), after)
    return {}


@lru_cache(4)
def _phrases(phrases: tuple[str, ...]) -> Phrases:
    """The same for each record that comes alone."""
    return Phrases(phrases)


def _hide_authors(log: Tables, keys: set[bytes]) -> None:
    """Hide the records of participants by their keys, and of the devices that speak for them."""
    own, roster = own_authors(log.path.parent / "heads"), roster_of(log)
    devices = [
        (device, root)
        for device in roster.keys_of(keys)
        for root in {device, *(root for _, root in roster.spans(device))} & keys
    ]
    log.hidden.hide_authors(row for row in devices if row[0] not in own)


def _hide_texts(log: Tables, phrases: Phrases, after: int) -> None:
    own, last = own_authors(log.path.parent / "heads"), log.records.last_row()
    rows = ((n, phrase) for n, text in _texts(log, after, last) for phrase in phrases.within(text))
    log.hidden.hide_records(rows, but=own)


def _texts(log: Tables, after: int, last: int) -> Iterator[tuple[int, str]]:
    """What was written in records: titles, hypotheses, notes, descriptions, the names of tasks and participants."""
    yield from log.hidden.texts(after, last)
    for n, raw, signature in log.hidden.signed(after, last):
        body = parse_stored(raw, signature).body
        if isinstance(body, Task):
            yield n, f"{body.name}\n{body.summary}"
        elif isinstance(body, Identity) and body.name:
            yield n, body.name


HIDDEN = Step(
    "hidden",
    reads="hide record text_index release_index claim",
    writes="hidden hidden_author",
    arrive=arrive,
)
