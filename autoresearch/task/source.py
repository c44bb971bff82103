"""When two sources are the same program: comments, docstrings, spacing and the spelling of numbers don't count. Pure.

The dump is our own: ``ast.dump`` and ``ast.unparse`` change between versions of Python, and this one must not, since
seeds follow from it. Every node is its name and its fields, sorted by name, those that are empty or that only some
versions have left out; every constant carries its type and its length, so that no two programs share a dump. It stands
by itself, on the standard library, so that a test can run it in every version of Python.
"""

from __future__ import annotations

import ast
import gc
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from autoresearch.errors import UsageError

# ctx follows from the place; the others mean nothing to a run, and not every version has them.
_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_params"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# PEP 263: Python would read the file in this encoding, and we as UTF-8.
_ENCODING = re.compile(r"\A(?:[ \t\f]*(?:#[^\n]*)?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")


def canonical_source(source: str) -> bytes:
    """Bytes that are equal exactly when two sources are the same program, in every version of Python from 3.11 on.

    Raises UsageError when ``source`` is not Python.
    """
    return canonical_node(_parse(source))


def canonical_node(node: ast.AST) -> bytes:
    """The same of a part of a parsed source."""
    out: list[bytes] = []
    pending: list[object] = [node]
    while pending:  # not recursive: how deep a program may nest must not depend on the caller's stack
        item = pending.pop()
        if isinstance(item, bytes):
            out.append(item)
        elif isinstance(item, ast.AST):
            pending.extend(reversed(_node(item)))
        elif isinstance(item, list):
            pending.extend([b"]", *reversed(item), b"["])
        else:
            out.append(_constant(item))
    return b"".join(out)


# In place of the tree of what is no Python.
EMPTY = ast.Module([], [])
_PARSING = threading.RLock()


@contextmanager
def parsing() -> Iterator[None]:
    """One thread at a time, and none in between.

    Python 3.11 counts for all threads in one place how deep the tree is that it makes (python/cpython#106905). A second
    thread gets its turn meanwhile only where garbage is collected. Where it parses then, as libraries do that don't
    know of this lock (``inspect.signature``, tracebacks), the first one would end in a SystemError.
    """
    with _PARSING:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


def parse_python(source: str | bytes) -> ast.Module:
    """``ast.parse`` within ``parsing``. Raises SyntaxError, ValueError, RecursionError, MemoryError as it does."""
    with parsing():
        return ast.parse(source)  # noqa: TID251 - the one place


def python_tree(source: str | bytes) -> ast.Module | None:
    """The same, and without warnings; None where the source is not Python, or nests too deep."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse_python(source)
    return None


def _parse(source: str) -> ast.Module:
    declared = _ENCODING.match(source)
    if declared and declared[1].lower().replace("_", "-") not in {"utf-8", "utf8"}:
        raise UsageError(f"the source declares the encoding {declared[1]}", hint="save it as UTF-8")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a string warns, differently in each version
            return parse_python(source)
    except SyntaxError as error:
        raise UsageError(f"line {error.lineno}: {error.msg}", hint="the source must be valid Python") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"the source can't be parsed: {error}", hint="the source must be valid Python") from error


def _node(node: ast.AST) -> list[object]:
    if isinstance(node, ast.Constant):
        return [b"(Constant ", _constant(node.value), b")"]
    parts: list[object] = [b"(" + type(node).__name__.encode()]
    for name, value in sorted(_fields(node)):
        if value is not None and value != [] and name not in _SKIPPED:
            parts += [b" " + name.encode() + b"=", value]
    return [*parts, b")"]


def _fields(node: ast.AST) -> list[tuple[str, object]]:
    fields = dict(ast.iter_fields(node))
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    if isinstance(node, _DOCUMENTED) and not fields["body"]:
        fields["body"] = [ast.Pass()]
    if isinstance(node, ast.JoinedStr):
        fields["values"] = _joined(node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
        # the format in f"{x:}" says as little as none
        fields["format_spec"] = node.format_spec if _joined(node.format_spec.values) else None
    return list(fields.items())


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string with neighbouring texts in one: versions differ in where they cut them."""
    parts: list[ast.expr] = []
    for value in values:
        last = parts[-1] if parts else None
        if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            parts.append(value)
        elif isinstance(last, ast.Constant) and isinstance(last.value, str):
            parts[-1] = ast.Constant(last.value + value.value)
        elif value.value:
            parts.append(value)
    return parts


def _constant(value: object) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        text = value
    elif isinstance(value, int) and not isinstance(value, bool):
        text = format(value, "x").encode()  # hexadecimal: decimal digits of large integers are limited by a setting
    elif isinstance(value, float):
        text = value.hex().encode()
    elif isinstance(value, complex):
        text = f"{value.real.hex()},{value.imag.hex()}".encode()
    else:
        text = repr(value).encode()  # None, True, False, Ellipsis
    return b"%s:%d:%s" % (type(value).__name__.encode(), len(text), text)
