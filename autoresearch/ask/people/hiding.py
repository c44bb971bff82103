"""What a person hides on this machine, by what was typed; and lists of such things, shared as notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from autoresearch.ask.lookup import find_task, named
from autoresearch.ask.records import HiddenAnswer, HiddenListAnswer, HiddenView, HideAnswer
from autoresearch.ask.requests import HiddenOf, HideRequest, TakeHiddenRequest
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.ask.show import summary
from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import own_keys, participant_with_key
from autoresearch.log.standing.hiding import Hiding, hide, unhide
from autoresearch.log.tables.hidden import HiddenRow, Thing
from autoresearch.record.encoding import COMMON, format_id, parse_id, short_id
from autoresearch.record.kinds import TITLE_CHARACTERS, Note
from autoresearch.record.record import Record
from autoresearch.text import HIDE_REASON_CHARACTERS, counted, folded, one_line, plain_name

_KEY = re.compile(r"[0-9a-f]{64}")
# Fewer characters begin too many keys.
_LEAST = 4
# So many things of a list are described in an answer.
DESCRIBED = 50
# Among so many of a participant's newest notes its list is looked for.
_NOTES_SEARCHED = 200
# A list has so many parts beside its first: as many as a record links. Each stays below the size of a record.
_PARTS_MOST, _PART_BYTES, _PART_THINGS = 32, 10_000, 400


@in_snapshot
def hidden_answer(log: Log, request: HiddenOf) -> HiddenAnswer:
    """What is hidden on this machine, the newest first."""
    rows = log.hidden.rows() if request.what else log.hidden.rows(request.limit)
    text = request.what.lower()
    named = (row for row in rows if (row.thing if isinstance(row.thing, str) else row.thing.hex()).startswith(text))
    views = [hidden_view(log, row) for row in islice(named, request.limit)]
    return HiddenAnswer(hidden=views, total=log.hidden.count(), records=log.hidden.count_records())


def hidden_view(log: Log, row: HiddenRow) -> HiddenView:
    """A thing that is hidden, or stands in a list, as people see it."""
    what, thing, name = _described(log, row.thing)
    return HiddenView(
        what=what,
        thing=thing,
        name=name,
        reason=row.reason,
        time_ms=row.time,
        records=log.hidden.count_records(row.thing),
        origin=participant_with_key(log, row.origin) if row.origin else None,
    )


def _described(log: Log, thing: Thing) -> tuple[str, str, str]:
    """What a thing is, as it is typed, and in a line."""
    if isinstance(thing, str):
        return "words", thing, thing
    if record := log.records.find(thing):
        return record.kind, format_id(thing), summary(record.body)
    if task := log.tasks.find(thing):
        return "task", thing.hex(), task.name
    roster = roster_of(log)
    if log.devices.head(thing) or roster.keys_of({thing}) != {thing}:
        called = plain_name(roster.name(thing))
        return "participant", thing.hex(), " ".join(filter(None, (participant_with_key(log, thing).short, called)))
    return "unknown", thing.hex(), f"not here: a key, or the record {format_id(thing)}"


def hide_named(
    log: Log, request: HideRequest, me: bytes, *, now_ms: int, archived: frozenset[bytes] = frozenset()
) -> HideAnswer:
    """Hide what a request names, or no longer.

    Raises:
        NotFound: it names nothing that is here, and is no whole key or id; or it is not hidden.
        AmbiguousId: it can mean several things.
        UsageError: there are no words in it, or too many.
        Refused: it is this participant itself, or too much is hidden.
    """
    if request.undo:
        things = _hidden_things(log, request, me)
        views = [hidden_view(log, HiddenRow(thing, b"", "", now_ms)) for thing in things]
        undone = [unhide(log, thing) for thing in things]
        return _answer(views, Hiding(len(undone), sum(hiding.records for hiding in undone)), undo=True)
    things = _phrase(request.what) if request.words else _named_things(log, request.what, me, archived)
    own = own_keys(log, me, now_ms)
    if any(thing in own for thing in things):
        raise Refused("that is this participant itself", hint="a record of yours: autoresearch network hide ID")
    rows = [HiddenRow(thing, b"", _short(request.reason), now_ms) for thing in things]
    done = hide(log, rows)
    return _answer([hidden_view(log, row) for row in rows], done)


def _answer(views: Sequence[HiddenView], done: Hiding, *, undo: bool = False) -> HideAnswer:
    return HideAnswer(things=list(views[:DESCRIBED]), undo=undo, changed=done.changed, records=done.records)


def _short(text: str) -> str:
    """A text beside what is hidden, in a line. Raises UsageError where it is too long."""
    if len(text) > HIDE_REASON_CHARACTERS:
        raise UsageError(
            f"the reason has {len(text)} characters, of {HIDE_REASON_CHARACTERS} at most", hint="write less"
        )
    return one_line(text)


def _phrase(text: str) -> list[Thing]:
    phrase = folded(text)
    if not phrase:
        raise UsageError("there are no words to hide", hint='autoresearch network hide --words "buy now"')
    if len(phrase) > TITLE_CHARACTERS:
        raise UsageError(
            f"words to hide have {TITLE_CHARACTERS} characters at most, these have {len(phrase)}", hint="give fewer"
        )
    return [phrase]


def _named_things(log: Log, text: str, me: bytes, archived: frozenset[bytes]) -> list[Thing]:
    """The keys of a participant, the id of a record or the digest of a task, by what was typed."""
    text = text.strip()
    meant: dict[str, list[Thing]] = {}
    with suppress(NotFound, UsageError):
        meant["participant"] = [*named(log, text, author=me)]
    with suppress(NotFound, UsageError):
        meant["record"] = [resolve_reference(log, text, author=me, archived=archived)]
    with suppress(NotFound, UsageError):
        meant["task"] = [find_task(log, text, author=me).digest]
    if len(meant) > 1:
        names = [f"{what} {_described(log, things[0])[1]}" for what, things in meant.items()]
        raise AmbiguousId(f"{one_line(text, 80)} can mean several things.", names)
    if meant:
        return next(iter(meant.values()))
    if _KEY.fullmatch(text.lower()):
        return [bytes.fromhex(text)]
    with suppress(UsageError):
        return [parse_id(text)]
    raise NotFound(
        f"“{one_line(text, 80)}” names no participant, record or task here.",
        hint="a whole key or id is hidden when it comes; to hide words: autoresearch network hide --words WORDS",
    )


def _hidden_things(log: Log, request: HideRequest, me: bytes) -> list[Thing]:
    """Those of the hidden things that were named."""
    hidden = list(dict.fromkeys(row.thing for row in log.hidden.rows()))
    text = request.what.strip().lower()
    keys = [thing for thing in hidden if isinstance(thing, bytes) and not request.words]
    begins = [thing for thing in keys if _begins(thing, text)]
    if len(begins) > 1:
        raise AmbiguousId(f"{one_line(text, 80)} can mean several things.", [thing.hex() for thing in begins[:10]])
    things: list[Thing] = [*begins] or [thing for thing in hidden if thing == folded(request.what)]
    if not things and not request.words:
        with suppress(NotFound, UsageError):
            things = [thing for thing in _named_things(log, request.what, me, frozenset()) if thing in hidden]
    if not things:
        raise NotFound(f"“{one_line(request.what, 80)}” is not hidden.", hint="autoresearch network hidden")
    return things


def _begins(thing: bytes, text: str) -> bool:
    digits = text.removeprefix(COMMON)
    whole = thing.hex().startswith(text), format_id(thing).removeprefix(COMMON).startswith(digits)
    return len(digits) >= _LEAST and any(whole)


def _list_of(log: Log, roots: frozenset[bytes]) -> tuple[Record, Note, list[Thing]]:
    """The newest list of a participant: its note, and the things in it. Raises NotFound."""
    devices = roster_of(log).keys_of(roots)
    newest: tuple[int, int, bytes] = (-1, -1, b"")
    for device in devices:
        for record in log.records.newest(kind="note", author=device, limit=_NOTES_SEARCHED):
            is_list = isinstance(record.body, Note) and record.body.hides is not None and record.body.text
            if is_list and not log.records.is_withdrawn(record):
                newest = max(newest, (record.time, record.seq, record.id))
    if not newest[2]:
        who = participant_with_key(log, min(roots))
        raise NotFound(f"{who.short} has shared no list of what it hides.", hint="autoresearch network hide WHAT")
    head = log.records.get(newest[2])
    assert isinstance(head.body, Note)
    parts = [head, *(part for part in log.records.several(head.links) if part.author in devices)]
    things: dict[Thing, None] = {}
    for part in parts:
        if isinstance(part.body, Note):
            things |= dict.fromkeys(part.body.hides or ())
            things |= dict.fromkeys(filter(None, map(folded, part.body.hides_words)))
    return head, head.body, list(things)


def _others_things(log: Log, things: Sequence[Thing], me: bytes | None) -> list[Thing]:
    """Those of these things that may be hidden here: neither this participant nor its records."""
    own = own_keys(log, me, log.records.newest_ms()) if me else frozenset[bytes]()
    ids = [thing for thing in things if isinstance(thing, bytes)]
    left_out = own | {record.id for record in log.records.several(ids) if record.author in own}
    return [thing for thing in things if thing not in left_out and len(thing) <= TITLE_CHARACTERS]


@in_snapshot
def hidden_list_answer(log: Log, participant: str, *, me: bytes | None, limit: int = DESCRIBED) -> HiddenListAnswer:
    """What the newest list of a participant would hide. Raises NotFound, AmbiguousId, UsageError."""
    roots = named(log, participant, author=me)
    head, body, things = _list_of(log, roots)
    others = _others_things(log, things, me)
    return HiddenListAnswer(
        participant=participant_with_key(log, min(roots)),
        note=format_id(head.id),
        time_ms=head.time,
        text=body.text,
        hidden=[hidden_view(log, HiddenRow(thing, b"", "", head.time)) for thing in others[:limit]],
        total=len(others),
        left_out=len(things) - len(others),
    )


def take_list(log: Log, request: TakeHiddenRequest, me: bytes, *, now_ms: int) -> HideAnswer:
    """Hide what the newest list of a participant has, in place of what was taken from it before; or no longer.

    Raises:
        NotFound: there is no such participant, it shared no list, or nothing was taken from it.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
        Refused: it is hidden itself, or is this participant; or too much would be hidden.
    """
    rows = log.hidden.rows()
    if request.undo:
        text = request.participant.strip().lower()
        origins = {row.origin for row in rows if row.origin and row.origin.hex().startswith(text)}
        origins = origins or ({row.origin for row in rows} & named(log, request.participant, author=me))
        if len(origins) != 1:
            raise NotFound(f"Nothing is hidden by a list of {one_line(text, 80)}.", hint="autoresearch network hidden")
        origin = origins.pop()
        views = [hidden_view(log, row) for row in rows if row.origin == origin][:DESCRIBED]
        return _answer(views, unhide(log, origin=origin), undo=True)
    roots = named(log, request.participant, author=me)
    who = participant_with_key(log, min(roots))
    if roots & own_keys(log, me, now_ms):
        raise Refused("that is your own list: it is hidden here already", hint="autoresearch network hidden")
    if roots & {row.thing for row in rows}:
        raise Refused(
            f"{who.short} is hidden here, so that its list is not taken over",
            hint=f"autoresearch network hide {who.short} --undo",
        )
    head, _, things = _list_of(log, roots)
    reason = f"list {short_id(head.id)}"
    taken = [HiddenRow(thing, min(roots), reason, now_ms) for thing in _others_things(log, things, me)]
    done = hide(log, taken, replacing=min(roots))
    return _answer([hidden_view(log, row) for row in taken[:DESCRIBED]], done)


def list_notes(log: Log, text: str) -> tuple[list[Note], Note, int]:
    """What a person chose to hide as notes: further parts, the first that is to link them; and how much is left out."""
    own = [row.thing for row in log.hidden.rows() if not row.origin]
    parts: list[list[Thing]] = [[]]
    size = 0
    for thing in own:
        size += len(thing if isinstance(thing, bytes) else thing.encode()) + 4
        if size > _PART_BYTES or len(parts[-1]) >= _PART_THINGS:
            parts.append([])
            size = 0
        parts[-1].append(thing)
    parts, rest = parts[: _PARTS_MOST + 1], parts[_PARTS_MOST + 1 :]
    left_out = sum(map(len, rest))
    title = _short(text) or f"what I hide: {counted(len(own) - left_out, 'thing')}"
    first, *others = [
        Note(
            topic="insight",
            text=title if at == 0 else "",
            hides=[thing for thing in part if isinstance(thing, bytes)],
            hides_words=[thing for thing in part if isinstance(thing, str)],
        )
        for at, part in enumerate(parts)
    ]
    return others, first, left_out
