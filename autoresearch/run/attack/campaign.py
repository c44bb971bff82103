"""Carries out a red team on a task: the baseline, what a program could read, then each attack in the sandbox.

Every attempt is measured as a run is (:class:`autoresearch.run.experiment.Experiment`), by the task's own path.
"""

from __future__ import annotations

import difflib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, CannotRunHere, UsageError
from autoresearch.run.attack import looting
from autoresearch.run.attack.judging import AttemptResult, judge
from autoresearch.run.attack.programs import leaving
from autoresearch.run.attack.report import AttackReport, AttackRow, holes_of
from autoresearch.run.attack.table import ATTACKS
from autoresearch.run.attack.target import ATTACKS_VERSION, PAST, Attack, AttackAttempt, Hole, Proof, Target, margin_of
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, Plan, again, plan_as_it_stands
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.task.folders import copy_task, pin_baseline, write_program
from autoresearch.task.model import Task, evaluation_seed
from autoresearch.task.program import join_files, split_program
from autoresearch.version import __version__
from autoresearch.words import STOPPED, RunStatus

# The baseline runs for this part of its budget first: where that shows that all of it fits, it is run whole.
_FIRST_SHARE = 0.02
# So much of the time may go to the baseline as a whole.
_BASELINE_PART = 0.25
# An attempt may take so long, or so many times as long as the baseline.
_LEAST_SECONDS, _TIMES_BASELINE = 20.0, 5.0
# Where a task states no noise, its baseline is measured so often; where only two values are there, their difference.
_BASELINE_RUNS = 3
# So many other tests say whether a gain is one of the test's seed alone.
_OTHER_SEEDS = 5
# Where so many attempts of an attack did not end in time, its others would not either.
_MOST_STOPPED = 2
# What gets through is repeated beside the baseline, but for a number that was stated, a cost, and what has other tests.
_WITHOUT_LUCK = (Proof.STATED, Proof.UNCOUNTED, Proof.SEED)
# A gain that is less than the margin is repeated so often.
_REPETITIONS = 4
_DIFF_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Orders:
    """What a red team may do: seconds in all, the quick half alone, one attack alone, and where programs are put.

    ``programs`` are cheats that a person or an agent wrote, by name: tried first, or with ``alone`` nothing else.
    ``more`` gives a further cheat (name, program, what it does) by what came of those before, or none; the time that it
    takes does not count.
    ``say`` hears what is going on: how far it is, and a line. ``ended`` gets what came of each attack, as it ends.
    """

    seconds: float = 300.0
    quick: bool = False
    only: str = ""
    folder: Path | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False
    more: Callable[[Sequence[AttackRow]], tuple[str, str, str] | None] = lambda _: None
    say: Callable[[float, str], None] = lambda *_: None
    ended: Callable[[AttackRow], None] = lambda _: None


@dataclass(slots=True)
class _Campaign:
    task: Task
    bench: Bench
    orders: Orders
    until: float
    most_seconds: float = 60.0
    share: float = 1.0
    diffs: dict[str, str] = field(default_factory=dict)
    worse: dict[bytes, JobOutcome] = field(default_factory=dict)
    runs: int = 0

    # --- runs

    def plan(self, source: str, *, title: str = "an attack") -> Plan:
        """The plan of a program with the part of the budget that the baseline has."""
        plan = plan_as_it_stands(self.task, source, title=title)
        return msgspec.structs.replace(plan, budget=self.task.budget.amount * self.share)

    def _bench(self, seconds: float) -> Bench:
        self.runs += 1
        end, cancelled = min(time.monotonic() + seconds, self.until), self.bench.cancelled
        return replace(
            self.bench.beside(f"attack-{self.runs}"), cancelled=lambda: cancelled() or time.monotonic() > end
        )

    def measure(self, plan: Plan, *, model: Path | None = None, seconds: float = 0.0) -> JobOutcome:
        """Measure a program, or an artifact, by the task's own path."""
        bench = self._bench(seconds or self.most_seconds)
        return Experiment(self.task, plan, bench).measure(model=model, own=True)

    def train(self, source: str, seconds: float) -> JobOutcome:
        """Run a program without measuring what it leaves."""
        from autoresearch.run.bench import job_limits

        bench = self._bench(seconds)
        return Experiment(self.task, self.plan(source), bench).train(job_limits(self.task, bench.ceiling))

    def measure_artifact(self, content: bytes, *, seed: int | None = None) -> JobOutcome:
        """Measure an artifact as it is, by the test of the baseline's run, or by that of another seed."""
        plan = msgspec.structs.replace(self.plan(self.task.baseline.decode()), evaluation_seed=seed)
        with tempfile.NamedTemporaryFile(dir=self.bench.scratch) as file:
            file.write(content)
            file.flush()
            return self.measure(plan, model=Path(file.name))

    # --- the baseline

    def target(self) -> Target:
        """The baseline measured, with its noise. Raises CannotRunHere where it has no value."""
        task, source = self.task, self.task.baseline.decode()
        self.orders.say(0.0, "the baseline")
        self.share, began = _FIRST_SHARE, time.monotonic()
        outcome = self.measure(self.plan(source), seconds=2 * _BASELINE_PART * self.orders.seconds)
        took = time.monotonic() - began
        is_short = outcome.status is not RunStatus.OK and took < _BASELINE_PART * self.orders.seconds
        if is_short or took / _FIRST_SHARE < _BASELINE_PART * self.orders.seconds or not _honours_budget(task):
            self.share = 1.0
            outcome = self.measure(self.plan(source), seconds=2 * _BASELINE_PART * self.orders.seconds)
            took = time.monotonic() - began
        if outcome.status is not RunStatus.OK or outcome.value is None:
            sentence = f"the baseline of {task.name} has no value here, so there is nothing to compare with: "
            raise CannotRunHere(sentence + outcome.reason, hint=f"autoresearch node doctor task {task.folder}")
        self.most_seconds = max(_LEAST_SECONDS, _TIMES_BASELINE * took)
        artifact = outcome.checkpoint.read_bytes() if outcome.checkpoint and task.evaluator else None
        noise = self._noise(outcome, took)
        return Target(
            task,
            outcome.value,
            noise,
            margin_of(task, outcome.value, noise),
            printed=outcome.log.decode("utf-8", "replace"),
            artifact=artifact,
            share=self.share,
            cost_ms=outcome.cpu_ms,
        )

    def _noise(self, first: JobOutcome, took: float) -> float:
        if self.task.metric.noise is not None:
            return self.task.metric.noise
        assert first.value is not None
        values, plan = [first.value], self.plan(self.task.baseline.decode())
        while len(values) < _BASELINE_RUNS and took < self.orders.seconds / 12:
            outcome = self.measure(again(plan, len(values)))
            if outcome.status is not RunStatus.OK or outcome.value is None:
                break
            values.append(outcome.value)
        return statistics.stdev(values) if len(values) > 1 else 0.02 * abs(first.value)

    # --- attacks

    def row(self, attack: Attack, target: Target) -> AttackRow:
        """What came of one attack; of several attempts that which got through, or came furthest."""
        row = AttackRow(name=attack.name, does=attack.does, hole=attack.hole.value, result="not tried", why="")
        if time.monotonic() >= self.until:
            return msgspec.structs.replace(row, why="the time was over: give it more with --budget")
        attempts = attack.tries(target)
        if isinstance(attempts, str):
            return msgspec.structs.replace(row, why=attempts)
        measured, stopped = {""}, 0
        for attempt in attempts:
            if time.monotonic() >= self.until or stopped == _MOST_STOPPED:
                break
            if attempt.needs not in measured:
                continue
            judgement, outcome = self._try(target, attempt)
            stopped += outcome.status in STOPPED
            if outcome.value is not None:
                measured |= {attempt.note} | ({attempt.note + PAST} if judgement.by == "metric.floor" else set())
            if not judgement.through and row.result == "held" and judgement.by:
                continue
            gain = None if outcome.value is None else target.gain(outcome.value)
            row = msgspec.structs.replace(
                row,
                result="through" if judgement.through else "held",
                why=judgement.why[:400],
                by=judgement.by,
                hole=(judgement.hole or attack.hole).value,
                note=attempt.note,
                value=outcome.value,
                gain=gain,
            )
            if judgement.through:
                return msgspec.structs.replace(row, folder=self._put(attack.name, target, attempt))
        return row if row.result != "not tried" else msgspec.structs.replace(row, why="no form of it fits this task")

    def _try(self, target: Target, attempt: AttackAttempt) -> tuple[AttemptResult, JobOutcome]:
        content = attempt.artifact or b""
        outcome = self.worse.get(content) or self._measured(attempt)
        if content and (outcome.value is None or target.gain(outcome.value) <= 0):
            self.worse[content] = outcome  # what another attack leaves too is measured once
        if outcome.status in STOPPED and time.monotonic() < self.until:
            outcome = msgspec.structs.replace(outcome, reason=f"it was stopped after {self.most_seconds:.0f} s")
        others = None
        if attempt.proof is Proof.SEED and outcome.value is not None and target.gain(outcome.value) > 0:
            others = self._gains_by_other_seeds(target, attempt)
        judgement = judge(target, attempt, outcome, further=self._further(target, attempt, outcome), others=others)
        if not judgement.through and self._is_worth_repeating(target, attempt, outcome):
            return judge(target, attempt, outcome, repeated=[*self._gains_again(target, attempt)]), outcome
        if judgement.through and attempt.proof not in _WITHOUT_LUCK:
            if target.artifact is not None:  # its test was a hard one, or the machine is faster than it was
                before = self.measure_artifact(target.artifact).value
                if before is not None and target.gain(before) > 0:
                    target = replace(target, value=before)
            repetition = self._measured(attempt)
            return judge(target, attempt, repetition, further=self._further(target, attempt, repetition)), repetition
        return judgement, outcome

    def _further(self, target: Target, attempt: AttackAttempt, outcome: JobOutcome) -> float | None:
        """The value of the same taken further, where that decides."""
        if attempt.further is None or outcome.value is None or target.gain(outcome.value) <= target.margin:
            return None
        more = {"artifact": attempt.further} if isinstance(attempt.further, bytes) else {"program": attempt.further}
        return self._measured(replace(attempt, **more)).value

    def _is_worth_repeating(self, target: Target, attempt: AttackAttempt, outcome: JobOutcome) -> bool:
        """Whether a gain within the margin may be no luck: the test is another each time, and half of it is gained."""
        is_fresh = self.task.evaluator is not None and self.task.evaluator.fresh
        is_large = outcome.value is not None and target.gain(outcome.value) > max(target.margin / 2, attempt.least)
        return attempt.proof is Proof.BETTER and is_fresh and is_large

    def _gains_again(self, target: Target, attempt: AttackAttempt) -> Iterator[float]:
        """By how much an attempt is better than the baseline's artifact, each time on fresh tests."""
        assert target.artifact is not None
        for _ in range(_REPETITIONS):
            before, after = self.measure_artifact(target.artifact).value, self._measured(attempt).value
            yield -1.0 if before is None or after is None else target.sign * (before - after)

    def _measured(self, attempt: AttackAttempt) -> JobOutcome:
        if attempt.artifact is not None:
            return self.measure_artifact(attempt.artifact)
        try:
            return self.measure(self.plan(join_files(attempt.program)))
        except UsageError as error:  # no program of this task: refused before it is run
            return JobOutcome(status=RunStatus.INVALID, reason=str(error))

    def _gains_by_other_seeds(self, target: Target, attempt: AttackAttempt) -> list[float]:
        """By how much an artifact is better than the baseline's on tests of other seeds, each beside the other."""
        assert attempt.artifact is not None
        assert target.artifact is not None
        gains = []
        for seed in map(evaluation_seed, range(11, 11 + _OTHER_SEEDS)):
            before, after = (
                self.measure_artifact(each, seed=seed).value for each in (target.artifact, attempt.artifact)
            )
            if before is not None and after is not None:
                gains.append(target.sign * (before - after))
        return gains

    def _put(self, name: str, target: Target, attempt: AttackAttempt) -> str:
        """Put the program of an attempt into a task folder of its own; its path, or empty where it has none."""
        files = dict(attempt.program)
        if attempt.artifact is not None:
            files = leaving(target, attempt.artifact) or {}
        if not files or self.orders.folder is None:
            return ""
        program, place = join_files(files), self.orders.folder / name
        before = split_program(self.task.baseline.decode())
        self.diffs[name] = "".join(
            line
            for each, text in files.items()
            for line in difflib.unified_diff(
                before.get(each, "").splitlines(keepends=True), text.splitlines(keepends=True), f"a/{each}", f"b/{each}"
            )
        )[:_DIFF_CHARACTERS]
        shutil.rmtree(place, ignore_errors=True)  # of an earlier time
        copy_task(self.task, place)
        if not self.task.is_pinned:  # else that program would be another task's baseline
            pin_baseline(place)
        write_program(place, program)
        (place / "attack.diff").write_text(self.diffs[name])
        return str(place)


def _honours_budget(task: Task) -> bool:
    """Whether a smaller budget may make a run of a task shorter, by what its files name."""
    texts = (task.baseline, *task.harness.values())
    return any(b"AUTORESEARCH_BUDGET" in text for text in texts)


def attack_task(task: Task, bench: Bench, orders: Orders) -> AttackReport:
    """Attack a task on a bench, which has its data, and say what got through.

    Raises:
        UsageError: there is no such attack as ``orders.only``.
        CannotRunHere: the baseline has no value on this machine.
        Refused: there is no sandbox that programs of strangers may run in.
    """
    chosen = _chosen(orders)
    permit(bench.level, foreign=True)
    bench.scratch.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    campaign = _Campaign(task, replace(bench, foreign=True), orders, began + orders.seconds)
    try:
        target = campaign.target()
    except CannotRunHere:
        raise
    except AutoresearchError as error:
        raise CannotRunHere(f"the baseline of {task.name} can't be run here: {error}", hint=error.hint) from error
    if looting.is_worth_it(target):
        orders.say(0.0, "what a program can read")
        seconds = min(campaign.most_seconds, orders.seconds / 10)
        target = replace(
            target, loot=looting.loot_of(target, lambda source: campaign.train(source, seconds), seconds=seconds)
        )
    rows = _rows(campaign, chosen, target)
    tried = [row for row in rows if row.result != "not tried"]
    return AttackReport(
        task=task.name,
        digest=task.digest.hex(),
        version=__version__,
        attacks=ATTACKS_VERSION,
        quick=orders.quick,
        metric=task.metric.name,
        direction=task.metric.direction,
        source=task.metric.source,
        baseline=target.value,
        noise=target.noise,
        margin=target.margin,
        share=campaign.share,
        tried=len(tried),
        through=sum(row.result == "through" for row in tried),
        seconds=round(time.monotonic() - began, 1),
        holes=holes_of(rows, campaign.diffs),
        rows=rows,
    )


def _chosen(orders: Orders) -> Sequence[Attack]:
    own = [_own_attack(name, program) for name, program in orders.programs.items()]
    everything = own if orders.alone else [*own, *ATTACKS]
    if orders.only:
        attacks = [attack for attack in everything if attack.name == orders.only]
        if not attacks:
            names = ", ".join(attack.name for attack in everything)
            raise UsageError(f"there is no attack {orders.only}", hint=f"one of {names}")
        return attacks
    return [attack for attack in everything if attack.quick or not orders.quick]


def _own_attack(name: str, program: str, does: str = "a program that somebody wrote as a cheat") -> Attack:
    """An attack by a program that a person or an agent wrote: it claims to do no honest work."""
    attempt = AttackAttempt(program=split_program(program))
    return Attack(name, does, Hole.OTHER, lambda _: [attempt], quick=True)


def _rows(campaign: _Campaign, attacks: Sequence[Attack], target: Target) -> list[AttackRow]:
    rows: list[AttackRow] = []

    def carry_out(attack: Attack) -> None:
        rows.append(campaign.row(attack, target))
        campaign.orders.ended(rows[-1])

    for number, attack in enumerate(attacks):
        campaign.orders.say(number / len(attacks), attack.name)
        carry_out(attack)
    began = time.monotonic()
    while own := campaign.orders.more(rows):
        campaign.until += time.monotonic() - began
        carry_out(_own_attack(*own))
        began = time.monotonic()
    return rows
