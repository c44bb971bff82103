"""A model's answer gives a program, or a sentence that tells the model what is wrong. Nothing else."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.mind.reply import AnswerRules, BadReply, ModelRefusal, ProposedProgram, read_reply
from autoresearch.propose.program.guard import static_guard
from autoresearch.task.program import join_files, source_digest, split_program
from tests.propose.conftest import NAMES, TRAIN

PARENT = """\
import math

LR = 0.01  # 0.001 .. 0.1
DEPTH = 4


def build(width):
    layers = []
    for _ in range(DEPTH):
        layers.append(width)
        layers.append(width)
    return layers


def loss(x):
    if x > 0:
        return math.log(x)
    return 0.0
"""
RULES = AnswerRules(parent=PARENT)
HEAD = "TITLE: LR 0.01 -> 0.02\nHYPOTHESIS: faster at the start\nEXPECT: 1.15\n"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


RATE = block("LR = 0.01  # 0.001 .. 0.1", "LR = 0.02  # 0.001 .. 0.1")
FASTER = PARENT.replace("LR = 0.01", "LR = 0.02")

GOOD = {
    "as asked": (HEAD + RATE, FASTER),
    "with Windows line ends": ((HEAD + RATE).replace("\n", "\r\n"), FASTER),
    "with words around it": (f"Sure! Here is one idea.\n\n{HEAD}\n{RATE}\nGood luck!", FASTER),
    "in a code fence": (f"{HEAD}```python\n{RATE}```\n", FASTER),
    "all of it in a code fence": (f"```\n{HEAD}{RATE}```\n", FASTER),
    "with bold fields": (HEAD.replace("TITLE:", "**TITLE:**").replace("EXPECT:", "- **Expect**:") + RATE, FASTER),
    "with the file's name above": (f"{HEAD}train.py\n{RATE}", FASTER),
    "with a path to the file": (f"{HEAD}### `experiments/train.py`\n{RATE}", FASTER),
    "after a thought with a draft": (f"<think>\n{block('nothing', 'x')}</think>\n{HEAD}{RATE}", FASTER),
    "with spaces at the end of a line": (
        HEAD + block("LR = 0.01  # 0.001 .. 0.1   ", "LR = 0.02  # 0.001 .. 0.1"), FASTER,
    ),
    "with empty lines around the block": (
        HEAD + block("\nLR = 0.01  # 0.001 .. 0.1\n", "LR = 0.02  # 0.001 .. 0.1\n"), FASTER,
    ),
    "with longer marks": (HEAD + RATE.replace("<<<<<<<", "<<<<<<<<").replace(">>>>>>>", ">>>>>"), FASTER),
    "without indentation": (
        HEAD + block("if x > 0:\n    return math.log(x)", "if x > 1:\n    return math.log(x)"),
        PARENT.replace("x > 0", "x > 1"),
    ),
    "with two blocks": (HEAD + RATE + block("DEPTH = 4", "DEPTH = 5"), FASTER.replace("DEPTH = 4", "DEPTH = 5")),
    "that takes lines out": (
        HEAD + block("        layers.append(width)\n    return layers", "    return layers"),
        PARENT.replace("        layers.append(width)\n    return", "    return"),
    ),
    "the whole file": (f"{HEAD}```python\n{FASTER}```\n", FASTER),
    "the whole file in waves": (f"{HEAD}~~~\n{FASTER}~~~\n", FASTER),
}  # fmt: skip
DIFF = """\
 import math

-LR = 0.01  # 0.001 .. 0.1
+LR = 0.02  # 0.001 .. 0.1
 DEPTH = 4
"""
DEEPER = FASTER.replace("        layers.append(width)\n    return", "        layers.append(2 * width)\n    return")
SECOND = """\
@@ -8,4 +8,4 @@ def build(width):
         layers.append(width)
-        layers.append(width)
+        layers.append(2 * width)
     return layers
"""
CALL = {"path": "train.py", "old_str": "LR = 0.01 ", "new_str": "LR = 0.02 "}
JSON_FIELDS = {"title": "LR 0.01 -> 0.02", "hypothesis": "faster at the start", "expect": 1.15}


def fenced(text: str, mark: str = "") -> str:
    return f"```{mark}\n{text}```\n"


# What models answer with that were trained on other forms than the one that is asked for.
OTHER_FORMS = {
    "a diff": (HEAD + fenced(f"--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,4 @@\n{DIFF}", "diff"), FASTER),
    "a diff without prefixes": (HEAD + fenced(f"--- train.py\n+++ train.py\n@@ -1,4 +1,4 @@\n{DIFF}", "diff"), FASTER),
    "a diff of git": (
        HEAD + fenced(
            f"diff --git a/train.py b/train.py\nindex 83db48f..bf269f4 100644\n--- a/train.py\n+++ b/train.py\n"
            f"@@ -1,4 +1,4 @@\n{DIFF}", "patch",
        ), FASTER,
    ),
    "a diff with wrong line numbers": (
        HEAD + fenced(f"--- a/train.py\n+++ b/train.py\n@@ -77,9 +70,1 @@\n{DIFF}"), FASTER,
    ),
    "a diff without line numbers": (HEAD + fenced(f"@@ ... @@\n{DIFF}", "diff"), FASTER),
    "a diff without a head": (HEAD + fenced(DIFF, "diff"), FASTER),
    "a diff with two hunks": (
        HEAD + fenced(f"--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,4 @@\n{DIFF}{SECOND}", "diff"), DEEPER,
    ),
    "a diff in no fence": (f"Here it is:\n\n--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,4 @@\n{DIFF}\n{HEAD}", FASTER),
    "a diff with words behind it": (
        f"{HEAD}\n--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n{DIFF}\nGood luck!", FASTER,
    ),
    "a diff whose context lost its marks": (
        HEAD + fenced("@@ -3,2 +3,2 @@\n" + DIFF.replace("\n ", "\n"), "diff"), FASTER,
    ),
    "a diff that finds its place by its number": (
        HEAD + fenced("@@ -11 +11 @@\n-        layers.append(width)\n+        layers.append(2 * width)\n", "diff"),
        PARENT.replace("        layers.append(width)\n    return", "        layers.append(2 * width)\n    return"),
    ),
    "a diff that only adds": (
        HEAD + fenced("@@ -3,2 +3,3 @@\n DEPTH = 4\n+WIDTH = 8\n \n", "diff"),
        PARENT.replace("DEPTH = 4\n", "DEPTH = 4\nWIDTH = 8\n"),
    ),
    "a patch of an agent": (
        f"{HEAD}*** Begin Patch\n*** Update File: train.py\n@@ DEPTH\n{DIFF}*** End Patch\n", FASTER,
    ),
    "JSON": (json.dumps({**JSON_FIELDS, "edits": [{"search": "LR = 0.01", "replace": "LR = 0.02"}]}), FASTER),
    "JSON in a fence": (
        HEAD + fenced(json.dumps([{"file": "train.py", "old": "LR = 0.01", "new": "LR = 0.02"}], indent=1), "json"),
        FASTER,
    ),
    "JSON with line ends in its texts": (
        HEAD + '{"old_string": "import math\n\nLR = 0.01 ", "new_string": "import math\n\nLR = 0.02 "}', FASTER,
    ),
    "JSON with lists of lines": (
        HEAD + json.dumps({"search": ["", "LR = 0.01  # 0.001 .. 0.1"], "replace": ["", "LR = 0.02  # 0.001 .. 0.1"]}),
        FASTER,
    ),
    "JSON with the whole program": (json.dumps({**JSON_FIELDS, "program": FASTER}), FASTER),
    "JSON with the file by its name": (json.dumps({**JSON_FIELDS, "files": {"train.py": FASTER}}), FASTER),
    "JSON with a diff": (json.dumps({**JSON_FIELDS, "diff": f"@@ -1,4 +1,4 @@\n{DIFF}"}), FASTER),
    "a call as OpenAI has it": (
        HEAD + json.dumps({"tool_calls": [{"function": {"name": "str_replace", "arguments": json.dumps(CALL)}}]}),
        FASTER,
    ),
    "a call as Anthropic has it": (
        HEAD + json.dumps({"type": "tool_use", "id": "t1", "name": "str_replace_based_edit_tool", "input": CALL}),
        FASTER,
    ),
    "a call between tags": (
        f"{HEAD}<tool_call>\n{json.dumps({'name': 'edit', 'arguments': CALL})}\n</tool_call>", FASTER,
    ),
    "a call in tags": (
        HEAD + '<function_calls>\n<invoke name="edit">\n<parameter name="old_str">LR = 0.01 </parameter>\n'
        '<parameter name="new_str">LR = 0.02 </parameter>\n</invoke>', FASTER,
    ),
    "a call in short tags": (
        f"{HEAD}<function=edit>\n<parameter=old_str>\nLR = 0.01  # 0.001 .. 0.1\n</parameter>\n"
        "<parameter=new_str>\nLR = 0.02  # 0.001 .. 0.1\n</parameter>\n</function>", FASTER,
    ),
    "a call that writes the file": (
        HEAD + json.dumps({"name": "write_file", "arguments": {"file_path": "/repo/train.py", "content": FASTER}}),
        FASTER,
    ),
    "the whole file without a fence": (HEAD + FASTER, FASTER),
    "the whole file beside a snippet": (
        f"{HEAD}First:\n{fenced('LR = 0.02' + chr(10), 'python')}All of it:\n{fenced(FASTER)}", FASTER,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_an_answer_in_another_form_becomes_the_same_program(name: str) -> None:
    answer, program = OTHER_FORMS[name]
    change = read_reply(answer, RULES)
    assert change.source == program
    assert (change.title, change.hypothesis, change.expected) == ("LR 0.01 -> 0.02", "faster at the start", 1.15)


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I cannot assist with this request.",
    "I am unable to modify code that may be harmful.",
    "I won’t be able to help with that request, since it could be unsafe.",
    "As an AI model, I must decline.",
    "That is against our policies.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_in_words_is_one(answer: str) -> None:
    with pytest.raises(ModelRefusal, match="it refused: “"):
        read_reply(answer, RULES)


@pytest.mark.parametrize(
    "answer",
    [
        "I can't find the line LR = 0.1.",
        "The rate can't be larger than 0.1, so I would add a warm-up.",
        "I would try 0.02.",
    ],
)
def test_words_without_a_change_are_no_refusal(answer: str) -> None:
    with pytest.raises(BadReply) as refused:
        read_reply(answer, RULES)
    assert not isinstance(refused.value, ModelRefusal)


def test_a_diff_of_several_files_finds_each_of_them() -> None:
    parent = join_files({"train.py": "import model\nX = 1\n", "model.py": "X = 1\nY = 2\n"})
    rules = AnswerRules(parent=parent, files=frozenset({"train.py", "model.py"}))
    answer = f"{HEAD}```diff\n--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-X = 1\n+X = 3\n```\n"
    assert split_program(read_reply(answer, rules).source)["model.py"] == "X = 3\nY = 2\n"
    whole = f"{HEAD}model.py\n```python\nX = 4\n```\n"
    assert split_program(read_reply(whole, rules).source)["model.py"] == "X = 4\n"


BAD = {
    "nothing": ("", "no SEARCH/REPLACE block"),
    "words": ("I would raise the learning rate.", "no SEARCH/REPLACE block"),
    "lines that are not there": (HEAD + block("LR = 0.1", "LR = 0.2"), "nearest line of the program is “LR = 0.01"),
    "lines in another order": (HEAD + block("DEPTH = 4\nimport math", "x = 1"), "not in this order"),
    "lines that are there twice": (
        HEAD + block("        layers.append(width)", "x = 1"), "occur 2 times, first in lines 10 and 11",
    ),
    "an empty SEARCH": (HEAD + block("", "x = 1"), "Block 1 looks for no line"),
    "no middle": (f"{HEAD}<<<<<<< SEARCH\nDEPTH = 4\n>>>>>>> REPLACE\n", "no line ======="),
    "no end": (f"{HEAD}<<<<<<< SEARCH\nDEPTH = 4\n=======\nDEPTH = 5\n", "no line >>>>>>> REPLACE"),
    "a block in a block": (f"{HEAD}<<<<<<< SEARCH\nDEPTH = 4\n{RATE}", "no line ======="),
    "nothing changed": (HEAD + block("DEPTH = 4", "DEPTH = 4"), "Nothing changed"),
    "only a comment changed": (HEAD + block("DEPTH = 4", "DEPTH = 4  # layers"), "Nothing changed"),
    "no Python": (HEAD + block("DEPTH = 4", "DEPTH = ("), "not be valid after the change: line 4"),
    "a file that is too large": (HEAD + block("DEPTH = 4", "DEPTH = 5\nT = '" + "x" * 70_000 + "'"), "65536 bytes"),
    "another file by a line": (f"{HEAD}prepare.py\n{RATE}", "changes prepare.py, but only train.py"),
    "another file by a fence": (f"{HEAD}```python title=\"task.toml\"\n{FASTER}```\n", "changes task.toml"),
    "another file in a fence": (f"{HEAD}```python\nFILE: src/model.py\n{RATE}```\n", "changes src/model.py"),
    "a part in a fence": (f"{HEAD}```python\nLR = 0.02\n```\n", "less than half as long"),
    "two fences": (f"{HEAD}```python\n{FASTER}```\n\n```python\n{PARENT}```\n", "2 code fences"),
    "a diff of lines that are not there": (
        f"{HEAD}```diff\n--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-LR = 0.1\n+LR = 0.02\n```\n",
        "a diff whose context is not in the program: “LR = 0.1” is no line of it; the nearest line of the program is",
    ),
    "a diff that fits twice": (
        f"{HEAD}@@ -99 +99 @@\n-        layers.append(width)\n+        layers.append(2 * width)\n",
        "hunk 1 of the diff looks for occur 2 times, first in lines 10 and 11",
    ),
    "a diff without context": (f"{HEAD}```diff\n@@ -3,0 +4 @@\n+WIDTH = 4\n```\n", "looks for no line"),
    "a diff of another file": (
        f"{HEAD}```diff\n--- a/prepare.py\n+++ b/prepare.py\n@@ -1 +1 @@\n-import math\n+import os\n```\n",
        "changes prepare.py, but only train.py",
    ),
    "a diff that makes a file": (
        f"{HEAD}--- /dev/null\n+++ b/layers.py\n@@ -0,0 +1 @@\n+X = 1\n", "changes layers.py, but only train.py",
    ),
    "JSON without edits": (HEAD + '{"LR": 0.02}\n', "JSON without “search” and “replace”"),
    "JSON with a part of a program": (HEAD + '{"program": "LR = 0.02\\nDEPTH = 4"}', "less than half as long"),
    "a call of another tool": (HEAD + '{"name": "bash", "arguments": {}}', "calls the tool bash, which is no edit"),
    "an edit of another file in JSON": (
        HEAD + '{"path": "prepare.py", "old_str": "DEPTH = 4", "new_str": "DEPTH = 5"}', "changes prepare.py",
    ),
    "JSON that breaks off": (HEAD + '{"edits": [{"search": "DEPTH = 4", "repl', "no SEARCH/REPLACE block"),
    "no fields": (RATE, "neither a line TITLE:"),
    "a second block that is wrong": (HEAD + RATE + block("WIDTH = 4", "WIDTH = 5"), "block 2 looks for are not in"),
    "too many blocks": (HEAD + RATE * 101, "more than 100 blocks"),
    "an endless answer": ("x" * ((1 << 20) + 1), "more than 1024 KiB"),
    "a lone surrogate": (HEAD + block("DEPTH = 4", "DEPTH = 5  # \udc80"), "can't be written as UTF-8"),
    "a null character": (HEAD + block("DEPTH = 4", "DEPTH = 5\0"), "not be valid"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_an_answer_becomes_a_program(name: str) -> None:
    answer, program = GOOD[name]
    change = read_reply(answer, RULES)
    assert change.source == program
    assert change.source_digest == source_digest(program)
    assert (change.title, change.hypothesis, change.expected) == ("LR 0.01 -> 0.02", "faster at the start", 1.15)


@pytest.mark.parametrize("name", BAD)
def test_an_answer_is_refused_with_a_sentence_for_the_model(name: str) -> None:
    answer, sentence = BAD[name]
    with pytest.raises(BadReply) as refused:
        read_reply(answer, RULES)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 600
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "title", "hypothesis", "expected"),
    [
        ("TITLE: a\nHYPOTHESIS: b\n  and c\n\nnot this\n", "a", "b and c", None),
        ("HYPOTHESIS: only this\nEXPECT: about -1.5e-2 at best\n", "only this", "only this", -0.015),
        ("TITLE: \x1b[2Jred\nEXPECT: nan\n", "�[2Jred", "�[2Jred", None),
        (f"TITLE: {'long ' * 30}\nEXPECT: 1e999\n", f"{'long ' * 11}long…", None, None),
    ],
)
def test_fields_are_made_fit_for_a_record(
    fields: str, title: str, hypothesis: str | None, expected: float | None
) -> None:
    change = read_reply(fields + RATE, RULES)
    assert (change.title, change.expected) == (title, expected)
    assert hypothesis is None or change.hypothesis == hypothesis
    assert len(change.title) <= 60


def test_a_program_that_is_known_is_refused_with_its_result() -> None:
    rules = AnswerRules(
        parent=PARENT, past_result=lambda digest: "g3xk gave 1.2" if digest == source_digest(FASTER) else ""
    )
    with pytest.raises(BadReply, match=r"g3xk gave 1\.2"):
        read_reply(HEAD + RATE.replace("0.02", "2e-2"), rules)
    assert read_reply(HEAD + RATE.replace("0.02", "0.03"), rules)


def test_the_guard_speaks_only_where_the_task_has_one() -> None:
    opened = block("LR = 0.003", "LR = 0.003\nopen('x')")
    line = next(line for line in TRAIN.splitlines() if line.startswith("LR ="))
    answer = HEAD + opened.replace("LR = 0.003", line)
    assert read_reply(answer, AnswerRules(parent=TRAIN))
    with pytest.raises(BadReply, match="It uses open"):
        read_reply(answer, AnswerRules(parent=TRAIN, guard=partial(static_guard, names=NAMES)))


def test_a_program_of_several_files_may_name_each_of_them() -> None:
    rules = AnswerRules(parent=PARENT, files=frozenset({"train.py", "model.py"}))
    assert read_reply(f"{HEAD}model.py\n{RATE}", rules)
    with pytest.raises(BadReply, match=r"only model.py, train.py"):
        read_reply(f"{HEAD}other.py\n{RATE}", rules)


MARKS = ("<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "```\n", "```python\n", "~~~~\n", "</think>")
FIELDS = ("TITLE: a\n", "HYPOTHESIS: b\n", "EXPECT: 1\n", "train.py\n", "prepare.py\n")
CODE = ("DEPTH = 4\n", "DEPTH = 5\n", "    return 0.0\n", "x = (\n", PARENT, FASTER)
FORMS = (
    "--- a/train.py\n",
    "+++ b/train.py\n",
    "@@ -1,4 +1,4 @@\n",
    "*** Begin Patch\n",
    "-DEPTH = 4\n",
    "+DEPTH = 5\n",
    '{"search": "DEPTH = 4", ',
    '"replace": "DEPTH = 5"}\n',
    "{",
    "[",
    "<invoke",
    '<parameter name="x">',
)
ODD = ("\n", "\r\n", "\0", "\ud800", "\x1b[2J")
pieces = st.sampled_from([*MARKS, *FIELDS, *CODE, *FORMS, *ODD])


def read(answer: str) -> ProposedProgram | str:
    try:
        return read_reply(answer, RULES)
    except BadReply as refused:
        return str(refused)


@settings(max_examples=100)
@given(st.lists(pieces | st.text(max_size=20), max_size=25).map("".join))
def test_whatever_a_model_says_it_is_a_program_or_a_sentence(answer: str) -> None:
    outcome = read(answer)
    if isinstance(outcome, ProposedProgram):
        assert source_digest(outcome.source) == outcome.source_digest != source_digest(PARENT)
        assert outcome.title
    else:
        assert outcome.endswith(".")
        assert "\n" not in outcome


def test_a_change_of_a_seed_alone_is_refused_with_its_reason() -> None:
    parent = f"{PARENT}\nSEED = 1337\n"
    edit = block("SEED = 1337", "SEED = 4")
    with pytest.raises(BadReply, match="Only a seed changed"):
        read_reply(HEAD + edit, AnswerRules(parent=parent))
    assert read_reply(HEAD + edit + RATE, AnswerRules(parent=parent))
