"""The tables of operations for docs/reference/api.md, from the functions that answer them."""

from __future__ import annotations

import re

import msgspec
from autoresearch_daemon.api.app import OPERATIONS

from autoresearch.ask.operation import Operation


def table(method: str) -> str:
    """The operations of one HTTP method: address, what each takes, what it is for."""
    rows = [row(one) for one in OPERATIONS.values() if one.method == method]
    return "\n".join(["| address | takes | does |", "| --- | --- | --- |", *rows])


def row(operation: Operation) -> str:
    """One operation. What may be left out is in brackets; what is a part of the path is not repeated."""
    fields = [field for field in msgspec.structs.fields(operation.takes) if field.name not in operation.in_path]
    takes = ", ".join(f"`{field.name}`" if field.required else f"[`{field.name}`]" for field in fields)
    return f"| `{operation.address}` | {takes} | {operation.summary} |"


def fill(page: str) -> str:
    """The page with a table in place of each mark and the line below it."""
    return re.sub(r"^<!-- operations: (GET|POST) -->\n.*$", lambda match: table(match[1]), page, flags=re.MULTILINE)
