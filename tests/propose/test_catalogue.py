"""Every patch, alone and with every other, gives a program that works."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from autoresearch.propose.program.edits import EditError, set_constants
from autoresearch.propose.program.guard import static_guard
from autoresearch.propose.program.patches import PATCHES, apply, offered
from tests.propose.conftest import TRAIN

PAIRS = [*((name,) for name in PATCHES), *itertools.combinations(sorted(PATCHES), 2), tuple(PATCHES)]


def test_all_are_offered_for_the_shipped_program() -> None:
    assert offered(TRAIN) == sorted(PATCHES)


def test_each_and_every_pair_compiles_and_passes_the_guard() -> None:
    for names in PAIRS:
        source = apply(TRAIN, names)
        compile(source, "train.py", "exec")
        if len(names) == 1:
            assert static_guard(source, TRAIN) == [], names


def test_an_applied_patch_is_not_offered_again() -> None:
    for name in PATCHES:
        assert name not in offered(apply(TRAIN, [name])), name


def test_a_patch_whose_place_was_rewritten_is_not_offered() -> None:
    rewritten = TRAIN.replace("F.gelu(self.up(x))", "F.silu(self.up(x))")

    assert set(PATCHES) - set(offered(rewritten)) == {"relu2"}
    with pytest.raises(EditError):
        apply(rewritten, ["relu2"])
    with pytest.raises(EditError):
        apply(TRAIN, ["no such patch"])


def test_each_says_what_it_is_and_why() -> None:
    for name, patch in PATCHES.items():
        assert patch.name == name
        assert 0 < len(patch.title) <= 80
        assert patch.rationale.endswith(".")


@pytest.mark.slow
def test_each_and_every_pair_builds_a_causal_model_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.syspath_prepend("experiments")
    torch.manual_seed(0)
    small: dict[str, int | float | str | bool] = {"DEPTH": 1, "WIDTH": 32, "HEAD_DIM": 16, "MLP_RATIO": 1.0}
    x = torch.randint(32, 128, (2, 24))
    later = x.clone()
    later[:, 16:] = 64
    for names in PAIRS:
        program: dict[str, Any] = {"__name__": "train"}
        exec(compile(set_constants(apply(TRAIN, names), small), "train.py", "exec"), program)
        model = program["build_model"]()
        logits = model(x)
        assert logits.shape == (2, 24, 128), names
        assert logits.isfinite().all(), names
        moved = (model(later) - logits)[:, :16].abs().max()
        assert float(moved.detach()) < 1e-4, names
        loss: Any = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten())
        loss.backward()
        before = [p.detach().clone() for p in model.parameters()]
        for optimizer in program["optimizers"](model):
            optimizer.step()
        assert any(not torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True)), names
