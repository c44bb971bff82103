"""A model that proposes: what it may ask before it answers, what goes with each request, what it is told of its ideas.

Real HTTP to a server that answers by a script; a real log, without a daemon.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from autoresearch_daemon.minds.proposing import Occasion, propose_change

from autoresearch.ask.acts.settings import check_setting
from autoresearch.errors import UsageError
from autoresearch.log.local import ModelLedger
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.search.sharing import LLM
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Proposer
from autoresearch.run.experiment import Plan
from autoresearch.settings import LanguageModel, Settings
from tests.daemon.scripted_model import (
    Answer,
    Script,
    ScriptedModel,
    anthropic,
    events,
    in_turn,
    ollama,
    openai,
    serving,
)
from tests.daemon.toy import TRAIN
from tests.propose.prompts.story import ME, Story

CHANGE = """TITLE: X 0.9 -> 0.5
HYPOTHESIS: nearer to the lowest point
EXPECT: 0.25
PLAN: if this helps try 0.4, if not try Y
<<<<<<< SEARCH
X = 0.9  # float [0.0, 1.0]
=======
X = 0.5  # float [0.0, 1.0]
>>>>>>> REPLACE
"""


class Bench:
    """A log with a baseline, and a model that is asked for changes of it."""

    def __init__(self, folder: Path) -> None:
        self.story = Story.at(folder)
        self.folder = folder
        self.first = self.story.run(0.61, TRAIN, title="the baseline", curve=[3.0, 2.0, 1.0, 0.7, 0.61])

    def ask(self, model: ScriptedModel, **settings: Any) -> Plan | str:
        made = Settings(llm=LanguageModel(model="some-model", url=model.url, seconds=20, **settings))
        occasion = Occasion(
            self.story.task, made, LLM, ME.public, self.folder / "local.sqlite", self.folder, lambda: False
        )
        return propose_change(self.story.log, self.story.blobs, occasion, Draws(b"seed"))

    def ask_by(self, script: Script, **settings: Any) -> tuple[Plan | str, ScriptedModel]:
        with serving(script) as model:
            return self.ask(model, **settings), model


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.story.close()


def openai_call(name: str, arguments: object) -> Answer:
    """A call in a stream, its arguments in pieces."""
    text = json.dumps(arguments)
    call = {"index": 0, "id": "call_7", "function": {"name": name, "arguments": text[:4]}}
    rest = {"index": 0, "function": {"arguments": text[4:]}}
    return events(
        *({"choices": [{"delta": {"tool_calls": [part]}}]} for part in (call, rest)),
        {
            "choices": [{"delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        },
    )


def anthropic_call(name: str, arguments: object) -> Answer:
    return events(
        {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "sig"}},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t1", "name": name, "input": {}}},
        {"type": "content_block_delta", "delta": {"partial_json": json.dumps(arguments)}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        end="",
    )  # fmt: skip


def ollama_call(name: str, arguments: object) -> Answer:
    call = {"message": {"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}, "done": False}
    lines = [call, {"message": {}, "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 1}]
    return Answer([json.dumps(line).encode() + b"\n" for line in lines], kind="application/x-ndjson")


Call = Callable[[str, object], Answer]
APIS: dict[str, tuple[Call, Callable[[str], Answer]]] = {
    "openai": (openai_call, openai),
    "anthropic": (anthropic_call, anthropic),
    "ollama": (ollama_call, ollama),
}


@pytest.mark.parametrize("api", APIS)
def test_a_model_asks_and_then_answers(bench: Bench, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "some-key")
    call, answer = APIS[api]
    plan, model = bench.ask_by(
        in_turn(call("read_run", {"run": short_id(bench.first.id)}), call("curves", {"runs": ["@"]}), answer(CHANGE)),
        api=api,
    )
    assert isinstance(plan, Plan)
    assert (plan.title, plan.expected) == ("X 0.9 -> 0.5", 0.25)
    assert {tool.get("name") or tool["function"]["name"] for tool in model.requests[0]["tools"]} == {
        "read_run", "diff", "effects", "suggestions", "curves",
    }  # fmt: skip
    conversation = json.dumps(model.requests[2]["messages"])
    assert "the baseline" in conversation
    assert "3 2 1 0.7 0.61" in conversation
    if api == "anthropic":
        turn = model.requests[1]["messages"][1]["content"]
        assert turn[0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}
        assert model.requests[1]["messages"][2]["content"][0]["tool_use_id"] == "t1"


QUESTIONS: list[tuple[str, object, str]] = [
    ("read_run", {}, '"value": 0.61'),
    ("read_run", {"run": "@", "part": "source"}, "float [0.0, 1.0]"),
    ("read_run", {"run": "zzzz"}, "is not an id"),
    ("diff", {"old": "@", "new": "@"}, "old"),
    ("effects", {}, "[]"),
    ("suggestions", {"count": 2}, "title"),
    ("curves", {"runs": "@"}, "0.61"),
    ("read_run", ["@"], "can't be called"),
    ("suggestions", {"count": "many"}, "can't be called"),
]


@pytest.mark.parametrize(("name", "arguments", "part"), QUESTIONS)
def test_each_question_is_answered_or_told_why_not(bench: Bench, name: str, arguments: object, part: str) -> None:
    plan, model = bench.ask_by(in_turn(openai_call(name, arguments), openai(CHANGE)))
    assert isinstance(plan, Plan)
    assert part in model.requests[1]["messages"][2]["content"]


def test_questions_are_bounded_in_number_and_in_bytes(bench: Bench) -> None:
    reason, model = bench.ask_by(in_turn(openai_call("effects", {})), tool_calls=2)
    assert "it asked and gave no change" in str(reason)
    assert len(model.requests) == 4
    assert "no more questions" in model.requests[3]["messages"][-1]["content"]
    with ModelLedger(bench.folder / "local.sqlite") as ledger:
        assert ledger.spent(LLM, since_ms=0).tokens == 40


def test_bytes_of_answers_are_bounded(bench: Bench) -> None:
    bench.story.run(0.5, TRAIN.replace("0.9", "0.7") + "# " + "long " * 2000, title="long")
    source = openai_call("read_run", {"run": "@", "part": "source"})
    plan, model = bench.ask_by(in_turn(source, source, openai(CHANGE.replace("0.9", "0.7"))), tool_kib=4)
    assert isinstance(plan, Plan)
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert sum(map(len, results)) < 5000
    assert "no more questions" in results[-1]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (400, '{"error": "some-model does not support tools"}'),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, '{"error": {"message": "tools param requires --jinja flag"}}'),
        (422, '{"detail": "unknown field: functions"}'),
    ],
)
def test_a_server_without_tools_is_asked_without(bench: Bench, status: int, sentence: str) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return Answer(sentence.encode(), status=status) if "tools" in body else openai(CHANGE)

    plan, model = bench.ask_by(script)
    assert isinstance(plan, Plan)
    assert len(model.requests) == 2


def test_no_tools_are_offered_where_a_person_wants_none(bench: Bench) -> None:
    _, model = bench.ask_by(in_turn(openai(CHANGE)), tool_calls=0)
    assert "tools" not in model.requests[0]


@pytest.mark.parametrize("api", APIS)
def test_a_call_of_a_tool_that_it_learned_elsewhere_is_its_change(
    bench: Bench, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "some-key")
    edit = {"path": "train.py", "old_str": "X = 0.9", "new_str": "X = 0.4", "title": "nearer"}
    plan, model = bench.ask_by(in_turn(APIS[api][0]("str_replace_based_edit_tool", edit)), api=api)
    assert isinstance(plan, Plan), plan
    assert "X = 0.4" in plan.source
    assert len(model.requests) == 1


@pytest.mark.parametrize("index", [(0, 1), (0, 0)], ids=["counted", "with one index"])
def test_several_calls_at_once_are_answered_each(bench: Bench, index: tuple[int, int]) -> None:
    calls = [
        {"index": number, "id": f"call_{name}", "function": {"name": name, "arguments": "{}"}}
        for number, name in zip(index, ("effects", "read_run"), strict=True)
    ]
    script = in_turn(
        events({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}), openai(CHANGE)
    )
    plan, model = bench.ask_by(script)
    assert isinstance(plan, Plan)
    results = [message["tool_call_id"] for message in model.requests[1]["messages"] if message["role"] == "tool"]
    assert results == ["call_effects", "call_read_run"]


def test_a_call_that_is_no_edit_goes_back_with_the_reason(bench: Bench) -> None:
    plan, model = bench.ask_by(in_turn(openai_call("bash", {"command": "ls"}), openai(CHANGE)))
    assert isinstance(plan, Plan)
    last = model.requests[1]["messages"][-1]
    assert (last["role"], last["tool_call_id"]) == ("tool", "call_7")
    assert "calls the tool bash, which is no edit" in last["content"]


def test_a_refusal_in_words_costs_one_request(bench: Bench) -> None:
    reason, model = bench.ask_by(in_turn(openai("I'm sorry, but I can't help with that.")))
    assert reason == "some-model: it refused: “I'm sorry, but I can't help with that.”"
    assert len(model.requests) == 1


def test_a_stream_that_ends_with_done_alone_is_whole(bench: Bench) -> None:
    plan, _ = bench.ask_by(in_turn(events({"choices": [{"delta": {"content": CHANGE}}]})))
    assert isinstance(plan, Plan)


def test_further_fields_go_with_each_request_as_the_api_has_them(bench: Bench) -> None:
    fields = {"reasoning_effort": "high", "options": {"temperature": 0.3}}
    _, model = bench.ask_by(in_turn(ollama(CHANGE)), api="ollama", fields=json.dumps(fields))
    assert model.requests[0]["reasoning_effort"] == "high"
    assert model.requests[0]["options"]["temperature"] == 0.3
    assert model.requests[0]["options"]["num_ctx"] > 1000


@pytest.mark.parametrize("value", ["{", "[1]", '{"model": "other"}', '{"tools": []}', "high"])
def test_fields_that_are_none_are_refused_when_they_are_set(bench: Bench, value: str) -> None:
    with pytest.raises(UsageError, match=r"llm\.fields"):
        check_setting("llm.fields", value)
    reason, model = bench.ask_by(in_turn(openai(CHANGE)), fields=value)
    assert "llm.fields" in str(reason)
    assert model.requests == []


def test_the_next_prompt_says_what_came_of_the_last_ideas_and_has_the_plan(bench: Bench) -> None:
    plan, _ = bench.ask_by(in_turn(openai(CHANGE)))
    assert isinstance(plan, Plan)
    mine = Proposer(name="llm/some-model/improve")
    half = bench.story.run(
        0.609, plan.source, parent=bench.first, title=plan.title, expected=0.25, proposer=mine, genome={"X": 0.5}
    )
    bench.story.run(
        0.2, TRAIN.replace("0.9", "0.3"), parent=bench.first, title="X 0.9 -> 0.3", expected=0.2, proposer=mine
    )
    bench.story.run(
        None, TRAIN.replace("0.9", "7"), parent=half, title="too far", status="diverged", reason="not a number",
        expected=0.1, proposer=mine,
    )  # fmt: skip
    bench.story.run(
        0.3, TRAIN.replace("0.9", "0.31"), parent=bench.first, title="another's", proposer=Proposer(name="search")
    )
    _, model = bench.ask_by(in_turn(openai("I can't help with that.")))
    prompt = model.requests[0]["messages"][0]["content"]
    thread = prompt[prompt.index("## Your last ideas") : prompt.index("## Best programs")]
    assert "Your plan: if this helps try 0.4, if not try Y" in thread
    assert "too far: expected 0.1, it failed (diverged): not a number" in thread
    assert "X 0.9 -> 0.3: expected 0.2, gave 0.2; better than its parent" in thread
    assert "X 0.9 -> 0.5: expected 0.25, gave 0.609; within the noise of its parent" in thread
    assert "another's" not in thread
    assert "## Curves of the best programs" in prompt
    assert "3 2 1 0.7 0.61" in prompt
