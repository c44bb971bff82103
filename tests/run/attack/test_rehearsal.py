"""What an attacker's program makes of a dialogue that is the same each time, and of answers in another writing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from autoresearch.run.attack.rehearsal import Turn, printed_value, rehearsed, talk
from autoresearch.run.attack.unpacking import decoded, unpacked

# It has a move of its own, says the last, and counts how often the other beats it.
GAME = """\
import os, sys
read = os.fdopen(int(os.environ["AUTORESEARCH_TALK_READ"]))
write = os.fdopen(int(os.environ["AUTORESEARCH_TALK_WRITE"]), "w")
beats, won, last = {"b": "a", "c": "b", "a": "c"}, 0, "none"
for move in "abcabbca":
    print(last, file=write, flush=True)
    won += beats[read.readline().strip()] == move
    last = move
print("won:", won)
"""
PLAYER = GAME.partition("beats")[0] + "for line in read:\n    print('b', file=write, flush=True)\n"


def test_a_program_that_plays_beforehand_answers_by_what_comes_next(tmp_path: Path) -> None:
    for name, text in (("game.py", GAME), ("player.py", PLAYER)):
        (tmp_path / name).write_text(text)
    game, player = ([sys.executable, str(tmp_path / name)] for name in ("game.py", "player.py"))

    turns, text = talk(game, player, dict(os.environ), 20.0)

    assert turns[:2] == [("none\n", "b\n"), ("a\n", "b\n")]
    assert (len(turns), printed_value("won", text)) == (8, 3.0)
    again, text = talk(game, [], dict(os.environ), 20.0, script=[(turn[0], "c\n") for turn in turns])
    assert (len(again), printed_value("won", text)) == (8, 3.0)

    def play(answers: list[str]) -> float | None:
        beaten = {"b": "a", "c": "b", "a": "c"}
        if any(answer.strip() not in beaten for answer in answers):
            return None
        return float(sum(beaten[answer.strip()] == move for answer, move in zip(answers, "abcabbca", strict=True)))

    answers = rehearsed(play, turns, ["c", "spam"], -1.0, 20.0)
    assert answers is not None
    assert play(answers) == 7.0 + (answers[-1] == "b\n"), "no question follows the last"


def test_numbers_are_answered_by_the_next_question_or_shaken() -> None:
    walk = [3.0, 4.5, 1.0, 8.0, 2.5]
    turns: list[Turn] = [(f"{at}\n", "0.5 0.5\n") for at in walk]

    def error(answers: list[str]) -> float | None:
        return sum(abs(float(a.split()[0]) - b) for a, b in zip(answers, [*walk[1:], 0.5], strict=True))

    answers = rehearsed(error, turns, [], 1.0, 20.0)
    assert answers is not None
    assert error(answers) == 0.0
    far = rehearsed(lambda answers: abs(float(answers[0].split()[-1]) - 70), turns, [], 1.0, 20.0)
    assert far is not None
    assert float(far[0].split()[-1]) > 0.5
    assert rehearsed(lambda _: 1.0, turns, [], 1.0, 20.0) is None, "nothing is better"
    assert rehearsed(lambda _: None, turns, [], 1.0, 20.0) is None, "it can't be played again"


@pytest.mark.parametrize("form", ["{1}", "{0}:{1}", "{0},{1}"])
@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_digests_of_answers_are_answers(form: str, kind: str) -> None:
    answers = ["cat", "dog", "dog", "cat", "cat"]
    digests = [hashlib.new(kind, form.format(at, each).encode()).hexdigest() for at, each in enumerate(answers)]

    assert decoded(digests, ["bird", "dog", "cat"]) == answers
    assert decoded(digests, ["bird", "dog"]) is None, "one of them is nobody's guess"


def test_answers_in_another_writing_and_in_packed_files_are_read(tmp_path: Path) -> None:
    assert decoded([base64.b64encode(str(at).encode()).decode() for at in (3, 1, 2)], []) == [3, 1, 2]
    assert decoded(["a cat", "a dog"], ["cat"]) is None
    assert decoded([1, 2, 3], [1]) is None
    zipped, tarred, base = io.BytesIO(), io.BytesIO(), tmp_path / "a.db"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a.csv", "1\n2\n")
    with tarfile.open(fileobj=tarred, mode="w:gz") as tar:
        member = tarfile.TarInfo("a.csv")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"1\n2\n"))
    with sqlite3.connect(base) as connection:
        connection.execute("create table labels (id, label)")
        connection.execute("insert into labels values (1, 'cat')")

    for name, content in (
        ("a.zip", zipped.getvalue()),
        ("a.tar.gz", tarred.getvalue()),
        ("a.csv.gz", gzip.compress(b"1\n2\n")),
    ):
        assert list(unpacked(name, content)) == [("a.csv", b"1\n2\n")]
    assert list(unpacked("a.db", base.read_bytes())) == [("labels.json", b'[{"id": 1, "label": "cat"}]')]
    assert list(unpacked("a.zip", b"no archive")) == []
