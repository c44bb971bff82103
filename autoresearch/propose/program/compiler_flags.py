"""The flags of a C or C++ compiler as literals: ``-O2``, and switches such as ``-flto`` that stand there or do not.

They are read from ``compile_flags.txt``, which a build names as ``@compile_flags.txt``, and from the line of a script
that begins with a compiler. A flag that says something else (``-Os``, ``-march=x86-64-v3``, ``-fno-lto``) stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autoresearch.propose.program.ranges import Constant, Range, Value
from autoresearch.task.folders import FLAGS

_LEVELS = (1, 2, 3)
_LEVEL: dict[str, Value] = {"": 0, "-O0": 0, "-O1": 1, "-O2": 2, "-O3": 3}
# Of each flag: any word that decides it, and what the words mean that the search may change.
_KNOWN: dict[str, tuple[str, dict[str, Value]]] = {
    "-O": (r"-O\S*", _LEVEL),
    "-march=native": (r"-march=\S*", {"": False, "-march=native": True}),
    "-ffast-math": (r"-f(?:no-)?fast-math", {"": False, "-ffast-math": True}),
    "-funroll-loops": (r"-f(?:no-)?unroll-loops", {"": False, "-funroll-loops": True}),
    "-flto": (r"-f(?:no-)?lto(?:=\S*)?", {"": False, "-flto": True}),
}
_COMPILER = re.compile(r"\s*(?:\S*/)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d+)?(?=\s)")
_WORD = re.compile(r"\s*(?<!\S)(\S+)")
_ENDS_COMMAND = re.compile(r"[#;&|]")


class _Word(NamedTuple):
    """A word with the blanks before it; of a missing flag the empty one where it would stand. Lines count from 0."""

    text: str
    line: int
    start: int
    end: int


def flag_literals(name: str, lines: Sequence[bytes]) -> Iterator[Constant]:
    """The flags of a file with this name, those that it lacks too; none where several of its lines compile."""
    texts = [line.decode(errors="surrogateescape").rstrip("\r\n") for line in lines]
    if name == FLAGS and texts:
        place = _Word("", 0, len(texts[0]), len(texts[0]))
        words = [word for count, text in enumerate(texts) for word in _words(text, count)]
    elif name.endswith(".sh"):
        commands = [(count, match.end()) for count, text in enumerate(texts) if (match := _COMPILER.match(text))]
        if len(commands) != 1:
            return
        count, end = commands[0]
        place, words = _Word("", count, end, end), list(_words(_ENDS_COMMAND.split(texts[count])[0], count, end))
    else:
        return
    found = []
    for flag, (pattern, values) in _KNOWN.items():
        first, *others = [word for word in words if re.fullmatch(pattern, word.text)] or [place]
        if not others and first.text in values:
            found.append((first, flag, values[first.text]))
    for word, flag, value in sorted(found, key=lambda one: one[0][1:]):
        choices = (False, True) if isinstance(value, bool) else tuple(sorted({*_LEVELS, int(value)}))
        before, end = (len(texts[word.line][:at].encode(errors="surrogateescape")) for at in (word.start, word.end))
        yield Constant(flag, value, word.line + 1, before, end, Range("one of", choices=choices), is_flag=True)


def _words(text: str, line: int, start: int = 0) -> Iterator[_Word]:
    return (_Word(match[1], line, match.start(), match.end()) for match in _WORD.finditer(text, start))
