"""Every patch, alone and with every other, gives a program that works."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from autoresearch.errors import UsageError
from autoresearch.propose.program.edits import NO_PATCHES, EditError, patches_of, read_patches, set_constants
from autoresearch.propose.program.guard import static_guard
from autoresearch.propose.program.space import space_of
from autoresearch.task.folders import write_task
from autoresearch.task.loading import load_task
from tests.propose.conftest import NAMES, PATCHES, TRAIN

EACH = sorted(patch.name for patch in PATCHES.patches)
PAIRS = [*((name,) for name in EACH), *itertools.combinations(EACH, 2), tuple(EACH)]


def test_all_are_offered_for_the_shipped_program() -> None:
    assert PATCHES.offered(TRAIN) == EACH


@pytest.mark.slow
def test_each_and_every_pair_compiles_and_passes_the_guard() -> None:
    for names in PAIRS:
        source = PATCHES.apply(TRAIN, names)
        compile(source, "train.py", "exec")
        if len(names) == 1:
            assert static_guard(source, TRAIN, NAMES) == [], names


def test_an_applied_patch_is_not_offered_again() -> None:
    for name in EACH:
        assert name not in PATCHES.offered(PATCHES.apply(TRAIN, [name])), name


def test_a_patch_whose_place_was_rewritten_is_not_offered() -> None:
    rewritten = TRAIN.replace("F.gelu(self.up(x))", "F.silu(self.up(x))")

    assert set(EACH) - set(PATCHES.offered(rewritten)) == {"relu2"}
    with pytest.raises(EditError):
        PATCHES.apply(rewritten, ["relu2"])
    with pytest.raises(EditError):
        PATCHES.apply(TRAIN, ["no such patch"])


def test_each_says_what_it_is_and_why() -> None:
    for patch in PATCHES.patches:
        assert 0 < len(patch.title) <= 80
        assert patch.rationale.endswith(".")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"patch = [", "changes.toml"),
        (b"\xff", "changes.toml"),
        (b"patches = []", "patches"),
        (b'[[patch]]\nname = "+A b"\nlabel = "a"\ntitle = "a"\nrationale = "a"\nedit = []', r"patch\[0\]"),
        (b'[[patch]]\nname = "a"\nlabel = "a"\ntitle = "a"\nrationale = "a"\n[[patch.edit]]\nsearch = "a"', "replace"),
    ],
)
def test_a_file_of_patches_that_makes_no_sense_is_refused_by_name(content: bytes, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        read_patches(content)


def test_the_task_s_own_folder_has_its_patches(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("ACTIVATION = 'relu'\nprint('loss: 1')\n")
    write_task(tmp_path, metric="loss")
    digest = load_task(tmp_path).digest
    assert patches_of(load_task(tmp_path)) == NO_PATCHES
    (tmp_path / "changes.toml").write_text(
        '[[patch]]\nname = "gelu"\nlabel = "GELU"\ntitle = "GELU"\nrationale = "It is smooth."\n'
        "[[patch.edit]]\nsearch = \"'relu'\"\nreplace = \"'gelu'\"\n"
    )

    task = load_task(tmp_path)
    space = space_of(task.baseline.decode(), patches_of(task))

    assert task.digest == digest, "they are no part of the task"
    assert list(space.parameters) == ["+gelu"]
    assert space.build({"+gelu": True}) == "ACTIVATION = 'gelu'\nprint('loss: 1')\n"


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
        exec(compile(set_constants(PATCHES.apply(TRAIN, names), small), "train.py", "exec"), program)
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
