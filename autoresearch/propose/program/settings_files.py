"""The settings in a file that is no program: sections of INI and TOML, nested keys of YAML and JSON.

Numbers are turned, by a comment that declares a range or by their names, and words with ``one of`` in a comment. In the
file of a project, ``agent.ini``, also which component is used: ``default = q_table`` in ``[Policy]``.

A file is read by its lines, since only one place of a line is to change. What can't be read so stays as it is: lists,
mappings in one line, texts of several lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from autoresearch.propose.program.known_names import guess
from autoresearch.propose.program.ranges import LARGEST, NUMBER, Constant, Value, ValueRange, is_fixed, read_range

TOML, YAML = ".toml", (".yaml", ".yml")
_NESTED = (*YAML, ".json")

_SECTION = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_KEY_OF_SECTION = re.compile(r"(?P<key>[^\s=:#;\[][^=:]*?)\s*[=:]\s*")
_KEY = re.compile(r"""\s*(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)\s*:(?:\s+|$)""")
_COMMENT = re.compile(r"(?:^|\s)[#;]")
_NUMBER = re.compile(NUMBER)
_LONG_TEXT = re.compile(r"\"{3}|'{3}")
# Where a component's code is and what was installed: no arguments of it.
_NOT_ARGUMENTS = frozenset(
    (
        "class_name",
        "file_path",
        "path",
        "root",
        "source",
        "release",
        "version",
        "commit",
        "tree",
        "isolated",
        "learns_on_run",
    )
)
# Longer lines hold no setting; strangers write them.
_LONGEST_LINE = 1000


class _SettingLine(NamedTuple):
    """A key with its value as it stands there: in which line, counted from 1, between which columns in bytes."""

    key: str
    text: str
    comment: str
    line: int
    start: int
    end: int


def setting_literals(name: str, lines: list[bytes]) -> list[Constant]:
    """What may change in the file of this name, in the order of its lines."""
    texts = [line.decode(errors="surrogateescape").rstrip("\r\n") for line in lines]
    texts = [text if len(text) <= _LONGEST_LINE else "" for text in texts]
    if name.endswith(_NESTED):
        return list(_nested(texts))
    return list(_in_sections(texts, is_toml=name.endswith(TOML)))


def _in_sections(texts: list[str], *, is_toml: bool) -> Iterator[Constant]:
    titles = [match[1].strip().lower() for text in texts if (match := _SECTION.fullmatch(text))]
    section, in_text = "", False
    for count, text in enumerate(texts, 1):
        if is_toml and len(_LONG_TEXT.findall(text)) % 2:
            in_text = not in_text
        elif title := _SECTION.fullmatch(text):
            section = title[1].strip().lower()
        elif match := None if in_text or not (section or is_toml) else _KEY_OF_SECTION.match(text):
            entry = _entry(match, count)
            key = entry.key.lower()
            if key == "default" and entry.text in (names := _components(titles, section)):
                allowed = None if is_fixed(entry.comment) or len(names) < 2 else ValueRange("one of", choices=names)
                yield from _constant(section, entry.text, entry, allowed)
            elif key not in _NOT_ARGUMENTS:
                yield from _setting(f"{section}.{key}" if section else key, entry)


def _components(titles: list[str], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(title.partition(".")[2].strip() for title in titles if title.startswith(f"{kind}.")))


def _nested(texts: list[str]) -> Iterator[Constant]:
    """The settings of nested keys, by how far lines are indented: JSON too where it is written so."""
    above: list[tuple[int, str | None]] = []  # of each key around a line how far it is indented; None: a list
    text_at: int | None = None
    for count, text in enumerate(texts, 1):
        indent = len(text) - len(text.lstrip())
        if not text.strip() or (text_at is not None and indent > text_at):
            continue
        text_at = None
        while above and above[-1][0] >= indent:
            above.pop()
        match = _KEY.match(text)
        if match is None:
            above += [(indent, None)] if text.lstrip()[0] in "-[" else []
            continue
        entry, names = _entry(match, count), [key for _, key in above]
        if entry.text in {"", "{", "["}:
            above.append((indent, None if entry.text == "[" else entry.key))
        elif entry.text[0] in "|>":
            text_at = indent
        elif None not in names:
            yield from _setting(".".join([*filter(None, names), entry.key]), entry)


def _entry(match: re.Match[str], line: int) -> _SettingLine:
    """What stands behind a key, up to the comment; JSON has commas between its entries."""
    rest = match.string[match.end() :]
    comment = _COMMENT.search(rest)
    text = (rest[: comment.start()] if comment else rest).rstrip().removesuffix(",").rstrip()
    start = len(match.string[: match.end()].encode(errors="surrogateescape"))
    end = start + len(text.encode(errors="surrogateescape"))
    return _SettingLine(match["key"], text, rest[comment.end() :] if comment else "", line, start, end)


def _setting(name: str, entry: _SettingLine) -> Iterator[Constant]:
    text = entry.text
    value: Value
    if _NUMBER.fullmatch(text):
        number = int(text) if text.lstrip("+-").isdigit() and len(text) < 18 else float(text)
        declared = read_range(entry.comment, number) if -LARGEST < number < LARGEST else None
        allowed, value = declared or (None if is_fixed(entry.comment) else guess(name, number)), number
    else:
        value = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
        declared = read_range(entry.comment, value)
        allowed = declared = declared if declared is not None and value in declared.choices else None
    yield from _constant(name, value, entry, allowed, guessed=declared is None)


def _constant(
    name: str, value: Value, entry: _SettingLine, allowed: ValueRange | None, *, guessed: bool = False
) -> Iterator[Constant]:
    if allowed is not None or is_fixed(entry.comment):
        yield Constant(name, value, entry.line, entry.start, entry.end, allowed, guessed)
