"""The public task of the how-to, with a stand-in for what is cloned: a machine that adds one to numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, played, steps

PAGE = ROOT / "docs" / "how-to" / "a-public-task.md"
PROBLEM = """
import random


class Tree:
    @staticmethod
    def generate(height):
        return Tree()


class Input:
    @staticmethod
    def generate(tree, size, rounds):
        return [random.randint(0, 9) for _ in range(size)]


def build_mem_image(tree, batch):
    return [0, 0, 0, 0, 0, 0, 7, *batch]


def reference_kernel2(memory):
    yield [*memory[:7], *(number + 1 for number in memory[7:])]


class Machine:
    def __init__(self, memory, program, debug):
        self.mem, self.program, self.cycle = list(memory), program, 0

    def run(self):
        for bundle in self.program:
            self.cycle += 1
            for (place,) in bundle["add"]:
                self.mem[place] += 1
"""
KERNEL = """
class KernelBuilder:
    def build_kernel(self, height, nodes, size, rounds):
        wide = 1
        self.instrs = [{"add": [(7 + place + i,) for i in range(wide)]} for place in range(0, size, wide)]
"""


@pytest.mark.slow
def test_the_public_task_is_measured_outside_the_program(tmp_path: Path) -> None:
    (tmp_path / "takehome" / "tests").mkdir(parents=True)
    (tmp_path / "takehome" / "tests" / "frozen_problem.py").write_text(PROBLEM)
    (tmp_path / "takehome" / "perf_takehome.py").write_text(KERNEL)
    program = [step for step in steps(PAGE.read_text()) if not step.startswith("git clone")]
    program += [
        "autoresearch best --task kernel | grep '256.0000 reported'",
        "sed -i 's/wide = 1/wide = 8/' kernel/perf_takehome.py",
        "autoresearch run kernel --hypothesis wider 2>&1 | grep 'keep: better than its parent: 32.0000,'",
        "sed -i 's/size, wide/size - 8, wide/' kernel/perf_takehome.py",
        "(autoresearch run kernel --hypothesis 'less is enough' || true) | grep 'computes something else'",
    ]
    assert played(program, tmp_path) == program
