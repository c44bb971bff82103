"""Runs as rows of a table and as marks of a chart: which of them a filter finds, and in which order.

Pure but for the search by words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from autoresearch.ask.requests import Filtered
from autoresearch.ask.runs.columns import MARKS, Flags, Ints, RunTable, runs_that_change
from autoresearch.ask.runs.headlines import Teller
from autoresearch.errors import UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.context import participant_of
from autoresearch.log.tables.texts import TextKind
from autoresearch.record.encoding import COMMON, prefix_range
from autoresearch.words import RunMark

SORTED_BY = ("number", "time", "value", "change", "cost")
# More runs than these cannot be read on any page.
WORDS_MOST = 100_000
# Fewer characters begin too many ids.
ID_LEAST = 4


def found_by(
    log: Log, table: RunTable, teller: Teller, asked: Filtered, *, me: bytes | None = None, until: int = 0
) -> Flags:
    """The runs that a filter finds, without its marks. ``until``: of the records up to that number.

    Raises UsageError where ``by`` is no beginning of a key.
    """
    kept = np.ones(len(table), bool) if not until else table.n <= until
    if asked.by:
        kept &= _of_participant(log, table, asked.by, me)
    if asked.hardware:
        kept &= np.array([device == asked.hardware for device in table.devices], bool)
    if asked.has:
        kept &= _among(
            table,
            runs_that_change(log, table.task, asked.has, baseline=teller.baseline, default=teller.default),
        )
    if asked.q.strip():
        kept &= _with_words(log, table, asked.q.strip())
    return kept


def with_marks(table: RunTable, kept: Flags, marks: str) -> Flags:
    """Those of them with one of the marks, written with commas between them; all without any.

    Raises UsageError where there is no such mark.
    """
    wanted = [name.strip() for name in marks.split(",") if name.strip()]
    known = {mark.value: at for at, mark in enumerate(MARKS)}
    if wrong := [name for name in wanted if name not in known]:
        raise UsageError(f"there is no state “{wrong[0][:40]}”", hint=f"states: {', '.join(known)}")
    return kept & np.isin(table.mark, [known[name] for name in wanted]) if wanted else kept


def counts(table: RunTable, kept: Flags) -> dict[str, int]:
    """How many runs have which mark; marks that none has are left out."""
    found = Counter(dict(enumerate(np.bincount(table.mark[kept], minlength=len(MARKS)).tolist())))
    return {mark.value: found[at] for at, mark in enumerate(MARKS) if found[at]}


def in_order(table: RunTable, kept: Flags, sort: str) -> Ints:
    """The places of runs in the table, in the order that is asked for; those without the value come last.

    Raises UsageError where there is no such order.
    """
    name, falling = (sort.removeprefix("-"), sort.startswith("-"))
    found = np.flatnonzero(kept)
    if name not in SORTED_BY:
        hint = f"{', '.join(SORTED_BY)}; with - in front the largest first"
        raise UsageError(f"runs have no order “{sort[:40]}”", hint=hint)
    if name in {"number", "time"}:
        return found[::-1] if falling else found
    keys: Mapping[str, np.ndarray] = {"value": table.value, "change": table.delta, "cost": table.cpu}
    values = keys[name][found].astype(float)
    there = ~np.isnan(values)
    order = np.argsort(-values[there] if falling else values[there], kind="stable")
    return np.concatenate([found[there][order], found[~there]])


def _of_participant(log: Log, table: RunTable, by: str, me: bytes | None) -> Flags:
    text = by.lower()
    if text == "me":
        mine = roster_of(log).voter(me, int(table.time[-1])).root.hex() if me and len(table) else ""
        text = mine or "-"
    elif any(character not in "0123456789abcdef" for character in text):
        raise UsageError(
            "a participant is named by the beginning of its key, or me", hint="autoresearch network credit"
        )
    roots: dict[tuple[bytes, int], bool] = {}

    def is_its(author: bytes, time_ms: int) -> bool:
        # A device may change its participant, at some day.
        day = (author, time_ms // 86_400_000)
        if day not in roots:
            roots[day] = participant_of(log, author, time_ms).key.startswith(text)
        return roots[day]

    return np.array(
        [is_its(author, time) for author, time in zip(table.authors, table.time.tolist(), strict=True)], bool
    )


def _among(table: RunTable, runs: Collection[bytes]) -> Flags:
    """Whether each run of the table is among these."""
    kept = np.zeros(len(table), bool)
    kept[[at for run in runs if (at := table.index.get(run)) is not None]] = True
    return kept


def _with_words(log: Log, table: RunTable, words: str) -> Flags:
    kinds: tuple[TextKind, ...] = ("worked", "failed")
    texts = [one.id for kind in kinds for one in log.texts.search(table.task, kind, words, limit=WORDS_MOST)]
    return _among(table, [*texts, *_beginning_with(table, words)])


def _beginning_with(table: RunTable, words: str) -> list[bytes]:
    """The runs whose id begins so, where enough of an id is given."""
    if len(words.removeprefix(COMMON)) < ID_LEAST:
        return []
    try:
        lowest, highest = prefix_range(words)
    except UsageError:
        return []  # no id begins so
    return [run for run in table.ids if lowest <= run <= highest]


def mark_of(table: RunTable, at: int) -> RunMark:
    """The mark of the run at a place of the table."""
    return MARKS[int(table.mark[at])]
