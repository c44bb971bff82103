"""Each mutant is a program that can be read and differs in one expression."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import mutants


@pytest.mark.slow
def test_a_mutant_is_the_file_with_one_expression_changed() -> None:
    file = mutants.ROOT / "autoresearch" / "judging" / "states.py"
    source = file.read_text()
    before = ast.dump(ast.parse(source))
    changes = [mutant.applied(source) for mutant in mutants.mutants(file)]
    assert len(set(changes)) > 10
    assert all(ast.dump(ast.parse(change)) != before for change in changes)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 'größer' if 2 < y else z", "x = ('größer' if 2 <= y else z)"),
        ("def f(n: int = 3) -> int: return n", "def f(n: int = (4)) -> int: return n"),
        ('raise ValueError(f"{1 + 1}")', None),
        ("x: Literal[1]", None),
    ],
)
def test_it_stands_in_its_place(source: str, expected: str | None, tmp_path: Path) -> None:
    file = tmp_path / "room.py"
    file.write_text(source)
    changes = [mutant.applied(source) for mutant in mutants.mutants(file)]
    assert (
        changes == []
        if expected is None
        else any(ast.dump(ast.parse(change)) == ast.dump(ast.parse(expected)) for change in changes)
    ), changes


@pytest.mark.slow
def test_a_change_that_a_test_sees_is_killed_and_one_that_none_sees_is_not(tmp_path: Path) -> None:
    tests = tmp_path / "tests" / "room"
    tests.mkdir(parents=True)
    (tmp_path / "room.py").write_text("def larger(a, b): return a < b\n")
    (tests / "test_room.py").write_text("from room import larger\ndef test_it(): assert larger(1, 2)\n")
    changed = tmp_path / "room.py"
    assert not mutants.fails(tmp_path, ("tests/room",), "room", 60, 1)
    changed.write_text("def larger(a, b): return a <= b\n")
    assert not mutants.fails(tmp_path, ("tests/room",), "room", 60, 1)
    changed.write_text("def larger(a, b): return a >= b\n")
    assert mutants.fails(tmp_path, ("tests/room",), "room", 60, 1)
