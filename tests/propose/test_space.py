"""Genes and spaces behave at their edges."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Space, space_of
from autoresearch.task.folders import write_task
from autoresearch.task.loading import load_task
from autoresearch.task.model import Recipe
from tests.propose.conftest import PATCHES, TRAIN

SPACE = space_of(TRAIN, PATCHES)
GENES = list(SPACE.parameters.values())


def test_the_shipped_program_needs_heads_that_fit_its_width() -> None:
    assert SPACE.allows({**SPACE.default(), "WIDTH": 48, "HEAD_DIM": 16})
    assert not SPACE.allows({**SPACE.default(), "WIDTH": 48, "HEAD_DIM": 32})


def test_a_genome_builds_its_program_and_the_default_builds_the_source_itself() -> None:
    assert SPACE.build(SPACE.default()) == TRAIN
    assert SPACE.build({**SPACE.default(), "+no-such": True}) is None
    assert "class Muon" in (SPACE.build({**SPACE.default(), "+muon": True}) or "")


@given(st.integers(0, 10**9))
def test_moves_stay_inside_the_ranges(seed: int) -> None:
    draws = Draws(str(seed).encode())
    for parameter in GENES:
        value = parameter.anywhere(draws)
        near = parameter.near(value, 0.2, draws)
        for drawn in (value, near):
            assert parameter.admit(drawn) == drawn
            assert type(drawn) is type(parameter.default)
            if parameter.range.kind == "one of":
                assert drawn in parameter.range.choices
            else:
                assert parameter.range.low <= float(drawn) <= parameter.range.high
        assert near != value


def test_draws_are_the_same_on_every_version() -> None:
    draws = Draws(b"a", b"bc")

    assert [draws.uniform().hex() for _ in range(2)] == ["0x1.7f663c2f05f90p-1", "0x1.5d0a7c97df518p-2"]
    assert (draws.below(10), draws.sample("abcdef", 3)) == (2, ["d", "b", "a"])
    assert (draws.normal().hex(), draws.geometric(0.2)) == ("-0x1.f139461aada2cp+0", 5)
    assert Draws(b"ab", b"c").uniform().hex() == "0x1.64b4589037638p-1"  # where a part ends counts


def test_a_program_of_the_space_has_its_genome_and_another_has_none(space: Space) -> None:
    muon = {**space.default(), "+muon": True}
    changed = {**muon, "LR": 0.003}
    program = space.build(changed)
    assert program is not None
    assert space.genome_of(program, muon) == changed
    assert space.genome_of(program, {}) is None, "the patch is not known of"
    assert space.genome_of(TRAIN, {}) == space.default()
    assert space.genome_of(TRAIN + "\nEXTRA = 1\n", {}) is None
    assert space.genome_of("x = (", {}) is None


def test_what_the_command_gives_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "weight_decay = 0.1\nclass Config:\n    lr = 0.1\n    dropout = 0.1\n"
        "parser.add_argument('--batch-size', default=8)\nC.optim.momentum = 0.5\nmomentum = 0.9\n"
        "print(weight_decay, Config, momentum)\n"
    )
    command = "python train.py --batch-size 16 --lr=0.2 optim.momentum=0.9 config/lr.py --dropout_of=1"
    write_task(tmp_path, recipe=Recipe(command=command), metric="loss", seconds=5)
    task = load_task(tmp_path)

    assert set(space_of(task.baseline.decode(), patches_of(task)).parameters) == {
        "weight_decay",
        "Config.dropout",
        "momentum",
    }
