"""The benchmark's programs have no ranges in comments, and the search finds what a person would turn in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.propose.program.edits import constants
from autoresearch.task.guessing import guess_recipe
from autoresearch.task.loading import program_in
from benchmarks.strangers import PROGRAMS, search

FOUND = {
    "digits": {
        "PCA.n_components", "RandomForestClassifier.n_estimators", "RandomForestClassifier.max_depth",
        "RandomForestClassifier.min_samples_leaf", "RandomForestClassifier.max_features",
    },
    "gpt": {
        "ADAM_BETAS[0]", "ADAM_BETAS[1]", "DEPTH", "DEVICE_BATCH_SIZE", "EMBEDDING_LR", "FINAL_LR_FRAC",
        "GPTConfig.dropout", "GPTConfig.n_embd", "GPTConfig.n_head", "GPTConfig.n_kv_head", "GPTConfig.rope_theta",
        "GRAD_CLIP", "MATRIX_LR", "MLP_RATIO", "SOFTCAP", "TOTAL_BATCH_SIZE", "WARMDOWN_RATIO", "WARMUP_RATIO",
        "WEIGHT_DECAY",
    },
    "matmul": {
        "BLOCK_I", "BLOCK_J", "BLOCK_K", "UNROLL", "-O", "-march=native", "-ffast-math", "-funroll-loops", "-flto",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_the_search_changes_in_a_program_that_says_nothing_of_it(name: str) -> None:
    folder = PROGRAMS / name
    source = program_in(folder, guess_recipe(folder)).decode()

    assert {setting for setting, constant in constants(source).items() if constant.range} == FOUND[name]
    assert all(constant.guessed for constant in constants(source).values() if constant.range and not constant.is_flag)


@pytest.mark.slow
def test_a_folder_is_described_and_searched(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "line" / "fit.py").write_text('lr = 0.1\nprint("loss:", lr)\n')

    history = search(tmp_path / "line", 4)

    assert (history.ranges, history.noise) == ({"lr": "0.003333 .. 1 (log)"}, 0)
    assert (len(history.values), history.failed, history.repeated) == (4, 0, 0)
    assert (history.best(1), history.titles[0]) == (0.1, "the baseline, unchanged")
