"""The lint finds accidents and lazy cheating, in sentences, and lets ordinary work through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.edits import set_constants
from autoresearch.propose.program.guard import static_guard
from tests.propose.conftest import NAMES, TRAIN

BETTER = set_constants(TRAIN, {"LR": 0.01})


def test_an_ordinary_change_passes() -> None:
    assert static_guard(BETTER, TRAIN, NAMES) == []


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("import math\n", "import math\nimport os\n", "os"),
        ("import math\n", "import math\nfrom subprocess import run\n", "subprocess"),
        ("import math\n", "import math\nfrom . import x\n", "imports from"),
        ("import math\n", "import math\nfrom prepare import load\n", "prepare"),
        ("import math\n", "import math\nfrom torch import load\n", "load"),
        ("import math\n", "import math\nimport torch.hub\n", "torch.hub"),
        ("import prepare\n", "import prepare as p\n", "another name"),
        ("    prepare.finish(", "    prepare.load('val.bin')\n    prepare.finish(", "prepare.load"),
        ("    prepare.finish(", "    prepare.FLOOR = 0\n    prepare.finish(", "prepare.FLOOR"),
        ("    prepare.finish(model, budget)\n", "    pass\n", "no longer calls prepare.finish"),
        ("def build_model():", "def make_model():", "build_model"),
        ("    device = prepare.setup()", "    device = prepare.setup(); torch.manual_seed(1)", "manual_seed"),
        ("    device = prepare.setup()", "    device = prepare.setup(); open('/etc/passwd')", "open"),
        ("    device = prepare.setup()", "    device = prepare.setup(); ().__class__", "__class__"),
        ("    device = prepare.setup()", "    device = prepare.setup(); getattr(torch, 'load')", "getattr"),
        ("    device = prepare.setup()", "    prepare = torch; device = prepare.setup()", "replaces prepare"),
        ("def main():", "def main(:", "not Python"),
        ("import math\n", "import math\n" + "x = 1\n" * 300, "302 lines changed"),
        ("import math\n", "import math\n#" + "x" * 70_000, "larger"),
    ],
)
def test_what_a_training_program_has_no_need_of_is_named(old: str, new: str, word: str) -> None:
    assert old in BETTER

    sentences = static_guard(BETTER.replace(old, new, 1), TRAIN, NAMES)

    assert any(word in sentence for sentence in sentences), sentences
    assert all(sentence.endswith(".") for sentence in sentences)


def test_comments_and_spacing_are_no_change() -> None:
    sentences = static_guard("# other words\n" + TRAIN.replace("0.001 ", "1e-3 "), TRAIN, NAMES)

    assert sentences == ["Nothing changed but comments, spacing or the spelling of numbers."]


@given(st.text(max_size=200))
def test_any_text_gets_sentences_not_an_error(text: str) -> None:
    assert static_guard(text, TRAIN, NAMES)


@pytest.mark.parametrize("source", ["(" * 5000, "-" * 20_000 + "1", "a" + ".a" * 20_000, "x\0", "\ud800"])
def test_hostile_sources_are_refused_quickly(source: str) -> None:
    assert static_guard(source, TRAIN, NAMES)
