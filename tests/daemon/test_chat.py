"""One question to a language model, over real HTTP, to servers that answer well and badly."""

from __future__ import annotations

import asyncio
import json

import pytest
from autoresearch_daemon.minds.chat import Endpoint, ask, user
from autoresearch_daemon.minds.chat_formats import Completion

from autoresearch.log.local import ModelFailure
from tests.daemon.scripted_model import Answer, Script, anthropic, events, in_turn, ollama, openai, serving

KEY = "sk-very-secret-key"
TEXT = "TITLE: a longer warm-up ✓"


def answer(script: Script, api: str = "openai", seconds: float = 20.0) -> Completion:
    with serving(script) as model:
        return asyncio.run(ask(endpoint(model.url, api, seconds), [user("what next?")]))


def endpoint(url: str, api: str = "openai", seconds: float = 20.0) -> Endpoint:
    return Endpoint(api, url, "some-model", KEY, answer_tokens=500, seconds=seconds, context_tokens=9000)


def failure(script: Script, api: str = "openai", seconds: float = 20.0) -> ModelFailure:
    with pytest.raises(ModelFailure) as raised:
        answer(script, api, seconds)
    assert KEY not in str(raised.value) + raised.value.hint
    return raised.value


STREAMED = {"openai": openai(TEXT), "anthropic": anthropic(TEXT), "ollama": ollama(TEXT)}
WHOLE: dict[str, object] = {
    "openai": {
        "choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    },
    "anthropic": {
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": TEXT}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 20},
    },
    "ollama": {"message": {"content": TEXT}, "done": True, "prompt_eval_count": 100, "eval_count": 20},
}


@pytest.mark.parametrize("api", STREAMED)
def test_a_streamed_answer_is_put_together(api: str) -> None:
    assert answer(in_turn(STREAMED[api]), api) == Completion(TEXT, 100, 20)


@pytest.mark.parametrize("api", WHOLE)
def test_a_server_that_does_not_stream_is_understood(api: str) -> None:
    assert answer(in_turn(Answer(json.dumps(WHOLE[api]).encode())), api) == Completion(TEXT, 100, 20)


def test_each_api_is_asked_in_its_own_way() -> None:
    expected = {
        "openai": ("/chat/completions", "Authorization", f"Bearer {KEY}"),
        "anthropic": ("/v1/messages", "x-api-key", KEY),
        "ollama": ("/api/chat", "Authorization", f"Bearer {KEY}"),
    }
    for api, (path, header, value) in expected.items():
        with serving(in_turn(STREAMED[api])) as model:
            asyncio.run(ask(endpoint(model.url + "/", api), [user("what next?")]))
        assert model.paths == [path]
        assert model.headers[0][header] == value
        assert model.requests[0]["model"] == "some-model"
        assert model.requests[0]["messages"] == [{"role": "user", "content": "what next?"}]
        assert "temperature" not in model.requests[0]
        if api == "anthropic":
            assert model.requests[0]["max_tokens"] == 500
            assert model.headers[0]["anthropic-version"] == "2023-06-01"
        if api == "ollama":
            assert model.requests[0]["options"]["num_ctx"] == 9000


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_server_is_asked_again(status: int) -> None:
    busy = Answer(b"{}", status=status, headers={"Retry-After": "0.05"})
    assert answer(in_turn(busy, busy, openai(TEXT))).text == TEXT


def test_a_server_that_stays_busy_is_left_alone_for_as_long_as_it_says() -> None:
    busy = Answer(b'{"error": {"message": "quota"}}', status=429, headers={"Retry-After": "3600"})
    failed = failure(in_turn(busy))
    assert failed.retry_seconds == 3600
    assert "HTTP 429" in str(failed)
    dated = Answer(b"", status=503, headers={"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"})
    assert failure(in_turn(dated)).retry_seconds > 1e9
    nonsense = Answer(b"", status=500, headers={"Retry-After": "soon"})
    assert failure(in_turn(nonsense), seconds=1.0).retry_seconds == 0


def test_a_wrong_key_is_no_reason_to_try_again() -> None:
    with (
        serving(in_turn(Answer(f"your key {KEY} is wrong".encode(), status=401))) as model,
        pytest.raises(ModelFailure) as raised,
    ):
        asyncio.run(ask(endpoint(model.url), [user("?")]))
    assert len(model.requests) == 1
    assert raised.value.hint == "check the key"
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("api", STREAMED)
def test_a_stream_that_breaks_off_is_no_answer(api: str) -> None:
    whole = STREAMED[api]
    assert isinstance(whole.body, list)
    cut = Answer(whole.body[:-3], kind=whole.kind)
    assert "broke off" in str(failure(in_turn(cut), api))


BAD = {
    "broken JSON": (Answer(b'{"choices": [{"mess'), "broken JSON"),
    "broken event": (Answer(b'data: {"choices": [\n\n', kind="text/event-stream"), "broken JSON"),
    "page": (Answer(b"<html>log in</html>", kind="text/html"), "answers with text/html"),
    "list": (Answer(b"[1, 2]"), "broke off|empty"),
    "nothing": (openai(""), "empty"),
    "refused": (
        events({"choices": [{"delta": {"refusal": "I can't help"}, "finish_reason": "stop"}]}),
        "it refused: I",
    ),
    "filtered": (openai(TEXT, finish="content_filter"), "it refused"),
    "cut": (openai(TEXT, finish="length"), "cut off"),
    "error": (events({"error": {"message": "overloaded"}}), "it says: overloaded"),
    "missing": (Answer(b'{"detail": "no such model"}', status=404), "HTTP 404.*no such model"),
    "redirected": (Answer(b"", status=302, headers={"Location": "http://127.0.0.1:9/"}), "HTTP 302"),
    "deep": (Answer(b'{"choices":' + b"[" * 100_000), "broken JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_not_be_used_has_a_reason(name: str) -> None:
    bad_answer, reason = BAD[name]
    failed = failure(in_turn(bad_answer))
    import re

    assert re.search(reason, str(failed)), str(failed)


def test_what_was_counted_of_a_useless_answer_is_known() -> None:
    assert failure(in_turn(openai(TEXT, finish="length"))).tokens == 120


def test_refusals_of_the_other_apis() -> None:
    assert "it refused" in str(failure(in_turn(anthropic("", stop="refusal")), "anthropic"))
    assert "cut off" in str(failure(in_turn(anthropic(TEXT, stop="max_tokens")), "anthropic"))
    assert "cut off" in str(failure(in_turn(ollama(TEXT, done="length")), "ollama"))


def test_a_slow_server_has_only_so_long() -> None:
    slow = Answer([b"data: {}\n\n"] * 50, kind="text/event-stream", pause=0.2)
    assert "no answer within 0.5 s" in str(failure(in_turn(slow), seconds=0.5))


def test_an_endless_answer_is_not_read_to_its_end() -> None:
    part = b'data: {"choices": [{"delta": {"content": "' + b"x" * 100_000 + b'"}}]}\n\n'
    assert "more than 4 MiB" in str(failure(in_turn(Answer([part] * 100, kind="text/event-stream"))))


def test_nobody_there_is_said() -> None:
    with pytest.raises(ModelFailure, match="can't be reached"):
        asyncio.run(ask(endpoint("http://127.0.0.1:9"), [user("?")]))
