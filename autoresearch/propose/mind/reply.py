"""Reads a model's answer: a change of a program, or a sentence for the model that says what is wrong with it.

Taken apart line by line: named fields, SEARCH/REPLACE blocks, code fences, names of files. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from autoresearch.errors import UsageError
from autoresearch.propose.program.edits import EditBlock, EditError, replace_lines
from autoresearch.task.program import ENTRY, source_digest
from autoresearch.task.seeds import seedless_digest
from autoresearch.text import one_line

# More blocks than these are no single change.
MOST_BLOCKS = 100
# What some models put before their answer; it may hold drafts of it.
_THOUGHT_ENDS = "</think>"
_SEARCH = re.compile(r"<{5,9} ?SEARCH\b.*")
_MIDDLE = re.compile(r"={5,9}")
_REPLACE = re.compile(r">{5,9} ?REPLACE\b.*")
_FIELD = re.compile(r"[\s>*#_-]{0,8}(TITLE|HYPOTHESIS|EXPECT|INSIGHT)[*_]{0,3}\s?:[*_]{0,3}(.*)", re.IGNORECASE)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})(.*)")
_FILE = re.compile(
    r"[\s*#`_]{0,8}(?:(?:FILE|PATH)\s?:\s?)?[`*]{0,3}"
    r"((?:[\w.+-]{1,64}/){0,8}[\w.+-]{1,64}\.(?:py|toml|json|jsonl|txt|md|ya?ml|sh|cfg|ini|c|cc|cpp|cu|h|rs|js|ts))"
    r"[`*_:\s]{0,8}",
    re.IGNORECASE,
)
_FILE_CHARACTERS, _FIELD_CHARACTERS = 300, 20_000


@dataclass(slots=True)
class Parts:
    """What an answer consists of. ``fault`` says what is wrong with the form of a block, or is empty."""

    title: str = ""
    hypothesis: str = ""
    expect: str = ""
    insight: str = ""
    blocks: list[EditBlock] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    """The files that blocks and fences are said to be of."""
    fault: str = ""


def parts_of(answer: str) -> Parts:
    """The parts of an answer. Takes time linear in its length, whatever it is."""
    spoken = answer[answer.rfind(_THOUGHT_ENDS) + len(_THOUGHT_ENDS) :] if _THOUGHT_ENDS in answer else answer
    return _BlockReader(spoken.replace("\r\n", "\n").split("\n")).read()


class _BlockReader:
    """Reads lines one after the other; what is found is in ``parts``."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = iter(lines)
        self._parts = Parts()
        # The last line that is not empty, which may name a file; and the field that goes on in the next line.
        self._before = ""
        self._in_hypothesis = False

    def read(self) -> Parts:
        for line in self._lines:
            if self._parts.fault:
                break
            if _SEARCH.fullmatch(line.strip()):
                self._block()
            elif fence := _FENCE.fullmatch(line):
                self._fence(fence[1], fence[2])
            else:
                self._text(line)
                self._before = line if line.strip() else self._before
        return self._parts

    def _block(self) -> None:
        number = len(self._parts.blocks) + 1
        search = self._until(_MIDDLE)
        replace = None if search is None else self._until(_REPLACE)
        if search is None or replace is None:
            missing = "=======" if search is None else ">>>>>>> REPLACE"
            self._parts.fault = f"Block {number} has no line {missing}."
        elif number > MOST_BLOCKS:
            self._parts.fault = f"The answer has more than {MOST_BLOCKS} blocks; propose one small change."
        else:
            self._parts.blocks.append(EditBlock("\n".join(search), "\n".join(replace)))
            self._name_file(self._before)
        self._before = ""

    def _until(self, end: re.Pattern[str]) -> list[str] | None:
        """The lines up to the one that ends a part of a block; None where another block begins before."""
        lines: list[str] = []
        for line in self._lines:
            if end.fullmatch(line.strip()):
                return lines
            if _SEARCH.fullmatch(line.strip()):
                return None
            lines.append(line)
        return None

    def _fence(self, mark: str, info: str) -> None:
        """A code fence. Where it holds blocks, the lines around them are text; else it is code."""
        for word in info.split()[:3]:
            self._before = word.split("=", 1)[-1].strip("\"'") if _names_file(word) else self._before
        closing = re.compile(rf"\s{{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*")
        above, blocks, code = self._before, len(self._parts.blocks), list[str]()
        for line in self._lines:
            if closing.fullmatch(line) or self._parts.fault:
                break
            if _SEARCH.fullmatch(line.strip()):
                self._block()
            else:
                code.append(line)
                self._before = line if line.strip() else self._before
        if len(self._parts.blocks) > blocks:
            for line in code:
                self._text(line)
        elif any(map(str.strip, code)):
            self._parts.fences.append("\n".join([*code, ""]))
            self._name_file(above)
        self._before, self._in_hypothesis = "", False

    def _text(self, line: str) -> None:
        field = _FIELD.fullmatch(line[:_FIELD_CHARACTERS])
        if field:
            name, text = field[1].upper(), field[2].strip(" *_")
            self._in_hypothesis = name == "HYPOTHESIS"
            if name == "TITLE":
                self._parts.title = text
            elif name == "EXPECT":
                self._parts.expect = text
            elif name == "INSIGHT":
                self._parts.insight = text
            else:
                self._parts.hypothesis = text
        elif not line.strip():
            self._in_hypothesis = False
        elif self._in_hypothesis and len(self._parts.hypothesis) < _FIELD_CHARACTERS:
            self._parts.hypothesis += f" {line.strip()}"

    def _name_file(self, line: str) -> None:
        if file := _FILE.fullmatch(line[:_FILE_CHARACTERS]):
            self._parts.files.add(file[1].removeprefix("./"))


def _names_file(word: str) -> bool:
    return _FILE.fullmatch(word[:_FILE_CHARACTERS].split("=", 1)[-1].strip("\"'")) is not None


# A longer answer is not read.
LARGEST_ANSWER = 1 << 20
TITLE_CHARACTERS, HYPOTHESIS_CHARACTERS = 60, 1000
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LARGEST_NUMBER = 1e12


class BadReply(UsageError):
    """An answer gives no program that can be run. The sentence is for the model."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What an answer must hold to."""

    parent: str
    """The program that it changes."""
    files: frozenset[str] = frozenset({ENTRY})
    """The names of the files that a program consists of."""
    largest_bytes: int = 64 << 10
    past_result: Callable[[bytes], str] = lambda _: ""
    """What to say of a program that was run or is being tried, by its digest: “g3xk gave 1.15”; empty for a new one."""
    guard: Callable[[str, str], list[str]] | None = None
    """Says in sentences what is wrong with a program, given its parent; None where the task has no such rules."""
    digest: Callable[[str], bytes] = source_digest
    """What names a program; raises UsageError for a text that is none."""


@dataclass(frozen=True, slots=True)
class ProposedProgram:
    """A program that a model wrote, and why."""

    source: str
    source_digest: bytes
    title: str
    hypothesis: str
    expected: float | None
    form: Literal["blocks", "whole"]
    insight: str = ""
    """What the model says that the runs show; it names them by their ids."""


def read_reply(answer: str, rules: AnswerRules) -> ProposedProgram:
    """The change in an answer: SEARCH/REPLACE blocks, or without any the whole program in one code fence.

    Raises:
        BadReply: it gives no program, or one that is not to be run.
    """
    if len(answer) > LARGEST_ANSWER:
        raise BadReply(f"The answer has more than {LARGEST_ANSWER >> 10} KiB; answer with the change alone.")
    parts = parts_of(answer)
    other = sorted(name for name in parts.files if not {name, name.rpartition("/")[2]} & rules.files)
    if other:
        only = ", ".join(sorted(rules.files))
        raise BadReply(f"The answer changes {one_line(other[0], 80)}, but only {only} may be changed.")
    source, form = _changed(parts, rules)
    digest = check_program(source, rules)
    hypothesis = one_line(parts.hypothesis, HYPOTHESIS_CHARACTERS)
    title = one_line(parts.title or hypothesis, TITLE_CHARACTERS)
    if not title:
        raise BadReply("The answer has neither a line TITLE: nor a line HYPOTHESIS:; say what is changed and why.")
    insight = one_line(parts.insight, HYPOTHESIS_CHARACTERS)
    return ProposedProgram(source, digest, title, hypothesis or title, _expected(parts.expect), form, insight)


def _changed(parts: Parts, rules: AnswerRules) -> tuple[str, Literal["blocks", "whole"]]:
    if parts.fault:
        raise BadReply(parts.fault)
    if parts.blocks:
        try:
            return replace_lines(rules.parent, parts.blocks), "blocks"
        except EditError as error:
            raise BadReply(str(error)) from error
    if len(parts.fences) != 1:
        fences = f"{len(parts.fences)} code fences" if parts.fences else "no program in a code fence"
        raise BadReply(f"The answer has no SEARCH/REPLACE block and {fences}; use the form that was asked for.")
    whole = parts.fences[0]
    if 2 * len(whole.split("\n")) < len(rules.parent.split("\n")):
        raise BadReply(
            "The code in the answer is less than half as long as the program, so it is not the whole of it; "
            "use SEARCH/REPLACE blocks for a part."
        )
    return whole, "whole"


def check_program(source: str, rules: AnswerRules) -> bytes:
    """The digest of a program that may be run.

    Raises:
        BadReply: it is too large, is no program, is known, or breaks a rule of the task.
    """
    if len(source.encode(errors="replace")) > rules.largest_bytes:
        raise BadReply(f"The program would have more than the allowed {rules.largest_bytes} bytes.")
    try:
        source.encode()
        digest = rules.digest(source)
    except UnicodeEncodeError as error:
        raise BadReply("The program would have characters that can't be written as UTF-8.") from error
    except UsageError as error:
        raise BadReply(f"The program would not be valid after the change: {one_line(str(error), 200)}.") from error
    if digest == _digest_or_none(rules):
        raise BadReply("Nothing changed but comments, spacing or the spelling of numbers.")
    if seedless_digest(source) == seedless_digest(rules.parent):
        raise BadReply("Only a seed changed: that repeats the program and is no improvement. Change something else.")
    if earlier := rules.past_result(digest):
        raise BadReply(f"This very program is known: {one_line(earlier, 200)}. Propose another change.")
    wrong = rules.guard(source, rules.parent) if rules.guard else []
    if wrong:
        raise BadReply(" ".join(one_line(sentence, 200) for sentence in wrong[:5]))
    return digest


def _digest_or_none(rules: AnswerRules) -> bytes | None:
    try:
        return rules.digest(rules.parent)
    except UsageError:
        return None


def _expected(text: str) -> float | None:
    number = _NUMBER.search(text[:200])
    value = float(number[0]) if number else math.nan
    return value if abs(value) < _LARGEST_NUMBER else None
