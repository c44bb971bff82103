"""What is built upon: what others stand behind before what is only said, and never what was found wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from autoresearch.log import Log, SubjectRow
from autoresearch.verification import Judgement
from autoresearch.views.company import Company, company, whose
from autoresearch.views.memory import memory_of
from autoresearch.views.ranking import measured, unvouched, vouched
from autoresearch.views.standing import judgement
from autoresearch.views.witnesses import precedes
from autoresearch.words import RunState

# As many checked subjects are judged to find those that others stand behind.
CHECKED_MOST = 200
# Two others at least stand behind what is more than reported.
CHECKING_AUTHORS = 2
# So many subjects are judged to find those that may be built upon.
JUDGED_ROWS = 300

# The tier of those whom nobody attested, where the network names anybody.
LAST = 4

OPEN = frozenset({RunState.REPORTED, RunState.PROVISIONAL, RunState.CONFIRMED})
PROVEN = frozenset({RunState.FRAUD, RunState.BANNED})
DOUBTED = frozenset({RunState.DISPUTED, RunState.REFUTED}) | PROVEN


class Placed(NamedTuple):
    """A subject, how far others stand behind it, and whose it is."""

    row: SubjectRow
    found: Judgement
    attested: bool
    own: bool

    @property
    def value(self) -> float:
        """What others measured, else what its authors say."""
        return self.row.mean if self.found.value is None else self.found.value


class _Published(NamedTuple):
    """The run that a subject stands by."""

    time: int
    id: bytes
    author: bytes


def tier(state: RunState, *, attested: bool, own: bool, verifying: bool) -> int | None:
    """Where a run stands among those that may be built upon: the smallest first, None never.

    Confirmed before provisional before one's own before others' word, and last that of those whom nobody attested.
    Where nothing can be confirmed the words of all who count are alike.
    """
    if state not in OPEN:
        return None
    if not verifying:
        return 0 if attested or own else LAST
    if attested and state is not RunState.REPORTED:
        return 0 if state is RunState.CONFIRMED else 1
    return 2 if own else 3 if attested else LAST


def place(log: Log, row: SubjectRow, here: Company) -> Placed:
    """How a subject stands, by its first run."""
    return Placed(row, judgement(log, row.first), *whose(row.author, row.first_time, here))


def judged_rows(log: Log, rows: Iterable[SubjectRow], here: Company) -> Iterator[Placed]:
    """How subjects stand, until enough were judged. Who cheated for all to see makes nobody's search shorter."""
    judged = 0
    for row in rows:
        placed = place(log, row, here)
        yield placed
        judged += placed.found.state not in PROVEN
        if judged >= JUDGED_ROWS:
            return


def tier_of(placed: Placed, here: Company) -> int | None:
    """Where a subject stands among those that may be built upon."""
    return tier(placed.found.state, attested=placed.attested, own=placed.own, verifying=here.verifying)


def backed(log: Log, task: bytes, here: Company, state: RunState) -> list[Placed]:
    """The subjects of attested participants in a state that takes others: the confirmed by what others measured."""
    found = checked(log, task, here, voices=CHECKING_AUTHORS if here.verifying else 1)
    kept = [placed for placed in found if placed.found.state is state and placed.attested]
    if state is not RunState.CONFIRMED:
        return kept
    rules = log.rules(task)
    sign = -1.0 if rules and rules.direction == "maximize" else 1.0
    return sorted(kept, key=lambda placed: sign * _measured(placed))


def _measured(placed: Placed) -> float:
    """What others measured, on hardware whose numbers can be compared; where nobody has, what its authors say."""
    return placed.row.mean if placed.found.value is None else placed.found.value


def checked(log: Log, task: bytes, here: Company, *, voices: int) -> list[Placed]:
    """The subjects that at least so many attested participants measured, the best by their authors' word first.

    Those whom nobody attested take no places here, neither with runs nor with verifications, however many they write.
    """
    if not here.naming:
        return []
    memory = memory_of(log)
    version, name = memory.version, f"checked {task.hex()} {voices} {here.me.hex() if here.me else ''}"
    found = memory.known.get(name) if here.roster is memory.roster else None
    if found is None:
        found = _checked(log, task, here, voices)
        if memory.version == version and here.roster is memory.roster:
            memory.known[name] = found
    return found  # type: ignore[return-value]


def _checked(log: Log, task: bytes, here: Company, voices: int) -> list[Placed]:
    found: dict[tuple[bytes, bool], Placed] = {}
    for row in measured(log, task, here, authors=voices):
        if len(_checkers(log, row, here)) < voices:
            continue
        program = (row.source_digest, whose(row.author, row.first_time, here).attested)
        other = found.pop(program, None)
        if other is None or precedes(log, _published(row), _published(other.row)):
            other = place(log, row, here)
        found[program] = other  # the first run stands for it
        if len(found) >= CHECKED_MOST:
            break
    return list(found.values())


def _published(row: SubjectRow) -> _Published:
    return _Published(row.first_time, row.first, row.author)


def _checkers(log: Log, row: SubjectRow, here: Company) -> set[bytes]:
    """The attested participants who published a measurement; whether it counts is another question."""
    spoken = (here.roster.voice(check.author, check.time) for check in log.verifications(row.first))
    return {voice.voice for voice in spoken if voice.attested}


def leading(log: Log, task: bytes) -> Placed | None:
    """The best confirmed subject of a task."""
    return next(iter(backed(log, task, company(log), RunState.CONFIRMED)), None)


def preferred(log: Log, task: bytes, here: Company) -> Placed | None:
    """The subject to build upon, or None: the best of the first tier that there is."""
    if here.verifying:
        for state in (RunState.CONFIRMED, RunState.PROVISIONAL):
            if found := backed(log, task, here, state):
                return found[0]
    best: dict[int, Placed] = {}
    # What could not be better than what is found already is not looked at: a word of one's own ends the search.
    enough = 2 if here.verifying else 0
    for placed in judged_rows(log, vouched(log, task, here, own=True), here):
        at = tier_of(placed, here)
        if at is not None:
            best.setdefault(at, placed)
        if any(found <= enough for found in best):
            break
    if best:
        return best[min(best)]
    strangers = judged_rows(log, unvouched(log, task, here), here)
    return next((placed for placed in strangers if tier_of(placed, here) is not None), None)


def contenders(log: Log, task: bytes, here: Company, *, limit: int, each: int | None = None) -> list[Placed]:
    """The subjects that may be the best, by what attested participants say: none that was found wrong or no better.

    What nobody believes takes nobody's place here, however good it claims to be; with ``each`` that is so of what one
    participant alone says too: no more than so many of its reported runs are among them.
    """
    found: list[Placed] = []
    reported: Counter[bytes] = Counter()

    def voice(row: SubjectRow) -> bytes:
        return here.roster.voice(row.author, row.first_time).voice

    rows = (row for row in vouched(log, task, here) if each is None or reported[voice(row)] < each)
    for placed in judged_rows(log, rows, here):
        if placed.found.state in OPEN or placed.found.state is RunState.DISPUTED:
            found.append(placed)
            reported[voice(placed.row)] += placed.found.state is RunState.REPORTED
        if len(found) >= limit:
            break
    return found


def standings(log: Log, task: bytes, here: Company, *, limit: int) -> dict[bytes, Placed]:
    """How the best subjects of a task and those that others measured stand, by their first run."""
    rows = islice(vouched(log, task, here, own=True), limit)
    found = [*checked(log, task, here, voices=1), *(place(log, row, here) for row in rows)]
    return {placed.row.first: placed for placed in found}
