"""A run is a function of (source, seed, budget), and a model that cheats or is broken gets no value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load

from autoresearch.task.printed import read_metric

from .conftest import TRAIN, Finished, Run

pytestmark = pytest.mark.slow

Change = Callable[[str, str], str]

EMBED = "        x = self.embed(x)\n"
DEPTH = "        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))\n"
RETURN = "        return self.head(norm(x))"
FINISH = "    prepare.finish(model, budget)"
REPORT = "        budget.report(loss.item())"


def test_a_run_repeats_bit_for_bit_and_has_the_same_result_at_any_number_of_threads(run: Run, plain: Finished) -> None:
    first, second, threaded = plain, run(), run(THREADS=2)

    # On some processors two threads add up in another order: the last bits of the checkpoint differ, not the result.
    assert first.result == second.result == threaded.result
    assert first.checkpoint == second.checkpoint
    assert first.result["status"] == "ok"
    assert first.exit_status == 0


def test_another_seed_is_another_run(run: Run) -> None:
    assert run(SEED=2**63 - 1, BUDGET=5e9).checkpoint != run(SEED=0, BUDGET=5e9).checkpoint


def test_replaying_the_beginning_gives_the_beginning(run: Run) -> None:
    whole, part = run(BUDGET=8e10).result, run(BUDGET=8e10, STOP_AT=0.4).result

    assert 0.4 <= part["metrics"]["work"] / 8e10 < 0.6
    assert 20 <= len(part["curve"]) < len(whole["curve"]) == 64
    assert part["curve"] == whole["curve"][: len(part["curve"])]


def test_the_work_is_what_was_counted(plain: Finished) -> None:
    metrics = plain.result["metrics"]
    # 3 blocks of 2 heads, forward once and backward twice, and some 390 operations
    scores, operations = 3 * 3 * 2 * 8 * 256 * 256, 390
    assert metrics["flops"] / metrics["steps"] == 3120562176
    extra = (metrics["work"] - metrics["flops"]) / metrics["steps"] - 186 * scores
    assert extra / 1.15e6 == pytest.approx(operations, rel=0.05)
    assert metrics["tokens"] == metrics["steps"] * 8 * 256
    assert metrics["work"] >= 2e10
    assert metrics["params"] == 163840
    progress = [event for event in plain.events if event["event"] == "progress"]
    assert progress
    assert all(0 < event["fraction"] <= 1 for event in progress)


def test_attention_costs_the_same_however_it_is_written(run: Run, plain: Finished, change: Change) -> None:
    fused = "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"
    written_out = (
        "m = torch.ones(T, T, dtype=torch.bool).tril()\n"
        "        y = (q @ k.mT / HEAD_DIM ** 0.5).masked_fill(~m, -1e9).softmax(-1) @ v"
    )

    once, again = plain.result["metrics"], run(change(fused, written_out)).result["metrics"]

    assert again["flops"] / again["steps"] == once["flops"] / once["steps"]
    assert again["work"] / again["steps"] == pytest.approx(once["work"] / once["steps"], rel=0.1)


def test_inference_mode_does_not_hide_work(run: Run, plain: Finished, change: Change) -> None:
    twice = change(REPORT, "        with torch.inference_mode():\n            model(x)\n" + REPORT)

    once, doubled = plain.result["metrics"], run(twice).result["metrics"]

    assert doubled["flops"] / doubled["steps"] == pytest.approx(4 / 3 * once["flops"] / once["steps"], rel=1e-3)


def test_a_batch_of_another_size_is_counted_anew(run: Run, change: Change) -> None:
    loop = "for x, y in budget.batches(BATCH_DOCS):"
    growing = change(loop, "for x, y in (p for d in (1, 4) for p, _ in zip(budget.batches(d), range(3))):")
    growing = growing.replace(FINISH, "    for x, y in budget.batches(2):\n        model(x)\n" + FINISH)

    metrics = run(growing, BUDGET=5e9).result["metrics"]

    assert 5e9 <= metrics["work"] < 7e9
    assert metrics["flops"] / metrics["tokens"] == pytest.approx(3.12e9 / 2048, rel=0.4)


REFUSED = {
    "looks ahead": ("is_causal=True", "is_causal=False", "later bytes"),
    "looks one byte ahead": (EMBED, "        x = self.embed(x.roll(-1, 1))\n", "later bytes"),
    "mixes documents": (EMBED, EMBED + "        x = x - x.mean(0)\n", "other documents"),
    "weights not finite": (FINISH, "    model.head.weight.data[0, 0] = math.nan\n" + FINISH, "weights are not finite"),
    "logits not finite": (RETURN, RETURN + " / (1.0 if self.training else 0.0)", "logits are not finite"),
    "wrong shape": (RETURN, RETURN + "[..., : 128 if self.training else 5]", "shape"),
    "not a tensor": (RETURN, RETURN + " if self.training else (x, None)", "shape"),
    "too large": (DEPTH, DEPTH + "        self.spare = nn.Parameter(torch.zeros(8_000_000))\n", "8163840 parameters"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_broken_or_cheating_model_is_invalid(run: Run, change: Change, what: str) -> None:
    original, instead, reason = REFUSED[what]

    finished = run(change(original, instead), BUDGET=5e9)

    assert finished.result["status"] == "invalid"
    assert reason in finished.result["reason"]
    assert "value" not in finished.result
    assert finished.checkpoint == b""


def test_under_the_runner_the_value_is_left_to_the_referee(run: Run) -> None:
    finished = run(BUDGET=5e9)

    assert finished.result["status"] == "ok"
    assert "value" not in finished.result
    assert finished.checkpoint


def test_a_run_needs_neither_the_validation_text_nor_what_writes_it(run: Run, data: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "train.bin").hardlink_to(data / "train.bin")

    assert run(BUDGET=5e9, DATA=seen, without=("grammar.py",)).result["status"] == "ok"


@pytest.mark.parametrize("loss", ["float('nan')", "float('inf')", "1e6"])
def test_a_loss_that_is_not_finite_or_absurd_has_diverged(run: Run, change: Change, loss: str) -> None:
    finished = run(change(REPORT, f"        budget.report({loss})"))

    assert finished.result["status"] == "diverged"
    assert "value" not in finished.result
    assert finished.exit_status == 0


def test_an_error_in_the_program_leaves_no_result(run: Run, change: Change) -> None:
    finished = run(change(FINISH, "    raise RuntimeError('oh')"), BUDGET=5e9)

    assert finished.exit_status == 1
    assert [event for event in finished.events if event["event"] == "result"] == []


@pytest.mark.parametrize("tied", [False, True])
def test_the_checkpoint_holds_the_weights_of_build_model(run: Run, change: Change, tied: bool) -> None:
    head = "        self.head = nn.Linear(WIDTH, prepare.VOCAB, bias=False)\n"
    source = change(head, head + "        self.head.weight = self.embed.weight\n") if tied else TRAIN

    weights: dict[str, Any] = load(run(source, BUDGET=5e9).checkpoint)

    assert weights["embed.weight"].shape == weights["head.weight"].shape == (128, 64)
    assert weights["blocks.2.mlp.down.weight"].shape == (64, 256)
    assert bool((weights["embed.weight"] == weights["head.weight"]).all()) == tied


def test_by_hand_it_prints_a_summary(run: Run) -> None:
    finished = run(by_hand=True)

    summary = read_metric(finished.stdout, "val_bpb").numbers
    assert finished.exit_status == 0
    assert finished.events == []
    assert 0.76 < summary["val_bpb"] < 8
    assert {"floor_bpb", "cpu_seconds", "peak_memory_mib", "steps", "tokens", "flops", "work", "params"} < set(summary)


def test_by_hand_a_refused_model_says_why(run: Run, change: Change) -> None:
    finished = run(change("is_causal=True", "is_causal=False"), by_hand=True, BUDGET=5e9)

    assert finished.exit_status == 1
    assert "invalid: a prediction depends on later bytes" in finished.stderr
    assert finished.stdout == ""


def test_missing_data_is_said_and_not_made_in_a_run(run: Run, tmp_path: Path) -> None:
    finished = run(DATA=tmp_path / "none")

    assert finished.exit_status == 1
    assert "run `python prepare.py` first" in finished.stderr
    assert not (tmp_path / "none").exists()
