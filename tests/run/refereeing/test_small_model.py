"""The referee with a model of 64 numbers: what a change of the referee meets before the slow tests do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from autoresearch.run.bench import Bench
from autoresearch.run.referee import Examinee, RefereeEvaluation, referee
from autoresearch.run.sandbox.job import JobLimits
from autoresearch.words import RunStatus
from tests.walls import best_level

VOCABULARY = 8
# The logits after a token are a row of a table; with AHEAD tokens of what comes next in sight, nearly all certain.
TRAIN = """
import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(8, 8))

    def forward(self, x):
        ahead = F.pad(x[:, AHEAD:], (0, AHEAD)) if AHEAD else None
        return self.table[x] + (0 if ahead is None else 9 * F.one_hot(ahead, 8) * (ahead > 0)[..., None])

def build_model():
    return Model()
"""


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(VOCABULARY, VOCABULARY)).astype(np.float32)


@pytest.fixture(scope="module")
def documents() -> np.ndarray:
    return np.random.default_rng(2).integers(1, VOCABULARY, (64, 16), np.uint8)


def referee_table(folder: Path, table: np.ndarray, documents: np.ndarray, *, ahead: int) -> RefereeEvaluation:
    folder.chmod(0o755)
    save_file({"table": table}, folder / "weights.safetensors")
    examinee = Examinee(
        files={"train.py": TRAIN.replace("AHEAD", str(ahead)).encode()},
        checkpoint=folder / "weights.safetensors",
        values=table.size,
        bench=Bench(best_level(), 1, "cpu", folder, folder),
        limits=JobLimits(seconds=120, memory_bytes=2 << 30, disk_bytes=1 << 24, processes=64, output_bytes=1 << 16),
    )
    return referee(examinee, documents, VOCABULARY, draw=b"draw", challenges=64)


@pytest.mark.slow
def test_an_honest_model_costs_what_its_table_says(tmp_path: Path, table: np.ndarray, documents: np.ndarray) -> None:
    evaluation = referee_table(tmp_path, table, documents, ahead=0)

    chances = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    before = np.pad(documents[:, :-1], ((0, 0), (1, 0)))
    assert evaluation.status is RunStatus.OK, evaluation.reason
    assert evaluation.bits == pytest.approx(-np.log2(chances[before, documents]).sum(axis=1), rel=1e-4)
    assert (evaluation.challenges, evaluation.mismatches) == (64, 0)


@pytest.mark.slow
def test_a_model_that_sees_a_single_token_too_many_has_no_value(
    tmp_path: Path, table: np.ndarray, documents: np.ndarray
) -> None:
    evaluation = referee_table(tmp_path, table, documents, ahead=1)

    assert evaluation.status is RunStatus.INVALID
    assert evaluation.mismatches > evaluation.challenges / 2
