"""Takes an answer apart, line by line: named fields, SEARCH/REPLACE blocks, code fences, names of files. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from autoresearch.proposers.edits import Block

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
    blocks: list[Block] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    """The files that blocks and fences are said to be of."""
    fault: str = ""


def parts_of(answer: str) -> Parts:
    """The parts of an answer. Takes time linear in its length, whatever it is."""
    spoken = answer[answer.rfind(_THOUGHT_ENDS) + len(_THOUGHT_ENDS) :] if _THOUGHT_ENDS in answer else answer
    return _Reader(spoken.replace("\r\n", "\n").split("\n")).read()


class _Reader:
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
            self._parts.blocks.append(Block("\n".join(search), "\n".join(replace)))
            self._name_file(self._before)
        self._before = ""

    def _until(self, end: re.Pattern[str]) -> list[str] | None:
        """The lines up to the one that ends a part of a block; None where another block begins before."""
        found: list[str] = []
        for line in self._lines:
            if end.fullmatch(line.strip()):
                return found
            if _SEARCH.fullmatch(line.strip()):
                return None
            found.append(line)
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
        found = _FIELD.fullmatch(line[:_FIELD_CHARACTERS])
        if found:
            name, said = found[1].upper(), found[2].strip(" *_")
            self._in_hypothesis = name == "HYPOTHESIS"
            if name == "TITLE":
                self._parts.title = said
            elif name == "EXPECT":
                self._parts.expect = said
            elif name == "INSIGHT":
                self._parts.insight = said
            else:
                self._parts.hypothesis = said
        elif not line.strip():
            self._in_hypothesis = False
        elif self._in_hypothesis and len(self._parts.hypothesis) < _FIELD_CHARACTERS:
            self._parts.hypothesis += f" {line.strip()}"

    def _name_file(self, line: str) -> None:
        if found := _FILE.fullmatch(line[:_FILE_CHARACTERS]):
            self._parts.files.add(found[1].removeprefix("./"))


def _names_file(word: str) -> bool:
    return _FILE.fullmatch(word[:_FILE_CHARACTERS].split("=", 1)[-1].strip("\"'")) is not None
