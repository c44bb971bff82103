"""Reads a model's answer: a change of a program, or a sentence for the model that says what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from autoresearch.errors import UsageError
from autoresearch.proposers.edits import EditError
from autoresearch.proposers.line_edits import replace_lines
from autoresearch.proposers.reply_parts import Parts, parts_of
from autoresearch.sanitise import one_line
from autoresearch.tasks import ENTRY, source_digest

# A longer answer is not read.
LARGEST_ANSWER = 1 << 20
TITLE_CHARACTERS, HYPOTHESIS_CHARACTERS = 60, 1000
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LARGEST_NUMBER = 1e12


class BadReply(UsageError):
    """An answer gives no program that can be run. The sentence is for the model."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an answer must hold to."""

    parent: str
    """The program that it changes."""
    files: frozenset[str] = frozenset({ENTRY})
    """The names of the files that a program consists of."""
    largest_bytes: int = 64 << 10
    known: Callable[[bytes], str] = lambda _: ""
    """What to say of a program that was run or is being tried, by its digest: “g3xk gave 1.15”; empty for a new one."""
    guard: Callable[[str, str], list[str]] | None = None
    """Says in sentences what is wrong with a program, given its parent; None where the task has no such rules."""
    digest: Callable[[str], bytes] = source_digest
    """What names a program; raises UsageError for a text that is none."""


@dataclass(frozen=True, slots=True)
class Change:
    """A program that a model wrote, and why."""

    source: str
    source_digest: bytes
    title: str
    hypothesis: str
    expected: float | None
    form: Literal["blocks", "whole"]
    insight: str = ""
    """What the model says that the runs show; it names them by their ids."""


def read_reply(answer: str, rules: Rules) -> Change:
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
    return Change(source, digest, title, hypothesis or title, _expected(parts.expect), form, insight)


def _changed(parts: Parts, rules: Rules) -> tuple[str, Literal["blocks", "whole"]]:
    if parts.fault:
        raise BadReply(parts.fault)
    if parts.blocks:
        try:
            return replace_lines(rules.parent, parts.blocks), "blocks"
        except EditError as error:
            raise BadReply(str(error)) from error
    if len(parts.fences) != 1:
        found = f"{len(parts.fences)} code fences" if parts.fences else "no program in a code fence"
        raise BadReply(f"The answer has no SEARCH/REPLACE block and {found}; use the form that was asked for.")
    whole = parts.fences[0]
    if 2 * len(whole.split("\n")) < len(rules.parent.split("\n")):
        raise BadReply(
            "The code in the answer is less than half as long as the program, so it is not the whole of it; "
            "use SEARCH/REPLACE blocks for a part."
        )
    return whole, "whole"


def check_program(source: str, rules: Rules) -> bytes:
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
    if known := rules.known(digest):
        raise BadReply(f"This very program is known: {one_line(known, 200)}. Propose another change.")
    wrong = rules.guard(source, rules.parent) if rules.guard else []
    if wrong:
        raise BadReply(" ".join(one_line(sentence, 200) for sentence in wrong[:5]))
    return digest


def _digest_or_none(rules: Rules) -> bytes | None:
    try:
        return rules.digest(rules.parent)
    except UsageError:
        return None


def _expected(text: str) -> float | None:
    found = _NUMBER.search(text[:200])
    value = float(found[0]) if found else math.nan
    return value if abs(value) < _LARGEST_NUMBER else None
