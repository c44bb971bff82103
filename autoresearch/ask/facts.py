"""Sentences that answer what is asked of a task most often, from the numbers of the log, with the records that show it.

Which of them answer a question is told by its words. Pure, over the log.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from autoresearch.ask.discussion import Fact
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.runs.boards import best_answer
from autoresearch.ask.runs.diffs import effects_answer
from autoresearch.ask.runs.rows import runners_answer
from autoresearch.ask.runs.since import since_answer
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import leading
from autoresearch.log.standing.context import TrustContext, trusted_authors
from autoresearch.log.standing.credit import Citations, citations
from autoresearch.log.standing.queries import statistics
from autoresearch.log.standing.trials import Trial
from autoresearch.log.standing.verdicts import learnt_noise
from autoresearch.propose.program.edits import constants
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note, Run
from autoresearch.text import counted, duration, one_line, percent, sign_of, value
from autoresearch.words import NOT_FAILED, HypothesisState, RunStatus

# So many runs are read whole for what stands in records alone, the newest.
READ, NAMED, TEXT = 300, 5, 100
_DAY_MS = 24 * 3600 * 1000
_DAYS = re.compile(r"(\d+) days?\b")
_STATUS: dict[str, str] = {
    RunStatus.DIVERGED: "diverged",
    RunStatus.CRASHED: "stopped with an error",
    RunStatus.TIMED_OUT: "took too long",
    RunStatus.OUT_OF_MEMORY: "ran out of memory",
}


class Asked(NamedTuple):
    """A question to a task. ``ended`` are runs that count: all of a task with few, else the best, the newest, a sample.

    ``baseline`` is the task's own program as text, empty where it is not here.
    """

    log: Log
    task: FoundTask
    question: str
    ended: Sequence[Trial]
    here: TrustContext
    me: bytes | None
    baseline: str = ""
    now_ms: int = 0

    def bodies(self) -> Iterator[tuple[bytes, Run]]:
        """The newest runs, whole."""
        for trial in sorted(self.ended, key=lambda one: -one.row.time)[:READ]:
            body = self.log.records.get(trial.row.id).body
            assert isinstance(body, Run), "these are runs"
            yield trial.row.id, body


def facts(asked: Asked) -> list[Fact]:
    """What answers a question, in the order of its words; an empty list where none of this is asked."""
    words = asked.question.casefold()
    places = sorted(
        (found.start(), number) for number, (about, _) in enumerate(_TOPICS) if (found := re.search(about, words))
    )
    return [fact for _, number in places for fact in _TOPICS[number][1](asked)]


def _best(asked: Asked) -> Iterator[Fact]:
    answer = best_answer(asked.log, asked.task, author=asked.me)
    status, best = answer.task, answer.task.best
    if best is None:
        yield Fact(sentence="no run has a value yet")
        return
    numbers = leading(best)
    parts = [f"the best value is {value(numbers.value)} {numbers.origin}, of “{one_line(best.title, TEXT)}”"]
    if status.baseline is not None:
        parts.append(f"the baseline has {value(status.baseline)}")
    if status.closed is not None and status.floor is not None:
        parts.append(f"{percent(status.closed)} of the way to the floor {value(status.floor)}")
    yield Fact(sentence="; ".join(parts), ids=[best.id])


def _failures(asked: Asked) -> Iterator[Fact]:
    found = statistics(asked.log, asked.task.digest)
    causes = Counter({one: number for one, number in found.statuses.items() if one not in NOT_FAILED})
    if not causes.total():
        yield Fact(sentence=f"none of {counted(found.runs, 'run')} failed")
        return
    told = ", ".join(f"{number} {_STATUS.get(one, one.replace('_', ' '))}" for one, number in causes.most_common())
    last = next((trial for trial in reversed(asked.ended) if trial.row.status != RunStatus.OK), None)
    sentence = f"{causes.total()} of {counted(found.runs, 'run')} failed: {told}"
    yield Fact(sentence=sentence, ids=[format_id(last.row.id)] if last else [])
    reasons: defaultdict[str, list[bytes]] = defaultdict(list)
    for run, body in asked.bodies():
        if body.status != RunStatus.OK and body.reason:
            reasons[one_line(body.reason.strip().splitlines()[-1], TEXT)].append(run)
    for reason, runs in sorted(reasons.items(), key=lambda one: -len(one[1]))[:NAMED]:
        yield Fact(sentence=f"{counted(len(runs), 'time')}: {reason}", ids=[format_id(run) for run in runs[:NAMED]])


def _noise(asked: Asked) -> Iterator[Fact]:
    learnt, rules = learnt_noise(asked.log, asked.task.digest), asked.log.tasks.rules(asked.task.digest)
    stated = rules.noise if rules else None
    states = f"the task states {value(stated)}" if stated else "the task states none"
    if learnt is None:
        yield Fact(sentence=f"no program was run with two seeds here; {states} as the standard deviation over seeds")
        return
    of = f"{counted(learnt.runs, 'run')} of {counted(learnt.programs, 'program')}"
    yield Fact(sentence=f"runs of one program differ by {value(learnt.deviation)} (standard deviation, {of}); {states}")


def _counts(asked: Asked) -> Iterator[Fact]:
    found = since_answer(asked.log, asked.task, since_ms=1, now_ms=asked.now_ms, me=asked.me)
    programs = asked.log.programs.count(asked.task.digest)
    numbers = ("confirmed", found.confirmed), ("refuted", found.refuted), ("failed", found.failed)
    more = "".join(f", {number} {word}" for word, number in numbers if number)
    who = counted(found.participants, "participant")
    runs = f"{counted(found.runs, 'run')} by {who}{more}"
    yield Fact(sentence=f"{runs}; {counted(programs, 'program')} with a value")


def _people(asked: Asked) -> Iterator[Fact]:
    runners = runners_answer(asked.log, asked.task).runners[:NAMED]
    named = [f"{one_line(one.participant.name, 40) or one.participant.short} {one.runs}" for one in runners]
    yield Fact(sentence=f"participants by their runs: {', '.join(named) or 'none'}")


def _effects(asked: Asked) -> Iterator[Fact]:
    told = 0
    for one in effects_answer(asked.log, asked.task, me=asked.me).effects:
        if one.median is None or told == NAMED:
            continue
        told += 1
        span = f" [{value(one.low)}, {value(one.high)}]" if one.low is not None and one.high is not None else ""
        act = f"{'adding' if one.name.startswith('+') else 'raising'} {one_line(one.name.removeprefix('+'), 64)}"
        pairs = counted(one.pairs, "pair")
        yield Fact(
            sentence=f"{act} was better in {one.better} of {pairs} with the parent: median {one.median:+.4g}{span}"
        )
    if not told:
        yield Fact(sentence="no setting was changed by a run beside its parent yet")


def _untried(asked: Asked) -> Iterator[Fact]:
    """Settings that nobody has changed, and hypotheses that nobody has tried."""
    changed = set(runners_answer(asked.log, asked.task).settings)
    left = [name for name in constants(asked.baseline) if name not in changed]
    if left:
        yield Fact(sentence=f"nobody has changed {', '.join(left[:20])}")
    authors = trusted_authors(asked.here, asked.me)
    notes = asked.log.texts.newest_notes(asked.task.digest, limit=100, authors=authors, topic="hypothesis")
    known = citations(asked.log, asked.task.digest, [note.id for note in notes], asked.here, me=asked.me)
    open_ones = [note for note in notes if known.get(note.id, Citations()).state == HypothesisState.OPEN]
    for note in open_ones[:NAMED]:
        yield Fact(
            sentence=f"a hypothesis that no run cites: {one_line(_text(asked, note.id), TEXT)}",
            ids=[format_id(note.id)],
        )


def _proposers(asked: Asked) -> Iterator[Fact]:
    values = {trial.row.id: trial.value for trial in asked.ended if trial.believed}
    sign, tried = sign_of(asked.task.direction), defaultdict[str, list[bool]](list)
    for run, body in asked.bodies():
        mine, above = values.get(run), values.get(body.parent or b"")
        if mine is not None and above is not None:
            tried[body.proposed_by or "by hand"].append(sign * mine < sign * above)
    parts = [f"{one_line(name, 40)} {sum(better)} of {len(better)}" for name, better in sorted(tried.items())]
    yield Fact(sentence=f"better than their parent, by who proposed them: {', '.join(parts) or 'none'}")


def _cost(asked: Asked) -> Iterator[Fact]:
    lengths = [body.duration_ms for _, body in asked.bodies() if body.status == RunStatus.OK]
    if lengths:
        span = f"{duration(min(lengths))} to {duration(max(lengths))}"
        yield Fact(sentence=f"a run takes {duration(round(median(lengths)))} (median of {len(lengths)}, {span})")


def _lately(asked: Asked) -> Iterator[Fact]:
    days = int(found[1]) if (found := _DAYS.search(asked.question)) else 7 if "week" in asked.question else 1
    since = asked.now_ms - min(days, 3650) * _DAY_MS
    yield Fact(sentence=since_answer(asked.log, asked.task, since_ms=since, now_ms=asked.now_ms, me=asked.me).sentence)


def _text(asked: Asked, note: bytes) -> str:
    body = asked.log.records.get(note).body
    assert isinstance(body, Note), "these are notes"
    return body.text


# Which words of a question ask for what.
_TOPICS: tuple[tuple[str, Callable[[Asked], Iterator[Fact]]], ...] = (
    (r"\b(best|leads?|leader|leading|record|so far|state of the art)\b", _best),
    (r"\b(fail\w*|crash\w*|diverg\w*|errors?|broke|broken|out of memory|oom)\b", _failures),
    (r"\b(noise|noisy|variance|spread|seeds?|luck|significan\w*|reproducib\w*)\b", _noise),
    (r"\b(how many|number of|count)\b", _counts),
    (r"\b(who|whose|participants?|people)\b", _people),
    (r"\b(effects?|helps?|helped|matters?|important|works?|worked|useful|hurts?)\b", _effects),
    (r"\b(next|untried|nobody|not (?:been )?tried|never tried|unexplored|left to try)\b", _untried),
    (
        r"\b(proposers?|llms?|(?:language )?models? (?:against|vs|or|and|beside)|search (?:against|vs|or|and))\b",
        _proposers,
    ),
    (r"\b(how long|duration|seconds?|minutes?|fast|slow|costs?)\b", _cost),
    (r"\b(lately|recent\w*|news?|today|yesterday|last (?:day|week|\d+ days)|this week)\b", _lately),
)
