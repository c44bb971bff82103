"""A question to the log, answered in a language model's sentences: within its limits, and kept in the ledger."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from autoresearch.api import AskAnswer
from autoresearch.prompts import cited_text, question_prompt
from autoresearch.settings import Settings
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.minds.choosing import LLM, objection
from autoresearch_daemon.minds.ledger import Ledger, ModelFailed
from autoresearch_daemon.minds.proposing import Turn, standing


def in_sentences(plain: AskAnswer, settings: Settings, ledger: Path) -> AskAnswer:
    """The answer with a model's text; as it is, with the reason, where no model is set up, may be asked, or answers."""
    if not settings.llm.model:
        return msgspec.structs.replace(plain, reason="no language model is configured: see llm.model")
    with Ledger(ledger) as kept:
        reason = objection(LLM, settings, standing(kept, LLM, now_ms()), now_ms())
        if reason:
            return msgspec.structs.replace(plain, reason=reason)
        turn = Turn(kept, LLM)
        try:
            text, cited = _asked(plain, settings, turn)
        except ModelFailed as error:
            turn.end(str(error), error.retry_seconds)
            return msgspec.structs.replace(plain, reason=f"{error} → {error.hint}" if error.hint else str(error))
        turn.end()
    return msgspec.structs.replace(plain, text=text, cited=cited, model=settings.llm.model)


def _asked(plain: AskAnswer, settings: Settings, turn: Turn) -> tuple[str, list[str]]:
    # The daemon starts without the HTTP library.
    from autoresearch_daemon.minds.language_model import ask_once

    said = ask_once(question_prompt(plain), settings.llm, os.environ, turn.spend)
    text, cited = cited_text(said, plain)
    if not text:
        raise ModelFailed(f"{settings.llm.model} gave an empty answer")
    return text, cited
