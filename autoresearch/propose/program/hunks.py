"""Edits of a program as models write them, who misquote: lines to find, lines to take out, lines to put in.

A hunk comes from a SEARCH/REPLACE block, from a diff or from JSON. Its lines need not stand at the line number that it
states, and their indentation and the blanks at their ends need not be exact. Where they fit twice, the stated number
decides if it is exact; else nothing is changed. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from autoresearch.propose.program.edits import EditError
from autoresearch.task.program import join_files, split_program

# A line that is quoted in an answer to a model.
_QUOTED_CHARACTERS = 100
# Beyond this many lines no near line is looked for: it takes quadratic time.
_NEAR_LINES = 5_000
_RANGE = re.compile(r"@@ -(\d{1,7})(?:,\d{1,7})? \+\d")
_HEADER = re.compile(
    r"(?:diff --git|index [0-9a-f]|(?:new|deleted) file mode|(?:old|new) mode|similarity index|rename (?:from|to)|"
    r"\*\*\* (?:Begin|End) Patch|\*\*\* End of File)\b.*"
)
_PATCHED_FILE = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.{1,300})")
_CHANGED = ("+", "-")


class Hunk(NamedTuple):
    """Lines as ``(mark, text)``: a blank for one that stays, ``-`` for one that goes, ``+`` for a new one.

    ``name`` is what an error calls it. ``line`` is where it says that it begins, from 1. With ``exact`` its first text
    may be a part of a line, which its second one replaces.
    """

    name: str
    lines: tuple[tuple[str, str], ...]
    line: int | None = None
    file: str = ""
    exact: tuple[str, str] | None = None


def block_hunk(name: str, search: str, replace: str, *, part_of_line: bool = False) -> Hunk:
    """The hunk of a SEARCH/REPLACE block; with ``part_of_line`` of a text that need not be whole lines."""
    old = [("-", line) for line in _trimmed(search.split("\n"))]
    new = [("+", line) for line in _trimmed(replace.split("\n"))]
    return Hunk(name, (*old, *new), exact=(search, replace) if part_of_line else None)


def is_diff_line(line: str) -> bool:
    """Whether a diff may begin with this line."""
    return re.match(r"--- \S|@@ |@@$|diff --git |\*\*\* (?:Begin Patch|(?:Update|Add) File: )", line) is not None


def read_diff(lines: Sequence[str]) -> list[Hunk]:
    """The hunks of a unified diff, or of a patch without line numbers as some agents write it."""
    hunks: list[Hunk] = []
    file, body, line = "", list[tuple[str, str]](), None

    def close() -> None:
        if any(mark in _CHANGED for mark, _ in body):
            hunks.append(Hunk(f"hunk {len(hunks) + 1} of the diff", tuple(body), line, file))
        body.clear()

    for number, text in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if (text.startswith("--- ") and following.startswith("+++ ")) or _HEADER.fullmatch(text):
            close()
            line = None
        elif text.startswith("+++ ") and number and lines[number - 1].startswith("--- "):
            new = text[4:].split("\t")[0].strip()
            file = _plain_file(lines[number - 1][4:].split("\t")[0].strip() if new == "/dev/null" else new)
        elif match := _PATCHED_FILE.fullmatch(text):
            close()
            file, line = _plain_file(match[1].strip()), None
        elif text.startswith("@@"):
            close()
            line = int(match[1]) if (match := _RANGE.match(text)) else None
        elif not text.startswith("\\"):  # "\ No newline at end of file"
            is_marked = text[:1] in (" ", "+", "-")
            body.append((text[0], text[1:]) if is_marked else (" ", text))  # some lose the blank before a context line
    close()
    return hunks


def _plain_file(name: str) -> str:
    name = name.strip("\"'`")
    return name[2:] if name.startswith(("a/", "b/")) else name.removeprefix("./")


def replace_lines(source: str, hunks: Sequence[Hunk]) -> str:
    """The source after each hunk in turn.

    Raises:
        EditError: the lines that a hunk looks for are none, are not there, or are there more than once.
    """
    added: Counter[str] = Counter()
    for hunk in hunks:
        files = split_program(source)
        file = next((name for name in files if len(files) > 1 and f"/{hunk.file}".endswith(f"/{name}")), "")
        old = files[file] if file else source
        new = _with(old, hunk, added[file])
        added[file] += new.count("\n") - old.count("\n")
        source = join_files({**files, file: new}) if file else new
    return source


def _with(source: str, hunk: Hunk, added: int) -> str:
    """A text with a hunk; lines further down have moved by ``added``."""
    if hunk.exact and hunk.exact[0] and source.count(hunk.exact[0]) == 1:
        return source.replace(*hunk.exact)
    lines, marked, line = source.split("\n"), list(hunk.lines), hunk.line
    for end in (0, -1):
        while marked and marked[end][0] == " " and not marked[end][1].strip():
            marked.pop(end)
            line = line + 1 if line is not None and end == 0 else line
    search = [text for mark, text in marked if mark != "+"]
    if not any(map(str.strip, search)):
        raise EditError(f"{hunk.name[:1].upper()}{hunk.name[1:]} looks for no line; copy lines of the program into it.")
    at = _only_place(lines, search, hunk.name, None if line is None else line - 1 + added)
    lines[at : at + len(search)] = _replaced(marked, lines[at : at + len(search)])
    return "\n".join(lines)


def _replaced(marked: Sequence[tuple[str, str]], matched: Sequence[str]) -> list[str]:
    """The new lines: those that stay as the program has them, new ones as far to the right as the old ones stand."""
    old = [(mark, text) for mark, text in marked if mark != "+"]
    # A line to take out has its mark, so its blanks are its own; a context line may have lost its mark.
    first = next((at for at, (mark, text) in enumerate(old) if mark == "-" and text.strip()), None)
    gave, has = ("", "") if first is None else (_indent(old[first][1]), _indent(matched[first]))
    if first is None:
        first = next(at for at, (_, text) in enumerate(old) if text.strip())
        gave, has = _indent(old[first][1]), _indent(matched[first])
        gave = has if has == f"{gave} " else gave
    left, new = iter(matched), list[str]()
    for mark, text in marked:
        if mark == "+":
            new.append(has + text[len(gave) :] if gave != has and text.startswith(gave) and text.strip() else text)
        else:
            line = next(left)
            new += [line] if mark == " " else []
    return new


def _trimmed(lines: list[str]) -> list[str]:
    """The lines without empty ones at both ends."""
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _only_place(lines: Sequence[str], search: Sequence[str], name: str, stated: int | None) -> int:
    forms: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip)
    for form in forms:
        places = _places([form(line) for line in lines], [form(line) for line in search])
        if stated in places or len(places) == 1:
            return stated if stated in places and stated is not None else places[0]
        if places:
            raise EditError(
                f"The lines that {name} looks for occur {len(places)} times, first in lines {places[0] + 1} and "
                f"{places[1] + 1}; add lines before or after them until they occur once."
            )
    answer = "The answer is a diff whose context is" if "diff" in name else f"The lines that {name} looks for are"
    raise EditError(f"{answer} not in the program{_near(lines, search)}.")


def _places(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    width = len(search)
    return [at for at in range(len(lines) - width + 1) if lines[at] == search[0] and lines[at : at + width] == search]


def _near(lines: Sequence[str], search: Sequence[str]) -> str:
    """The first line that is missing, and the one of the program that is most like it."""
    stripped = {line.strip() for line in lines}
    missing = next((line.strip() for line in search if line.strip() not in stripped), search[0].strip())
    quoted = missing[:_QUOTED_CHARACTERS]
    if missing in stripped:
        return f": each line is there, but not in this order; copy them as they stand, beginning at “{quoted}”"
    candidates = {_code(line): line for line in sorted(stripped)} if len(stripped) <= _NEAR_LINES else {}
    nearest_codes = difflib.get_close_matches(_code(missing), candidates, 1, 0.5)
    nearest = (
        f"; the nearest line of the program is “{candidates[nearest_codes[0]][:_QUOTED_CHARACTERS]}”"
        if nearest_codes
        else ""
    )
    return f": “{quoted}” is no line of it{nearest}; copy the lines exactly"


def _code(line: str) -> str:
    """A line without its comment, of which a model often knows less."""
    return line.split("#", maxsplit=1)[0].strip()[:_QUOTED_CHARACTERS]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
