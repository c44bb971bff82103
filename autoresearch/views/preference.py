"""What is built upon: what others stand behind before what is only said, and never what was found wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from autoresearch.identity import Roster
from autoresearch.log import Log, SubjectRow
from autoresearch.verification import Judgement, network_rules
from autoresearch.views.hardware import comparable
from autoresearch.views.memory import roster_of
from autoresearch.views.standing import judgement
from autoresearch.words import RunState

# As many checked subjects are judged to find those that others stand behind, out of so many with verifications.
CHECKED_MOST = 200
_SCANNED_MOST = 5000
# Two others at least stand behind what is more than reported.
CHECKING_AUTHORS = 2
# As far down the board as something is looked for that may be built upon.
BOARD_ROWS = 2000
JUDGED_ROWS = 300
# Most who ask want the first few.
_FIRST_PAGE, _PAGE = 20, 500

# The tier of those whom nobody attested, where the network names anybody.
LAST = 4

OPEN = frozenset({RunState.REPORTED, RunState.PROVISIONAL, RunState.CONFIRMED})
DOUBTED = frozenset({RunState.DISPUTED, RunState.REFUTED, RunState.FRAUD, RunState.BANNED})


class Company(NamedTuple):
    """Who is here as far as a log says: whether anything can be confirmed, whether anybody is named at all, and me.

    ``verifying``: there are enough attested participants; ``naming``: the network has attestors or named participants.
    """

    verifying: bool
    naming: bool
    me: bytes | None
    roster: Roster


class Whose(NamedTuple):
    """Whose word a run is: an attested participant's, one's own."""

    attested: bool
    own: bool


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


def company(log: Log, me: bytes | None = None) -> Company:
    """Who is here at the time of the newest record. ``me`` is the device that asks, if it has a key."""
    naming = bool(log.trust.attestors or log.trust.participants)
    newest, roster = log.records(limit=1) if naming else [], roster_of(log)
    if not newest:
        return Company(verifying=False, naming=naming, me=None, roster=roster)
    rules, now_ms = network_rules(log.network), newest[0].time
    verifying = len(roster.voices(now_ms - rules.age_ms)) >= rules.least
    return Company(verifying, naming, roster.voice(me, now_ms).voice if me else None, roster)


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
    found: list[Placed] = []
    seen: set[tuple[bytes, float]] = set()
    for row in comparable(log, log.checked(task, authors=voices, limit=_SCANNED_MOST)):
        subject, known = (row.source_digest, row.budget), whose(row.author, row.first_time, here)
        if subject in seen:  # its earlier run stands for it
            continue
        if (known.attested or known.own) and len(_checkers(log, row, here)) >= voices:
            found.append(place(log, row, here))
            seen.add(subject)
        if len(found) >= CHECKED_MOST:
            break
    return found


def _checkers(log: Log, row: SubjectRow, here: Company) -> set[bytes]:
    """The attested participants who published a measurement; whether it counts is another question."""
    spoken = (here.roster.voice(check.author, check.time) for check in log.verifications(row.first))
    return {voice.voice for voice in spoken if voice.attested}


def leading(log: Log, task: bytes) -> Placed | None:
    """The best confirmed subject of a task."""
    return next(iter(backed(log, task, company(log), RunState.CONFIRMED)), None)


def walk(log: Log, task: bytes, here: Company | None = None, *, limit: int = BOARD_ROWS) -> Iterator[SubjectRow]:
    """The subjects of a task by what their authors say, the best first, as many as are asked for.

    With ``here`` each stands by its first run of somebody whose word counts, where there is one: a stranger who writes
    the same program under an earlier time takes it from nobody.
    """
    start, size = 0, _FIRST_PAGE
    while start < limit:
        page = log.ranked(task, limit=min(size, limit - start), skip=start)
        for row in comparable(log, page):
            yield row if here is None else _vouched_for(log, row, here)
        if len(page) < size:
            return
        start, size = start + size, _PAGE


def _vouched_for(log: Log, row: SubjectRow, here: Company) -> SubjectRow:
    if row.runs == 1 or any(whose(row.author, row.first_time, here)):
        return row
    known = (each for each in log.by_each(row) if any(whose(each.author, each.first_time, here)))
    return next(known, row)


def preferred(log: Log, task: bytes, here: Company) -> Placed | None:
    """The subject to build upon, or None: the best of the first tier that there is."""
    if here.verifying:
        for state in (RunState.CONFIRMED, RunState.PROVISIONAL):
            if found := backed(log, task, here, state):
                return found[0]
    best: dict[int, Placed] = {}
    judged = 0
    # What could not be better than what is found already is not looked at: a word of one's own ends the search.
    enough = 2 if here.verifying else 0
    for row in walk(log, task, here):
        known = whose(row.author, row.first_time, here)
        if LAST in best and not (known.attested or known.own):
            continue
        placed, judged = place(log, row, here), judged + 1
        at = tier_of(placed, here)
        if at is not None:
            best.setdefault(at, placed)
        if judged >= JUDGED_ROWS or any(found <= enough for found in best):
            break
    return best[min(best)] if best else None


def contenders(log: Log, task: bytes, here: Company, *, limit: int, each: int | None = None) -> list[Placed]:
    """The subjects that may be the best, by what attested participants say: none that was found wrong or no better.

    What nobody believes takes nobody's place here, however good it claims to be; with ``each`` that is so of what one
    participant alone says too: no more than so many of its reported runs are among them.
    """
    found: list[Placed] = []
    reported: Counter[bytes] = Counter()
    judged = 0
    for row in walk(log, task, here):
        if not whose(row.author, row.first_time, here).attested:
            continue
        voice = here.roster.voice(row.author, row.first_time).voice
        if each is not None and reported[voice] >= each:
            continue
        placed, judged = place(log, row, here), judged + 1
        if placed.found.state in OPEN or placed.found.state is RunState.DISPUTED:
            found.append(placed)
            reported[voice] += placed.found.state is RunState.REPORTED
        if len(found) >= limit or judged >= JUDGED_ROWS:
            break
    return found


def standings(log: Log, task: bytes, here: Company, *, limit: int) -> dict[bytes, Placed]:
    """How the best subjects of a task and those that others measured stand, by their first run."""
    rows = (row for row in walk(log, task, here) if any(whose(row.author, row.first_time, here)))
    found = [*checked(log, task, here, voices=1), *(place(log, row, here) for row in islice(rows, limit))]
    return {placed.row.first: placed for placed in found}


def whose(author: bytes, time_ms: int, here: Company) -> Whose:
    """Whether an author is attested, where the network names anybody, and is the one who asks."""
    if not here.naming:
        return Whose(attested=True, own=False)
    voice = here.roster.voice(author, time_ms)
    return Whose(voice.attested, voice.voice == here.me)
