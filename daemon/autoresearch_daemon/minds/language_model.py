"""A change by a language model: the prompt from the log, the answer, and the reason back where it is no program."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable, Mapping, Sequence

from autoresearch.errors import UsageError
from autoresearch.log.local import ModelFailure
from autoresearch.propose.mind.reply import AnswerRules, BadReply, ModelRefusal, ProposedProgram, read_reply
from autoresearch.settings import LanguageModel
from autoresearch_daemon.minds.chat import Endpoint, ToolsRefused, ask, user
from autoresearch_daemon.minds.chat_formats import (
    FORMATS,
    USUAL_KEYS,
    USUAL_URLS,
    Completion,
    FunctionCall,
    Message,
    Tool,
)
from autoresearch_daemon.minds.model_questions import NO_QUESTIONS, ModelQuestions

# So often an answer that can't be used goes back with the reason.
CORRECTIONS = 3
# A token is at least so many bytes of text, for the context that is asked for.
BYTES_OF_TOKEN = 3
KEYRING_SERVICE = "autoresearch"

# Told what each answer cost: its tokens, and the money.
Spend = Callable[[int, float], None]


def endpoint_of(settings: LanguageModel, environment: Mapping[str, str]) -> Endpoint:
    """Where the configured model answers.

    Raises:
        ModelFailure: its key is not there, or ``llm.fields`` can't be read.
    """
    try:
        fields = settings.request_fields()
    except UsageError as error:
        raise ModelFailure(str(error), hint=error.hint) from error
    variable = settings.key_variable or USUAL_KEYS[settings.api]
    key = environment.get(variable, "") if variable else ""
    if variable and not key:
        key = _from_keyring(variable)
    if variable and not key and (settings.key_variable or not settings.url):
        raise ModelFailure(
            f"the key of {settings.model} is not there",
            hint=f"start the daemon with the variable {variable}, or: keyring set {KEYRING_SERVICE} {variable}",
        )
    return Endpoint(
        api=settings.api,
        url=settings.url or USUAL_URLS[settings.api],
        model=settings.model,
        key=key,
        answer_tokens=settings.answer_tokens,
        seconds=float(settings.seconds),
        context_tokens=((settings.prompt_kib + settings.tool_kib) << 10) // BYTES_OF_TOKEN + settings.answer_tokens,
        fields=fields,
    )


def _from_keyring(variable: str) -> str:
    """The key in the system's keyring, where the package that reads it is installed."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return ""
    try:
        return str(keyring.get_password(KEYRING_SERVICE, variable) or "")
    except Exception:  # noqa: BLE001 - every keyring has errors of its own; without one there is no key
        return ""


def change_by_model(
    prompt: str,
    rules: AnswerRules,
    settings: LanguageModel,
    spend: Spend,
    *,
    may_go_on: Callable[[], bool],
    questions: ModelQuestions = NO_QUESTIONS,
) -> ProposedProgram:
    """A change of ``rules.parent`` by the model, which may ask ``questions`` before.

    ``spend`` is told what each answer costs; the model is not asked again once ``may_go_on`` says no.

    Raises:
        ModelFailure: it gave no answer, or none that can be used.
    """
    endpoint, form = endpoint_of(settings, os.environ), FORMATS[settings.api]
    messages, left = [user(prompt)], CORRECTIONS
    while True:
        try:
            answer = _answer(endpoint, messages, settings, spend, questions.tools)
        except ToolsRefused:
            if len(messages) > 1:
                raise
            questions = NO_QUESTIONS
            continue
        if any(questions.is_one(call) for call in answer.calls):
            texts = [questions.answer(call) for call in answer.calls]
            messages += [answer.message, *form.results(answer.calls, texts)]
            fault = "it asked and gave no change"
        else:
            try:
                return read_reply("\n".join([answer.text, *map(_as_json, answer.calls)]), rules)
            except ModelRefusal as error:
                raise ModelFailure(f"{settings.model}: {error}") from error
            except BadReply as error:
                fault = str(error)
            left -= 1
            again = f"That can't be run. {fault}\nAnswer again, in the form that was asked for, with one change."
            results = form.results(answer.calls, [again] * len(answer.calls)) if answer.calls else [user(again)]
            messages += [answer.message, *results]
        if left < 0 or questions.is_exhausted or not may_go_on():
            raise ModelFailure(f"{settings.model} gave no program that can be run: {fault}")


def _as_json(call: FunctionCall) -> str:
    """A call of a tool that was not offered: models answer with the edits that they learned."""
    return json.dumps({"name": call.name, "arguments": call.arguments})


def ask_once(prompt: str, settings: LanguageModel, environment: Mapping[str, str], spend: Spend) -> str:
    """The model's answer to one question; ``spend`` is told what it costs. Raises ModelFailure."""
    return _answer(endpoint_of(settings, environment), [user(prompt)], settings, spend).text


def _answer(
    endpoint: Endpoint, messages: list[Message], settings: LanguageModel, spend: Spend, tools: Sequence[Tool] = ()
) -> Completion:
    try:
        answer = asyncio.run(ask(endpoint, messages, tools))
    except ModelFailure as error:
        spend(error.tokens, error.tokens * settings.price_out / 1e6)
        raise
    spend(*_cost(answer, messages, settings))
    return answer


def _cost(answer: Completion, messages: list[Message], settings: LanguageModel) -> tuple[int, float]:
    """Tokens and money; where the server counts none, from the length of the texts."""
    tokens_in = answer.tokens_in or len(json.dumps(messages)) // BYTES_OF_TOKEN
    tokens_out = answer.tokens_out or len(answer.text.encode()) // BYTES_OF_TOKEN
    return tokens_in + tokens_out, (tokens_in * settings.price_in + tokens_out * settings.price_out) / 1e6
