"""Reads a model's answer: a change of a program, or a sentence for the model that says what is wrong with it.

Taken apart line by line: named fields, SEARCH/REPLACE blocks, diffs, code fences, names of files. JSON and calls of
tools are read by ``json_edits.py``. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autoresearch.errors import UsageError
from autoresearch.propose.mind.json_edits import json_edits
from autoresearch.propose.program.edits import EditError
from autoresearch.propose.program.hunks import Hunk, block_hunk, is_diff_line, read_diff, replace_lines
from autoresearch.task.program import ENTRY, join_files, source_digest, split_program
from autoresearch.task.seeds import seedless_digest
from autoresearch.text import one_line

# More blocks than these are no single change.
MOST_BLOCKS = 100
# What some models put before their answer; it may hold drafts of it.
_THOUGHT_ENDS = "</think>"
_SEARCH = re.compile(r"<{5,9} ?(?:SEARCH|ORIGINAL|OLD|HEAD)\b.*")
_MIDDLE = re.compile(r"={5,9}")
_REPLACE = re.compile(r">{5,9} ?(?:REPLACE|UPDATED|NEW)\b.*")
_SHELLS = ("bash", "sh", "shell", "console", "zsh")
_FIELD = re.compile(r"[\s>*#_-]{0,8}(TITLE|HYPOTHESIS|EXPECT|INSIGHT|PLAN)[*_]{0,3}\s?:[*_]{0,3}(.*)", re.IGNORECASE)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})(.*)")
_FILE = re.compile(
    r"[\s*#`_]{0,8}(?:(?:FILE|PATH)\s?:\s?)?[`*]{0,3}"
    r"((?:[\w.+-]{1,64}/){0,8}[\w.+-]{1,64}\.(?:py|toml|json|jsonl|txt|md|ya?ml|sh|cfg|ini|c|cc|cpp|cu|h|rs|js|ts))"
    r"[`*_:\s]{0,8}",
    re.IGNORECASE,
)
_FILE_CHARACTERS, _FIELD_CHARACTERS = 300, 20_000
# What may stand between the hunks of a diff.
_DIFF = re.compile(r"diff --git |index [0-9a-f]|new file|deleted file|old mode|new mode|similarity|rename |\*\*\* \w")
# How a model says that it doesn't want to: a text alone, without a change.
_REFUSAL = re.compile(
    r"\b(?:can(?:no|['’])t|can not|won['’]t|will not|unable to|not able to|decline to|refuse to|not comfortable)"
    r"(?: be able to)?(?: \w+){0,4} (?:help|assist|comply|provide|create|generate|write|propose|suggest|fulfil+|"
    r"continue|support|answer|do (?:that|this)|engage|participate|offer|make|modify|change|complete|process)\b"
    r"|\b(?:I['’]?m|I am|we['’]re) sorry\b"
    r"|\bI apologi[sz]e\b|\bI must decline\b|against (?:my|our|the) (?:guidelines|polic)"
    r"|tut mir leid|kann (?:\w+ ){0,4}nicht helfen|je ne peux pas|d[ée]sol[ée]|lo siento|no puedo",
    re.IGNORECASE,
)
_REFUSAL_CHARACTERS, _REFUSAL_BEGINNING = 2000, 300


@dataclass(slots=True)
class Parts:
    """What an answer consists of. ``fault`` says what is wrong with the form of a block, or is empty."""

    title: str = ""
    hypothesis: str = ""
    expect: str = ""
    insight: str = ""
    plan: str = ""
    hunks: list[Hunk] = field(default_factory=list)
    fences: list[tuple[str, str]] = field(default_factory=list)
    """Code that is no edit, with the file that it is said to be, or an empty name."""
    prose: list[str] = field(default_factory=list)
    """The lines that are none of these."""
    call: str = ""
    """The tool that it calls where that is no edit."""
    is_json: bool = False
    files: set[str] = field(default_factory=set)
    """The files that blocks and fences are said to be of."""
    fault: str = ""


def parts_of(answer: str) -> Parts:
    """The parts of an answer. Takes time linear in its length, whatever it is."""
    spoken = answer[answer.rfind(_THOUGHT_ENDS) + len(_THOUGHT_ENDS) :] if _THOUGHT_ENDS in answer else answer
    parts = _BlockReader(spoken.replace("\r\n", "\n").split("\n")).read()
    if parts.fault or parts.hunks or (edits := json_edits(spoken)) is None:
        return parts
    for name, text in edits.fields.items():
        if not getattr(parts, name.lower()):
            setattr(parts, name.lower(), text)
    parts.is_json, parts.call = True, edits.call
    if edits.hunks or edits.wholes:
        parts.hunks, parts.fences, parts.call = edits.hunks[: MOST_BLOCKS + 1], edits.wholes, ""
        parts.files |= edits.files | {hunk.file for hunk in edits.hunks if hunk.file}
    return parts


class _BlockReader:
    """Reads lines one after the other; what is found is in ``parts``."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = iter(lines)
        self._parts = Parts()
        # The last line that is not empty, which may name a file; and the field that goes on in the next line.
        self._before = ""
        self._field = ""

    def read(self) -> Parts:
        for line in self._lines:
            self._line(line)
            if self._parts.fault:
                break
        return self._parts

    def _line(self, line: str) -> None:
        if _SEARCH.fullmatch(line.strip()):
            self._block()
        elif fence := _FENCE.fullmatch(line):
            self._fence(fence[1], fence[2])
        elif is_diff_line(line):
            self._diff(line)
        else:
            self._text(line)
            self._before = line if line.strip() else self._before

    def _block(self) -> None:
        number = len(self._parts.hunks) + 1
        search = self._until(_MIDDLE)
        replace = None if search is None else self._until(_REPLACE)
        if search is None or replace is None:
            missing = "=======" if search is None else ">>>>>>> REPLACE"
            self._parts.fault = f"Block {number} has no line {missing}."
        else:
            block = block_hunk(f"block {number}", "\n".join(search), "\n".join(replace))
            self._parts.hunks.append(block._replace(file=self._name_file(self._before)))
        self._before = ""

    def _diff(self, first: str) -> None:
        """A diff without a fence: it ends where a line is none of it."""
        lines, end = [first], ""
        for line in self._lines:
            is_text = line and line[0] not in " +-@\\" and not _DIFF.match(line)
            if is_text or _FIELD.fullmatch(line[:_FIELD_CHARACTERS]):
                end = line
                break
            lines.append(line)
        self._add_diff(lines)
        self._line(end)

    def _add_diff(self, lines: list[str]) -> None:
        hunks = read_diff(lines)
        self._parts.hunks += hunks
        self._parts.files.update(hunk.file for hunk in hunks if hunk.file)
        self._before, self._field = "", ""

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
        above, hunks, code = self._before, len(self._parts.hunks), list[str]()
        for line in self._lines:
            if closing.fullmatch(line) or self._parts.fault:
                break
            if _SEARCH.fullmatch(line.strip()):
                self._block()
            else:
                code.append(line)
                self._before = line if line.strip() else self._before
        if len(self._parts.hunks) > hunks:
            for line in code:
                self._text(line)
        elif (info[:4] in ("diff", "patc") or any(map(is_diff_line, code))) and read_diff(code):
            self._add_diff(code)
        elif info.strip().lower() in _SHELLS:
            self._parts.call = info.strip().lower()
        elif any(map(str.strip, code)):
            self._parts.fences.append((self._name_file(above), "\n".join([*code, ""])))
        self._before, self._field = "", ""

    def _text(self, line: str) -> None:
        parts = self._parts
        if match := _FIELD.fullmatch(line[:_FIELD_CHARACTERS]):
            self._field = match[1].lower()
            setattr(parts, self._field, match[2].strip(" *_"))
            return
        parts.prose.append(line)
        if not line.strip():
            self._field = ""
        elif self._field == "hypothesis" and len(parts.hypothesis) < _FIELD_CHARACTERS:
            parts.hypothesis += f" {line.strip()}"

    def _name_file(self, line: str) -> str:
        file = _FILE.fullmatch(line[:_FILE_CHARACTERS])
        name = file[1].removeprefix("./") if file else ""
        if name:
            self._parts.files.add(name)
        return name


def _names_file(word: str) -> bool:
    return _FILE.fullmatch(word[:_FILE_CHARACTERS].split("=", 1)[-1].strip("\"'")) is not None


# A longer answer is not read.
LARGEST_ANSWER = 1 << 20
TITLE_CHARACTERS, HYPOTHESIS_CHARACTERS, PLAN_CHARACTERS = 60, 1000, 600
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LARGEST_NUMBER = 1e12


class BadReply(UsageError):
    """An answer gives no program that can be run. The sentence is for the model."""


class ModelRefusal(BadReply):
    """An answer says in words that the model makes no change: it is not asked again."""


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
    insight: str = ""
    """What the model says that the runs show; it names them by their ids."""
    plan: str = ""
    """What it means to do after this change, for itself."""


def read_reply(answer: str, rules: AnswerRules) -> ProposedProgram:
    """The change in an answer: edits of the program in any known form, or without any the whole program.

    Raises:
        ModelRefusal: it says in words that there will be none.
        BadReply: it gives no program, or one that is not to be run.
    """
    if len(answer) > LARGEST_ANSWER:
        raise BadReply(f"The answer has more than {LARGEST_ANSWER >> 10} KiB; answer with the change alone.")
    parts = parts_of(answer)
    other = sorted(name for name in parts.files if not {name, name.rpartition("/")[2]} & rules.files)
    if other:
        only = ", ".join(sorted(rules.files))
        raise BadReply(f"The answer changes {one_line(other[0], 80)}, but only {only} may be changed.")
    source = _changed(parts, rules)
    digest = check_program(source, rules)
    hypothesis = one_line(parts.hypothesis, HYPOTHESIS_CHARACTERS)
    title = one_line(parts.title or hypothesis, TITLE_CHARACTERS)
    if not title:
        raise BadReply("The answer has neither a line TITLE: nor a line HYPOTHESIS:; say what is changed and why.")
    insight, plan = one_line(parts.insight, HYPOTHESIS_CHARACTERS), one_line(parts.plan, PLAN_CHARACTERS)
    return ProposedProgram(source, digest, title, hypothesis or title, expected_value(parts.expect), insight, plan)


def _changed(parts: Parts, rules: AnswerRules) -> str:
    if parts.fault:
        raise BadReply(parts.fault)
    if len(parts.hunks) > MOST_BLOCKS:
        raise BadReply(f"The answer has more than {MOST_BLOCKS} blocks; propose one small change.")
    if parts.hunks:
        try:
            return replace_lines(rules.parent, parts.hunks)
        except EditError as error:
            raise BadReply(str(error)) from error
    files = split_program(rules.parent)
    named = {name: text for file, text in parts.fences if (name := _file_of(file, files)) and len(files) > 1}
    if named and len(named) == len(parts.fences):
        return join_files({**files, **named})
    whole = [text for _, text in parts.fences if _is_whole(text, rules)]
    if not parts.fences and _is_whole(prose := "\n".join(parts.prose).strip("\n") + "\n", rules):
        whole = [prose] if _is_program(prose, rules) else []
    if len(whole) == 1:
        return whole[0]
    raise _no_change(parts)


def _no_change(parts: Parts) -> BadReply:
    """What an answer without a change is."""
    prose = "\n".join(parts.prose).strip()
    use = "use SEARCH/REPLACE blocks"
    if parts.call:
        return BadReply(
            f"The answer calls the tool {one_line(parts.call, 64)}, which is no edit of the program; {use}."
        )
    if len(parts.fences) == 1:
        return BadReply(
            "The code in the answer is less than half as long as the program, so it is not the whole of it; "
            f"{use} for a part."
        )
    if parts.is_json:
        return BadReply(f"The answer is JSON without “search” and “replace”, a diff or a whole program; {use}.")
    beginning = prose[:_REFUSAL_BEGINNING]
    if not parts.fences and not parts.title and len(prose) < _REFUSAL_CHARACTERS and _REFUSAL.search(beginning):
        return ModelRefusal(f"it refused: “{one_line(prose, 160)}”")
    fences = f"{len(parts.fences)} code fences" if parts.fences else "no program in a code fence"
    return BadReply(f"The answer has no SEARCH/REPLACE block and {fences}; use the form that was asked for.")


def _file_of(name: str, files: Iterable[str]) -> str:
    """The file of the program that a name means, or an empty text."""
    return next((file for file in files if name and f"/{name}".endswith(f"/{file}")), "")


def _is_whole(text: str, rules: AnswerRules) -> bool:
    return 2 * len(text.split("\n")) >= len(rules.parent.split("\n"))


def _is_program(text: str, rules: AnswerRules) -> bool:
    try:
        return len(text) <= rules.largest_bytes and bool(rules.digest(text))
    except UsageError:
        return False


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


def expected_value(text: str) -> float | None:
    """The number in what an answer expects; None where there is none."""
    number = _NUMBER.search(text[:200])
    value = float(number[0]) if number else math.nan
    return value if abs(value) < _LARGEST_NUMBER else None
