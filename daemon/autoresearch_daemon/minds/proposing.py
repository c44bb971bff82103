"""The next change, by the proposer whose turn it is (what fails falls back to the search, with a reason).

Also how this node's proposers stand; a question to the log answered in a model's sentences, within its limits and in
the ledger.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from autoresearch.ask.asking import cited_text, question_prompt
from autoresearch.ask.desk import Desk
from autoresearch.ask.discussion import AskAnswer, CheatAnswer
from autoresearch.ask.node import ProposerStatus
from autoresearch.ask.requests import CheatRequest
from autoresearch.errors import CannotRunHere, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.local import ModelCall, ModelFailure, ModelLedger, not_before_ms
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import next_base
from autoresearch.log.standing.context import trust_context
from autoresearch.paths import Paths
from autoresearch.propose.mind.attacking import (
    attack_history,
    attack_prompt,
    attack_rules,
    attack_wish,
    measurement_of,
)
from autoresearch.propose.mind.brief import file_names, instruction, plain_line, usable_operators
from autoresearch.propose.mind.history import History, gather
from autoresearch.propose.mind.recall import known_genome, reply_rules
from autoresearch.propose.mind.reply import PLAN_CHARACTERS, ProposedProgram
from autoresearch.propose.mind.writing import history_text, prompt_text
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.search import sharing
from autoresearch.record.record import DAY_MS
from autoresearch.run.experiment import Plan, plan_as_it_stands
from autoresearch.settings import Settings
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.text import MAXIMIZE
from autoresearch.words import Operator
from autoresearch_daemon.events import now_ms

NAME_CHARACTERS = 64
# What a command reads of the log.
HISTORY_BYTES = 48 << 10
INSIGHT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a change is wanted for: ``wanted`` is a proposer or "mix", ``me`` this device.

    ``ledger`` is the file of what was asked, ``scratch`` a folder for what a command works in.
    """

    task: Task
    settings: Settings
    proposer: str
    me: bytes
    ledger: Path
    scratch: Path
    cancelled: Callable[[], bool]


def propose_change(log: Log, blobs: BlobStore, occasion: Occasion, draws: Draws) -> Plan | str:
    """The plan of a change by a model or a command; or why the search makes the next one (empty: it is its turn)."""
    task, settings, me = occasion.task, occasion.settings, occasion.me
    building_on = next_base(log, task.digest, trust_context(log, me))
    if building_on is None:
        return ""  # the search proposes the baseline first
    with ModelLedger(occasion.ledger) as ledger:
        standings = {name: standing(ledger, name, settings, now_ms()) for name in (sharing.LLM, sharing.COMMAND)}
        brought = (
            sharing.brought_by(log, ledger, task, me, (sharing.SEARCH, sharing.LLM, sharing.COMMAND))
            if occasion.proposer == sharing.MIX
            else {}
        )
        chosen, reason = sharing.next_proposer(occasion.proposer, settings, standings, brought, draws, now_ms())
        if chosen == sharing.SEARCH:
            return reason
        name = _family(chosen, settings)
        plan = ledger.plan(task.digest, name)
        history = gather(log, blobs, task, now_ms=now_ms(), me=me, proposer=name, plan=plan)
        if history.best.source is None:
            return "the best program has not come to this machine yet"
        turn = Turn(ledger, chosen, setup_of(settings, chosen))
        operator = Operator(
            sharing.choose(sharing.operators_brought(log, task, me, chosen, usable_operators(history)), draws)
        )
        try:
            change = _change(Desk(log, blobs, me, None, occasion.ledger, now_ms), occasion, history, turn, operator)
        except ModelFailure as error:
            return turn.fail(error)
        turn.end()
        if change.plan:
            ledger.keep_plan(task.digest, name, plain_line(change.plan, PLAN_CHARACTERS))
    genome, base = known_genome(log, blobs, task, change.source, building_on.row.first)
    return plan_as_it_stands(
        task,
        change.source,
        title=change.title,
        parent=building_on.row.first,
        base=base,
        genome=genome,
        hypothesis=change.hypothesis,
        insight=plain_line(change.insight, INSIGHT_CHARACTERS),
        expected=change.expected,
        proposer=f"{name}/{operator}",
        kind=chosen,
    )


def setup_of(settings: Settings, name: str) -> str:
    """What stands for how a proposer is set up, its key included where a variable has it."""
    llm = settings.llm
    keys = [llm.key_variable] if llm.key_variable else ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
    parts = (llm, [os.environ.get(key, "") for key in keys]) if name == sharing.LLM else settings.agent
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def standing(ledger: ModelLedger, name: str, settings: Settings, at_ms: int) -> sharing.ProposerStanding:
    """How a proposer that is set up so stands at a time."""
    last = ledger.last(name, setup_of(settings, name))
    failure = last[0].failure if last else ""
    return sharing.ProposerStanding(ledger.spent(name, since_ms=at_ms - DAY_MS), not_before_ms(last), failure)


class Turn:
    """One attempt of a proposer that is set up so, and what it costs."""

    def __init__(self, ledger: ModelLedger, proposer: str, setup: str) -> None:
        self.proposer = proposer
        self._setup = setup
        self._ledger = ledger
        self._tokens, self._cost = 0, 0.0
        self._began = time.monotonic()

    def spend(self, tokens: int, cost: float) -> None:
        """It cost so much more."""
        self._tokens += tokens
        self._cost += cost

    def is_within(self, day_tokens: int, day_cost: float) -> bool:
        """Whether it may cost more, after what was spent in 24 hours; 0 is no limit."""
        today = self._ledger.spent(self.proposer, since_ms=now_ms() - DAY_MS)
        tokens, cost = today.tokens + self._tokens, today.cost + self._cost
        return not (day_tokens and tokens >= day_tokens) and not (day_cost and cost >= day_cost)

    def fail(self, error: ModelFailure) -> str:
        """Keep that it gave no change; returns why, with what to do."""
        failure = f"{error} → {error.hint}" if error.hint else str(error)
        self.end(failure, error.retry_seconds)
        return failure

    def end(self, failure: str = "", retry_seconds: float = 0.0) -> None:
        """Keep how it went."""
        at_ms = now_ms()
        self._ledger.note(
            ModelCall(
                time_ms=at_ms,
                proposer=self.proposer,
                failure=failure,
                tokens=self._tokens,
                cost=self._cost,
                seconds=time.monotonic() - self._began,
                retry_ms=at_ms + int(retry_seconds * 1000) if retry_seconds else 0,
            ),
            self._setup,
        )


def _change(desk: Desk, occasion: Occasion, history: History, turn: Turn, operator: Operator) -> ProposedProgram:
    task, cancelled = occasion.task, occasion.cancelled
    rules = reply_rules(desk.log, task, history.best.source or "", now_ms=now_ms(), me=occasion.me)
    if turn.proposer == sharing.COMMAND:
        from autoresearch_daemon.minds.agent_command import change_by_command

        better = "larger" if task.metric.direction == MAXIMIZE else "smaller"
        wish = f"Improve {file_names(task)}: {task.metric.name} should become {better}. {instruction(operator, task)}"
        text, agent = history_text(history, task, HISTORY_BYTES), occasion.settings.agent
        return change_by_command(text, task, rules, agent, occasion.scratch, turn.spend, wish=wish, cancelled=cancelled)
    # Workers start without the HTTP library.
    from autoresearch_daemon.minds.language_model import change_by_model
    from autoresearch_daemon.minds.model_questions import questions_about

    model = occasion.settings.llm

    def may_go_on() -> bool:
        return turn.is_within(model.day_tokens, model.day_cost) and not cancelled()

    prompt = prompt_text(history, task, model.prompt_kib << 10, operator)
    questions = questions_about(desk, task, model.tool_calls, model.tool_kib << 10)
    return change_by_model(prompt, rules, model, turn.spend, may_go_on=may_go_on, questions=questions)


def _family(chosen: str, settings: Settings) -> str:
    """Who proposes: “llm/some-model”; the record of a run has the kind of change behind it."""
    behind = settings.llm.model if chosen == sharing.LLM else Path(settings.agent.command.split()[0]).name
    return f"{chosen}/{behind}"[: NAME_CHARACTERS - max(len(f"/{operator}") for operator in Operator)]


def proposers_status(
    log: Log, paths: Paths, settings: Settings, task: Task | None, *, me: bytes, now_ms: int
) -> list[ProposerStatus]:
    """Each proposer that this node has, with what it brought; none where there is only the search."""
    names = sharing.configured(settings)
    if len(names) == 1:
        return []
    with ModelLedger(paths.home_local) as ledger:
        brought = sharing.brought_by(log, ledger, task, me, names) if task else {}
        reasons = []
        for name in names:
            stands = standing(ledger, name, settings, now_ms)
            reason = sharing.objection(name, settings, stands, now_ms)
            mine = brought.get(name)
            reasons.append(
                ProposerStatus(
                    name=name,
                    model=settings.llm.model if name == "llm" else settings.agent.command if name == "command" else "",
                    state="waiting" if reason else "ready",
                    reason=reason or stands.failure,
                    runs=mine.runs if mine else 0,
                    better=mine.better if mine else 0,
                    gain=mine.gain if mine else 0.0,
                    cost=mine.money if mine else 0.0,
                    tokens_today=stands.today.tokens,
                    cost_today=stands.today.cost,
                    failures_today=stands.today.failures,
                )
            )
    return reasons


def in_sentences(plain: AskAnswer, settings: Settings, ledger: Path) -> AskAnswer:
    """The answer with a model's text; as it is, with the reason, where no model is set up, may be asked, or answers."""
    if not settings.llm.model:
        return msgspec.structs.replace(plain, reason="no language model is configured: see llm.model")
    with ModelLedger(ledger) as model_ledger:
        reason = sharing.objection(
            sharing.LLM, settings, standing(model_ledger, sharing.LLM, settings, now_ms()), now_ms()
        )
        if reason:
            return msgspec.structs.replace(plain, reason=reason)
        turn = Turn(model_ledger, sharing.LLM, setup_of(settings, sharing.LLM))
        try:
            text, cited = _asked(plain, settings, turn)
        except ModelFailure as error:
            return msgspec.structs.replace(plain, reason=turn.fail(error))
        turn.end()
    return msgspec.structs.replace(plain, text=text, cited=cited, model=settings.llm.model)


def written_cheat(request: CheatRequest, settings: Settings, ledger: Path, spool: Path) -> CheatAnswer:
    """A cheat on the task of a folder, or a mend: by the agent's command where one is set up, else by the model.

    Raises:
        UsageError: neither is set up, the folder has no task, or that has nothing to mend.
        CannotRunHere: none may be asked now, or it gave no program.
    """
    task, tried, holes = load_task(Path(request.task)), request.tried.values(), request.holes
    if holes:
        task = measurement_of(task)
    names = sharing.configured(settings)
    if len(names) == 1:
        hint = "autoresearch node config set llm.model NAME, or agent.command 'PROGRAM {prompt_file}'"
        raise UsageError("no model and no agent's command is set up, so nobody can write one", hint=hint)
    chosen, rules = names[-1], attack_rules(task, request.tried)
    with ModelLedger(ledger) as model_ledger, tempfile.TemporaryDirectory(prefix="mind-", dir=spool) as scratch:
        if reason := sharing.objection(chosen, settings, standing(model_ledger, chosen, settings, now_ms()), now_ms()):
            raise CannotRunHere(reason)
        turn = Turn(model_ledger, chosen, setup_of(settings, chosen))
        try:
            if chosen == sharing.COMMAND:
                from autoresearch_daemon.minds.agent_command import change_by_command

                text, wish = attack_history(task, tried, holes), attack_wish(task, is_mend=bool(holes))
                cheat = change_by_command(
                    text, task, rules, settings.agent, Path(scratch), turn.spend, wish=wish, cancelled=lambda: False
                )
            else:
                from autoresearch_daemon.minds.language_model import change_by_model

                model = settings.llm
                prompt = attack_prompt(task, tried, holes, model.prompt_kib << 10)
                within = partial(turn.is_within, model.day_tokens, model.day_cost)
                cheat = change_by_model(prompt, rules, model, turn.spend, may_go_on=within)
        except ModelFailure as error:
            turn.fail(error)
            raise CannotRunHere(str(error), hint=error.hint) from error
        turn.end()
    return CheatAnswer(
        program=cheat.source,
        source_digest=cheat.source_digest.hex(),
        title=cheat.title,
        why=cheat.hypothesis,
        proposer=_family(chosen, settings),
    )


def _asked(plain: AskAnswer, settings: Settings, turn: Turn) -> tuple[str, list[str]]:
    # The daemon starts without the HTTP library.
    from autoresearch_daemon.minds.language_model import ask_once

    answer = ask_once(question_prompt(plain), settings.llm, os.environ, turn.spend)
    text, cited = cited_text(answer, plain)
    if not text:
        raise ModelFailure(f"{settings.llm.model} gave an empty answer")
    return text, cited
