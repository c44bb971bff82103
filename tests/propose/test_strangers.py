"""The search works on programs that nobody wrote for it: a GPT in one file, a script with argparse, C++."""

from __future__ import annotations

import difflib
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import NothingToTry, SearchProblem, SearchProposal
from autoresearch.propose.search.search import Replication, propose
from autoresearch.task.printed import read_metric
from autoresearch.task.program import join_files, source_digest, split_program
from tests.propose.conftest import best_run, no_source, problem

STRANGERS = Path(__file__).parent / "strangers"


@dataclass(frozen=True)
class Stranger:
    """A program and what is expected of it: its ranges, and some names that stay as they are."""

    name: str
    ranges: dict[str, str]
    untouched: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return join_files({self.name: (STRANGERS / self.name).read_text(encoding="utf-8")})

    @property
    def problem(self) -> SearchProblem:
        return SearchProblem(b"task", self.source, "minimize", None, None, no_source)


GPT = Stranger(
    "gpt.py",
    {
        "GPTConfig.n_head": "one of 1 2 4 8 16",
        "GPTConfig.n_kv_head": "one of 1 2 4 8 16",
        "GPTConfig.n_embd": "one of 16 32 64 128 256",
        "GPTConfig.dropout": "0 .. 0.5",
        "GPTConfig.rope_theta": "2500 .. 4e+04 (log)",
        "DEPTH": "2 .. 8",
        "MLP_RATIO": "1 .. 16 (log)",
        "SOFTCAP": "4 .. 60 (log)",
        "TOTAL_BATCH_SIZE": "one of 256 512 1024 2048 4096",
        "DEVICE_BATCH_SIZE": "one of 2 4 8 16 32",
        "EMBEDDING_LR": "0.0002 .. 0.18 (log)",
        "MATRIX_LR": "0.0001 .. 0.01 (log)",
        "WEIGHT_DECAY": "0.002 .. 1 (log)",
        "ADAM_BETAS[0]": "one of 0.8 0.85 0.9 0.95 0.98",
        "ADAM_BETAS[1]": "one of 0.9 0.95 0.98 0.99 0.995 0.999",
        "WARMUP_RATIO": "0 .. 0.5",
        "WARMDOWN_RATIO": "0 .. 0.5",
        "FINAL_LR_FRAC": "0 .. 0.5",
    },
    # Sizes of the data, what is measured, a field that each call sets, a comment that says so.
    ("VOCAB_SIZE", "MAX_SEQ_LEN", "TIME_BUDGET", "SEED", "EVAL_BATCHES", "LOG_INTERVAL", "CPU_PEAK_FLOPS",
     "GPTConfig.sequence_len", "GPTConfig.vocab_size", "GPTConfig.n_layer", "GPTConfig.bias", "GRAD_CLIP"),
)  # fmt: skip
CLASSIFY = Stranger(
    "classify.py",
    {
        "defaults.momentum": "one of 0.0 0.5 0.8 0.9 0.95 0.98 0.99",
        "--lr": "0.0001 .. 0.09 (log)",
        "--alpha": "0.0003333 .. 0.3 (log)",
        "--hidden": "one of 4 8 16 32 64",
        "--bandwidth": "0.1 .. 10 (log)",
        "--batch-size": "one of 8 16 32 64 128",
        "--power": "one of 1 2",
        "--kernel": "one of rbf cauchy",
    },
    ("NOISE", "defaults.random_state", "defaults.print_every", "palette.red", "palette.blue", "--n-features",
     "--epochs", "--test-size", "--n-samples", "--n_jobs", "--seed", "--verbose"),
)  # fmt: skip
MATMUL = Stranger("matmul.cpp", {"BLOCK": "1 .. 64 (log)", "UNROLL": "one of 1 2 4 8", "SCALE": "0.1 .. 2 (log)"})


def run_of(made: SearchProposal, number: int, value: float | None) -> PastRun:
    name = number.to_bytes(32, "big")
    return PastRun(name, made.source_digest, made.genome, value, made.replicate, made.parent, made.base)


ALL = pytest.mark.parametrize("stranger", [GPT, CLASSIFY, MATMUL], ids=lambda stranger: stranger.name)


@ALL
def test_what_is_turned_and_within_which_ranges(stranger: Stranger) -> None:
    by_name = constants(stranger.source)

    assert {name: str(constant.range) for name, constant in by_name.items() if constant.range} == stranger.ranges
    assert {name for name, constant in by_name.items() if not constant.range} == set(stranger.untouched)
    assert set(space_of(stranger.source).parameters) == set(stranger.ranges)


@pytest.mark.slow
@ALL
def test_an_edit_changes_one_literal_and_nothing_else(stranger: Stranger) -> None:
    source = stranger.source
    for name, parameter in space_of(source).parameters.items():
        constant = constants(source)[name]
        for value in {parameter.at(unit) for unit in (0.0, 0.33, 0.66, 1.0)} - {parameter.default}:
            changed = set_constants(source, {name: value})
            old, new = source.encode().splitlines(), changed.encode().splitlines()
            before, after = old.pop(constant.line), new.pop(constant.line)  # below the boundary line
            assert old == new
            assert after.startswith(before[: constant.start])
            assert after.endswith(before[constant.end :])
            others = {key: constant.value for key, constant in constants(changed).items()}
            assert others == {key: constant.value for key, constant in constants(source).items()} | {name: value}


@pytest.mark.slow
@ALL
def test_fifty_proposals_in_a_row_are_different_programs_that_parse(stranger: Stranger) -> None:
    search_problem, noise = stranger.problem, random.Random(1)
    runs: list[PastRun] = []
    before = {name: constant.value for name, constant in constants(search_problem.baseline).items()}
    for counter in range(50):
        made = propose(search_problem, runs, [], worker="w", counter=counter, replication=Replication(most=1))
        if stranger.name.endswith(".py"):
            compile(split_program(made.source)[stranger.name], stranger.name, "exec")
        after = {name: constant.value for name, constant in constants(made.source).items()}
        assert {name for name in before if after[name] != before[name]} <= set(stranger.ranges)
        assert list(before) == list(after)
        runs.append(run_of(made, counter, noise.uniform(1, 2)))

    assert len({run.source_digest for run in runs}) == 50


def test_a_power_of_two_stays_one_as_it_is_written() -> None:
    changed = set_constants(GPT.source, {"TOTAL_BATCH_SIZE": 2048})

    assert "TOTAL_BATCH_SIZE = 2**11 # tokens per optimizer step" in changed


def test_heads_divide_the_width_and_the_program_s_own_assertion_holds() -> None:
    space = space_of(GPT.source)

    assert not space.allows({**space.default(), "GPTConfig.n_kv_head": 16})
    assert space.allows({**space.default(), "GPTConfig.n_head": 16, "GPTConfig.n_kv_head": 16})
    assert not space.allows({**space.default(), "TOTAL_BATCH_SIZE": 256})


def measured(source: str, folder: Path) -> float | None:
    program = folder / "train.py"
    program.write_text(source)
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=250)
    return read_metric(ended.stdout, "test_loss").value


@pytest.mark.slow
def test_a_search_of_fifteen_real_runs_improves_a_script_with_argparse(tmp_path: Path) -> None:
    search_problem = CLASSIFY.problem
    runs: list[PastRun] = []
    for counter in range(15):
        made = propose(search_problem, runs, [], worker="w", counter=counter)
        runs.append(run_of(made, counter, measured(split_program(made.source)[CLASSIFY.name], tmp_path)))

    best = best_run(search_problem, runs)
    assert best is not None
    assert best.value is not None
    assert runs[0].value is not None
    assert best.value < runs[0].value - 0.05


@pytest.mark.parametrize(
    "source",
    [
        "print(1)\n",
        "SEED = 3\nEPOCHS = 4\nNUM_CLASSES = 10\nprint(SEED, EPOCHS, NUM_CLASSES)\n",
        "RATE = 0.1  # fixed\nprint(RATE)\n",
        "RATE = 0.1\n",  # nothing reads it
        "MODE = 'a'\nFAST = True\nprint(MODE, FAST)\n",
    ],
)
def test_a_program_without_a_number_to_change_is_told_what_to_do(source: str) -> None:
    with pytest.raises(NothingToTry) as caught:
        propose(problem(baseline=source), [], [], worker="w", counter=0)

    assert str(caught.value) == (
        "train.py has no number that the search can change: "
        "add `# 0.01 .. 0.1` behind a constant in its own line, or run your own ideas with `autoresearch run`"
    )


@pytest.mark.slow
def test_the_first_proposals_differ_from_the_program_in_few_lines() -> None:
    runs = [PastRun(bytes(32), source_digest(GPT.source), space_of(GPT.source).default(), 1.5, 0, None, None)]
    for counter in range(10):
        made = propose(GPT.problem, runs, [], worker="w", counter=counter)
        changed = [line for line in difflib.ndiff(GPT.source.splitlines(), made.source.splitlines()) if line[0] == "+"]
        assert 1 <= len(changed) <= len(made.change) <= 3
        assert made.parent == runs[0].id
