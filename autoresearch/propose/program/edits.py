"""Edits of a program's source. Whatever an edit does not name stays as it is, byte for byte.

Literals are set by their place. Those of a C or C++ compiler are its flags: ``-O2``, and switches such as ``-flto``
that stand there or do not. They are read from ``compile_flags.txt``, which a build names as ``@compile_flags.txt``, and
from the line of a script that begins with a compiler. A flag that says something else (``-Os``,
``-march=x86-64-v3``, ``-fno-lto``) stays.

Blocks of patches replace what matches byte for byte, once. ``hunks.py`` has those of models, which misquote.

The patches of a task are known ideas of its field: data, in ``changes.toml`` beside ``task.toml``. A patch is offered
only where all its search texts occur exactly once, so none is offered for a program that another hand rewrote there.
Patches are applied in the order of their names; every two of them fit together.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from autoresearch.errors import UsageError
from autoresearch.propose.program.known_names import guess
from autoresearch.propose.program.literals import (
    Literal,
    comments,
    line_literals,
    python_literals,
    repeated_lines,
    repeated_literals,
)
from autoresearch.propose.program.ranges import Constant, Value, ValueRange, is_fixed, read_range
from autoresearch.propose.program.settings_files import YAML, setting_literals
from autoresearch.task.folders import side_file
from autoresearch.task.guessing import FLAGS, SETTINGS_ENDINGS
from autoresearch.task.loading import CHANGES
from autoresearch.task.model import Task
from autoresearch.task.program import is_lone, join_files, split_program
from autoresearch.text import read_toml

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
# So many lines that assign a name are told.
_PLACES = 4
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
    flags = []
    for flag, (pattern, values) in _KNOWN.items():
        first, *others = [word for word in words if re.fullmatch(pattern, word.text)] or [place]
        if not others and first.text in values:
            flags.append((first, flag, values[first.text]))
    for word, flag, value in sorted(flags, key=lambda item: item[0][1:]):
        choices = (False, True) if isinstance(value, bool) else tuple(sorted({*_LEVELS, int(value)}))
        before, end = (len(texts[word.line][:at].encode(errors="surrogateescape")) for at in (word.start, word.end))
        yield Constant(flag, value, word.line + 1, before, end, ValueRange("one of", choices=choices), is_flag=True)


def _words(text: str, line: int, start: int = 0) -> Iterator[_Word]:
    return (_Word(match[1], line, match.start(), match.end()) for match in _WORD.finditer(text, start))


PYTHON = ".py"
# A record holds no longer name of a setting.
NAME_LENGTH = 64


class EditError(UsageError):
    """An edit does not apply to this source."""


class EditBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One SEARCH/REPLACE edit."""

    search: str
    replace: str


def constants(source: str) -> dict[str, Constant]:
    """The named literals of a program, in the order of its files. A name of several files has the file before it.

    Of Python these are top-level constants, defaults of config classes and of argparse, and entries of config dicts,
    and those in calls and functions that can be turned: none if the source doesn't parse. Of other languages they are
    the numbers behind which a comment declares a range, and the constants whose names are known; of a file of settings
    what it says; of a script, or ``compile_flags.txt``, the compiler's flags.
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
    placed = [(file, constant) for file, content in files.items() for constant in _of_file(file, content)]
    named = Counter(constant.name for _, constant in placed)
    names = ((f"{file}:" if named[constant.name] > 1 else "") + constant.name for file, constant in placed)
    return {name: place for name, place in zip(names, placed, strict=True) if len(name) <= NAME_LENGTH}


@lru_cache(maxsize=64)
def _of_file(name: str, content: str) -> tuple[Constant, ...]:
    """The constants of one file; a name that is there twice keeps its last place."""
    lines = _lines(content)
    if name.endswith(PYTHON):
        literals = list(_of_python(content, lines))
    else:
        literals = setting_literals(name, lines) if name.endswith(SETTINGS_ENDINGS) else line_literals(lines)
        literals = [*literals, *flag_literals(name, lines)]
        literals.sort(key=lambda constant: (constant.line, constant.start, constant.end))
    return tuple({constant.name: constant for constant in literals}.values())


def _lines(content: str) -> list[bytes]:
    return content.encode(errors="surrogatepass").splitlines(keepends=True)


def _of_python(source: str, lines: list[bytes]) -> Iterator[Constant]:
    literals = python_literals(source)
    comment_of = comments(literals, lines)
    for literal in literals:
        comment, node = comment_of.get(literal.name, ""), literal.node
        declared, allowed = read_range(comment, literal.value), _range(literal, comment)
        if literal.is_deep and allowed is None:
            continue
        start, end = node.col_offset, node.end_col_offset or 0
        guessed = declared is None and literal.declared is None
        yield Constant(literal.name, literal.value, node.lineno, start, end, allowed, guessed)


def _range(literal: Literal, comment: str) -> ValueRange | None:
    """What a literal may be: as the comment of its line says, else as its code does, else by its name."""
    if (declared := read_range(comment, literal.value)) is not None or is_fixed(comment):
        return declared
    if literal.declared is not None or not literal.free:
        return literal.declared
    return guess(literal.name, literal.value, known_only=literal.known_only)


def repetitions(source: str) -> dict[str, str]:
    """Why a program has no setting of a name though it assigns it: a sentence for each that it assigns twice or more.

    ``LR is assigned twice (lines 12 and 40): the search turns only what is assigned once``
    """
    sentences = {}
    for file, content in _files(source).items():
        text = "" if is_lone(source) else f" of {file}"
        for name, lines in _repeated(file, content).items():
            times = "twice" if len(lines) == 2 else f"{len(lines)} times"
            places = f"{', '.join(map(str, lines[:-1][:_PLACES]))} and {lines[-1]}{text}"
            sentences[name] = (
                f"{name} is assigned {times} (lines {places}): the search turns only what is assigned once"
            )
    return sentences


@lru_cache(maxsize=64)
def _repeated(name: str, content: str) -> dict[str, list[int]]:
    """What would be a setting of a file if it were assigned once, with the lines that assign it."""
    if not name.endswith(PYTHON):
        return {} if name.endswith(SETTINGS_ENDINGS) else repeated_lines(_lines(content))
    repeated = repeated_literals(content)
    comment_of = comments([literal for literal, _ in repeated.values()], _lines(content))
    return {
        name: lines
        for name, (literal, lines) in repeated.items()
        if len(name) <= NAME_LENGTH and _range(literal, comment_of.get(name, "")) is not None
    }


def set_constants(source: str, values: Mapping[str, Value]) -> str:
    """The source with these constants set, and everything else as it was.

    Raises:
        EditError: a name is no constant of the source, or a value cannot be written as a literal there.
    """
    files = _files(source)
    literals = _by_name(files)
    if missing := sorted(set(values) - set(literals)):
        raise EditError(f"the source has no constant {missing[0]}")
    lines = {file: _lines(content) for file, content in files.items()}
    for name, (file, constant) in reversed(literals.items()):
        if name in values:
            line = lines[file][constant.line - 1]
            new = _literal(constant, values[name], line[constant.start : constant.end])
            if file.endswith(YAML):
                new = re.sub(rb"^(-?\d+)e", rb"\1.0e", new)  # to YAML 1.1 is 1e-05 a text
            lines[file][constant.line - 1] = line[: constant.start] + new + line[constant.end :]
    changed = join_files({file: b"".join(each).decode(errors="surrogatepass") for file, each in lines.items()})
    again = constants(changed)
    for name, value in values.items():
        if name not in again or again[name].value != value:
            raise EditError(f"{name} can't be set to {value} in this source")
    return changed


def apply_blocks(source: str, blocks: Sequence[EditBlock]) -> str:
    """The source after each block in turn.

    Raises:
        EditError: a block is empty, or its search text is not there exactly once.
    """
    for number, block in enumerate(blocks, 1):
        count = source.count(block.search) if block.search else 0
        if count != 1:
            fault = "is empty" if not block.search else f"occurs {count} times, not once"
            raise EditError(f"the search text of block {number} {fault}")
        source = source.replace(block.search, block.replace)
    return source


def _literal(constant: Constant, value: Value, old: bytes) -> bytes:
    """A value as a program spells it, a power of two as one where the old value was."""
    if isinstance(value, float) and not math.isfinite(value):
        raise EditError(f"{constant.name} cannot be {value}")
    if constant.is_flag:
        flag = f"{' ' if constant.start else ''}{constant.name}{'' if value is True else value}"
        return flag.encode() if value is not False else b""
    if b"**" in old and isinstance(value, int) and value > 0 and value.bit_count() == 1:
        return b"2**%d" % (value.bit_length() - 1)
    if isinstance(value, str) and old[-1:] not in b"\"'":
        return value.encode(errors="surrogateescape")  # a file of sections has text without quotes
    return repr(value).encode()


_Words = Annotated[str, Meta(min_length=1, max_length=280)]


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One structural idea: what it is called in a genome (``+muon``) and in titles, why it may help, what it edits."""

    name: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,47}\Z")]
    label: Annotated[str, Meta(min_length=1, max_length=40)]
    """Two or three words for the title of a run."""
    title: _Words
    rationale: _Words
    blocks: Annotated[tuple[EditBlock, ...], Meta(min_length=1)] = msgspec.field(name="edit")


class Patches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The patches of a task. ``needs`` is a text without which a program has a text of a patch in it by chance.

    ``command_settings`` are the settings that the task's command gives: changes of them in the program would do
    nothing. ``declared`` is what the program in the task's folder says of settings in comments that the baseline has
    not, by their names: a range, or None for what is fixed.
    """

    needs: str = ""
    patches: Annotated[tuple[Patch, ...], Meta(max_length=64)] = msgspec.field(name="patch", default=())
    command_settings: frozenset[str] = frozenset()
    declared: tuple[tuple[str, ValueRange | None], ...] = ()

    def commented(self, constant: Constant) -> Constant:
        """The constant with what the folder's program says of it."""
        declared = dict(self.declared)
        if constant.name not in declared:
            return constant
        allowed = declared[constant.name]
        if allowed and isinstance(constant.value, str | bool) and constant.value not in allowed.choices:
            return constant
        return replace(constant, range=allowed, guessed=False)

    def gives(self, name: str) -> bool:
        """Whether the command gives the setting that a constant of this name is."""
        plain = f".{_plain_name(name)}"
        return any(plain.endswith(f".{setting}") for setting in self.command_settings)

    def find(self, name: str) -> Patch | None:
        """The patch of this name."""
        return next((patch for patch in self.patches if patch.name == name), None)

    def label(self, name: str) -> str:
        """How a title calls a patch: by its label, or by its name where it is none of these."""
        patch = self.find(name)
        return patch.label if patch else name

    def offered(self, source: str) -> list[str]:
        """The names of the patches that apply to this source and are not in it already, sorted."""
        if self.needs not in source:
            return []
        return sorted(patch.name for patch in self.patches if _applies(source, patch.blocks))

    def apply(self, source: str, names: Collection[str]) -> str:
        """The source with these patches.

        Raises:
            EditError: there is no such patch, or one does not apply.
        """
        for name in sorted(names):
            patch = self.find(name)
            if patch is None:
                raise EditError(f"there is no patch {name}")
            source = apply_blocks(source, patch.blocks)
        return source


NO_PATCHES = Patches()


def patches_of(task: Task) -> Patches:
    """The patches of a task, from its folder; none where it has no ``changes.toml``. With what its command gives.

    Raises UsageError naming the file and the key where it can't be read.
    """
    patches = read_patches(side_file(CHANGES, task.definition(), task.folder), f"{task.folder / CHANGES}")
    return msgspec.structs.replace(
        patches, command_settings=settings_in(task.recipe.command), declared=declared_in(task)
    )


def declared_in(task: Task) -> tuple[tuple[str, ValueRange | None], ...]:
    """What comments of the folder's program say of settings beyond those of the baseline.

    Where a comment makes another text, as in files of settings, the baseline is a copy from before it.
    """
    if task.program == task.baseline:
        return ()
    before = constants(task.baseline.decode())
    declared: dict[str, ValueRange | None] = {}
    for name, constant in constants(task.program.decode()).items():
        if name not in before or constant.range == before[name].range:
            continue
        # A guess follows the value; where that is the same and there is none, a comment says so.
        if not constant.guessed or (constant.range is None and constant.value == before[name].value):
            declared[name] = constant.range
    return tuple(declared.items())


def settings_in(command: str) -> frozenset[str]:
    """The settings that a command gives, as :attr:`Patches.command_settings` has them."""
    words = (_GIVEN.fullmatch(word) for word in shlex.split(command))
    return frozenset(_plain_name(word["flag"] or word["name"]) for word in words if word)


# "--lr", "--lr=0.1", and "lr=0.1" as Hydra has it.
_GIVEN = re.compile(r"--(?P<flag>[A-Za-z][\w.-]*)(?:=.*)?|(?P<name>[A-Za-z][\w.]*)=.*", re.DOTALL)


def _plain_name(name: str) -> str:
    """How the name of a setting is written in a program and on a command line alike."""
    return name.rpartition(":")[2].lstrip("-").replace("-", "_").lower()


@lru_cache(maxsize=16)
def read_patches(content: bytes, path: str = CHANGES) -> Patches:
    """The patches in a ``changes.toml``; ``path`` names it in errors. Raises UsageError."""
    try:
        patches = msgspec.convert(read_toml(content), Patches)
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"{path}: {error}", hint="correct it there, or move the file away") from error
    names = [patch.name for patch in patches.patches]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{path} has two patches named {double}", hint="rename one of them")
    return patches


def _applies(source: str, blocks: tuple[EditBlock, ...]) -> bool:
    if all(block.replace in source for block in blocks):
        return False
    try:
        apply_blocks(source, blocks)
    except EditError:
        return False
    return True
