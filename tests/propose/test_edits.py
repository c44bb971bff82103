"""Edits change what they name and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.edits import EditBlock, EditError, apply_blocks, constants, repetitions, set_constants
from autoresearch.propose.program.ranges import Value, read_range
from autoresearch.task.program import join_files
from tests.propose.conftest import TRAIN

SOURCE = '''"""Größe: é 漢字."""
A = 1        # int [1, 6]   Zahl
B: float = 0.5#float [ 0.1 , 0.9]
NAME = "ä漢"; C = 1e-3  # log [0.0001, 1]
D = True  # one of True False
E = "x"  # one of x y z
F = 1.0  # one of 1 2.5 4
G = -2  # int [-5, 5]
TWICE = 1  # int [1, 3]
TWICE = 2  # int [1, 3]
lower = 3  # 1 .. 6
fixed = 0.5  # fixed: part of the question
if A:
    INNER = 1  # int [1, 2]
ODD = 0  # int [6, 1]
LIST = [1, 2]  # int [1, 2]
changed = 1  # int [1, 3]


def f():
    global changed
    A = 7  # int [1, 9]
    return A, lower, fixed
'''


def test_ranges_are_read_from_the_comments() -> None:
    by_name = constants(SOURCE)

    assert {name: c.value for name, c in by_name.items()} == {
        "A": 1, "B": 0.5, "NAME": "ä漢", "C": 1e-3, "D": True, "E": "x", "F": 1.0, "G": -2, "ODD": 0,
        "lower": 3, "fixed": 0.5, "LIST[0]": 1, "LIST[1]": 2, "f.A": 7,
    }  # fmt: skip
    ranges = {name: c.range for name, c in by_name.items() if c.range}
    assert set(ranges) == {"A", "B", "C", "D", "E", "F", "G", "lower", "LIST[0]", "LIST[1]", "f.A"}
    assert (ranges["C"].kind, ranges["C"].low, ranges["C"].high) == ("log", 0.0001, 1.0)
    assert ranges["E"].choices == ("x", "y", "z")
    assert ranges["F"].choices == (1.0, 2.5, 4.0)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "A": st.integers(1, 6), "B": st.floats(0.1, 0.9), "NAME": st.text(max_size=8), "D": st.booleans(),
            "C": st.floats(1e-4, 1), "G": st.integers(-5, 5),
        },
    )
)  # fmt: skip
def test_setting_constants_and_setting_them_back_gives_the_same_bytes(values: dict[str, Value]) -> None:
    changed = set_constants(SOURCE, values)

    assert {name: constants(changed)[name].value for name in values} == values
    before = {name: c.value for name, c in constants(SOURCE).items()}
    again = set_constants(changed, {name: before[name] for name in values})
    spelt: dict[str, Value] = {name: before[name] for name in ("C", "NAME") if name in values}
    assert again == set_constants(SOURCE, spelt)  # 1e-3 comes back as 0.001 and "ä漢" in other quotes


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_stay(newline: str) -> None:
    source = SOURCE.replace("\n", newline)

    changed = set_constants(source, {"A": 5, "C": 0.5})

    assert changed.replace("A = 5", "A = 1").replace("C = 0.5", "C = 1e-3") == source


def test_all_but_the_value_stays_in_the_shipped_program() -> None:
    changed = set_constants(TRAIN, {"LR": 0.02, "DEPTH": 6})

    different = [(a, b) for a, b in zip(TRAIN.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert [b.split("#")[1] for _, b in different] == [a.split("#")[1] for a, _ in different]
    assert len(different) == 2


@pytest.mark.parametrize("values", [{"NO": 1}, {"A": float("nan")}, {"A": float("inf")}, {"TWICE": 1}])
def test_what_cannot_be_set_is_refused(values: dict[str, Value]) -> None:
    with pytest.raises(EditError):
        set_constants(SOURCE, values)


@pytest.mark.parametrize(
    ("comment", "value", "range_"),
    [
        ("0.01 .. 0.05", 0.02, "0.01 .. 0.05"),
        ("0.01..0.1", 0.02, "0.01 .. 0.1 (log)"),
        ("1e-4 .. 1e-2 of the step", 1e-3, "0.0001 .. 0.01 (log)"),
        ("-5 .. 5", 1, "-5 .. 5"),
        ("1 .. 8", 2, "1 .. 8"),
        ("1 .. 64", 16, "1 .. 64 (log)"),
        ("0.5 .. 2", 1, "0.5 .. 2"),
        ("5 .. 1", 2, "None"),
        ("1 .. 2.5.1", 2, "None"),
        ("1 .. 1e999", 2, "None"),
        ("1 .. 4", True, "None"),
        ("see 1 .. 4", 2, "None"),
    ],
)
def test_a_range_in_few_characters(comment: str, value: Value, range_: str) -> None:
    assert str(read_range(comment, value)) == range_


@pytest.mark.parametrize(
    ("line", "ranges"),
    [
        ('p.add_argument("-r", "--rate", type=float, default=1)', {"--rate": "0.25 .. 1"}),
        ('p.add_argument("--k", type=int, default=2, choices=[1, 2, 4])', {"--k": "one of 1 2 4"}),
        ('p.add_argument("--k", type=int, default=2, choices=[1, 2, 4])  # fixed', {}),
        ('p.add_argument("--k", default=2, choices=["a", 2])', {}),
        ('p.add_argument("--lr", default=0.1, help="# 1 .. 2")  # 0.1 .. 0.3', {"--lr": "0.1 .. 0.3"}),
        ('p.add_argument("--lr", default=0.1)\np.add_argument("--lr", default=0.2)', {}),
        ("a = 2.0; b = 3.0  # 1 .. 4\nprint(a, b)", {"b": "1 .. 4"}),
        ("rate = 0.5\nrate += 1\nprint(rate)", {}),
        ("config = dict(lr=0.1, optim={'alpha': 1})\nprint(config)",
         {"config.lr": "0.003333 .. 1 (log)", "config.optim.alpha": "0.03333 .. 30 (log)"}),
        ("rate = 0.5  # nothing reads it", {}),
        ("class C:\n    scale: float = 2", {"C.scale": "0.5 .. 8 (log)"}),
        ("class C:\n    scale = 2.0\n    def f(self): pass", {}),
        ("class C(Base):\n    scale = 2.0", {}),
        ("@dataclasses.dataclass\nclass C(Base):\n    scale: float = field(default=2.0)\n    def f(self): pass",
         {"C.scale": "0.5 .. 8 (log)"}),
        ("@dataclass\nclass C:\n    scale: float = 2.0\nC(3.0)\nC(scale=1.0)", {}),
        ("@dataclass\nclass C:\n    scale: float = 2.0\nC(3.0)\nC()", {"C.scale": "0.5 .. 8 (log)"}),
        ("size = 1 << 10\nprint(size)", {"size": "256 .. 4096 (log)"}),
        ("scale = (\n  2.0\n)\nprint(scale)", {"scale": "0.5 .. 8 (log)"}),
        ("model = SVC(C=1.0, gamma=0.05, tol=1e-3, probability=False)",
         {"SVC.C": "0.03333 .. 30 (log)", "SVC.gamma": "0.005 .. 0.5 (log)"}),
        ("f(make_pipeline(\n  PCA(n_components=8),\n  sklearn.svm.SVC(C=1.0),  # 0.5 .. 2\n))",
         {"PCA.n_components": "2 .. 32 (log)", "SVC.C": "0.5 .. 2"}),
        ("MLPClassifier(hidden_layer_sizes=(64, 32), max_iter=20)",
         {"MLPClassifier.hidden_layer_sizes[0]": "one of 16 32 64 128 256",
          "MLPClassifier.hidden_layer_sizes[1]": "one of 8 16 32 64 128"}),
        ("Net(width=16)\nNet(width=32)", {}),
        ("x = torch.softmax(y, dim=1)\nSoftmax(dim=1)\nplot(alpha=0.5)", {}),
        ("split(test_size=0.3, random_state=0)\nLoader(n_samples=100, n_jobs=2)", {}),
        ("model.fit(x, batch_size=32, epochs=4)", {"fit.batch_size": "one of 8 16 32 64 128"}),
        ("model.evaluate(x, batch_size=32)", {}),
        ("Conv(kernel=3)  # 1 .. 7", {"Conv.kernel": "1 .. 7"}),
        ("config = dict(lr=0.1)\nprint(config, dict(lr=0.2))", {"config.lr": "0.003333 .. 1 (log)"}),
        ("def main():\n    lr = 0.1\n    other = 2.0\n    print(lr, other)", {"main.lr": "0.003333 .. 1 (log)"}),
        ("def main(lr):\n    lr = 0.1\n    print(lr)", {}),
        ("C.trainer.lr = 0.1\nC.seed = 3\nself.lr = 0.1\nf().lr = 0.1", {"C.trainer.lr": "0.003333 .. 1 (log)"}),
        ("C.lr = 0.1\nC.lr = 0.2", {}),
        ("def main():\n    lr = 0.1\n    lr *= 2\n    print(lr)", {}),
        ("def train(lr=0.1, epochs=3): pass\ntrain()", {"train.lr": "0.003333 .. 1 (log)"}),
        ("def train(lr=0.1): pass\ntrain(lr=x)\ntrain(y)", {}),
        ("class Net(Base):\n    def __init__(self, x, hidden=64, *, dropout=0.1): pass\nNet(3)",
         {"Net.hidden": "one of 16 32 64 128 256", "Net.dropout": "0 .. 0.5"}),
        ("class Net(Base):\n    def __init__(self, hidden=64): pass\nNet(hidden=32)",
         {"Net.hidden": "one of 8 16 32 64 128"}),
    ],
)  # fmt: skip
def test_where_constants_are_found(line: str, ranges: dict[str, str]) -> None:
    ranges_of_line = {name: str(constant.range) for name, constant in constants(line).items() if constant.range}

    assert ranges_of_line == ranges


def test_lines_of_other_languages_are_read_by_their_comments() -> None:
    source = """#!/bin/sh
THREADS=16   # 1 .. 64
export RATE=0.5 # 0.1 .. 0.9
PLAIN=3      # a number
TWICE=1 # 1 .. 3
TWICE=2 # 1 .. 3
# OLD=8 # 1 .. 64
größe = -4; // -8 .. 8 Zoll
"""
    program = join_files({"run.sh": source})
    by_name = constants(program)

    assert {name: (constant.value, str(constant.range)) for name, constant in by_name.items()} == {
        "THREADS": (16, "1 .. 64 (log)"), "RATE": (0.5, "0.1 .. 0.9"), "größe": (-4, "-8 .. 8"),
    }  # fmt: skip
    changed = set_constants(program, {"größe": 7, "RATE": 0.25})
    assert changed == program.replace("RATE=0.5", "RATE=0.25").replace("= -4;", "= 7;")


def test_each_file_of_a_program_has_its_constants_and_a_name_of_two_files_has_the_file_before_it() -> None:
    program = join_files(
        {"train.py": "LR = 0.1\nSIZE = 4\nprint(LR, SIZE)\n", "bench.cpp": "int SIZE = 8; // 1 .. 64\n"}
    )

    assert {name: constant.value for name, constant in constants(program).items()} == {
        "LR": 0.1, "train.py:SIZE": 4, "bench.cpp:SIZE": 8,
    }  # fmt: skip
    changed = set_constants(program, {"bench.cpp:SIZE": 32, "LR": 0.2})
    assert changed == program.replace("LR = 0.1", "LR = 0.2").replace("SIZE = 8", "SIZE = 32")


@pytest.mark.parametrize(
    ("line", "range_"),
    [
        ("constexpr int BLOCK = 16;", "one of 4 8 16 32 64"),
        ("static const int kTileSize = 8;  // rows", "one of 2 4 8 16 32"),
        ("#define BLOCK_SIZE 32", "one of 8 16 32 64 128"),
        ("#define UNROLL (4)  // one of 1 4", "one of 1 4"),
        ("# define VEC_LANES 8", "one of 2 4 8 16 32"),
        ("const float LEARNING_RATE = 0.1f;", "0.003333 .. 1 (log)"),
        ("pub const TILE: usize = 16;", "one of 4 8 16 32 64"),
        ("constexpr int BLOCK = 16;  // fixed", None),
        ("int block = 16;", None),
        ("    int tile = i / BLOCK;", None),
        ("constexpr int N = 512;", None),
        ("constexpr int WIDTH = 1920;", None),
        ("const int REPEATS = 3;", None),
        ("const int NUM_THREADS = 4;", None),
        ("#define BLOCK 4 * 4", None),
        ("// const int BLOCK = 4;", None),
    ],
)
def test_constants_of_a_compiled_program_are_known_by_how_they_cut_loops(line: str, range_: str | None) -> None:
    (constant,) = list(constants(join_files({"a.cpp": line + "\n"})).values()) or [None]

    assert (str(constant.range) if constant else None) == range_


@given(st.text(max_size=60), st.sampled_from(["train.py", "a.cpp", "bin/run"]))
def test_any_text_is_read_without_an_error(text: str, name: str) -> None:
    constants(text)
    constants(join_files({name: text}))


def test_a_block_must_match_exactly_once() -> None:
    assert apply_blocks("ä b ä", [EditBlock("b", "c"), EditBlock("c", "d")]) == "ä d ä"
    for search in ("ä", "x", ""):
        with pytest.raises(EditError):
            apply_blocks("ä b ä", [EditBlock(search, "y")])


@given(st.text(), st.text(min_size=1), st.text(), st.text())
def test_a_block_changes_its_place_only(before: str, search: str, after: str, replace: str) -> None:
    source = before + search + after
    if source.count(search) == 1:
        assert apply_blocks(source, [EditBlock(search, replace)]) == before + replace + after


def test_the_shipped_program_declares_its_ranges_around_its_values() -> None:
    for constant in constants(TRAIN).values():
        declared = constant.range
        assert declared is not None
        inside = declared.low <= float(constant.value) <= declared.high
        assert constant.value in declared.choices if declared.kind == "one of" else inside, constant.name


ONCE = "the search turns only what is assigned once"


@pytest.mark.parametrize(
    ("source", "sentences"),
    [
        ("LR = 0.1\nLR = LR * 0.5\nprint(LR)", ["LR is assigned twice (lines 1 and 2): " + ONCE]),
        ("LR = 0.1\nLR *= 0.5\nprint(LR)", ["LR is assigned twice (lines 1 and 2): " + ONCE]),
        ("LR = 0.1\nfor step in range(9):\n    LR = 0.9 * LR", ["LR is assigned twice (lines 1 and 3): " + ONCE]),
        (
            "LR = 0.1\nif 1 > 0:\n    LR = 0.2\nelse:\n    LR = 0.3\nprint(LR)",
            [f"LR is assigned 3 times (lines 1, 3 and 5): {ONCE}"],
        ),
        (
            "LR = 0.1\ndef f():\n    global LR\n    LR = 0.2\nprint(LR)",
            ["LR is assigned twice (lines 1 and 3): " + ONCE],
        ),
        ("ODD = 3  # int [1, 6]\nODD = 4", ["ODD is assigned twice (lines 1 and 2): " + ONCE]),
        ("LR, WD = 0.1, 0.2\nWD = 0.1\nprint(LR, WD)", [f"WD is assigned twice (lines 1 and 2): {ONCE}"]),
        ("name = 'a'\nname = 'b'", []),
        ("LR = 0.1  # fixed\nLR = 0.2", []),
        ("LR = 0.1\nprint(LR)", []),
        ("def f():\n    LR = 0.1\n    LR = 0.2", []),
        ("x = (", []),
        ("", []),
    ],
)
def test_what_is_assigned_twice_is_named_with_its_lines(source: str, sentences: list[str]) -> None:
    assert list(repetitions(source).values()) == sentences


def test_what_a_compiled_program_defines_twice_is_named_too() -> None:
    source = join_files(
        {"kernel.cu": "#define BLOCK 16 // int [8, 64]\nint x;\n#define BLOCK 32 // int [8, 64]\n", "b.py": "X = 1"}
    )
    assert list(repetitions(source).values()) == [f"BLOCK is assigned twice (lines 1 and 3 of kernel.cu): {ONCE}"]


@given(st.text(alphabet="LRx =0.12\n#:if()", max_size=80))
def test_no_text_of_a_program_is_too_odd_to_be_looked_through(source: str) -> None:
    assert all(ONCE in sentence for sentence in repetitions(source).values())
    assert not repetitions(source).keys() & constants(source).keys()
