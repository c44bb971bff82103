"""A model's answer gives a program, or a sentence that tells the model what is wrong. Nothing else."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.mind.reply import AnswerRules, BadReply, ProposedProgram, read_reply
from autoresearch.propose.program.guard import static_guard
from autoresearch.task.program import source_digest
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
BAD = {
    "nothing": ("", "no SEARCH/REPLACE block"),
    "words": ("I would raise the learning rate.", "no SEARCH/REPLACE block"),
    "lines that are not there": (HEAD + block("LR = 0.1", "LR = 0.2"), "nearest line of the program is “LR = 0.01"),
    "lines in another order": (HEAD + block("DEPTH = 4\nimport math", "x = 1"), "not in this order"),
    "lines that are there twice": (
        HEAD + block("        layers.append(width)", "x = 1"), "occur 2 times, first in lines 10 and 11",
    ),
    "an empty SEARCH": (HEAD + block("", "x = 1"), "SEARCH part of block 1 is empty"),
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
    "a unified diff": (
        f"{HEAD}```diff\n--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-LR = 0.01\n+LR = 0.02\n```\n", "less than half",
    ),
    "no fields": (RATE, "neither a line TITLE:"),
    "a second block that is wrong": (HEAD + RATE + block("WIDTH = 4", "WIDTH = 5"), "block 2 are not in the program"),
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
    assert change.form == ("whole" if "whole" in name else "blocks")


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
ODD = ("\n", "\r\n", "\0", "\ud800", "\x1b[2J")
pieces = st.sampled_from([*MARKS, *FIELDS, *CODE, *ODD])


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
