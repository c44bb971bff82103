"""Do the tests notice a change? ``python -m benchmarks.mutants`` changes one expression at a time and runs the tests.

A mutant is the program with one comparison, operator, number, word or condition turned round. It is killed where a
fast test of its room fails or hangs. What survives is shown as a line to read: either the tests have a gap there, or
the change says the same as before. The share that is killed is the room's score.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Each room with the folders of its tests, the nearest first.
ROOMS = {
    f"autoresearch/{name}": (f"tests/{name}", *more)
    for name, more in {
        "record": (),
        "judging": ("tests/log/standing",),
        "trust": (),
        "log": (),
        "run": (),
        "task": ("tests/programs",),
        "propose": (),
        "ask": (),
        "project": (),
        "face": (),
    }.items()
}
ROOMS |= {"daemon/autoresearch_daemon": ("tests/daemon",), "cli/autoresearch_cli": ("tests/cli",)}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
# Tests that hang are stopped after so many times what they take unchanged, and so many seconds.
PATIENCE, GRACE_SECONDS = 4, 30


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed expression: the file, its place in it, what stood there and what stands there now."""

    file: Path
    node: ast.expr
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The whole file with the change."""
        lines = source.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        end = sum(map(len, lines[: (self.node.end_lineno or 0) - 1])) + (self.node.end_col_offset or 0)
        text = b"".join(lines)
        return (text[:start] + f"({self.after})".encode() + text[end:]).decode()

    def __str__(self) -> str:
        where = f"{self.file.relative_to(ROOT)}:{self.node.lineno}"
        return f"{where}  {' '.join(self.before.split())}  →  {' '.join(self.after.split())}"


def mutants(file: Path) -> Iterator[Mutant]:
    """Every change of a file, one expression each; types, docstrings and the text of errors are left alone."""
    source = file.read_text(encoding="utf-8")
    for node in _expressions(ast.parse(source)):
        if isinstance(node, ast.expr) and (changed := _changed(node)) is not None:
            yield Mutant(file, node, ast.get_source_segment(source, node) or "", ast.unparse(changed))


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases"} or isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _expressions(child)


def _changed(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Compare(left=left, ops=[comparison], comparators=others) if type(comparison) in COMPARISONS:
            return ast.Compare(left, [COMPARISONS[type(comparison)]()], others)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            return ast.BinOp(left, OPERATORS[type(operator)](), right)
        case ast.BoolOp(op=ast.And(), values=values):
            return ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.IfExp(test=test, body=body, orelse=other):
            return ast.IfExp(test, other, body)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1 if value + 1 != value else -value)
    return None


def copied(folder: Path) -> Path:
    """A copy of the repository in which files can be changed, without what tests don't read."""
    left_out = shutil.ignore_patterns(".git", ".venv", ".demo", "__pycache__", ".*_cache", "dist", "build", "site")
    return Path(shutil.copytree(ROOT, folder / "copy", symlinks=True, ignore=left_out))


def fails(copy: Path, tests: tuple[str, ...], first: str, seconds: float | None, jobs: int) -> bool:
    """Whether a fast test fails or hangs. Those whose file has the name of the changed one go first."""
    packages = [str(copy), str(copy / "daemon"), str(copy / "cli")]
    environment = {name: value for name, value in os.environ.items() if name != "AUTORESEARCH_HOME"}
    environment |= {"PYTHONPATH": os.pathsep.join(packages), "PYTEST_ADDOPTS": ""}
    nearest = sorted(str(file) for folder in tests for file in (copy / folder).rglob(f"test_{first}*.py"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    deadline = None if seconds is None else time.monotonic() + seconds
    for options in ([*nearest], ["-n", str(jobs), "--dist", "worksteal", *tests]):
        if not options:
            continue
        left = None if deadline is None else max(1.0, deadline - time.monotonic())
        try:
            ended = subprocess.run(
                [*command, *options], cwd=copy, env=environment, capture_output=True, timeout=left, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode not in {0, 5}:  # 5: it has no fast test
            return True
    return False


def main() -> int:
    """Print a table with each room's score; the exit status is 1 where a room's tests fail without any change."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}; without one, all")
    parser.add_argument("--each", type=int, default=10, help="so many changes in each room (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time (%(default)s)")
    options = parser.parse_args()
    if unknown := set(options.rooms) - ROOMS.keys():
        parser.error(f"there is no room {min(unknown)}; there are: {', '.join(ROOMS)}")
    print("| room | mutants | killed | score |\n|---|---:|---:|---:|", flush=True)
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for room in options.rooms or ROOMS:
            began = time.monotonic()
            if fails(copy, ROOMS[room], "", None, options.jobs):
                print(f"the tests of {room} fail without any change", file=sys.stderr)
                return 1
            seconds = PATIENCE * (time.monotonic() - began) + GRACE_SECONDS
            possible = [mutant for file in sorted((ROOT / room).rglob("*.py")) for mutant in mutants(file)]
            chosen = random.Random(options.seed).sample(possible, min(options.each, len(possible)))
            alive = []
            for mutant in chosen:
                place = copy / mutant.file.relative_to(ROOT)
                source = place.read_text(encoding="utf-8")
                place.write_text(mutant.applied(source), encoding="utf-8")
                if not fails(copy, ROOMS[room], mutant.file.stem, seconds, options.jobs):
                    alive.append(mutant)
                place.write_text(source, encoding="utf-8")
            killed = len(chosen) - len(alive)
            print(f"| {room} | {len(chosen)} | {killed} | {100 * killed // len(chosen)} % |", flush=True)
            survivors += alive
    print("\nSurvived:" if survivors else "\nNone survived.", *survivors, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
