"""The lists of runs: tables and boards, lineage, verifications, tasks, effects of settings, records. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from autoresearch.ask.node import TaskStatus
from autoresearch.ask.people.participants import AwaitedView, VerifiedView
from autoresearch.ask.records import Measured, RecordView
from autoresearch.ask.runs.answers import BoardLine, EffectView, GroupsAnswer, GroupView, RunRow, SizeView
from autoresearch.face.columns.column import (
    CHANGE,
    COMPUTE_MS,
    COUNT,
    DIGEST,
    PERSON,
    RECORD,
    RUN,
    SHARE,
    STATE,
    TIME,
    VALUE,
    WORDS,
    Column,
    Columns,
    Face,
    Row,
    person,
    reproach,
)
from autoresearch.judging.places import BoardPlace
from autoresearch.log.standing.answers import LineageStep, ProgramView, RunNumbers, RunView, leading, leading_gain
from autoresearch.record.kinds import RunOutcome
from autoresearch.text import brief, change_interval, counted, duration, failures, figure, interval, signed, size, value
from autoresearch.words import BUDGET_UNITS, COPY, DISCREDITED, RETEST, STAGE_NAMES, BoardSection, Origin, RunMark

# What the search makes has no words of a person: its headline says more than its title.
SEARCH = "search"
# Before a change that the noise over seeds could be.
ABOUT = "≈"
# Before a value that does not count: refuted, fraud, banned.
DOUBT = "×"
STARRED = "starred"
PROGRAMS, PEOPLE = Face.PIPE, Face.PEOPLE


def run_title(run: ProgramView | RunView) -> str:
    """The headline of a run of the search; of a person's or a model's run its own title."""
    if isinstance(run, ProgramView):
        title, headline, proposer = run.title, run.headline, run.proposer
    else:
        title, headline, proposer = run.run.title, run.standing.headline, run.run.proposed_by
    return headline if proposer == SEARCH and headline else title


def used_words(run: RunOutcome) -> list[str]:
    """What a run used, for people: its time, its processor time, its memory."""
    return [duration(run.duration_ms), f"{duration(run.cpu_ms)} of processor", size(run.peak_memory_bytes)]


def leading_words(numbers: RunNumbers) -> str:
    """The value of a run and whose it is: ``1.0234 ± 0.0020 verified``; a dash where it has none."""
    number, margin, origin = leading(numbers)
    return f"{interval(number, margin, numbers.decimals)} {origin}" if number is not None else value(None)


def gain_words(numbers: RunNumbers) -> str:
    """The gain of a run and whose it is: ``-0.0120 ± 0.0031 verified``; empty where it has none."""
    gain, margin, origin = leading_gain(numbers)
    return f"{change_interval(gain, margin, numbers.decimals)} {origin}" if gain is not None else ""


# What agents are compared with in their environment.
COMPARED = {"random": "random actions earn", "solved": "solved is"}


def line_words(lines: Sequence[BoardLine]) -> str:
    """What agents of a board are compared with, and who measured it; empty for nothing."""
    parts = [f"{COMPARED.get(line.name, line.name)} {interval(line.value, line.margin)}" for line in lines]
    verifiers = max((line.verifiers for line in lines), default=0)
    by = f"measured by {counted(verifiers, 'verifier')}" if verifiers else "measured by this node"
    return f"{', '.join(parts)}; {by}" if parts else ""


def verified_words(numbers: RunNumbers) -> str:
    """What the number of the verifiers is: ``median of 3 runs of verifiers``, ``the worse of 2 runs of verifiers``."""
    runs = f"{counted(numbers.verified_runs, 'run')} of verifiers"
    if numbers.verified_is_worse:
        return f"the worse of {runs}" if numbers.verified_runs == 2 else f"the worse of the middle 2 of {runs}"
    return f"mean of {runs}" if numbers.verified_runs == 2 else f"median of {runs}"


def number_words(numbers: RunNumbers) -> list[tuple[str, str]]:
    """Each number of a run after its word, for people: ``verified``, ``reported``, ``gain``."""
    mean = f", mean of {numbers.reported_runs} runs" if numbers.reported_runs > 1 else ""
    decimals = numbers.decimals
    rows = (
        (
            Origin.VERIFIED,
            numbers.verified,
            f"{interval(numbers.verified, numbers.verified_margin, decimals)}, {verified_words(numbers)}",
        ),
        (Origin.REPORTED, numbers.reported, f"{value(numbers.reported, decimals)}{mean}"),
        ("gain", numbers.gain, f"{change_interval(numbers.gain, numbers.gain_margin, decimals)} verified, in pairs"),
        ("gain reported", numbers.gain_reported, signed(numbers.gain_reported, decimals)),
    )
    return [(word, text) for word, number, text in rows if number is not None]


def number_columns(
    numbers: Callable[[Row], RunNumbers],
    *,
    in_doubt: Callable[[Row], bool] = lambda _: False,
    within_noise: Callable[[Row], bool] = lambda _: False,
    better: Callable[[Row], bool] = lambda _: False,
) -> Columns[Row]:
    """The numbers of runs, each below its word. ``in_doubt`` and ``within_noise`` get signs before the number."""

    def gained(row: Row) -> str:
        return "good" if better(row) and not within_noise(row) and not in_doubt(row) else ""

    def reported(row: Row, _: int) -> str:
        of = numbers(row)
        sign = f"{DOUBT} " if in_doubt(row) else ""
        return "" if of.reported is None else f"{sign}{value(of.reported, of.decimals)}"

    def verified(row: Row, _: int) -> str:
        of = numbers(row)
        return "" if of.verified is None else interval(of.verified, of.verified_margin, of.decimals)

    def gain(row: Row, _: int) -> str:
        of = numbers(row)
        return "" if of.gain is None else about(row, change_interval(of.gain, of.gain_margin, of.decimals))

    def gain_reported(row: Row, _: int) -> str:
        of = numbers(row)
        change = signed(of.gain_reported, of.decimals)
        return about(row, change) if of.gain is None else change

    def about(row: Row, text: str) -> str:
        return f"{ABOUT} {text}" if text and within_noise(row) else text

    return (
        Column(
            "reported",
            lambda row: numbers(row).reported,
            VALUE,
            display=reported,
            help="by the run's author",
            look=lambda row: "bad" if in_doubt(row) else "",
        ),
        Column(
            "verified",
            lambda row: numbers(row).verified,
            VALUE,
            display=verified,
            help="measured by verifiers, 95 %",
            look=lambda row: "" if in_doubt(row) else "good",
        ),
        Column("verified margin", lambda row: numbers(row).verified_margin, VALUE, faces=PROGRAMS),
        Column(
            "gain",
            lambda row: numbers(row).gain,
            CHANGE,
            display=gain,
            look=gained,
            help="against the parent, in verifiers' pairs",
        ),
        Column("gain margin", lambda row: numbers(row).gain_margin, VALUE, faces=PROGRAMS),
        Column(
            "gain reported",
            lambda row: numbers(row).gain_reported,
            CHANGE,
            display=gain_reported,
            look=lambda row: gained(row) if numbers(row).gain is None else "",
            optional=4,
            help="the reported value minus that of the parent",
        ),
    )


def budget_words(amount: float, unit: str) -> str:
    """A budget in its unit, ``work``, ``seconds`` or ``episodes``: ``4e+12 work units``, ``5 min``, ``2 s``."""
    if unit == "seconds":
        return duration(amount * 1000) if amount >= 60 else f"{brief(amount, 6)} s"
    return f"{brief(amount, 6)} {BUDGET_UNITS[unit]}" if unit in BUDGET_UNITS else brief(amount, 6)


def _retest(row: RunRow | ProgramView | LineageStep) -> str:
    return RETEST if row.retest else ""


def _row_state(row: RunRow, _: int) -> str:
    return ", ".join(
        filter(None, (row.status.replace("_", " ") if row.mark == RunMark.FAILED else row.state, _retest(row)))
    )


def _of_row(row: RunRow) -> RunNumbers:
    return row


RUN_COLUMNS: Columns[RunRow] = (
    Column("number", lambda row: row.number, COUNT, heading="#", optional=1),
    Column("run", lambda row: row.id, RUN),
    Column("mark", lambda row: row.mark, faces=PROGRAMS),
    Column("state", lambda row: row.state, STATE, display=_row_state, late=1),
    Column("status", lambda row: row.status, faces=PROGRAMS),
    *number_columns(
        _of_row,
        in_doubt=lambda row: row.in_doubt,
        within_noise=lambda row: row.within_noise,
        better=lambda row: bool(row.better),
    ),
    Column("when", lambda row: row.time_ms, TIME, late=2, optional=3),
    Column("compute", lambda row: row.cpu_ms, COMPUTE_MS, late=2, optional=2),
    Column("by", lambda row: row.participant, PERSON, late=1, varies=True),
    Column("name", lambda row: row.participant.name, faces=PROGRAMS),
    Column("hardware", lambda row: row.device, faces=PROGRAMS),
    Column("parent", lambda row: row.parent, faces=PROGRAMS),
    Column("change", lambda row: row.headline, WORDS, late=3, is_change=True),
    Column("changes", lambda row: " ".join(change.text for change in row.change), faces=PROGRAMS),
    Column("because", lambda row: row.because, faces=PROGRAMS),
    Column("re-test", _retest, faces=PROGRAMS),
)

USUAL_COLUMNS = tuple(column.name for column in RUN_COLUMNS if Face.PAGE in column.faces)


def chosen_columns(names: Sequence[str], face: Face) -> Columns[RunRow]:
    """The columns of runs that somebody chose by their names; without names those that a face has."""
    if not names:
        return tuple(column for column in RUN_COLUMNS if face in column.faces)
    return tuple(
        replace(column, faces=Face.ALL, varies=False, optional=0)
        for column in RUN_COLUMNS
        if column.name in names or column.name == "run"
    )


# Runs of several tasks: which task stands in place of the number among its runs.
EVERY_TASK_COLUMNS: Columns[RunRow] = (RUN_COLUMNS[1], Column("task", lambda row: row.task), *RUN_COLUMNS[2:])


def _is_confirmed(program: ProgramView) -> bool:
    """Whether a program is ranked by what verifiers measured."""
    return program.section == BoardSection.CONFIRMED


def doubts(program: ProgramView) -> list[str]:
    """What runs before it say of a program: that it is a copy, that it has to be compared again."""
    return [COPY] * bool(program.copy_of) + [RETEST] * program.retest


def _place(program: ProgramView, _: int) -> str:
    return str(BoardPlace(program.position, program.last_position)) if program.position else ""


def _program_state(program: ProgramView, _: int) -> str:
    if _is_confirmed(program):
        return ""
    return f"{program.state} ({program.verifiers})" if program.verifiers else program.state


def _of_program(program: ProgramView) -> RunNumbers:
    return program


def program_columns(now_ms: int, *, sections: bool) -> Columns[ProgramView]:
    """The programs of a leaderboard, of which each section may be a table. ``sections``: the board has any."""
    return (
        Column("place", lambda row: row.position, COUNT, display=_place, heading="#"),
        Column("run", lambda row: row.id, RUN),
        *number_columns(_of_program, in_doubt=lambda row: row.state in DISCREDITED),
        Column(
            "score",
            lambda row: row.score,
            VALUE,
            display=lambda row, _: "" if row.section else value(row.score, row.decimals),
            optional=1,
            faces=Face.PIPE | Face.TERMINAL,
        ),
        Column(
            "runs",
            lambda row: row.reported_runs,
            COUNT,
            faces=Face.PIPE | Face.TERMINAL,
            late=1,
            optional=4,
            help="whose mean is reported",
        ),
        Column(
            "verified runs", lambda row: row.verified_runs, COUNT, faces=Face.PIPE | Face.TERMINAL, late=1, optional=4
        ),
        Column("state", lambda row: row.state, STATE, display=_program_state, late=1),
        Column("device", lambda row: row.author, faces=PROGRAMS),
        Column("when", lambda row: row.time_ms, TIME, late=2, optional=2),
        Column(
            "change",
            run_title,
            WORDS,
            display=lambda row, _: ": ".join(filter(None, (", ".join(doubts(row)), run_title(row)))),
            late=3,
            is_change=True,
        ),
        Column(
            "interval",
            lambda row: interval(row.verified, row.verified_margin, row.decimals) if _is_confirmed(row) else "",
            heading="95 % interval",
            faces=Face.PAGE,
        ),
        Column(
            "verifiers",
            lambda row: row.verifiers,
            COUNT,
            display=lambda row, _: str(row.verifiers or "") if _is_confirmed(row) else "",
            late=1,
            optional=3,
        ),
        Column("section", lambda row: row.section, faces=PROGRAMS),
        Column("re-test", _retest, faces=PROGRAMS),
        Column("by", lambda row: row.participant, PERSON, late=2, varies=not sections),
        Column("name", lambda row: row.participant.name, faces=PROGRAMS),
        Column(
            "marks",
            lambda row: reproach(row.marks or (), row.banned_until_ms, now_ms),
            faces=Face.PIPE | Face.TERMINAL,
            late=2,
        ),
        Column("copy of", lambda row: row.copy_of, faces=PROGRAMS),
        Column("last place", lambda row: row.last_position, faces=PROGRAMS),
    )


LINEAGE_COLUMNS: Columns[LineageStep] = (
    Column("run", lambda step: step.run.id, RUN),
    *number_columns(lambda step: step.run.standing),
    Column("status", lambda step: step.run.run.status, faces=PROGRAMS),
    Column(
        "change",
        lambda step: run_title(step.run),
        WORDS,
        display=lambda step, _: ": ".join(filter(None, (_retest(step), run_title(step.run)))),
        late=2,
    ),
    Column("state", lambda step: step.run.standing.state, STATE, late=1),
    Column("re-test", _retest, faces=PROGRAMS),
    Column("verified runs", lambda step: step.run.standing.verified_runs, COUNT, optional=1),
    Column("verifiers", lambda step: step.run.standing.verifiers, COUNT),
    Column("by", lambda step: step.run.participant, PERSON, late=1, varies=True),
    Column("name", lambda step: step.run.participant.name, faces=PROGRAMS),
)


def attacked_words(task: TaskStatus) -> str:
    """What attested participants found when they attacked a task, or how to try."""
    return task.attacked.removeprefix("attacked: ") or f"not yet: autoresearch task attack {task.digest[:12]} --publish"


TASK_COLUMNS: Columns[TaskStatus] = (
    Column("task", lambda task: task.name),
    Column("digest", lambda task: task.digest, DIGEST),
    Column("metric", lambda task: task.metric),
    Column("direction", lambda task: task.direction),
    Column("runs", lambda task: task.runs, COUNT, late=1),
    Column(
        "best",
        lambda task: leading(task.best).value if task.best else None,
        VALUE,
        display=lambda task, _: leading_words(task.best) if task.best else "",
    ),
    Column("best is", lambda task: leading(task.best).origin if task.best else "", faces=PROGRAMS),
    Column("archived", lambda task: "archived" if task.archived else "", late=2),
    Column("state", lambda task: task.best.state if task.best else "", STATE, faces=PEOPLE),
    Column("baseline", lambda task: task.baseline, VALUE, faces=PEOPLE, optional=1),
    Column(
        "of the way", lambda task: task.closed, SHARE, faces=PEOPLE, optional=2, help="from the baseline to the floor"
    ),
    Column("failed", lambda task: task.failed, COUNT, faces=PEOPLE, late=1, optional=3),
)


def group_columns(answer: GroupsAnswer) -> Columns[GroupView]:
    """Groups of runs by settings: how many, how many failed, the best value, the median and the middle half."""
    best = answer.task.best
    written = partial(value, decimals=best.decimals if best else None)

    def setting(at: int, name: str) -> Column[GroupView]:
        return Column(f"setting {at + 1}" if at else "setting", lambda row: row.settings[at], heading=name)

    return (
        *(setting(at, name) for at, name in enumerate(answer.setting)),
        Column("runs", lambda row: row.runs, COUNT),
        Column("failed", lambda row: row.failed, COUNT),
        Column("best", lambda row: row.best, VALUE, display=lambda row, _: written(row.best)),
        Column("median", lambda row: row.median, VALUE, display=lambda row, _: written(row.median)),
        Column(
            "low",
            lambda row: figure(row.low),
            display=lambda row, _: "" if row.low is None else f"{written(row.low)} .. {written(row.high)}",
            heading="middle half",
        ),
        Column("high", lambda row: row.high, VALUE, faces=PROGRAMS),
        Column("best run", lambda row: row.best_run, RUN, late=1),
        Column("where", lambda row: row.where, faces=PROGRAMS),
    )


def effect_columns(metric: str) -> Columns[EffectView]:
    """What settings did to a metric: the median change of pairs, its 95 % interval, how many helped and failed."""
    return (
        Column("setting", lambda row: row.name),
        Column("pairs", lambda row: row.pairs, COUNT, heading="of pairs", late=2),
        Column(
            "better",
            lambda row: row.better,
            display=lambda row, _: str(row.better),
            heading="helped",
            format=COUNT,
            late=1,
        ),
        Column(
            "median",
            lambda row: row.median,
            CHANGE,
            display=lambda row, _: "no effect seen" if row.low == row.median == row.high == 0 else signed(row.median),
            heading=f"median {metric}",
        ),
        Column(
            "low",
            lambda row: figure(row.low),
            display=lambda row, _: f"{signed(row.low)} .. {signed(row.high)}" if row.low or row.high else "",
            heading="95 % interval",
        ),
        Column("high", lambda row: row.high, VALUE, faces=PROGRAMS),
        Column(
            "failed",
            lambda row: failures(row.raised, row.raised_failed, row.lowered, row.lowered_failed, row.failed_as),
            heading="failures",
            late=2,
        ),
    )


RECORD_COLUMNS: Columns[RecordView] = (
    Column("id", lambda row: row.id, RECORD),
    Column("kind", lambda row: row.kind),
    Column("device", lambda row: row.author, faces=PROGRAMS),
    Column("number", lambda row: row.seq, faces=PROGRAMS),
    Column("when", lambda row: row.time_ms, TIME),
    Column("what", lambda row: row.summary, WORDS, late=1),
    Column("state", lambda row: row.state, STATE),
    Column("by", lambda row: row.participant, PERSON, varies=True),
    Column("name", lambda row: row.participant.name, faces=PROGRAMS),
    Column("starred", lambda row: STARRED if row.starred else ""),
)


def _stage(row: AwaitedView | VerifiedView, _: int) -> str:
    """What verifiers measure, and in which round."""
    name = STAGE_NAMES.get(row.stage, row.stage)
    return f"{name}, round {row.round + 1}" if row.round else name


def _verifiers(row: AwaitedView, _: int) -> str:
    of = f" of {row.needed}" if row.measured < row.needed else ""
    committed = f", {row.committed} committed" if row.committed else ""
    return f"{row.measured}{of}{committed}"


AWAITED_COLUMNS: Columns[AwaitedView] = (
    Column("run", lambda row: row.run, RUN),
    Column("reported", lambda row: row.value, VALUE),
    Column("state", lambda row: row.state, STATE),
    Column("stage", lambda row: row.stage, display=_stage),
    Column("round", lambda row: row.round, faces=PROGRAMS),
    Column(
        "verifiers",
        lambda row: row.measured,
        display=_verifiers,
        help="verifiers that revealed a value, and that measured it, of those that it takes",
    ),
    Column("committed", lambda row: row.committed, faces=PROGRAMS),
    Column("needed", lambda row: row.needed, faces=PROGRAMS),
    Column("this node", lambda row: row.part, display=lambda row, _: row.part.replace("_", " ")),
    Column("when", lambda row: row.time_ms, TIME, optional=1),
    Column("by", lambda row: row.participant, PERSON, optional=2),
    Column("name", lambda row: row.participant.name, faces=PROGRAMS),
    Column("title", lambda row: row.title, WORDS, is_change=True),
)


def _verdict(row: VerifiedView, _: int) -> str:
    words = {False: "another value", True: "the same value"}
    verdict = "measured beside its parent" if row.verdict == "pass" else row.verdict
    return words.get(row.agrees, verdict) + ("" if row.counts else ", does not count")  # type: ignore[arg-type]


VERIFIED_COLUMNS: Columns[VerifiedView] = (
    Column("run", lambda row: row.run, RUN),
    Column("state", lambda row: row.state, STATE, heading="state now"),
    Column("stage", lambda row: row.stage, display=_stage),
    Column("verdict", lambda row: row.verdict, display=_verdict),
    Column("value", lambda row: row.value, VALUE),
    Column("verifier", lambda row: row.verifier, PERSON),
    Column("hardware", lambda row: row.device, optional=1),
    Column("when", lambda row: row.time_ms, TIME, optional=2),
    Column("title", lambda row: row.title, WORDS, is_change=True),
)


def pairs(measured: Measured) -> str:
    """The pairs of a replication: the parent's value, then the run's; behind them what the task's baseline came to."""
    both = zip(measured.parent_values, measured.values, strict=False)
    text = ", ".join(f"{value(before)} → {value(after)}" for before, after in both)
    beside = ", ".join(map(value, measured.baseline_values))
    return f"{text} (baseline {beside})" if beside else text


def answers_checked(measured: Measured) -> str:
    """What the referee found of a checkpoint, in a few words; empty where the run was repeated."""
    metrics = measured.metrics
    if "evaluated" in metrics:
        allowed = "" if measured.allowed is None else f", ± {measured.allowed:.2g} allowed"
        return f"by the task's evaluator{allowed}"
    if "challenges" not in metrics:
        return ""
    gap = f", new text {metrics['gap']:+.4g} σ" if "gap" in metrics else ""
    return f"{metrics.get('mismatches', 0):.6g} of {metrics['challenges']:.6g} answers differ{gap}"


def _remarks(measured: Measured, tolerance: float) -> str:
    if measured.stage == REPORTED:
        return f"± {tolerance:.2g} allowed"
    counted = "" if measured.counts else "does not count"
    return "; ".join(
        filter(None, (answers_checked(measured), counted, "" if measured.published else "not revealed yet"))
    )


# The stage of the author's own value, beside those of the verifiers.
REPORTED = "reported"


def reported_by_author(run: RunView) -> Measured:
    """The value that the author of a run reports, as the first of those that were measured."""
    return Measured(
        id=run.id,
        author=run.author,
        time_ms=run.time_ms,
        stage=REPORTED,
        round=0,
        verdict="",
        value=run.run.value,
        values=[],
        parent_values=[],
        metrics={},
        counts=True,
        device=run.run.device,
        participant=run.participant,
    )


def measured_columns(tolerance: float) -> Columns[Measured]:
    """What the author reported and what verifiers measured, side by side."""

    def stage(row: Measured) -> str:
        return f"{row.stage}{f' {row.round + 1}' if row.round else ''}"

    return (
        Column("stage", stage),
        Column("verdict", lambda row: row.verdict),
        Column("measured", lambda row: value(row.value) if row.value is not None else pairs(row) or value(None)),
        Column("by", lambda row: person(row.participant)),
        Column("hardware", lambda row: row.device, faces=PEOPLE, optional=1),
        Column("when", lambda row: row.time_ms, TIME, faces=PEOPLE, optional=2),
        Column("remarks", partial(_remarks, tolerance=tolerance)),
    )


def size_line(size: SizeView) -> str:
    """What the program that leads is worth in another size of the task."""
    if size.value is None:
        result = "not tried there" if size.best is not None else f"nobody works on it: autoresearch work {size.name}"
    else:
        gain = f", gain {signed(size.gain)}" if size.gain is not None else ""
        result = f"{value(size.value)} there in {counted(size.runs, 'run')}{gain}"
    best = f" · best there {value(size.best)}" if size.best is not None else ""
    return f"{size.name} · {result}{best}"
