"""Names in the code say what a value is, never how it was come by; docstrings refer to what exists."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PACKAGES = ("autoresearch", "daemon/autoresearch_daemon", "cli/autoresearch_cli")
PACKAGES += tuple(
    f"extensions/autoresearch_{name}" for name in ("attestor", "datasets", "executors", "exports", "notices")
)
VAGUE = {"found", "asked", "said", "told", "known", "here", "kept", "heard", "shown"}
VAGUE |= {"given", "wanted", "one", "there", "away"}
# Names of two classes, and why. Add none.
SHARED = {
    "Approve": "the message to a worker, and the effect that sends it",
    "Cancel": "the message to a worker, and the effect that sends it",
    "Decline": "the message to a worker, and the effect that sends it",
    "Dropped": "the message from a worker, and the node's event that follows",
    "Failed": "the message from a worker, and the node's event that follows",
    "KeyPair": "the key that signs records, and the one that a service shows to its clients; both are public names",
    "Node": "the acts of a running node, and the node that performs them",
    "Task": "a task, and the record that publishes it",
}
FIELDS = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name"}
FIELDS |= {ast.MatchAs: "name", ast.MatchStar: "name", ast.ExceptHandler: "name"}
REFERENCE = re.compile(r":(?:func|class|mod|meth|data|attr):`~?([\w.]+)`|`(autoresearch(?:_\w+)?\.[\w.]+)`")


@cache
def trees() -> dict[Path, ast.Module]:
    files = [file for package in PACKAGES for file in (PROJECT / package).rglob("*.py")]
    return {file: ast.parse(file.read_text()) for file in files}


def defined_name(node: ast.AST) -> str:
    """The name that this node defines (a variable, parameter, attribute or function), or nothing."""
    field = FIELDS.get(type(node))
    return "" if field is None or isinstance(getattr(node, "ctx", None), ast.Load) else getattr(node, field) or ""


def members(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """What a module or a class defines or imports, and ``Class.member``."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from (f"{node.name}.{name}" for name in members(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        else:
            yield from filter(None, map(defined_name, ast.walk(node)))


def test_names_say_what_a_value_is() -> None:
    tests = {file: ast.parse(file.read_text()) for file in (PROJECT / "tests").rglob("*.py")}
    assert [
        f"{file.relative_to(PROJECT)}: {defined_name(node)}"
        for file, tree in (trees() | tests).items()
        for node in ast.walk(tree)
        if type(node) in FIELDS and defined_name(node) in VAGUE
    ] == []


def test_a_class_name_stands_for_one_class() -> None:
    classes = (node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, number in Counter(classes).items() if number > 1} <= SHARED.keys()


def test_what_a_docstring_refers_to_exists() -> None:
    modules, endings = {}, set()
    for file, tree in trees().items():
        package = next(PROJECT / package for package in PACKAGES if file.is_relative_to(PROJECT / package))
        module = ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        modules[file] = {member.rpartition(".")[2] for member in members(tree)}
        for name in (module, *(f"{module}.{member}" for member in members(tree))):
            endings |= {name.split(".", count)[-1] for count in range(name.count(".") + 1)}
    missing = [
        f"{file.relative_to(PROJECT)}: {reference}"
        for file, own in modules.items()
        for reference in map("".join, REFERENCE.findall(file.read_text()))
        if reference.lstrip(".") not in (endings if "." in reference else own)
    ]
    assert missing == []
