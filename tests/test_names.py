"""Names in the code say what a value is, never how it was come by."""

import ast
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).parents[1]
VAGUE = {"found", "asked", "said", "told", "known", "here", "kept", "heard", "shown"}
VAGUE |= {"given", "wanted", "one", "there", "away"}
# How many each room still has. These numbers only ever become smaller; a room that is not in the table has none.
LEFT = {
    "autoresearch/ask": 407,
    "autoresearch/log": 256,
    "cli/autoresearch_cli": 23,
    "cli/autoresearch_cli/acts": 50,
    "cli/autoresearch_cli/agent": 22,
    "cli/autoresearch_cli/commands": 83,
    "cli/autoresearch_cli/demo": 8,
    "cli/autoresearch_cli/mcp": 36,
    "cli/autoresearch_cli/rendering": 80,
    "daemon/autoresearch_daemon": 60,
    "daemon/autoresearch_daemon/api": 11,
    "daemon/autoresearch_daemon/mail": 4,
    "daemon/autoresearch_daemon/minds": 10,
    "daemon/autoresearch_daemon/net": 18,
    "daemon/autoresearch_daemon/owner": 14,
    "daemon/autoresearch_daemon/pages": 35,
    "daemon/autoresearch_daemon/service": 19,
    "daemon/autoresearch_daemon/verification": 17,
    "daemon/autoresearch_daemon/workers": 5,
}


def defined_name(node: ast.AST) -> str:
    """The name that this node defines (a variable, parameter, attribute or function), or nothing."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return name
    return ""


def test_names_say_what_a_value_is() -> None:
    counts: Counter[str] = Counter()
    for package in ("autoresearch", "daemon/autoresearch_daemon", "cli/autoresearch_cli"):
        for file in (PROJECT / package).rglob("*.py"):
            room = package + "".join(f"/{part}" for part in file.relative_to(PROJECT / package).parts[:-1][:1])
            counts[room] += sum(defined_name(node) in VAGUE for node in ast.walk(ast.parse(file.read_text())))
    assert {room: number for room, number in counts.items() if number > LEFT.get(room, 0)} == {}
