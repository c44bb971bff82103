"""Each attack by the turns of a dialogue gets through a hole of its kind, and not through the same without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.attack.judging import judge
from autoresearch.run.attack.rehearsal import Turn, printed_value, talk
from autoresearch.run.attack.table import ATTACKS
from autoresearch.run.attack.target import Loot, Target, margin_of
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.run.attack.planted import SQUARES, build, squares

PIPES = SQUARES.partition("for line")[0] + "import random\n"
EVALUATOR = f'{PIPES}dice = random.Random(int(os.environ["AUTORESEARCH_SEED"]))\n'


@dataclass(frozen=True)
class Dialogue:
    """An evaluator with a hole, what closes it, and a program that does honest work."""

    evaluator: str
    mend: tuple[str, str]
    program: str
    metric: str = "seconds"
    direction: str = "minimize"


CLOCK = """\
took = []
for number in dice.sample(range(99), 4):
    begun = time.perf_counter()
    print(number, file=write, flush=True)
    FIRST
    took.append(time.perf_counter() - begun)
    SECOND
print("seconds:", sorted(took)[1])
"""
DIALOGUES = {
    "answers-from-before": Dialogue(
        CLOCK.replace("dice", "random.Random(3)").replace("FIRST", "assert int(read.readline()) == number ** 2"),
        ("random.Random(3).sample", "dice.sample"),
        SQUARES,
    ),
    "says-it-before-the-work": Dialogue(
        CLOCK.replace("FIRST", 'assert read.readline() == "packed\\n"').replace(
            "SECOND", "assert int(read.readline()) == number ** 2"
        ),
        ("    took.append(time.perf_counter() - begun)\n    assert int(read.readline()) == number ** 2\n",
         "    assert int(read.readline()) == number ** 2\n    took.append(time.perf_counter() - begun)\n"),
        SQUARES.replace("    print(", '    print("packed", file=write)\n    print('),
    ),
    "begins-again": Dialogue(
        """\
left = won = 0
for _ in range(300):
    word = read.readline().strip()
    if word == "new":
        left = 5
    elif word == "dig" and left:
        left, won = left - 1, won + dice.randrange(9)
    else:
        break
    print(left, file=write, flush=True)
print("gold:", won)
""",
        ("        left = 5", "        left = 0 if _ else 5"),
        f"{PIPES}word = 'new'\nwhile word:\n    print(word, file=write, flush=True)\n"
        "    word = 'dig' if int(read.readline()) else ''\n",
        "gold", "maximize",
    ),
    "reads-ahead": Dialogue(
        """\
tides = [dice.gauss(0, 3) for _ in range(40)]
for at, tide in enumerate(tides):
    print("tide", at, tide, file=write, flush=True)
print("mae:", sum(abs(float(read.readline()) - tide) for tide in tides[1:]) / 39)
""",
        ("""\
    print("tide", at, tide, file=write, flush=True)
print("mae:", sum(abs(float(read.readline()) - tide) for tide in tides[1:]) / 39)
""", """\
    print("tide", at, tide, file=write, flush=True)
    tides[at] = float(read.readline()) - (tides[at + 1] if at < 39 else 0)
print("mae:", sum(map(abs, tides[:39])) / 39)
"""),
        f"{PIPES}for line in read:\n    print(0.5, file=write, flush=True)\n",
        "mae",
    ),
    "copies-from-the-question": Dialogue(
        """\
off = 0
for at in range(30):
    weight = dice.randrange(90)
    print(f"id {at}: looks like {weight + dice.gauss(0, 9):.1f}, is {weight}", file=write, flush=True)
    answer = read.readline().split()
    assert answer[0] == str(at)
    off += abs(float(answer[1]) - weight)
print("mae:", off / 30)
""",
        (", is {weight}", ""),
        f"{PIPES}for line in read:\n    words = line.replace(':', '').replace(',', '').split()\n"
        "    print(words[1], words[4], file=write, flush=True)\n",
        "mae",
    ),
}  # fmt: skip


def carried_out(folder: Path, files: Mapping[str, str], seed: int) -> tuple[list[Turn], str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    evaluator, program = ([sys.executable, str(folder / name)] for name in ("evaluate.py", "solve.py"))
    return talk(evaluator, program, {**os.environ, "AUTORESEARCH_SEED": str(seed)}, 20.0)


@pytest.mark.parametrize("is_planted", [True, False], ids=["planted", "sound"])
@pytest.mark.parametrize("name", DIALOGUES)
def test_a_dialogue_falls_to_the_attack_of_its_kind_and_to_nothing_without_the_hole(
    tmp_path: Path, name: str, is_planted: bool
) -> None:
    dialogue = DIALOGUES[name]
    text = EVALUATOR + dialogue.evaluator.replace("    SECOND\n", "")
    assert text.count(dialogue.mend[0]) == 1
    text = text if is_planted else text.replace(*dialogue.mend)
    planted = replace(
        squares("range(5)"), evaluator=text, more={"solve.py": dialogue.program}, metric=dialogue.metric,
        direction=dialogue.direction,
    )  # fmt: skip
    task = load_task(build(tmp_path / "task", planted))
    turns, _ = carried_out(tmp_path / "task", {}, 1)
    honest = printed_value(dialogue.metric, carried_out(tmp_path / "task", {}, 2)[1])
    assert honest is not None
    target = Target(task, honest, 0.01, margin_of(task, honest, 0.01), artifact=b"x", loot=Loot(dialogue=turns))

    attempts = next(attack for attack in ATTACKS if attack.name == name).tries(target)

    through = []
    for attempt in attempts if not isinstance(attempts, str) else ():
        value = printed_value(dialogue.metric, carried_out(tmp_path / "task", attempt.program, 2)[1])
        outcome = RunOutcome(status=RunStatus.OK if value is not None else RunStatus.CRASHED, value=value, reason="")
        through.append(judge(target, attempt, outcome).through)
    assert any(through) == is_planted
    assert through or not is_planted


def test_a_word_brings_a_program_to_its_beginning_where_it_does_not_speak_first(tmp_path: Path) -> None:
    task = load_task(build(tmp_path / "task", squares("range(5)")))
    evaluator = b'if word == "again" or word == "7": pass\n'
    target = Target(msgspec.structs.replace(task, harness={"evaluate.py": evaluator}), 1.0, 0.0, 0.0)

    def words(turn: Turn) -> list[str]:
        attack = next(attack for attack in ATTACKS if attack.name == "begins-again")
        attempts = attack.tries(replace(target, loot=Loot(dialogue=[turn])))
        return [] if isinstance(attempts, str) else [attempt.note for attempt in attempts]

    assert words(("", "7\n")) == [""]
    assert words(("left 3\n", "7\n")) == ["again\\n"]
