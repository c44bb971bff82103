"""Edits of a program's source: literals by their place, and SEARCH/REPLACE blocks that match exactly once.

Whatever an edit does not name stays as it is, byte for byte. Knows no search and no patches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autoresearch.errors import UsageError
from autoresearch.proposers.ini_literals import ini_literals
from autoresearch.proposers.known_names import guess
from autoresearch.proposers.line_literals import line_literals
from autoresearch.proposers.python_literals import comments, python_literals
from autoresearch.proposers.ranges import Constant, Value, is_fixed, read_range
from autoresearch.tasks import join_files, split_program

PYTHON, INI = ".py", ".ini"
# A record holds no longer name of a setting.
NAME_LENGTH = 64


class EditError(UsageError):
    """An edit does not apply to this source."""


@dataclass(frozen=True, slots=True)
class Block:
    """One SEARCH/REPLACE edit."""

    search: str
    replace: str


def constants(source: str) -> dict[str, Constant]:
    """The named literals of a program, in the order of its files. A name of several files has the file before it.

    Of Python these are top-level constants, defaults of config classes and of argparse, and entries of config dicts,
    and those in calls and functions that can be turned: none if the source doesn't parse. Of other languages they are
    the numbers behind which a comment declares a range, and the constants whose names are known; of a file of sections
    its numbers and defaults.
    """
    return {name: constant for name, (_, constant) in _by_name(_files(source)).items()}


def python_files(source: str) -> list[str]:
    """The Python files of a program."""
    return [content for name, content in _files(source).items() if name.endswith(PYTHON)]


def _files(source: str) -> dict[str, str]:
    try:
        return split_program(source)
    except UsageError:
        return {}


def _by_name(files: Mapping[str, str]) -> dict[str, tuple[str, Constant]]:
    """Each constant with the file that it is in."""
    found = [(file, constant) for file, content in files.items() for constant in _of_file(file, content)]
    named = Counter(constant.name for _, constant in found)
    full = ((f"{file}:" if named[one.name] > 1 else "", file, one) for file, one in found)
    return {f"{where}{one.name}": (file, one) for where, file, one in full if len(where + one.name) <= NAME_LENGTH}


def _of_file(name: str, content: str) -> list[Constant]:
    """The constants of one file; a name that is there twice keeps its last place."""
    lines = _lines(content)
    if name.endswith(PYTHON):
        found = list(_of_python(content, lines))
    else:
        found = ini_literals(lines) if name.endswith(INI) else line_literals(lines)
    return list({constant.name: constant for constant in found}.values())


def _lines(content: str) -> list[bytes]:
    return content.encode(errors="surrogatepass").splitlines(keepends=True)


def _of_python(source: str, lines: list[bytes]) -> Iterator[Constant]:
    literals = python_literals(source)
    said = comments(literals, lines)
    for literal in literals:
        comment, node = said.get(literal.name, ""), literal.node
        declared = read_range(comment, literal.value)
        allowed = declared
        if declared is None and not is_fixed(comment):
            allowed = literal.declared
            if allowed is None and literal.free:
                allowed = guess(literal.name, literal.value, known_only=literal.known_only)
        if literal.is_deep and allowed is None:
            continue
        start, end = node.col_offset, node.end_col_offset or 0
        yield Constant(literal.name, literal.value, node.lineno, start, end, allowed, declared is not None)


def set_constants(source: str, values: Mapping[str, Value]) -> str:
    """The source with these constants set, and everything else as it was.

    Raises:
        EditError: a name is no constant of the source, or a value cannot be written as a literal there.
    """
    files = _files(source)
    known = _by_name(files)
    if missing := sorted(set(values) - set(known)):
        raise EditError(f"the source has no constant {missing[0]}")
    lines = {file: _lines(content) for file, content in files.items()}
    for name, (file, constant) in reversed(known.items()):
        if name in values:
            line = lines[file][constant.line - 1]
            new = _literal(name, values[name], line[constant.start : constant.end])
            lines[file][constant.line - 1] = line[: constant.start] + new + line[constant.end :]
    changed = join_files({file: b"".join(each).decode(errors="surrogatepass") for file, each in lines.items()})
    again = constants(changed)
    for name, value in values.items():
        if name not in again or again[name].value != value:
            raise EditError(f"{name} can't be set to {value} in this source")
    return changed


def apply_blocks(source: str, blocks: Sequence[Block]) -> str:
    """The source after each block in turn.

    Raises:
        EditError: a block is empty, or its search text is not there exactly once.
    """
    for number, block in enumerate(blocks, 1):
        count = source.count(block.search) if block.search else 0
        if count != 1:
            found = "is empty" if not block.search else f"occurs {count} times, not once"
            raise EditError(f"the search text of block {number} {found}")
        source = source.replace(block.search, block.replace)
    return source


def _literal(name: str, value: Value, old: bytes) -> bytes:
    """A value as a program spells it, a power of two as one where the old value was."""
    if isinstance(value, float) and not math.isfinite(value):
        raise EditError(f"{name} cannot be {value}")
    if b"**" in old and isinstance(value, int) and value > 0 and value.bit_count() == 1:
        return b"2**%d" % (value.bit_length() - 1)
    if isinstance(value, str) and old[-1:] not in b"\"'":
        return value.encode(errors="surrogateescape")  # a file of sections has text without quotes
    return repr(value).encode()
