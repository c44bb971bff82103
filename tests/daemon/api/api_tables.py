"""Writes the tables of operations into docs/reference/api.md: ``python -m tests.daemon.api.api_tables``."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from autoresearch_daemon.api.app import OPERATIONS

from autoresearch.ask.operation import Operation

GUIDE = Path(__file__).parents[3] / "docs/reference/api.md"


def table(method: str) -> str:
    """The operations of one HTTP method: address, what each takes, what it is for."""
    rows = [row(one) for one in OPERATIONS.values() if one.method == method]
    return "\n".join(["| address | takes | does |", "| --- | --- | --- |", *rows])


def row(operation: Operation) -> str:
    """One operation. What may be left out is in brackets; what is a part of the path is not repeated."""
    fields = [field for field in msgspec.structs.fields(operation.takes) if field.name not in operation.in_path]
    takes = ", ".join(f"`{field.name}`" if field.required else f"[`{field.name}`]" for field in fields)
    return f"| `{operation.address}` | {takes} | {operation.summary} |"


def page(text: str) -> str:
    """The page with its tables as the operations have them."""
    for method in ("GET", "POST"):
        rows = rf"\| address \| takes \| does \|\n(\| --- )+\|\n(\| `{method} .*\n)+"
        text, found = re.subn(rows, lambda _, shown=table(method): shown + "\n", text)
        assert found == 1, method
    return text


if __name__ == "__main__":
    GUIDE.write_text(page(GUIDE.read_text()))
