"""Where the code of an attack goes in a task's program, in the language that runs there. Pure."""

from __future__ import annotations

import ast
import base64
import shlex
import zlib
from enum import StrEnum
from pathlib import PurePosixPath

from autoresearch.run.attack.target import Target
from autoresearch.run.sandbox.command import PYTHON
from autoresearch.task.program import split_program
from autoresearch.task.source import python_tree

_COMPARING = frozenset({"get", "pop", "startswith", "endswith", "count", "find", "index", "search", "match", "findall"})


class Place(StrEnum):
    """How the code of an attack comes to run."""

    SCRIPT = "script"  # the command runs a Python file that may change
    MODULE = "module"  # a fixed program imports a Python file that may change
    SHELL = "shell"  # the command runs a shell script that may change
    C = "c"  # a build makes a program of a file in C or C++ that may change
    NONE = "none"


def place_of(target: Target) -> tuple[Place, str]:
    """How code gets to run in a task's program, and the file that it goes into."""
    recipe, files = target.task.recipe, split_program(target.task.baseline.decode())
    words = shlex.split(recipe.command)
    if words and words[0] in PYTHON:
        for word in words[1:]:
            names = [word, f"{word.replace('.', '/')}.py", f"src/{word.replace('.', '/')}.py"]
            if name := next((name for name in names if name in files), ""):
                return Place.SCRIPT, name
    elif name := next((word for word in words if word in files and word.endswith(".sh")), ""):
        return Place.SHELL, name
    python = [name for name in files if name.endswith(".py")]
    if python:
        text = b"\n".join(target.task.harness.values()).decode("utf-8", "replace")
        by_mention = sorted(python, key=lambda name: PurePosixPath(name).stem not in text)
        return Place.MODULE, by_mention[0]
    if name := next((name for name in files if name.endswith((".sh", ".bash"))), ""):
        return Place.SHELL, name
    if name := next((name for name in files if name.endswith((".c", ".cc", ".cpp", ".cxx"))), ""):
        return Place.C, name
    return Place.NONE, ""


def with_code(target: Target, *, before: str = "", after: str = "", alone: bool = False) -> dict[str, str] | None:
    """The files of the baseline with Python code before and after what it does, or ``alone`` in its place.

    None where no Python of the program runs.
    """
    place, name = place_of(target)
    files = split_program(target.task.baseline.decode())
    if place is Place.SHELL and alone:
        return {**files, name: f"python3 - <<'ATTACK'\n{before}\n{after}\nATTACK\n"}
    if place not in (Place.SCRIPT, Place.MODULE):
        return None
    if alone and place is Place.SCRIPT:
        return {**files, name: f"{before}\n{after}\n"}
    head, rest = after_docstring(files[name])
    return {**files, name: f"{head}{before}\n{rest}\n{after}\n"}


def after_docstring(source: str) -> tuple[str, str]:
    """A program in two: its docstring and imports from the future, then the rest."""
    tree, last = python_tree(source), 0
    for number, node in enumerate(tree.body if tree else ()):
        is_text = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        last = node.end_lineno or 0
    lines = source.splitlines(keepends=True)
    return "".join(lines[:last]), "".join(lines[last:])


def evaluator_literals(target: Target) -> list[str]:
    """The short texts with which the evaluator compares what it reads; an attacker sees the fixed files."""
    texts: list[str] = []
    for name, content in target.task.harness.items():
        tree = python_tree(content.decode("utf-8", "replace")) if name.endswith(".py") else None
        for node in ast.walk(tree) if tree else ():
            inside: list[ast.AST] = [node] if isinstance(node, ast.Compare | ast.MatchValue) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARING:
                inside = [node]
            words = (each.value for part in inside for each in ast.walk(part) if isinstance(each, ast.Constant))
            texts += [word.strip() for word in words if isinstance(word, str) and 0 < len(word.strip()) <= 40]
    return list(dict.fromkeys(texts))


def leaving(target: Target, content: bytes) -> dict[str, str] | None:
    """A program that does nothing but leave this artifact; None where it does not fit into one."""
    assert target.task.evaluator is not None
    packed = base64.b85encode(zlib.compress(content, 9)).decode()
    code = (
        "import base64, zlib\n"
        f"open({target.task.evaluator.artifact!r}, 'wb').write(zlib.decompress(base64.b85decode(\n    {packed!r})))"
    )
    if len(packed) > (target.task.limits.program_kib << 10) - 4096:
        return None
    if place_of(target)[0] is not Place.SCRIPT or target.task.evaluator.answers:
        return with_code(target, after=code)
    return with_code(target, before=code, alone=True)
