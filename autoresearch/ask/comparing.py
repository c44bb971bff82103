"""Which programs a question speaks of, and how two of them differ: in value, beyond the noise or within it.

Programs are named by a value, the beginning of an id, a part such as “the baseline”, or the words of their titles.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from autoresearch.ask.discussion import Fact
from autoresearch.ask.lookup import FoundTask
from autoresearch.log.log import Log
from autoresearch.log.standing.trials import Trial
from autoresearch.log.standing.verdicts import WIDE, Spread, spread_of
from autoresearch.propose.mind.recall import past_run
from autoresearch.propose.search.evidence import gather
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.task.model import Metric
from autoresearch.text import brief, counted, one_line, sign_of, value

TITLE = 80
# No difference is worth more seeds than these of each program.
SEEDS_MOST = 30
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{2,12}(?![\w.]|\.\d)")
_WORD = re.compile(r"[\w.+-]{3,}")
# Words of a question that name no title.
_PLAIN = frozenset(
    [
        "the", "and", "what", "did", "does", "with", "than", "better", "worse", "best", "baseline", "really", "bring",
        "brought", "run", "runs", "program", "value", "rate", "is", "are", "from", "between", "compared", "much", "how",
    ]
)  # fmt: skip
_PARTS = (
    (r"\bsecond[ -]best\b|\brunner-up\b|\btop (?:two|2)\b|\bzweitbeste\w*", "second"),
    (r"@(?![\w~])|\b(?:(?<!second )best|top|leader|leading|winner|record|beste[rns]?)\b", "best"),
    (r"\b(?:baseline|original|start|beginning|ausgangs\w*)\b", "baseline"),
    (r"\b(?:last|latest|newest|letzte[rns]?)\b", "last"),
)


class MeasuredProgram(NamedTuple):
    """A program with a value: the mean over ``runs`` seeds, in the metric's unit."""

    id: bytes
    title: str
    value: float
    runs: int
    parent: bytes | None
    time_ms: int

    @property
    def named(self) -> str:
        """The program as a sentence names it."""
        return f"“{one_line(self.title, TITLE)}”" if self.title else short_id(self.id)


@dataclass(frozen=True, slots=True)
class RankedPrograms:
    """The programs of a task that have a value, the best first, and how far a seed moves a value."""

    ranked: Sequence[MeasuredProgram]
    baseline: bytes | None
    """The first run of the task's own program."""
    spread: Spread | None
    sign: float
    values: Mapping[bytes, MeasuredProgram]
    """The program of each run."""

    def parent(self, program: MeasuredProgram) -> MeasuredProgram | None:
        """The program that one was made from, where it has a value."""
        return self.values.get(program.parent) if program.parent else None

    def worse(self, program: MeasuredProgram, other: MeasuredProgram) -> float:
        """By how much the first is worse than the second."""
        return self.sign * (program.value - other.value)

    def margin(self, program: MeasuredProgram, other: MeasuredProgram) -> float | None:
        """Half of the 95 % interval of their difference; None where nobody knows the noise."""
        return self.spread.margin(program.runs, other.runs) if self.spread else None

    def open(self) -> list[MeasuredProgram]:
        """The best, and those that the noise does not tell apart from it; alone where nothing is open."""
        best = self.ranked[:1]
        return [
            each
            for each in self.ranked
            if each in best or ((wide := self.margin(each, best[0])) is not None and self.worse(each, best[0]) <= wide)
        ]


def programs_of(log: Log, task: FoundTask, ended: Sequence[Trial]) -> RankedPrograms:
    """The programs of a task from its runs that ended."""
    metric = (log.tasks.definition(task.digest) or {}).get("metric")
    try:
        spread = spread_of(log, task.digest, msgspec.convert(metric, Metric))
        noise = spread.deviation if spread else None
    except msgspec.ValidationError:
        spread, noise = None, None
    sign = sign_of(task.direction)
    past = [past_run(trial) for trial in ended]
    evidence = gather(past, direction="minimize" if sign > 0 else "maximize", noise=noise, floor=task.floor)
    times = {trial.row.id: trial.row.time for trial in ended}
    runs_of = defaultdict[bytes, list[bytes]](list)
    for run in past:
        runs_of[run.idea].append(run.id)
    ranked, values = list[MeasuredProgram](), dict[bytes, MeasuredProgram]()
    for candidate in sorted(evidence.working, key=lambda candidate: candidate.mean):
        first = candidate.first.id
        body = log.records.get(first).body_as(Run)
        program = MeasuredProgram(first, body.title, sign * candidate.mean, candidate.runs, body.parent, times[first])
        ranked.append(program)
        values |= dict.fromkeys(runs_of[candidate.first.idea], program)
    own = (trial.row.id for trial in ended if trial.row.source_digest == task.baseline)
    return RankedPrograms(ranked, next(own, None), spread, sign, values)


def named_programs(text: str, programs: RankedPrograms) -> list[MeasuredProgram]:
    """The programs that a text speaks of, in the order of its words."""
    places: list[tuple[int, MeasuredProgram]] = []
    for match in _NUMBER.finditer(text):
        decimals = len(match[0].partition(".")[2])
        fits = [each for each in programs.ranked if f"{each.value:.{decimals}f}" == match[0]]
        places += [(match.start(), fits[0])] if fits else []
    for match in re.finditer(r"\b[a-z2-7]{6,60}\b", text.casefold()):
        named = [each for run, each in programs.values.items() if match[0] in (short_id(run), format_id(run))]
        places += [(match.start(), named[0])] if named else []
    for pattern, part in _PARTS:
        word, program = re.search(pattern, text.casefold()), _part(part, programs)
        if word is not None and program is not None:
            places.append((word.start(), program))
    places += _by_title(text.casefold(), programs)
    ordered = [program for _, program in sorted(places, key=lambda place: place[0])]
    return list(dict.fromkeys(ordered))


def _part(part: str, programs: RankedPrograms) -> MeasuredProgram | None:
    ranked = programs.ranked
    if part == "baseline":
        return programs.values.get(programs.baseline or b"")
    if part == "last":
        return max(ranked, key=lambda program: program.time_ms, default=None)
    at = 1 if part == "second" else 0
    return ranked[at] if len(ranked) > at else None


def _by_title(text: str, programs: RankedPrograms) -> list[tuple[int, MeasuredProgram]]:
    """The program whose title has most of its words in a text, where that is most of the title."""
    places = {match[0]: match.start() for match in _WORD.finditer(text)}
    rated = []
    for program in programs.ranked:
        words = set(_WORD.findall(program.title.casefold()))
        hits = words & places.keys()
        if hits - _PLAIN and 2 * len(hits) > len(words):
            rated.append((len(hits), min(places[word] for word in hits), program))
    most = max((rate for rate, _, _ in rated), default=0)
    return [(place, program) for rate, place, program in rated if rate == most][:2]


def comparison(program: MeasuredProgram, other: MeasuredProgram, programs: RankedPrograms, name: str = "") -> Fact:
    """How the first differs from the second, as a sentence; ``name`` says what the second is to it."""
    worse, wide = programs.worse(program, other), programs.margin(program, other)
    than = f"{name or other.named} ({value(other.value)}, {counted(other.runs, 'run')})"
    by = f"{brief(abs(worse))} {'worse' if worse > 0 else 'better'} than {than}" if worse else f"equal to {than}"
    gave = f"{program.named} gave {value(program.value)} ({counted(program.runs, 'run')})"
    return Fact(
        sentence=f"{gave}, {by}{_chance(worse, wide)}",
        ids=[format_id(program.id), format_id(other.id)],
    )


def _chance(worse: float, wide: float | None) -> str:
    if wide is None:
        return "; nobody knows the noise, so nobody can tell whether that is chance"
    if wide == 0:
        return "; runs of one program give the same value, so that is no chance"
    if abs(worse) > wide:
        return f" ± {brief(wide, 2)} (95 %): beyond the noise"
    return f" ± {brief(wide, 2)} (95 %): within the noise, so nobody can tell yet which is better"


def seeds_to_tell(program: MeasuredProgram, other: MeasuredProgram, programs: RankedPrograms) -> str:
    """How many seeds of each tell two programs apart, should the difference stay; empty where none are needed.

    Beyond :data:`SEEDS_MOST` no difference is worth them.
    """
    worse, wide = abs(programs.worse(program, other)), programs.margin(program, other)
    if programs.spread is None or wide is None or worse > wide:
        return ""
    if not worse or (seeds := math.ceil(2 * (WIDE * programs.spread.wide / worse) ** 2)) > SEEDS_MOST:
        return f"more than {SEEDS_MOST} seeds of each would be needed to tell them apart: take the simpler one"
    return f"about {seeds} seeds of each would tell them apart, should the difference stay"
