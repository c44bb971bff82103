"""The size of the three packages: files, code lines without docstrings, comments and blanks, and the share of imports.

``make size`` prints it; it needs nothing but Python.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("autoresearch", "daemon/autoresearch_daemon", "cli/autoresearch_cli")
_EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> tuple[int, int]:
    """The lines of a module that are code, and those of them that are imports."""
    docstrings, imports, code = set[int](), set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)), *_]:
                    docstrings.update(range(first, last + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _EMPTY:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings), len(imports)


def main() -> None:
    """Print one line for each package, one for all, and one for the extensions beside them."""
    totals = [0, 0, 0]
    for package in PACKAGES:
        counts = [code_lines(path.read_text(encoding="utf-8")) for path in (ROOT / package).rglob("*.py")]
        row = [len(counts), sum(code for code, _ in counts), sum(imports for _, imports in counts)]
        totals = [total + count for total, count in zip(totals, row, strict=True)]
        print(_line(Path(package).name, *row))
    print(_line("all", *totals))
    counts = [code_lines(path.read_text(encoding="utf-8")) for path in (ROOT / "extensions").rglob("*.py")]
    print(_line("extensions", len(counts), sum(code for code, _ in counts), sum(imports for _, imports in counts)))


def _line(name: str, files: int, code: int, imports: int) -> str:
    return f"{name:20} {files:4} files {code:7,} lines of code {100 * imports / code:5.1f} % imports"


if __name__ == "__main__":
    main()
