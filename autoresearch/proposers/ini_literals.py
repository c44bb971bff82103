"""The constants of a file of sections: the numbers that a component is made with, and which one is used.

[Policy]
default = q_table           # one of the policies with a section
[Trainer.sarsa]
learning_rate = 0.2         # 0.01 .. 0.5
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from autoresearch.proposers.known_names import guess
from autoresearch.proposers.ranges import LARGEST, NUMBER, Constant, Range, Value, is_fixed, read_range

_SECTION = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_ENTRY = re.compile(r"(?P<key>[^\s=:#;\[][^=:]*?)\s*[=:]\s*(?P<value>.*?)\s*(?:(?:^|\s)[#;](?P<comment>.*))?")
_NUMBER = re.compile(NUMBER)
# Where a component's code is and what was installed: no arguments of it.
_NOT_ARGUMENTS = frozenset(
    ("class_name", "file_path", "path", "source", "release", "version", "commit", "tree", "isolated", "learns_on_run")
)


def ini_literals(lines: list[bytes]) -> list[Constant]:
    """The numbers of the sections, and the defaults among several components, in the order of the file."""
    return list(_read([line.decode(errors="surrogateescape").rstrip("\r\n") for line in lines]))


def _read(lines: list[str]) -> Iterator[Constant]:
    titles = [match[1].strip().lower() for line in lines if (match := _SECTION.fullmatch(line))]
    section = ""
    for count, line in enumerate(lines, 1):
        if found := _SECTION.fullmatch(line):
            section = found[1].strip().lower()
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or not section or entry["key"].lower() in _NOT_ARGUMENTS:
            continue
        text, comment, name = entry["value"], entry["comment"] or "", f"{section}.{entry['key'].lower()}"
        value: Value = text
        declared = allowed = None
        if _NUMBER.fullmatch(text):
            value = int(text) if text.lstrip("+-").isdigit() and len(text) < 18 else float(text)
            declared = read_range(comment, value) if -LARGEST < value < LARGEST else None
            allowed = declared or (None if is_fixed(comment) else guess(name, value))
        elif entry["key"].lower() == "default" and not is_fixed(comment):
            name, allowed = section, _components(titles, section, text)
        if allowed is not None:
            before = len(_bytes(line[: entry.start("value")]))
            yield Constant(name, value, count, before, before + len(_bytes(text)), allowed, declared is not None)


def _components(titles: list[str], kind: str, value: str) -> Range | None:
    names = tuple(dict.fromkeys(title.partition(".")[2].strip() for title in titles if title.startswith(f"{kind}.")))
    return Range("one of", choices=names) if len(names) > 1 and value in names else None


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
