"""An agent that works out an evaluation's seed knows its episodes. No search finds one, and one tells no other."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.project.child.messages import Conversation
from autoresearch.task.model import episode_seed

EPISODES = 6
ENVIRONMENT = """\
class Spied:
    def reset(self, *, seed=None, options=None):
        {check}
        with open("seeds.txt", "a") as file:
            file.write(f"{{seed}}\\n")
        return 0, {{}}

    def step(self, action):
        return 0, 1.0, True, False, {{}}
"""
INI = f"[environment.spied]\nclass_name = spied:Spied\npath = .\n\n[benchmark]\nepisodes = {EPISODES}\n"
# Each takes numbers of its own: Gymnasium's generators all, C's long 63 bits, numpy's old one 32.
CHECKS = {
    128: "import numpy; numpy.random.SeedSequence(seed)",
    63: "import ctypes, array; array.array('q', [seed])",
    32: "import numpy; numpy.random.RandomState(seed)",
}


def seeds_of(place: Path, seed: int, bits: int = 128) -> list[int]:
    """The seeds that an environment gets from the examiner of a project's task."""
    place.mkdir()
    (place / "spied.py").write_text(ENVIRONMENT.format(check=CHECKS[bits]))
    (place / "environment.ini").write_text(INI)
    (asks, question_writer), (hears, answers) = os.pipe(), os.pipe()
    variables = {"AUTORESEARCH_TALK_READ": str(hears), "AUTORESEARCH_TALK_WRITE": str(question_writer)}
    examiner = subprocess.Popen(
        [sys.executable, "-m", "autoresearch.project.inside", "examine"],
        cwd=place,
        env={**os.environ, **variables, "AUTORESEARCH_SEED": str(seed)},
        pass_fds=(hears, question_writer),
        stdout=subprocess.DEVNULL,
    )
    os.close(hears)
    os.close(question_writer)
    talk = Conversation(asks, answers)
    assert talk.receive()["episodes"] == EPISODES
    for _ in range(EPISODES):
        talk.receive()
        talk.send(0)
        talk.receive()
    assert examiner.wait(60) == 0
    return [int(line) for line in (place / "seeds.txt").read_text().split()]


@pytest.mark.slow
def test_seeds_of_episodes_are_beyond_search_and_one_tells_no_other(tmp_path: Path) -> None:
    first, second = (seeds_of(tmp_path / str(seed), seed) for seed in (2**40, 2**40 + 1))
    assert first == [episode_seed(2**40, number) for number in range(EPISODES)]
    assert all(2**96 < seed < 2**128 for seed in [*first, *second])
    assert all(abs(seed - other) > 2**96 for seed, other in itertools.combinations([*first, *second], 2))


@pytest.mark.slow
def test_a_large_seed_of_the_evaluator_is_not_shortened(tmp_path: Path) -> None:
    """All seeds with the same last 31 bits gave the same episodes."""
    assert seeds_of(tmp_path / "one", 5) != seeds_of(tmp_path / "other", 5 + 2**31)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [63, 32])
def test_an_environment_that_takes_smaller_numbers_gets_as_many_bits_as_it_takes(tmp_path: Path, bits: int) -> None:
    expected = [episode_seed(7, number) % 2**bits for number in range(EPISODES)]
    assert seeds_of(tmp_path / "task", 7, bits) == expected
