"""A change by a language model: the prompt from the log, the answer, and the reason back where it is no program."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping

from autoresearch.log.local import ModelFailure
from autoresearch.propose.mind.reply import AnswerRules, BadReply, ProposedProgram, read_reply
from autoresearch.settings import LanguageModel
from autoresearch_daemon.minds.chat import USUAL_KEYS, USUAL_URLS, ChatMessage, Completion, Endpoint, ask

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
        ModelFailed: its key is not there.
    """
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
        context_tokens=(settings.prompt_kib << 10) // BYTES_OF_TOKEN + settings.answer_tokens,
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
    prompt: str, rules: AnswerRules, settings: LanguageModel, spend: Spend, *, may_go_on: Callable[[], bool]
) -> ProposedProgram:
    """A change of ``rules.parent`` by the model.

    ``spend`` is told what each answer costs; the model is not asked again once ``may_go_on`` says no.

    Raises:
        ModelFailed: it gave no answer, or none that can be used.
    """
    endpoint = endpoint_of(settings, os.environ)
    messages = [ChatMessage("user", prompt)]
    for _ in range(CORRECTIONS + 1):
        answer = _answer(endpoint, messages, settings, spend)
        try:
            return read_reply(answer, rules)
        except BadReply as error:
            fault = str(error)
        if not may_go_on():
            break
        again = f"That can't be run. {fault}\nAnswer again, in the form that was asked for, with one change."
        messages += [ChatMessage("assistant", answer), ChatMessage("user", again)]
    raise ModelFailure(f"{settings.model} gave no program that can be run: {fault}")


def ask_once(prompt: str, settings: LanguageModel, environment: Mapping[str, str], spend: Spend) -> str:
    """The model's answer to one question; ``spend`` is told what it costs. Raises ModelFailed."""
    return _answer(endpoint_of(settings, environment), [ChatMessage("user", prompt)], settings, spend)


def _answer(endpoint: Endpoint, messages: list[ChatMessage], settings: LanguageModel, spend: Spend) -> str:
    try:
        answer = asyncio.run(ask(endpoint, messages))
    except ModelFailure as error:
        spend(error.tokens, error.tokens * settings.price_out / 1e6)
        raise
    spend(*_cost(answer, messages, settings))
    return answer.text


def _cost(answer: Completion, messages: list[ChatMessage], settings: LanguageModel) -> tuple[int, float]:
    """Tokens and money; where the server counts none, from the length of the texts."""
    tokens_in = answer.tokens_in or sum(len(message.text.encode()) for message in messages) // BYTES_OF_TOKEN
    tokens_out = answer.tokens_out or len(answer.text.encode()) // BYTES_OF_TOKEN
    return tokens_in + tokens_out, (tokens_in * settings.price_in + tokens_out * settings.price_out) / 1e6
