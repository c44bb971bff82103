"""Sentences that answer what is asked of a task most often, from the numbers of the log, with the records that show it.

Which of them answer a question is told by its words. Pure, over the log.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from statistics import median

from autoresearch.ask.discussion import Fact
from autoresearch.ask.measured_facts import (
    NAMED,
    Question,
    best_and_worst,
    changes_between,
    distance_to_floor,
    gain_of,
    gains_of_named,
    largest_steps,
    last_program,
    levels_beside_each_other,
    runs_since_best,
    two_programs,
)
from autoresearch.ask.next_steps import open_margins, repeating, suggestions
from autoresearch.ask.people.claims import claims_answer
from autoresearch.ask.runs.boards import best_answer
from autoresearch.ask.runs.diffs import effects_answer
from autoresearch.ask.runs.rows import runners_answer
from autoresearch.ask.runs.since import since_answer
from autoresearch.log.standing.answers import leading
from autoresearch.log.standing.context import trusted_authors
from autoresearch.log.standing.credit import Citations, citations
from autoresearch.log.standing.queries import statistics
from autoresearch.log.standing.verdicts import learnt_noise
from autoresearch.propose.program.edits import constants
from autoresearch.propose.program.known_names import meant_by
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import DAY_MS
from autoresearch.text import counted, duration, one_line, percent, sign_of, value
from autoresearch.words import NOT_FAILED, HypothesisState, RunStatus

TEXT = 100
_DAYS = re.compile(r"(\d+) days?\b")
_STATUS: dict[str, str] = {
    RunStatus.DIVERGED: "diverged",
    RunStatus.CRASHED: "stopped with an error",
    RunStatus.TIMED_OUT: "took too long",
    RunStatus.OUT_OF_MEMORY: "ran out of memory",
}


def facts(question: Question) -> list[Fact]:
    """What answers a question, in the order of its words; an empty list where none of this is asked."""
    words = question.text.casefold()
    places = sorted(
        (match.start(), number) for number, (about, _) in enumerate(_TOPICS) if (match := re.search(about, words))
    )
    made = {fact.sentence: fact for _, number in places for fact in _TOPICS[number][1](question)}
    if not made and (kind := meant_by(question.text)) and not question.named_settings:
        return [Fact(sentence=f"no program here has a setting that is known to be its {kind.replace('_', ' ')}")]
    if not made and not question.named_settings and _FOREIGN.search(words):
        return [Fact(sentence="questions are read in English: such as “what should I try next?”, “what failed?”")]
    return list(made.values())


def _best(question: Question) -> Iterator[Fact]:
    answer = best_answer(question.log, question.task, author=question.me)
    status, best = answer.task, answer.task.best
    if best is None:
        yield Fact(sentence="no run has a value yet")
        return
    numbers = leading(best)
    parts = [f"the best value is {value(numbers.value)} {numbers.origin}, of “{one_line(best.title, TEXT)}”"]
    programs = question.programs
    program = next((each for each in programs.ranked if format_id(each.id) == best.id), None)
    if program is not None:
        since = sum(trial.row.time > program.time_ms for trial in question.ended)
        parts.append(f"{counted(program.runs, 'seed')}, {counted(since, 'run')} ago")
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
    named, programs = question.named_settings, question.programs
    effects = effects_answer(question.log, question.task, me=question.me).effects
    rows = [each for each in effects if each.median is not None and (not named or each.name in named)]
    for effect in rows[:NAMED]:
        low, high = effect.low, effect.high
        span = f" [{value(low)}, {value(high)}]" if low is not None and high is not None else ""
        act = f"{'adding' if effect.name.startswith('+') else 'raising'} {one_line(effect.name.removeprefix('+'), 64)}"
        better = f"{effect.better} of {counted(effect.pairs, 'pair')}"
        yield Fact(sentence=f"{act} was better in {better} with the parent: median {effect.median:+.4g}{span}")
    for name in named[:NAMED]:
        yield from levels_beside_each_other(question, programs, name)
    if rows:
        return
    if named:
        yield Fact(sentence=f"no run changed {', '.join(named[:NAMED])} beside its parent")
    elif programs_named := question.named_programs(programs):
        yield from (fact for program in programs_named[:NAMED] for fact in gain_of(program, programs))
    else:
        yield Fact(sentence="no setting was changed by a run beside its parent yet")


def _worthless(question: Question) -> Iterator[Fact]:
    """The settings that never helped when they were raised."""
    effects = effects_answer(question.log, question.task, me=question.me).effects
    for effect in [each for each in effects if each.median is not None and not each.better][:NAMED]:
        name = one_line(effect.name, 64)
        yield Fact(sentence=f"raising {name} was better in 0 of {counted(effect.pairs, 'pair')} with the parent")


def _trying(question: Question) -> Iterator[Fact]:
    open_ones = claims_answer(question.log, question.task, now_ms=question.now_ms, me=question.me).claims[:NAMED]
    for claim in open_ones:
        yield Fact(
            sentence=f"being tried now: {one_line(claim.title, TEXT) or 'a change without a title'}", ids=[claim.id]
        )
    if not open_ones:
        yield Fact(sentence="nothing is being tried now: no claim is open")


def _learned(question: Question) -> Iterator[Fact]:
    """What participants say that they learned, and which changes brought the most."""
    authors = trusted_authors(question.trust, question.me)
    notes = question.log.texts.newest_notes(question.task.digest, limit=NAMED, authors=authors, topic="insight")
    for note in notes:
        body = question.log.records.get(note.id).body_as(Note)
        yield Fact(sentence=f"an insight: {one_line(body.text, 2 * TEXT)}", ids=[format_id(note.id)])
    yield from largest_steps(question)


def _alike(question: Question) -> Iterator[Fact]:
    yield from open_margins(question.programs)


def _enough(question: Question) -> Iterator[Fact]:
    """What speaks for going on, and what for an end."""
    yield from runs_since_best(question)
    yield from open_margins(question.programs)


def _changed_settings(question: Question) -> Iterator[Fact]:
    """Which settings runs have changed."""
    names = [one_line(name, 64) for name in runners_answer(question.log, question.task).settings]
    yield Fact(sentence=f"runs have changed {counted(len(names), 'setting')}: {', '.join(names[:20]) or 'none'}")


def _direction(question: Question) -> Iterator[Fact]:
    """Whether more or less of a setting is better, where one is named."""
    if question.named_settings:
        yield from _effects(question)


def _next(question: Question) -> Iterator[Fact]:
    programs = question.programs
    if question.blobs is not None:
        yield from suggestions(
            question.log,
            question.blobs,
            question.task,
            programs,
            question.ended,
            question.baseline,
            now_ms=question.now_ms,
            me=question.me,
        )
    yield from open_margins(programs)
    yield from repeating(programs)
    yield from _untried(question)


def _repeat(question: Question) -> Iterator[Fact]:
    programs = question.programs
    yield from repeating(programs)
    yield from open_margins(programs)


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


# Which words of a question ask for what; some of German too.
_TOPICS: tuple[tuple[str, Callable[[Question], Iterator[Fact]]], ...] = (
    (r"\b(best|leads?|leader|leading|record|so far|state of the art|beste[rsnm]?)\b", _best),
    (
        r"\b(fail\w*|crash\w*|diverg\w*|errors?|broke|broken|out of memory|oom|over budget|"
        r"timed out|fehl\w*|gescheitert|abgest\w*)\b",
        _failures,
    ),
    (
        r"\b(noise|noisy|variance|spread|seeds?|luck|significan\w*|reproducib\w*|rauschen|streuung|zufall)\b",
        _noise,
    ),
    (r"\b(how many|number of|count|wie ?viele?)\b", _counts),
    (
        r"\b(?:settings|(?:hyper)?parameters|knobs)\b.*\b(?:varied|changed|turned|there|touched|tuned)\b"
        r"|\bhow many (?:settings|(?:hyper)?parameters)\b",
        _changed_settings,
    ),
    (r"\b(who|whose|participants?|people|wer)\b", _people),
    (
        r"\b(effects?|helps?|helped|matters?|important|(?<!who )works?|worked|useful|hurts?|hilft|wichtig\w*)\b",
        _effects,
    ),
    (
        r"\b(?:is|are|would|should|does|do|why)\b.*\b(?:better|worse|bad|good|worth|wider|narrower|deeper|larger|smaller|bigger|higher|lower|"
        r"faster|slower|longer|shorter|more|less|raise|increase|decrease|reduce)\b",
        _direction,
    ),
    (
        r"\b(next|untried|nobody|not (?:been )?tried|never tried|unexplored|untested|remains?|left to try)\b"
        r"|\b(?:als nächste\w*|versuchen)\b"
        r"|\bhow\b.*\b(?:beat|improve|get better|do better)\b|\bwhat now\b|\breach\b|\bgo (?:below|above|under|over)\b",
        _next,
    ),
    (r"\b(repeat\w*|replicat\w*|measured? again|re-?run|wiederhol\w*)\b", _repeat),
    (
        r"\b(really|significan\w*|better than|worse than|versus|vs|compared?|real|beats?(?! the best)|apart|"
        r"besser als|wirklich|luck|gap|difference|within (?:the )?noise|trust\w*|sure|certain|confident|reliable|"
        r"robust|lucky|tell\b.*\bfrom)\b",
        two_programs,
    ),
    (r"\b(worst|poorest|top \d+|rank\w*|leaderboard|second[ -]best|runner-up|schlechtest\w*)\b", best_and_worst),
    (
        r"\b(?:most|biggest|largest|greatest|best)\b.{0,30}\b(?:change|step|idea|gain|jump|improvement)\b"
        r"|\bimprovements?\b|\b(?:change|step|idea|edit)s?\b.{0,30}\b(?:most|biggest|largest|paid off)\b",
        largest_steps,
    ),
    (r"\b(plateau\w*|stuck|stagnat\w*|improving|progress|converged?|since the best)\b", runs_since_best),
    (r"\b(?:last|latest|newest|letzte[rns]?) (?:run|change|idea|program|try|lauf)\b", last_program),
    (r"\b(chang\w*|differ\w*|diff|geändert)\b", changes_between),
    (r"\b(as good as|tied|tie|indistinguishable|equally)\b", _alike),
    (r"\b(stop|enough|finished|aufhören)\b", _enough),
    (r"\b(drop|abandon|give up|avoid|useless|waste\w*|dead ends?|hurts?|harm\w*|schadet)\b", _worthless),
    (r"\b(trying|being tried|right now|at the moment|currently|in progress|gerade)\b", _trying),
    (r"\b(learn(?:ed|t|s)?|summar\w*|insights?|conclusions?|conclude|takeaways?|gelernt)\b", _learned),
    (r"\b(bring|brings|brought|gain\w*|gave|give|gives|gebracht|bringt)\b", gains_of_named),
    (r"\b(floor|bound|optimum|optimal|perfect|headroom|untergrenze)\b", distance_to_floor),
    (
        r"\b(proposers?|llms?|(?:language )?models? (?:against|vs|or|and|beside)|search (?:against|vs|or|and)|"
        r"(?:search|agent|command)\b.*\b(?:good|worth|useful|help\w*))\b",
        _proposers,
    ),
    (r"\b(how long|duration|seconds?|minutes?|fast|slow|costs?|wie lange|dauert)\b", _cost),
    (r"\b(lately|recent\w*|news?|today|yesterday|last (?:day|week|\d+ days)|this week)\b", _lately),
)
# Words that English has not, and other languages often.
_FOREIGN = re.compile(
    r"[^\x00-\x7f‘’“”–—…]|\b(?:der|das|und|ist|nicht|welche[rs]?|wurden?|wie|kann|ich|wir|le|les|des|est|que|quel\w*|"
    r"combien|el|los|las|cu[aá]l\w*|c[oó]mo|qu[eé]|il|che|quale|quanti)\b"
)
