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
from autoresearch.record.record import DAY_MS
from autoresearch.text import counted, duration, one_line, percent, sign_of, value
from autoresearch.words import NOT_FAILED, HypothesisState, RunStatus

# So many runs are read whole for what stands in records alone, the newest.
READ, NAMED, TEXT = 300, 5, 100
_DAYS = re.compile(r"(\d+) days?\b")
_STATUS: dict[str, str] = {
    RunStatus.DIVERGED: "diverged",
    RunStatus.CRASHED: "stopped with an error",
    RunStatus.TIMED_OUT: "took too long",
    RunStatus.OUT_OF_MEMORY: "ran out of memory",
}


class Question(NamedTuple):
    """A question to a task. ``ended`` are runs that count: all of a task with few, else the best, the newest, a sample.

    ``baseline`` is the task's own program as text, empty where it is not here.
    """

    log: Log
    task: FoundTask
    text: str
    ended: Sequence[Trial]
    trust: TrustContext
    me: bytes | None
    baseline: str = ""
    now_ms: int = 0

    def bodies(self) -> Iterator[tuple[bytes, Run]]:
        """The newest runs, whole."""
        for trial in sorted(self.ended, key=lambda trial: -trial.row.time)[:READ]:
            body = self.log.records.get(trial.row.id).body_as(Run)
            yield trial.row.id, body


def facts(question: Question) -> list[Fact]:
    """What answers a question, in the order of its words; an empty list where none of this is asked."""
    words = question.text.casefold()
    places = sorted(
        (match.start(), number) for number, (about, _) in enumerate(_TOPICS) if (match := re.search(about, words))
    )
    return [fact for _, number in places for fact in _TOPICS[number][1](question)]


def _best(question: Question) -> Iterator[Fact]:
    answer = best_answer(question.log, question.task, author=question.me)
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


def _failures(question: Question) -> Iterator[Fact]:
    task_runs = statistics(question.log, question.task.digest)
    causes = Counter({status: number for status, number in task_runs.statuses.items() if status not in NOT_FAILED})
    if not causes.total():
        yield Fact(sentence=f"none of {counted(task_runs.runs, 'run')} failed")
        return
    parts = (f"{number} {_STATUS.get(status, status.replace('_', ' '))}" for status, number in causes.most_common())
    last = next((trial for trial in reversed(question.ended) if trial.row.status != RunStatus.OK), None)
    sentence = f"{causes.total()} of {counted(task_runs.runs, 'run')} failed: {', '.join(parts)}"
    yield Fact(sentence=sentence, ids=[format_id(last.row.id)] if last else [])
    reasons: defaultdict[str, list[bytes]] = defaultdict(list)
    for run, body in question.bodies():
        if body.status != RunStatus.OK and body.reason:
            reasons[one_line(body.reason.strip().splitlines()[-1], TEXT)].append(run)
    for reason, runs in sorted(reasons.items(), key=lambda reason: -len(reason[1]))[:NAMED]:
        yield Fact(sentence=f"{counted(len(runs), 'time')}: {reason}", ids=[format_id(run) for run in runs[:NAMED]])


def _noise(question: Question) -> Iterator[Fact]:
    learnt, rules = learnt_noise(question.log, question.task.digest), question.log.tasks.rules(question.task.digest)
    stated = rules.noise if rules else None
    states = f"the task states {value(stated)}" if stated else "the task states none"
    if learnt is None:
        yield Fact(sentence=f"no program was run with two seeds here; {states} as the standard deviation over seeds")
        return
    of = f"{counted(learnt.runs, 'run')} of {counted(learnt.programs, 'program')}"
    yield Fact(sentence=f"runs of one program differ by {value(learnt.deviation)} (standard deviation, {of}); {states}")


def _counts(question: Question) -> Iterator[Fact]:
    since = since_answer(question.log, question.task, since_ms=1, now_ms=question.now_ms, me=question.me)
    programs = question.log.programs.count(question.task.digest)
    numbers = ("confirmed", since.confirmed), ("refuted", since.refuted), ("failed", since.failed)
    more = "".join(f", {number} {word}" for word, number in numbers if number)
    who = counted(since.participants, "participant")
    runs = f"{counted(since.runs, 'run')} by {who}{more}"
    yield Fact(sentence=f"{runs}; {counted(programs, 'program')} with a value")


def _people(question: Question) -> Iterator[Fact]:
    runners = runners_answer(question.log, question.task).runners[:NAMED]
    named = [f"{one_line(runner.participant.name, 40) or runner.participant.short} {runner.runs}" for runner in runners]
    yield Fact(sentence=f"participants by their runs: {', '.join(named) or 'none'}")


def _effects(question: Question) -> Iterator[Fact]:
    count = 0
    for effect in effects_answer(question.log, question.task, me=question.me).effects:
        if effect.median is None or count == NAMED:
            continue
        count += 1
        low, high = effect.low, effect.high
        span = f" [{value(low)}, {value(high)}]" if low is not None and high is not None else ""
        act = f"{'adding' if effect.name.startswith('+') else 'raising'} {one_line(effect.name.removeprefix('+'), 64)}"
        better = f"{effect.better} of {counted(effect.pairs, 'pair')}"
        yield Fact(sentence=f"{act} was better in {better} with the parent: median {effect.median:+.4g}{span}")
    if not count:
        yield Fact(sentence="no setting was changed by a run beside its parent yet")


def _untried(question: Question) -> Iterator[Fact]:
    """Settings that nobody has changed, and hypotheses that nobody has tried."""
    changed = set(runners_answer(question.log, question.task).settings)
    left = [name for name in constants(question.baseline) if name not in changed]
    if left:
        yield Fact(sentence=f"nobody has changed {', '.join(left[:20])}")
    authors = trusted_authors(question.trust, question.me)
    notes = question.log.texts.newest_notes(question.task.digest, limit=100, authors=authors, topic="hypothesis")
    cited = citations(question.log, question.task.digest, [note.id for note in notes], question.trust, me=question.me)
    open_ones = [note for note in notes if cited.get(note.id, Citations()).state == HypothesisState.OPEN]
    for note in open_ones[:NAMED]:
        body = question.log.records.get(note.id).body_as(Note)
        yield Fact(
            sentence=f"a hypothesis that no run cites: {one_line(body.text, TEXT)}",
            ids=[format_id(note.id)],
        )


def _proposers(question: Question) -> Iterator[Fact]:
    values = {trial.row.id: trial.value for trial in question.ended if trial.believed}
    sign, tried = sign_of(question.task.direction), defaultdict[str, list[bool]](list)
    for run, body in question.bodies():
        mine, above = values.get(run), values.get(body.parent or b"")
        if mine is not None and above is not None:
            tried[body.proposed_by or "by hand"].append(sign * mine < sign * above)
    parts = [f"{one_line(name, 40)} {sum(better)} of {len(better)}" for name, better in sorted(tried.items())]
    yield Fact(sentence=f"better than their parent, by who proposed them: {', '.join(parts) or 'none'}")


def _cost(question: Question) -> Iterator[Fact]:
    lengths = [body.duration_ms for _, body in question.bodies() if body.status == RunStatus.OK]
    if lengths:
        span = f"{duration(min(lengths))} to {duration(max(lengths))}"
        yield Fact(sentence=f"a run takes {duration(round(median(lengths)))} (median of {len(lengths)}, {span})")


def _lately(question: Question) -> Iterator[Fact]:
    days = int(match[1]) if (match := _DAYS.search(question.text)) else 7 if "week" in question.text else 1
    since = question.now_ms - min(days, 3650) * DAY_MS
    yield Fact(
        sentence=since_answer(
            question.log, question.task, since_ms=since, now_ms=question.now_ms, me=question.me
        ).sentence
    )


# Which words of a question ask for what.
_TOPICS: tuple[tuple[str, Callable[[Question], Iterator[Fact]]], ...] = (
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
